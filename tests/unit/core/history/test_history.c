/* SPDX-License-Identifier: Apache-2.0 */
/* History in a pool of plain memory: what is written is read, restarts, eviction, damage, size. */
#include "daemon/core/history/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/history/private.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

enum { POOL = 512 * 1024 };

static uint64_t pool_words[POOL / 8];
static uint8_t *const pool = (uint8_t *)pool_words;
static const uint8_t boot[16] = "this boot";
static struct sources *sources;
static struct metrics *metrics;
static struct source *source, *other;
static struct history *history;
static uint64_t seed;

static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static enum history_found open_history(void)
{
	enum history_found found = HISTORY_FOUND_NOTHING;
	history_destroy(history);
	history = NULL;
	ck_assert_int_eq(history_create(pool, POOL, boot, &history, &found), 0);
	return found;
}

static void fresh_metrics(void)
{
	metrics_destroy(metrics);
	sources_destroy(sources);
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	ck_assert_int_eq(sources_add(sources, "two", SECOND, &other), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
}

static void setup(void)
{
	seed = 88172645463325252u;
	memset(pool, 0, POOL);
	fresh_metrics();
	open_history();
}

static void teardown(void)
{
	history_destroy(history);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static struct metric *add(struct source *to, const char *name)
{
	struct metric *metric = NULL;
	ck_assert_int_eq(metrics_add(metrics, to, name, UNIT_CELSIUS, &metric), 0);
	return metric;
}

static void commit(struct source *of, uint64_t t_ns)
{
	metrics_commit(metrics, of, t_ns);
	history_append(history, metrics, of, t_ns);
	while (history_catch_up(history, metrics)) {
	}
}

static struct history_cursor cursor_of(const char *name)
{
	struct history_cursor cursor = {.to_ns = UINT64_MAX};
	ck_assert_int_eq(history_find(history, name, &cursor.series), 0);
	return cursor;
}

static size_t read_all(const char *name, struct history_point *points, size_t max)
{
	struct history_cursor cursor = cursor_of(name);
	bool done = false;
	size_t count = history_read(history, &cursor, points, max, 0, &done);
	ck_assert(done);
	return count;
}

/* Leaves out what is old enough to be there as buckets only. */
static size_t read_samples(const char *name, struct history_point *points, size_t max)
{
	size_t count = read_all(name, points, max);
	size_t buckets = 0;
	while (buckets < count && points[buckets].count > 1) {
		buckets++;
	}
	memmove(points, points + buckets, (count - buckets) * sizeof(*points));
	return count - buckets;
}

static bool same_points(const struct history_point *a, const struct history_point *b, size_t count)
{
	size_t i = 0;
	while (i < count && a[i].t_ns == b[i].t_ns && a[i].min == b[i].min &&
		a[i].mean == b[i].mean && a[i].max == b[i].max && a[i].count == b[i].count) {
		i++;
	}
	return i == count;
}

/* A known function of time, exact in m°C. */
static double wave(uint64_t i)
{
	return (double)(40000 + (int64_t)(i * 2654435761u % 9000)) / 1000;
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(what_was_written_is_read)
{
	struct metric *a = add(source, "temperature/a");
	struct metric *b = add(source, "temperature/b");
	for (uint64_t i = 1; i <= 3000; i++) {
		metric_set(a, wave(i));
		if (i % 5 != 0) {
			metric_set(b, -wave(i));
		}
		commit(source, i * SECOND + i);
	}
	static struct history_point points[4000];
	ck_assert_uint_eq(read_all("temperature/a", points, 4000), 3000);
	for (uint64_t i = 1; i <= 3000; i++) {
		ck_assert_uint_eq(points[i - 1].t_ns, i * SECOND + i);
		ck_assert(points[i - 1].mean == wave(i));
		ck_assert(points[i - 1].min == wave(i) && points[i - 1].max == wave(i));
		ck_assert_uint_eq(points[i - 1].count, 1);
	}
	/* Nulls are gaps, not zeros and not repeats. */
	ck_assert_uint_eq(read_all("temperature/b", points, 4000), 2400);
	for (size_t i = 0; i < 2400; i++) {
		uint64_t n = points[i].t_ns / SECOND;
		ck_assert_uint_ne(n % 5, 0);
		ck_assert(points[i].mean == -wave(n));
	}
	struct history_usage usage;
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.rows, 3000);
	ck_assert_uint_eq(usage.samples, 5400);
	ck_assert_uint_eq(usage.series, 2);
	ck_assert_uint_eq(usage.oldest_ns, SECOND + 1);
	ck_assert_uint_eq(usage.evicted_blocks, 0);
}
END_TEST

START_TEST(unknown_names_and_bad_pools_are_refused)
{
	uint32_t series = 7;
	struct history *none = NULL;
	enum history_found found;
	ck_assert_int_eq(history_find(history, "temperature/x", &series), -ENOENT);
	ck_assert_uint_eq(series, 7);
	ck_assert_int_eq(history_create(pool, HISTORY_MIN_POOL - 1, boot, &none, &found), -EINVAL);
	ck_assert_int_eq(history_create(pool + 1, POOL - 8, boot, &none, &found), -EINVAL);
	ck_assert_ptr_null(none);
	struct history_cursor cursor = {.series = 99, .to_ns = UINT64_MAX};
	struct history_point point;
	bool done = false;
	ck_assert_uint_eq(history_read(history, &cursor, &point, 1, 0, &done), 0);
	ck_assert(done);
	struct history_usage usage;
	history_usage(history, &usage);
	ck_assert(isnan(usage.tier[HISTORY_FULL].bytes_per_sample));
	ck_assert_uint_eq(usage.oldest_ns, 0);
	history_destroy(NULL);
}
END_TEST

START_TEST(ranges_are_inclusive)
{
	struct metric *a = add(source, "a");
	for (uint64_t i = 1; i <= 100; i++) {
		metric_set(a, (double)i);
		commit(source, i * SECOND);
	}
	struct history_cursor cursor = cursor_of("a");
	struct history_point points[100];
	bool done = false;
	cursor.from_ns = 10 * SECOND;
	cursor.to_ns = 20 * SECOND;
	ck_assert_uint_eq(history_read(history, &cursor, points, 100, 0, &done), 11);
	ck_assert(done);
	ck_assert(points[0].mean == 10 && points[10].mean == 20);
}
END_TEST

/* Reads in small turns and gets the same as in one. */
static void check_turns(uint64_t step_ns, size_t max, size_t budget)
{
	static struct history_point whole[5000], part[5000];
	struct history_cursor cursor = cursor_of("a");
	bool done = false;
	cursor.step_ns = step_ns;
	cursor.from_ns = 3 * SECOND;
	size_t count = history_read(history, &cursor, whole, 5000, 0, &done);
	ck_assert(done);
	cursor = cursor_of("a");
	cursor.step_ns = step_ns;
	cursor.from_ns = 3 * SECOND;
	size_t got = 0;
	size_t turns = 0;
	for (done = false; !done; turns++) {
		ck_assert_uint_lt(turns, 20000);
		got += history_read(history, &cursor, part + got, max, budget, &done);
	}
	ck_assert_uint_eq(got, count);
	ck_assert(same_points(whole, part, count));
	ck_assert_uint_eq(history_read(history, &cursor, part, 1, budget, &done), 0);
}

START_TEST(a_read_goes_on_where_it_stopped)
{
	struct metric *a = add(source, "a");
	for (uint64_t i = 1; i <= 4000; i++) {
		if (i % 7) {
			metric_set(a, wave(i));
		}
		commit(source, i * SECOND);
	}
	check_turns(0, 1, 0);
	check_turns(0, 100, 7);
	check_turns(10 * SECOND, 1, 0);
	check_turns(10 * SECOND, 3, 1);
	check_turns(1000 * SECOND, 2, 13);
	check_turns(100000 * SECOND, 1, 1);
}
END_TEST

START_TEST(buckets_tell_min_mean_max_and_count)
{
	struct metric *a = add(source, "a");
	for (uint64_t i = 1; i <= 25; i++) {
		if (i != 12) {
			metric_set(a, (double)i);
		}
		commit(source, i * SECOND);
	}
	struct history_cursor cursor = cursor_of("a");
	struct history_point points[10];
	bool done = false;
	cursor.step_ns = 10 * SECOND;
	ck_assert_uint_eq(history_read(history, &cursor, points, 10, 0, &done), 3);
	ck_assert_uint_eq(points[0].t_ns, 0);
	ck_assert_uint_eq(points[0].count, 9);
	ck_assert(points[0].min == 1 && points[0].mean == 5 && points[0].max == 9);
	ck_assert_uint_eq(points[1].t_ns, 10 * SECOND);
	ck_assert_uint_eq(points[1].count, 9);
	ck_assert(points[1].min == 10 && points[1].max == 19);
	ck_assert_double_eq_tol(points[1].mean, (145.0 - 12) / 9, 0.0005);
	ck_assert_uint_eq(points[2].count, 6);
}
END_TEST

START_TEST(metrics_without_full_rate_have_buckets_only)
{
	struct metric *a = add(source, "a");
	struct metric *b = add(source, "self/b");
	b->full_rate = false;
	for (uint64_t i = 1; i <= 25; i++) {
		metric_set(a, (double)i);
		metric_set(b, (double)i);
		commit(source, i * SECOND);
	}
	struct history_point points[30];
	ck_assert_uint_eq(read_all("a", points, 30), 25);
	ck_assert_uint_eq(read_all("self/b", points, 30), 2);
	ck_assert_uint_eq(points[1].t_ns, 10 * SECOND);
	ck_assert_uint_eq(points[1].count, 10);
	ck_assert(points[1].min == 10 && points[1].mean == 14.5 && points[1].max == 19);
}
END_TEST

START_TEST(metrics_that_appear_later_get_their_columns)
{
	char name[32];
	static struct history_point points[200];
	for (uint64_t i = 1; i <= 150; i++) {
		snprintf(name, sizeof(name), "m/%d", (int)i);
		add(source, name);
		for (size_t k = 0; k < source->metrics; k++) {
			metric_set(metrics_of(metrics, source, k), (double)(i * 1000 + k));
		}
		commit(source, i * SECOND);
	}
	for (int run = 0; run < 2; run++) {
		for (uint64_t k = 1; k <= 150; k++) {
			snprintf(name, sizeof(name), "m/%d", (int)k);
			size_t count = read_samples(name, points, 200);
			/* The pool is small: old blocks may be gone, what is there is right. */
			ck_assert_uint_ge(count, 1);
			ck_assert_uint_le(count, 151 - k);
			for (size_t i = 0; i < count; i++) {
				uint64_t n = 150 - count + 1 + i;
				ck_assert_uint_eq(points[i].t_ns, n * SECOND);
				ck_assert(points[i].mean == (double)(n * 1000 + k - 1));
			}
		}
		open_history();
	}
}
END_TEST

START_TEST(a_retired_metric_stays_readable_and_may_come_back)
{
	struct metric *a = add(source, "a");
	struct metric *b = add(source, "b");
	for (uint64_t i = 1; i <= 30; i++) {
		if (i == 11) {
			history_retire(history, b);
			metrics_retire(metrics, b);
		}
		if (i == 21) {
			b = add(source, "b");
		}
		metric_set(a, (double)i);
		if (i < 11 || i > 20) {
			metric_set(b, (double)i);
		}
		commit(source, i * SECOND);
	}
	struct history_point points[40];
	ck_assert_uint_eq(read_all("a", points, 40), 30);
	ck_assert_uint_eq(read_all("b", points, 40), 20);
	ck_assert(points[9].mean == 10 && points[10].mean == 21);
	struct history_usage usage;
	history_usage(history, &usage);
	/* Blocks of samples, of buckets and of names: its columns were kept. */
	ck_assert_uint_eq(usage.used, 3 * HISTORY_BLOCK);
}
END_TEST

START_TEST(a_restart_keeps_every_row_and_wastes_no_block)
{
	static struct history_point before[4000], after[4000];
	uint64_t t = 0;
	for (int run = 0; run < 40; run++) {
		fresh_metrics();
		ck_assert_int_eq(open_history(), HISTORY_FOUND_OLD);
		struct metric *a = add(source, "a");
		struct metric *b = add(source, "b");
		if (run > 0) {
			size_t count = read_all("a", after, 4000);
			ck_assert_uint_eq(count, (size_t)run * 10);
			ck_assert(same_points(before, after, count));
		}
		for (int i = 0; i < 10; i++) {
			t++;
			metric_set(a, wave(t));
			metric_set(b, wave(t + 1));
			commit(source, t * SECOND);
		}
		read_all("a", before, 4000);
	}
	struct history_usage usage;
	history_usage(history, &usage);
	/* samples and names: no process lived through a whole bucket */
	ck_assert_uint_eq(usage.used, 2 * HISTORY_BLOCK);
	ck_assert_uint_eq(usage.series, 2);
	uint32_t cursor = 0;
	uint32_t series;
	const char *name;
	enum unit unit;
	ck_assert(history_next_series(history, &cursor, &series, &name, &unit));
	ck_assert_str_eq(name, "a");
	ck_assert_int_eq(unit, UNIT_CELSIUS);
	ck_assert(history_next_series(history, &cursor, &series, &name, &unit));
	ck_assert(!history_next_series(history, &cursor, &series, &name, &unit));
}
END_TEST

START_TEST(another_boot_or_a_damaged_header_starts_anew)
{
	static const uint8_t next[16] = "the next boot";
	uint32_t series;
	for (size_t at = 0; at < sizeof(struct runhead); at++) {
		fresh_metrics();
		metric_set(add(source, "a"), 1);
		commit(source, SECOND);
		ck_assert_int_eq(open_history(), HISTORY_FOUND_OLD);
		ck_assert_int_eq(history_find(history, "a", &series), 0);
		pool[at] ^= 1;
		ck_assert_int_eq(open_history(), HISTORY_FOUND_DAMAGED);
		ck_assert_int_eq(history_find(history, "a", &series), -ENOENT);
		ck_assert_int_eq(open_history(), HISTORY_FOUND_OLD);
	}
	enum history_found found;
	history_destroy(history);
	ck_assert_int_eq(history_create(pool, POOL, next, &history, &found), 0);
	ck_assert_int_eq(found, HISTORY_FOUND_OTHER);
	memset(pool, 0, sizeof(uint64_t)); /* killed while it was formatted */
	ck_assert_int_eq(open_history(), HISTORY_FOUND_NOTHING);
}
END_TEST

START_TEST(a_torn_append_is_invisible)
{
	struct metric *a = add(source, "a");
	for (uint64_t i = 1; i <= 50; i++) {
		metric_set(a, wave(i));
		commit(source, i * SECOND);
	}
	static uint8_t before[POOL], after[POOL];
	memcpy(before, pool, POOL);
	metric_set(a, wave(51));
	commit(source, 51 * SECOND);
	memcpy(after, pool, POOL);
	struct history_point points[60];
	size_t changed[64];
	size_t changes = 0;
	for (size_t i = 0; i < POOL; i++) {
		if (before[i] != after[i]) {
			ck_assert_uint_lt(changes, 64);
			changed[changes++] = i;
		}
	}
	/* The commit counter lies before the row; all prefixes of the row without it. */
	for (size_t cut = 0; cut <= changes; cut++) {
		memcpy(pool, before, POOL);
		for (size_t i = 0; i < cut; i++) {
			size_t at = changed[changes - 1 - i];
			size_t in_block = at % HISTORY_BLOCK;
			if (in_block >= offsetof(struct history_block, column)) {
				pool[at] = after[at];
			}
		}
		ck_assert_int_eq(open_history(), HISTORY_FOUND_OLD);
		ck_assert_uint_eq(read_all("a", points, 60), 50);
	}
	memcpy(pool, after, POOL);
	open_history();
	ck_assert_uint_eq(read_all("a", points, 60), 51);
}
END_TEST

START_TEST(a_full_pool_shrinks_every_source_from_its_old_end)
{
	struct metric *a[10], *x = add(other, "x");
	char name[32];
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "a/%d", i);
		a[i] = add(source, name);
	}
	uint64_t i = 0;
	struct history_usage usage;
	do {
		i++;
		for (int k = 0; k < 10; k++) {
			metric_set(a[k], wave(i + (uint64_t)k));
		}
		commit(source, i * SECOND);
		metric_set(x, wave(i));
		commit(other, i * SECOND + 5);
		history_usage(history, &usage);
	} while (usage.evicted_blocks < 100);
	ck_assert_uint_le(usage.used, usage.size);
	struct history_point *points = calloc(60000, sizeof(*points));
	ck_assert_ptr_nonnull(points);
	size_t count = read_samples("a/3", points, 60000);
	ck_assert_uint_eq(points[count - 1].t_ns, i * SECOND);
	for (size_t k = 0; k < count; k++) {
		uint64_t n = i - count + 1 + k; /* no gap */
		ck_assert_uint_eq(points[k].t_ns, n * SECOND);
		ck_assert(points[k].mean == wave(n + 3));
	}
	uint64_t a_oldest = points[0].t_ns;
	count = read_samples("x", points, 60000);
	ck_assert_uint_eq(points[count - 1].t_ns, i * SECOND + 5);
	uint64_t x_oldest = points[0].t_ns;
	/* Alike: to within what one of the thinner source's blocks spans. */
	uint64_t apart = a_oldest > x_oldest ? a_oldest - x_oldest : x_oldest - a_oldest;
	ck_assert_uint_lt(apart, 4000 * SECOND);
	free(points);
}
END_TEST

START_TEST(samples_that_go_during_a_read_are_answered_by_buckets)
{
	struct metric *a = add(source, "a");
	uint64_t i = 0;
	for (; i < 3000; i++) {
		metric_set(a, wave(i));
		commit(source, (i + 1) * SECOND);
	}
	struct history_cursor cursor = cursor_of("a");
	struct history_point points[100];
	bool done = false;
	ck_assert_uint_eq(history_read(history, &cursor, points, 100, 0, &done), 100);
	struct history_usage usage;
	do {
		metric_set(a, wave(i));
		commit(source, (i + 1) * SECOND);
		i++;
		history_usage(history, &usage);
	} while (usage.evicted_blocks < 3);
	ck_assert_uint_eq(history_read(history, &cursor, points, 100, 0, &done), 100);
	ck_assert_uint_eq(points[0].t_ns, 110 * SECOND);
	ck_assert_uint_eq(points[0].count, 10);
	ck_assert(points[0].max >= points[0].mean && points[0].mean >= points[0].min);
}
END_TEST

START_TEST(dropped_names_make_room_for_new_ones)
{
	/* Many more names than the dictionary holds, each with a short life. */
	char name[64];
	struct history_usage usage;
	for (uint64_t i = 1; i <= 6000; i++) {
		snprintf(name, sizeof(name), "gauge/a-rather-long-name/of-a-metric-%d", (int)i);
		struct metric *metric = add(source, name);
		metric_set(metric, (double)i);
		commit(source, i * SECOND);
		history_retire(history, metric);
		metrics_retire(metrics, metric);
	}
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.refused, 0);
	struct history_point point;
	ck_assert_uint_eq(read_all(name, &point, 1), 1);
	ck_assert(point.mean == 6000);
	open_history();
	ck_assert_uint_eq(read_all(name, &point, 1), 1);
	ck_assert(point.mean == 6000);
}
END_TEST

START_TEST(names_that_do_not_fit_are_counted)
{
	char name[PROTO_PATH_SIZE];
	struct history_usage usage;
	for (int i = 0; i < METRICS_MAX; i++) {
		snprintf(name, sizeof(name), "gauge/%048d/%048d", i, i);
		add(source, name);
	}
	uint64_t now_ns = 0;
	for (int round = 0; round < 3; round++) { /* the first makes columns, or does not */
		for (size_t k = 0; k < source->metrics; k++) {
			metric_set(metrics_of(metrics, source, k), 1);
		}
		commit(source, now_ns += SECOND);
	}
	history_usage(history, &usage);
	ck_assert_uint_gt(usage.refused, 0);
	uint64_t refused = usage.refused;
	/* Those that fit have rows; asking again counts nothing twice. */
	for (size_t k = 0; k < source->metrics; k++) {
		metric_set(metrics_of(metrics, source, k), 1);
	}
	commit(source, now_ns + SECOND);
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.refused, refused);
	ck_assert_uint_ge(usage.series + refused, METRICS_MAX);
	ck_assert_uint_le(usage.used, usage.size);
}
END_TEST

START_TEST(a_name_of_guests_has_a_column_from_its_second_value_on)
{
	struct history_usage usage;
	char name[32];
	source->guests = true;
	metric_set(add(source, "stage/cam/stays"), 1);
	for (uint64_t i = 1; i <= 20; i++) {
		snprintf(name, sizeof(name), "stage/cam/n%u", (unsigned)i);
		struct metric *brief = add(source, name);
		metric_set(metrics_find(metrics, "stage/cam/stays"), (double)i);
		metric_set(brief, 1);
		commit(source, i * SECOND);
		history_retire(history, brief);
		metrics_retire(metrics, brief);
	}
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.series, 1);
	struct history_point point[32];
	ck_assert_uint_eq(read_all("stage/cam/stays", point, 32), 19);
	/* one that history knows has a column at once */
	struct metric *metric = metrics_find(metrics, "stage/cam/stays");
	history_retire(history, metric);
	metrics_retire(metrics, metric);
	metric_set(add(source, "stage/cam/stays"), 7);
	commit(source, 30 * SECOND);
	ck_assert_uint_eq(read_all("stage/cam/stays", point, 32), 20);
}
END_TEST

/* A commit makes columns for so many new metrics; the others are made before the next one. */
START_TEST(many_new_metrics_are_recorded_from_the_second_commit_on)
{
	enum { MANY = 1000 };
	char name[32];
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/m%u", i);
		metric_set(add(source, name), i);
	}
	metrics_commit(metrics, source, SECOND);
	history_append(history, metrics, source, SECOND);
	ck_assert_uint_lt(history_series_count(history), MANY / 2);
	unsigned calls = 0;
	while (history_catch_up(history, metrics)) {
		calls++;
	}
	ck_assert_uint_gt(calls, 1); /* each in an iteration of the loop of its own */
	ck_assert_uint_eq(history_series_count(history), MANY);
	for (unsigned i = 0; i < MANY; i++) {
		metric_set(metrics_of(metrics, source, i), i);
	}
	commit(source, 2 * SECOND);
	for (unsigned i = 0; i < MANY; i++) {
		struct history_point point[4];
		snprintf(name, sizeof(name), "many/m%u", i);
		ck_assert_uint_ge(read_all(name, point, 4), 1);
	}
}
END_TEST

/* Each takes the place of one before: no row may go to another's series. */
START_TEST(metrics_that_come_and_go_keep_their_own_values)
{
	enum { LIVE = 100, ROUNDS = 6 };
	char name[32];
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < LIVE; i++) {
			snprintf(name, sizeof(name), "stage/s%u", round * (LIVE / 2) + i);
			metric_set(add(source, name), round * (LIVE / 2) + i);
		}
		commit(source, (round + 1) * SECOND);
		for (unsigned i = 0; i < LIVE / 2; i++) {
			snprintf(name, sizeof(name), "stage/s%u", round * (LIVE / 2) + i);
			struct metric *metric = metrics_find(metrics, name);
			history_retire(history, metric);
			metrics_retire(metrics, metric);
		}
	}
	for (unsigned i = LIVE / 2; i < ROUNDS * (LIVE / 2); i++) {
		struct history_point point[4];
		snprintf(name, sizeof(name), "stage/s%u", i);
		ck_assert_uint_eq(read_all(name, point, 4), 2);
		ck_assert(point[0].mean == i && point[1].mean == i);
		ck_assert_uint_eq(point[0].t_ns, (i / (LIVE / 2)) * SECOND);
	}
}
END_TEST

/* 128 metrics as a board gives them; at most 1.2 bytes a sample with all headers. */
START_TEST(a_sample_costs_little_more_than_a_byte)
{
	static struct metric *metric[128];
	static double value[128];
	char name[32];
	for (int i = 0; i < 128; i++) {
		enum unit unit = i % 4 == 0 ? UNIT_CELSIUS : i % 4 == 3 ? UNIT_BYTES : UNIT_PERCENT;
		snprintf(name, sizeof(name), "board/m%d", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, unit, &metric[i]), 0);
		value[i] = unit == UNIT_BYTES ? 4e9 : 50;
	}
	struct history_usage usage;
	uint64_t t_ns = SECOND;
	for (int n = 0; n < 1700; n++) {
		for (int i = 0; i < 128; i++) {
			double step = (double)(random_u64() % 2001) / 1000 - 1;
			value[i] += i % 4 == 0	 ? 0.5 * round(step) /* °C, half-degree sensors */
				    : i % 4 == 3 ? 400e3 * step	     /* bytes */
						 : 3 * step;	     /* percent */
			metric_set(metric[i], value[i]);
		}
		t_ns += SECOND + random_u64() % 100000;
		commit(source, t_ns);
	}
	history_usage(history, &usage);
	ck_assert_double_le(usage.tier[HISTORY_FULL].bytes_per_sample, 1.2);
	ck_assert_double_gt(usage.tier[HISTORY_FULL].bytes_per_sample, 0.5);
}
END_TEST

START_TEST(an_append_allocates_nothing_for_known_names)
{
	struct metric *a = add(source, "a");
	metric_set(a, 1);
	commit(source, SECOND);
	alloc_faults_start(0);
	for (uint64_t i = 2; i < 60000; i++) {
		metric_set(a, wave(i) * 1e6 * (double)(i % 2));
		commit(source, i * SECOND);
	}
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
	struct history_usage usage;
	history_usage(history, &usage);
	ck_assert_uint_gt(usage.used, 10 * HISTORY_BLOCK);
}
END_TEST

START_TEST(short_memory_loses_a_metric_and_nothing_else)
{
	for (size_t n = 1; n < 8; n++) {
		struct history *none = NULL;
		enum history_found found;
		history_destroy(history);
		history = NULL;
		memset(pool, 0, POOL);
		fresh_metrics();
		open_history();
		struct metric *a = add(source, "a");
		metric_set(a, 1);
		metrics_commit(metrics, source, SECOND);
		alloc_faults_start(n);
		history_append(history, metrics, source, SECOND);
		alloc_faults_stop();
		metric_set(a, 2);
		commit(source, 2 * SECOND);
		struct history_point points[4];
		size_t count = read_all("a", points, 4);
		ck_assert_uint_ge(count, 1);
		ck_assert(points[count - 1].mean == 2);
		history_destroy(history);
		history = NULL;
		alloc_faults_start(n);
		int r = history_create(pool, POOL, boot, &none, &found);
		alloc_faults_stop();
		ck_assert(r == -ENOMEM ? !none : r == 0 && n > 4);
		history_destroy(none);
		open_history();
		ck_assert_uint_eq(read_all("a", points, 4), count);
	}
}
END_TEST

static void use_all(void)
{
	static struct history_point points[500];
	uint32_t cursor = 0;
	uint32_t series;
	const char *name;
	enum unit unit;
	while (history_next_series(history, &cursor, &series, &name, &unit)) {
		struct history_cursor at = {
			.series = series, .to_ns = UINT64_MAX, .step_ns = cursor % 2 * SECOND};
		bool done = false;
		for (int turn = 0; !done && turn < 400; turn++) {
			history_read(history, &at, points, 500, 0, &done);
		}
	}
	struct history_usage usage;
	history_usage(history, &usage);
	ck_assert_uint_le(usage.used, usage.size);
}

static void write_some(uint64_t *t)
{
	fresh_metrics();
	for (int i = 0; i < 70; i++) {
		char name[32];
		snprintf(name, sizeof(name), "m/%d", i);
		add(i % 3 ? source : other, name);
	}
	for (int n = 0; n < 60; n++) {
		*t += SECOND;
		struct source *both[2] = {source, other};
		for (int s = 0; s < 2; s++) {
			for (size_t k = 0; k < both[s]->metrics; k++) {
				metric_set(metrics_of(metrics, both[s], k), wave(*t + k));
			}
			commit(both[s], *t);
		}
	}
}

START_TEST(flipped_bits_do_no_harm)
{
	uint64_t t = 0;
	for (int round = 0; round < 150; round++) {
		write_some(&t);
		for (int flip = 0; flip < 40; flip++) {
			size_t at = random_u64() % POOL;
			if (flip % 2) { /* heads of blocks are where it hurts */
				at = at / HISTORY_BLOCK * HISTORY_BLOCK + at % 100;
			}
			if (at >= HISTORY_BLOCK) {
				pool[at] ^= (uint8_t)(1 << random_u64() % 8);
			}
		}
		ck_assert_int_eq(open_history(), HISTORY_FOUND_OLD);
		use_all();
	}
}
END_TEST

/* The sample of that second, or the bucket of those from there on. */
static bool was_sampled(const struct history_point *point, uint64_t seconds)
{
	uint64_t first = point->t_ns / SECOND, count = point->count;
	double min = INFINITY, max = -INFINITY;
	if (point->t_ns % SECOND != 0 || first + count > seconds + 1) {
		return false;
	}
	first += first == 0; /* the first bucket begins before the first sample */
	for (uint64_t i = first; i < first + count; i++) {
		min = fmin(min, wave(i));
		max = fmax(max, wave(i));
	}
	return point->min == min && point->max == max;
}

static void expect_only_samples(uint64_t seconds)
{
	static struct history_point points[1000];
	uint32_t cursor = 0, series;
	const char *name;
	enum unit unit;
	while (history_next_series(history, &cursor, &series, &name, &unit)) {
		ck_assert_str_eq(name, "temperature/of/the/board");
		size_t count = read_all(name, points, 1000);
		for (size_t i = 0; i < count; i++) {
			if (!was_sampled(&points[i], seconds)) {
				ck_abort_msg("%g at %g s was never sampled", points[i].mean,
					(double)points[i].t_ns / 1e9);
			}
		}
	}
}

START_TEST(no_flipped_bit_is_read_as_a_sample)
{
	static uint8_t before[POOL];
	struct metric *metric = add(source, "temperature/of/the/board");
	for (uint64_t i = 1; i <= 300; i++) {
		metric_set(metric, wave(i));
		commit(source, i * SECOND);
	}
	expect_only_samples(300);
	memcpy(before, pool, POOL);
	for (size_t at = 0; at < POOL; at++) {
		bool thorough = at < HISTORY_BLOCK || at % HISTORY_BLOCK < 128;
		uint8_t bit = (uint8_t)(1 << random_u64() % 8);
		for (unsigned k = 0; k < 8; k++) {
			uint8_t flip = thorough ? (uint8_t)(1 << k) : bit;
			if (before[at] == 0 &&
				(at % HISTORY_BLOCK > 512 || at > 6 * HISTORY_BLOCK)) {
				break; /* nothing lies there */
			}
			pool[at] = before[at] ^ flip;
			open_history();
			expect_only_samples(300);
			memcpy(pool, before, 8 * HISTORY_BLOCK);
			if (!thorough) {
				break;
			}
		}
	}
}
END_TEST

START_TEST(damage_is_counted)
{
	struct history_usage usage;
	struct metric *metric = add(source, "a");
	for (uint64_t i = 1; i <= 50; i++) {
		metric_set(metric, wave(i));
		commit(source, i * SECOND);
	}
	open_history();
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.damaged, 0);
	ck_assert_uint_eq(usage.newest_ns, 50 * SECOND);
	for (size_t b = 1; b < POOL / HISTORY_BLOCK; b++) {
		struct history_block *block =
			(struct history_block *)(void *)(pool + b * HISTORY_BLOCK);
		if (block->kind == HISTORY_KIND_DATA && block->tier == HISTORY_FULL) {
			history_block_payload(block, 1)[20] ^= 4;
		}
	}
	open_history();
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.damaged, 1);
	open_history();
	history_usage(history, &usage);
	ck_assert_uint_eq(usage.damaged, 0);
}
END_TEST

START_TEST(how_far_the_archive_has_it_outlives_the_process)
{
	ck_assert_uint_eq(history_archived_ns(history), 0);
	history_set_archived(history, 77 * SECOND);
	open_history();
	ck_assert_uint_eq(history_archived_ns(history), 77 * SECOND);
	pool[offsetof(struct history_header, archived_ns)] ^= 1;
	ck_assert_uint_eq(history_archived_ns(history), 0);
}
END_TEST

START_TEST(random_bytes_do_no_harm)
{
	uint64_t t = 0;
	for (int round = 0; round < 60; round++) {
		for (size_t i = HISTORY_BLOCK; i < POOL; i++) {
			pool[i] = (uint8_t)(random_u64() >> (round % 2 ? 8 : 57));
		}
		for (size_t b = HISTORY_BLOCK; b < POOL; b += HISTORY_BLOCK) {
			struct history_block *block = (struct history_block *)(void *)(pool + b);
			block->kind = random_u64() % 4 ? HISTORY_KIND_DATA : HISTORY_KIND_NAMES;
			block->columns = (uint32_t)(random_u64() % 70);
			block->first_ns &= round % 3 ? UINT64_MAX : 0xffffffffff;
		}
		ck_assert_int_eq(open_history(), HISTORY_FOUND_OLD);
		use_all();
		write_some(&t);
		use_all();
	}
}
END_TEST
