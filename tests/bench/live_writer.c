/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An app that writes RATE events a second for SECONDS, in bursts of a millisecond, to STAGES stages
 * one after the other, each round a frame unless they are to be alone; then waits until the daemon
 * has read them and prints its counts as one JSON line. With PROCESSES above 1 as many at once,
 * named APP0, APP1, and so on.
 * usage: live-writer APP RATE SECONDS STAGES [PROCESSES [alone]]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "edgeprof.h"

enum { STAGES_MAX = 128, PROCESSES_MAX = 128, TICK_NS = 1000000 };

static void sleep_until(uint64_t t_ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(t_ns / 1000000000), .tv_nsec = (long)(t_ns % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool alone;

static int write_events(
	const char *app, unsigned long rate, unsigned long seconds, unsigned long stages)
{
	int stage[STAGES_MAX];
	edgeprof_init(app);
	for (unsigned long i = 0; i < stages; i++) {
		char name[24];
		snprintf(name, sizeof(name), "s%lu", i);
		stage[i] = edgeprof_stage(name);
	}
	/* many at low rates need not wake a thousand times a second each */
	uint64_t tick_ns = rate >= 1000 ? TICK_NS : 50 * (uint64_t)TICK_NS;
	uint64_t begin_ns = now_ns(), t_ns = begin_ns, written = 0;
	while (t_ns < begin_ns + seconds * 1000000000u) {
		uint64_t due = (t_ns - begin_ns) / 1000 * rate / 1000000;
		for (; written < due; written++) {
			if (!alone) {
				edgeprof_set_frame(written / stages);
			}
			edgeprof_end(edgeprof_begin(stage[written % stages]));
		}
		sleep_until(t_ns + tick_ns);
		t_ns = now_ns();
	}
	struct edgeprof_counts counts;
	uint64_t patience_ns = now_ns() + 5000000000u;
	do {
		sleep_until(now_ns() + 50 * (uint64_t)TICK_NS);
		edgeprof_counts(&counts);
	} while (counts.in_ring > 0 && now_ns() < patience_ns);
	printf("{\"written\": %llu, \"sent\": %llu, \"dropped\": %llu, \"received\": %llu, "
	       "\"unattached\": %llu, \"seconds\": %.3f}\n",
		(unsigned long long)written, (unsigned long long)counts.sent,
		(unsigned long long)counts.dropped, (unsigned long long)counts.received,
		(unsigned long long)counts.unattached, (double)(t_ns - begin_ns) / 1e9);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long number[4] = {0, 0, 0, 1};
	for (int i = 2; i < argc && i < 6; i++) {
		number[i - 2] = strtoul(argv[i], NULL, 10);
	}
	const unsigned long stages = number[2], processes = number[3];
	alone = argc > 6 && strcmp(argv[6], "alone") == 0;
	if (stages == 0 || stages > STAGES_MAX || processes == 0 || processes > PROCESSES_MAX) {
		fprintf(stderr, "usage: live-writer APP RATE SECONDS STAGES [PROCESSES [alone]]\n");
		return 64;
	}
	if (processes == 1) {
		return write_events(argv[1], number[0], number[1], stages);
	}
	for (unsigned long i = 0; i < processes; i++) {
		if (fork() == 0) {
			char app[72];
			snprintf(app, sizeof(app), "%.40s%lu", argv[1], i);
			return write_events(app, number[0], number[1], stages);
		}
	}
	while (wait(NULL) > 0) {
	}
	return 0;
}
