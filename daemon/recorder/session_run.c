/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_run.c: writes the file of one session. Replies of the interface's methods, made on a
 * local connection as the session's user, become lines; raw records are added by session_records.c.
 *
 * The file, DIR/sessions/NAME.jsonl (mode 0640):
 *     {"schema":"edgeprof.session/1","session":{…}, …}  the row at its start
 *     {"call":"GetStatus","parameters":{…}}             replies, each with its method
 *     {"call":"ExportTrace","parameters":{…}}           records
 *     {"part":{…}}                                      how far it is, after each write
 *     {"block":{…}}                                     the same; what precedes is one block of
 * time
 *     {"restart":{…}}                                   the daemon was restarted here
 *     {"end":{…}}                                       the final row
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/recorder/session_private.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/api.h"
#include "proto/text.h"

static const char *const calls_begin[] = {"GetStatus", "GetThrottle", "ListAlerts", "ListApps"};

static const struct {
	const char *method, *parameters;
} calls_end[] = {{"ListStages", ""}, {"GetFrames", ",\"slow\":true,\"recent\":32"},
	{"GetReport", ""}, {"ListMarks", ""}};

enum {
	CALLS_BEGIN = sizeof(calls_begin) / sizeof(calls_begin[0]),
	CALLS_END = sizeof(calls_end) / sizeof(calls_end[0]),
};

static bool has_room(void *ctx)
{
	return line_writer_have_room(&((const struct session_run *)ctx)->lines);
}

static int64_t wall_us(const struct session_run *run, uint64_t t_ns)
{
	return wallclock_us(run->owner->core->wall, t_ns);
}

/* ---- writing ---- */

/* How far the session is, as a line. */
static void add_point(struct session_run *run, bool is_block)
{
	char line[1024];
	struct session_point *point = &run->point;
	point->block = run->block;
	point->frames_done = run->row->frames_done;
	point->warmup_left = run->warmup_left;
	point->lost = run->row->lost;
	point->kept_s = run->kept_s + run->due_s;
	point->measured_mono_us = run->measured_ns / 1000;
	point->rate_mono_us = run->rate_ns / 1000;
	point->measured_us = run->measured_ns > 0 ? (int64_t)run->row->measured_us : 0;
	line_writer_add(
		&run->lines, line, session_point_write(point, is_block, line, sizeof(line)));
	run->pointed = run->lines.size;
}

static bool add_end(struct session_run *run)
{
	struct json json;
	if (!run->end_added && line_writer_have_room(&run->lines)) {
		line_writer_json(&run->lines, &json);
		session_write(&json, "end", run->row);
		run->end_added = line_writer_json_end(&run->lines, &json);
	}
	return run->end_added;
}

size_t session_run_limit(const struct session_run *run)
{
	const struct session_recorder *owner = run->owner;
	return (size_t)sessions_file_limit(&owner->sessions, run->row, &owner->limits);
}

void session_run_write(struct session_run *run)
{
	struct session_recorder *owner = run->owner;
	if (run->lines.writing ||
		(!owner->closing && sessions_is_removing(owner, run->row->name))) {
		return;
	}
	const bool finish = run->phase == PHASE_CLOSE && !run->removed && add_end(run);
	if (!finish && !run->flush_due && line_writer_have_room(&run->lines)) {
		return;
	}
	if (!finish && run->lines.size > run->pointed) {
		run->point.mono_us = sysops()->now_ns() / 1000;
		add_point(run, false);
	}
	run->file.finish = finish;
	run->file.block_s = run->due_s;
	run->flushed_s = run->point.total_s;
	run->file.max_bytes = session_run_limit(run);
	if (line_writer_flush(&run->lines) == 0) {
		run->kept_s += run->due_s; /* until it turns out */
		run->due_s = 0;
		run->flush_due = false;
	} else if (owner->closing) {
		run->due_s = 0;
		run->flush_due = false;
		line_writer_write_now(&run->lines);
	} /* else the timer tries again */
}

static int write_file(void *owner, const char *bytes, size_t length)
{
	return session_file_write(&((struct session_run *)owner)->file, bytes, length);
}

static void close_ask(struct session_run *run)
{
	if (run->ask) {
		connection_close(run->ask);
		run->ask = NULL;
	}
}

static void close_run(struct session_run *run)
{
	close_ask(run);
	session_file_close(&run->file);
	sessions_on_closed(run);
}

static void note_written(struct session_run *run, int result)
{
	struct session *row = run->row;
	row->bytes = run->file.bytes;
	run->kept_s = run->file.kept_s;
	if (run->file.kept_s < run->flushed_s - 1e-3) { /* sums of the same numbers */
		row->kept_share = run->file.kept_s / run->flushed_s;
	}
	if (result < 0 && row->bytes == 0) {
		snprintf(row->error, sizeof(row->error), "its file cannot be written: %s",
			strerror(-result));
		session_run_end(run, sysops()->now_ns(), SESSION_FAILED);
	} else if (result < 0) {
		snprintf(row->cut, sizeof(row->cut), "not all is written: %s", strerror(-result));
	} else if (run->file.thinned && !row->cut[0]) {
		snprintf(row->cut, sizeof(row->cut), "thinned: the file reached its limit");
	}
}

static void on_written(void *owner, int result)
{
	struct session_run *run = owner;
	note_written(run, result);
	const bool suspended = run->owner->closing && !run->flush_due &&
			       (run->phase != PHASE_CLOSE || run->end_added);
	if (result < 0 && run->file.finish && !run->removed && !run->torn && run->row->bytes > 0) {
		run->torn = true; /* the last line alone, which says so, may still fit */
		run->end_added = false;
		session_run_write(run);
		return;
	}
	if (run->file.finish || run->removed || suspended || run->row->bytes == 0) {
		close_run(run);
		return;
	}
	sessions_evict(run->owner);
	if (run->ask) {
		connection_wake(run->ask);
	}
	session_run_write(run);
}

/* ---- blocks ---- */

static void end_block(struct session_run *run)
{
	struct session_point *point = &run->point;
	point->mono_us = sysops()->now_ns() / 1000;
	const double block_s = session_point_block_s(point);
	point->total_s += block_s;
	run->due_s += block_s;
	add_point(run, true);
	run->flush_due = true;
	run->block++;
	point->from_us = point->to_us;
	point->from_mono_us = point->mono_us;
	run->block_size = run->lines.size;
}

static void close_phase(struct session_run *run)
{
	run->phase = PHASE_CLOSE;
	close_ask(run);
}

void session_run_block(struct session_run *run)
{
	run->point.to_us = wall_us(run, sysops()->now_ns());
	run->span = (struct line_span){run->row->app, run->point.serial,
		timeline_last_serial(run->owner->core->timeline), run->point.history_us + 1,
		run->point.to_us};
	run->last_block = run->ending;
	run->phase = PHASE_BLOCK;
	run->step = run->span.serial > run->span.last_serial; /* no event */
	if (run->ask) {
		connection_wake(run->ask);
	} else {
		end_block(run);
		run->phase = PHASE_RUN;
		if (run->last_block) {
			close_phase(run);
		}
	}
	session_run_write(run);
}

static void advance(struct session_run *run)
{
	run->step++;
	if (run->phase == PHASE_BEGIN && run->step == CALLS_BEGIN) {
		end_block(run);
		run->phase = PHASE_RUN;
	} else if (run->phase == PHASE_BLOCK && run->step == LINE_SPAN_STEPS) {
		run->point.history_us = run->point.to_us;
		end_block(run);
		run->phase = run->last_block ? PHASE_END : PHASE_RUN;
		run->step = 0;
	}
	if (run->phase == PHASE_END && (run->step == CALLS_END || !run->row->app[0])) {
		close_phase(run);
	}
}

/* ---- calls ---- */

static size_t next_ask(void *ctx, char *message, size_t size)
{
	struct session_run *run = ctx;
	if (!has_room(run)) {
		return 0;
	}
	if (run->want_clock) { /* a span without records: its start has the clock and the app */
		const int64_t now_us = wall_us(run, sysops()->now_ns());
		run->asks_clock = true;
		run->asked = "ExportTrace";
		return line_writer_call(message, size, run->asked,
			"\"app\":\"%s\",\"from_us\":%" PRId64 ",\"to_us\":%" PRId64, run->row->app,
			now_us, now_us);
	}
	switch (run->phase) {
	case PHASE_BEGIN:
		run->asked = calls_begin[run->step];
		return line_writer_call(message, size, run->asked, "%s", "");
	case PHASE_BLOCK:
		return line_span_call(&run->span, run->step, message, size, &run->asked);
	case PHASE_END:
		run->asked = calls_end[run->step].method;
		return line_writer_call(message, size, run->asked, "\"app\":\"%s\"%s",
			run->row->app, calls_end[run->step].parameters);
	case PHASE_RUN:
	case PHASE_CLOSE:
		break;
	}
	return 0;
}

static void on_clock(struct session_run *run, const char *reply, size_t length, bool continues)
{
	if (text_starts_with(reply, "{\"parameters\":{\"start\":")) {
		line_writer_add_reply(&run->lines, run->asked, reply, length);
	}
	if (!continues) {
		run->want_clock = run->asks_clock = false;
	}
}

static void on_answer(void *ctx, const char *reply, size_t length, bool continues, bool failed)
{
	struct session_run *run = ctx;
	if (run->asks_clock) {
		on_clock(run, reply, length, continues);
		session_run_write(run);
		return;
	}
	if (!failed && !line_span_is_empty(reply)) {
		line_writer_add_reply(&run->lines, run->asked, reply, length);
	}
	if (run->phase == PHASE_BLOCK && run->step == 0) {
		continues = line_span_next_page(&run->span, reply);
		run->point.serial = run->span.serial;
	}
	if (!continues) {
		advance(run);
	}
	session_run_write(run);
}

/* ---- start and end ---- */

static void add_header(struct session_run *run)
{
	struct json json;
	line_writer_json(&run->lines, &json);
	json_string(&json, "schema", "edgeprof.session/1");
	session_write(&json, "session", run->row);
	line_writer_origin(&json, run->owner->core, run->row->started_us, run->begin_ns);
	json_bool(&json, "privileged", run->privileged);
	line_writer_json_end(&run->lines, &json);
}

static void begin_new(struct session_run *run, uint64_t now_ns)
{
	const struct core *core = run->owner->core;
	run->begin_ns = now_ns;
	run->warmup_left = run->row->warmup;
	run->point.from_us = run->point.to_us = run->point.history_us = wall_us(run, now_ns);
	run->point.from_mono_us = now_ns / 1000;
	run->point.serial = timeline_last_serial(core->timeline) + 1;
	add_header(run);
}

/* Behind the last point; what it had not written yet is lost. */
static void begin_again(struct session_run *run, const struct session_found *found, uint64_t now_ns)
{
	char line[160];
	const struct session_point *last = &found->last;
	struct session *row = run->row;
	run->resumed = true;
	run->begin_ns = found->begin_mono_us * 1000;
	run->point = *last;
	run->block = last->block;
	run->warmup_left = (uint32_t)last->warmup_left;
	run->file.bytes = found->row.bytes;
	run->file.kept_s = run->kept_s = last->kept_s;
	session_point_apply(last, row);
	if (row->kept_share < 0.999) {
		snprintf(row->cut, sizeof(row->cut), "not all was kept before a restart");
	}
	run->measured_ns = last->measured_mono_us * 1000;
	run->rate_ns = last->rate_mono_us * 1000;
	if (run->measured_ns > 0) {
		row->state = SESSION_RUNNING;
		run->to_ns =
			row->seconds > 0 ? run->measured_ns + (uint64_t)(row->seconds * 1e9) : 0;
	}
	int n = snprintf(line, sizeof(line),
		"{\"restart\":{\"time_us\":%" PRId64 ",\"mono_us\":%" PRIu64
		",\"version\":\"%s\"}}\n",
		wall_us(run, now_ns), now_ns / 1000, run->owner->core->facts->version);
	line_writer_add(&run->lines, line, (size_t)n);
}

int session_run_start(struct session_recorder *owner, struct session *row, bool privileged,
	const struct session_found *resume, uint64_t now_ns)
{
	static const struct line_writer_ops ops = {.write = write_file, .written = on_written};
	static const struct api_local_ops ask = {next_ask, has_room, on_answer};
	struct session_run *run = owner->runs == RUNS_MAX ? NULL : mem_zalloc(sizeof(*run));
	if (!run) {
		return -ENOMEM;
	}
	run->owner = owner;
	run->row = row;
	run->privileged = privileged;
	run->file = (struct session_file){.folder = -1, .fd = -1};
	memcpy(run->file.dir, owner->sessions.dir, sizeof(run->file.dir));
	memcpy(run->file.name, row->name, sizeof(run->file.name));
	line_writer_init(&run->lines, owner->loop, &ops, run);
	int r = connection_open_local(owner->api, &ask, run, &run->ask);
	if (r < 0) {
		free(run);
		return r;
	}
	if (!privileged) {
		run->ask->uid = row->uid; /* who reads the file sees what this user may see */
	}
	if (resume) {
		begin_again(run, resume, now_ns);
		run->phase = PHASE_RUN;
	} else {
		begin_new(run, now_ns);
	}
	run->entered_ns = now_ns;
	row->writing = true;
	owner->run[owner->runs++] = run;
	connection_wake(run->ask);
	return 0;
}

void session_run_suspend(struct session_run *run)
{
	close_ask(run);
	if (run->phase < PHASE_END) {
		run->point.to_us = wall_us(run, sysops()->now_ns());
		end_block(run);
		if (run->ending || run->stopped) {
			run->phase = PHASE_CLOSE;
		}
	} else {
		run->phase = PHASE_CLOSE;
	}
	run->flush_due = true;
	session_run_write(run);
}

void session_run_abandon(struct session_run *run)
{
	run->phase = PHASE_CLOSE;
	close_ask(run);
	if (!run->lines.writing) {
		close_run(run);
	}
}
