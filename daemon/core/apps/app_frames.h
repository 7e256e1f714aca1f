/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_frames.h: declares the frames of an app: its stream (frames.h) and the frames themselves
 * (frame_table.h), brought together from the records of all its threads and processes. A process
 * is read in passes, and processes one after the other: what a pass brought counts when every
 * process of the app has been read up to that time, but after APP_FRAMES_WAIT_NS in any case.
 *
 * Where FRAME records come they are the ticks; an app that only tags stages with frame ids ticks
 * when its frames are done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/frames/frame_table.h"
#include "daemon/core/frames/frames.h"

enum {
	APP_TICKS_MAX = 512, /* that wait for their order; more of one pass come out of order */
	APP_SLOW_FRAMES = 32,
	APP_SLOW_MIN_FRAMES = 20, /* frames that must have been seen before one is slow */
	APP_FRAMES_UNENDED =
		8, /* in a row, for as many intervals: no FRAME records come any more */
	APP_FRAMES_ENDLESS = 64, /* runs of its only stage: its id is the same for ever */
};

#define APP_FRAMES_WAIT_NS UINT64_C(1000000000)

struct app;
struct app_process;
struct apps;

/* Of a process. */
struct app_process_frames {
	uint64_t pass_ns; /* when the pass began that runs now, or the last one; by ingest */
	uint64_t read_ns; /* everything up to this time has been read */
	uint64_t dropped; /* events that were dropped up to the pass before */
	bool begun;	  /* its first tick came */
	struct frame_table *table;	   /* the app's, when an index below is known */
	uint16_t serial;		   /* distinguishes the app's processes */
	uint8_t idx[PROTO_DECLARATIONS];   /* + 1, in the frame table; 0 = not known yet */
	uint16_t name[PROTO_DECLARATIONS]; /* + 1, in the log of events; 0 = not known yet */
};

struct app_tick {
	uint64_t t_ns; /* first: time_order() */
	uint64_t id;
	uint64_t took_ns; /* 0 = a bare tick */
};

struct app_frames {
	struct apps *apps;
	struct app *app;
	struct frame_table *table;	       /* NULL until the first frame id */
	struct stage *stage[FRAME_STAGES + 1]; /* by index in the table; NULL: gone */
	bool ticking;			       /* FRAME records come */
	bool of_ids;			       /* FRAME records with ids come */
	uint32_t unended; /* frames without one since the last, which ended then: */
	uint64_t record_ns;
	uint64_t unfinished; /* frames with stages that no FRAME record ended */
	uint64_t slow_ns;    /* a frame that takes longer is slow; 0 = not known yet */
	struct frame *slow;  /* ring of copies; NULL until the first */
	size_t slow_count, slow_next;
	size_t ticks;
	bool unordered; /* the ticks are not ascending */
	struct app_tick tick[APP_TICKS_MAX];
};

/* What ended until now_ns and has been read, counts. For each process, after its pass. */
void app_frames_drained(struct app_process *process);
/* Nothing more comes of the process; without any other the app's frames are all done. */
void app_frames_gone(struct app_process *process);
/* Frames wait for their end, or ticks for their turn. */
bool app_frames_open(const struct app *app);
/* Each interval: the stream's numbers, to judge what is slow. */
void app_frames_note(struct app *app, const struct frames_stats *stats);
void app_frames_destroy(struct app_frames *frame_state);
/* The stage goes. */
void app_frames_forget(struct app *app, const struct stage *stage);

/* The newest frames, or slow ones, newest first; at most n. How many. Valid until the next record.
 */
size_t app_frames_recent(const struct app *app, bool slow, const struct frame **ret, size_t n);
