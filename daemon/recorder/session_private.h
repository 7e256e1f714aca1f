/* SPDX-License-Identifier: Apache-2.0 */
/* session_private.h: declares what sessions.c (which there are), session_requests.c (what clients
 * want), session_run.c (the file of one that is going on) and session_records.c (its records)
 * share. */
#pragma once

#include "daemon/core/frames/trace_buffer.h"
#include "daemon/core/status/session_frames.h"
#include "daemon/core/status/sessions.h"
#include "daemon/recorder/line_writer.h"
#include "daemon/recorder/session_file.h"
#include "daemon/recorder/sessions.h"
#include "daemon/varlink/methods/apps/trace_rows.h"

enum {
	RUNS_MAX = 2 * SESSIONS_ACTIVE, /* with those whose last lines are being written */
	REMOVALS_MAX = SESSIONS_MAX,
};

struct api_connection;
struct app;

#define SESSION_SLICE_NS 500000u /* of an iteration of the loop */

enum session_phase {
	PHASE_BEGIN, /* the state at the start */
	PHASE_RUN,   /* records, as they come */
	PHASE_BLOCK, /* events and metrics of a block */
	PHASE_END,   /* the statistics at the end */
	PHASE_CLOSE, /* the last line */
};

/* An active session, and one whose last lines are being written. */
struct session_run {
	struct session_recorder *owner;
	struct session *row;
	bool privileged;
	bool removed; /* the row is not in the list any more, nor shall the file be */
	enum session_phase phase;
	unsigned step;
	struct api_connection *ask;  /* NULL = closed */
	const char *asked;	     /* the method of the present call */
	bool want_clock, asks_clock; /* the start of an ExportTrace */

	uint64_t known_ns, app_run; /* of the app; 0 = it was not seen yet */
	uint64_t entered_ns;	    /* since when the daemon has it */
	bool resumed;
	struct trace_cursor cursor;
	uint64_t begin_ns, measured_ns, ended_ns, to_ns; /* 0 = not yet, none */
	uint64_t rate_ns;				 /* where fps counts from: a frame's end */
	uint32_t warmup_left;
	bool stopped, ending, last_block;
	struct session_frames frames;

	uint64_t block;
	struct line_span span;	    /* of the block that ends */
	struct session_point point; /* serial, history_us, from_us, total_s: up to here */
	size_t block_size;	    /* of lines when the block began */
	size_t pointed;		    /* size of lines at the last point */
	bool flush_due, end_added, torn;
	double due_s;	  /* of the blocks that the next flush ends */
	double flushed_s; /* of all blocks up to the last flush */
	double kept_s;	  /* of the file, as written last */
	struct session_file file;
	struct line_writer lines;
};

struct session_recorder {
	uv_loop_t *loop;
	struct core *core;
	struct api *api;
	struct session_options options;
	struct session_limits limits;
	bool in_memory; /* the folder is in the run directory */
	bool closing, timer_closed;
	uv_timer_t timer;
	struct sessions sessions;
	size_t runs, served; /* of this round */
	bool behind;	     /* records wait, of one that was served */
	struct session_run *run[RUNS_MAX];
	size_t removals; /* files that are being deleted, the first one on a thread */
	char removal[REMOVALS_MAX + 1][PROTO_NAME_SIZE];
	struct offload *remover;
	struct trace_batch batch;
};

/* Begins the session of the row. resume: it goes on from there; NULL = it is new. -errno: nothing
 * was begun. */
int session_run_start(struct session_recorder *owner, struct session *row, bool privileged,
	const struct session_found *resume, uint64_t now_ns);
/* One slice until that time. False: more records wait. */
bool session_run_poll(struct session_run *run, uint64_t now_ns, uint64_t until_ns);
/* The records that there are. */
void session_run_catch_up(struct session_run *run, uint64_t until_ns);
/* It has that state at once, and ends when the records up to then are copied. */
void session_run_stop(struct session_run *run, uint64_t t_ns, enum session_state state);
/* Ends it; the row is final but for what is being written. */
void session_run_end(struct session_run *run, uint64_t t_ns, enum session_state state);
/* Starts to end the block: what was recorded up to now is one, the last one when the session has
 * ended. */
void session_run_block(struct session_run *run);
/* The size that its file may have. */
size_t session_run_limit(const struct session_run *run);
/* Hands the buffer to a thread when it is full, or a block or the session has ended. */
void session_run_write(struct session_run *run);
/* The daemon stops: writes what there is. */
void session_run_suspend(struct session_run *run);
/* Abandons it: run->removed is set. */
void session_run_abandon(struct session_run *run);

/* sessions.c: of a row that is active or being written, else NULL. */
struct session_run *sessions_run_of(
	const struct session_recorder *recorder, const struct session *row);
/* sessions.c: removes the row and its file, whatever state it is in. */
void sessions_discard(struct session_recorder *recorder, struct session *row);
/* sessions.c: there is something for the timer to do. */
void sessions_serve(struct session_recorder *recorder);
/* session_requests.c: each run of an app becomes a session. */
void sessions_start_automatic(struct session_recorder *recorder, uint64_t now_ns);
/* sessions.c: nothing more is written. */
void sessions_on_closed(struct session_run *run);
/* sessions.c: the old file of that name is still being removed. */
bool sessions_is_removing(const struct session_recorder *recorder, const char *name);
/* sessions.c: sizes have changed. */
void sessions_evict(struct session_recorder *recorder);
/* sessions.c: the app that a session is of, when the user may see it; else NULL. */
const struct app *sessions_app(const struct session_run *run);
/* session_requests.c: into the environment, what is known of a process of the app. */
void session_note_affinity(struct session *row, const struct app *app);
