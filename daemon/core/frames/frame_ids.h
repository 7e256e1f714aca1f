/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_ids.h: defines what the ids of finished frames say about lost and late ones. Ids count up
 * by one within a sequence; several sequences may be interleaved (two cameras of one app), and a
 * process that starts again begins another one. Defined as follows, with ids in the order of time:
 *
 * - An id belongs to the sequence that expects just this one; else to the one whose last id is
 *   nearest, when it is at most FRAME_IDS_JUMP ahead of it, or at most 63 behind and not seen yet.
 *   Any other id begins a sequence, in place of the one unused for longest when there are
 *   FRAME_IDS_SEQUENCES.
 * - Ids jumped over are skipped. An id that comes behind the last one of its sequence is out of
 *   order and no longer skipped.
 * - A jump over more than 63 ids may be one to another sequence: when the one from which it began
 *   goes on, it was, and nothing was skipped. So workers that each have a range of ids lose none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_IDS_SEQUENCES = 16, FRAME_IDS_JUMP = 4096 };

struct frame_ids_sequence {
	uint64_t last;	 /* the highest id so far */
	uint64_t seen;	 /* bit n: last - n came; n < 64 */
	uint64_t first;	 /* ids before it are of no gap */
	uint64_t landed; /* the id with which it began */
	uint64_t jump;	 /* ids skipped before that which did not come since; 0 = none */
	uint64_t from;	 /* index of the sequence that it may be the rest of, + 1; 0 = none */
	uint64_t used;	 /* number of the newest id taken */
};

/* Zeroed = nothing seen. */
struct frame_ids {
	uint64_t skipped;      /* ids that are missing now */
	uint64_t out_of_order; /* ids that came behind a later one */
	uint64_t sequences;    /* begun */
	uint64_t taken;
	size_t count;
	struct frame_ids_sequence sequence[FRAME_IDS_SEQUENCES];
};

/* Takes the next id; true when it is out of order. */
bool frame_ids_append(struct frame_ids *ids, uint64_t id);
