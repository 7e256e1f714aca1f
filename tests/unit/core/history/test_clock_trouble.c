/* SPDX-License-Identifier: Apache-2.0 */
/* A month of a board whose clock can't be trusted: it starts in 1970, is set forward to now, half a
 * year back, back and forth by a second a hundred times, drifts, loses and finds its time server,
 * and the board sleeps. History, the timeline and the table of wall times see all of it; what they
 * tell afterwards is compared with what was put in. Time is numbers: a month takes a moment. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/history/history.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/timeline/timeline.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define NOW INT64_C(1785000000000000000) /* 2026 */
#define STEP_NS INT64_C(1000000000)

enum { DAYS = 30, POOL = 768 * 1024, POINTS = 500000, EVENTS = 4096 };

static void *pool, *ring;
static const uint8_t boot[16] = "a month";
static struct sources *sources;
static struct source *source;
static struct metrics *metrics;
static struct metric *counter, *rate;
static struct history *history;
static struct timeline *timeline;
static struct wallclock wall;
static struct history_point *points;
static uint64_t seed;

/* The clocks of the simulated board. */
static struct board {
	uint64_t t_ns; /* goes on, also while nothing runs */
	int64_t offset_ns;
	int64_t drift_ppm;
	bool synced;
	uint64_t first_sync_ns, told_steps, far_steps, near_steps, synced_told, rows;
	uint64_t units; /* what the counter counts: 100 a second of running time, always */
} board;

static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t below(uint64_t bound)
{
	return random_u64() % bound;
}

static void setup(void)
{
	points = calloc(POINTS, sizeof(*points));
	ck_assert_ptr_nonnull(points);
	const char *given = getenv("EDGEPROF_SEED");
	seed = given ? strtoull(given, NULL, 10) | 1 : 88172645463325252u;
	board = (struct board){.t_ns = 5 * SECOND, .offset_ns = 0};
	pool = calloc(1, POOL);
	ring = calloc(1, timeline_bytes(EVENTS));
	ck_assert(pool && ring);
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "board", SECOND, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(metrics_add(metrics, source, "board/count", UNIT_COUNT, &counter), 0);
	ck_assert_int_eq(metrics_add(metrics, source, "board/rate", UNIT_PER_SECOND, &rate), 0);
	ck_assert_int_eq(history_create(pool, POOL, boot, &history, NULL), 0);
	ck_assert_int_eq(timeline_adopt(ring, EVENTS, boot, &timeline), 0);
	wallclock_init(&wall);
}

static void teardown(void)
{
	free(points);
	history_destroy(history);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
	free(pool);
	free(ring);
}

/* As clock.c does: at once when the clock is set, else each minute. */
static void read_clocks(void)
{
	bool was = wallclock_synced(&wall);
	if (wallclock_note(
		    &wall, board.t_ns, (int64_t)board.t_ns + board.offset_ns, board.synced)) {
		board.told_steps++;
		timeline_add(timeline, board.t_ns, TIMELINE_CLOCK, TIMELINE_INFO, "clock", "set");
	}
	if (board.synced && !was) {
		board.synced_told++;
		timeline_add(timeline, board.t_ns, TIMELINE_CLOCK, TIMELINE_INFO, "clock",
			"synchronised");
	}
	ck_assert_int_eq(wallclock_synced(&wall), board.synced);
	ck_assert_uint_le(wall.count, WALLCLOCK_ENTRIES);
	/* what is told of this moment is what the clock says of it */
	int64_t now_us = ((int64_t)board.t_ns + board.offset_ns) / 1000;
	int64_t off_us = wallclock_us(&wall, board.t_ns) - now_us;
	ck_assert_int_le(llabs(off_us), 1000);
}

static void set_clock(int64_t by_ns)
{
	board.offset_ns += by_ns;
	/* about 1 s: what the clock drifted since the last reading decides whether it is a step */
	bool near = llabs(llabs(by_ns) - STEP_NS) < 50000000;
	board.near_steps += near;
	board.far_steps += !near && llabs(by_ns) > STEP_NS;
	read_clocks();
}

/* A sample, and the rate that a source makes of two of them: over the time that went on evenly. */
static void sample(void)
{
	static uint64_t last_ns, last_units;
	metric_set(counter, (double)board.units);
	if (board.rows > 0) {
		double seconds = (double)(board.t_ns - last_ns) / (double)SECOND;
		double made = (double)(board.units - last_units) / seconds;
		ck_assert_msg(made >= 0 && made < 100.5, "rate %f", made);
		metric_set(rate, made);
	}
	last_ns = board.t_ns;
	last_units = board.units;
	metrics_commit(metrics, source, board.t_ns);
	history_append(history, metrics, source, board.t_ns);
	board.rows++;
}

/* Runs for a while, samples each `every`. */
static void run(uint64_t length_ns, uint64_t every_ns)
{
	uint64_t since_read_ns = 0;
	for (uint64_t end = board.t_ns + length_ns; board.t_ns < end;) {
		board.t_ns += every_ns;
		board.units += every_ns / (SECOND / 100);
		board.offset_ns += (int64_t)(every_ns / 1000000) * board.drift_ppm;
		since_read_ns += every_ns;
		if (since_read_ns >= MINUTE) {
			read_clocks();
			since_read_ns = 0;
		}
		sample();
	}
}

/* CLOCK_BOOTTIME goes on while the board sleeps, CLOCK_MONOTONIC stands still and the wall clock is
 * ahead of it afterwards: both must be borne, whichever times the rows. */
static void suspend(void)
{
	uint64_t slept_ns = MINUTE + below(3 * HOUR);
	if (below(2) == 0) {
		board.t_ns += slept_ns;
	} else {
		set_clock((int64_t)slept_ns);
	}
	read_clocks();
}

static void trouble(void)
{
	switch (below(8)) {
	case 0:
		set_clock(-(int64_t)(182 * DAY));
		run(MINUTE + below(10 * MINUTE), SECOND);
		set_clock((int64_t)(182 * DAY));
		break;
	case 1:
		for (int i = 0; i < 100; i++) {
			set_clock(i % 2 ? -STEP_NS : STEP_NS);
			run(5 * SECOND, SECOND);
		}
		break;
	case 2:
		suspend();
		break;
	case 3:
		board.drift_ppm = (int64_t)below(400) - 200;
		break;
	case 4:
		board.synced = !board.synced;
		read_clocks();
		break;
	case 5:
		set_clock((int64_t)below(2 * DAY) - (int64_t)DAY);
		break;
	case 6: /* two settings within one reading */
		set_clock((int64_t)(3 * HOUR));
		set_clock(-(int64_t)(3 * HOUR));
		break;
	case 7: /* killed and started again: the table begins anew, the rest goes on */
		history_destroy(history);
		timeline_destroy(timeline);
		ck_assert_int_eq(history_create(pool, POOL, boot, &history, NULL), 0);
		ck_assert_int_eq(timeline_adopt(ring, EVENTS, boot, &timeline), 0);
		wallclock_init(&wall);
		read_clocks();
		break;
	}
}

static size_t read_all(const char *name, uint64_t step_ns)
{
	bool done = false;
	struct history_cursor cursor = {.to_ns = UINT64_MAX, .step_ns = step_ns};
	ck_assert_int_eq(history_find(history, name, &cursor.series), 0);
	size_t count = history_read(history, &cursor, points, POINTS, 0, &done);
	ck_assert(done);
	return count;
}

static void check_history(void)
{
	static const uint64_t steps[] = {0, 10 * SECOND, MINUTE, HOUR};
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		size_t count = read_all("board/count", steps[s]);
		ck_assert_uint_gt(count, steps[s] == HOUR ? 24 : 3000);
		for (size_t i = 1; i < count; i++) {
			/* the counter counts up: neither rows nor buckets change places */
			ck_assert_uint_gt(points[i].t_ns, points[i - 1].t_ns);
			ck_assert(points[i].min >= points[i - 1].max - 1);
		}
		count = read_all("board/rate", steps[s]);
		for (size_t i = 0; i < count; i++) {
			ck_assert(points[i].min >= 0 && points[i].max < 100.5);
		}
	}
}

static void check_timeline(void)
{
	uint64_t last_ns = 0, serial = 0;
	const struct timeline_entry *entry;
	while ((entry = timeline_from(timeline, serial + 1)) != NULL) {
		ck_assert_uint_gt(entry->serial, serial);
		ck_assert_uint_ge(entry->t_ns, last_ns);
		serial = entry->serial;
		last_ns = entry->t_ns;
	}
	ck_assert_uint_eq(serial, timeline_last_serial(timeline));
	ck_assert_uint_eq(serial, board.told_steps + board.synced_told);
}

TEST_TIMEOUT(120);
FIXTURE(setup, teardown);

START_TEST(a_month_of_clock_trouble_leaves_history_and_timeline_whole)
{
	read_clocks(); /* 1970 */
	run(10 * MINUTE, SECOND);
	board.synced = true;
	set_clock(NOW);
	while (board.t_ns < DAYS * DAY) {
		run(MINUTE + below(HOUR), SECOND * (1 + below(10)));
		trouble();
	}
	read_clocks();
	run(HOUR, SECOND);
	ck_assert_uint_gt(board.told_steps, 100);
	ck_assert_uint_ge(board.told_steps, board.far_steps);
	ck_assert_uint_le(board.told_steps, board.far_steps + board.near_steps);
	check_history();
	check_timeline();
}
END_TEST

START_TEST(every_step_is_told_and_nothing_else)
{
	board.synced = true;
	board.offset_ns = NOW;
	read_clocks();
	for (int i = 0; i < 1000; i++) {
		run(MINUTE + below(10 * MINUTE), SECOND);
		board.drift_ppm = (int64_t)below(400) - 200; /* never 1 s in a minute */
		int64_t by_ns = (int64_t)below(10 * SECOND) - 5 * STEP_NS;
		bool near = llabs(llabs(by_ns) - STEP_NS) < 50000000;
		set_clock(near ? 0 : by_ns);
	}
	ck_assert_uint_gt(board.far_steps, 500);
	ck_assert_uint_eq(board.told_steps, board.far_steps);
}
END_TEST

START_TEST(rows_from_before_the_first_sync_get_the_right_time)
{
	read_clocks(); /* 1970 */
	run(2 * HOUR, SECOND);
	size_t count = read_all("board/count", 0);
	ck_assert_int_lt(wallclock_us(&wall, points[count - 1].t_ns), INT64_C(86400000000));
	set_clock((int64_t)(400 * DAY)); /* a guess: the time of the last shutdown */
	run(HOUR, SECOND);
	ck_assert(!wallclock_synced(&wall));
	board.synced = true;
	set_clock(NOW);
	int64_t offset_ns = board.offset_ns;
	for (int i = 0; i < 300; i++) { /* more steps than the table holds do not undo it */
		set_clock(i % 2 ? -2 * STEP_NS : 2 * STEP_NS);
		run(10 * SECOND, SECOND);
	}
	ck_assert_uint_eq(board.synced_told, 1);
	count = read_all("board/count", 0);
	size_t before = 0;
	for (size_t i = 0; i < count; i++) {
		if (points[i].t_ns < 3 * HOUR) {
			before++;
			int64_t right_us = ((int64_t)points[i].t_ns + offset_ns) / 1000;
			int64_t off_us = wallclock_us(&wall, points[i].t_ns) - right_us;
			ck_assert_int_le(llabs(off_us), 4000000);
		}
	}
	ck_assert_uint_gt(before, 3600);
}
END_TEST

START_TEST(what_is_shown_with_a_time_is_found_by_it)
{
	board.synced = true;
	board.offset_ns = NOW;
	read_clocks();
	for (int i = 0; i < 50; i++) { /* forward only: each time is shown once */
		run(MINUTE + below(10 * MINUTE), SECOND);
		set_clock((int64_t)(2 * SECOND + below(HOUR)));
	}
	size_t count = read_all("board/count", 0);
	for (size_t i = 0; i < count; i++) {
		int64_t time_us = wallclock_us(&wall, points[i].t_ns);
		uint64_t t_ns = wallclock_mono_ns(&wall, time_us);
		ck_assert_uint_le(t_ns, points[i].t_ns);
		ck_assert_uint_le(points[i].t_ns - t_ns, 1000);
	}
}
END_TEST
