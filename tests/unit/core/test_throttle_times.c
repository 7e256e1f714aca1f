/* SPDX-License-Identifier: Apache-2.0 */
/* When the hardware throttled, as events ask it. */
#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "daemon/core/timeline/timeline.h"
#include "tests/unit/unit.h"

static const uint64_t S = 1000000000;

static struct throttle_times times;

static void setup(void)
{
	memset(&times, 0, sizeof(times));
}

static enum throttle_value at(uint64_t t_ns)
{
	return throttle_times_at(&times, t_ns);
}

FIXTURE(setup, NULL);

START_TEST(nothing_is_known_before_the_first_sample)
{
	ck_assert_int_eq(at(0), THROTTLE_UNKNOWN);
	ck_assert_int_eq(at(UINT64_MAX), THROTTLE_UNKNOWN);
	throttle_times_sample(&times, 10 * S, THROTTLE_NO);
	ck_assert_int_eq(at(10 * S - 1), THROTTLE_UNKNOWN);
	ck_assert_int_eq(at(10 * S), THROTTLE_NO);
}
END_TEST

START_TEST(a_state_holds_from_the_sample_that_saw_it)
{
	throttle_times_sample(&times, 10 * S, THROTTLE_NO);
	throttle_times_sample(&times, 11 * S, THROTTLE_YES);
	throttle_times_sample(&times, 12 * S, THROTTLE_YES);
	throttle_times_sample(&times, 13 * S, THROTTLE_NO);
	ck_assert_int_eq(at(11 * S - 1), THROTTLE_NO);
	ck_assert_int_eq(at(11 * S), THROTTLE_YES);
	ck_assert_int_eq(at(13 * S - 1), THROTTLE_YES);
	ck_assert_int_eq(at(13 * S), THROTTLE_NO);
	ck_assert_uint_eq(times.count, 3); /* edges, not samples */
}
END_TEST

/* Its ends and what is right outside of them. */
static void newest_span_is(uint64_t from_ns, uint64_t until_ns, enum throttle_value value)
{
	struct throttle_span span = throttle_times_newest(&times);
	ck_assert_uint_eq(span.from_ns, from_ns);
	ck_assert_uint_eq(span.until_ns, until_ns);
	ck_assert_int_eq(span.value, value);
	ck_assert_int_eq(at(from_ns), value);
	ck_assert_int_eq(at(until_ns), value);
	ck_assert(until_ns == UINT64_MAX || at(until_ns + 1) != value);
}

START_TEST(the_newest_span_ends_only_where_something_was_known)
{
	newest_span_is(0, UINT64_MAX, THROTTLE_UNKNOWN); /* a machine that reports nothing */
	throttle_times_sample(&times, 10 * S, THROTTLE_NO);
	newest_span_is(10 * S, 15 * S, THROTTLE_NO);
	throttle_times_sample(&times, 11 * S, THROTTLE_UNKNOWN);
	newest_span_is(11 * S, UINT64_MAX, THROTTLE_UNKNOWN);
}
END_TEST

START_TEST(long_after_the_last_sample_nothing_is_known)
{
	throttle_times_sample(&times, 10 * S, THROTTLE_YES);
	ck_assert_int_eq(at(15 * S), THROTTLE_YES);
	ck_assert_int_eq(at(15 * S + 1), THROTTLE_UNKNOWN);
	throttle_times_sample(&times, 14 * S, THROTTLE_YES); /* a slow source: every 4 s */
	ck_assert_int_eq(at(26 * S), THROTTLE_YES);
	ck_assert_int_eq(at(26 * S + 1), THROTTLE_UNKNOWN);
}
END_TEST

START_TEST(a_gap_in_the_samples_stays_unknown_afterwards)
{
	throttle_times_sample(&times, 10 * S, THROTTLE_YES);
	throttle_times_sample(&times, 11 * S, THROTTLE_YES);
	throttle_times_sample(&times, 60 * S, THROTTLE_YES);
	ck_assert_int_eq(at(16 * S - 1), THROTTLE_YES);
	ck_assert_int_eq(at(16 * S), THROTTLE_UNKNOWN);
	ck_assert_int_eq(at(60 * S - 1), THROTTLE_UNKNOWN);
	ck_assert_int_eq(at(60 * S), THROTTLE_YES);
}
END_TEST

START_TEST(the_oldest_edges_go_and_their_times_are_unknown)
{
	for (uint64_t i = 0; i < 100; i++) {
		throttle_times_sample(&times, (i + 1) * S, i % 2 ? THROTTLE_YES : THROTTLE_NO);
	}
	ck_assert_uint_eq(times.count, THROTTLE_TIMES_EDGES);
	ck_assert_int_eq(at(36 * S), THROTTLE_UNKNOWN);
	ck_assert_int_eq(at(37 * S), THROTTLE_NO);
	ck_assert_int_eq(at(38 * S), THROTTLE_YES);
	ck_assert_int_eq(at(100 * S), THROTTLE_YES);
}
END_TEST

START_TEST(a_sample_of_the_past_changes_nothing)
{
	throttle_times_sample(&times, 10 * S, THROTTLE_NO);
	throttle_times_sample(&times, 10 * S, THROTTLE_YES);
	throttle_times_sample(&times, 9 * S, THROTTLE_YES);
	ck_assert_int_eq(at(10 * S), THROTTLE_NO);
}
END_TEST

START_TEST(the_throttle_source_writes_them)
{
	static struct throttle_status status;
	static struct throttle_edges edges;
	struct timeline *timeline;
	ck_assert_int_eq(timeline_create(16, &timeline), 0);
	throttle_clear(&status, "test");
	throttle_edges_update(&edges, &status, timeline, 1 * S);
	throttle_set(&status, THROTTLE_ACTIVE, true);
	throttle_edges_update(&edges, &status, timeline, 2 * S);
	throttle_clear(&status, "test"); /* as before each sample */
	throttle_set(&status, THROTTLE_ACTIVE, false);
	throttle_edges_update(&edges, &status, timeline, 3 * S);
	ck_assert_int_eq(throttle_times_at(&status.times, S), THROTTLE_UNKNOWN);
	ck_assert_int_eq(throttle_times_at(&status.times, 2 * S), THROTTLE_YES);
	ck_assert_int_eq(throttle_times_at(&status.times, 3 * S), THROTTLE_NO);
	timeline_destroy(timeline);
}
END_TEST
