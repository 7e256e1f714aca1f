/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h: defines what one iteration of an app's loop costs, stage by stage. An iteration is a
 * finished frame; in an app without frames the time between two ticks; in one without either, what
 * lies between the starts of two runs of the stage that runs most often (of several, the first
 * seen). Per-frame cost of a stage = time spent in it inside the iterations of the recent window /
 * their number. What runs outside of any iteration is counted apart.
 *
 * Each stage has running sums. When an iteration ends, the sums as they were then are kept by the
 * first run that comes after it, so that its end costs nothing; every few iterations the sums
 * are noted, and the window goes from one such note to the end of the last iteration. Threads are
 * read in turns: sums of stages on another thread than that of the iterations are closed
 * at the end of a pass.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/stages/stages.h"

struct app;
struct apps_options;
struct frame;

enum loop_kind { LOOP_OF_STAGES, LOOP_OF_TICKS, LOOP_OF_FRAMES };

/* Of an app. Zeroed = nothing seen. */
struct app_loop {
	enum loop_kind kind;
	uint32_t epoch;	      /* changes with each end of an iteration */
	uint32_t votes;	      /* of the stage whose starts are the ends; UINT32_MAX: of no stage */
	int32_t to_note;      /* iterations until the next note */
	uint32_t step;	      /* between two notes; 0 = not yet known */
	uint32_t window;      /* iterations */
	uint32_t frames;      /* the window where they are frames or intervals of ticks */
	bool begun;	      /* an iteration goes on */
	bool spoilt;	      /* it had a run that was skipped */
	bool apart;	      /* a stage is */
	struct stage *marker; /* LOOP_OF_STAGES */
	uint64_t iterations;
	uint64_t threads;  /* a bit for each that ran a stage; more than 64 share bits */
	uint64_t thread;   /* the bit of the iterations' */
	uint64_t by_id_ns; /* end of the last run by id */
	uint32_t notes, next;
	uint64_t note[LOOP_NOTES]; /* iterations then */
	/* ticks */
	uint64_t tick_ns, framed_ns; /* the last one; the end of what last carried a frame id */
	uint64_t frame_ns, gap_ns;   /* the last frame's end; what usually lies between two */
	uint32_t bare_ticks;	     /* since the last frame */
	uint32_t warmup_left;
};

/* What the window holds. */
struct loop_window {
	uint64_t iterations;	   /* 0 = nothing is known */
	int note;		   /* it begins there; -1: with the first iteration */
	bool open;		   /* the iteration that goes on is complete already, and counts */
	const struct frame *frame; /* the same of the frame that goes on; NULL = none */
};

/* Begins the loop of an app that has none yet. */
void app_loop_init(struct app_loop *loop, const struct apps_options *options);
/* The next count frames or ticks belong to no iteration. */
void app_loop_warm_up(struct app_loop *loop, uint32_t count);

/* A tick at this time, between two runs of its thread (a bit). Runs: app_loop_run(). */
void app_loop_tick(struct app *app, uint64_t t_ns, uint64_t thread);
/* A frame is finished. stage_of: the stages of its parts; NULL = gone. True when it counts. */
bool app_loop_frame(struct app *app, const struct frame *frame, struct stage *const *stage_of);
/* All threads of a process have been read. */
void app_loop_passed(struct app *app);
/* The stage goes. */
void app_loop_forget(struct app *app, const struct stage *stage);

void app_loop_window(const struct app *app, struct loop_window *ret);
/* What the stage did in the window; zeroes: nothing. */
struct loop_sum app_loop_cost(
	const struct app *app, const struct loop_window *window, const struct stage *stage);
/* Stages ran on more than one thread, or frames overlapped: their sum is what a sequential loop
 * would take. */
bool app_loop_is_parallel(const struct app *app);
