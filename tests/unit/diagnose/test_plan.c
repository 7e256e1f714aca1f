/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c: tests what is predicted for another rate, against queues whose answers are known. */
#include "tests/unit/unit.h"

#include <math.h>

#include "daemon/core/diagnose/plan.h"

enum { FRAMES = 1000 };

static float ms[FRAMES * 3];
static uint64_t seed, first_seed = 1;

static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static void fill(size_t frames, size_t stages, double (*value)(size_t frame, size_t stage))
{
	seed = first_seed * 7919;
	for (int i = 0; i < 8; i++) {
		uniform();
	}
	for (size_t i = 0; i < frames * stages; i++) {
		ms[i] = (float)value(i / stages, i % stages);
	}
}

static double constant(size_t frame, size_t stage)
{
	(void)frame;
	return (double[]){10, 20, 5}[stage];
}

static double exponential(size_t frame, size_t stage)
{
	(void)frame, (void)stage;
	return -20 * log(1 - uniform());
}

/* A burst of slow frames, or the same frames one by one. */
static double burst(size_t frame, size_t stage)
{
	(void)stage;
	return frame % 100 < 10 ? 60 : 20;
}

static double spread(size_t frame, size_t stage)
{
	(void)stage;
	return frame % 10 == 0 ? 60 : 20;
}

static double one_missing(size_t frame, size_t stage)
{
	return frame % 2 == 0 && stage == 1 ? (double)NAN : 10;
}

struct plan {
	bool known;
	struct plan_execution sequential, pipelined;
};

static struct plan predict(size_t frames, size_t stages, double fps, double deadline_ms,
	double miss_percent, double (*value)(size_t, size_t))
{
	fill(frames, stages, value);
	const struct plan_input input = {.frames = frames,
		.stages = stages,
		.ms = ms,
		.fps = fps,
		.deadline_ms = deadline_ms,
		.miss_percent = miss_percent};
	struct plan plan;
	plan.known = plan_predict(&input, &plan.sequential, &plan.pipelined);
	return plan;
}

static void assert_near(double value, double expected, double tolerance)
{
	ck_assert_msg(fabs(value - expected) <= tolerance, "%g, not %g", value, expected);
}

START_TEST(fewer_than_30_frames_are_unknown)
{
	struct plan plan = predict(29, 1, 10, NAN, 1, constant);
	ck_assert(!plan.known && isnan(plan.sequential.max_fps));
	plan = predict(30, 1, 10, NAN, 1, constant);
	ck_assert(plan.known);
}
END_TEST

START_TEST(constant_stages_reach_the_sum_or_the_slowest)
{
	const struct plan plan = predict(100, 3, 25, 40, 0, constant);
	assert_near(plan.sequential.max_fps, 1000. / 35, 0.1);
	assert_near(plan.pipelined.max_fps, 1000. / 20, 0.1);
	assert_near(plan.sequential.latency_p50_ms, 35, 1e-6);
	assert_near(plan.pipelined.latency_p99_ms, 35, 1e-6);
	assert_near(plan.sequential.miss, 0, 0);
	ck_assert(plan.sequential.miss_high > 0.01 && plan.sequential.miss_high < 0.05);
}
END_TEST

START_TEST(deadline_below_the_latency_cannot_be_met_at_any_rate)
{
	const struct plan plan = predict(100, 3, 10, 30, 1, constant);
	assert_near(plan.sequential.miss, 1, 0);
	assert_near(plan.sequential.max_fps, 0, 0);
	assert_near(plan.pipelined.max_fps, 0, 0);
}
END_TEST

START_TEST(rate_that_cannot_be_sustained_misses_all)
{
	const struct plan plan = predict(100, 3, 40, NAN, 1, constant);
	assert_near(plan.sequential.miss, 1, 0);
	ck_assert(isnan(plan.sequential.latency_p50_ms));
	assert_near(plan.pipelined.latency_p50_ms, 35, 1e-6);
}
END_TEST

/* D/M/1 at a load of 0.8: the latency is exponential with mean 20 ms / (1 - s), where
 * s = exp(-(1 - s) / 0.8) = 0.6286. The interval is one of few busy periods, hence approximate. */
START_TEST(one_exponential_server_is_dm1)
{
	const double mean = 20 / (1 - 0.6286), missed = exp(-120 / mean);
	double median = 0;
	int covered = 0;
	for (first_seed = 1; first_seed <= 40; first_seed++) {
		const struct plan_execution one =
			predict(FRAMES, 1, 40, 120, 1, exponential).sequential;
		median += one.latency_p50_ms / 40;
		covered += one.miss_low <= missed && missed <= one.miss_high;
	}
	assert_near(median, mean * log(2), 0.1 * mean * log(2));
	ck_assert_int_ge(covered, 30);
}
END_TEST

START_TEST(slow_frames_in_a_row_are_worse_than_the_same_ones_apart)
{
	const struct plan row = predict(FRAMES, 1, 30, 70, 10, burst),
			  apart = predict(FRAMES, 1, 30, 70, 10, spread);
	ck_assert(row.sequential.miss > apart.sequential.miss + 0.1);
	ck_assert(row.sequential.max_fps < apart.sequential.max_fps - 1);
	ck_assert(row.sequential.miss_high - row.sequential.miss_low > 0.05);
}
END_TEST

START_TEST(stage_that_did_not_run_takes_no_time)
{
	const struct plan plan = predict(100, 2, 40, 20, 0, one_missing);
	assert_near(plan.sequential.latency_p99_ms, 20, 1e-6);
	assert_near(plan.sequential.latency_p50_ms, 15, 5.01);
}
END_TEST

START_TEST(without_a_rate_only_the_highest_is_known)
{
	const struct plan plan = predict(100, 3, NAN, NAN, 0, constant);
	assert_near(plan.sequential.max_fps, 1000. / 35, 0.1);
	/* Without a deadline a pipeline must still deliver within the interval. */
	assert_near(plan.pipelined.max_fps, 1000. / 35, 0.1);
	ck_assert(isnan(plan.sequential.miss) && isnan(plan.pipelined.miss));
}
END_TEST

START_TEST(throttling_costs_what_the_medians_differ)
{
	struct facts facts = {.throttled_share = 0.25,
		.throttled_ms = 80,
		.unthrottled_ms = 50,
		.throttled = {.count = 100, .iqr_ms = 4},
		.unthrottled = {.count = 300, .iqr_ms = 3},
		.throttled_joules = 0.5,
		.unthrottled_joules = 0.4};
	struct throttle_tax tax;
	throttle_tax(&facts, &tax);
	assert_near(tax.lost_ms, 30, 1e-9);
	assert_near(tax.unthrottled_fps, 20, 1e-9);
	assert_near(tax.unthrottled_low_fps, 1000 / (50 + 0.3154), 1e-3);
	assert_near(tax.unthrottled_high_fps, 1000 / (50 - 0.3154), 1e-3);
	assert_near(tax.throttled_joules - tax.unthrottled_joules, 0.1, 1e-9);
	ck_assert_ptr_null(tax.reason);
	facts.unthrottled_ms = NAN;
	throttle_tax(&facts, &tax);
	ck_assert(isnan(tax.unthrottled_fps) && isnan(tax.lost_ms) && tax.reason);
	facts.unthrottled_ms = 50;
	facts.unthrottled.count = 0;
	throttle_tax(&facts, &tax);
	ck_assert(isnan(tax.unthrottled_low_fps));
}
END_TEST
