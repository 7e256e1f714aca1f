/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h: keeps the archive's series: names with their units and the numbers that stand for them
 * in blocks of this file. Also which block last carried each name: those written longest ago come
 * first when a block has room, so that no name has only one place in the file for long.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/unit.h"

enum { ARCHIVE_NAME_BUCKETS = 2048, ARCHIVE_NAMES_MAX = 16384 };

/* One series. It stays where it is as long as a block uses it. */
struct archive_name {
	uint32_t id;			      /* in the file; 0 = none yet */
	uint64_t first_seq, last_seq;	      /* blocks that use it; 0 = none */
	uint64_t written_seq;		      /* newest block that carries its name; 0 = none */
	uint64_t used_stamp, carried_stamp;   /* the seal's: in the block that is being made */
	struct archive_name *by_name, *by_id; /* next in the hash chain */
	struct archive_name *older, *newer;   /* by written_seq */
	/* The seal's: its rows in the block that is being made. */
	uint32_t row_first, row_last, rows;
	uint32_t made_tick; /* behind its newest row in there */
	uint32_t last_tick; /* behind its newest row that was written since the start */
	uint8_t class;
	uint8_t copies; /* blocks that carry its name; stops at 2 */
	uint8_t unit;
	uint8_t length;
	char text[];
};

struct archive_names {
	struct archive_name *by_name[ARCHIVE_NAME_BUCKETS];
	struct archive_name *by_id[ARCHIVE_NAME_BUCKETS];
	struct archive_name *oldest, *newest; /* of those that were written */
	size_t count;
	uint32_t next_id;
};

void archive_names_finish(struct archive_names *names);

struct archive_name *archive_names_find(
	const struct archive_names *names, const char *text, size_t length, enum unit unit);
struct archive_name *archive_names_by_id(const struct archive_names *names, uint32_t id);

/* A new one, without a number. -ENOSPC, -ENOMEM. */
int archive_names_add(struct archive_names *names, const char *text, size_t length, enum unit unit,
	struct archive_name **ret);
/* Gives it a number that the file never had; or, at start, the one that it has there. */
void archive_names_number(struct archive_names *names, struct archive_name *name, uint32_t id);
/* A block contains it. */
void archive_names_written(struct archive_names *names, struct archive_name *name, uint64_t seq);
void archive_names_drop(struct archive_names *names, struct archive_name *name);

/* Drops those that no block from oldest_seq on uses. */
void archive_names_evict(struct archive_names *names, uint64_t oldest_seq);

/* Iterates over all: start with NULL; NULL at the end. */
struct archive_name *archive_names_next(
	const struct archive_names *names, const struct archive_name *name);

/* Bytes of its entry in a block. */
size_t archive_name_size(const struct archive_name *name);
