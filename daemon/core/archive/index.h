/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h: declares what the archive knows of its file: the blocks in the order of their numbers,
 * the boots, the names, the newest events of previous boots. Built by the scan, then kept up to
 * date by the seal.
 */
#pragma once

#include "daemon/core/archive/block.h"
#include "daemon/core/archive/names.h"

enum { ARCHIVE_EVENTS_KEPT = 512 }; /* of previous boots */

struct archive_info {
	uint64_t seq;
	uint32_t page, pages;
	uint32_t boot; /* boot_seq */
	uint32_t first_tick, last_tick;
	uint32_t ticks;			  /* different ones */
	bool clocked;			  /* offsets are known */
	struct archive_clock first, last; /* in force at the first and at the last row */
};

struct archive_boot_info {
	uint32_t seq;
	uint8_t id[16];
	bool synced;
	struct archive_clock first_synced;
};

struct archive_index {
	uint64_t size;
	struct archive_identity identity;
	uint32_t pages;
	int error;		   /* -ENOMEM of the scan */
	struct archive_info *info; /* of blocks by seq, oldest first */
	size_t info_room;
	uint32_t blocks;
	struct archive_boot_info *boot; /* by seq */
	size_t boots, boot_room;
	struct timeline_entry *event; /* of previous boots; the serial is the block's */
	size_t events;
	uint64_t damaged;
	uint32_t next_page; /* where the next block goes */
	uint64_t next_seq;
	struct archive_account_memory day;
	struct archive_names names;
};

/* size of the file in bytes. -EINVAL, -ENOMEM. */
int archive_index_create(
	uint64_t size, struct archive_identity identity, struct archive_index **ret);
void archive_index_destroy(struct archive_index *index);
/* bytes: what the file holds from page on (up to size bytes, any bytes at all). The number of pages
 * of the valid block that begins here, which the index has now; 0: none begins, go on with the next
 * page. -EAGAIN: one may begin here, but more bytes are needed (at most ARCHIVE_BLOCK_MAX); where
 * the file ends before its size, that is as good as 0. */
int archive_index_scan(
	struct archive_index *index, uint32_t page, const uint8_t *bytes, size_t size);
/* After the last page. -ENOMEM. */
int archive_index_finish(struct archive_index *index);

/* NULL when there is none. */
const struct archive_boot_info *archive_index_find_boot(
	const struct archive_index *index, uint32_t boot_seq);
/* Adds a block behind the newest, and what it says of its boot and the next block. -ENOMEM: only
 * the latter. */
int archive_index_add(struct archive_index *index, const struct archive_block *header,
	const struct archive_clock *clock);
/* Drops the oldest blocks. */
void archive_index_drop(struct archive_index *index, uint32_t count);
/* Drops blocks that a write to these pages destroys (the oldest: the file is a ring), and boots
 * that have none left. */
void archive_index_overwrite(struct archive_index *index, uint32_t page, uint32_t pages);
void archive_index_forget_boots(struct archive_index *index);
/* The number of the oldest block; next_seq when there is none. */
uint64_t archive_index_oldest(const struct archive_index *index);
/* Wall times of the first and of the last bucket's begin. True: they can be trusted. */
bool archive_index_times(const struct archive_index *index, const struct archive_info *info,
	int64_t *first_us, int64_t *last_us);
