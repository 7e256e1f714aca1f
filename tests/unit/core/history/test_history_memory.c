/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that grows: what is not reserved yet cannot be touched here, not even read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/core/history/history.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

enum { LIMIT = 2 * 1024 * 1024, COLUMNS = 16, POINTS = 40000 };

static const uint8_t boot[16] = "this boot";
static uint8_t *pool;
static size_t reserved, granted; /* bytes: so far, and at most */
static struct sources *sources;
static struct metrics *metrics;
static struct source *source;
static struct metric *metric[COLUMNS];
static struct history *history;
static struct history_point *points;

static bool reserve(void *ctx, size_t offset, size_t length)
{
	ck_assert_ptr_eq(ctx, &granted);
	ck_assert_uint_le(offset, reserved); /* no gap */
	if (offset + length > granted) {
		return false;
	}
	reserved = offset + length > reserved ? offset + length : reserved;
	ck_assert_int_eq(mprotect(pool, reserved, PROT_READ | PROT_WRITE), 0);
	return true;
}

static void recover(void)
{
	while (history && history_recover(history) > 0) {
	}
}

/* As a new process finds it. */
static int open_history(enum history_found *found)
{
	const struct history_memory memory = {pool, LIMIT, reserve, &granted};
	history_destroy(history);
	history = NULL;
	reserved = 0;
	ck_assert_int_eq(mprotect(pool, LIMIT, PROT_NONE), 0);
	int r = history_open(&memory, boot, &history, found);
	recover();
	return r;
}

static void setup(void)
{
	points = calloc(POINTS, sizeof(*points));
	ck_assert_ptr_nonnull(points);
	pool = mmap(NULL, LIMIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(pool != MAP_FAILED);
	granted = LIMIT;
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	for (int i = 0; i < COLUMNS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "m/%d", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_CELSIUS, &metric[i]), 0);
	}
}

static void teardown(void)
{
	free(points);
	history_destroy(history);
	history = NULL;
	metrics_destroy(metrics);
	sources_destroy(sources);
	munmap(pool, LIMIT);
}

FIXTURE(setup, teardown);

static double value_of(uint64_t row, int column)
{
	return (double)((row * 2654435761u + (unsigned)column * 977u) % 60000) / 1000;
}

static void append(uint64_t from, uint64_t to)
{
	for (uint64_t row = from; row < to; row++) {
		for (int i = 0; i < COLUMNS; i++) {
			metric_set(metric[i], value_of(row, i));
		}
		metrics_commit(metrics, source, row * SECOND);
		history_append(history, metrics, source, row * SECOND);
	}
}

/* The rows of a column, the last of which is of last. */
static size_t rows_until(uint64_t last)
{
	struct history_cursor cursor = {.to_ns = UINT64_MAX};
	bool done;
	ck_assert_int_eq(history_find(history, "m/3", &cursor.series), 0);
	size_t count = history_read(history, &cursor, points, POINTS, 0, &done);
	ck_assert(done);
	ck_assert_uint_gt(count, 0);
	for (size_t i = 0; i < count; i++) {
		if (points[i].count == 1) {
			ck_assert(points[i].mean == value_of(points[i].t_ns / SECOND, 3));
		}
	}
	ck_assert_uint_eq(points[count - 1].t_ns, last * SECOND);
	return count;
}

START_TEST(it_grows_as_it_is_needed_and_drops_nothing_before_the_limit)
{
	enum history_found found;
	struct history_usage usage;
	ck_assert_int_eq(open_history(&found), 0);
	ck_assert_int_eq(found, HISTORY_FOUND_NOTHING);
	append(1, 10);
	ck_assert_uint_eq(reserved, HISTORY_STEP);
	for (uint64_t row = 10;; row += 100) {
		append(row, row + 100);
		history_usage(history, &usage);
		ck_assert_uint_eq(usage.size, LIMIT);
		ck_assert_uint_le(usage.used, reserved);
		ck_assert_uint_lt(reserved, usage.used + 2 * HISTORY_STEP);
		if (usage.evicted_blocks > 0) {
			break;
		}
	}
	ck_assert_uint_eq(reserved, LIMIT);
}
END_TEST

START_TEST(a_restart_reserves_what_was_in_use_and_no_more)
{
	enum history_found found;
	ck_assert_int_eq(open_history(&found), 0);
	append(1, 10000);
	const size_t before = reserved, count = rows_until(9999);
	ck_assert_uint_gt(before, HISTORY_STEP);
	ck_assert_uint_lt(before, LIMIT);
	ck_assert_int_eq(open_history(&found), 0);
	ck_assert_int_eq(found, HISTORY_FOUND_OLD);
	ck_assert_uint_eq(reserved, before);
	ck_assert_uint_eq(rows_until(9999), count);
	append(10000, 10100);
	ck_assert_uint_eq(rows_until(10099), count + 100);
}
END_TEST

START_TEST(what_is_refused_is_done_without)
{
	enum history_found found;
	struct history_usage usage;
	granted = HISTORY_STEP - 1;
	ck_assert_int_eq(open_history(&found), -ENOSPC);
	ck_assert_ptr_null(history);
	granted = 2 * HISTORY_STEP;
	ck_assert_int_eq(open_history(&found), 0);
	append(1, 20000);
	history_usage(history, &usage);
	ck_assert_uint_gt(usage.evicted_blocks, 0);
	ck_assert_uint_le(usage.used, granted);
	rows_until(19999);
	granted = LIMIT; /* there is space again */
	append(20000, 40000);
	ck_assert_uint_gt(reserved, 2 * HISTORY_STEP);
	rows_until(39999);
	granted = HISTORY_STEP;
	ck_assert_int_eq(open_history(&found), -ENOSPC);
}
END_TEST

START_TEST(what_another_pool_left_beyond_the_first_step_is_not_believed)
{
	static const uint8_t next[16] = "the next boot";
	enum history_found found;
	struct history_usage usage;
	const struct history_memory memory = {pool, LIMIT, reserve, &granted};
	ck_assert_int_eq(open_history(&found), 0);
	append(1, 10000);
	history_destroy(history);
	history = NULL;
	reserved = 0;
	ck_assert_int_eq(history_open(&memory, next, &history, &found), 0);
	ck_assert_int_eq(found, HISTORY_FOUND_OTHER);
	append(20040, 27000);
	ck_assert_uint_gt(reserved, HISTORY_STEP);
	const size_t count = rows_until(26999);
	history_destroy(history);
	history = NULL;
	ck_assert_int_eq(history_open(&memory, next, &history, &found), 0);
	ck_assert_int_eq(found, HISTORY_FOUND_OLD);
	recover();
	ck_assert_uint_eq(rows_until(26999), count);
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.damaged, 0);
	ck_assert_uint_eq(usage.oldest_ns, 20040 * SECOND);
}
END_TEST

/* A start that is killed while it reads, at each block. */
START_TEST(a_recovery_that_ends_early_loses_nothing)
{
	enum history_found found;
	const struct history_memory memory = {pool, LIMIT, reserve, &granted};
	ck_assert_int_eq(open_history(&found), 0);
	append(1, 10000);
	const size_t count = rows_until(9999);
	for (size_t turns = 0, last = SIZE_MAX; turns < last; turns += 7) {
		history_destroy(history);
		history = NULL;
		ck_assert_int_eq(history_open(&memory, boot, &history, &found), 0);
		ck_assert_int_eq(found, HISTORY_FOUND_OLD);
		for (size_t i = 0; i < turns && last == SIZE_MAX; i++) {
			last = history_recover(history) > 0 ? last : turns;
		}
	}
	ck_assert_int_eq(history_recover(history), 0);
	ck_assert_uint_eq(rows_until(9999), count);
	append(10000, 10010);
	ck_assert_uint_eq(rows_until(10009), count + 10);
}
END_TEST
