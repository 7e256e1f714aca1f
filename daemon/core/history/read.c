/* SPDX-License-Identifier: Apache-2.0 */
/* read.c: reads history from block to block of a series, decoding rows, giving samples or buckets.
 * A read may stop at any row and go on in the next call; what a bucket holds so far travels in the
 * cursor, so that a long step needs no longer turn than a short one. */
#include "daemon/core/history/private.h"

#include <math.h>
#include <stdlib.h>

struct history_point history_point_of(enum unit unit, const struct history_quanta *quanta)
{
	const int64_t code = quanta->mean;
	const double mean = history_unquantise(unit, code);
	/* Most are samples or constants: two more divisions make a read a fifth longer. */
	return (struct history_point){.mean = mean,
		.min = quanta->low == 0 ? mean : history_unquantise(unit, code - quanta->low),
		.max = quanta->high == 0 ? mean : history_unquantise(unit, code + quanta->high),
		.count = quanta->count};
}

void history_point_merge(struct history_point *to, const struct history_point *point)
{
	double count = (double)to->count + point->count;
	to->mean += (point->mean - to->mean) * point->count / count;
	to->min = fmin(to->min, point->min);
	to->max = fmax(to->max, point->max);
	to->count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

struct reader {
	const struct history_series *series;
	struct history_cursor *cursor;
	struct history_point *points;
	size_t count, max;
	size_t rows, budget;
	uint64_t start_ns; /* rows before are skipped */
	uint64_t until_ns; /* rows from here on belong to the next tier */
	struct history_scale scale;
	bool stopped;
};

/* Hands out the bucket in the cursor. */
static void emit_open(struct reader *reader)
{
	reader->points[reader->count++] = reader->cursor->open;
	reader->cursor->open.count = 0;
}

/* Where to write the next point: into the answer, if it goes there as it is. */
static struct history_point *place_for(struct reader *reader, struct history_point *aside)
{
	const bool direct = reader->cursor->step_ns == 0 && reader->count < reader->max;
	return direct ? &reader->points[reader->count] : aside;
}

/* Takes one sample or bucket that was written to place_for(). False when there is no room: the next
 * call reads it again. */
static bool take(struct reader *reader, const struct history_point *point)
{
	struct history_cursor *cursor = reader->cursor;
	if (cursor->step_ns == 0) {
		if (reader->count == reader->max) {
			return false;
		}
		reader->count++;
		return true;
	}
	struct history_point *open = &cursor->open;
	uint64_t bucket_ns = point->t_ns - point->t_ns % cursor->step_ns;
	if (open->count > 0 && open->t_ns != bucket_ns) {
		if (reader->count == reader->max) {
			return false;
		}
		emit_open(reader);
	}
	if (open->count == 0) {
		*open = *point;
		open->t_ns = bucket_ns;
	} else {
		history_point_merge(open, point);
	}
	return true;
}

/* What the row has of a column; false: nothing. Samples, which most are, are one number. */
static bool point_in(const struct history_row *row, const struct history_info *info,
	unsigned column, const struct reader *reader, struct history_point *ret)
{
	if (info->tier == HISTORY_FULL) {
		const double value = history_scaled(&reader->scale, row->value[column]);
		*ret = (struct history_point){
			.t_ns = row->t_ns, .min = value, .mean = value, .max = value, .count = 1};
		return !(row->nulls >> column & 1);
	}
	struct history_quanta value;
	if (!history_row_get(row, info->columns, column, HISTORY_WIDTH_BUCKET, &value)) {
		return false;
	}
	*ret = history_point_of(reader->series->unit, &value);
	ret->t_ns = row->t_ns;
	return true;
}

/* Goes over the rows of one block. */
static void read_block(const struct history_pool *pool, uint32_t place, struct reader *reader)
{
	const uint32_t index = place / HISTORY_COLUMNS, column = place % HISTORY_COLUMNS;
	const struct history_info *info = &pool->info[index];
	const unsigned width = history_tier_width((enum history_tier)info->tier);
	struct history_walk walk;
	history_block_walk(pool, index, &walk);
	history_walk_only(&walk, history_row_columns(info->columns, column, width));
	reader->scale = history_scale_of(reader->series->unit);
	while (history_walk_next(&walk)) {
		uint64_t t_ns = walk.state.last.t_ns;
		if (t_ns > info->last_ns) {
			return; /* damaged meanwhile */
		}
		if (t_ns < reader->start_ns) {
			continue;
		}
		if (t_ns > reader->cursor->to_ns || t_ns >= reader->until_ns) {
			return;
		}
		if (reader->budget > 0 && reader->rows == reader->budget) {
			reader->stopped = true;
			return;
		}
		reader->rows++;
		struct history_point aside, *point = place_for(reader, &aside);
		if (point_in(&walk.state.last, info, column, reader, point)) {
			reader->stopped = !take(reader, point);
		}
		if (reader->stopped) {
			return;
		}
		reader->start_ns = t_ns + 1;
	}
}

static void read_tier(
	const struct history_pool *pool, struct reader *reader, enum history_tier tier)
{
	uint32_t place = reader->series->head[tier];
	while (place != HISTORY_NONE && !reader->stopped) {
		uint32_t index = place / HISTORY_COLUMNS;
		const struct history_info *info = &pool->info[index];
		if (info->first_ns <= reader->cursor->to_ns && info->first_ns < reader->until_ns &&
			info->last_ns >= reader->start_ns) {
			read_block(pool, place, reader);
		}
		place = history_pool_block(pool, index)->column[place % HISTORY_COLUMNS].next;
	}
}

static bool has(const struct history_series *series, enum history_tier tier)
{
	return series->head[tier] != HISTORY_NONE;
}

static uint64_t first_ns(const struct history_pool *pool, const struct history_series *series,
	enum history_tier tier)
{
	return pool->info[series->head[tier] / HISTORY_COLUMNS].first_ns;
}

/* The first moment that is read from `fine` rather than from `coarse`. Where the coarse tier is
 * what the step wants it is read to its end, else only up to where the fine one begins; a coarse
 * bucket in which the fine tier begins is taken whole, unless it is the series' first. */
static uint64_t boundary_ns(const struct history_pool *pool, const struct history_series *series,
	enum history_tier coarse, enum history_tier fine, uint64_t step_ns)
{
	if (!has(series, coarse)) {
		return 0;
	}
	uint64_t coarse_ns = history_tier_step_ns(coarse);
	uint64_t end_ns = pool->info[series->tail[coarse] / HISTORY_COLUMNS].last_ns + coarse_ns;
	if (!has(series, fine)) {
		return UINT64_MAX;
	}
	if (step_ns >= coarse_ns && step_ns % coarse_ns == 0) {
		return end_ns;
	}
	uint64_t begin_ns = first_ns(pool, series, fine);
	if (first_ns(pool, series, coarse) + coarse_ns > begin_ns) {
		return 0;
	}
	uint64_t whole_ns = (begin_ns + coarse_ns - 1) / coarse_ns * coarse_ns;
	if (whole_ns <= end_ns) {
		return whole_ns;
	}
	return end_ns > begin_ns ? end_ns : begin_ns;
}

static void report_row(const struct history_row *row, const struct history_block *block,
	const struct history_info *info, history_row_observer *report, void *ctx)
{
	uint32_t series[HISTORY_COLUMNS];
	for (unsigned i = 0; i < info->columns; i++) {
		series[i] = block->column[i].series;
	}
	history_report_row(row, (enum history_tier)info->tier, series, info->columns, report, ctx);
}

int history_replay(struct history *history, enum history_tier tier, uint64_t from_ns,
	uint64_t to_ns, history_row_observer *report, void *ctx)
{
	const struct history_pool *pool = &history->pool;
	struct history_ordered *order;
	size_t count;
	int r = history_pool_order(pool, &order, &count);
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < count; i++) {
		const struct history_info *info = &pool->info[order[i].index];
		if (info->tier != tier || info->last_ns < from_ns || info->first_ns >= to_ns) {
			continue;
		}
		const struct history_block *block = history_pool_block(pool, order[i].index);
		struct history_walk walk;
		history_block_walk(pool, order[i].index, &walk);
		while (history_walk_next(&walk) && walk.state.last.t_ns <= info->last_ns) {
			if (walk.state.last.t_ns >= from_ns && walk.state.last.t_ns < to_ns) {
				report_row(&walk.state.last, block, info, report, ctx);
			}
		}
	}
	free(order);
	return 0;
}

static size_t finish(struct reader *reader, bool *done)
{
	reader->cursor->next_ns = reader->start_ns;
	if (!reader->stopped && reader->cursor->open.count > 0) {
		if (reader->count < reader->max) {
			emit_open(reader);
		} else {
			reader->stopped = true;
		}
	}
	*done = !reader->stopped;
	return reader->count;
}

static struct reader reader_of(const struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, size_t budget)
{
	return (struct reader){.series = history_names_by_id(&history->pool, cursor->series),
		.cursor = cursor,
		.points = points,
		.max = max,
		.budget = budget,
		.until_ns = UINT64_MAX,
		.start_ns = cursor->next_ns > cursor->from_ns ? cursor->next_ns : cursor->from_ns};
}

size_t history_read(struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, size_t budget, bool *done)
{
	const struct history_pool *pool = &history->pool;
	struct reader reader = reader_of(history, cursor, points, max, budget);
	const struct history_series *series = reader.series;
	for (int tier = HISTORY_TIERS - 1; series && tier >= 0 && !reader.stopped; tier--) {
		/* the finer tier that goes on where this one stops */
		int next = tier - 1;
		while (next > 0 && !has(series, (enum history_tier)next)) {
			next--;
		}
		reader.until_ns = tier == HISTORY_FULL
					  ? UINT64_MAX
					  : boundary_ns(pool, series, (enum history_tier)tier,
						    (enum history_tier)next, cursor->step_ns);
		read_tier(pool, &reader, (enum history_tier)tier);
		if (!reader.stopped && reader.until_ns > reader.start_ns && tier != HISTORY_FULL) {
			reader.start_ns = reader.until_ns;
		}
	}
	return finish(&reader, done);
}

size_t history_read_full(struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, bool *done)
{
	struct reader reader = reader_of(history, cursor, points, max, 0);
	if (reader.series) {
		read_tier(&history->pool, &reader, HISTORY_FULL);
	}
	return finish(&reader, done);
}
