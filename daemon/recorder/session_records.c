/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_records.c: copies the raw records of a session's app from its log, counts its frames on
 * the way, and decides when the session is measured and over. So the file ends with the last frame
 * that counts, and holds each record once.
 */
#include <math.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/recorder/session_private.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/api.h"

enum { SCAN = 4096 /* records looked at between two looks at the clock */ };

#define BLOCK_NS UINT64_C(10000000000)
#define BLOCKS 16			/* of a file, at least */
#define BLOCK_BYTES 65536		/* at least: each has metrics, too, which take time */
#define RETURN_NS UINT64_C(30000000000) /* an app returns so soon after a restart of the daemon */
#define LATE_NS UINT64_C(1000000000)	/* records of several threads are out of order */
#define LONGEST_NS (SESSION_SECONDS_MAX * UINT64_C(1000000000))

static void measure(struct session_run *run, uint64_t t_ns)
{
	struct session *row = run->row;
	run->measured_ns = t_ns;
	row->state = row->state == SESSION_WARMUP ? SESSION_RUNNING : row->state;
	row->measured_us = (double)wallclock_us(run->owner->core->wall, t_ns);
	if (row->seconds > 0 && run->to_ns == 0) {
		run->to_ns = t_ns + (uint64_t)(row->seconds * 1e9);
	}
	session_frames_forget(&run->frames);
}

static void update(struct session_run *run, uint64_t now_ns)
{
	struct session *row = run->row;
	const uint64_t end_ns = run->ending ? run->ended_ns : run->stopped ? run->to_ns : now_ns;
	const double mean_ms = session_frames_mean_ms(&run->frames);
	row->elapsed_s = run->measured_ns > 0 && end_ns > run->measured_ns
				 ? (double)(end_ns - run->measured_ns) / 1e9
				 : 0;
	row->recent_mean_ms = mean_ms;
	row->left_s = (double)NAN;
	if (row->seconds > 0) {
		row->left_s = row->seconds - row->elapsed_s;
	} else if (row->frames > 0 && row->frames_done > 0) {
		row->left_s = (row->frames - (double)row->frames_done) * row->elapsed_s /
			      (double)row->frames_done;
	} else if (row->frames > 0) {
		row->left_s = (row->frames + run->warmup_left) * mean_ms / 1e3;
	}
	row->left_s = !session_is_active(row) ? 0 : row->left_s < 0 ? 0 : row->left_s;
}

/* Where the session began before the clock was synchronised, its start is known only now. */
static void set_times(struct session_run *run, uint64_t end_ns)
{
	const struct wallclock *wall = run->owner->core->wall;
	struct session *row = run->row;
	const int64_t started_us = wallclock_us(wall, run->begin_ns);
	row->ended_ns = end_ns;
	row->ended_us = (double)wallclock_us(wall, end_ns);
	if (started_us - row->started_us > 1000000) {
		row->started_us = started_us;
		row->measured_us = run->measured_ns > 0
					   ? (double)wallclock_us(wall, run->measured_ns)
					   : row->measured_us;
	}
}

void session_run_end(struct session_run *run, uint64_t t_ns, enum session_state state)
{
	if (!run->ending) {
		run->ending = true;
		run->ended_ns = t_ns;
		run->row->state = run->stopped ? run->row->state : state;
		set_times(run, t_ns);
		update(run, t_ns);
	}
}

/* The warm-up's last frame is where the rate counts from; without one, the first frame. */
static void note_rate(struct session_run *run, uint64_t t_ns)
{
	struct session *row = run->row;
	if (run->rate_ns == 0) {
		run->rate_ns = row->warmup > 0 ? run->measured_ns : t_ns;
	}
	if (t_ns > run->rate_ns) {
		const uint64_t frames = row->frames_done - (row->warmup == 0);
		row->fps = (double)frames * 1e9 / (double)(t_ns - run->rate_ns);
	}
	if (row->frames_done % SESSION_RECENT == 0) {
		row->progress_mean_ms = session_frames_mean_ms(&run->frames);
	}
}

static void on_frame(struct session_run *run)
{
	struct session *row = run->row;
	const uint64_t t_ns = run->frames.end_ns;
	if (run->measured_ns > 0) {
		row->frames_done++;
		note_rate(run, t_ns);
		if ((double)row->frames_done >= row->frames) {
			session_run_end(run, t_ns, SESSION_FINISHED);
		}
	} else if (run->warmup_left <= 1) {
		run->warmup_left = 0;
		measure(run, t_ns);
	} else {
		run->warmup_left--;
	}
}

/* Of the session's span, and of a kind that is exported. */
static bool is_wanted(const struct session_run *run, const struct proto_record *record)
{
	const uint64_t end_ns = record->start_ns + (trace_lasts(record) ? record->value : 0);
	return trace_kind_name((enum proto_kind)record->kind) &&
	       record->start_ns >= run->begin_ns && (run->to_ns == 0 || end_ns <= run->to_ns);
}

/* Copies the next records. True: there are none left, or no more are wanted. */
static bool gather(struct session_run *run, const struct trace_log *log)
{
	struct trace_batch *batch = &run->owner->batch;
	batch->rows = 0;
	for (unsigned i = 0; i < SCAN && batch->rows < TRACE_ROWS; i++) {
		const struct event *event = trace_log_next(log, &run->cursor, &run->row->lost);
		if (!event) {
			return true;
		}
		if (run->to_ns > 0 && event->record.start_ns > run->to_ns + LATE_NS) {
			return true;
		}
		if (!is_wanted(run, &event->record)) {
			continue;
		}
		const enum session_step step = session_frames_add(&run->frames, &event->record);
		if (step == SESSION_FRAME_BEFORE) {
			on_frame(run);
		}
		if (run->ending) {
			return true; /* it belongs to the frame behind the last one */
		}
		batch->row[batch->rows++] = *event;
		if (step == SESSION_FRAME_ENDED) {
			on_frame(run);
		}
		if (run->ending) {
			return true;
		}
	}
	return false;
}

static void add_records(struct session_run *run, const struct app *app)
{
	struct json json;
	line_writer_json(&run->lines, &json);
	json_string(&json, "call", "ExportTrace");
	json_open(&json, "parameters", '{');
	json_string(&json, "app", app->name);
	trace_rows_write(&json, &run->owner->batch, app);
	json_unsigned(&json, "lost", run->row->lost);
	json_close(&json, '}');
	json_bool(&json, "continues", true);
	line_writer_json_end(&run->lines, &json);
}

/* False: the time is over, and records wait. */
static bool copy_records(struct session_run *run, const struct app *app, uint64_t until_ns)
{
	const enum session_unit unit =
		app->loop.kind == LOOP_OF_STAGES ? SESSION_OF_STAGES
		: app->loop.kind == LOOP_OF_FRAMES && app->frame_state && !app->frame_state->ticking
			? SESSION_OF_IDS
			: SESSION_OF_FRAMES;
	bool done = !app->log || run->ending;
	session_frames_upgrade(&run->frames, unit);
	while (!done) {
		if (!line_writer_have_room(&run->lines)) {
			session_run_write(run);
		}
		if (!line_writer_have_room(&run->lines)) {
			return true; /* until the other buffer is written */
		}
		done = gather(run, app->log);
		if (run->owner->batch.rows > 0) {
			add_records(run, app);
		}
		if (!done && sysops()->now_ns() >= until_ns) {
			return false;
		}
	}
	return true;
}

/* Looks for the app, and begins what is not begun before it is there. It may be gone already. */
static void meet(struct session_run *run, const struct app *app)
{
	if (run->ending || run->known_ns > 0) {
		return;
	}
	if (!run->row->app[0] && run->measured_ns == 0) {
		measure(run, run->begin_ns);
	}
	if (!app || (app->processes == 0 && app->since_ns < run->entered_ns)) {
		return;
	}
	run->known_ns = app->known_ns;
	run->app_run = app->run;
	run->want_clock = true;
	session_note_affinity(run->row, app);
	if (run->warmup_left == 0 && run->measured_ns == 0) {
		measure(run, app->since_ns > run->begin_ns ? app->since_ns : run->begin_ns);
	}
	if (run->ask) {
		connection_wake(run->ask);
	}
}

static bool is_gone(const struct session_run *run, const struct app *app)
{
	return !app || app->processes == 0 || app->known_ns != run->known_ns ||
	       app->run != run->app_run;
}

/* Nothing follows: the execution or the frame that ended last is one. */
static void finish_frame(struct session_run *run, bool known)
{
	if (known && session_frames_finish(&run->frames)) {
		on_frame(run);
	}
}

static void check_end(struct session_run *run, const struct app *app, uint64_t now_ns)
{
	const struct session *row = run->row;
	if (run->to_ns > 0 && now_ns >= run->to_ns) {
		finish_frame(run, run->stopped && run->frames.unit == SESSION_OF_STAGES);
		session_run_end(run, run->to_ns, SESSION_FINISHED);
	} else if (run->known_ns > 0 && is_gone(run, app)) {
		finish_frame(run, true);
		session_run_end(run, app && app->processes == 0 ? app->last_seen_ns : now_ns,
			SESSION_STOPPED);
	} else if (row->app[0] && run->resumed && run->known_ns == 0 &&
		   now_ns - run->entered_ns > RETURN_NS) {
		session_run_end(run, run->point.mono_us * 1000, SESSION_STOPPED);
	} else if (now_ns - run->begin_ns > LONGEST_NS) {
		session_run_end(run, now_ns, SESSION_STOPPED);
	}
}

void session_run_catch_up(struct session_run *run, uint64_t until_ns)
{
	const struct app *app = sessions_app(run);
	meet(run, app);
	if (run->known_ns > 0 && app && app->known_ns == run->known_ns) {
		copy_records(run, app, until_ns);
	}
}

void session_run_stop(struct session_run *run, uint64_t t_ns, enum session_state state)
{
	struct session *row = run->row;
	run->stopped = true;
	run->to_ns = run->to_ns > 0 && run->to_ns < t_ns ? run->to_ns : t_ns;
	row->state = state;
	set_times(run, run->to_ns);
	session_run_poll(run, t_ns, t_ns + SESSION_SLICE_NS);
	update(run, t_ns);
}

bool session_run_poll(struct session_run *run, uint64_t now_ns, uint64_t until_ns)
{
	const struct app *app = sessions_app(run);
	session_run_write(run);
	meet(run, app);
	if (run->phase != PHASE_RUN) {
		return true;
	}
	const bool met = run->known_ns > 0 && app && app->known_ns == run->known_ns;
	const bool done = !met || copy_records(run, app, until_ns);
	if (done && !run->ending && line_writer_have_room(&run->lines)) {
		check_end(run, app, now_ns);
	}
	update(run, now_ns);
	size_t block_bytes = session_run_limit(run) / BLOCKS;
	block_bytes = block_bytes < BLOCK_BYTES ? BLOCK_BYTES : block_bytes;
	if (run->ending || now_ns - run->point.from_mono_us * 1000 >= BLOCK_NS ||
		run->lines.size - run->block_size >= block_bytes) {
		session_run_block(run);
	}
	return done;
}
