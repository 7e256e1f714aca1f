/* SPDX-License-Identifier: Apache-2.0 */
/* history.c: is the face of history: it recovers the pool, lets groups write each commit and
 * answers what there is. */
#include "daemon/core/history/private.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"

/* Columns that are made at once, one to two microseconds each. */
enum {
	BINDS_COMMIT = 128, /* at a commit */
	BINDS = 192,	    /* in a call of history_catch_up() */
};

int history_open(const struct history_memory *memory, const uint8_t boot_id[16],
	struct history **ret, enum history_found *found)
{
	struct history *history = mem_zalloc(sizeof(*history));
	if (!history) {
		return -ENOMEM;
	}
	enum history_found what = HISTORY_FOUND_NOTHING;
	int r = history_pool_init(&history->pool, memory, boot_id, &what);
	if (r < 0) {
		history_destroy(history);
		return r;
	}
	if (found) {
		*found = what;
	}
	*ret = history;
	return 0;
}

int history_create(void *pool, size_t size, const uint8_t boot_id[16], struct history **ret,
	enum history_found *found)
{
	const struct history_memory memory = {.data = pool, .size = size};
	struct history *history;
	int r = history_open(&memory, boot_id, &history, found);
	if (r < 0) {
		return r;
	}
	do {
		r = history_recover(history);
	} while (r > 0);
	if (r < 0) {
		history_destroy(history);
		return r;
	}
	*ret = history;
	return 0;
}

int history_recover(struct history *history)
{
	return history_pool_recover(&history->pool);
}

void history_destroy(struct history *history)
{
	if (!history) {
		return;
	}
	for (size_t tier = 0; tier < HISTORY_TIERS; tier++) {
		for (size_t i = 0; i < SOURCES_MAX; i++) {
			history_group_destroy_list(&history->pool, &history->groups[tier][i]);
		}
	}
	history_pool_finish(&history->pool);
	free(history);
}

/* Serials start at 0, so that 0 can stand for "none" in the tables of what is bound. */
static uint64_t mark_of(const struct metric *metric)
{
	return (uint64_t)metric->serial + 1;
}

/* A column in each tier. One that failed half way is completed at the next commit. */
static int bind_metric(struct history *history, const struct metric *metric)
{
	struct history_series *series;
	int r = history_names_get(&history->pool, metric->name, metric->unit, &series);
	int tier = metric->full_rate ? HISTORY_FULL : HISTORY_TENS;
	for (; r == 0 && tier < HISTORY_TIERS; tier++) {
		r = history_group_bind(&history->pool, &history->groups[tier][metric->source->id],
			(enum history_tier)tier, series, metric);
	}
	return r;
}

/* Whether the metric is worth a column: a name that a guest made up when it has had a value before,
 * or when history knows it of earlier. */
static bool lasts(struct history *history, const struct metric *metric)
{
	uint64_t mark = mark_of(metric);
	if (!metric->source->guests) {
		return true;
	}
	if (isnan(metric->value) || history->seen[metric->id] == mark) {
		return !isnan(metric->value);
	}
	history->seen[metric->id] = mark;
	return history_names_find(&history->pool, metric->name) != NULL;
}

/* Columns of new metrics, from behind->at on: at most max. */
static void bind_new(
	struct history *history, struct metrics *metrics, const struct source *source, size_t max)
{
	struct history_behind *behind = &history->behind[source->id];
	size_t work = 0;
	for (; behind->at < source->metrics && work < max; behind->at++) {
		const struct metric *metric = metrics_of(metrics, source, behind->at);
		uint64_t mark = mark_of(metric);
		if (history->bound[metric->id] == mark || !lasts(history, metric)) {
			continue;
		}
		int r = bind_metric(history, metric);
		if (r == 0) {
			history->bound[metric->id] = mark;
			work++;
		} else if (history->refused[metric->id] != mark) {
			/* It is tried again at each commit, but counted once. */
			history->refused[metric->id] = mark;
			history->refused_count++;
			work++;
		}
	}
	behind->source = behind->at < source->metrics ? source : NULL;
}

bool history_catch_up(struct history *history, struct metrics *metrics)
{
	for (size_t i = 0; i < SOURCES_MAX; i++) {
		if (history->behind[i].source) {
			bind_new(history, metrics, history->behind[i].source, BINDS);
			return true;
		}
	}
	return false;
}

void history_append(struct history *history, struct metrics *metrics, const struct source *source,
	uint64_t t_ns)
{
	assert(!history->pool.recovery.active);
	if (t_ns > history->pool.newest_ns) {
		history->pool.newest_ns = t_ns;
	}
	history->behind[source->id].at = 0;
	bind_new(history, metrics, source, BINDS_COMMIT);
	unsigned values = 0;
	for (struct history_group *group = history->groups[HISTORY_FULL][source->id].first; group;
		group = group->next) {
		values += history_group_append(&history->pool, group, t_ns);
	}
	for (int tier = HISTORY_TENS; tier < HISTORY_TIERS; tier++) {
		for (struct history_group *group = history->groups[tier][source->id].first; group;
			group = group->next) {
			history_bucket_gather(history, group, t_ns);
		}
	}
	history->rows += values > 0;
	history->samples += values;
}

void history_retire(struct history *history, const struct metric *metric)
{
	uint64_t mark = mark_of(metric);
	bool tried = history->bound[metric->id] == mark || history->refused[metric->id] == mark;
	const struct history_series *series =
		tried ? history_names_known(&history->pool, metric->name, metric->unit) : NULL;
	for (int tier = 0; series && tier < HISTORY_TIERS; tier++) {
		history_group_unbind(&history->groups[tier][metric->source->id],
			(enum history_tier)tier, series);
	}
	history->bound[metric->id] = 0;
	history->refused[metric->id] = 0;
	history->seen[metric->id] = 0;
}

int history_find(struct history *history, const char *name, uint32_t *series)
{
	const struct history_series *found = history_names_find(&history->pool, name);
	if (!found) {
		return -ENOENT;
	}
	*series = found->id;
	return 0;
}

bool history_series(
	const struct history *history, uint32_t series, const char **name, enum unit *unit)
{
	const struct history_series *found = history_names_by_id(&history->pool, series);
	if (found) {
		*name = found->name;
		*unit = found->unit;
	}
	return found != NULL;
}

size_t history_series_count(const struct history *history)
{
	return history->pool.series_count;
}

void history_observe(struct history *history, history_row_observer *observer, void *ctx)
{
	history->pool.observer = observer;
	history->pool.observer_ctx = ctx;
}

/* The next group of the tiers with buckets; NULL at the end. Start with NULL, HISTORY_TENS, 0. */
static struct history_group *next_group(
	struct history *history, struct history_group *group, int *tier, size_t *source)
{
	group = group ? group->next : history->groups[*tier][*source].first;
	while (!group && *tier < HISTORY_TIERS) {
		*source = (*source + 1) % SOURCES_MAX;
		*tier += *source == 0;
		group = *tier < HISTORY_TIERS ? history->groups[*tier][*source].first : NULL;
	}
	return group;
}

void history_flush(struct history *history, uint64_t now_ns, bool last)
{
	int tier = HISTORY_TENS;
	size_t source = 0;
	struct history_group *group = NULL;
	while ((group = next_group(history, group, &tier, &source))) {
		history_bucket_flush(history, group, now_ns, last);
	}
}

void history_open_buckets(struct history *history, history_row_observer *report, void *ctx)
{
	int tier = HISTORY_TENS;
	size_t source = 0;
	struct history_group *group = NULL;
	while ((group = next_group(history, group, &tier, &source))) {
		history_group_report_open(group, report, ctx);
	}
}

bool history_next_series(struct history *history, uint32_t *cursor, uint32_t *series,
	const char **name, enum unit *unit)
{
	const struct history_series *next = history_names_from(&history->pool, *cursor);
	while (next && !history_series_live(next)) {
		next = history_names_from(&history->pool, next->id + 1);
	}
	if (!next) {
		return false;
	}
	*cursor = next->id + 1;
	*series = next->id;
	*name = next->name;
	*unit = next->unit;
	return true;
}

void history_set_archived(struct history *history, uint64_t t_ns)
{
	struct history_header *header = (struct history_header *)(void *)history->pool.data;
	header->archived_ns = t_ns;
	header->archived_check = ~t_ns;
}

uint64_t history_archived_ns(const struct history *history)
{
	const struct history_header *header =
		(const struct history_header *)(const void *)history->pool.data;
	return header->archived_check == ~header->archived_ns ? header->archived_ns : 0;
}

void history_bytes(const struct history *history, size_t *size, size_t *used)
{
	*size = history->pool.size;
	*used = (size_t)history->pool.used * HISTORY_BLOCK;
}

void history_usage(const struct history *history, struct history_usage *ret)
{
	const struct history_pool *pool = &history->pool;
	uint64_t bytes[HISTORY_TIERS] = {0};
	*ret = (struct history_usage){
		.size = pool->size,
		.used = (size_t)pool->used * HISTORY_BLOCK,
		.rows = history->rows,
		.samples = history->samples,
		.evicted_blocks = pool->evicted,
		.refused = history->refused_count,
		.damaged = pool->damaged,
	};
	for (uint32_t i = 0; i < pool->blocks; i++) {
		const struct history_info *info = &pool->info[i];
		if (info->kind != HISTORY_KIND_DATA || info->rows == 0) {
			continue;
		}
		struct history_tier_usage *tier = &ret->tier[info->tier];
		/* What a block that is still written has left is not lost yet. */
		bytes[info->tier] +=
			info->owner
				? HISTORY_BLOCK - history_block_room(info->columns) + info->bytes
				: HISTORY_BLOCK;
		tier->samples += info->samples;
		if (tier->oldest_ns == 0 || info->first_ns < tier->oldest_ns) {
			tier->oldest_ns = info->first_ns;
		}
		ret->newest_ns = info->last_ns > ret->newest_ns ? info->last_ns : ret->newest_ns;
	}
	for (size_t i = 0; i < HISTORY_TIERS; i++) {
		struct history_tier_usage *tier = &ret->tier[i];
		tier->bytes_per_sample =
			tier->samples > 0 ? (double)bytes[i] / (double)tier->samples : NAN;
		if (tier->oldest_ns > 0 &&
			(ret->oldest_ns == 0 || tier->oldest_ns < ret->oldest_ns)) {
			ret->oldest_ns = tier->oldest_ns;
		}
	}
	ret->series = (uint32_t)history_names_live(pool);
}
