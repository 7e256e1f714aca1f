/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h: declares the internals of history, shared by all files of this folder but row.c: the
 * pool, its dictionary, the writers of rows.
 *
 * The pool of history: its layout, which block holds what, and who comes next when it is full.
 *
 *   offset 0        struct history_header, alone in the first HISTORY_BLOCK bytes
 *   from there on   blocks of HISTORY_BLOCK bytes: struct history_block, its columns, payload
 *
 * kind says what a block is; it is written last when a block is taken and first when it is given
 * up. commit = sum << 32 | rows << 16 | payload bytes, in one store: what lies behind is not there.
 * The sum is the CRC-32C of what the block is (columns, tier, first_ns, its series) and of the
 * payload: at a start a block with a wrong one is given up. Rows (row.h) are the payload of
 * data blocks; dictionary blocks hold entries { u32 series, u8 unit, u8 length, u32 CRC-32C of the
 * others, bytes of the name }. Series numbers start at 1 and are not used again.
 * Everything in host byte order: the file lives as long as the boot.
 *
 * All that is looked up often is kept outside the pool in plain memory, and rebuilt at start from
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

enum { HISTORY_VERSION = 5, HISTORY_SERIES_MAX = 4 * METRICS_MAX };

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
	/* Blocks that are reserved, in the high half inverted. Anything else: all are. */
	uint64_t grown;
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
 * four in a bucket's; all null when it had none. */

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

struct history_ordered {
	uint64_t first_ns;
	uint32_t index;
};

/* How far the recovery is: blocks are scanned in the order of the pool, then linked in that of
 * time. */
struct history_recovery {
	bool active;
	uint32_t scanned;
	struct history_ordered *order; /* NULL: not all are scanned */
	size_t count, linked;
};

struct history_pool {
	uint8_t *data;
	size_t size;
	struct history_memory memory;
	uint32_t blocks; /* at the limit */
	uint32_t grown;	 /* of them reserved: those beyond are not touched */
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

	struct history_recovery recovery;

	history_row_observer *observer; /* of buckets that are written */
	void *observer_ctx;
};

/* Formats the pool unless it is ours. -EINVAL, -ENOSPC, -ENOMEM as history_open. */
int history_pool_init(struct history_pool *pool, const struct history_memory *memory,
	const uint8_t boot_id[16], enum history_found *found);
/* Recovers what is in it, as history_recover. */
int history_pool_recover(struct history_pool *pool);
void history_pool_finish(struct history_pool *pool);

struct history_block *history_pool_block(const struct history_pool *pool, uint32_t index);

/* Values of a metric in a row of the tier. */
unsigned history_tier_width(enum history_tier tier);

/* Payload of a block with that many columns: its start, and how many bytes fit. */
uint8_t *history_block_payload(struct history_block *block, unsigned columns);
size_t history_block_room(unsigned columns);

/* Reserves the next step. False at the limit, and when it is refused. */
bool history_pool_grow(struct history_pool *pool);

/* A free block, by growth or eviction when there is none; it is kind free. HISTORY_NONE when all
 * blocks hold names. */
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

/* The rows of a data block. */
void history_block_walk(const struct history_pool *pool, uint32_t index, struct history_walk *walk);

/* Makes the block the newest of its columns' series. */
void history_pool_link(struct history_pool *pool, uint32_t index);

/* The data blocks, oldest first. -ENOMEM; *ret is the caller's to free. */
int history_pool_order(
	const struct history_pool *pool, struct history_ordered **ret, size_t *count);

/* ---- names.c: series and their names: the dictionary blocks of the pool and the table made from
 * them. The dictionary takes at most an eighth of the blocks; when it is full, names that no block
 * and no writer uses are dropped. ---- */

/* Numbers near the end can only be damage; they must not use up what is left of the numbers. */
#define HISTORY_ID_LIMIT UINT32_C(0xfff00000)

/* Reads a dictionary block at start. Entries behind damage are lost. -ENOMEM. */
int history_names_load(struct history_pool *pool, uint32_t index);

/* To be called once after the last history_names_load: puts series in order, drops doubles.
 * -ENOMEM. */
int history_names_loaded(struct history_pool *pool);

/* Finds or adds the series of a name with this unit. -ENOSPC: the dictionary is full of names in
 * use; -ENOMEM. */
int history_names_get(
	struct history_pool *pool, const char *name, enum unit unit, struct history_series **ret);

/* The series of a name with this unit. NULL when there is none. */
struct history_series *history_names_known(
	const struct history_pool *pool, const char *name, enum unit unit);

/* The newest series of the name that has rows or a writer. NULL when there is none. */
struct history_series *history_names_find(const struct history_pool *pool, const char *name);

struct history_series *history_names_by_id(const struct history_pool *pool, uint32_t id);

/* The first series with an id >= id, or NULL. */
struct history_series *history_names_from(const struct history_pool *pool, uint32_t id);

/* The number of those that are live. */
size_t history_names_live(const struct history_pool *pool);

void history_names_finish(struct history_pool *pool);

/* Has rows or a writer: answers show it, compaction keeps it. */
bool history_series_live(const struct history_series *series);

/* ---- group.c: writers of history. A group is the metrics of one source that share a time column
 * in one tier, at most HISTORY_COLUMNS values a row, and the block that takes their rows now. A
 * metric that is new goes to a group with a free column. A block's columns never change: what is in
 * it is moved to a wider one, unless it is nearly full. The column of a retired metric is kept
 * (null) until its place is needed, so that one that comes back costs nothing. A group of buckets
 * gathers samples and writes a row when the bucket is over. ---- */

struct history_bucket {
	double min, max, sum;
	uint32_t count;
};

struct history_group_column {
	struct history_series *series;
	const struct metric *metric;  /* NULL: retired */
	struct history_bucket bucket; /* of tiers with buckets */
	uint64_t since_ns;	      /* of the first sample that went into one; 0 = none yet */
};

struct history_list;

struct history_group {
	struct history_group *next; /* of the same source and tier */
	struct history_list *list;
	struct history_group *next_room; /* of those with room; only while has_room */
	bool has_room;
	unsigned gone; /* columns whose metric is retired */
	enum history_tier tier;
	uint32_t block;	 /* HISTORY_NONE: the next row opens one */
	uint32_t narrow; /* its rows go to the next block that is opened; HISTORY_NONE */
	struct history_row_state state;
	uint64_t bucket_ns; /* start of the bucket that is filled */
	bool gathers;	    /* there is one */
	uint64_t born_ns;   /* when gathering began */
	bool behind;	    /* samples of an earlier process may be in no bucket yet */
	unsigned columns;
	struct history_group_column column[];
};

/* The groups of a source in a tier, and which of them may have a place for one more column. */
struct history_list {
	struct history_group *first, *last;
	struct history_group *room;
};

/* Gives the metric, whose series this is, a column in one of the groups. Constant time, apart from
 * what the next row has to move. -ENOMEM. */
int history_group_bind(struct history_pool *pool, struct history_list *list, enum history_tier tier,
	struct history_series *series, const struct metric *metric);

/* Forgets the pointer to a metric that goes away. Constant time. */
void history_group_unbind(
	struct history_list *list, enum history_tier tier, const struct history_series *series);

/* Its buckets were written: columns of retired metrics are free from then on. */
void history_group_settled(struct history_group *group);

/* Writes what the group holds (its metrics as they stand; its bucket) as a row, unless all are null
 * or the time is not after the last row's. The number of values written. */
unsigned history_group_append(
	struct history_pool *pool, struct history_group *group, uint64_t t_ns);

/* Reports the bucket that is filled now. */
void history_group_report_open(
	const struct history_group *group, history_row_observer *report, void *ctx);

/* Reports a row's buckets, of a block or group whose columns have these series. */
void history_report_row(const struct history_row *row, enum history_tier tier,
	const uint32_t *series, unsigned columns, history_row_observer *report, void *ctx);

void history_group_destroy_list(struct history_pool *pool, struct history_list *list);

/* A source whose last commit had more new metrics than it may make columns for. */
struct history_behind {
	const struct source *source; /* NULL: it had not */
	size_t at;		     /* the next of its metrics */
};

struct history {
	struct history_pool pool;
	struct history_behind behind[SOURCES_MAX];
	struct history_list groups[HISTORY_TIERS][SOURCES_MAX];
	/* By slot of the metric: serial + 1 of the one that has a column or whose name did not fit;
	 * 0 = none. */
	uint64_t bound[METRICS_MAX];
	uint64_t refused[METRICS_MAX];
	/* the same of one that had a value once: a name that guests make up has a column from its
	 * second on */
	uint64_t seen[METRICS_MAX];
	uint64_t refused_count;
	uint64_t rows, samples;
};

/* read.c: history_read from the samples only: a coarser tier is made of it. */
size_t history_read_full(struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, bool *done);

/* ---- bucket.c: what a group of a tier with buckets does at each commit ---- */

/* Adds the metrics as they stand to the group's bucket; one that is over is written first. Before
 * the first complete one after a restart is written, the buckets since the last written row are
 * rebuilt from the samples. */
void history_bucket_gather(struct history *history, struct history_group *group, uint64_t t_ns);

/* The same without a sample: a bucket that is over is written. last: see history_flush. */
void history_bucket_flush(
	struct history *history, struct history_group *group, uint64_t now_ns, bool last);
