/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_table.h: keeps the recent frames of an app: what carries the same frame id at the same
 * time, in any thread and any process of the app, becomes one frame with its start, its end, the
 * time of each stage and its context. Fixed in size whatever ids come; nothing allocates after
 * creation.
 *
 * An id that is used again after its frame has ended begins another frame. A frame has ended
 * - for the thread whose FRAME record it had, at the end of that record;
 * - for a thread that ran a stage in it, went on with another frame and runs that stage again;
 * - for a stage that ran in it already and runs again on another thread after its FRAME record, or
 *   FRAME_TABLE_NEAR frames later, or ran there before what it had begun with;
 * - for a thread whose frames of the same ids as this one's threads have overlapped theirs, with a
 * stage that both ran and a FRAME record from each: two loops count alike (two cameras);
 * - where no FRAME records come, when the outermost stage it began with runs again after another.
 * Several frames of one id may be open; what comes late belongs to the one of its time, and what
 * lies between two that both ran one stage, to the earlier.
 *
 * A frame goes from its earliest start (frame begin or first stage) to its last end (frame end or
 * last stage). It is done when everything up to its end has been read and the grace passed: none at
 * first where a FRAME record said so or where the only thread went on with another frame,
 * FRAME_TABLE_GRACE_NS where stages of several threads decide. A stage that
 * comes later still is counted (late) and makes the grace longer, up to FRAME_TABLE_GRACE_MAX_NS.
 * A frame whose slot is needed is done earlier (forced).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/throttle.h"
#include "proto/mapping.h"

enum {
	FRAME_TABLE_FRAMES = 128,
	FRAME_TABLE_WAYS = 4,
	FRAME_TABLE_NEAR = 32, /* frames; those begun since are further ahead than threads are */
	FRAME_STAGES = 31,     /* counted one by one; the others share the last slot */
};

#define FRAME_TABLE_GRACE_NS UINT64_C(250000000)
#define FRAME_TABLE_GRACE_MAX_NS UINT64_C(4000000000)

enum frame_state { FRAME_FREE, FRAME_OPEN, FRAME_DONE };

/* The part of a frame that belongs to one stage. */
struct frame_part {
	uint64_t start_ns; /* of its first run */
	uint64_t busy;	   /* all its runs, ns, and above FRAME_BUSY_BITS how many */
};

enum { FRAME_BUSY_BITS = 48 };
#define FRAME_BUSY_MAX ((UINT64_C(1) << FRAME_BUSY_BITS) - 1) /* 78 hours */

static inline uint64_t frame_part_ns(const struct frame_part *part)
{
	return part->busy & FRAME_BUSY_MAX;
}

static inline uint32_t frame_part_runs(const struct frame_part *part)
{
	return (uint32_t)(part->busy >> FRAME_BUSY_BITS);
}

struct frame {
	uint64_t start_ns; /* UINT64_MAX: only ticks, no record had a start */
	uint64_t end_ns;   /* 0: no record had an end */
	uint64_t sum_ns;   /* outermost stages, but not is_total */
	uint64_t ended_ns; /* of its FRAME record; 0 = none came yet */
	uint64_t owner;	   /* the thread that sent it */
	uint64_t threads;  /* a bit for each that took part; more than 64 share bits */
	uint32_t parts;	   /* bits of the parts below that are used */
	uint32_t runs;	   /* of stages */
	uint32_t late;	   /* what came when it was done already */
	bool has_frame;	   /* a FRAME record came */
	bool has_context;  /* a CONTEXT record came */
	bool is_tick;	   /* its FRAME record had no start */
	bool shared;	   /* a stage ran in it on several threads */
	bool by_id;	   /* a piece of it was of no thread in particular */
	bool spoilt;	   /* a run in it was skipped */
	bool counted;	   /* as an iteration of the app's loop */
	bool judged;	   /* against the deadline */
	bool ticked;	   /* its end was a tick, for want of a record */
	uint64_t id;
	uint64_t serial;   /* frames are done in this order */
	uint64_t delta_ns; /* to the tick before; 0 = not known */
	uint32_t voluntary_switches, involuntary_switches, minor_faults, major_faults;
	uint32_t run_delay_us;
	enum throttle_value throttled; /* at its end; set when it is done */
	struct frame_part part[FRAME_STAGES + 1];
};

struct frame_table {
	uint64_t ids[FRAME_TABLE_FRAMES]; /* sets of FRAME_TABLE_WAYS neighbours */
	uint8_t state[FRAME_TABLE_FRAMES];
	uint32_t begun[FRAME_TABLE_FRAMES]; /* number of its begin; wraps */
	uint32_t begins;
	uint64_t open[FRAME_TABLE_FRAMES / 64]; /* bits */
	struct frame *hot;			/* the one that was used last */
	uint64_t hot_id;			/* its id, while it is open; PROTO_NO_FRAME */
	uint64_t hot_thread;			/* that used it */
	uint32_t current[64];			/* by thread: begun + 1 of the frame it is in */
	uint64_t threads;			/* a bit for each that took part in any */
	uint64_t rivals[64];			/* by thread: those whose loops count alike */
	bool of_records;			/* frames have FRAME records */
	uint64_t serial;			/* of the last one done */
	uint64_t late;				/* records of frames that were done */
	uint64_t forced;			/* frames done because their slot was needed */
	uint64_t frame_grace_ns, stage_grace_ns;
	size_t stages;
	char stage[FRAME_STAGES][PROTO_NAME_SIZE];
	bool is_total[FRAME_STAGES + 1];
	void (*done)(void *ctx, struct frame *frame);
	void *ctx;
	struct frame frame[FRAME_TABLE_FRAMES];
};

/* done is called once for each frame, in the order of their ends as far as that can be known; it
 * must not call back. -ENOMEM. */
int frame_table_create(
	void (*done)(void *ctx, struct frame *frame), void *ctx, struct frame_table **ret);
void frame_table_destroy(struct frame_table *table);

/* The index of a stage's name, FRAME_STAGES when there are too many. Callers keep it: this compares
 * names. is_total: its time is in no sum, see stage_is_work(). */
uint8_t frame_table_stage_index(struct frame_table *table, const char *name, bool is_total);
/* "(other)" for FRAME_STAGES. */
const char *frame_table_stage(const struct frame_table *table, uint8_t idx);

/* What one record contains of a frame. */
struct frame_piece {
	uint64_t id; /* not PROTO_NO_FRAME */
	uint64_t start_ns, end_ns;
	uint64_t born_ns; /* when its process attached: older frames of the same id are others */
	uint64_t thread;  /* any number for it */
	bool by_id;	  /* begun and ended by id, or of a task: of no thread in particular */
};

/* Instead of an index: the piece is of no stage. */
enum { FRAME_NO_STAGE = UINT8_MAX };

/* A stage ran. nested: inside of another stage of its thread. Returns its frame. */
struct frame *frame_table_run(
	struct frame_table *table, const struct frame_piece *piece, uint8_t idx, bool nested);

static inline void frame_extend(struct frame *frame, const struct frame_piece *piece)
{
	if (piece->start_ns < frame->start_ns) {
		frame->start_ns = piece->start_ns;
	}
	if (piece->end_ns > frame->end_ns) {
		frame->end_ns = piece->end_ns;
	}
	frame->threads |= UINT64_C(1) << piece->thread % 64;
}

/* busy_ns: at most FRAME_BUSY_MAX. */
static inline void frame_part_begin(
	struct frame *frame, const struct frame_piece *piece, uint64_t busy_ns, uint8_t idx)
{
	frame->parts |= UINT32_C(1) << idx;
	frame->part[idx].start_ns = piece->start_ns;
	frame->part[idx].busy = busy_ns | UINT64_C(1) << FRAME_BUSY_BITS;
}

/* Does what frame_table_run() does, without a call, for nearly all runs: of the thread that was
 * read last, in the frame that it was in, which is open; of a stage that has not run in it yet; and
 * of at most FRAME_BUSY_MAX. False: it is another; nothing was done. */
static inline bool frame_table_next(
	struct frame_table *table, const struct frame_piece *piece, uint8_t idx, bool nested)
{
	struct frame *frame = table->hot;
	uint64_t busy_ns = piece->end_ns - piece->start_ns;
	if (piece->id != table->hot_id || piece->thread != table->hot_thread ||
		frame->parts >> idx & 1) {
		return false;
	}
	frame_extend(frame, piece);
	frame->runs++;
	frame->sum_ns += nested || table->is_total[idx] ? 0 : busy_ns;
	frame_part_begin(frame, piece, busy_ns, idx);
	return true;
}

/* A FRAME record; start = end: only a tick. A second one of the same id begins another frame,
 * unless it is of a further thread that took part, or of the frame around a tick: *known. */
struct frame *frame_table_frame(
	struct frame_table *table, const struct frame_piece *piece, bool *known);
/* A CONTEXT record; values of several threads add up. */
void frame_table_context(struct frame_table *table, const struct frame_piece *piece,
	uint64_t context, uint32_t run_delay_us);

/* The frame of this id at this time, open or done; NULL when it is gone. */
struct frame *frame_table_find(struct frame_table *table, uint64_t id, uint64_t t_ns);

/* Everything that ended until horizon_ns has been read: frames are done. UINT64_MAX = all. */
void frame_table_finish_until(struct frame_table *table, uint64_t horizon_ns);

/* The frame that its only thread is in, or was in last; NULL when several threads take part, or
 * FRAME records determine when it ends. */
const struct frame *frame_table_current(const struct frame_table *table);

/* The newest frames that are done, newest first; at most n. How many. */
size_t frame_table_recent(const struct frame_table *table, const struct frame **ret, size_t n);

/* From start to end; 0 when no record had a start. */
static inline uint64_t frame_latency_ns(const struct frame *frame)
{
	return frame->start_ns < frame->end_ns ? frame->end_ns - frame->start_ns : 0;
}
