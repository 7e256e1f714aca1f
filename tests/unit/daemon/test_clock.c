/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the wall clock: two clocks are read, and the process may be held up between. */
#include "daemon/host/clock.h"

#include <stdlib.h>

#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"

#define AHEAD_NS INT64_C(1700000000000000000)
#define HELD_UP_NS 30000000

static uint64_t t_ns;
static unsigned reads;

static uint64_t now_ns(void)
{
	return t_ns;
}

static int64_t wall_ns(void)
{
	const uint64_t took_ns = reads++ == 0 ? HELD_UP_NS : 100;
	const int64_t ret = (int64_t)(t_ns + took_ns) + AHEAD_NS;
	t_ns += 3 * took_ns;
	return ret;
}

FIXTURE(NULL, NULL);

START_TEST(a_hold_up_between_two_clocks_moves_no_time)
{
	static struct sysops table;
	static struct core core;
	struct wallclock wall;
	struct clock_watch watch;
	uv_loop_t loop;
	table = *sysops();
	table.now_ns = now_ns;
	table.wall_ns = wall_ns;
	wallclock_init(&wall);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	sysops_replace(&table);
	clock_watch_open(&loop, &core, &wall, NULL, &watch);
	sysops_replace(NULL);
	ck_assert_int_lt(llabs(wall.entry[0].offset_ns - AHEAD_NS), 1000);
	clock_watch_close(&watch);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST
