/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h: keeps past values within a byte budget. The pool is one block of memory that the store
 * provides (a mapped file in the run directory, so that it survives kill -9 and restarts; or plain
 * memory); this part only writes and reads its bytes.
 *
 * Tiers: every sample (3600 of them are the target), buckets of 10 s (24 h) and of 1 min (7 days)
 * with min, mean, max and count. Metrics with full_rate false have buckets only. Queries name a
 * range and a step; each part of the range is answered from the tier that fits the step best and
 * still has it. A bucket's row is written when the bucket is over; until then the finer tiers have
 * it. After a restart, the buckets that were open are rebuilt from the samples.
 *
 * Pool: header, then blocks of HISTORY_BLOCK bytes, of which the first ones are in use: a pool
 * grows until it has reached its limit. A block belongs to one group: at most
 * HISTORY_COLUMNS metrics of one source, which share its time column. Rows are differences of
 * value / unit_quantum(unit), each with about as many bits as those of its column have. A row
 * becomes visible by one release store of the block's commit counter, so a torn append is
 * invisible; a checksum in it keeps damage from being read as values. When the pool is full and
 * cannot grow the block is taken whose newest row is oldest in proportion to its tier's target:
 * every tier and every source shrinks from its old end alike. The names of metrics live in
 * dictionary blocks of the same pool, at most an eighth of it; a metric whose name does not fit is
 * not recorded, and counted. Values are kept to unit_quantum(unit); beyond 2^52 quanta they are
 * kept as null. Rows in which all is null are not kept, nor are rows not later than the one before.
 * The bytes: private.h (pool, blocks, dictionary) and row.h (rows).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/history/row.h"
#include "daemon/core/metrics/metrics.h"

enum { HISTORY_BLOCK = 8192, HISTORY_STEP = 256 * 1024, HISTORY_MIN_POOL = HISTORY_STEP };

enum history_tier { HISTORY_FULL, HISTORY_TENS, HISTORY_MINUTES, HISTORY_TIERS };

struct history;

struct history_point {
	union { /* of the sample, or the start of the bucket or step */
		uint64_t t_ns;
		int64_t time_us; /* of the archive's rows: wall time */
	};
	double min, mean, max;
	uint32_t count;
};

/* What the quanta of a series with this unit stand for; its time is 0. */
struct history_point history_point_of(enum unit unit, const struct history_quanta *quanta);
/* Makes one point of two; both have a count. */
void history_point_merge(struct history_point *to, const struct history_point *point);

/* What history_open found in the pool. */
enum history_found {
	HISTORY_FOUND_NOTHING, /* empty or foreign pool: formatted */
	HISTORY_FOUND_OLD,     /* of this boot: rows kept */
	HISTORY_FOUND_OTHER,   /* another boot, version, size or page size: reformatted */
	HISTORY_FOUND_DAMAGED, /* likewise: its header is not whole */
};

/* The memory of a pool that grows up to size, a step of HISTORY_STEP bytes at a time and never
 * back. Nothing is touched before reserve() has said that the range is there; NULL: all of it is.
 */
struct history_memory {
	void *data;
	size_t size;
	bool (*reserve)(void *ctx, size_t offset, size_t length);
	void *ctx;
};

/* Takes over the pool (not owned; zeroed or what an earlier process of this boot left there; any
 * bytes are survived). boot_id: 16 bytes of /proc/sys/kernel/random/boot_id. What was found is not
 * read yet: until history_recover has returned 0, only it, history_bytes and history_destroy may be
 * called. -EINVAL for a size below HISTORY_MIN_POOL, -ENOSPC when the first step or what was in use
 * is refused, -ENOMEM. */
int history_open(const struct history_memory *memory, const uint8_t boot_id[16],
	struct history **ret, enum history_found *found);
/* Reads or links one more block, some 10 us of work. 1: there is more; 0: all is there; -ENOMEM. A
 * kill in between loses nothing. */
int history_recover(struct history *history);
/* Both, of a pool that is there at full size. */
int history_create(void *pool, size_t size, const uint8_t boot_id[16], struct history **ret,
	enum history_found *found);
void history_destroy(struct history *history);

/* Appends a row of the source's metrics as they stand (call from a metrics commit observer).
 * Allocates only for names not seen before. What has no column yet is recorded from a later commit
 * on. */
void history_append(struct history *history, struct metrics *metrics, const struct source *source,
	uint64_t t_ns);
/* Makes some of the columns for which there was no time in a commit. False: there were none. */
bool history_catch_up(struct history *history, struct metrics *metrics);

/* A bucket as a row of its tier holds it. */
struct history_bucket_row {
	uint32_t series;
	enum history_tier tier;
	uint64_t t_ns; /* start of the bucket */
	struct history_quanta value;
};
typedef void history_row_observer(void *ctx, const struct history_bucket_row *row);

/* The one observer of buckets as they are written, series by series, in the order of time for each;
 * NULL = none. It must not append. */
void history_observe(struct history *history, history_row_observer *observer, void *ctx);

/* Writes the buckets that are over, although their sources have not committed since. last: no
 * metric that is missing since a restart is waited for any longer. */
void history_flush(struct history *history, uint64_t now_ns, bool last);

/* Reports the buckets that are still open, as far as they are filled; nothing is written. */
void history_open_buckets(struct history *history, history_row_observer *report, void *ctx);

/* Reports the rows of a tier with buckets that begin in [from_ns, to_ns), oldest block first. A row
 * may come twice. -ENOMEM. */
int history_replay(struct history *history, enum history_tier tier, uint64_t from_ns,
	uint64_t to_ns, history_row_observer *report, void *ctx);

/* Name and unit of a series; false when there is none of that number. */
bool history_series(
	const struct history *history, uint32_t series, const char **name, enum unit *unit);
/* Series that the dictionary has, those without rows included. */
size_t history_series_count(const struct history *history);

/* Forgets the binding of a metric that is retired; its past stays readable by name. */
void history_retire(struct history *history, const struct metric *metric);

/* A series by name, also of metrics that no longer exist. -ENOENT. */
int history_find(struct history *history, const char *name, uint32_t *series);

/* Iterates over all series (start with *cursor = 0): name and unit; false at the end. */
bool history_next_series(struct history *history, uint32_t *cursor, uint32_t *series,
	const char **name, enum unit *unit);

/* A resumable scan. Rows older than the cursor that are evicted meanwhile are skipped. */
struct history_cursor {
	uint32_t series;
	uint64_t from_ns, to_ns; /* inclusive; t_ns ascending */
	/* 0 = the finest there is; else buckets aligned to multiples of step_ns, made of the
	 * coarsest tier whose step divides it and finer ones where that ends */
	uint64_t step_ns;
	uint64_t next_ns; /* internal, start with 0: resume at the first row with t >= next_ns */
	struct history_point open; /* internal, start with 0: the bucket being filled */
};

/* Fills up to max points, going over at most `budget` rows (0 = no limit; for callers that may not
 * hold the loop; at most one block more is decoded to find the place). The count, with *done true
 * when there are no more: then also with the last points. 0 and not done = the budget was used up.
 * A gap is a missing point; null rows are gaps. A bucket is returned only whole, except the last.
 */
size_t history_read(struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, size_t budget, bool *done);

struct history_tier_usage {
	uint64_t oldest_ns;	 /* oldest row of any series; 0 = none */
	uint64_t samples;	 /* values, or buckets, that the pool holds */
	double bytes_per_sample; /* or per bucket; NAN when empty */
};

/* Length of a tier's buckets; 0 for HISTORY_FULL. */
uint64_t history_tier_step_ns(enum history_tier tier);

struct history_usage {
	size_t size, used;	/* bytes: whole pool, blocks in use */
	uint64_t oldest_ns;	/* oldest row of any series; 0 = none */
	uint64_t newest_ns;	/* the newest */
	uint64_t rows, samples; /* appended since start, at full rate */
	uint64_t evicted_blocks;
	uint64_t refused; /* metrics not recorded because their names did not fit */
	uint32_t series;
	uint32_t damaged; /* blocks and lists of names of which the start did not believe all */
	struct history_tier_usage tier[HISTORY_TIERS];
};
void history_usage(const struct history *history, struct history_usage *ret);
/* The archive has all up to t_ns, and how far it had when the pool was found (0: not known). It
 * outlives the process as the rows do. */
void history_set_archived(struct history *history, uint64_t t_ns);
uint64_t history_archived_ns(const struct history *history);

/* Bytes of the whole pool and of blocks in use: of the usage what costs nothing. */
void history_bytes(const struct history *history, size_t *size, size_t *used);
