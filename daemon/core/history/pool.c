/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: manages the blocks of the pool: taking, giving up, committing, and the lists that lead a
 * reader from block to block of a series. What happens to the bytes is ordered so that a kill at
 * any instruction leaves a pool that the next start reads right. */
#include "daemon/core/history/private.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/crc32c.h"
#include "daemon/util/sysops.h"

struct history_block *history_pool_block(const struct history_pool *pool, uint32_t index)
{
	assert(index < pool->blocks);
	/* Aligned: the pool is, and HISTORY_BLOCK is a power of two. */
	return (struct history_block *)(void *)(pool->data + ((size_t)index + 1) * HISTORY_BLOCK);
}

static size_t payload_offset(unsigned columns)
{
	return sizeof(struct history_block) + columns * sizeof(struct history_column);
}

uint8_t *history_block_payload(struct history_block *block, unsigned columns)
{
	return (uint8_t *)block + payload_offset(columns);
}

size_t history_block_room(unsigned columns)
{
	return HISTORY_BLOCK - payload_offset(columns);
}

uint64_t history_tier_step_ns(enum history_tier tier)
{
	static const uint64_t step_s[HISTORY_TIERS] = {[HISTORY_TENS] = 10, [HISTORY_MINUTES] = 60};
	return step_s[tier] * 1000000000;
}

unsigned history_tier_width(enum history_tier tier)
{
	return tier == HISTORY_FULL ? HISTORY_WIDTH_SAMPLE : HISTORY_WIDTH_BUCKET;
}

/* The age of a block's newest row in the unit of what its tier is meant to reach. A block with one
 * row has no rate: 1 s. */
static double relative_age(const struct history_pool *pool, const struct history_info *info)
{
	static const double target_s[HISTORY_TIERS] = {
		[HISTORY_FULL] = 3600, [HISTORY_TENS] = 86400, [HISTORY_MINUTES] = 7 * 86400};
	if (info->last_ns > pool->newest_ns) {
		return INFINITY; /* from the future: can only be damage */
	}
	double target_ns = target_s[info->tier] * 1e9;
	if (info->tier == HISTORY_FULL && info->rows > 1) {
		target_ns = 3600.0 * (double)(info->last_ns - info->first_ns) / (info->rows - 1);
	}
	return (double)(pool->newest_ns - info->last_ns) / target_ns;
}

static uint32_t oldest_block(const struct history_pool *pool)
{
	uint32_t best = HISTORY_NONE;
	double best_age = -1;
	for (uint32_t i = 0; i < pool->blocks; i++) {
		const struct history_info *info = &pool->info[i];
		if (info->kind != HISTORY_KIND_DATA) {
			continue;
		}
		double age = relative_age(pool, info);
		if (age > best_age) {
			best = i;
			best_age = age;
		}
	}
	return best;
}

bool history_pool_grow(struct history_pool *pool)
{
	struct history_header *header = (struct history_header *)(void *)pool->data;
	const size_t from = pool->grown > 0 ? (pool->grown + 1) * (size_t)HISTORY_BLOCK : 0;
	const size_t length = pool->size - from < HISTORY_STEP ? pool->size - from : HISTORY_STEP;
	const uint32_t before = pool->grown,
		       blocks = (uint32_t)((from + length) / HISTORY_BLOCK) - 1;
	if (before == pool->blocks ||
		(pool->memory.reserve && !pool->memory.reserve(pool->memory.ctx, from, length))) {
		return false;
	}
	pool->grown = blocks < pool->blocks ? blocks : pool->blocks;
	/* A pool of another shape may have been here. */
	for (uint32_t i = before; i < pool->grown; i++) {
		struct history_block *block = history_pool_block(pool, i);
		if (block->kind != HISTORY_KIND_FREE) {
			block->kind = HISTORY_KIND_FREE;
		}
	}
	__atomic_store_n(
		&header->grown, (uint64_t)~pool->grown << 32 | pool->grown, __ATOMIC_RELEASE);
	return true;
}

uint32_t history_pool_take(struct history_pool *pool)
{
	if (pool->used < pool->grown || history_pool_grow(pool)) {
		for (uint32_t i = pool->free_from; i < pool->grown; i++) {
			if (pool->info[i].kind == HISTORY_KIND_FREE) {
				pool->free_from = i;
				return i;
			}
		}
	}
	uint32_t oldest = oldest_block(pool);
	if (oldest != HISTORY_NONE) {
		history_pool_release(pool, oldest);
		pool->evicted++;
	}
	return oldest;
}

static uint32_t place_of(uint32_t index, unsigned column)
{
	return index * HISTORY_COLUMNS + column;
}

static struct history_column *column_at(const struct history_pool *pool, uint32_t place)
{
	return &history_pool_block(pool, place / HISTORY_COLUMNS)->column[place % HISTORY_COLUMNS];
}

/* Takes the block out of the list of one of its series. It is the oldest of them, as a rule. */
static void unlink_place(struct history_pool *pool, uint32_t place)
{
	uint8_t tier = pool->info[place / HISTORY_COLUMNS].tier;
	const struct history_column *column = column_at(pool, place);
	struct history_series *series = history_names_by_id(pool, column->series);
	if (!series) {
		return;
	}
	uint32_t before = HISTORY_NONE;
	uint32_t at = series->head[tier];
	while (at != place) {
		if (at == HISTORY_NONE) {
			return;
		}
		before = at;
		at = column_at(pool, at)->next;
	}
	if (before == HISTORY_NONE) {
		series->head[tier] = column->next;
	} else {
		column_at(pool, before)->next = column->next;
	}
	if (series->tail[tier] == place) {
		series->tail[tier] = before;
	}
	series->blocks--;
}

void history_pool_release(struct history_pool *pool, uint32_t index)
{
	struct history_info *info = &pool->info[index];
	for (unsigned i = 0; info->kind == HISTORY_KIND_DATA && i < info->columns; i++) {
		unlink_place(pool, place_of(index, i));
	}
	if (info->owner) {
		*info->owner = HISTORY_NONE;
	}
	if (info->kind != HISTORY_KIND_FREE) {
		pool->used--;
	}
	pool->free_from = index < pool->free_from ? index : pool->free_from;
	memset(info, 0, sizeof(*info));
	/* Before any byte of the block is written again. */
	__atomic_store_n(
		&history_pool_block(pool, index)->kind, HISTORY_KIND_FREE, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void history_pool_begin(struct history_pool *pool, uint32_t index, enum history_kind kind,
	enum history_tier tier, uint64_t first_ns, struct history_series *const *series,
	unsigned columns)
{
	struct history_block *block = history_pool_block(pool, index);
	struct history_info *info = &pool->info[index];
	assert(info->kind == HISTORY_KIND_FREE && columns <= HISTORY_COLUMNS);
	block->columns = columns;
	block->tier = tier;
	block->first_ns = first_ns;
	for (unsigned i = 0; i < columns; i++) {
		block->column[i].series = series[i]->id;
		block->column[i].next = HISTORY_NONE;
	}
	memset(info, 0, sizeof(*info));
	info->sum = history_block_sum(block, columns);
	block->commit = (uint64_t)info->sum << 32;
	__atomic_store_n(&block->kind, (uint32_t)kind, __ATOMIC_RELEASE);
	info->kind = kind;
	info->columns = (uint8_t)columns;
	info->tier = (uint8_t)tier;
	info->first_ns = first_ns;
	info->last_ns = first_ns;
	pool->used++;
	if (kind == HISTORY_KIND_DATA) {
		history_pool_link(pool, index);
	}
}

uint32_t history_block_sum(const struct history_block *block, unsigned columns)
{
	uint32_t sum = crc32c(0, &block->columns, sizeof(block->columns));
	sum = crc32c(sum, &block->tier, sizeof(block->tier));
	sum = crc32c(sum, &block->first_ns, sizeof(block->first_ns));
	for (unsigned i = 0; i < columns; i++) {
		sum = crc32c(sum, &block->column[i].series, sizeof(block->column[i].series));
	}
	return sum;
}

void history_pool_commit(struct history_pool *pool, uint32_t index, const void *bytes, size_t size)
{
	struct history_block *block = history_pool_block(pool, index);
	struct history_info *info = &pool->info[index];
	assert(info->bytes + size <= history_block_room(info->columns));
	memcpy(history_block_payload(block, info->columns) + info->bytes, bytes, size);
	info->bytes = (uint16_t)(info->bytes + size);
	info->rows++;
	info->sum = crc32c(info->sum, bytes, size);
	__atomic_store_n(&block->commit,
		(uint64_t)info->sum << 32 | (uint32_t)info->rows << 16 | info->bytes,
		__ATOMIC_RELEASE);
}

void history_block_walk(const struct history_pool *pool, uint32_t index, struct history_walk *walk)
{
	const struct history_info *info = &pool->info[index];
	history_walk_start(walk,
		history_block_payload(history_pool_block(pool, index), info->columns), info->bytes,
		info->rows, info->first_ns,
		info->columns * history_tier_width((enum history_tier)info->tier));
}

void history_pool_link(struct history_pool *pool, uint32_t index)
{
	struct history_block *block = history_pool_block(pool, index);
	uint8_t tier = pool->info[index].tier;
	for (unsigned i = 0; i < pool->info[index].columns; i++) {
		struct history_series *series = history_names_by_id(pool, block->column[i].series);
		uint32_t place = place_of(index, i);
		block->column[i].next = HISTORY_NONE;
		/* A block that names a series twice keeps the first. */
		if (!series || (series->tail[tier] != HISTORY_NONE &&
				       series->tail[tier] / HISTORY_COLUMNS == index)) {
			continue;
		}
		if (series->tail[tier] == HISTORY_NONE) {
			series->head[tier] = place;
		} else {
			column_at(pool, series->tail[tier])->next = place;
		}
		series->tail[tier] = place;
		series->blocks++;
	}
}

static int compare_by_time(const void *a, const void *b)
{
	const struct history_ordered *x = a;
	const struct history_ordered *y = b;
	if (x->first_ns != y->first_ns) {
		return x->first_ns < y->first_ns ? -1 : 1;
	}
	return x->index < y->index ? -1 : x->index > y->index;
}

int history_pool_order(const struct history_pool *pool, struct history_ordered **ret, size_t *count)
{
	struct history_ordered *order = mem_calloc(pool->blocks, sizeof(*order));
	if (!order) {
		return -ENOMEM;
	}
	*count = 0;
	for (uint32_t i = 0; i < pool->blocks; i++) {
		if (pool->info[i].kind == HISTORY_KIND_DATA) {
			order[(*count)++] = (struct history_ordered){pool->info[i].first_ns, i};
		}
	}
	qsort(order, *count, sizeof(*order), compare_by_time);
	*ret = order;
	return 0;
}
