/* SPDX-License-Identifier: Apache-2.0 */
/* The adaptive rate, with literals: limits, bands, hold times, bounds. */
#include "daemon/collect/sched/adaptive.h"

#include <math.h>

#include "tests/unit/unit.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct adaptive adaptive;
static struct adaptive_options options;

static void setup(void)
{
	adaptive = (struct adaptive){.level = ADAPTIVE_NORMAL};
	adaptive_defaults(&options);
	options.enabled = true;
}

/* The same numbers from second `from` to second `to`. */
static void hold(int from, int to, double cpu, double celsius)
{
	for (int t = from; t <= to; t++) {
		adaptive_observe(&adaptive, &options, cpu, celsius, (uint64_t)t * SECOND);
	}
}

static const struct {
	double cpu, celsius;
	enum adaptive_level level;
} levels[] = {
	{81, 40, ADAPTIVE_BUSY},
	{80, 75, ADAPTIVE_NORMAL},
	{10, 76, ADAPTIVE_BUSY},
	{19, 49, ADAPTIVE_CALM},
	{20, 49, ADAPTIVE_NORMAL},
	{19, 50, ADAPTIVE_NORMAL},
	{50, 60, ADAPTIVE_NORMAL},
	{19, NAN, ADAPTIVE_CALM},
	{81, NAN, ADAPTIVE_BUSY},
	{NAN, 90, ADAPTIVE_NORMAL},
	{NAN, NAN, ADAPTIVE_NORMAL},
};

FIXTURE(setup, NULL);

/* covers G2.14 */
START_LOOP_TEST(the_level_follows_cpu_and_temperature, 0, COUNT(levels))
{
	hold(0, 60, levels[_i].cpu, levels[_i].celsius);
	ck_assert_int_eq(adaptive.level, levels[_i].level);
}
END_TEST

START_TEST(a_peak_that_is_short_changes_nothing)
{
	hold(0, 1, 95, 40);
	hold(2, 2, 50, 40);
	hold(3, 4, 95, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_NORMAL);
	hold(5, 5, 95, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_BUSY);
}
END_TEST

START_TEST(slower_takes_longer_than_faster)
{
	hold(0, 2, 95, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_BUSY);
	hold(3, 32, 50, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_BUSY);
	hold(33, 33, 50, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_NORMAL);
}
END_TEST

START_TEST(a_limit_is_left_only_beyond_its_band)
{
	hold(0, 2, 95, 40);
	hold(3, 100, 71, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_BUSY);
	hold(101, 200, 50, 71);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_BUSY);
	hold(201, 300, 10, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_CALM);
	hold(301, 400, 29, 54);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_CALM);
	hold(401, 403, 31, 40);
	ck_assert_int_eq(adaptive.level, ADAPTIVE_NORMAL);
}
END_TEST

START_TEST(a_change_is_told_once)
{
	ck_assert(!adaptive_observe(&adaptive, &options, 95, 40, 0));
	ck_assert(adaptive_observe(&adaptive, &options, 95, 40, 2 * SECOND));
	ck_assert(!adaptive_observe(&adaptive, &options, 95, 40, 3 * SECOND));
	options.enabled = false;
	ck_assert(adaptive_observe(&adaptive, &options, 95, 40, 4 * SECOND));
	ck_assert_int_eq(adaptive.level, ADAPTIVE_NORMAL);
	ck_assert(!adaptive_observe(&adaptive, &options, 95, 40, 9 * SECOND));
}
END_TEST

static const struct {
	enum adaptive_level level;
	uint64_t base, interval;
} intervals[] = {
	{ADAPTIVE_NORMAL, 1000 * MS, 1000 * MS}, {ADAPTIVE_BUSY, 1000 * MS, 500 * MS},
	{ADAPTIVE_CALM, 1000 * MS, 2000 * MS}, {ADAPTIVE_BUSY, 150 * MS, 100 * MS},
	{ADAPTIVE_BUSY, 50 * MS, 50 * MS}, /* a bound never slows a busy one */
	{ADAPTIVE_CALM, 8000 * MS, 10000 * MS},
	{ADAPTIVE_CALM, 60000 * MS, 60000 * MS}, /* … nor hastens a calm one */
};

START_LOOP_TEST(the_interval_stays_within_its_bounds, 0, COUNT(intervals))
{
	adaptive.level = intervals[_i].level;
	ck_assert_uint_eq(
		adaptive_interval(&adaptive, &options, intervals[_i].base), intervals[_i].interval);
}
END_TEST
