/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: decides at start whether the pool is ours, and which of its blocks can be trusted.
 * Nothing in it is taken on faith: a block is read once from end to end, and what does not decode
 * is dropped. */
#include "daemon/core/history/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/crc32c.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"

#define HISTORY_MAGIC UINT64_C(0x3279726f74736968) /* "history2" */

static uint32_t hash_quanta(void)
{
	uint32_t hash = FNV32_BASIS;
	for (int unit = 0; unit < UNIT_COUNT_OF_UNITS; unit++) {
		double quantum = unit_quantum((enum unit)unit);
		hash = fnv32(hash, &quantum, sizeof(quantum));
	}
	return hash;
}

static struct runhead header_of_now(size_t size, const uint8_t boot_id[16])
{
	const uint32_t shape[] = {
		HISTORY_VERSION, (uint32_t)sysconf(_SC_PAGESIZE), HISTORY_BLOCK, hash_quanta()};
	return runhead_of(HISTORY_MAGIC, size, shape, sizeof(shape) / sizeof(shape[0]), boot_id);
}

/* The first step is there already. */
static void format(struct history_pool *pool, const struct runhead *wanted)
{
	struct history_header *header = (struct history_header *)(void *)pool->data;
	runhead_clear(header);
	pool->grown = 0;
	(void)history_pool_grow(pool);
	header->archived_ns = header->archived_check = 0;
	runhead_write(header, wanted);
}

/* Reserves again what an earlier process had: its word is not proof. */
static int regrow(struct history_pool *pool)
{
	const struct history_header *header =
		(const struct history_header *)(const void *)pool->data;
	const uint32_t blocks = (uint32_t)header->grown;
	const bool valid = header->grown >> 32 == (uint32_t)~blocks && blocks <= pool->blocks;
	pool->grown = valid ? blocks : pool->blocks;
	const size_t bytes = pool->grown == pool->blocks
				     ? pool->size
				     : (pool->grown + 1) * (size_t)HISTORY_BLOCK;
	return !pool->memory.reserve || pool->memory.reserve(pool->memory.ctx, 0, bytes) ? 0
											 : -ENOSPC;
}

/* The numbers of its series are never given to others. */
static void keep_numbers(struct history_pool *pool, const struct history_block *block)
{
	for (unsigned i = 0; i < block->columns; i++) {
		uint32_t id = block->column[i].series;
		if (id >= pool->next_id && id < HISTORY_ID_LIMIT) {
			pool->next_id = id + 1;
		}
	}
}

/* Reads all rows of a data block. False when there is nothing of use in it; *damaged when there
 * was. */
static bool scan_data(struct history_pool *pool, uint32_t index, bool *damaged)
{
	struct history_block *block = history_pool_block(pool, index);
	struct history_info *info = &pool->info[index];
	const uint64_t commit = __atomic_load_n(&block->commit, __ATOMIC_ACQUIRE);
	const size_t bytes = commit & 0xffff, rows = commit >> 16 & 0xffff;
	const uint32_t columns = block->columns, tier = block->tier;
	*damaged = true;
	if (tier >= HISTORY_TIERS || columns == 0 ||
		columns > HISTORY_COLUMNS / history_tier_width(tier) ||
		bytes > history_block_room(columns)) {
		return false;
	}
	info->sum = crc32c(
		history_block_sum(block, columns), history_block_payload(block, columns), bytes);
	if (info->sum != commit >> 32) {
		return false;
	}
	info->first_ns = block->first_ns;
	info->rows = (uint16_t)rows;
	info->bytes = (uint16_t)bytes;
	info->columns = (uint8_t)columns;
	info->tier = (uint8_t)tier;
	struct history_walk walk;
	history_block_walk(pool, index, &walk);
	while (history_walk_next(&walk)) {
		const unsigned values = walk.state.columns;
		uint64_t mask = values == 64 ? UINT64_MAX : (UINT64_C(1) << values) - 1;
		info->samples += (uint32_t)__builtin_popcountll(~walk.state.last.nulls & mask) /
				 history_tier_width(tier);
	}
	*damaged = walk.bad;
	if (*damaged || rows == 0) {
		return false;
	}
	info->last_ns = walk.state.last.t_ns;
	keep_numbers(pool, block);
	return true;
}

/* Chains the block to those of its series; gives it up when no name of them is known. */
static void link_block(struct history_pool *pool, uint32_t index)
{
	const struct history_block *block = history_pool_block(pool, index);
	bool known = false;
	history_pool_link(pool, index);
	for (unsigned k = 0; k < pool->info[index].columns && !known; k++) {
		known = history_names_by_id(pool, block->column[k].series);
	}
	if (!known) {
		history_pool_release(pool, index);
	}
}

static int scan_block(struct history_pool *pool, uint32_t i)
{
	struct history_block *block = history_pool_block(pool, i);
	uint32_t kind = __atomic_load_n(&block->kind, __ATOMIC_ACQUIRE);
	bool good = false, damaged = kind != HISTORY_KIND_FREE;
	if (kind == HISTORY_KIND_NAMES && pool->names_blocks < (pool->blocks + 7) / 8 + 1) {
		int r = history_names_load(pool, i);
		if (r < 0) {
			return r;
		}
		pool->names_blocks++;
		good = true;
		damaged = false;
	} else if (kind == HISTORY_KIND_DATA) {
		good = scan_data(pool, i, &damaged);
	}
	pool->damaged += damaged;
	if (good) {
		pool->info[i].kind = kind;
		pool->used++;
	} else {
		memset(&pool->info[i], 0, sizeof(pool->info[i]));
		if (kind != HISTORY_KIND_FREE) {
			block->kind = HISTORY_KIND_FREE;
		}
	}
	return 0;
}

int history_pool_recover(struct history_pool *pool)
{
	struct history_recovery *at = &pool->recovery;
	int r = 0;
	if (!at->active) {
		return 0;
	}
	if (at->scanned < pool->grown) {
		r = scan_block(pool, at->scanned);
		at->scanned++;
	} else if (!at->order) {
		r = history_names_loaded(pool);
		r = r < 0 ? r : history_pool_order(pool, &at->order, &at->count);
	} else if (at->linked < at->count) {
		link_block(pool, at->order[at->linked].index);
		at->linked++;
	} else {
		free(at->order);
		*at = (struct history_recovery){0};
	}
	return r < 0 ? r : at->active;
}

int history_pool_init(struct history_pool *pool, const struct history_memory *memory,
	const uint8_t boot_id[16], enum history_found *found)
{
	const size_t size = memory->size;
	if (size < HISTORY_MIN_POOL || (uintptr_t)memory->data % sizeof(uint64_t) != 0) {
		return -EINVAL;
	}
	memset(pool, 0, sizeof(*pool));
	pool->memory = *memory;
	size_t blocks = size / HISTORY_BLOCK - 1;
	/* A place has 32 bits. */
	pool->blocks = blocks < (UINT32_MAX - 1) / HISTORY_COLUMNS
			       ? (uint32_t)blocks
			       : (UINT32_MAX - 1) / HISTORY_COLUMNS;
	pool->data = memory->data;
	pool->size = size;
	pool->next_id = 1;
	pool->names_open = HISTORY_NONE;
	pool->info = mem_calloc(pool->blocks, sizeof(*pool->info));
	if (!pool->info) {
		return -ENOMEM;
	}
	if (memory->reserve && !memory->reserve(memory->ctx, 0, HISTORY_STEP)) {
		return -ENOSPC;
	}
	const struct runhead wanted = header_of_now(size, boot_id);
	switch (runhead_look(pool->data, &wanted)) {
	case RUNHEAD_OURS:
		*found = HISTORY_FOUND_OLD;
		pool->recovery.active = true;
		return regrow(pool);
	case RUNHEAD_NOTHING:
		*found = HISTORY_FOUND_NOTHING;
		break;
	case RUNHEAD_OTHER:
		*found = HISTORY_FOUND_OTHER;
		break;
	case RUNHEAD_DAMAGED:
		*found = HISTORY_FOUND_DAMAGED;
		break;
	}
	format(pool, &wanted);
	return 0;
}

void history_pool_finish(struct history_pool *pool)
{
	history_names_finish(pool);
	free(pool->recovery.order);
	free(pool->info);
	pool->info = NULL;
}
