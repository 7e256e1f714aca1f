/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one stage costs an app: begin + end against two clock_gettime calls, in random order in the
 * same run. Hot: the median of rounds of 1000 after 100 that are not timed, attached (another
 * thread drains) with 1, 2 and 4 threads that never sleep: what a neighbour of the same core does
 * to the caches meanwhile belongs to the cold ones. Cold: the trimmed mean of single ones (the
 * processor's counter has steps of 10 ns on some machines, so a median has them, too), with memory
 * touched between them as an app's own work does. Then without a daemon.
 *
 * bench_stage scope: EDGEPROF_SCOPE("infer") against begin and end with a declared number.
 *
 * bench_stage tsc, tsc-error: one thread with EDGEPROF_CLOCK=tsc, and how far its times are off the
 * kernel's.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "client/libedgeprof/edgeprof.h"
#include "tests/unit/libedgeprof/fake_daemon.h"
#include "tests/bench/bench.h"

enum { ROUNDS_MAX = 400, CALLS = 1000, WARM = 100, THREADS_MAX = 4 };
enum { ROOM = 2000, SINGLES_MAX = 600 };

struct worker {
	pthread_t thread;
	int stage;
	double clock_ns[ROUNDS_MAX], stage_ns[ROUNDS_MAX];
	uint64_t sink; /* keeps the clocks from being thrown away */
};

static atomic_bool stop;
static pthread_barrier_t barrier;
static int rounds = ROUNDS_MAX;
static bool brief;

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
		sched_yield();
	}
}

static double time_clocks(struct worker *w)
{
	double start = now_ns();
	for (int i = 0; i < CALLS; i++) {
		w->sink += two_clocks();
	}
	return (now_ns() - start) / CALLS;
}

static void warm_up(const struct worker *w)
{
	for (int i = 0; i < WARM; i++) {
		edgeprof_end(edgeprof_begin(w->stage));
	}
}

static double time_stages(struct worker *w)
{
	warm_up(w);
	double start = now_ns();
	for (int i = 0; i < CALLS; i++) {
		edgeprof_end(edgeprof_begin(w->stage));
	}
	double took = (now_ns() - start) / CALLS;
	wait_for_room();
	return took;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&barrier);
	for (int r = 0; r < rounds; r++) {
		bool clocks_first = toss();
		w->clock_ns[r] = clocks_first ? time_clocks(w) : 0;
		w->stage_ns[r] = time_stages(w);
		w->clock_ns[r] = clocks_first ? w->clock_ns[r] : time_clocks(w);
	}
	return NULL;
}

static void *drain(void *arg)
{
	struct fake_daemon *d = arg;
	while (!stop) {
		struct pollfd p = {.fd = d->connection, .events = POLLIN};
		char byte;
		if (poll(&p, 1, 1) > 0) {
			(void)!recv(d->connection, &byte, 1, MSG_DONTWAIT);
		}
		fake_drain(d, NULL, NULL);
	}
	return NULL;
}

struct cost {
	double clock, stage;
};

static struct cost measure(int threads)
{
	static struct worker workers[THREADS_MAX];
	static double clocks[THREADS_MAX * ROUNDS_MAX], stages[THREADS_MAX * ROUNDS_MAX];
	int stage = edgeprof_stage("infer");
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		workers[i].stage = stage;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		memcpy(clocks + i * rounds, workers[i].clock_ns, (size_t)rounds * sizeof(double));
		memcpy(stages + i * rounds, workers[i].stage_ns, (size_t)rounds * sizeof(double));
	}
	pthread_barrier_destroy(&barrier);
	const size_t count = (size_t)(threads * rounds);
	return (struct cost){median(clocks, count), median(stages, count)};
}

static void report(const char *key, struct cost cost, double unit_ns)
{
	char floor[64];
	snprintf(floor, sizeof(floor), "%s.floor", key);
	result(key, cost.stage / cost.clock);
	result(floor, cost.clock * unit_ns);
}

static void touch(unsigned char *memory, size_t size)
{
	for (size_t i = 0; i < size; i += 64) {
		memory[i]++;
	}
	__asm__ volatile("" : : "r"(memory) : "memory");
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* these stores are over before a call is timed */
}

/* Of those between the tenth and the seventieth percent: without interrupts, and without steps. */
static double trimmed_mean(double *values, size_t count)
{
	double sum = 0;
	size_t from = count / 10, to = count * 7 / 10;
	median(values, count);
	for (size_t i = from; i < to; i++) {
		sum += values[i];
	}
	return sum / (double)(to - from);
}

/* One call in ticks; the pair of ticks alone is taken off. */
static double single(unsigned char *memory, size_t size, int what, int stage)
{
	touch(memory, size);
	uint64_t start = ticks();
	if (what == 1) {
		two_clocks();
	} else if (what == 2) {
		edgeprof_end(edgeprof_begin(stage));
	}
	return (double)(ticks() - start);
}

static void measure_cold(const char *key, size_t size, int singles)
{
	static double took[3][SINGLES_MAX];
	unsigned char *memory = calloc(1, size);
	int stage = edgeprof_stage("infer");
	double begin_ns = now_ns();
	uint64_t begin = ticks();
	singles = brief ? 5 : singles;
	for (int i = 0; memory && i < singles; i++) {
		int first = toss() ? 1 : 2;
		took[0][i] = single(memory, size, 0, stage);
		took[first][i] = single(memory, size, first, stage);
		took[3 - first][i] = single(memory, size, 3 - first, stage);
		wait_for_room();
	}
	double unit_ns = (now_ns() - begin_ns) / (double)(ticks() - begin);
	double nothing = trimmed_mean(took[0], (size_t)singles);
	report(key,
		(struct cost){trimmed_mean(took[1], (size_t)singles) - nothing,
			trimmed_mean(took[2], (size_t)singles) - nothing},
		unit_ns);
	free(memory);
}

static int attach(struct fake_daemon *d, pthread_t *drainer)
{
	if (fake_start(d) < 0 || edgeprof_init("bench") < 0 || fake_accept(d) < 0) {
		return -1;
	}
	return drainer ? pthread_create(drainer, NULL, drain, d) : 0;
}

static int detach(struct fake_daemon *d, pthread_t drainer)
{
	stop = true;
	pthread_join(drainer, NULL);
	fake_drain(d, NULL, NULL);
	struct fake_counts n = fake_count(d);
	fake_stop(d);
	return n.sent == n.received + n.dropped + n.in_ring ? 0 : 1;
}

static int attached(void)
{
	static const struct {
		const char *key;
		size_t size;
		int singles;
	} cold[] = {{"stage.cold.512K", 512 << 10, 600}, {"stage.cold.4M", 4 << 20, 400},
		{"stage.cold.40M", 40 << 20, 120}};
	struct fake_daemon d;
	pthread_t drainer;
	if (attach(&d, &drainer) != 0) {
		return 1;
	}
	for (int threads = 1; threads <= THREADS_MAX; threads *= 2) {
		char key[32];
		snprintf(key, sizeof(key), "stage.hot.%d", threads);
		report(key, measure(threads), 1);
	}
	for (size_t i = 0; i < sizeof(cold) / sizeof(cold[0]); i++) {
		measure_cold(cold[i].key, cold[i].size, cold[i].singles);
	}
	return detach(&d, drainer);
}

static double time_scopes(struct worker *w)
{
	warm_up(w);
	double start = now_ns();
	for (int i = 0; i < CALLS; i++) {
		EDGEPROF_SCOPE("infer");
	}
	double took = (now_ns() - start) / CALLS;
	(void)w;
	wait_for_room();
	return took;
}

static int scopes(void)
{
	static double numbered[ROUNDS_MAX], named[ROUNDS_MAX];
	struct fake_daemon d;
	pthread_t drainer;
	struct worker w = {.stage = 0};
	if (attach(&d, &drainer) != 0) {
		return 1;
	}
	w.stage = edgeprof_stage("infer");
	for (int r = 0; r < rounds; r++) {
		bool first = toss();
		named[r] = first ? time_scopes(&w) : 0;
		numbered[r] = time_stages(&w);
		named[r] = first ? named[r] : time_scopes(&w);
	}
	double floor = median(numbered, (size_t)rounds);
	report("stage.scope", (struct cost){floor, median(named, (size_t)rounds)}, 1);
	return detach(&d, drainer);
}

static int nobody(void)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	edgeprof_init(NULL);
	result("stage.nobody", measure(1).stage);
	return 0;
}

/* The first second is the kernel's clock; then the library knows the counter. */
static void compare_clocks(void)
{
	int stage = edgeprof_stage("infer");
	for (double until_ns = now_ns() + (brief ? 0 : 2.2e9); now_ns() < until_ns;) {
		edgeprof_end(edgeprof_begin(stage));
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

static int counter_clock(void)
{
	struct fake_daemon d;
	pthread_t drainer;
	setenv("EDGEPROF_CLOCK", "tsc", 1);
	if (attach(&d, &drainer) != 0) {
		return 1;
	}
	compare_clocks();
	report("stage.tsc", measure(1), 1);
	return detach(&d, drainer);
}

/* Between what the kernel's clock said before and after it. */
struct span {
	uint64_t before_ns, after_ns, error_ns;
};

static void check_span(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct span *span = ctx;
	uint64_t end_ns = record->start_ns + record->value;
	(void)slot;
	if (record->kind != PROTO_KIND_COMPLETE) {
		return;
	}
	uint64_t early =
		span->before_ns > record->start_ns ? span->before_ns - record->start_ns : 0;
	uint64_t late = end_ns > span->after_ns ? end_ns - span->after_ns : 0;
	uint64_t error = early > late ? early : late;
	span->error_ns = error > span->error_ns ? error : span->error_ns;
}

static int counter_clock_error(void)
{
	struct fake_daemon d;
	struct span span = {0};
	setenv("EDGEPROF_CLOCK", "tsc", 1);
	if (attach(&d, NULL) != 0) {
		return 1;
	}
	int stage = edgeprof_stage("infer");
	for (int i = 0; i < (brief ? 100 : 10000); i++) {
		span.before_ns = (uint64_t)now_ns();
		edgeprof_end(edgeprof_begin(stage));
		span.after_ns = (uint64_t)now_ns() + 1; /* a double has 53 bits */
		fake_drain(&d, check_span, &span);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	result("stage.tsc_error", (double)span.error_ns / 1e3);
	fake_stop(&d);
	return 0;
}

int main(int argc, char **argv)
{
	static int (*const parts[])(void) = {
		attached, nobody, counter_clock, counter_clock_error, scopes};
	static const char *const names[] = {"tsc", "tsc-error", "scope"};
	size_t from = 0, to = 2;
	for (size_t i = 0; argc > 1 && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(argv[1], names[i]) == 0) {
			from = 2 + i;
			to = from + 1;
		}
	}
	brief = is_short(argc, argv);
	rounds = brief ? 3 : ROUNDS_MAX;
	int failed = 0;
	for (size_t i = from; i < to; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			return parts[i]();
		}
		int status = 0;
		failed |= pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
	}
	return failed;
}
