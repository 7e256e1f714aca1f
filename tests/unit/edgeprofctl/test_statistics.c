/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the intervals of `compare` are honest: pairs of runs of which the truth is known, with
 * noise as frame times have it. Long form: EDGEPROF_PAIRS=1000 (40 in ./test). */
#include "client/edgeprofctl/compare/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

TEST_TIMEOUT(380);

enum { FRAMES = 300, STAGES = 8 };

static uint64_t state = 88172645463325252U;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * acos(-1) * uniform());
}

/* Of times around 1: white and autocorrelated noise, a rise to a random height with a random time
 * constant, two modes, a warm-up that is slower, some far outliers, a resolution. */
static const struct noise {
	const char *name;
	double cv, phi, rise, dwell, mode, warmup, outliers, step, skew;
	double covered; /* at least this share of intervals of 95 % must hold the truth */
	double found;	/* a slowdown of 10 % at least in this share */
	double wrong;	/* identical pairs may show a regression in this share; 0: 5 % */
} noises[] = {
	{.name = "white, 5 %", .cv = 0.05, .covered = 0.93, .found = 0.99},
	{.name = "white, 10 %", .cv = 0.1, .covered = 0.93, .found = 0.99},
	{.name = "AR(1) 0.3", .cv = 0.1, .phi = 0.3, .covered = 0.93, .found = 0.99},
	{.name = "AR(1) 0.5", .cv = 0.1, .phi = 0.5, .covered = 0.93, .found = 0.97},
	{.name = "AR(1) 0.7", .cv = 0.1, .phi = 0.7, .covered = 0.92, .found = 0.95},
	{.name = "AR(1) 0.9, 5 %", .cv = 0.05, .phi = 0.9, .covered = 0.85, .found = 0.95},
	{.name = "AR(1) 0.9, 10 %", .cv = 0.1, .phi = 0.9, .covered = 0.85, .found = 0.6},
	{.name = "drift to 10 %", .cv = 0.05, .rise = 0.1, .covered = 0.75, .found = 0.95},
	{.name = "drift to 25 %", .cv = 0.05, .rise = 0.25, .covered = 0.75, .found = 0.4},
	{.name = "modes of 5", .cv = 0.03, .mode = 0.3, .dwell = 5, .covered = 0.92, .found = 0.9},
	{.name = "modes of 20",
		.cv = 0.03,
		.mode = 0.3,
		.dwell = 20,
		.covered = 0.84,
		.found = 0.4},
	{.name = "modes of 50",
		.cv = 0.03,
		.mode = 0.3,
		.dwell = 50,
		.covered = 0.75,
		.found = 0.2,
		.wrong = 0.2},
	{.name = "warm-up", .cv = 0.07, .warmup = 2, .covered = 0.92, .found = 0.99},
	{.name = "outliers", .cv = 0.07, .outliers = 0.01, .covered = 0.92, .found = 0.6},
	{.name = "lognormal", .skew = 0.3, .covered = 0.92, .found = 0.85},
	{.name = "steps of 5 %", .cv = 0.07, .step = 0.05, .covered = 0.93, .found = 0.99},
};

static void make(const struct noise *noise, double scale, double values[FRAMES])
{
	double e = normal(), rise = noise->rise * uniform(), tau = FRAMES * (0.1 + uniform());
	double warmup = noise->warmup * (1 + uniform()), length = 3 + 4 * uniform();
	bool mode = uniform() < 0.5;
	for (int i = 0; i < FRAMES; i++) {
		e = noise->phi * e + sqrt(1 - noise->phi * noise->phi) * normal();
		mode = mode != (noise->dwell > 0 && uniform() < 1 / noise->dwell);
		double value = (1 + noise->cv * e) * (1 + rise * (1 - exp(-i / tau)));
		value = noise->skew > 0 ? exp(noise->skew * e) : value;
		value += (mode ? noise->mode : 0) + warmup * exp(-i / length);
		value *= uniform() < noise->outliers ? 3 + 4 * uniform() : 1;
		value = noise->step > 0 ? round(value / noise->step) * noise->step : value;
		values[i] = scale * fmax(value, 0.05);
	}
}

static void estimate(const struct noise *noise, double scale, struct estimate ret[STATISTICS])
{
	double values[FRAMES];
	make(noise, scale, values);
	size_t skipped = warmup_length(values, FRAMES);
	estimate_values(values + skipped, FRAMES - skipped, ret);
}

static int pairs(void)
{
	const char *text = getenv("EDGEPROF_PAIRS");
	return text ? (int)strtol(text, NULL, 10) : 40;
}

/* Three standard errors below what many pairs show. */
static double least(double share)
{
	return share - 3 * sqrt(share * (1 - share) / pairs());
}

/* covers G2.20 */
START_LOOP_TEST(intervals_hold_the_truth_and_a_slowdown_is_found, 0, COUNT(noises))
{
	const struct noise *noise = &noises[_i];
	int covered[STATISTICS] = {0}, found = 0, n = pairs();
	for (int i = 0; i < n; i++) {
		struct estimate a[STATISTICS], b[STATISTICS], slow[STATISTICS];
		estimate(noise, 20, a);
		estimate(noise, 20, b);
		estimate(noise, 22, slow);
		for (int s = 0; s < STATISTICS; s++) {
			struct difference same = difference_of(&a[s], &b[s]);
			covered[s] += same.low <= 0 && same.high >= 0;
		}
		found += difference_of(&a[0], &slow[0]).low > 0;
	}
	printf("%s: covered mean %.3f p50 %.3f p95 %.3f p99 %.3f, found %.3f\n", noise->name,
		(double)covered[0] / n, (double)covered[1] / n, (double)covered[2] / n,
		(double)covered[3] / n, (double)found / n);
	ck_assert_msg(covered[0] >= least(noise->covered) * n, "%s: covered %d of %d", noise->name,
		covered[0], n);
	ck_assert_msg(
		found >= least(noise->found) * n, "%s: found %d of %d", noise->name, found, n);
}
END_TEST

/* As compare decides: any of nine means, adjusted, at least 15 % (and at least 5 %) slower. */
START_LOOP_TEST(identical_runs_are_no_regression, 0, COUNT(noises))
{
	const struct noise *noise = &noises[_i];
	int n = pairs() / 5, wrong = 0, wrong_at_5 = 0;
	for (int i = 0; i < n; i++) {
		bool at_15 = false, at_5 = false;
		for (int stage = 0; stage <= STAGES; stage++) {
			struct estimate a[STATISTICS], b[STATISTICS];
			estimate(noise, 20, a);
			estimate(noise, 20, b);
			struct difference difference = difference_of(&a[0], &b[0]);
			bool shown = difference.p * (STAGES + 1) < REGRESSION_P;
			at_15 = at_15 || (shown && difference.percent >= 15);
			at_5 = at_5 || (shown && difference.percent >= 5);
		}
		wrong += at_15;
		wrong_at_5 += at_5;
	}
	printf("%s: wrong %.3f, at a threshold of 5 %% %.3f\n", noise->name, (double)wrong / n,
		(double)wrong_at_5 / n);
	double share = noise->wrong > 0 ? noise->wrong : 0.05;
	ck_assert_msg(wrong <= (share + 3 * sqrt(share * (1 - share) / n)) * n,
		"%s: wrong %d of %d", noise->name, wrong, n);
}
END_TEST

START_TEST(quantiles_are_those_of_the_tables)
{
	ck_assert_double_eq_tol(student_quantile(0.05, 1), 12.706, 1e-3);
	ck_assert_double_eq_tol(student_quantile(0.05, 9), 2.262, 1e-3);
	ck_assert_double_eq_tol(student_quantile(0.01, 18), 2.878, 1e-3);
	ck_assert_double_eq_tol(student_quantile(0.05, 1000), 1.962, 1e-3);
	ck_assert_double_eq_tol(student_tail(0, 5), 1, 1e-12);
	ck_assert_double_eq_tol(student_tail(2.015, 5), 0.1, 1e-3);
}
END_TEST

START_TEST(estimates_are_those_of_the_values)
{
	struct estimate few[STATISTICS], same[STATISTICS], many[STATISTICS];
	double ramp[100], constant[10];
	for (int i = 0; i < 100; i++) {
		ramp[i] = i + 1;
		constant[i % 10] = 4;
	}
	estimate_values(ramp, 9, few);
	estimate_values(constant, 10, same);
	estimate_values(ramp, 100, many);
	ck_assert_double_eq_tol(few[STATISTIC_MEAN].value, 5, 1e-12);
	ck_assert(isnan(few[STATISTIC_MEAN].variance));
	ck_assert_double_eq(same[STATISTIC_P99].variance, 0);
	ck_assert_double_eq_tol(many[STATISTIC_P50].value, 50.5, 1e-12);
	ck_assert_double_eq_tol(many[STATISTIC_P95].value, 95.05, 1e-12);
	ck_assert_double_eq_tol(many[STATISTIC_P99].value, 99.01, 1e-12);
	ck_assert(isnan(difference_of(&few[0], &same[0]).low));
	ck_assert_double_eq(difference_of(&same[0], &same[0]).p, 1);
	estimate_values(NULL, 0, few);
	ck_assert(isnan(few[STATISTIC_MEAN].value));
}
END_TEST

/* Two runs that differ from each other more than within themselves. */
START_TEST(runs_that_differ_widen_the_interval)
{
	const struct estimate runs[] = {{20, 1e-6, 9}, {24, 1e-6, 9}};
	struct estimate of = estimate_runs(runs, 2);
	ck_assert_double_eq_tol(of.value, 22, 1e-12);
	ck_assert_double_eq_tol(of.variance * 22 * 22, 4, 1e-9);
	ck_assert_double_eq_tol(of.freedom, 1, 1e-12);
	ck_assert_double_eq(estimate_runs(runs, 1).value, 20);
}
END_TEST

START_TEST(a_slower_start_is_skipped_and_a_faster_one_is_not)
{
	double values[200];
	for (int i = 0; i < 200; i++) {
		values[i] = 20 + i % 3 + (i < 20 ? 40 : 0);
	}
	ck_assert_uint_eq(warmup_length(values, 200), 20);
	for (int i = 0; i < 20; i++) {
		values[i] = 5;
	}
	ck_assert_uint_eq(warmup_length(values, 200), 0);
	ck_assert_uint_eq(warmup_length(values, 3), 0);
}
END_TEST
