/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage answers: the window, the lifetime, the throttle split, cost per frame. */
#include "daemon/core/stages/stats.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static const uint64_t MS = 1000000;

static double scratch[4096];

static struct stage *make(size_t window)
{
	struct stage *stage;
	ck_assert_int_eq(stage_create("infer", window, &stage), 0);
	return stage;
}

static void event(
	struct stage *stage, uint64_t duration_ns, uint64_t frame, enum throttle_value throttled)
{
	struct stage_run run = stage_run_of(stage->last_ns + duration_ns + 1, duration_ns, frame);
	run.throttled = throttled;
	stage_event(stage, &run);
}

static struct stage_answer ask(const struct stage *stage, struct window_query query)
{
	struct stage_answer answer;
	stage_ask(stage, &query, scratch, &answer);
	return answer;
}

static void near(double value, double want, double error)
{
	ck_assert_msg(fabs(value - want) <= error * fabs(want), "%.10g is not %.10g", value, want);
}

/* covers G4.4 */
START_TEST(nearest_is_another_method)
{
	struct stage *stage = make(1024);
	for (uint64_t i = 100; i >= 1; i--) {
		event(stage, i * MS, i, THROTTLE_NO);
	}
	struct stage_answer linear = ask(stage, (struct window_query){.nearest = false});
	near(linear.summary.p50, 50.5, 1e-9);
	near(linear.summary.p99, 99.01, 1e-9);
	struct stage_answer nearest = ask(stage, (struct window_query){.nearest = true});
	near(nearest.summary.p50, 51, 1e-9);
	near(nearest.summary.p90, 91, 1e-9);
	near(nearest.summary.p95, 96, 1e-9);
	near(nearest.summary.p99, 100, 1e-9);
	near(nearest.summary.std, 28.8660700, 1e-7);
	ck_assert(nearest.exact);
	/* of the lifetime as well, within its 1 % */
	nearest = ask(stage, (struct window_query){.nearest = true, .lifetime = true});
	near(nearest.summary.p50, 51, 0.01);
	near(nearest.summary.p99, 100, 0.01);
	ck_assert(!nearest.exact);
	stage_destroy(stage);
}
END_TEST

START_TEST(the_lifetime_loses_no_event_that_left_the_window)
{
	struct stage *stage = make(16);
	for (uint64_t i = 1; i <= 100; i++) {
		event(stage, i * MS, i, THROTTLE_NO);
	}
	struct stage_answer recent = ask(stage, (struct window_query){.lifetime = false});
	struct stage_answer lifetime = ask(stage, (struct window_query){.lifetime = true});
	ck_assert_uint_eq(recent.summary.count, 16);
	near(recent.summary.min, 85, 1e-9);
	ck_assert(recent.exact);
	ck_assert_uint_eq(lifetime.summary.count, 100);
	ck_assert(!lifetime.exact);
	near(lifetime.summary.p50, 50.5, 0.01);
	near(lifetime.summary.p95, 95.05, 0.01);
	near(lifetime.summary.p99, 99.01, 0.01);
	near(lifetime.summary.mean, 50.5, 1e-12);
	near(lifetime.summary.std, 28.8660700, 1e-7);
	near(lifetime.summary.std_sample, 29.0114920, 1e-7);
	near(lifetime.summary.min, 1, 1e-12);
	near(lifetime.summary.max, 100, 1e-12);
	stage_destroy(stage);
}
END_TEST

START_TEST(the_split_counts_each_event_on_its_side)
{
	for (int lifetime = 0; lifetime < 2; lifetime++) {
		struct stage *stage = make(256);
		for (uint64_t i = 1; i <= 100; i++) {
			event(stage, (i % 4 == 0 ? 40 : 10) * MS, i,
				i % 4 == 0 ? THROTTLE_YES : THROTTLE_NO);
		}
		struct window_query query = {.lifetime = lifetime, .filter = WINDOW_THROTTLED};
		struct stage_answer hot = ask(stage, query);
		query.filter = WINDOW_UNTHROTTLED;
		struct stage_answer cool = ask(stage, query);
		query.filter = WINDOW_ALL;
		struct stage_answer all = ask(stage, query);
		ck_assert_uint_eq(hot.summary.count, 25);
		ck_assert_uint_eq(cool.summary.count, 75);
		ck_assert_uint_eq(all.summary.count, 100);
		ck_assert_uint_eq(all.throttled, 25);
		ck_assert_uint_eq(all.unknown, 0);
		near(hot.summary.mean, 40, 1e-9);
		near(cool.summary.mean, 10, 1e-9);
		near(hot.summary.p99, 40, lifetime ? 0.01 : 1e-9);
		near(cool.summary.p99, 10, lifetime ? 0.01 : 1e-9);
		near(cool.summary.max, 10, lifetime ? 0.01 : 1e-9);
		ck_assert_ptr_null(cool.reason);
		stage_destroy(stage);
	}
}
END_TEST

START_TEST(one_unknown_state_makes_unthrottled_null_with_a_reason)
{
	for (int lifetime = 0; lifetime < 2; lifetime++) {
		struct stage *stage = make(256);
		struct window_query query = {.lifetime = lifetime, .filter = WINDOW_UNTHROTTLED};
		event(stage, MS, 1, THROTTLE_NO);
		ck_assert_uint_eq(ask(stage, query).summary.count, 1);
		event(stage, MS, 2, THROTTLE_UNKNOWN);
		event(stage, MS, 3, THROTTLE_YES);
		struct stage_answer answer = ask(stage, query);
		ck_assert_uint_eq(answer.summary.count, 0);
		ck_assert(isnan(answer.summary.mean));
		ck_assert_uint_eq(answer.unknown, 1);
		ck_assert_str_eq(answer.reason, "the throttle state of some events is not known");
		query.filter = WINDOW_THROTTLED; /* those that are known to be */
		answer = ask(stage, query);
		ck_assert_uint_eq(answer.summary.count, 1);
		ck_assert_ptr_null(answer.reason);
		stage_destroy(stage);
	}
}
END_TEST

START_TEST(nothing_throttled_is_a_count_of_zero_and_nothing_known_a_reason)
{
	for (int lifetime = 0; lifetime < 2; lifetime++) {
		struct stage *stage = make(256);
		struct window_query query = {.lifetime = lifetime, .filter = WINDOW_THROTTLED};
		ck_assert_ptr_null(ask(stage, query).reason);
		event(stage, MS, 1, THROTTLE_UNKNOWN);
		ck_assert_str_eq(ask(stage, query).reason, "the throttle state is not known");
		stage_destroy(stage);
		stage = make(256);
		event(stage, MS, 1, THROTTLE_NO);
		ck_assert_ptr_null(ask(stage, query).reason);
		ck_assert_uint_eq(ask(stage, query).summary.count, 0);
		ck_assert_ptr_null(stage->throttled); /* made at the first throttled event */
		stage_destroy(stage);
	}
}
END_TEST

/* covers G1.1 */
START_TEST(cpu_time_is_the_mean_of_the_runs_that_measured_it)
{
	struct stage *stage = make(8);
	for (uint64_t i = 1; i <= 4; i++) {
		struct stage_run run = stage_run_of(i * 100 * MS, 10 * MS, i);
		if (i > 2) {
			run.cpu_us = 8000;
			run.process_cpu_ns = 25 * MS;
		}
		stage_event(stage, &run);
	}
	struct stage_answer answer = ask(stage, (struct window_query){.lifetime = false});
	near(answer.wall_ms, 10, 1e-9);
	near(answer.cpu_ms, 8, 1e-9);
	near(answer.process_cpu_ms, 25, 1e-9);
	near(answer.cpu_ratio, 2.5, 1e-9);
	stage_destroy(stage);
	stage = make(8);
	event(stage, MS, 1, THROTTLE_NO);
	answer = ask(stage, (struct window_query){.lifetime = false});
	ck_assert(isnan(answer.cpu_ms) && isnan(answer.process_cpu_ms) && isnan(answer.cpu_ratio));
	stage_destroy(stage);
}
END_TEST

static void same(const struct proto_summary *summary, const struct proto_summary *want)
{
	const double numbers[][2] = {{summary->mean, want->mean}, {summary->min, want->min},
		{summary->max, want->max}, {summary->p50, want->p50}, {summary->p90, want->p90},
		{summary->p95, want->p95}, {summary->p99, want->p99}};
	ck_assert_uint_eq(summary->count, want->count);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		near(numbers[i][0], numbers[i][1], 1e-14);
	}
	/* of equal values the mean in ms may be off in its last digit, and so is the distance */
	ck_assert(fabs(summary->std - want->std) <= 1e-12 * want->std + 1e-15 * want->mean);
	ck_assert(isnan(want->std_sample) ? isnan(summary->std_sample)
					  : fabs(summary->std_sample - want->std_sample) <=
						    1e-12 * want->std_sample + 1e-15 * want->mean);
}

/* Whatever the values are: outliers, equal ones, an order that is bad for a sort. */
START_TEST(the_window_in_numbers_is_that_of_its_sorted_values)
{
	static const size_t sizes[] = {1, 2, 3, 4, 25, 100, 1023, 1024, 1500};
	uint64_t seed = 1;
	for (int kind = 0; kind < 6; kind++) {
		for (size_t c = 0; c < sizeof(sizes) / sizeof(sizes[0]); c++) {
			struct stage *stage = make(1024);
			static double sorted[1024];
			for (size_t i = 0; i < sizes[c]; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				uint64_t random = seed >> 40;
				const uint64_t values[] = {random, 5 * MS, 5 * MS + random % 3,
					i == 7 ? UINT64_C(1) << 46 : random,
					UINT64_C(1) << random % 46, random % 2 ? i : 9 * MS - i};
				event(stage, values[kind], i, THROTTLE_NO);
				sorted[i % 1024] = (double)values[kind] / 1e6;
			}
			struct proto_summary summary, want;
			proto_summarize(sorted, stage->filled, &want);
			stage_summary(stage, scratch, &summary);
			same(&summary, &want);
			stage_refresh(stage, scratch);
			same(&stage->recent.summary, &want);
			stage_destroy(stage);
		}
	}
	struct stage *stage = make(8);
	stage_refresh(stage, scratch);
	ck_assert(isnan(stage->recent.summary.mean) && isnan(stage->recent.summary.p99));
	stage_destroy(stage);
}
END_TEST

/* What is kept is never of another window. */
START_TEST(an_answer_is_of_all_events_until_now)
{
	const struct window_query usual = {.filter = WINDOW_ALL};
	struct stage *stage = make(4);
	stage_refresh(stage, scratch);
	for (uint64_t i = 1; i <= 20; i++) {
		event(stage, i * MS, i, i % 3 == 0 ? THROTTLE_YES : THROTTLE_UNKNOWN);
		const uint64_t first = i > 4 ? i - 3 : 1;
		if (i % 4 != 0) { /* with and without an answer that is kept */
			stage_refresh(stage, scratch);
			near(stage->recent.summary.max, (double)i, 1e-12);
		}
		struct stage_answer answer = ask(stage, usual);
		ck_assert_uint_eq(answer.summary.count, i - first + 1);
		near(answer.summary.min, (double)first, 1e-12);
		near(answer.summary.p50, (double)(first + i) / 2, 1e-12);
		ck_assert_uint_eq(answer.throttled, i / 3 - (first - 1) / 3);
		ck_assert_uint_eq(answer.unknown + answer.throttled, answer.summary.count);
		/* other questions have their own answers */
		answer = ask(stage, (struct window_query){.filter = WINDOW_THROTTLED});
		ck_assert_uint_eq(answer.summary.count, i / 3 - (first - 1) / 3);
		answer = ask(stage, (struct window_query){.nearest = true});
		near(answer.summary.p50, (double)(first + (i - first + 1) / 2), 1e-12);
		ck_assert(!ask(stage, (struct window_query){.lifetime = true}).exact);
	}
	struct stage_run run = stage_run_of(stage->last_ns + 1, MS, 1);
	run.cpu_us = 250;
	stage_event(stage, &run);
	stage_refresh(stage, scratch);
	near(ask(stage, usual).cpu_ms, 0.25, 1e-12);
	stage_destroy(stage);
}
END_TEST
