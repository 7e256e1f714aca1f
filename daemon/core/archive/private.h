/* What gathering and sealing share. */
#pragma once

#include "daemon/core/archive/archive.h"
#include "daemon/core/archive/index.h"

enum {
	ARCHIVE_SLOTS = 64, /* of a chunk: 64 chunks hold METRICS_MAX */
	ARCHIVE_ROWS_FIRST = 1024,
	ARCHIVE_ROWS_KEPT = 8192, /* rows that wait, at least so many may */
	ARCHIVE_BUCKETS_KEPT = 8, /* rows of each series, at least so many may wait */
	ARCHIVE_EVENTS_WAIT = 128,
	ARCHIVE_TOLD_MAX = 4096, /* names of a block */
};

/* A metric's open bucket. */
struct archive_slot {
	uint64_t begin_ns, end_ns; /* end 0: none yet. begin = end: closed */
	double min, max, sum;
	uint32_t count;
	uint32_t mark; /* the metric's serial + 1; 0 = free */
	struct archive_name *name;
};

/* A bucket that waits to be written. */
struct archive_wait {
	struct archive_name *name;
	struct archive_row row;
	uint32_t next; /* the seal's: the series' next row */
	uint32_t end;  /* tick: it covers all before */
};

struct archive {
	uint8_t boot_id[16];
	uint32_t boot_seq;
	struct archive_index *index; /* NULL: no file */
	struct archive_names loose;  /* the names while there is no file */
	uint32_t floor_tick;	     /* the file has this boot's rows up to here */
	bool floored;

	uint64_t bucket_ns, before_ns, switch_ns; /* before_ns holds until switch_ns */
	uint64_t wanted_ns;
	struct archive_slot *chunk[METRICS_MAX / ARCHIVE_SLOTS];
	size_t bound;
	size_t past; /* series that archive_continue has brought */

	/* A ring of a power of two. */
	struct archive_wait *wait;
	uint32_t wait_room, wait_first, waiting;
	struct timeline_entry *event; /* ARCHIVE_EVENTS_WAIT, a ring */
	uint32_t event_first, events;
	uint64_t dropped;

	/* The block that is being written. */
	uint8_t *block; /* ARCHIVE_BLOCK_MAX */
	bool sealed;
	uint64_t stamp; /* of the newest attempt to make a block */
	struct archive_info sealed_info;
	struct archive_clock sealed_clock[ARCHIVE_CLOCKS];
	size_t sealed_clocks;
	struct archive_account_memory sealed_day;
	uint32_t sealed_rows, sealed_events; /* of those that wait: the first ones */
	uint64_t lost_rows;		     /* dropped while they were being written */
	size_t content;			     /* bytes without names and padding */
	struct archive_name **told;	     /* names that the block tells */
	size_t told_count;
	struct archive_name **used; /* series of the block */
	size_t used_count, used_room;
	double row_bytes, fixed_bytes; /* smoothed, for the estimate */
};

static inline struct archive_names *archive_names_of(struct archive *archive)
{
	return archive->index ? &archive->index->names : &archive->loose;
}

static inline struct archive_wait *archive_wait_at(const struct archive *archive, uint32_t i)
{
	return &archive->wait[(archive->wait_first + i) & (archive->wait_room - 1)];
}

/* A bucket that is over, of what came in it; end: the tick behind it. One that the file has
 * already, or that fixed point cannot hold, is left out. */
void archive_add_bucket(struct archive *archive, struct archive_name *name, uint32_t tick,
	uint32_t end, const struct history_point *point);

/* Closes open buckets that end at or before now_ns; with all every one. */
void archive_close_buckets(struct archive *archive, uint64_t now_ns, bool all);
