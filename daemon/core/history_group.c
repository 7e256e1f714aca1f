/* From a source's commit to bytes in a block: which column a metric has, when a block is full, and
 * how the block of an earlier process is continued instead of wasting what is left of it. */
#include "daemon/core/history_group.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/history_names.h"
#include "daemon/util/seam.h"

/* The block takes no more rows; columns of retired metrics go. */
static void close_block(struct history_pool *pool, struct history_group *group, bool full)
{
	if (group->block != HISTORY_NONE) {
		pool->info[group->block].owner = NULL;
		pool->info[group->block].closed = full;
		group->block = HISTORY_NONE;
	}
	unsigned kept = 0;
	for (unsigned i = 0; i < group->columns; i++) {
		if (group->column[i].metric) {
			group->column[kept++] = group->column[i];
		} else {
			group->column[i].series->bound--;
		}
	}
	group->columns = kept;
}

static unsigned retired_columns(const struct history_group *group)
{
	unsigned count = 0;
	for (unsigned i = 0; i < group->columns; i++) {
		count += !group->column[i].metric;
	}
	return count;
}

/* A group with room for one more column, its block closed. NULL when there is no memory. */
static struct history_group *group_with_room(struct history_pool *pool, struct history_group **list)
{
	struct history_group **link = list;
	for (; *link; link = &(*link)->next) {
		struct history_group *group = *link;
		if (group->columns < HISTORY_COLUMNS || retired_columns(group) > 0) {
			close_block(pool, group, false);
			return group;
		}
	}
	struct history_group *group = mem_zalloc(sizeof(*group));
	if (group) {
		group->block = HISTORY_NONE;
		*link = group;
	}
	return group;
}

int history_group_bind(
	struct history_pool *pool, struct history_group **list, const struct metric *metric)
{
	struct history_series *series;
	int r = history_names_get(pool, metric->name, metric->unit, &series);
	if (r < 0) {
		return r;
	}
	for (struct history_group *group = *list; group; group = group->next) {
		for (unsigned i = 0; i < group->columns; i++) {
			if (group->column[i].series == series) {
				group->column[i].metric = metric;
				return 0;
			}
		}
	}
	struct history_group *group = group_with_room(pool, list);
	if (!group) {
		return -ENOMEM;
	}
	group->column[group->columns].series = series;
	group->column[group->columns].metric = metric;
	group->columns++;
	series->bound++;
	return 0;
}

void history_group_unbind(struct history_group *list, const struct metric *metric)
{
	for (struct history_group *group = list; group; group = group->next) {
		for (unsigned i = 0; i < group->columns; i++) {
			if (group->column[i].metric == metric) {
				group->column[i].metric = NULL;
			}
		}
	}
}

/* True when the block is the newest of exactly the group's series, whole, and older than t_ns. */
static bool may_continue(const struct history_pool *pool, const struct history_group *group,
	uint32_t index, uint64_t t_ns)
{
	const struct history_info *info = &pool->info[index];
	if (info->owner || info->closed || info->columns != group->columns ||
		info->last_ns >= t_ns) {
		return false;
	}
	for (unsigned i = 0; i < group->columns; i++) {
		if (group->column[i].series->tail != index * HISTORY_COLUMNS + i) {
			return false;
		}
	}
	return true;
}

/* Brings the coder to the end of a block's rows. */
static bool replay(const struct history_pool *pool, uint32_t index, struct history_row_state *state)
{
	const struct history_info *info = &pool->info[index];
	const uint8_t *payload =
		history_block_payload(history_pool_block(pool, index), info->columns);
	history_row_start(state, info->first_ns, info->columns);
	for (size_t at = 0; state->rows < info->rows;) {
		int used = history_row_decode(state, payload + at, info->bytes - at);
		if (used < 0) {
			return false;
		}
		at += (size_t)used;
	}
	return true;
}

static bool open_block(struct history_pool *pool, struct history_group *group, uint64_t t_ns)
{
	uint32_t tail = group->column[0].series->tail;
	if (tail != HISTORY_NONE && may_continue(pool, group, tail / HISTORY_COLUMNS, t_ns) &&
		replay(pool, tail / HISTORY_COLUMNS, &group->state)) {
		group->block = tail / HISTORY_COLUMNS;
		pool->info[group->block].owner = &group->block;
		return true;
	}
	uint32_t index = history_pool_take(pool);
	if (index == HISTORY_NONE) {
		return false;
	}
	struct history_series *series[HISTORY_COLUMNS];
	for (unsigned i = 0; i < group->columns; i++) {
		series[i] = group->column[i].series;
	}
	history_pool_begin(pool, index, HISTORY_KIND_DATA, t_ns, series, group->columns);
	history_row_start(&group->state, t_ns, group->columns);
	group->block = index;
	pool->info[index].owner = &group->block;
	return true;
}

/* The number of values that are not null. */
static unsigned make_row(const struct history_group *group, uint64_t t_ns, struct history_row *row)
{
	unsigned values = 0;
	row->t_ns = t_ns;
	row->nulls = UINT64_MAX;
	for (unsigned i = 0; i < group->columns; i++) {
		const struct metric *metric = group->column[i].metric;
		row->value[i] = 0;
		if (metric && history_quantise(metric->unit, metric->value, &row->value[i])) {
			row->nulls &= ~(UINT64_C(1) << i);
			values++;
		}
	}
	return values;
}

unsigned history_group_append(struct history_pool *pool, struct history_group *group, uint64_t t_ns)
{
	if (group->block != HISTORY_NONE && t_ns <= group->state.last.t_ns) {
		return 0;
	}
	struct history_row row;
	uint8_t bytes[HISTORY_ROW_MAX];
	unsigned values = make_row(group, t_ns, &row);
	while (values > 0) {
		if (group->block == HISTORY_NONE && !open_block(pool, group, t_ns)) {
			return 0;
		}
		struct history_info *info = &pool->info[group->block];
		size_t size = history_row_encode(&group->state, &row, bytes);
		if (size > 0 && info->bytes + size <= history_block_room(info->columns)) {
			history_pool_commit(pool, group->block, bytes, size);
			history_row_accept(&group->state, &row);
			info->last_ns = t_ns;
			info->samples += values;
			return values;
		}
		/* An empty block takes any row, so this ends. */
		close_block(pool, group, true);
		values = make_row(group, t_ns, &row);
	}
	return 0;
}

void history_group_destroy_list(struct history_pool *pool, struct history_group *list)
{
	while (list) {
		struct history_group *next = list->next;
		if (list->block != HISTORY_NONE) {
			pool->info[list->block].owner = NULL;
		}
		free(list);
		list = next;
	}
}
