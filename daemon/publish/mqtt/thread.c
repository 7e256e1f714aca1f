/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c: runs one connection's life after another. What comes next waits in a slot, under a
 * mutex that is held for a few assignments only. */
#include "daemon/publish/mqtt/thread.h"

#include <errno.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"

struct mqtt_thread {
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*run)(void *ctx); /* the next; NULL: none */
	void *ctx;
	bool busy, left, quit;
};

static void thread_free(struct mqtt_thread *thread)
{
	pthread_cond_destroy(&thread->changed);
	pthread_mutex_destroy(&thread->lock);
	free(thread);
}

static void *thread_main(void *arg)
{
	struct mqtt_thread *thread = arg;
	pthread_mutex_lock(&thread->lock);
	while (!thread->quit) {
		if (!thread->run) {
			pthread_cond_wait(&thread->changed, &thread->lock);
			continue;
		}
		void (*run)(void *) = thread->run;
		void *ctx = thread->ctx;
		thread->run = NULL;
		thread->busy = true;
		pthread_mutex_unlock(&thread->lock);
		run(ctx);
		pthread_mutex_lock(&thread->lock);
		thread->busy = false;
		thread->left = thread->left && thread->quit;
	}
	bool own = thread->left;
	pthread_mutex_unlock(&thread->lock);
	if (own) {
		thread_free(thread);
	}
	return NULL;
}

int mqtt_thread_create(struct mqtt_thread **ret)
{
	struct mqtt_thread *thread = mem_zalloc(sizeof(*thread));
	if (!thread) {
		return -ENOMEM;
	}
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->changed, NULL);
	/* A thread that was abandoned may still be within OpenSSL when the process exits. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
	mosquitto_lib_init();
	/* Signals are the main loop's; SIGPIPE must not come from a TLS write. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&thread->id, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		mosquitto_lib_cleanup();
		thread_free(thread);
		return -r;
	}
	*ret = thread;
	return 0;
}

void mqtt_thread_destroy(struct mqtt_thread *thread)
{
	if (!thread) {
		return;
	}
	pthread_mutex_lock(&thread->lock);
	thread->quit = true;
	bool left = thread->left;
	pthread_cond_signal(&thread->changed);
	if (left) { /* it may free everything from here on; libmosquitto stays initialised */
		pthread_detach(thread->id);
	}
	pthread_mutex_unlock(&thread->lock);
	if (!left) {
		pthread_join(thread->id, NULL);
		mosquitto_lib_cleanup();
		thread_free(thread);
	}
}

bool mqtt_thread_run(struct mqtt_thread *thread, void (*run)(void *ctx), void *ctx)
{
	pthread_mutex_lock(&thread->lock);
	thread->run = run;
	thread->ctx = ctx;
	bool waits = thread->left;
	pthread_cond_signal(&thread->changed);
	pthread_mutex_unlock(&thread->lock);
	return !waits;
}

bool mqtt_thread_take_back(struct mqtt_thread *thread, const void *ctx)
{
	pthread_mutex_lock(&thread->lock);
	bool waits = thread->run && thread->ctx == ctx;
	thread->run = waits ? NULL : thread->run;
	pthread_mutex_unlock(&thread->lock);
	return waits;
}

void mqtt_thread_abandon(struct mqtt_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	thread->left = thread->busy;
	pthread_mutex_unlock(&thread->lock);
}
