/*
 * The pool of history: its layout, which block holds what, and who comes next when it is full.
 *
 *   offset 0        struct history_header, alone in the first HISTORY_BLOCK bytes
 *   from there on   blocks of HISTORY_BLOCK bytes: struct history_block, its columns, payload
 *
 * kind says what a block is; it is written last when a block is taken and first when it is given
 * up. commit = sum << 32 | rows << 16 | payload bytes, in one store: what lies behind is not there.
 * The sum is the CRC-32C of what the block is (columns, tier, first_ns, its series) and of the
 * payload: at a start a block with a wrong one is given up. Rows (history_row.h) are the payload of
 * data blocks; dictionary blocks hold entries { u32 series, u8 unit, u8 length, u32 CRC-32C of the
 * others, bytes of the name }. Series numbers start at 1 and are not used again.
 * Everything in host byte order: the file lives as long as the boot.
 *
 * All that is looked up often is kept beside the pool in plain memory and made anew at start from
 * whatever bytes are there; only series and next of the columns are used in place, summed or
 * rewritten by the scan.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/history/history.h"
#include "daemon/core/history/row.h"
#include "daemon/util/index.h"
#include "daemon/util/runfile.h"

#define HISTORY_NONE UINT32_MAX

enum { HISTORY_VERSION = 4, HISTORY_SERIES_MAX = 4 * METRICS_MAX };

enum history_kind {
	HISTORY_KIND_FREE = 0,
	HISTORY_KIND_DATA = 0x41544144,	 /* "DATA" */
	HISTORY_KIND_NAMES = 0x454d414e, /* "NAME" */
};

/* shape: version, page size, block size, hash of the units' quanta (values mean nothing without
 * them). */
struct history_header {
	struct runhead head;
	/* Up to here the archive has all (archive_continue.c); twice, the second time inverted. */
	uint64_t archived_ns, archived_check;
};

struct history_column {
	uint32_t series; /* its name may be lost */
	uint32_t next;	 /* place of the series' next block; HISTORY_NONE = this is the newest */
};

struct history_block {
	uint32_t kind;
	uint32_t columns; /* metrics; 0 in dictionary blocks */
	uint64_t commit;
	uint64_t first_ns;
	uint32_t tier;
	uint32_t reserved;
	struct history_column column[];
};

/* A place is block * HISTORY_COLUMNS + column. A metric has one value in a row of full rate, and
 * four in a bucket's: mean, mean - min, max - mean, count; all null when it had none. The means of
 * all metrics come first in the row, then the distances, last the counts, which seldom change. */

struct history_group;

struct history_series {
	uint32_t id;
	enum unit unit;
	/* places of the oldest and the newest block of each tier */
	uint32_t head[HISTORY_TIERS], tail[HISTORY_TIERS];
	uint32_t blocks;      /* that hold it */
	uint32_t names_block; /* where its dictionary entry is */
	/* columns of groups that write it, and the group of the newest; history_group.c */
	uint16_t bound[HISTORY_TIERS];
	struct history_group *group[HISTORY_TIERS];
	char name[];
};

/* What is known of a block. */
struct history_info {
	uint64_t first_ns, last_ns;
	uint32_t kind;
	uint32_t samples; /* values or buckets that are not null */
	uint32_t sum;	  /* that commit has */
	uint16_t rows, bytes;
	uint8_t columns, tier;
	bool closed;	 /* full: never written again */
	bool moving;	 /* dictionary block that is being compacted */
	uint32_t *owner; /* the writer's variable that names this block; NULL = none writes */
};

struct history_pool {
	uint8_t *data;
	size_t size;
	uint32_t blocks;
	struct history_info *info;
	uint64_t newest_ns; /* of any row appended; times beyond come from damage */
	uint64_t evicted;
	uint32_t used;
	uint32_t damaged;   /* blocks and names that the scan did not believe */
	uint32_t free_from; /* no block below is free */

	struct history_series **series; /* in the order of id */
	size_t series_count, series_capacity;
	struct index names; /* of places in series */
	uint32_t next_id;
	uint32_t names_open; /* dictionary block that has room; HISTORY_NONE */
	uint32_t names_blocks;
	uint64_t names_full_at; /* evicted + 1 when compaction found nothing to drop; 0 */

	history_row_observer *observer; /* of buckets that are written */
	void *observer_ctx;
};

/* Formats the pool or scans what is in it. -EINVAL, -ENOMEM as history_create. */
int history_pool_init(struct history_pool *pool, void *data, size_t size, const uint8_t boot_id[16],
	enum history_found *found);
void history_pool_finish(struct history_pool *pool);

struct history_block *history_pool_block(const struct history_pool *pool, uint32_t index);

/* Values of a metric in a row of the tier. */
unsigned history_tier_width(enum history_tier tier);

/* Payload of a block with so many columns: its start, and how many bytes fit. */
uint8_t *history_block_payload(struct history_block *block, unsigned columns);
size_t history_block_room(unsigned columns);

/* A free block, by eviction when there is none; it is kind free. HISTORY_NONE when all blocks hold
 * names. */
uint32_t history_pool_take(struct history_pool *pool);
/* Gives a block back. A data block's series forget it, its owner's variable becomes HISTORY_NONE.
 */
void history_pool_release(struct history_pool *pool, uint32_t index);

/* Makes a taken block one of the kind. */
void history_pool_begin(struct history_pool *pool, uint32_t index, enum history_kind kind,
	enum history_tier tier, uint64_t first_ns, struct history_series *const *series,
	unsigned columns);

/* The sum of what the block is, before any payload. */
uint32_t history_block_sum(const struct history_block *block, unsigned columns);

/* Publishes size bytes behind what is committed (they fit: the caller has checked), as one row. */
void history_pool_commit(struct history_pool *pool, uint32_t index, const void *bytes, size_t size);

/* Makes the block the newest of its columns' series. */
void history_pool_link(struct history_pool *pool, uint32_t index);

/* The data blocks, oldest first. -ENOMEM; *ret is the caller's to free. */
int history_pool_order(const struct history_pool *pool, uint32_t **ret, size_t *count);
