/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one stage costs an app: begin + end against two clock_gettime calls, measured in turns in
 * the same run; the median of many rounds. Attached (a thread drains as the daemon would, every
 * 10 ms or when woken) with 1 and 4 threads, without a daemon, and switched off.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "client/libedgeprof/edgeprof.h"
#include "tests/unit/libedgeprof/fake_daemon.h"
#include "tests/bench/bench.h"

enum { ROUNDS = 300, CALLS = 1000, THREADS_MAX = 4, ROOM = 2000 };

struct worker {
	pthread_t thread;
	int stage;
	double clock_ns[ROUNDS], stage_ns[ROUNDS];
	uint64_t sink; /* keeps the clocks from being thrown away */
};

static atomic_bool stop;
static pthread_barrier_t barrier;

static uint64_t two_clocks(void)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (uint64_t)(b.tv_nsec - a.tv_nsec);
}

/* A round is 1000 stages back to back, 50 times what any pipeline does: what is measured is a stage
 * that is recorded, not one that is refused. */
static void wait_for_room(void)
{
	struct edgeprof_counts n;
	for (edgeprof_counts(&n); n.attached && n.in_ring > ROOM; edgeprof_counts(&n)) {
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&barrier);
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t t0 = edgeprof_now();
		for (int i = 0; i < CALLS; i++) {
			w->sink += two_clocks();
		}
		uint64_t t1 = edgeprof_now();
		for (int i = 0; i < CALLS; i++) {
			edgeprof_end(edgeprof_begin(w->stage));
		}
		uint64_t t2 = edgeprof_now();
		wait_for_room();
		w->clock_ns[r] = (double)(t1 - t0) / CALLS;
		w->stage_ns[r] = (double)(t2 - t1) / CALLS;
	}
	return NULL;
}

static void *drain(void *arg)
{
	struct fake_daemon *d = arg;
	while (!stop) {
		struct pollfd p = {.fd = d->connection, .events = POLLIN};
		char byte;
		if (poll(&p, 1, 10) > 0) {
			(void)!recv(d->connection, &byte, 1, MSG_DONTWAIT);
		}
		fake_drain(d, NULL, NULL);
	}
	return NULL;
}

static void measure(const char *what, int threads)
{
	static struct worker workers[THREADS_MAX];
	static double clocks[THREADS_MAX * ROUNDS], stages[THREADS_MAX * ROUNDS];
	int stage = edgeprof_stage("infer");
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		workers[i].stage = stage;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		memcpy(clocks + i * ROUNDS, workers[i].clock_ns, sizeof(workers[i].clock_ns));
		memcpy(stages + i * ROUNDS, workers[i].stage_ns, sizeof(workers[i].stage_ns));
	}
	pthread_barrier_destroy(&barrier);
	double c = median(clocks, (size_t)threads * ROUNDS);
	double s = median(stages, (size_t)threads * ROUNDS);
	printf("stage %s, %d thread%s: %.1f ns, %.2f x two clock_gettime (%.1f ns)\n", what,
		threads, threads > 1 ? "s" : "", s, s / c, c);
	fflush(stdout);
}

static int attached(void)
{
	struct fake_daemon d;
	pthread_t drainer;
	if (fake_start(&d) < 0 || edgeprof_init("bench") < 0 || fake_accept(&d) < 0) {
		return 1;
	}
	pthread_create(&drainer, NULL, drain, &d);
	measure("attached", 1);
	measure("attached", 4);
	stop = true;
	pthread_join(drainer, NULL);
	fake_drain(&d, NULL, NULL);
	struct fake_counts n = fake_count(&d);
	printf("sent %llu = received %llu + dropped %llu + in ring %llu\n",
		(unsigned long long)n.sent, (unsigned long long)n.received,
		(unsigned long long)n.dropped, (unsigned long long)n.in_ring);
	fake_stop(&d);
	return n.sent == n.received + n.dropped + n.in_ring ? 0 : 1;
}

static int nobody(void)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	edgeprof_init(NULL);
	measure("never attached", 1);
	measure("never attached", 4);
	return 0;
}

static int disabled(void)
{
	setenv("EDGEPROF_DISABLE", "1", 1);
	edgeprof_init(NULL);
	measure("disabled", 1);
	return 0;
}

int main(void)
{
	static int (*const parts[])(void) = {attached, nobody, disabled};
	int failed = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			return parts[i]();
		}
		int status = 0;
		failed |= pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
	}
	return failed;
}
