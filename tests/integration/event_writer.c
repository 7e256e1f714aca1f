/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instrumented program that counts for itself: writes N events from T threads, then ticks once a
 * second (an event is what makes the library look for a daemon) until the daemon has read all, or
 * for a limit, and prints its counts as one JSON line. SIGUSR1: enough events are written.
 * usage: event-writer APP EVENTS THREADS PAUSE_US DRAIN_SECONDS
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "edgeprof.h"

struct work {
	pthread_t thread;
	unsigned long events, written;
	long pause_us;
	int stage, inner;
};

static volatile sig_atomic_t enough;

static void on_enough(int signal)
{
	(void)signal;
	enough = 1;
}

static void pause_for(long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};
	nanosleep(&ts, NULL);
}

static void *write_events(void *arg)
{
	struct work *work = arg;
	unsigned long i;
	for (i = 0; i < work->events && !enough; i++) {
		edgeprof_set_frame(i);
		edgeprof_token token = edgeprof_begin(i % 2 ? work->inner : work->stage);
		edgeprof_end(token);
		if (work->pause_us > 0) {
			pause_for(work->pause_us);
		}
	}
	work->written = i;
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: event-writer APP EVENTS THREADS PAUSE_US DRAIN_SECONDS\n");
		return 64;
	}
	unsigned long events = strtoul(argv[2], NULL, 10);
	unsigned long threads = strtoul(argv[3], NULL, 10);
	long drain_ms = strtol(argv[5], NULL, 10) * 1000;
	struct work work[16];
	struct edgeprof_counts counts;
	const struct sigaction action = {.sa_handler = on_enough};
	sigaction(SIGUSR1, &action, NULL);
	if (threads < 1 || threads > 16 || edgeprof_init(argv[1]) < 0) {
		return 64;
	}
	for (unsigned long i = 0; i < threads; i++) {
		work[i] = (struct work){.events = events / threads,
			.pause_us = strtol(argv[4], NULL, 10),
			.stage = edgeprof_stage("infer"),
			.inner = edgeprof_stage("capture")};
		if (pthread_create(&work[i].thread, NULL, write_events, &work[i]) != 0) {
			return 71;
		}
	}
	unsigned long calls = 0;
	for (unsigned long i = 0; i < threads; i++) {
		pthread_join(work[i].thread, NULL);
		calls += work[i].written;
	}
	for (long waited = 0; waited < drain_ms; waited += 20) {
		edgeprof_counts(&counts);
		if (counts.in_ring == 0) {
			break;
		}
		if (waited % 1000 == 980) {
			edgeprof_tick();
			calls++;
		}
		pause_for(20000);
	}
	edgeprof_counts(&counts);
	printf("{\"calls\":%lu,\"sent\":%llu,\"received\":%llu,\"dropped\":%llu,\"in_ring\":%llu,"
	       "\"unattached\":%llu}\n",
		calls, (unsigned long long)counts.sent, (unsigned long long)counts.received,
		(unsigned long long)counts.dropped, (unsigned long long)counts.in_ring,
		(unsigned long long)counts.unattached);
	return 0;
}
