/* SPDX-License-Identifier: Apache-2.0 */
/* Sources whose reads hang, with the real workers and a made-up clock: the hang is a read of a
 * pipe, let go by the test. */
#include <errno.h>
#include <unistd.h>

#include "daemon/collect/sched/entry.h"
#include "daemon/collect/sched/scheduler.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define START (1000 * SECOND)
#define PATIENCE (20 * SECOND) /* real; only a broken test waits so long */

enum { SLOW = 5 };

static struct slow {
	int pipe[2];
	bool hangs, hangs_in_probe, hangs_in_close;
	int samples, result, probe_result, open_result, forgets;
	int probes, opens, fetches, closing, closes; /* __atomic: a worker's too */
	struct metric *metric;
	char *memory; /* sanitizers see who touches it after its end */
} slow[SLOW];

static int probe_one(const struct collector_context *ctx, struct slow *s, struct slow **state)
{
	ck_assert_ptr_null(ctx->core);
	__atomic_add_fetch(&s->probes, 1, __ATOMIC_SEQ_CST);
	char byte;
	if (s->hangs_in_probe && read(s->pipe[0], &byte, 1) != 1) {
		return -EIO;
	}
	/* A probe that fails afterwards leaves this to its close as well. */
	s->memory = mem_zalloc(16);
	__atomic_add_fetch(&s->opens, 1, __ATOMIC_SEQ_CST);
	*state = s;
	return s->probe_result;
}

/* A probe does not know its source's name: one function each. */
#define SLOW_PROBE(n)                                                              \
	static int slow_probe##n(const struct collector_context *ctx, void *state) \
	{                                                                          \
		(void)collector_fail(ctx, 0, "no sys/slow");                       \
		return probe_one(ctx, &slow[n], state);                            \
	}
SLOW_PROBE(0)
SLOW_PROBE(1)
SLOW_PROBE(2)
SLOW_PROBE(3)
SLOW_PROBE(4)

static int slow_open(const struct collector_context *ctx, void *state)
{
	struct slow *s = *(struct slow **)state;
	if (s->open_result < 0) {
		return s->open_result;
	}
	return metrics_add(
		ctx->core->metrics, ctx->source, ctx->source->name, UNIT_COUNT, &s->metric);
}

static int slow_fetch(const struct collector_context *ctx, void *state)
{
	struct slow *s = *(struct slow **)state;
	ck_assert_ptr_null(ctx->core);
	__atomic_add_fetch(&s->fetches, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->hangs, __ATOMIC_SEQ_CST) && read(s->pipe[0], s->memory, 1) != 1) {
		return -EIO;
	}
	s->memory[1]++;
	return s->result;
}

static int slow_sample(const struct collector_context *ctx, void *state)
{
	(void)ctx;
	struct slow *s = *(struct slow **)state;
	metric_set(s->metric, ++s->samples);
	return 0;
}

static void slow_close(void *state)
{
	struct slow *s = *(struct slow **)state;
	char byte;
	if (!s) {
		return; /* the probe failed */
	}
	__atomic_add_fetch(&s->closing, 1, __ATOMIC_SEQ_CST);
	if (s->hangs_in_close) {
		ck_assert_int_eq(read(s->pipe[0], &byte, 1), 1);
	}
	free(s->memory);
	__atomic_add_fetch(&s->closes, 1, __ATOMIC_SEQ_CST);
}

static void slow_forget(const struct collector_context *ctx)
{
	slow[ctx->source->name[4] - '0'].forgets++;
}

#define SLOW_OPS(n)                                                                             \
	{                                                                                       \
		.name = "slow" #n, .state_size = sizeof(struct slow *), .probe = slow_probe##n, \
		.open = slow_open, .fetch = slow_fetch, .sample = slow_sample,                  \
		.close = slow_close, .forget = slow_forget                                      \
	}

static const struct collector_ops slow_ops[SLOW] = {
	SLOW_OPS(0), SLOW_OPS(1), SLOW_OPS(2), SLOW_OPS(3), SLOW_OPS(4)};

static int ticks;

static int plain_open(const struct collector_context *ctx, void *state)
{
	(void)ctx;
	(void)state;
	return 0;
}

static int plain_sample(const struct collector_context *ctx, void *state)
{
	(void)ctx;
	(void)state;
	ticks++;
	return 0;
}

static const struct collector_ops plain_ops = {
	.name = "plain", .state_size = 1, .open = plain_open, .sample = plain_sample};
static const struct collector_ops *const all[] = {
	&slow_ops[0], &slow_ops[1], &slow_ops[2], &slow_ops[3], &slow_ops[4], &plain_ops, NULL};
static const struct collector_ops *const one[] = {&slow_ops[0], &plain_ops, NULL};

static struct bench bench;
static uv_loop_t loop;
static struct scheduler *scheduler;
static struct scheduler_options options;
static uint64_t clock_ns;
static struct sysops table;

static uint64_t made_up_clock(void)
{
	return __atomic_load_n(&clock_ns, __ATOMIC_SEQ_CST);
}

static void setup(void)
{
	log_max_level = LOG_LEVEL_ERROR;
	memset(slow, 0, sizeof(slow));
	ticks = 0;
	for (int i = 0; i < SLOW; i++) {
		ck_assert_int_eq(pipe(slow[i].pipe), 0);
	}
	bench_make(&bench, NULL, NULL);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	table = *sysops();
	table.now_ns = made_up_clock;
	sysops_replace(&table);
	clock_ns = START;
	options = (struct scheduler_options){.interval_ns = SECOND, .collectors = one};
}

static void let_go(int i)
{
	ck_assert_int_eq(write(slow[i].pipe[1], "x", 1), 1);
}

static void stop(void)
{
	if (scheduler) {
		scheduler_close(scheduler, NULL, NULL);
		uv_run(&loop, UV_RUN_DEFAULT);
		scheduler = NULL;
	}
}

static void await(const int *counter, int value)
{
	while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < value) {
		usleep(1000);
	}
}

static void teardown(void)
{
	stop();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	for (int i = 0; i < SLOW; i++) {
		let_go(i);
		let_go(i); /* of the probe or the read, and of the close */
	}
	for (int i = 0; i < SLOW; i++) {
		await(&slow[i].closes, __atomic_load_n(&slow[i].opens, __ATOMIC_SEQ_CST));
	}
	sysops_replace(NULL);
	bench_finish(&bench);
}

/* Four of them hang in their reads. */
static void await_four(void)
{
	int fetches = 0;
	while (fetches < 4) {
		fetches = 0;
		for (int i = 0; i < SLOW; i++) {
			fetches += __atomic_load_n(&slow[i].fetches, __ATOMIC_SEQ_CST);
		}
		usleep(1000);
	}
}

static void start(void)
{
	ck_assert_int_eq(
		scheduler_open(&loop, &bench.core, &bench.root, &bench.real, &options, &scheduler),
		0);
}

static void run_at(uint64_t seconds)
{
	__atomic_store_n(&clock_ns, START + seconds * SECOND, __ATOMIC_SEQ_CST);
	scheduler_run(scheduler, START + seconds * SECOND);
}

static struct source *source(const char *name)
{
	return sources_find(bench.core.sources, name);
}

TEST_TIMEOUT(30);
FIXTURE(setup, teardown);

START_TEST(the_first_answer_is_there_when_the_start_is_over)
{
	start();
	ck_assert_int_eq(slow[0].samples, 1);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	ck_assert_uint_eq(source("slow0")->ticks, 1);
	bench_expect(&bench, "slow0", 1);
}
END_TEST

START_TEST(an_answer_comes_through_the_loop)
{
	start();
	run_at(1);
	while (slow[0].samples < 2) {
		ck_assert_int_ne(uv_run(&loop, UV_RUN_ONCE), 0);
	}
	bench_expect(&bench, "slow0", 2);
}
END_TEST

/* covers G2.15 */
START_TEST(a_hanging_source_is_an_error_and_delays_nobody)
{
	slow[0].hangs = true;
	start();
	await(&slow[0].fetches, 1);
	ck_assert_int_eq(ticks, 1);
	run_at(1);
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR);
	ck_assert_str_eq(source("slow0")->reason, "did not answer within 1 s");
	bench_expect_null(&bench, "slow0", "did not answer in time");
	ck_assert_int_gt(slow[0].forgets, 0);
	ck_assert_int_eq(slow[1].forgets, 0);
	for (uint64_t t = 2; t < 100; t++) {
		run_at(t);
		ck_assert(scheduler_healthy(scheduler, START + t * SECOND));
	}
	ck_assert_int_eq(ticks, 100);
	ck_assert_int_eq(__atomic_load_n(&slow[0].fetches, __ATOMIC_SEQ_CST), 1);
	ck_assert_uint_eq(source("slow0")->errors, 1);
	ck_assert_uint_eq(source("slow0")->duration_us, 99000000);
}
END_TEST

/* One thread reads them all, ahead of the tick; what is behind the file that hangs is read by
 * others.
 */
START_TEST(what_hangs_in_a_tick_of_the_loop_delays_nobody)
{
	sysops_replace(NULL);
	options.interval_ns = SECOND / 10;
	options.collectors = all;
	start();
	const int before = ticks;
	for (int i = 0; i < SLOW; i++) {
		ck_assert_int_eq(slow[i].samples, 1);
	}
	while (slow[4].samples < 3) {
		ck_assert_int_ne(uv_run(&loop, UV_RUN_ONCE), 0);
	}
	__atomic_store_n(&slow[1].hangs, true, __ATOMIC_SEQ_CST);
	const int first = slow[1].samples, last = slow[4].samples;
	while (slow[4].samples < last + 5 || ticks < before + 5 ||
		source("slow1")->state != SOURCE_ERROR) {
		ck_assert_int_ne(uv_run(&loop, UV_RUN_ONCE), 0);
	}
	ck_assert_int_le(slow[1].samples, first + 1);
	for (int i = 0; i < SLOW; i++) {
		ck_assert_int_eq(
			source(slow_ops[i].name)->state, i == 1 ? SOURCE_ERROR : SOURCE_OK);
	}
}
END_TEST

START_TEST(it_recovers_by_itself_with_its_next_answer_in_time)
{
	slow[0].hangs = true;
	start();
	await(&slow[0].fetches, 1);
	run_at(1);
	let_go(0);
	scheduler_wait(scheduler, PATIENCE);
	slow[0].hangs = false;
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR); /* a late answer is none */
	ck_assert_int_eq(slow[0].samples, 0);
	run_at(2);
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	bench_expect(&bench, "slow0", 1);
	ck_assert_uint_eq(source("slow0")->ticks, 2);
}
END_TEST

START_TEST(a_long_interval_has_a_deadline_of_two_seconds_and_keeps_its_grid)
{
	options.interval_ns = 10 * SECOND;
	start();
	slow[0].hangs = true;
	run_at(10);
	await(&slow[0].fetches, 2);
	run_at(11);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	run_at(12);
	ck_assert_str_eq(source("slow0")->reason, "did not answer within 2 s");
	let_go(0);
	scheduler_wait(scheduler, PATIENCE);
	slow[0].hangs = false;
	run_at(14);
	ck_assert_int_eq(slow[0].fetches, 2);
	run_at(20);
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(slow[0].fetches, 3);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	run_at(22); /* where a deadline was, nothing is read */
	ck_assert_int_eq(slow[0].fetches, 3);
}
END_TEST

START_TEST(a_failing_fetch_is_an_error_with_its_reason)
{
	slow[0].result = -EACCES;
	start();
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR);
	ck_assert_str_eq(source("slow0")->reason, "Permission denied");
	bench_expect_null(&bench, "slow0", "source failed");
	ck_assert_int_eq(slow[0].samples, 0);
}
END_TEST

START_TEST(a_fifth_stuck_source_waits_for_a_worker)
{
	options.collectors = all;
	for (int i = 0; i < SLOW; i++) {
		slow[i].hangs = true;
	}
	start();
	await_four();
	run_at(1);
	run_at(2);
	int waiting = 0;
	for (int i = 0; i < SLOW; i++) {
		const struct source *s = source(slow_ops[i].name);
		ck_assert_int_eq(s->state, SOURCE_ERROR);
		waiting += strstr(s->reason, "waits for a worker") != NULL;
	}
	ck_assert_int_eq(waiting, 1);
	ck_assert_int_eq(ticks, 3);
	for (int i = 0; i < SLOW; i++) {
		let_go(i);
	}
	scheduler_wait(scheduler, PATIENCE);
	for (int i = 0; i < SLOW; i++) {
		slow[i].hangs = false;
	}
	run_at(3);
	scheduler_wait(scheduler, PATIENCE);
	for (int i = 0; i < SLOW; i++) {
		ck_assert_int_eq(source(slow_ops[i].name)->state, SOURCE_OK);
	}
}
END_TEST

START_TEST(switched_off_while_it_hangs_it_is_closed_when_it_returns)
{
	slow[0].hangs = true;
	start();
	await(&slow[0].fetches, 1);
	run_at(1);
	source_request(source("slow0"), false, 0);
	run_at(2);
	ck_assert_int_eq(source("slow0")->state, SOURCE_SUSPENDED);
	ck_assert_int_eq(__atomic_load_n(&slow[0].closes, __ATOMIC_SEQ_CST), 0);
	source_request(source("slow0"), true, 0);
	run_at(3);
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR);
	ck_assert_str_eq(source("slow0")->reason, "has not answered since it was closed");
	ck_assert_int_eq(slow[0].opens, 1);
	let_go(0);
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(slow[0].closes, 1);
	slow[0].hangs = false;
	run_at(4);
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	ck_assert_int_eq(slow[0].opens, 2);
}
END_TEST

START_TEST(a_stop_does_not_wait_for_stuck_sources)
{
	options.collectors = all;
	for (int i = 0; i < SLOW; i++) {
		slow[i].hangs = true;
	}
	start();
	await_four();
	stop();
	int closed = 0;
	for (int i = 0; i < SLOW; i++) {
		closed += __atomic_load_n(&slow[i].closes, __ATOMIC_SEQ_CST);
	}
	ck_assert_int_le(closed, 1); /* the one that no worker had: by the first that is free */
}
END_TEST

/* covers G2.15 */
START_TEST(a_source_that_hangs_while_it_is_looked_for_delays_nobody)
{
	slow[0].hangs_in_probe = true;
	start();
	await(&slow[0].probes, 1);
	ck_assert_int_eq(ticks, 1);
	run_at(1);
	run_at(2);
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR);
	ck_assert_str_eq(source("slow0")->reason, "did not answer within 2 s");
	for (uint64_t t = 3; t < 100; t++) {
		run_at(t);
		ck_assert(scheduler_healthy(scheduler, START + t * SECOND));
	}
	ck_assert_int_eq(ticks, 100);
	ck_assert_int_eq(__atomic_load_n(&slow[0].probes, __ATOMIC_SEQ_CST), 1);
	ck_assert_uint_eq(source("slow0")->errors, 1);
	let_go(0); /* late, and good: it is read at once */
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	bench_expect(&bench, "slow0", 1);
	ck_assert_int_eq(slow[0].probes, 1);
}
END_TEST

START_TEST(switched_off_while_it_is_looked_for_it_is_closed_when_found)
{
	slow[0].hangs_in_probe = true;
	start();
	await(&slow[0].probes, 1);
	source_request(source("slow0"), false, 0);
	run_at(1);
	ck_assert_int_eq(source("slow0")->state, SOURCE_SUSPENDED);
	let_go(0);
	await(&slow[0].closes, 1);
	slow[0].hangs_in_probe = false;
	source_request(source("slow0"), true, 0);
	run_at(2);
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	ck_assert_int_eq(slow[0].probes, 2);
}
END_TEST

START_TEST(what_is_absent_is_looked_for_every_minute)
{
	struct tree tree; /* in which the kernel does not count devices */
	tree_make(&tree);
	bench_finish(&bench);
	bench_make(&bench, tree.path, NULL);
	slow[0].probe_result = -ENOENT;
	start();
	ck_assert_int_eq(source("slow0")->state, SOURCE_UNAVAILABLE);
	ck_assert_str_eq(source("slow0")->reason, "no sys/slow");
	ck_assert_uint_eq(source("slow0")->errors, 0);
	for (uint64_t t = 1; t < 20; t++) {
		run_at(t);
		scheduler_wait(scheduler, PATIENCE);
	}
	ck_assert_int_eq(slow[0].probes, 1);
	ck_assert_int_eq(slow[0].closes, 1);
	slow[0].probe_result = 0;
	for (uint64_t t = 20; t < 121; t++) {
		run_at(t);
		scheduler_wait(scheduler, PATIENCE);
	}
	ck_assert_int_eq(slow[0].probes, 2);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	tree_remove(&tree);
}
END_TEST

START_TEST(what_is_absent_to_open_is_not_looked_for_in_vain)
{
	struct tree tree;
	tree_make(&tree);
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1795\n");
	bench_finish(&bench);
	bench_make(&bench, tree.path, NULL);
	slow[0].open_result = -ENOENT;
	start();
	for (uint64_t t = 1; t < 300; t++) {
		run_at(t);
		scheduler_wait(scheduler, PATIENCE);
	}
	ck_assert_int_eq(slow[0].probes, 1);
	tree_remove(&tree);
}
END_TEST

START_TEST(what_was_found_but_cannot_be_named_is_closed)
{
	slow[0].open_result = -ENOSPC;
	start();
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR);
	scheduler_wait(scheduler, PATIENCE);
	await(&slow[0].closes, 1);
	ck_assert_int_eq(slow[0].fetches, 0);
}
END_TEST

/* covers G2.15 */
START_TEST(a_file_that_hangs_when_it_is_closed_delays_nobody)
{
	start();
	slow[0].hangs_in_close = true;
	source_request(source("slow0"), false, 0);
	run_at(1);
	run_at(2);
	await(&slow[0].closing, 1);
	source_request(source("slow0"), true, 0);
	run_at(3);
	ck_assert_int_eq(ticks, 4);
	ck_assert_int_eq(slow[0].probes, 1);
	run_at(4);
	run_at(5);
	ck_assert_int_eq(source("slow0")->state, SOURCE_ERROR);
	ck_assert_str_eq(source("slow0")->reason, "has not answered since it was closed");
	let_go(0);
	await(&slow[0].closes, 1);
	slow[0].hangs_in_close = false;
	scheduler_wait(scheduler, PATIENCE);
	run_at(6);
	scheduler_wait(scheduler, PATIENCE);
	ck_assert_int_eq(source("slow0")->state, SOURCE_OK);
	ck_assert_int_eq(slow[0].probes, 2);
}
END_TEST

START_TEST(a_tick_allocates_nothing)
{
	start();
	table.calloc = NULL; /* a call would crash */
	for (uint64_t t = 1; t < 20; t++) {
		run_at(t);
		scheduler_wait(scheduler, PATIENCE);
	}
	table.calloc = calloc;
	ck_assert_int_eq(slow[0].samples, 20);
}
END_TEST

static struct metric *add_metric(const char *by, const char *name)
{
	struct source *owner = sources_find(bench.core.sources, by);
	struct metric *metric;
	if (!owner) {
		ck_assert_int_eq(sources_add(bench.core.sources, by, 0, &owner), 0);
	}
	ck_assert_int_eq(metrics_add(bench.core.metrics, owner, name, UNIT_PERCENT, &metric), 0);
	return metric;
}

/* covers G2.14 */
START_TEST(the_adaptive_rate_changes_intervals_that_are_nobodys_own)
{
	const struct source_options own = {.name = "plain", .enabled = true, .interval_ns = SECOND};
	options.sources = &own;
	options.source_count = 1;
	adaptive_defaults(&options.adaptive);
	options.adaptive.enabled = true;
	struct metric *cpu = add_metric("made_up", "cpu/utilization");
	metric_set(cpu, 95);
	metrics_commit(bench.core.metrics, cpu->source, START);
	start();
	ck_assert_uint_eq(source("slow0")->interval_ns, SECOND);
	run_at(1);
	run_at(2);
	ck_assert_uint_eq(source("slow0")->interval_ns, SECOND / 2);
	ck_assert_uint_eq(source("plain")->interval_ns, SECOND);
	ck_assert_uint_eq(bench.counters.sampling_interval_ns, SECOND / 2);
	source_request(source("slow0"), true, 4 * SECOND);
	run_at(3);
	ck_assert_uint_eq(source("slow0")->interval_ns, 4 * SECOND);
	options.adaptive.enabled = false;
	scheduler_configure(scheduler, &options);
	ck_assert_uint_eq(bench.counters.sampling_interval_ns, SECOND);
}
END_TEST

/* What asks a bus or the firmware. */
static const char *const may_hang[] = {
	"cpufreq", "fan", "gpu", "hwmon", "modes", "pi", "power", "thermal", "throttle"};

START_LOOP_TEST(what_may_hang_is_read_beside_the_loop, 0, COUNT(may_hang))
{
	const struct collector_ops *ops = collector_find(may_hang[_i]);
	ck_assert_ptr_nonnull(ops);
	ck_assert(ops->probe != NULL);
	ck_assert(ops->fetch != NULL);
}
END_TEST
