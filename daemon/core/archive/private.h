/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares the internals of struct archive, for archive.c (what comes in), seal.c (what
 * makes up a block) and encode.c (its bytes). */
#pragma once

#include "daemon/core/archive/archive.h"

enum {
	ARCHIVE_EVENTS_WAIT = 128,
	ARCHIVE_BLOCK_NAMES = 4096, /* names of a block */
	ARCHIVE_KNOWN = 1024,
};

/* A bucket that waits to be written. */
struct archive_wait {
	struct history_quanta value;
	uint32_t series;    /* history's number */
	uint32_t tick, end; /* the bucket covers what begins at tick, and all before end */
	uint32_t next;	    /* the seal's: the series' next row */
};

/* What the seal knows a series of history as, while no name was dropped. */
struct archive_known {
	uint64_t stamp;
	uint32_t series;
	struct archive_name *name;
};

struct archive {
	uint8_t boot_id[16];
	uint32_t boot_seq;
	struct history *history;     /* has the names of the series that wait; may be NULL */
	struct archive_index *index; /* NULL: no file */
	uint32_t floor_tick;	     /* the file has this boot's rows up to here */
	bool floored;

	uint64_t bucket_ns, before_ns, switch_ns; /* before_ns holds until switch_ns */
	uint64_t closed_ns;   /* buckets that begin before were taken while they were open */
	uint64_t open_end_ns; /* where open buckets end that are being taken */

	/* By tick: a ring of a power of two. */
	struct archive_wait *wait;
	uint32_t wait_room, wait_first, waiting;
	struct timeline_entry *event; /* ARCHIVE_EVENTS_WAIT, oldest first */
	uint32_t events;
	uint64_t dropped;

	/* The block that is being written. */
	uint8_t *block; /* ARCHIVE_BLOCK_MAX */
	bool sealed;
	uint64_t stamp; /* of the newest attempt to make a block */
	struct archive_known known[ARCHIVE_KNOWN];
	uint64_t known_stamp; /* changes when names go */
	struct archive_block header;
	struct archive_clock clock[ARCHIVE_CLOCKS];
	uint32_t sealed_rows, sealed_events; /* of those that wait: the first ones */
	uint64_t lost_rows;		     /* dropped while they were being written */
	size_t content;			     /* bytes without names and padding */
	struct archive_name **carried;	     /* names that the block carries */
	size_t carried_count;
	struct archive_name **used; /* series of the block */
	size_t used_count, used_room;
	double row_bytes, fixed_bytes; /* smoothed, for the estimate */
};

static inline struct archive_wait *archive_wait_at(const struct archive *archive, uint32_t i)
{
	return &archive->wait[(archive->wait_first + i) & (archive->wait_room - 1)];
}

/* The first count rows, or events, no longer wait. */
static inline void archive_drop_rows(struct archive *archive, uint32_t count)
{
	if (count > 0) {
		archive->wait_first = (archive->wait_first + count) & (archive->wait_room - 1);
		archive->waiting -= count;
	}
}

static inline void archive_drop_events(struct archive *archive, uint32_t count)
{
	if (count > 0) {
		archive->events -= count;
		memmove(archive->event, &archive->event[count],
			archive->events * sizeof(archive->event[0]));
	}
}

/* Brings in what history has not reported yet: buckets that are over; with all also open ones. */
void archive_flush(struct archive *archive, uint64_t now_ns, bool all);

/* Sorts the first count rows by their series: archive->used, each with the chain of its rows. */
bool archive_collect(struct archive *archive, uint32_t count);

/* The groups of what was collected, and what the header says of them. */
void archive_put_groups(
	struct archive *archive, struct byte_writer *writer, struct archive_block *header);

/* Names behind the rest: those that the block must carry (false: no room), should, and as many of
 * the least recently written as the last page has room for. */
bool archive_put_names(struct archive *archive, const uint8_t *block, struct byte_writer *writer);
