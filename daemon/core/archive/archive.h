/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h: declares the archive, the history that survives reboots and power cuts ([history]
 * persist). It holds buckets of 10 s (or of 60 s, see account.h) of all metrics and what happened
 * meanwhile (timeline entries, clock offsets), in time-major blocks that are sealed with a
 * checksum. Pure: it makes blocks and reads them; daemon/persist does the file I/O, and time is an
 * argument. Who calls what from where:
 *
 *   start   archive_continue: what an earlier process of this boot left
 *   loop    history -> archive_on_row, timeline -> archive_on_event; archive_seal
 *           -> (the worker writes) -> archive_written
 *   start   worker: archive_index_scan over all pages -> archive_index_finish
 *           -> loop: archive_adopt
 *   query   loop: archive_plan_make -> worker: archive_plan_read for each of its blocks
 *           -> loop: rows
 *
 * The file: one header page (written once), then a ring of pages. A block is 1 or more whole pages,
 * never goes round the end, and never shares a page with another: a torn page damages one block. A
 * series has a number that is never used again in this file; its name and unit come with the first
 * block that uses it, with the one after, and again and again in what padding blocks have left, so
 * that the loss of no single block makes others unreadable.
 * Little is trusted: a block counts only when magic, version, lengths and CRC-32C of all of it are
 * right; a reader that finds nonsense inside all the same drops the block. The checksums begin with
 * random bytes of the file's header: a block that came from another archive is none of this one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/archive/index.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/timeline/timeline.h"

/* ---- gathering and sealing, on the loop ---- */
struct archive;
/* boot_id: of now. history: has the names of what archive_on_row brings; may be NULL where nothing
 * comes. What comes before archive_adopt waits in a bounded buffer. -ENOMEM. */
int archive_create(const uint8_t boot_id[16], struct history *history, struct archive **ret);
void archive_destroy(struct archive *archive);
/* The file can be written from now on; takes over the index. The boot's number goes on from the
 * file's newest block: the same one for the same boot_id, else the next. Buckets that the file
 * already has of this boot are not written again. */
void archive_adopt(struct archive *archive, struct archive_index *index);
/* The file is gone (degraded): the index is dropped, what comes waits in the buffer. Not between
 * archive_seal and archive_written. */
void archive_release(struct archive *archive);
uint32_t archive_boot_seq(const struct archive *archive); /* 0: not known yet */

/* Before the first row: takes what an earlier process of this boot left in live history and on the
 * timeline and no block has yet, as far back as buckets and events may wait. Whatever the file
 * turns out to have already is skipped when it is adopted. */
void archive_continue(struct archive *archive, const struct timeline *timeline);

/* For history_observe and timeline_observe; ctx is the archive. Of the tiers with buckets only the
 * one that is archived at that time is taken. */
void archive_on_row(void *ctx, const struct history_bucket_row *row);
void archive_on_event(void *ctx, const struct timeline_entry *entry);

/* Length of the buckets, 10 s or 60 s (else ignored); from the next full minute on. */
void archive_set_bucket(struct archive *archive, uint64_t bucket_ns, uint64_t now_ns);

/* No block lacks anything before this moment: where archive_continue is to begin. */
uint64_t archive_mark_ns(const struct archive *archive, uint64_t now_ns);

struct archive_pending {
	size_t rows;	  /* complete buckets of all metrics */
	size_t bytes;	  /* what sealing now would make, without padding; an estimate */
	uint64_t dropped; /* buckets and events that were dropped: nothing could be written for
			   * long, or the series are too many */
};
void archive_pending(const struct archive *archive, struct archive_pending *ret);

/* What is to be written next: whole pages at *page of the file. Complete buckets only, which
 * history is made to write; with all (the daemon stops, or a test) also the open ones: what comes
 * for them later is not counted. One block takes at most ARCHIVE_BLOCK_MAX: call again after
 * archive_written until there is nothing. 0: nothing to write, nothing adopted, the last one still
 * being written, or no memory. The bytes belong to the archive and stay until archive_written. day:
 * the account's memory, kept in the block (account.h); may be NULL. */
struct archive_account_memory;
size_t archive_seal(struct archive *archive, uint64_t now_ns, const struct wallclock *wall,
	const struct archive_account_memory *day, bool all, const uint8_t **bytes, uint32_t *page);
/* The write ended. 0: it is on the medium. Else the rows are pending again, and come with the next
 * seal, at the same place. */
void archive_written(struct archive *archive, int result);

/* ---- asking ---- */
struct archive_span {
	uint32_t blocks, series, boots;
	uint64_t pages, pages_used;
	int64_t oldest_us, newest_us; /* wall time; 0 = empty */
	uint64_t damaged;	      /* pages that begin like a block and were none at start */
};
void archive_span(const struct archive *archive, struct archive_span *ret);

/* Boots that the archive knows, oldest first; the last one is this boot. False past the end. */
struct archive_boot {
	uint32_t seq;
	int64_t first_us, last_us; /* wall time of its first and last bucket; 0 = nothing written */
	bool synced;		   /* the wall times can be trusted */
};
bool archive_boot_at(const struct archive *archive, size_t index, struct archive_boot *ret);

/* Events of previous boots, oldest first, at most ARCHIVE_EVENTS_KEPT, found by the scan. */
size_t archive_events(const struct archive *archive, const struct timeline_entry **ret);

/* The account's memory of the newest block; zeroed when there is none. */
void archive_account_found(const struct archive *archive, struct archive_account_memory *ret);

/* True when the archive has blocks with this series. Glob matching is the plan's. */
bool archive_has(const struct archive *archive, const char *name);

/* A query is a copy of all that its worker needs: which blocks, which series. It covers as many
 * blocks from from_us on as keep the answer within points_max rows; next_us is where the next query
 * goes on (INT64_MAX: there is no more), with a step a multiple of it: no step comes twice.
 * step_ns 0: buckets as they are; else a multiple of 10 s, steps aligned to the wall time. Times
 * are those of the boot's clock offsets as they are known now (blocks of this boot from before the
 * first sync get the right time, too). Both ends are inclusive. Within a boot, wall times step back
 * where the clock did. A name whose unit changed is two series. The plan has no pointers into the
 * archive. */
struct archive_plan;
int archive_plan_make(struct archive *archive, const char *glob, int64_t from_us, int64_t to_us,
	uint64_t step_ns, size_t points_max, const struct wallclock *wall,
	struct archive_plan **ret); /* -ENOMEM */
size_t archive_plan_blocks(const struct archive_plan *plan);
void archive_plan_block(
	const struct archive_plan *plan, size_t index, uint32_t *page, uint32_t *pages);
/* On the worker, in order: the block's bytes as read. One that was overwritten since or cannot be
 * trusted is skipped and counted. 0, -ENOMEM. */
int archive_plan_read(struct archive_plan *plan, size_t index, const uint8_t *bytes);
void archive_plan_finish(struct archive_plan *plan); /* after the last block: closes open steps */
/* One boot's part of a series: no row is made of two boots. Parts of one name come one after the
 * other, in the order of boots; points in the order of time. */
struct archive_series {
	const char *name;
	enum unit unit;
	const struct history_point *points;
	size_t count;
	uint32_t boot_seq;
};
size_t archive_plan_series(const struct archive_plan *plan);
void archive_plan_at(const struct archive_plan *plan, size_t index, struct archive_series *ret);
/* Blocks that were skipped: overwritten in the meantime, or damaged. */
size_t archive_plan_lost(const struct archive_plan *plan);
int64_t archive_plan_next_us(const struct archive_plan *plan);
void archive_plan_destroy(struct archive_plan *plan);

/* ---- how a query's blocks come from the file: varlink asks, persist reads on a thread, and
 * neither knows the other; on the loop ---- */
struct archive_read; /* one that waits or is under way */

/* The read ended: all blocks have been given to archive_plan_read. result: 0, or -errno of a block
 * that could not be read (the rows of the others are there). The plan is the callee's.
 * -ECANCELED: nobody reads any more; the plan is NULL when a thread still has it. */
typedef void archive_read_done(void *user, struct archive_plan *plan, int result);

struct archive_reader {
	/* Takes the plan over; done is called later, never from within. On failure the plan stays
	 * the caller's: -ENODATA the file is not open, -ENOSPC too many wait, -ETIMEDOUT the medium
	 * has not answered others for long, -ENOMEM. */
	int (*read)(void *ctx, struct archive_plan *plan, archive_read_done *done, void *user,
		struct archive_read **ret);
	/* done is not called any more; the plan goes when the thread is through with it. */
	void (*cancel)(struct archive_read *read);
	void *ctx;
};
