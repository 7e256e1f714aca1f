/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An app that writes RATE events a second for SECONDS, in bursts of a millisecond, to STAGES stages
 * one after the other, each round a frame; then waits until the daemon has read them and prints its
 * counts as one JSON line.
 * usage: live-writer APP RATE SECONDS STAGES
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "edgeprof.h"

enum { STAGES_MAX = 120, TICK_NS = 1000000 };

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

int main(int argc, char **argv)
{
	unsigned long rate = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long seconds = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long stages = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	if (stages == 0 || stages > STAGES_MAX) {
		fprintf(stderr, "usage: live-writer APP RATE SECONDS STAGES\n");
		return 64;
	}
	int stage[STAGES_MAX];
	edgeprof_init(argv[1]);
	for (unsigned long i = 0; i < stages; i++) {
		char name[16];
		snprintf(name, sizeof(name), "s%lu", i);
		stage[i] = edgeprof_stage(name);
	}
	uint64_t begin_ns = now_ns(), t_ns = begin_ns, written = 0;
	while (t_ns < begin_ns + seconds * 1000000000u) {
		uint64_t due = (t_ns - begin_ns) / 1000 * rate / 1000000;
		for (; written < due; written++) {
			edgeprof_set_frame(written / stages);
			edgeprof_end(edgeprof_begin(stage[written % stages]));
		}
		sleep_until(t_ns + TICK_NS);
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
