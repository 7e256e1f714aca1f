/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sources under the scheduler, with made-up collectors and made-up time. */
#include "daemon/collect/sched/scheduler.h"

#include <errno.h>

#include "daemon/collect/sched/entry.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define START (1000 * SECOND)

/* A collector with one metric, told by the test what to do. */
static struct {
	int open_result, sample_result;
	int opens, samples, closes, more;
	uint64_t sampled_ns;
	struct metric *metric;
	const void *state;
	char exclude[64];
} fake;

static int fake_open(const struct collector_context *ctx, void *state)
{
	fake.opens++;
	fake.state = state;
	fake.exclude[0] = '\0';
	if (ctx->options && ctx->options->keys > 0) {
		snprintf(fake.exclude, sizeof(fake.exclude), "%.60s", ctx->options->key[0].value);
	}
	if (fake.open_result < 0) {
		return collector_fail(ctx, fake.open_result, "nothing in sys/fake");
	}
	return metrics_add(ctx->core->metrics, ctx->source, "fake/value", UNIT_COUNT, &fake.metric);
}

static int fake_sample(const struct collector_context *ctx, void *state)
{
	ck_assert_ptr_eq(state, fake.state);
	fake.samples++;
	fake.sampled_ns = ctx->now_ns;
	if (fake.more > 0) {
		fake.more--;
		return -EINPROGRESS;
	}
	if (fake.sample_result < 0) {
		return collector_fail(ctx, fake.sample_result, "sys/fake/value: it broke");
	}
	metric_set(fake.metric, fake.samples);
	return 0;
}

static void fake_close(void *state)
{
	fake.closes += state == fake.state && state != NULL;
}

static const struct collector_ops fake_ops = {.name = "fake",
	.state_size = 1,
	.open = fake_open,
	.sample = fake_sample,
	.close = fake_close};
static const struct collector_ops quiet_ops = {.name = "quiet",
	.state_size = 1,
	.interval_ns = 2 * SECOND,
	.internal = true,
	.open = fake_open,
	.sample = fake_sample,
	.close = fake_close};
static const struct collector_ops *const only_fake[] = {&fake_ops, NULL};

static struct bench bench;
static uv_loop_t loop;
static struct scheduler *scheduler;
static struct scheduler_options options;
static uint64_t clock_ns;
static struct sysops table;

static uint64_t made_up_clock(void)
{
	return clock_ns;
}

static void setup(void)
{
	log_max_level = LOG_LEVEL_ERROR;
	memset(&fake, 0, sizeof(fake));
	bench_make(&bench, NULL, NULL);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	table = *sysops();
	table.now_ns = made_up_clock;
	sysops_replace(&table);
	clock_ns = START;
	options = (struct scheduler_options){.interval_ns = SECOND, .collectors = only_fake};
}

static int closed;

static void on_closed(void *ctx)
{
	ck_assert_ptr_eq(ctx, &bench);
	closed++;
}

static void teardown(void)
{
	if (scheduler) {
		closed = 0;
		scheduler_close(scheduler, on_closed, &bench);
		scheduler_close(scheduler, on_closed, &bench);
		uv_run(&loop, UV_RUN_DEFAULT);
		ck_assert_int_eq(closed, 1);
		scheduler = NULL;
	}
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	sysops_replace(NULL);
	bench_finish(&bench);
}

/* Its devices are those of a tree, which is the caller's to remove. */
static void in_tree(struct tree *tree)
{
	tree_make(tree);
	bench_finish(&bench);
	bench_make(&bench, tree->path, NULL);
}

static void start(void)
{
	ck_assert_int_eq(
		scheduler_open(&loop, &bench.core, &bench.root, &bench.real, &options, &scheduler),
		0);
}

static uint64_t run_at(uint64_t now_ns)
{
	clock_ns = now_ns;
	return scheduler_run(scheduler, now_ns);
}

static struct source *source(void)
{
	return sources_find(bench.core.sources, "fake");
}

TEST_TIMEOUT(30);
FIXTURE(setup, teardown);

START_TEST(the_first_sample_is_at_once_and_the_next_on_the_grid)
{
	clock_ns = START + 300000000;
	start();
	ck_assert_int_eq(fake.samples, 1);
	ck_assert_int_eq(source()->state, SOURCE_OK);
	ck_assert_uint_eq(source()->ticks, 1);
	ck_assert_uint_eq(run_at(START + 700000000), START + SECOND);
	ck_assert_int_eq(fake.samples, 1);
	ck_assert_uint_eq(run_at(START + SECOND), START + 2 * SECOND);
	ck_assert_int_eq(fake.samples, 2);
	ck_assert_uint_eq(fake.sampled_ns, START + SECOND);
	bench_expect(&bench, "fake/value", 2);
}
END_TEST

START_TEST(ticks_do_not_drift_and_missed_ones_are_skipped)
{
	start();
	uint64_t next = START + SECOND;
	for (int i = 0; i < 1000; i++) {
		next = run_at(next + 700000); /* each wake-up late */
		ck_assert_uint_eq(next, START + (uint64_t)(i + 2) * SECOND);
	}
	ck_assert_int_eq(fake.samples, 1001);
	next = run_at(next + 10 * SECOND + 5);
	ck_assert_int_eq(fake.samples, 1002);
	ck_assert_uint_eq(next % SECOND, 0);
}
END_TEST

START_TEST(a_timer_that_fires_early_does_not_sample_twice)
{
	start();
	ck_assert_uint_eq(run_at(START + SECOND - 400000), START + 2 * SECOND);
	ck_assert_int_eq(fake.samples, 2);
	ck_assert_uint_eq(run_at(START + SECOND + 100000), START + 2 * SECOND);
	ck_assert_int_eq(fake.samples, 2);
}
END_TEST

static const struct {
	uint64_t now, due, interval, next;
} dues[] = {
	{1000, 0, 100, 1100},
	{1010, 1000, 100, 1100},
	{1060, 1000, 100, 1200}, /* closer than half an interval */
	{999, 1000, 100, 1100},	 /* early */
	{5000, 1000, 100, 5100},
};

START_LOOP_TEST(due_times_are_multiples_of_the_interval, 0, COUNT(dues))
{
	ck_assert_uint_eq(entry_next(dues[_i].now, dues[_i].due, dues[_i].interval), dues[_i].next);
}
END_TEST

START_TEST(an_absent_source_is_unavailable_and_probed_each_minute)
{
	struct tree tree;
	in_tree(&tree);
	fake.open_result = -ENOENT;
	start();
	ck_assert_int_eq(source()->state, SOURCE_UNAVAILABLE);
	ck_assert_str_eq(source()->reason, "nothing in sys/fake");
	ck_assert_uint_eq(source()->errors, 0);
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 0);
	for (uint64_t t = START + SECOND; t < START + 59 * SECOND; t += SECOND) {
		run_at(t);
	}
	ck_assert_int_eq(fake.opens, 1);
	ck_assert(scheduler_healthy(scheduler, START + 59 * SECOND));
	fake.open_result = 0;
	run_at(START + 120 * SECOND);
	ck_assert_int_eq(fake.opens, 2);
	ck_assert_int_eq(source()->state, SOURCE_OK);
	ck_assert_int_eq(fake.samples, 1);
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 1);
	tree_remove(&tree);
}
END_TEST

/* Minutes of the grid behind START, up to and including the last one. */
static void run_minutes(uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++) {
		run_at(START + (20 + i * 60) * SECOND);
	}
}

START_TEST(while_no_device_comes_what_is_absent_is_looked_for_every_quarter_of_an_hour)
{
	struct tree tree;
	in_tree(&tree);
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1795\n");
	fake.open_result = -ENOENT;
	start();
	run_minutes(1, 14);
	ck_assert_int_eq(fake.opens, 1);
	run_minutes(15, 15);
	ck_assert_int_eq(fake.opens, 2);
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1796\n");
	run_minutes(16, 18);
	ck_assert_int_eq(fake.opens, 3);
	source_request(source(), false, 0); /* somebody wants it to be looked for */
	run_minutes(19, 19);
	source_request(source(), true, 0);
	run_minutes(20, 20);
	ck_assert_int_eq(fake.opens, 4);
	fake.open_result = -EIO;
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1797\n");
	run_minutes(21, 24); /* it is there, but fails */
	ck_assert_int_eq(fake.opens, 8);
	ck_assert_int_eq(source()->state, SOURCE_ERROR);
	tree_remove(&tree);
}
END_TEST

/* covers G0.11 */
START_TEST(a_device_that_comes_later_opens_its_class_again)
{
	static const struct collector_ops of_class = {.name = "fake",
		.state_size = 1,
		.folder = "sys/class/fake",
		.open = fake_open,
		.sample = fake_sample,
		.close = fake_close};
	static const struct collector_ops *const only[] = {&of_class, NULL};
	struct tree tree;
	in_tree(&tree);
	options.collectors = only;
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1795\n");
	tree_write(&tree, "sys/class/fake/zone0/temp", "1\n");
	start();
	tree_write(&tree, "sys/devices/one/temp", "2\n");
	tree_write(&tree, "sys/class/fake/zone1", "../../devices/one"); /* not announced yet */
	run_minutes(1, 3);
	ck_assert_int_eq(fake.opens, 1);
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1796\n");
	run_minutes(4, 6);
	ck_assert_int_eq(fake.opens, 2);
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1797\n"); /* of another class */
	run_minutes(7, 9);
	ck_assert_int_eq(fake.opens, 2);
	ck_assert_int_eq(fake.closes, 1);
	ck_assert_int_eq(fake.samples, 10);
	bench_expect(&bench, "fake/value", 10);
	/* drivers that were loaded again have each other's numbers */
	tree_write(&tree, "sys/devices/other/temp", "3\n");
	tree_write(&tree, "sys/class/fake/zone1", "../../devices/other");
	tree_write(&tree, "sys/kernel/uevent_seqnum", "1798\n");
	run_minutes(10, 12);
	ck_assert_int_eq(fake.opens, 3);
	/* a tree that counts no announcements */
	tree_unlink(&tree, "sys/kernel/uevent_seqnum");
	run_minutes(13, 15);
	ck_assert_int_eq(fake.opens, 3);
	tree_write(&tree, "sys/class/fake/zone2/temp", "2\n");
	run_minutes(16, 18);
	ck_assert_int_eq(fake.opens, 4);
	tree_remove(&tree);
}
END_TEST

START_TEST(an_error_is_told_once_and_no_old_number_survives)
{
	start();
	fake.sample_result = -EIO;
	for (int i = 1; i <= 10; i++) {
		run_at(START + (uint64_t)i * SECOND);
	}
	ck_assert_int_eq(fake.samples, 11);
	ck_assert_int_eq(source()->state, SOURCE_ERROR);
	ck_assert_str_eq(source()->reason, "sys/fake/value: it broke");
	ck_assert_uint_eq(source()->errors, 10);
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 1);
	bench_expect_null(&bench, "fake/value", "source failed");
	fake.sample_result = 0;
	run_at(START + 11 * SECOND);
	ck_assert_int_eq(source()->state, SOURCE_OK);
	ck_assert_str_eq(source()->reason, "");
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 2);
	bench_expect(&bench, "fake/value", 12);
}
END_TEST

START_TEST(what_fails_for_a_minute_is_opened_anew)
{
	start();
	fake.sample_result = -EIO;
	for (int i = 1; i <= 62; i++) {
		run_at(START + (uint64_t)i * SECOND);
	}
	ck_assert_int_eq(fake.closes, 1);
	ck_assert_int_eq(fake.opens, 2);
}
END_TEST

START_TEST(an_open_that_fails_is_an_error_until_it_works)
{
	fake.open_result = -EACCES;
	start();
	ck_assert_int_eq(source()->state, SOURCE_ERROR);
	ck_assert_uint_eq(source()->errors, 1);
	ck_assert_int_eq(fake.closes, 1);
	fake.open_result = 0;
	run_at(START + 120 * SECOND);
	ck_assert_int_eq(source()->state, SOURCE_OK);
	ck_assert_int_eq(fake.closes, 1);
}
END_TEST

/* covers G0.17 */
START_TEST(sources_are_switched_off_and_on_at_run_time)
{
	start();
	source_request(source(), false, 0);
	run_at(START + SECOND);
	ck_assert_int_eq(source()->state, SOURCE_SUSPENDED);
	ck_assert_int_eq(fake.samples, 1);
	ck_assert_int_eq(fake.closes, 1);
	bench_expect_null(&bench, "fake/value", "source is switched off");
	run_at(START + 100 * SECOND);
	ck_assert(scheduler_healthy(scheduler, START + 1000 * SECOND));
	source_request(source(), true, 0);
	run_at(START + 101 * SECOND);
	ck_assert_int_eq(source()->state, SOURCE_OK);
	ck_assert_int_eq(fake.samples, 2);
}
END_TEST

START_TEST(a_source_can_be_off_by_configuration_and_on_by_wish)
{
	const struct source_options off = {.name = "fake", .enabled = false};
	options.sources = &off;
	options.source_count = 1;
	start();
	ck_assert_int_eq(source()->state, SOURCE_SUSPENDED);
	ck_assert_int_eq(fake.opens, 0);
	source_request(source(), true, 0);
	run_at(START + SECOND);
	ck_assert_int_eq(source()->state, SOURCE_OK);
}
END_TEST

START_TEST(a_wished_interval_holds_within_its_bounds)
{
	start();
	source_request(source(), true, 100000000);
	run_at(START + SECOND);
	ck_assert_uint_eq(source()->interval_ns, 100000000);
	ck_assert_uint_eq(run_at(START + SECOND + 100000000), START + SECOND + 200000000);
	source_request(source(), true, 1);
	run_at(START + 2 * SECOND);
	ck_assert_uint_eq(source()->interval_ns, ENTRY_INTERVAL_MIN_NS);
	source_request(source(), true, UINT64_MAX);
	run_at(START + 3 * SECOND);
	ck_assert_uint_eq(source()->interval_ns, ENTRY_INTERVAL_MAX_NS);
}
END_TEST

START_TEST(a_reload_changes_interval_and_keys)
{
	start();
	source_request(source(), true, 5 * SECOND);
	struct source_options changed = {.name = "fake",
		.enabled = true,
		.interval_ns = 2 * SECOND,
		.keys = 1,
		.key = {{"exclude", "x"}}};
	options.sources = &changed;
	options.source_count = 1;
	scheduler_configure(scheduler, &options);
	memset(&changed, 0, sizeof(changed));
	run_at(START + SECOND);
	ck_assert_str_eq(fake.exclude, "x");
	ck_assert_int_eq(fake.opens, 2);
	ck_assert_int_eq(fake.closes, 1);
	ck_assert_uint_eq(source()->interval_ns, 2 * SECOND);
	options.source_count = 0;
	scheduler_configure(scheduler, &options);
	run_at(START + 2 * SECOND);
	ck_assert_str_eq(fake.exclude, "");
	ck_assert_uint_eq(source()->interval_ns, SECOND);
}
END_TEST

START_TEST(a_reload_that_changes_nothing_keeps_the_wish)
{
	start();
	source_request(source(), false, 0);
	scheduler_configure(scheduler, &options);
	run_at(START + SECOND);
	ck_assert_int_eq(source()->state, SOURCE_SUSPENDED);
}
END_TEST

START_TEST(healthy_means_every_source_ticked_within_three_intervals)
{
	start();
	ck_assert(scheduler_healthy(scheduler, START + 3 * SECOND));
	ck_assert(!scheduler_healthy(scheduler, START + 3 * SECOND + 1));
	run_at(START + 4 * SECOND);
	ck_assert(scheduler_healthy(scheduler, START + 4 * SECOND + 1));
}
END_TEST

START_TEST(internal_sources_have_no_full_rate_history)
{
	static const struct collector_ops *const only_quiet[] = {&quiet_ops, NULL};
	options.collectors = only_quiet;
	start();
	ck_assert(!fake.metric->full_rate);
	ck_assert_uint_eq(sources_find(bench.core.sources, "quiet")->interval_ns, 2 * SECOND);
}
END_TEST

START_TEST(every_failed_allocation_at_start_is_enomem)
{
	int r = -1;
	for (size_t n = 1; r != 0; n++) {
		ck_assert_uint_lt(n, 20);
		bench_finish(&bench);
		bench_make(&bench, NULL, NULL);
		alloc_faults_start(n);
		r = scheduler_open(
			&loop, &bench.core, &bench.root, &bench.real, &options, &scheduler);
		alloc_faults_stop();
		ck_assert(r == 0 || r == -ENOMEM);
	}
}
END_TEST

START_TEST(the_real_collectors_allocate_nothing_in_steady_state)
{
	const struct watch self = {.kind = WATCH_SELF, .name = "edgeprofd"};
	const struct watch pattern = {.kind = WATCH_PATTERN, .name = "all", .pattern = "*"};
	ck_assert_int_eq(processes_watch(&bench.processes, &self), 0);
	ck_assert_int_eq(processes_watch(&bench.processes, &pattern), 0);
	options.collectors = NULL;
	start();
	for (uint64_t i = 1; i < 5; i++) {
		run_at(START + i * SECOND);
		scheduler_wait(scheduler, 20 * SECOND);
	}
	alloc_faults_start(0);
	for (uint64_t i = 5; i < 10; i++) {
		clock_ns = START + i * SECOND;
		scheduler_run(scheduler, START + i * SECOND);
		scheduler_wait(scheduler, 20 * SECOND);
	}
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
	for (size_t i = 0; i < sources_count(bench.core.sources); i++) {
		const struct source *s = sources_at(bench.core.sources, i);
		ck_assert_msg(s->state == SOURCE_OK || s->state == SOURCE_UNAVAILABLE, "%s: %s",
			s->name, s->reason);
	}
	bench_expect(&bench, "process/edgeprofd/count", 1);
	ck_assert(bench_value(&bench, "process/edgeprofd/rss") > 0);
	ck_assert(bench_value(&bench, "self/rss") > 0);
	ck_assert(bench_value(&bench, "cpu/load1") >= 0);
	ck_assert(bench_value(&bench, "memory/available") > 0);
	/* not cpu: no tick of the real /proc/stat need go by in this test's seconds */
	ck_assert(bench_value(&bench, "collector/memory/age_s") >= 0);
	ck_assert(!bench_metric(&bench, "collector/memory/age_s")->full_rate);
	ck_assert(!bench_metric(&bench, "self/rss")->full_rate);
}
END_TEST

START_TEST(the_timer_of_the_loop_samples)
{
	sysops_replace(NULL);
	options.interval_ns = ENTRY_INTERVAL_MIN_NS;
	start();
	while (fake.samples < 3) {
		ck_assert_int_ne(uv_run(&loop, UV_RUN_ONCE), 0);
	}
}
END_TEST

START_TEST(a_sample_in_parts_leaves_turns_to_others)
{
	start();
	fake.more = 2;
	run_at(START + SECOND);
	ck_assert_int_eq(fake.samples, 2);
	bench_expect(&bench, "fake/value", 1); /* the one before */
	clock_ns += 1000000;
	while (fake.more > 0 || fake.samples < 4) {
		ck_assert_int_ne(uv_run(&loop, UV_RUN_ONCE), 0);
	}
	bench_expect(&bench, "fake/value", 4);
	ck_assert_uint_eq(fake.sampled_ns, START + SECOND);
	ck_assert_uint_eq(source()->ticks, 2);
	/* What is left of it when the next tick comes is done first. */
	fake.more = 5;
	run_at(START + 2 * SECOND);
	run_at(START + 3 * SECOND);
	ck_assert_int_eq(fake.more, 0);
	ck_assert_uint_eq(fake.sampled_ns, START + 3 * SECOND);
	ck_assert_uint_eq(source()->ticks, 4);
}
END_TEST

/* A source that events feed; what it holds is released by the test. */
static const struct collector_context *held;

static int event_open(const struct collector_context *ctx, void *state)
{
	ck_assert_ptr_eq(ctx->loop, &loop);
	held = ctx;
	collector_hold(ctx);
	return fake_open(ctx, state);
}

static const struct collector_ops event_ops = {.name = "fake",
	.state_size = 1,
	.event_driven = true,
	.open = event_open,
	.sample = fake_sample,
	.close = fake_close};
static const struct collector_ops *const only_event[] = {&event_ops, NULL};

START_TEST(an_event_driven_source_commits_when_its_data_arrives)
{
	options.collectors = only_event;
	fake.sample_result = -EAGAIN;
	start();
	ck_assert_int_eq(source()->state, SOURCE_STALE);
	ck_assert_str_eq(source()->reason, "sys/fake/value: it broke");
	fake.sample_result = 0;
	run_at(START + SECOND);
	ck_assert_uint_eq(source()->ticks, 0);
	ck_assert_uint_eq(fake.metric->t_ns, 0);
	metric_set(fake.metric, 7);
	clock_ns = START + SECOND + 5000;
	collector_arrived(held, START + SECOND + 1000, START + SECOND + 2000);
	ck_assert_int_eq(source()->state, SOURCE_OK);
	ck_assert_uint_eq(fake.metric->t_ns, START + SECOND + 1000);
	ck_assert_uint_eq(source()->duration_us, 3);
	ck_assert_uint_eq(source()->ticks, 1);
	bench_expect(&bench, "fake/value", 7);
	fake.sample_result = -ETIME;
	run_at(START + 3 * SECOND);
	ck_assert_int_eq(source()->state, SOURCE_STALE);
	bench_expect_null(&bench, "fake/value", "source is stale");
	fake.sample_result = -EIO;
	for (uint64_t i = 4; i < 100; i++) {
		run_at(START + i * SECOND);
	}
	ck_assert_int_eq(source()->state, SOURCE_ERROR);
	ck_assert_int_eq(fake.opens, 1); /* it mends itself */
	fake.sample_result = -ENODATA;
	fake.open_result = -ENOENT;
	run_at(START + 100 * SECOND);
	ck_assert_int_eq(source()->state, SOURCE_UNAVAILABLE);
	ck_assert_int_eq(fake.closes, 1);
	collector_arrived(held, START + 101 * SECOND, START + 101 * SECOND);
	ck_assert_int_eq(source()->state, SOURCE_UNAVAILABLE);
	collector_release(held);
}
END_TEST

START_TEST(the_scheduler_is_closed_when_the_last_hold_is_released)
{
	options.collectors = only_event;
	start();
	closed = 0;
	scheduler_close(scheduler, on_closed, &bench);
	scheduler = NULL;
	ck_assert_int_eq(fake.closes, 1);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(closed, 0);
	collector_release(held);
	ck_assert_int_eq(closed, 1);
}
END_TEST

START_TEST(collectors_are_sorted_and_findable)
{
	for (size_t i = 0; collectors[i]; i++) {
		ck_assert_ptr_eq(collector_find(collectors[i]->name), collectors[i]);
		if (i > 0) {
			ck_assert_int_lt(strcmp(collectors[i - 1]->name, collectors[i]->name), 0);
		}
	}
	ck_assert_ptr_null(collector_find("nothing"));
}
END_TEST
