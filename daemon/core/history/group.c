/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: turns a source's commit into bytes in a block: which column a metric has, when a block
 * is full, and how the block of an earlier process is continued instead of wasting what is left of
 * it. */
#include "daemon/core/history/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/history/plan.h"
#include "daemon/util/sysops.h"

static void leave_block(struct history_pool *pool, uint32_t *block, bool full)
{
	if (*block != HISTORY_NONE) {
		pool->info[*block].owner = NULL;
		pool->info[*block].closed = full;
		*block = HISTORY_NONE;
	}
}

static void offer_room(struct history_group *group)
{
	if (!group->has_room) {
		group->has_room = true;
		group->next_room = group->list->room;
		group->list->room = group;
	}
}

/* The block takes no more rows; columns of retired metrics go. */
static void close_block(struct history_pool *pool, struct history_group *group, bool full)
{
	leave_block(pool, &group->narrow, full);
	leave_block(pool, &group->block, full);
	unsigned kept = 0;
	for (unsigned i = 0; i < group->columns; i++) {
		if (group->column[i].metric || group->column[i].bucket.count > 0) {
			group->column[kept++] = group->column[i];
		} else {
			struct history_series *series = group->column[i].series;
			series->bound[group->tier]--;
			if (series->group[group->tier] == group) {
				series->group[group->tier] = NULL;
			}
		}
	}
	if (kept < group->columns) {
		group->columns = kept;
		offer_room(group);
	}
	group->gone = 0;
	for (unsigned i = 0; i < kept; i++) {
		group->gone += !group->column[i].metric;
	}
}

/* Another column comes: what is in the block moves on with it, if there is room left then. */
static void widen_block(struct history_pool *pool, struct history_group *group)
{
	if (group->block == HISTORY_NONE) {
		return;
	}
	const struct history_info *info = &pool->info[group->block];
	if (info->bytes > history_block_room(info->columns) * 3 / 4) {
		leave_block(pool, &group->block, false);
		return;
	}
	group->narrow = group->block;
	group->block = HISTORY_NONE;
	pool->info[group->narrow].owner = &group->narrow;
}

static unsigned retired_columns(const struct history_group *group)
{
	unsigned count = 0;
	for (unsigned i = 0; i < group->columns; i++) {
		count += !group->column[i].metric && group->column[i].bucket.count == 0;
	}
	return count;
}

static unsigned columns_max(enum history_tier tier)
{
	return HISTORY_COLUMNS / history_tier_width(tier);
}

static struct history_group *group_create(struct history_list *list, enum history_tier tier)
{
	struct history_group *group = mem_zalloc(
		sizeof(*group) + columns_max(tier) * sizeof(struct history_group_column));
	if (!group) {
		return NULL;
	}
	group->tier = tier;
	group->list = list;
	group->block = HISTORY_NONE;
	group->narrow = HISTORY_NONE;
	if (list->last) {
		list->last->next = group;
	} else {
		list->first = group;
	}
	list->last = group;
	offer_room(group);
	return group;
}

/* A group with room for one more column, its block closed. NULL when there is no memory. */
static struct history_group *group_with_room(
	struct history_pool *pool, struct history_list *list, enum history_tier tier)
{
	for (;;) {
		struct history_group *group = list->room ? list->room : group_create(list, tier);
		if (!group) {
			return NULL;
		}
		if (group->columns < columns_max(tier)) {
			widen_block(pool, group);
			return group;
		}
		if (retired_columns(group) > 0) {
			close_block(pool, group, false);
			return group;
		}
		list->room = group->next_room;
		group->has_room = false;
	}
}

static struct history_group_column *column_in(
	struct history_group *group, const struct history_series *series)
{
	for (unsigned i = 0; i < group->columns; i++) {
		if (group->column[i].series == series) {
			return &group->column[i];
		}
	}
	return NULL;
}

/* The series' column in the list, and its group. A series is in several lists only when its name
 * went from one source to another. */
static struct history_group_column *column_of(const struct history_list *list,
	enum history_tier tier, const struct history_series *series, struct history_group **ret)
{
	struct history_group *group = series->group[tier];
	struct history_group_column *column = NULL;
	if (series->bound[tier] == 0) {
		return NULL;
	}
	if (group && group->list == list) {
		*ret = group;
		return column_in(group, series);
	}
	for (group = list->first; group && !column; group = group->next) {
		column = column_in(group, series);
		*ret = group;
	}
	return column;
}

int history_group_bind(struct history_pool *pool, struct history_list *list, enum history_tier tier,
	struct history_series *series, const struct metric *metric)
{
	struct history_group *group;
	struct history_group_column *column = column_of(list, tier, series, &group);
	if (column) {
		group->gone -= !column->metric;
		column->metric = metric;
		return 0;
	}
	group = group_with_room(pool, list, tier);
	if (!group) {
		return -ENOMEM;
	}
	group->column[group->columns++] =
		(struct history_group_column){.series = series, .metric = metric};
	series->bound[tier]++;
	series->group[tier] = group;
	return 0;
}

void history_group_unbind(
	struct history_list *list, enum history_tier tier, const struct history_series *series)
{
	struct history_group *group;
	struct history_group_column *column = column_of(list, tier, series, &group);
	if (column && column->metric) {
		column->metric = NULL;
		group->gone++;
		offer_room(group);
	}
}

void history_group_settled(struct history_group *group)
{
	if (group->gone > 0) {
		offer_room(group);
	}
}

/* True when the block is the newest of exactly the group's series, whole, and older than t_ns. */
static bool may_continue(const struct history_pool *pool, const struct history_group *group,
	uint32_t index, uint64_t t_ns)
{
	const struct history_info *info = &pool->info[index];
	if (info->owner || info->closed || info->tier != group->tier ||
		info->columns != group->columns || info->last_ns >= t_ns) {
		return false;
	}
	for (unsigned i = 0; i < group->columns; i++) {
		if (group->column[i].series->tail[group->tier] != index * HISTORY_COLUMNS + i) {
			return false;
		}
	}
	return true;
}

/* Brings the coder to the end of a block's rows. */
static bool replay(const struct history_pool *pool, uint32_t index, struct history_row_state *state)
{
	struct history_walk walk;
	history_block_walk(pool, index, &walk);
	while (history_walk_next(&walk)) {
	}
	*state = walk.state;
	return !walk.bad;
}

/* The same row with more columns, null so far. */
static void spread_row(const struct history_row *from, unsigned columns, unsigned wider,
	unsigned width, struct history_row *ret)
{
	*ret = (struct history_row){.t_ns = from->t_ns, .nulls = UINT64_MAX};
	for (unsigned i = 0; i < columns * width; i++) {
		unsigned at = i / columns * wider + i % columns;
		ret->value[at] = from->value[i];
		if (!(from->nulls >> i & 1)) {
			ret->nulls &= ~(UINT64_C(1) << at);
		}
	}
}

/* Writes the row behind those of the block. False when it takes no more. */
static bool put_row(
	struct history_pool *pool, struct history_group *group, const struct history_row *row)
{
	struct history_info *info = &pool->info[group->block];
	uint8_t bytes[HISTORY_ROW_MAX];
	if (history_plan_is_due(&group->state)) {
		struct history_walk walk;
		history_block_walk(pool, group->block, &walk);
		history_plan_make(&group->state, &walk);
	}
	size_t size = history_row_encode(&group->state, row, bytes);
	if (size == 0 || info->bytes + size > history_block_room(info->columns)) {
		return false;
	}
	history_pool_commit(pool, group->block, bytes, size);
	history_row_accept(&group->state, row);
	info->last_ns = row->t_ns;
	return true;
}

/* Moves the rows of the narrow block to the one just begun, where the columns that came later are
 * null. The old one goes only when all are there: a kill in between leaves some twice, which a
 * reader sees once. When they do not fit any more they stay where they are. */
static void move_rows(struct history_pool *pool, struct history_group *group)
{
	uint32_t from = group->narrow;
	const struct history_info *info = &pool->info[from];
	struct history_walk old;
	struct history_row row;
	history_block_walk(pool, from, &old);
	while (history_walk_next(&old)) {
		spread_row(&old.state.last, info->columns, group->columns,
			history_tier_width(group->tier), &row);
		if (!put_row(pool, group, &row)) {
			old.bad = true;
			break;
		}
	}
	if (old.bad) {
		history_pool_release(pool, group->block);
		leave_block(pool, &group->narrow, true);
		return;
	}
	pool->info[group->block].samples = info->samples;
	history_pool_release(pool, from);
}

static bool begin_block(struct history_pool *pool, struct history_group *group, uint64_t first_ns)
{
	uint32_t index = history_pool_take(pool);
	if (index == HISTORY_NONE) {
		return false;
	}
	struct history_series *series[HISTORY_COLUMNS];
	for (unsigned i = 0; i < group->columns; i++) {
		series[i] = group->column[i].series;
	}
	history_pool_begin(
		pool, index, HISTORY_KIND_DATA, group->tier, first_ns, series, group->columns);
	history_row_restart(
		&group->state, first_ns, group->columns * history_tier_width(group->tier));
	group->block = index;
	pool->info[index].owner = &group->block;
	return true;
}

static bool open_block(struct history_pool *pool, struct history_group *group, uint64_t t_ns)
{
	if (group->narrow != HISTORY_NONE) {
		if (!begin_block(pool, group, pool->info[group->narrow].first_ns)) {
			return false;
		}
		if (group->narrow != HISTORY_NONE) { /* else it was the one to make room */
			move_rows(pool, group);
		}
		if (group->block != HISTORY_NONE) {
			return true;
		}
	}
	uint32_t tail = group->column[0].series->tail[group->tier];
	if (tail != HISTORY_NONE && may_continue(pool, group, tail / HISTORY_COLUMNS, t_ns) &&
		replay(pool, tail / HISTORY_COLUMNS, &group->state)) {
		group->block = tail / HISTORY_COLUMNS;
		pool->info[group->block].owner = &group->block;
		return true;
	}
	return begin_block(pool, group, t_ns);
}

/* A bucket's ends are kept as distances, which cost less and are never negative: rounding keeps the
 * order. */
static bool quantise_bucket(
	enum unit unit, const struct history_bucket *bucket, struct history_quanta *ret)
{
	int64_t min, max;
	if (bucket->count == 0 ||
		!history_quantise(unit, bucket->sum / bucket->count, &ret->mean) ||
		!history_quantise(unit, bucket->min, &min) ||
		!history_quantise(unit, bucket->max, &max)) {
		return false;
	}
	/* a sum of many rounds: the mean may come out a hair beyond its ends */
	ret->mean = ret->mean < min ? min : ret->mean > max ? max : ret->mean;
	ret->low = ret->mean - min;
	ret->high = max - ret->mean;
	ret->count = bucket->count;
	return true;
}

/* The number of metrics that are not null. */
static unsigned make_row(const struct history_group *group, uint64_t t_ns, struct history_row *row)
{
	unsigned width = history_tier_width(group->tier);
	unsigned values = 0;
	row->t_ns = t_ns;
	row->nulls = UINT64_MAX;
	memset(row->value, 0, sizeof(row->value));
	for (unsigned i = 0; i < group->columns; i++) {
		const struct history_group_column *column = &group->column[i];
		struct history_quanta value = {0};
		bool any = group->tier == HISTORY_FULL
				   ? column->metric && history_quantise(column->series->unit,
							       column->metric->value, &value.mean)
				   : quantise_bucket(column->series->unit, &column->bucket, &value);
		if (any) {
			history_row_put(row, group->columns, i, width, &value);
			values++;
		}
	}
	return values;
}

void history_report_row(const struct history_row *row, enum history_tier tier,
	const uint32_t *series, unsigned columns, history_row_observer *report, void *ctx)
{
	struct history_bucket_row bucket = {.tier = tier, .t_ns = row->t_ns};
	for (unsigned i = 0; i < columns; i++) {
		bucket.series = series[i];
		if (history_row_get(row, columns, i, HISTORY_WIDTH_BUCKET, &bucket.value)) {
			report(ctx, &bucket);
		}
	}
}

static void report_group(const struct history_group *group, const struct history_row *row,
	history_row_observer *report, void *ctx)
{
	uint32_t series[HISTORY_COLUMNS];
	for (unsigned i = 0; i < group->columns; i++) {
		series[i] = group->column[i].series->id;
	}
	history_report_row(row, group->tier, series, group->columns, report, ctx);
}

void history_group_report_open(
	const struct history_group *group, history_row_observer *report, void *ctx)
{
	struct history_row row;
	if (group->gathers && make_row(group, group->bucket_ns, &row) > 0) {
		report_group(group, &row, report, ctx);
	}
}

unsigned history_group_append(struct history_pool *pool, struct history_group *group, uint64_t t_ns)
{
	uint32_t open = group->block != HISTORY_NONE ? group->block : group->narrow;
	if (open != HISTORY_NONE && t_ns <= pool->info[open].last_ns) {
		return 0;
	}
	struct history_row row;
	unsigned values = make_row(group, t_ns, &row);
	while (values > 0) {
		if (group->block == HISTORY_NONE && !open_block(pool, group, t_ns)) {
			return 0;
		}
		if (put_row(pool, group, &row)) {
			pool->info[group->block].samples += values;
			if (pool->observer && group->tier != HISTORY_FULL) {
				report_group(group, &row, pool->observer, pool->observer_ctx);
			}
			return values;
		}
		/* An empty block takes any row, so this ends. */
		close_block(pool, group, true);
		values = make_row(group, t_ns, &row);
	}
	return 0;
}

void history_group_destroy_list(struct history_pool *pool, struct history_list *list)
{
	while (list->first) {
		struct history_group *group = list->first;
		list->first = group->next;
		leave_block(pool, &group->block, false);
		leave_block(pool, &group->narrow, false);
		free(group);
	}
}
