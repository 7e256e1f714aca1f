/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_frames.h: counts the frames of an app in its raw records, in the order of its log: FRAME
 * records where the app sends them, else new frame ids, else executions of the outermost stage that
 * ran most often. So what a session counted is what its file holds. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/frames/trace_buffer.h"

enum { SESSION_RECENT = 50 /* frames of the recent mean */ };

enum session_unit { SESSION_OF_STAGES, SESSION_OF_IDS, SESSION_OF_FRAMES };

/* Zeroed = nothing seen. */
struct session_frames {
	enum session_unit unit;
	bool begun;	   /* a frame goes on; not of FRAME records */
	uint64_t id;	   /* its id */
	uint64_t begin_ns; /* of the frame that goes on */
	uint64_t seen_ns;  /* the end of what was seen last */
	uint64_t end_ns;   /* of the frame that ended last */
	uint32_t most;	   /* executions of the stage that ran most often */
	uint32_t votes[TRACE_NAMES_MAX];
	uint32_t filled, next;
	uint64_t took_ns[SESSION_RECENT];
};

enum session_step {
	SESSION_GOES_ON,
	SESSION_FRAME_ENDED,  /* with this record */
	SESSION_FRAME_BEFORE, /* before this record, which belongs to the next one */
};

/* The next record of the log. */
enum session_step session_frames_add(
	struct session_frames *frames, const struct proto_record *record);
/* Nothing follows: true when the frame that goes on is one, which ends then. */
bool session_frames_finish(struct session_frames *frames);
/* The app is known to send better ones than were seen so far. */
void session_frames_upgrade(struct session_frames *frames, enum session_unit unit);
/* Of the last 50, in ms; NAN: none. */
double session_frames_mean_ms(const struct session_frames *frames);
/* The warm-up ended. */
void session_frames_forget(struct session_frames *frames);
