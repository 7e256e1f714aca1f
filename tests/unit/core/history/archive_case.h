/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive in a memory image, fed through live history and sealed, beside a plain model of what
 * was sealed: every bucket of every series with the block that holds it.
 */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/history/history.h"
#include "daemon/core/history/row.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define TICK (10 * SECOND)
#define WALL_NS                                                                           \
	INT64_C(1700000000000000000) /* the clock's offset; a multiple of a minute + 20 s \
				      */

enum { SERIES_MAX = 512, TICKS = 4096, BLOCKS_MAX = 16384, POOL_SIZE = 16 * 1024 * 1024 };

struct model_row {
	uint32_t tick, count, block;
	double min, mean, max;
};

struct model_bucket {
	uint64_t tick;
	uint32_t count;
	double min, max, sum;
};

static struct archive_case {
	uint64_t size;
	struct archive_identity identity;
	uint8_t *image;
	uint8_t boot_id[16];
	struct archive *archive;
	struct wallclock wall;
	struct sources *sources;
	struct metrics *metrics;
	struct source *source;
	struct history *history;
	void *pool;
	struct metric *metric[SERIES_MAX]; /* NULL: retired */
	char name[SERIES_MAX][48];
	enum unit unit[SERIES_MAX];
	unsigned series;
	uint64_t now_ns;
	struct model_bucket open[SERIES_MAX];
	struct model_row (*row)[TICKS]; /* of each series, by tick % TICKS */
	uint64_t block;			/* number of the newest sealed one */
	struct {
		uint32_t page, pages, rows;
	} at[BLOCKS_MAX];
	uint64_t seed;
} it;

static inline uint64_t random_u64(void)
{
	it.seed ^= it.seed << 13;
	it.seed ^= it.seed >> 7;
	it.seed ^= it.seed << 17;
	return it.seed;
}

static inline void add_metric(unsigned i, const char *name, enum unit unit)
{
	ck_assert_int_eq(metrics_add(it.metrics, it.source, name, unit, &it.metric[i]), 0);
	it.metric[i]->full_rate = false;
	snprintf(it.name[i], sizeof(it.name[i]), "%s", name);
	it.unit[i] = unit;
}

static inline void retire(unsigned i)
{
	history_retire(it.history, it.metric[i]);
	metrics_retire(it.metrics, it.metric[i]);
	it.metric[i] = NULL;
}

static inline void end_boot(void)
{
	history_destroy(it.history);
	archive_destroy(it.archive);
	free(it.pool);
	it.history = NULL;
	it.archive = NULL;
	it.pool = NULL;
}

/* Also a process of the same boot that finds no live history. */
static inline void use_boot(uint8_t boot)
{
	enum history_found what;
	memset(it.boot_id, boot, sizeof(it.boot_id));
	end_boot();
	it.pool = calloc(1, POOL_SIZE);
	ck_assert_ptr_nonnull(it.pool);
	ck_assert_int_eq(history_create(it.pool, POOL_SIZE, it.boot_id, &it.history, &what), 0);
	ck_assert_int_eq(archive_create(it.boot_id, it.history, &it.archive), 0);
	history_observe(it.history, archive_on_row, it.archive);
}

/* Scans so many bytes of an image, as the worker does. */
static inline struct archive_index *scan_image(const uint8_t *image, uint64_t bytes)
{
	struct archive_index *index = NULL;
	ck_assert_int_eq(archive_index_create(it.size, it.identity, &index), 0);
	uint32_t page = 1;
	while ((uint64_t)page * ARCHIVE_PAGE < bytes) {
		uint64_t at = (uint64_t)page * ARCHIVE_PAGE;
		int n = archive_index_scan(index, page, image + at, (size_t)(bytes - at));
		ck_assert(n >= 0 || n == -EAGAIN);
		page += n > 0 ? (uint32_t)n : 1;
	}
	ck_assert_int_eq(archive_index_finish(index), 0);
	return index;
}

static inline void start(uint64_t size, unsigned series)
{
	static const enum unit units[] = {UNIT_CELSIUS, UNIT_PERCENT, UNIT_BYTES, UNIT_VOLTS};
	memset(&it, 0, sizeof(it));
	it.seed = 88172645463325252u;
	it.size = size;
	it.identity = (struct archive_identity){.version = 2, .seed = 0x5eed};
	it.series = series;
	it.image = calloc(1, size);
	it.row = calloc(SERIES_MAX, sizeof(*it.row));
	ck_assert(it.image && it.row);
	it.now_ns = 1000 * TICK;
	wallclock_init(&it.wall);
	wallclock_note(&it.wall, it.now_ns, (int64_t)it.now_ns + WALL_NS, true);
	ck_assert_int_eq(sources_create(&it.sources), 0);
	ck_assert_int_eq(metrics_create(&it.metrics), 0);
	ck_assert_int_eq(sources_add(it.sources, "board", SECOND, &it.source), 0);
	for (unsigned i = 0; i < series; i++) {
		char name[48];
		snprintf(name, sizeof(name), "board/group%u/m%03u", i / 16, i);
		add_metric(i, name, units[i % 4]);
	}
	use_boot('a');
	archive_adopt(it.archive, scan_image(it.image, size));
}

static inline void teardown(void)
{
	end_boot();
	metrics_destroy(it.metrics);
	sources_destroy(it.sources);
	free(it.image);
	free(it.row);
	memset(&it, 0, sizeof(it));
}

static inline double quantised(enum unit unit, double value)
{
	int64_t quanta = 0;
	ck_assert(history_quantise(unit, value, &quanta));
	return history_unquantise(unit, quanta);
}

/* The bucket of a series is over: it waits for its block. */
static inline void model_close(unsigned i)
{
	struct model_bucket *open = &it.open[i];
	enum unit unit = it.unit[i];
	if (open->count > 0) {
		it.row[i][open->tick % TICKS] = (struct model_row){
			.tick = (uint32_t)open->tick,
			.count = open->count,
			.min = quantised(unit, open->min),
			.mean = quantised(unit, open->sum / open->count),
			.max = quantised(unit, open->max),
		};
	}
	open->count = 0;
}

/* What was set is the source's commit of that time. */
static inline void commit(uint64_t t_ns)
{
	metrics_commit(it.metrics, it.source, t_ns);
	history_append(it.history, it.metrics, it.source, t_ns);
}

/* A value of which the model does not know. */
static inline void feed(unsigned i, double value, uint64_t t_ns)
{
	metric_set(it.metric[i], value);
	commit(t_ns);
}

static inline void set(unsigned i, double value)
{
	struct model_bucket *open = &it.open[i];
	uint64_t tick = it.now_ns / TICK;
	metric_set(it.metric[i], value);
	if (isnan(value)) {
		return;
	}
	if (open->count > 0 && open->tick != tick) {
		model_close(i);
	}
	if (open->count == 0) {
		*open = (struct model_bucket){.tick = tick, .min = value, .max = value};
	}
	open->min = fmin(open->min, value);
	open->max = fmax(open->max, value);
	open->sum += value;
	open->count++;
}

static inline void give(unsigned i, double value)
{
	set(i, value);
	commit(it.now_ns);
}

/* A value that tells the series and the time; a third of the series are constants. */
static inline double value_of(unsigned i)
{
	return i % 3 == 2 ? 100 + i : 50 + i + (double)(random_u64() % 1000) / 100;
}

static inline void give_all(void)
{
	for (unsigned i = 0; i < it.series; i++) {
		set(i, value_of(i));
	}
	commit(it.now_ns);
}

/* Rows that were sealed in the block: those that are over and in no block yet. */
static inline uint32_t model_seal(uint64_t block, bool all)
{
	uint32_t rows = 0;
	for (unsigned i = 0; i < it.series; i++) {
		if (it.open[i].count > 0 && (all || (it.open[i].tick + 1) * TICK <= it.now_ns)) {
			model_close(i);
		}
		uint64_t now = it.now_ns / TICK;
		for (uint64_t t = now > 200 ? now - 200 : 0; t <= now; t++) {
			struct model_row *row = &it.row[i][t % TICKS];
			if (row->tick == t && row->count > 0 && row->block == 0) {
				row->block = (uint32_t)block;
				rows++;
			}
		}
	}
	return rows;
}

/* Makes one block; its bytes are the archive's. 0: there was nothing. */
static inline size_t make_block(bool all, const uint8_t **bytes, uint32_t *page)
{
	size_t size = archive_seal(it.archive, it.now_ns, &it.wall, NULL, all, bytes, page);
	if (size > 0) {
		ck_assert_uint_eq(size % ARCHIVE_PAGE, 0);
		ck_assert_uint_le(size, ARCHIVE_BLOCK_MAX);
		ck_assert_uint_ge(*page, 1);
		ck_assert_uint_le((uint64_t)*page * ARCHIVE_PAGE + size, it.size);
		it.block++;
		ck_assert_uint_lt(it.block, BLOCKS_MAX);
		it.at[it.block].page = *page;
		it.at[it.block].pages = (uint32_t)(size / ARCHIVE_PAGE);
		it.at[it.block].rows = model_seal(it.block, all);
	}
	return size;
}

static inline void put_block(const uint8_t *bytes, size_t size, uint32_t page)
{
	memcpy(it.image + (size_t)page * ARCHIVE_PAGE, bytes, size);
	archive_written(it.archive, 0);
}

/* Until nothing waits. */
static inline void seal(bool all)
{
	const uint8_t *bytes;
	uint32_t page;
	size_t size;
	while ((size = make_block(all, &bytes, &page)) > 0) {
		put_block(bytes, size, page);
	}
}

/* A time of so many buckets, values at 0.5 Hz; now stands 1 s behind the end of the last bucket. */
static inline void run(unsigned buckets)
{
	uint64_t end_ns = (it.now_ns / TICK + buckets) * TICK;
	while (it.now_ns < end_ns) {
		give_all();
		it.now_ns += 2 * SECOND;
	}
	it.now_ns = end_ns + SECOND / 10;
}

static inline struct archive_plan *ask_of(struct archive *archive, const uint8_t *image,
	const char *glob, int64_t from_us, int64_t to_us, uint64_t step_ns, size_t points_max)
{
	struct archive_plan *plan = NULL;
	ck_assert_int_eq(archive_plan_make(archive, glob, from_us, to_us, step_ns, points_max,
				 &it.wall, &plan),
		0);
	for (size_t i = 0; i < archive_plan_blocks(plan); i++) {
		uint32_t page, pages;
		archive_plan_block(plan, i, &page, &pages);
		ck_assert_uint_le(((uint64_t)page + pages) * ARCHIVE_PAGE, it.size);
		ck_assert_int_eq(
			archive_plan_read(plan, i, image + (size_t)page * ARCHIVE_PAGE), 0);
	}
	archive_plan_finish(plan);
	return plan;
}

static inline struct archive_plan *ask(const char *glob)
{
	return ask_of(it.archive, it.image, glob, INT64_MIN, INT64_MAX, 0, SIZE_MAX);
}

static inline int series_by_name(const char *name)
{
	for (unsigned i = 0; i < it.series; i++) {
		if (strcmp(it.name[i], name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

/* Every point of the plan is a sealed one, bit by bit, of a time in order; found[block] counts
 * them. The number of points. */
static inline size_t compare(const struct archive_plan *plan, uint32_t *found)
{
	size_t points = 0;
	for (size_t s = 0; s < archive_plan_series(plan); s++) {
		struct archive_series series;
		archive_plan_at(plan, s, &series);
		int i = series_by_name(series.name);
		ck_assert_msg(i >= 0, "%s was never there", series.name);
		ck_assert_int_eq(series.unit, it.unit[i]);
		for (size_t k = 0; k < series.count; k++) {
			const struct history_point *point = &series.points[k];
			uint64_t tick = (uint64_t)(point->time_us * 1000 - WALL_NS) / TICK;
			const struct model_row *row = &it.row[i][tick % TICKS];
			/* Not an assertion each: check writes a line for every one. */
			if ((k > 0 && series.points[k - 1].time_us >= point->time_us) ||
				point->time_us != ((int64_t)(tick * TICK) + WALL_NS) / 1000 ||
				row->tick != tick || row->count != point->count ||
				row->block == 0 || row->min != point->min ||
				row->mean != point->mean || row->max != point->max) {
				ck_abort_msg("%s: a row that was not sealed", series.name);
			}
			found[row->block]++;
			points++;
		}
	}
	return points;
}
