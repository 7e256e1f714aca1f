/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: keeps the dictionary: numbers of series for names, kept in the pool so that past values
 * can be asked for by name after a restart, and a table in memory to look them up. */
#include "daemon/core/history/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/crc32c.h"
#include "daemon/util/index.h"
#include "daemon/util/sysops.h"
#include "proto/name.h"

enum {
	ENTRY_SUM = 6,	 /* u32 series, u8 unit, u8 length stand before */
	ENTRY_HEAD = 10, /* u32 sum */
	ENTRY_MAX = ENTRY_HEAD + 255,
};

static uint32_t sum_of(const uint8_t *entry, size_t length)
{
	return crc32c(crc32c(0, entry, ENTRY_SUM), entry + ENTRY_HEAD, length);
}

bool history_series_live(const struct history_series *series)
{
	return series->blocks > 0 || series->bound[HISTORY_FULL] > 0 ||
	       series->bound[HISTORY_TENS] > 0 || series->bound[HISTORY_MINUTES] > 0;
}

struct wanted {
	const char *name;
	enum unit unit;
};

static bool is_wanted(const void *table, uint32_t slot, const void *key)
{
	const struct history_series *series = ((const struct history_pool *)table)->series[slot];
	const struct wanted *wanted = key;
	return series->unit == wanted->unit && strcmp(series->name, wanted->name) == 0;
}

/* Places have changed. Without memory for all, names are refused and not found: nothing is lost. */
static int index_all(struct history_pool *pool)
{
	index_finish(&pool->names);
	int r = index_reserve(&pool->names, pool->series_count);
	for (size_t i = 0; r == 0 && i < pool->series_count; i++) {
		r = index_add(&pool->names, hash_text(pool->series[i]->name), (uint32_t)i);
	}
	return r;
}

/* Makes room in the table and a series that is not in it yet. */
static int new_series(struct history_pool *pool, uint32_t id, enum unit unit, const char *name,
	size_t length, struct history_series **ret)
{
	struct history_series **table =
		mem_grown(pool->series, pool->series_count, &pool->series_capacity, sizeof(*table));
	if (!table) {
		return -ENOMEM;
	}
	pool->series = table;
	struct history_series *series = mem_zalloc(sizeof(*series) + length + 1);
	if (!series) {
		return -ENOMEM;
	}
	series->id = id;
	series->unit = unit;
	for (size_t tier = 0; tier < HISTORY_TIERS; tier++) {
		series->head[tier] = HISTORY_NONE;
		series->tail[tier] = HISTORY_NONE;
	}
	memcpy(series->name, name, length);
	*ret = series;
	return 0;
}

/* The name of an entry, when the entry is whole. */
static bool read_entry(const uint8_t *entry, size_t length, char name[256])
{
	uint32_t id, sum;
	memcpy(&id, entry, sizeof(id));
	memcpy(&sum, entry + ENTRY_SUM, sizeof(sum));
	memcpy(name, entry + ENTRY_HEAD, length);
	name[length] = '\0';
	return sum == sum_of(entry, length) && id > 0 && id < HISTORY_ID_LIMIT &&
	       entry[4] < UNIT_COUNT_OF_UNITS && strlen(name) == length &&
	       length < PROTO_PATH_SIZE && proto_path_valid(name);
}

int history_names_load(struct history_pool *pool, uint32_t index)
{
	struct history_block *block = history_pool_block(pool, index);
	struct history_info *info = &pool->info[index];
	const uint64_t commit = __atomic_load_n(&block->commit, __ATOMIC_ACQUIRE);
	const uint32_t rows = commit >> 16 & 0xffff;
	const uint8_t *entry = history_block_payload(block, 0);
	size_t left = commit & 0xffff;
	uint32_t bad = 0;
	info->sum = (uint32_t)(commit >> 32);
	if (left > history_block_room(0)) {
		left = history_block_room(0);
	}
	while (left > ENTRY_HEAD && info->rows < rows && left >= ENTRY_HEAD + (size_t)entry[5]) {
		char name[256];
		size_t length = entry[5];
		struct history_series *series;
		bool good =
			pool->series_count < HISTORY_SERIES_MAX && read_entry(entry, length, name);
		if (good) {
			uint32_t id;
			memcpy(&id, entry, sizeof(id));
			int r = new_series(pool, id, (enum unit)entry[4], name, length, &series);
			if (r < 0) {
				return r;
			}
			series->names_block = index;
			pool->series[pool->series_count++] = series;
		}
		bad += !good;
		entry += ENTRY_HEAD + length;
		left -= ENTRY_HEAD + length;
		info->bytes = (uint16_t)(info->bytes + ENTRY_HEAD + length);
		info->rows++;
	}
	pool->damaged += bad > 0 || left > 0 || info->rows != rows;
	if (bad == 0 && left == 0 && info->rows == rows) {
		pool->names_open = index;
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct history_series *x = *(struct history_series *const *)a;
	const struct history_series *y = *(struct history_series *const *)b;
	return x->id < y->id ? -1 : x->id > y->id;
}

int history_names_loaded(struct history_pool *pool)
{
	size_t kept = 0;
	if (pool->series_count > 0) {
		qsort(pool->series, pool->series_count, sizeof(pool->series[0]), compare_ids);
	}
	for (size_t i = 0; i < pool->series_count; i++) {
		struct history_series *series = pool->series[i];
		/* A compaction that was killed leaves an entry twice. */
		if (kept > 0 && pool->series[kept - 1]->id == series->id) {
			free(series);
			continue;
		}
		pool->series[kept++] = series;
		if (series->id >= pool->next_id) {
			pool->next_id = series->id + 1;
		}
	}
	pool->series_count = kept;
	return index_all(pool);
}

/* Writes the series' entry to the open dictionary block, or a new one while there may be more. */
static int write_entry(struct history_pool *pool, struct history_series *series, uint32_t limit)
{
	uint8_t entry[ENTRY_MAX];
	size_t length = strlen(series->name);
	memcpy(entry, &series->id, sizeof(series->id));
	entry[4] = (uint8_t)series->unit;
	entry[5] = (uint8_t)length;
	memcpy(entry + ENTRY_HEAD, series->name, length);
	uint32_t sum = sum_of(entry, length);
	memcpy(entry + ENTRY_SUM, &sum, sizeof(sum));
	size_t size = ENTRY_HEAD + length;
	if (pool->names_open == HISTORY_NONE ||
		pool->info[pool->names_open].bytes + size > history_block_room(0)) {
		if (pool->names_blocks >= limit) {
			return -ENOSPC;
		}
		uint32_t index = history_pool_take(pool);
		if (index == HISTORY_NONE) {
			return -ENOSPC;
		}
		history_pool_begin(pool, index, HISTORY_KIND_NAMES, HISTORY_FULL, 0, NULL, 0);
		pool->names_open = index;
		pool->names_blocks++;
	}
	history_pool_commit(pool, pool->names_open, entry, size);
	series->names_block = pool->names_open;
	return 0;
}

/* Moves the block's entries of those series that are live to new blocks. */
static bool move_entries(struct history_pool *pool, uint32_t block)
{
	for (size_t i = 0; i < pool->series_count; i++) {
		struct history_series *series = pool->series[i];
		if (series->names_block == block && history_series_live(series) &&
			write_entry(pool, series, UINT32_MAX) < 0) {
			return false;
		}
	}
	return true;
}

size_t history_names_live(const struct history_pool *pool)
{
	size_t count = 0;
	for (size_t i = 0; i < pool->series_count; i++) {
		count += history_series_live(pool->series[i]);
	}
	return count;
}

/* Copies the entries of live series, block by block, to new blocks; a block is given up only when
 * all its entries are elsewhere, so a kill loses no name. True when a name was dropped. */
static bool compact(struct history_pool *pool)
{
	size_t count = pool->series_count;
	if (history_names_live(pool) == count) {
		return false;
	}
	for (uint32_t b = 0; b < pool->blocks; b++) {
		pool->info[b].moving = pool->info[b].kind == HISTORY_KIND_NAMES;
	}
	pool->names_open = HISTORY_NONE;
	for (uint32_t b = 0; b < pool->blocks; b++) {
		if (pool->info[b].moving && move_entries(pool, b)) {
			history_pool_release(pool, b);
			pool->names_blocks--;
		}
	}
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (history_series_live(pool->series[i])) {
			pool->series[kept++] = pool->series[i];
		} else {
			free(pool->series[i]);
		}
	}
	pool->series_count = kept;
	return index_all(pool) == 0;
}

struct history_series *history_names_known(
	const struct history_pool *pool, const char *name, enum unit unit)
{
	const struct wanted wanted = {name, unit};
	uint32_t slot = index_find(&pool->names, hash_text(name), is_wanted, pool, &wanted);
	return slot == INDEX_NONE ? NULL : pool->series[slot];
}

int history_names_get(
	struct history_pool *pool, const char *name, enum unit unit, struct history_series **ret)
{
	struct history_series *known = history_names_known(pool, name, unit);
	if (known) {
		*ret = known;
		return 0;
	}
	if (pool->names_full_at == pool->evicted + 1 || pool->next_id >= HISTORY_ID_LIMIT) {
		return -ENOSPC;
	}
	uint32_t limit = (pool->blocks + 7) / 8;
	if (pool->series_count == HISTORY_SERIES_MAX && !compact(pool)) {
		pool->names_full_at = pool->evicted + 1;
		return -ENOSPC;
	}
	struct history_series *series;
	int r = index_reserve(&pool->names, pool->series_count + 1);
	r = r < 0 ? r : new_series(pool, pool->next_id, unit, name, strlen(name), &series);
	if (r < 0) {
		return r;
	}
	r = write_entry(pool, series, limit);
	if (r < 0 && compact(pool)) {
		r = write_entry(pool, series, limit);
	}
	if (r < 0) {
		pool->names_full_at = pool->evicted + 1;
		free(series);
		return r;
	}
	pool->next_id++;
	r = index_add(&pool->names, hash_text(name), (uint32_t)pool->series_count);
	if (r < 0) { /* compact() gave the reserved place up: the entry is of no series */
		free(series);
		return r;
	}
	pool->series[pool->series_count++] = series;
	*ret = series;
	return 0;
}

struct search {
	const char *name;
	struct history_series *best;
};

/* Goes through all of the name and keeps the newest that is live. */
static bool look(const void *table, uint32_t slot, const void *key)
{
	struct history_series *series = ((const struct history_pool *)table)->series[slot];
	struct search *search = *(struct search *const *)key;
	if (history_series_live(series) && strcmp(series->name, search->name) == 0 &&
		(!search->best || series->id > search->best->id)) {
		search->best = series;
	}
	return false;
}

struct history_series *history_names_find(const struct history_pool *pool, const char *name)
{
	struct search search = {.name = name};
	struct search *key = &search;
	index_find(&pool->names, hash_text(name), look, pool, &key);
	return search.best;
}

struct history_series *history_names_from(const struct history_pool *pool, uint32_t id)
{
	size_t low = 0;
	size_t high = pool->series_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (pool->series[middle]->id < id) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < pool->series_count ? pool->series[low] : NULL;
}

struct history_series *history_names_by_id(const struct history_pool *pool, uint32_t id)
{
	struct history_series *series = history_names_from(pool, id);
	return series && series->id == id ? series : NULL;
}

void history_names_finish(struct history_pool *pool)
{
	for (size_t i = 0; i < pool->series_count; i++) {
		free(pool->series[i]);
	}
	free(pool->series);
	index_finish(&pool->names);
	pool->series = NULL;
	pool->series_count = 0;
}
