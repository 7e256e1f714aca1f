/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past_frames.h: reads the frames of an app's current run from its raw records, for diagnosis and
 * `why`: what carries a frame id is one frame; in an app without ids an iteration goes from one
 * start of its main stage to the next (loop.h). Where an app reports the end of frames, or threads
 * hand them on, those that got no further are none: a queue dropped them. Ascending by end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/diagnose/facts/facts.h"

struct app;

enum { PAST_FRAMES = 2048, PAST_EVENTS = 12288 /* the newest, at most, are looked at */ };

struct past_frame {
	uint64_t id; /* PROTO_NO_FRAME: an iteration without one */
	uint64_t start_ns, end_ns;
	uint64_t delta_ns;	      /* since the end of the frame before; 0 = not known */
	float busy_ms;		      /* in outermost stages */
	float cpu_ms;		      /* CPU time of its stages where measured; NAN */
	float stage_ms[FACTS_STAGES]; /* without what is nested in it; NAN: did not run */
	float wait_ms[FACTS_STAGES];  /* from the end of the stage that ran before, to its start */
	bool has_context;	      /* the five below are known */
	/* run_delay_us may be PROTO_CPU_NOT_MEASURED all the same */
	uint32_t run_delay_us, voluntary, involuntary, minor_faults, major_faults;
	uint8_t throttled; /* enum throttle_value at its end */
};

/* Private to past_frames.c: what is known of a frame while it is put together. */
struct past_scratch {
	uint64_t begun_ns;	 /* what wait_ms and ended_ms are after */
	uint64_t closed_ns;	 /* end of its FRAME record; 0 = none came */
	uint16_t thread, closer; /* the one that began it; that sent the record */
	uint64_t handed_ns; /* when another one than that which began it went on with it; or 0 */
	float ended_ms[FACTS_STAGES]; /* wait_ms: when the stage began */
};

struct past_frames {
	bool of_stages; /* iterations instead of frames */
	bool whole;	/* the frames are all of the run, but for its warm-up */
	size_t count;
	uint64_t first_event_ns; /* how far the records reach back */
	uint64_t events;	 /* of stages and frames, in that time */
	uint64_t begun;		 /* frames in that time, those not kept too; not those dropped */
	uint64_t unended;	 /* those dropped: others that began later have ended */
	size_t pace;		 /* 1 + the stage whose runs end frames; 0: frames count */
	size_t stages;
	char stage[FACTS_STAGES][PROTO_NAME_SIZE]; /* names, first seen first */
	struct {
		uint64_t count;
		uint64_t overlaps;	  /* it went on in another frame meanwhile; outermost */
		uint64_t end_ns, frame;	  /* of the last of those */
		double cpu_ms, cpu_of_ms; /* of the last ones, where measured */
	} runs[FACTS_STAGES];
	struct past_frame frame[PAST_FRAMES]; /* the newest, oldest first */
	struct past_scratch scratch[PAST_FRAMES];
};

/* Reads those that ended in [from_ns, to_ns], without those of the warm-up. After a pause of more
 * than FRAMES_PAUSE_S the delta is not known. */
void past_frames_read(
	const struct app *app, uint64_t from_ns, uint64_t to_ns, struct past_frames *ret);

/* Private to past_frames.c. When stages began becomes how long that was after another's end. */
void past_finish_waits(struct past_frames *past);
/* Ascending by end, or where it is not known yet by start; they are nearly in order. */
void past_sort(struct past_frames *past);
