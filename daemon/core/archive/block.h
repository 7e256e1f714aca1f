/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h: describes the bytes of the archive's file: one block, and the header page. In host
 * order, as a file that moves to a machine of the other order is set aside by its header page. All
 * of it is in this order, to the end of a page; what is left is zeros:
 *
 *   header   struct archive_block
 *   clocks   header.clocks times struct archive_clock
 *   groups   header.groups times: form (1 byte), series (1 byte), rows (varint), bytes of rows
 *            (varint), the series' numbers (varints: the first as it is, then the distance to the
 *            one before, they grow; with CONSECUTIVE in the form only the first), the rows
 *            (history/row.h)
 *   events   header.events times: kind, level (1 byte each), t_ns (varint), length of subject
 *            (1 byte), subject, length of text (varint), text
 *   names    header.names times: number (varint), unit (1 byte), length (1 byte), name
 *
 * Times of rows are in ticks of 10 s of the monotonic clock (begin of the bucket). A group's
 * columns: the means of its series, with FULL then mean - min of each, then max - mean of each, at
 * last the counts: what tends to stay the same stands at the end, where history's rows leave it
 * out. FLAT groups have series of which each bucket has one value only (constants, slow sources).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/archive/account.h"
#include "daemon/core/archive/bytes.h"
#include "daemon/core/history/row.h"
#include "daemon/core/timeline/timeline.h"

enum {
	ARCHIVE_PAGE = 4096,
	ARCHIVE_BLOCK_MAX = 64 * 1024,
	ARCHIVE_SIZE_MIN = 1024 * 1024,
};

/* ---- header page ---- */

enum archive_found {
	ARCHIVE_OURS,
	ARCHIVE_EMPTY,	 /* zeros: a file that was just made */
	ARCHIVE_OTHER,	 /* another version, page size of the format, byte order or size */
	ARCHIVE_FOREIGN, /* not an archive */
};
/* What the blocks of a file have in common: those of another file are rejected. */
struct archive_identity {
	uint32_t version; /* of the format: 1, whose blocks know no file, or 2 */
	uint32_t seed;	  /* of the blocks' checksums, from the header's id; 0 in version 1 */
};

/* id: random, of this file alone. */
void archive_header_make(uint64_t size, const uint8_t id[16], uint8_t page[ARCHIVE_PAGE]);
/* why: what differs, for people. ret: of a file that is ours. */
enum archive_found archive_header_check(const uint8_t page[ARCHIVE_PAGE], uint64_t size,
	struct archive_identity *ret, char *why, size_t why_size);

/* ---- blocks ---- */

#define ARCHIVE_BLOCK_MAGIC UINT64_C(0x8a6b636f6c420aab)
#define ARCHIVE_TICK_NS UINT64_C(10000000000)
#define ARCHIVE_BYTE_ORDER UINT32_C(0x01020304)

/* Files of version 1 are read and continued as they are. */
enum { ARCHIVE_VERSION = 2, ARCHIVE_CLOCKS = 8 };
enum archive_form { ARCHIVE_FULL, ARCHIVE_FLAT, ARCHIVE_FORMS };
enum { ARCHIVE_CONSECUTIVE = 0x10 };

/* Series of a group, so that the columns are HISTORY_COLUMNS at most. */
enum { ARCHIVE_FULL_SERIES = HISTORY_COLUMNS / 4, ARCHIVE_FLAT_SERIES = HISTORY_COLUMNS / 2 };

struct archive_block {
	uint64_t magic;
	uint32_t version, byte_order;
	uint32_t crc; /* CRC-32C of all pages with 0 here, behind the file's seed */
	uint32_t page, pages;
	uint32_t quanta; /* archive_quanta() */
	uint64_t seq;	 /* 1, 2, 3 … in the file */
	uint8_t boot_id[16];
	uint32_t boot_seq;
	uint32_t next_id; /* no number from here on was ever used */
	/* Of the first row's begin and the last one's end; UINT32_MAX and 0 when there are none. */
	uint32_t first_tick, last_tick;
	uint32_t rows; /* buckets of all series */
	uint16_t groups, events, names, clocks;
	uint32_t ticks; /* different ones */
	struct archive_account_memory day;
};

/* The offset of the wall clock from t_ns on. */
struct archive_clock {
	uint64_t t_ns;
	int64_t offset_ns; /* wall - monotonic */
	uint64_t synced;   /* 0 or 1 */
};

/* What archive_block_check found. */
struct archive_parsed {
	struct archive_block header;
	struct archive_clock clock[ARCHIVE_CLOCKS];
	struct byte_reader body; /* at the first group */
};

/* Is this a block that lies at page? The number of its pages; 0: no; -EAGAIN: bytes are too few to
 * say. begins: at least the magic is there. */
int archive_block_check(const uint8_t *bytes, size_t size, uint32_t page, uint32_t file_pages,
	struct archive_identity identity, struct archive_parsed *ret, bool *begins);

struct archive_group {
	unsigned width; /* of its rows: HISTORY_WIDTH_BUCKET or HISTORY_WIDTH_FLAT */
	unsigned series;
	uint32_t rows;
	uint32_t id[ARCHIVE_FLAT_SERIES];
	struct byte_reader bytes;
};

/* The next group of the body; false (and the reader bad) when it is none. */
bool archive_group_read(struct byte_reader *body, struct archive_group *ret);

/* Its rows; their times are ticks. */
void archive_group_walk(const struct archive_group *group, const struct archive_block *header,
	struct history_walk *walk);
/* As history_walk_next; a row behind the block's last tick is bad, too. */
bool archive_rows_next(struct history_walk *walk, const struct archive_block *header);

/* With its kind, level, time and texts; the rest is 0. */
bool archive_event_read(struct byte_reader *body, struct timeline_entry *ret);
void archive_event_write(struct byte_writer *writer, const struct timeline_entry *entry);

struct archive_name_bytes {
	uint32_t id;
	enum unit unit;
	const char *text; /* not terminated */
	size_t length;
};
bool archive_name_read(struct byte_reader *body, struct archive_name_bytes *ret);

/* The one in force at t_ns, of at least one. */
const struct archive_clock *archive_clock_at(
	const struct archive_clock *clock, size_t clocks, uint64_t t_ns);

/* Wall time of t_ns by a block's own clocks, or by the first synchronised one of its boot (NULL:
 * the boot has none, and the time cannot be trusted) when that is later. */
int64_t archive_wall_us(const struct archive_clock *clock, size_t clocks,
	const struct archive_clock *first_synced, uint64_t t_ns);

/* Hash of the units' quanta: the same as in history's pool. */
uint32_t archive_quanta(void);
