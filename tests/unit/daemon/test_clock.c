/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the wall clock: two clocks are read, and the process may be held up between. */
#include "daemon/host/clock.h"

#include <stdlib.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/timeline/timeline.h"
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

static int64_t ahead_ns;
static uint64_t slept_ns;

static int64_t quick_wall_ns(void)
{
	return (int64_t)t_ns + ahead_ns;
}

static uint64_t suspended_ns(void)
{
	return slept_ns;
}

static void ck_assert_texts(const struct timeline *timeline, const char *a, const char *b)
{
	const char *text[] = {a, b};
	const struct timeline_entry *entry = timeline_from(timeline, 0);
	for (size_t i = 0; i < 2 && text[i]; i++) {
		ck_assert_ptr_nonnull(entry);
		ck_assert_str_eq(entry->text, text[i]);
		entry = timeline_from(timeline, entry->serial + 1);
	}
	ck_assert_ptr_null(entry);
}

START_TEST(a_suspend_is_no_step_of_the_wall_clock)
{
	static const struct {
		int64_t ahead_s, slept_s;
		const char *texts[2];
	} look[] = {
		{7200, 7200, {"the machine was suspended for 2 h"}},
		{7260, 7200,
			{"the machine was suspended for 2 h",
				"the wall clock was set by +60.000 s"}},
		{-60, 0, {"the wall clock was set by -60.000 s"}},
	};
	for (size_t i = 0; i < sizeof(look) / sizeof(look[0]); i++) {
		struct sysops table = *sysops();
		struct core core = {0};
		struct wallclock wall;
		struct clock_watch watch;
		uv_loop_t loop;
		table.now_ns = now_ns;
		table.wall_ns = quick_wall_ns;
		table.suspended_ns = suspended_ns;
		ahead_ns = AHEAD_NS;
		slept_ns = 0;
		wallclock_init(&wall);
		ck_assert_int_eq(metrics_create(&core.metrics), 0);
		ck_assert_int_eq(timeline_create(8, &core.timeline), 0);
		ck_assert_int_eq(alerts_create(core.metrics, core.timeline, &core.alerts), 0);
		ck_assert_int_eq(uv_loop_init(&loop), 0);
		sysops_replace(&table);
		clock_watch_open(&loop, &core, &wall, NULL, &watch);
		t_ns += 1000;
		ahead_ns += look[i].ahead_s * 1000000000;
		slept_ns = (uint64_t)look[i].slept_s * 1000000000;
		watch.timer.timer_cb(&watch.timer);
		sysops_replace(NULL);
		ck_assert_texts(core.timeline, look[i].texts[0], look[i].texts[1]);
		clock_watch_close(&watch);
		uv_run(&loop, UV_RUN_DEFAULT);
		ck_assert_int_eq(uv_loop_close(&loop), 0);
		alerts_destroy(core.alerts);
		timeline_destroy(core.timeline);
		metrics_destroy(core.metrics);
	}
}
END_TEST
