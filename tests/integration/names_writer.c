/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user whose programs never use a name twice: processes one after another, each with 126 new
 * stages and some events of each, as user UID where that is allowed. Ends with its parent's
 * SIGTERM. usage: names-writer UID APP EVENTS
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "edgeprof.h"

enum { NAMES = 126 };

static void nap(long ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&pause, NULL);
}

static int one_process(const char *app, unsigned generation, int events)
{
	int stage[NAMES];
	if (edgeprof_init(app) < 0) {
		return 1;
	}
	for (int i = 0; i < NAMES; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%u.%d.%d", generation, (int)getpid(), i);
		stage[i] = edgeprof_stage(name);
	}
	for (int k = 0; k < events; k++) {
		for (int i = 0; i < NAMES; i++) {
			edgeprof_complete(stage[i], edgeprof_now() - 1000, 1000, EDGEPROF_NO_FRAME);
		}
		nap(10);
	}
	nap(150);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 4 || setuid((uid_t)strtoul(argv[1], NULL, 10)) < 0) {
		return 64;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned generation = 0;; generation++) {
		pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			exit(one_process(argv[2], generation, atoi(argv[3])));
		}
		if (child < 0 || waitpid(child, NULL, 0) < 0) {
			return 71;
		}
	}
}
