/* SPDX-License-Identifier: Apache-2.0 */
/* The coarse tiers of history: what buckets hold, what answers which question, restarts in the
 * middle of a bucket, and a week of a board within the budget. */
#include "daemon/core/history/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/history/private.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define DAY (86400 * SECOND)

enum { METRICS = 256, POINTS = 20000 };

static uint64_t *pool;
static size_t pool_size;
static const uint8_t boot[16] = "this boot";
static struct sources *sources;
static struct metrics *metrics;
static struct source *source;
static struct history *history;
static struct metric *metric[METRICS];
static double value[METRICS];
static struct history_point points[POINTS];
static uint64_t seed;

static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void open_history(void)
{
	history_destroy(history);
	history = NULL;
	ck_assert_int_eq(history_create(pool, pool_size, boot, &history, NULL), 0);
}

static void open_metrics(int count)
{
	metrics_destroy(metrics);
	sources_destroy(sources);
	metrics = NULL;
	sources = NULL;
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "board", SECOND, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	for (int i = 0; i < count; i++) {
		char name[32];
		enum unit unit = i % 4 == 0 ? UNIT_CELSIUS : i % 4 == 3 ? UNIT_BYTES : UNIT_PERCENT;
		snprintf(name, sizeof(name), "board/m%d", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, unit, &metric[i]), 0);
	}
}

static void start(size_t size, int count)
{
	seed = 88172645463325252u;
	pool_size = size;
	pool = calloc(1, size);
	ck_assert_ptr_nonnull(pool);
	open_metrics(count);
	open_history();
	for (int i = 0; i < count; i++) {
		value[i] = i % 4 == 3 ? 4e9 : 50;
	}
}

static void teardown(void)
{
	history_destroy(history);
	metrics_destroy(metrics);
	sources_destroy(sources);
	free(pool);
	history = NULL;
	metrics = NULL;
	sources = NULL;
	pool = NULL;
}

static void commit(uint64_t t_ns)
{
	metrics_commit(metrics, source, t_ns);
	history_append(history, metrics, source, t_ns);
}

/* As a board has them: half-degree sensors that drift, bytes and percent around where they belong.
 */
static void walk(int count, uint64_t t_ns)
{
	for (int i = 0; i < count; i++) {
		double step = (double)(random_u64() % 2001) / 1000 - 1;
		value[i] += i % 4 == 0	 ? 0.5 * round(step)
			    : i % 4 == 3 ? 400e3 * step + (4e9 - value[i]) / 50
					 : 3 * step + (50 - value[i]) / 10;
		metric_set(metric[i], value[i]);
	}
	commit(t_ns);
}

static size_t read_range(int index, uint64_t from_ns, uint64_t to_ns, uint64_t step_ns)
{
	char name[32];
	bool done = false;
	struct history_cursor cursor = {.from_ns = from_ns, .to_ns = to_ns, .step_ns = step_ns};
	snprintf(name, sizeof(name), "board/m%d", index);
	ck_assert_int_eq(history_find(history, name, &cursor.series), 0);
	size_t count = history_read(history, &cursor, points, POINTS, 0, &done);
	ck_assert(done);
	return count;
}

/* Every whole minute of n seconds at 1 Hz, value = second. */
static void check_minutes(uint64_t seconds)
{
	size_t count = read_range(1, 0, UINT64_MAX, MINUTE);
	ck_assert_uint_eq(count, seconds / 60 + 1);
	for (size_t k = 0; k < count; k++) {
		double first = k == 0 ? 1 : (double)k * 60;
		double last = k + 1 == count ? (double)seconds : (double)k * 60 + 59;
		ck_assert_uint_eq(points[k].t_ns, k * MINUTE);
		ck_assert_uint_eq(points[k].count, (uint32_t)(last - first) + 1);
		ck_assert(points[k].min == first && points[k].max == last);
		ck_assert_double_eq_tol(points[k].mean, (first + last) / 2, 0.01);
	}
}

TEST_TIMEOUT(120);
FIXTURE(NULL, teardown);

START_TEST(a_step_is_answered_from_the_tier_that_fits_it)
{
	start(1024 * 1024, 2);
	for (uint64_t i = 1; i <= 7000; i++) {
		metric_set(metric[1], (double)i);
		commit(i * SECOND);
	}
	check_minutes(7000);
	/* not a whole number of buckets: from the samples */
	size_t count = read_range(1, 0, UINT64_MAX, 7 * SECOND);
	ck_assert_uint_eq(count, 1001);
	ck_assert_uint_eq(points[500].count, 7);
	ck_assert(points[500].min == 3500 && points[500].max == 3506);
	/* 10 s buckets merge to 20 s */
	count = read_range(1, 1000 * SECOND, 1099 * SECOND, 20 * SECOND);
	ck_assert_uint_eq(count, 5);
	ck_assert(points[0].min == 1000 && points[0].max == 1019 && points[0].count == 20);
}
END_TEST

/* Throttled for 2 s of each minute, 9 misses in one of it: neither none nor all. */
START_TEST(a_bucket_knows_the_share_of_what_happens_now_and_then)
{
	static const enum unit units[] = {UNIT_BOOL, UNIT_STATE, UNIT_COUNT};
	struct metric *now_and_then[COUNT(units)];
	start(1024 * 1024, 0);
	for (size_t i = 0; i < COUNT(units); i++) {
		char name[32];
		snprintf(name, sizeof(name), "board/m%zu", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, units[i], &now_and_then[i]), 0);
	}
	for (uint64_t second = 0; second <= 7200; second++) {
		metric_set(now_and_then[0], second % 60 < 2);
		metric_set(now_and_then[1], second % 60 < 2 ? 3 : 0);
		metric_set(now_and_then[2], second % 60 == 7 ? 9 : 0);
		commit(second * SECOND);
	}
	const double mean[COUNT(units)] = {2 / 60.0, 6 / 60.0, 9 / 60.0}, most[] = {1, 3, 9};
	for (size_t i = 0; i < COUNT(units); i++) {
		ck_assert_uint_eq(read_range((int)i, 0, UINT64_MAX, MINUTE), 121);
		ck_assert_double_eq_tol(points[60].mean, mean[i], 0.0051);
		ck_assert(points[60].min == 0 && points[60].max == most[i]);
		(void)read_range((int)i, 0, UINT64_MAX, 10 * SECOND);
		ck_assert_double_eq_tol(points[60].mean, 6 * mean[i], 0.0051);
		ck_assert(points[61].mean == 0 && points[60].max == most[i]);
	}
}
END_TEST

START_TEST(a_restart_in_a_bucket_loses_nothing)
{
	start(1024 * 1024, 2);
	for (uint64_t i = 1; i <= 3000; i++) {
		if (i % 37 == 0) { /* killed: nothing is told to anybody */
			open_metrics(2);
			open_history();
		}
		metric_set(metric[1], (double)i);
		commit(i * SECOND);
	}
	check_minutes(3000);
	size_t count = read_range(1, 0, UINT64_MAX, 10 * SECOND);
	ck_assert_uint_eq(count, 301);
	for (size_t k = 1; k < 300; k++) {
		ck_assert_uint_eq(points[k].count, 10);
	}
}
END_TEST

START_TEST(buckets_that_ended_while_nobody_ran_are_made_at_the_next_start)
{
	start(1024 * 1024, 2);
	for (uint64_t i = 1; i <= 127; i++) {
		metric_set(metric[1], (double)i);
		commit(i * SECOND);
	}
	open_metrics(2);
	open_history();
	for (uint64_t i = 1000; i <= 1100; i++) {
		metric_set(metric[1], (double)i);
		commit(i * SECOND);
	}
	ck_assert_uint_eq(read_range(1, 0, UINT64_MAX, MINUTE), 6);
	ck_assert_uint_eq(points[2].t_ns, 2 * MINUTE);
	ck_assert_uint_eq(points[2].count, 8);
	ck_assert(points[2].min == 120 && points[2].max == 127);
	ck_assert_uint_eq(points[3].t_ns, 16 * MINUTE); /* a gap stays one */
	ck_assert_uint_eq(points[3].count, 20);
}
END_TEST

START_TEST(a_bucket_without_a_value_is_a_gap)
{
	start(1024 * 1024, 3);
	for (uint64_t i = 0; i < 600; i++) {
		metric_set(metric[1], 1);
		if (i < 125 || i >= 300) {
			metric_set(metric[2], (double)i);
		}
		commit((i + 60) * SECOND);
	}
	commit(10000 * SECOND);
	ck_assert_uint_eq(read_range(2, 0, UINT64_MAX, MINUTE), 8);
	ck_assert_uint_eq(points[2].count, 5);
	ck_assert_uint_eq(points[3].t_ns, 6 * MINUTE);
}
END_TEST

START_TEST(a_late_metric_takes_what_is_written_to_wider_blocks)
{
	start(1024 * 1024, 1);
	struct history_usage usage;
	for (int i = 1; i < 40; i++) {
		char name[32];
		snprintf(name, sizeof(name), "board/m%d", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_PERCENT, &metric[i]), 0);
		walk(i + 1, (uint64_t)i * 3 * SECOND);
	}
	history_usage(history, &usage);
	/* 3 blocks of columns in each tier with buckets, one of samples, one of names */
	ck_assert_uint_le(usage.used, 9 * HISTORY_BLOCK);
	ck_assert_uint_eq(read_range(0, 0, UINT64_MAX, 0), 39);
	ck_assert_uint_eq(read_range(20, 0, UINT64_MAX, 0), 20);
	open_history();
	ck_assert_uint_eq(read_range(20, 0, UINT64_MAX, 0), 20);
}
END_TEST

/* Killed 400 times in two hours, in the middle of buckets and between them. */
START_TEST(minutes_are_whole_however_often_it_is_killed)
{
	start(1024 * 1024, 2);
	for (uint64_t i = 1; i <= 7200; i++) {
		metric_set(metric[1], (double)i);
		commit(i * SECOND);
		if (random_u64() % 18 == 0) {
			open_metrics(2);
			open_history();
		}
	}
	check_minutes(7200);
}
END_TEST

/* A metric that comes back a while after the others, in the middle of buckets. */
START_TEST(a_metric_that_is_late_after_each_kill_loses_nothing)
{
	start(16 * 1024 * 1024, 2);
	for (uint64_t i = 1; i <= 7200; i++) {
		if (random_u64() % 18 == 0) {
			open_metrics(1);
			open_history();
			metric_set(metric[0], 1);
			commit(i * SECOND - SECOND / 2);
			commit(i * SECOND - SECOND / 4);
			commit(i * SECOND - 1);
			ck_assert_int_eq(
				metrics_add(metrics, source, "board/m1", UNIT_PERCENT, &metric[1]),
				0);
		}
		metric_set(metric[1], (double)i);
		commit(i * SECOND);
	}
	check_minutes(7200);
}
END_TEST

static void on_row(void *ctx, const struct history_bucket_row *row)
{
	uint64_t *next_ns = &((uint64_t *)ctx)[row->series % METRICS];
	if (row->tier == HISTORY_TENS) {
		ck_assert_uint_ge(row->t_ns, *next_ns);
		*next_ns = row->t_ns + 10 * SECOND;
	}
}

/* A metric that comes back a life later than the others has unwritten buckets from before theirs.
 */
START_TEST(what_one_metric_has_not_written_does_not_write_the_others_again)
{
	uint64_t next_ns[METRICS] = {0};
	start(1024 * 1024, 2);
	for (uint64_t i = 1; i <= 300; i++) {
		const bool second = i < 28 || i >= 128;
		if (i == 28 || i == 128) {
			open_metrics(second ? 2 : 1);
			open_history();
		}
		history_observe(history, on_row, next_ns);
		metric_set(metric[0], (double)i);
		if (second) {
			metric_set(metric[1], (double)i);
		}
		commit(i * SECOND);
	}
	ck_assert_uint_eq(read_range(0, 0, UINT64_MAX, 10 * SECOND), 31);
	for (size_t k = 1; k < 30; k++) {
		ck_assert_uint_eq(points[k].count, 10);
	}
	ck_assert_uint_eq(read_range(1, 0, UINT64_MAX, 10 * SECOND), 22);
	ck_assert_uint_eq(points[2].t_ns, 20 * SECOND);
	ck_assert_uint_eq(points[2].count, 8);
	ck_assert_uint_eq(points[3].t_ns, 120 * SECOND);
	ck_assert_uint_eq(points[3].count, 2);
}
END_TEST

/* What [history] memory = 16M promises for 128 metrics that vary, and 32M for 256. A week at one
 * sample in 6 s. covers G2.12: 3600 samples at full rate. The second one in the long form only. */
START_LOOP_TEST(a_week_of_a_board_is_kept_in_the_budget, 0, 2)
{
	if (_i >= campaign(1, 2)) {
		return;
	}
	const int count_of_metrics = 128 << _i;
	start((size_t)16 * 1024 * 1024 << _i, count_of_metrics);
	const uint64_t step_ns = 6 * SECOND;
	uint64_t now_ns = 0;
	while (now_ns < 7 * DAY + 3600 * SECOND) {
		now_ns += step_ns;
		walk(count_of_metrics, now_ns + random_u64() % 100000);
	}
	struct history_usage usage;
	history_usage(history, &usage);
	ck_assert_uint_le(usage.used, usage.size);
	ck_assert_double_le(usage.tier[HISTORY_FULL].bytes_per_sample, 2);
	ck_assert_double_le(usage.tier[HISTORY_TENS].bytes_per_sample, 6);
	ck_assert_double_le(usage.tier[HISTORY_MINUTES].bytes_per_sample, 6);
	for (int i = 0; i < count_of_metrics; i += 31) {
		size_t count = read_range(i, now_ns - 3599 * step_ns, now_ns + SECOND, 0);
		ck_assert_uint_ge(count, 3599);
		ck_assert_uint_eq(points[0].count, 1);
		ck_assert_uint_ge(read_range(i, now_ns - DAY, now_ns, 10 * SECOND), 8639);
		ck_assert_uint_ge(read_range(i, now_ns - 7 * DAY, now_ns, MINUTE), 10079);
	}
}
END_TEST

START_TEST(beyond_the_budget_every_tier_shrinks_alike)
{
	start(2 * 1024 * 1024, 128);
	uint64_t now_ns = 0;
	while (now_ns < 3 * DAY) {
		now_ns += 6 * SECOND;
		walk(128, now_ns);
	}
	struct history_usage usage;
	history_usage(history, &usage);
	ck_assert_uint_le(usage.used, usage.size);
	static const double target_s[HISTORY_TIERS] = {3600 * 6, 86400, 7 * 86400};
	double reached[HISTORY_TIERS];
	for (int tier = 0; tier < HISTORY_TIERS; tier++) {
		reached[tier] =
			(double)(now_ns - usage.tier[tier].oldest_ns) / 1e9 / target_s[tier];
		ck_assert_double_gt(reached[tier], 0.05);
		ck_assert_double_lt(reached[tier], 0.5);
	}
	for (int tier = 1; tier < HISTORY_TIERS; tier++) {
		ck_assert_double_lt(reached[tier] / reached[0], 2);
		ck_assert_double_gt(reached[tier] / reached[0], 0.5);
	}
}
END_TEST
