/* SPDX-License-Identifier: Apache-2.0 */
/* detached.c: starts threads that nobody joins. Unlike libuv's workers, which abort the process
 * when a thread is refused, a refusal is an error of the call. */
#include "daemon/util/detached.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

int detached_start(size_t stack_bytes, void *(*work)(void *ctx), void *ctx)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0) {
		return -ENOMEM;
	}
	pthread_attr_setstacksize(&attributes, stack_bytes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* Signals are the main thread's. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&thread, &attributes, work, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}
