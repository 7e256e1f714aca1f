/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs a loop to ask for advice, attached and without a daemon, beside one clock_gettime
 * of the same run; the median of many rounds.
 */
#include <sys/wait.h>

#include "client/libedgeprof/edgeprof.h"
#include "tests/unit/libedgeprof/fake_daemon.h"
#include "tests/bench/bench.h"

enum { ROUNDS = 300, CALLS = 1000, KINDS = 3 };

static void measure(const char *what)
{
	static double ns[KINDS][ROUNDS];
	uint64_t sink = 0, t[KINDS + 1];
	for (int r = 0; r < ROUNDS; r++) {
		t[0] = edgeprof_now();
		for (int i = 0; i < CALLS; i++) {
			struct timespec now;
			clock_gettime(CLOCK_MONOTONIC, &now);
			sink += (uint64_t)now.tv_nsec;
		}
		t[1] = edgeprof_now();
		for (int i = 0; i < CALLS; i++) {
			struct edgeprof_advice advice;
			sink += edgeprof_advice(&advice) ? advice.skip_frames : 0;
		}
		t[2] = edgeprof_now();
		for (int i = 0; i < CALLS; i++) {
			sink += edgeprof_should_skip();
		}
		t[3] = edgeprof_now();
		for (int k = 0; k < KINDS; k++) {
			ns[k][r] = (double)(t[k + 1] - t[k]) / CALLS;
		}
	}
	for (int k = 0; k < KINDS; k++) {
		qsort(ns[k], ROUNDS, sizeof(double), by_value);
	}
	printf("%s: advice %.1f ns, should_skip %.1f ns (clock_gettime %.1f ns) %s\n", what,
		ns[1][ROUNDS / 2], ns[2][ROUNDS / 2], ns[0][ROUNDS / 2], sink == 1 ? "" : ".");
	fflush(stdout);
}

static int attached(void)
{
	struct fake_daemon d;
	if (fake_start(&d) < 0 || edgeprof_init("bench") < 0 || fake_accept(&d) < 0) {
		return 1;
	}
	struct proto_map_header *header = d.map;
	const struct proto_advice advice = {PROTO_ADVICE_REDUCED, 1, 3, 20000};
	header->advice = proto_advice_pack(&advice);
	__atomic_store_n(&header->advice_ns, edgeprof_now(), __ATOMIC_RELEASE);
	measure("attached");
	fake_stop(&d);
	return 0;
}

static int nobody(void)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	edgeprof_init(NULL);
	measure("without a daemon");
	return 0;
}

int main(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		return nobody();
	}
	int status = 0;
	return attached() || pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
}
