/* SPDX-License-Identifier: Apache-2.0 */
/* So many at once after a rest, then one each interval. */
#include "daemon/util/ratelimit.h"
#include "tests/unit/unit.h"

static const struct ratelimit limit = {.interval_ns = 100, .burst = 5};

static unsigned taken(uint64_t *due_ns, uint64_t now_ns, unsigned tries)
{
	unsigned count = 0;
	for (unsigned i = 0; i < tries; i++) {
		count += ratelimit_take(&limit, due_ns, now_ns);
	}
	return count;
}

START_TEST(a_burst_then_one_each_interval)
{
	uint64_t due_ns = 0;
	ck_assert_uint_eq(taken(&due_ns, 10000, 100), 5);
	ck_assert_uint_eq(taken(&due_ns, 10099, 100), 0);
	ck_assert_uint_eq(taken(&due_ns, 10100, 100), 1);
	ck_assert_uint_eq(taken(&due_ns, 10450, 100), 3);
	ck_assert_uint_eq(taken(&due_ns, 1000000, 100), 5);
}
END_TEST

START_TEST(what_is_refused_does_not_count)
{
	uint64_t due_ns = 0;
	taken(&due_ns, 10000, 1000000);
	ck_assert_uint_eq(taken(&due_ns, 10500, 100), 5);
}
END_TEST

START_TEST(an_earlier_time_gives_nothing_more)
{
	uint64_t due_ns = 0;
	taken(&due_ns, 10000, 100);
	ck_assert_uint_eq(taken(&due_ns, 5000, 100), 0);
	ck_assert_uint_eq(taken(&due_ns, 10100, 100), 1);
}
END_TEST
