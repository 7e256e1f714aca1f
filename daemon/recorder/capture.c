/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.c: makes one recording. The encoders of the interface's methods are called on the loop,
 * in the slices of any call (connection_open_local), and their replies become lines of JSON;
 * threads write them to the file, one buffer after the other. While both buffers are full the
 * encoders wait.
 *
 * The file, DIR/NAME.jsonl (mode 0640):
 *     {"schema":"edgeprof.recording/1", …}              the header
 *     {"call":"GetStatus","parameters":{…}}             replies as they came, each with its method
 *     {"call":"ExportTrace","parameters":{…},"continues":true}
 *     {"part":{"time_us":…,"trigger":"…", …}}           what it is so far, after each write
 *     {"end":{"time_us":…,"trigger":"…", …}}            what became of it
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/frames/trace_buffer.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/recorder/line_writer.h"
#include "daemon/recorder/private.h"
#include "daemon/recorder/recording_folder.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/api.h"
#include "proto/text.h"

enum {
	JOINED_MAX = 2048, /* of the further triggers' text */
	ROW_BYTES = 90,	   /* of a raw record as JSON; most have 75 */
};

/* What is in front of the records: the state at the trigger. */
static const char *const calls_before[][2] = {{"GetStatus", ""}, {"GetThrottle", ""},
	{"ListAlerts", ""}, {"ListApps", ""}, {"ListStages", ""},
	{"GetFrames", "\"slow\":true,\"recent\":32"}};

enum {
	CALLS_BEFORE = sizeof(calls_before) / sizeof(calls_before[0]),
	/* the steps of a capture; at first the calls before */
	STEP_TRACE = CALLS_BEFORE, /* raw records, as they come */
	STEP_WAIT,		   /* for the end of the span: records ended early */
	STEP_SPAN,		   /* the timeline and metrics */
	STEP_MARKS = STEP_SPAN + LINE_SPAN_STEPS,
	STEP_END, /* the last line is in the buffer */
};

struct capture {
	struct recorder *recorder;
	struct recording row;
	uint64_t t_ns, from_ns, to_ns; /* CLOCK_MONOTONIC */
	struct line_span span;	       /* the same by the wall clock as it is known now */
	size_t max_bytes, trace_limit; /* of the file; of it up to the last raw record */
	char joined[JOINED_MAX];       /* further triggers as JSON objects, a comma before each */
	unsigned step;
	const char *method;		    /* of the present call */
	bool asked;			    /* ExportTrace was called */
	bool over;			    /* something was skipped for its size */
	struct api_connection *trace, *ask; /* NULL = closed */

	size_t header, parted; /* bytes of the first line; up to the last part */
	int result;	       /* -errno: the file is abandoned */
	struct recording_file file;
	struct line_writer lines;
};

static bool has_room(void *ctx)
{
	return line_writer_have_room(&((const struct capture *)ctx)->lines);
}

static int write_file(void *owner, const char *bytes, size_t length)
{
	struct recording_file *file = &((struct capture *)owner)->file;
	file->bytes = bytes;
	file->length = length;
	return recording_file_write(file);
}

static void on_timer(uv_timer_t *timer);

/* What the recording is so far, as a line. 0 or -errno. */
static int add_row(struct capture *capture, const char *kind, const char *joined)
{
	char line[RECORDING_END_MAX];
	const uint64_t now_ns = sysops()->now_ns(), t_ns = capture->t_ns;
	const uint64_t to_ns = now_ns < capture->to_ns ? now_ns : capture->to_ns;
	struct recording *row = &capture->row;
	row->before_s = (double)(t_ns - capture->from_ns) / 1e9;
	row->after_s = to_ns > t_ns ? (double)(to_ns - t_ns) / 1e9 : 0;
	row->span_s = row->before_s + row->after_s;
	int n = recording_row_write(row, kind, joined, line, sizeof(line));
	if (n > 0) {
		line_writer_add(&capture->lines, line, (size_t)n);
	}
	capture->parted = capture->lines.size;
	return n < 0 ? n : 0;
}

/* Hands the buffer to a thread when the one before is written. */
static int flush(struct capture *capture)
{
	bool finish = capture->step == STEP_END;
	if (capture->lines.writing || (capture->lines.length == 0 && !finish)) {
		return 0;
	}
	if (!finish && capture->lines.size > capture->parted) {
		add_row(capture, "part", "");
	}
	capture->file.finish = finish;
	capture->file.result = capture->result;
	return line_writer_flush(&capture->lines);
}

static void keep_writing(struct capture *capture)
{
	struct recorder *recorder = capture->recorder;
	int r = flush(capture);
	if (r < 0 && recorder->closing) {
		line_writer_write_now(&capture->lines);
	} else if (r < 0) {
		uv_timer_start(&recorder->timer, on_timer, LINE_RETRY_MS, 0);
	}
}

static void close_connection(struct api_connection **connection)
{
	if (*connection) {
		connection_close(*connection);
		*connection = NULL;
	}
}

/* Writes the last line, with which the file is a recording. */
static void finish(struct capture *capture)
{
	struct recording *row = &capture->row;
	if (capture->over && !row->cut[0]) {
		snprintf(row->cut, sizeof(row->cut), "sensors over max_size");
	}
	capture->result = add_row(capture, "end", capture->joined + (capture->joined[0] == ','));
	capture->step = STEP_END;
	close_connection(&capture->trace);
	close_connection(&capture->ask);
}

/* The size up to which the file may grow in this step. */
static size_t limit_of(const struct capture *capture)
{
	const size_t max = capture->max_bytes;
	return capture->step < STEP_TRACE    ? max / 8
	       : capture->step == STEP_TRACE ? capture->trace_limit
	       : capture->step == STEP_SPAN  ? max - RECORDING_END_MAX - max / 16
					     : max - RECORDING_END_MAX;
}

static void advance(struct capture *capture)
{
	capture->step++;
	if (capture->step == STEP_TRACE) {
		capture->trace_limit = capture->lines.size + capture->max_bytes / 8 * 5;
		if (capture->trace) {
			connection_wake(capture->trace);
			return;
		}
		capture->step++;
	}
	if (capture->step == STEP_WAIT) {
		close_connection(&capture->trace);
		uv_timer_start(&capture->recorder->timer, on_timer, 0, 0);
	} else if (capture->step == STEP_END) {
		finish(capture);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct recorder *recorder = timer->data;
	struct capture *capture = recorder->capture;
	uint64_t now_ns = sysops()->now_ns();
	if (capture->step == STEP_WAIT && now_ns < capture->to_ns) {
		uv_timer_start(timer, on_timer, (capture->to_ns - now_ns) / 1000000 + 1, 0);
	} else if (capture->step == STEP_WAIT) {
		capture->span.last_serial = timeline_last_serial(recorder->core->timeline);
		capture->step = STEP_SPAN + (capture->span.serial > capture->span.last_serial);
		connection_wake(capture->ask);
	}
	keep_writing(capture);
}

static size_t next_ask(void *ctx, char *message, size_t size)
{
	struct capture *capture = ctx;
	const unsigned step = capture->step;
	if (!has_room(capture) || step == STEP_TRACE || step == STEP_WAIT || step == STEP_END) {
		return 0;
	}
	if (step >= STEP_SPAN && step < STEP_MARKS) {
		return line_span_call(
			&capture->span, step - STEP_SPAN, message, size, &capture->method);
	}
	capture->method = step < STEP_TRACE ? calls_before[step][0] : "ListMarks";
	return line_writer_call(message, size, capture->method, "%s",
		step < STEP_TRACE ? calls_before[step][1] : "");
}

/* Adds a reply. False: over the limit. */
static bool add_reply(struct capture *capture, const char *method, const char *reply, size_t length)
{
	if (capture->lines.size + length + LINE_MORE > limit_of(capture)) {
		return false;
	}
	line_writer_add_reply(&capture->lines, method, reply, length);
	keep_writing(capture);
	return true;
}

static void on_answer(void *ctx, const char *reply, size_t length, bool continues, bool failed)
{
	struct capture *capture = ctx;
	if (!failed && !line_span_is_empty(reply) &&
		!add_reply(capture, capture->method, reply, length)) {
		capture->over = true;
	}
	if (capture->step == STEP_SPAN) {
		continues = line_span_next_page(&capture->span, reply);
	}
	if (!continues) {
		advance(capture);
		keep_writing(capture);
	}
}

static size_t next_trace(void *ctx, char *message, size_t size)
{
	struct capture *capture = ctx;
	if (capture->asked) {
		return 0;
	}
	capture->asked = true;
	return line_writer_call(message, size, "ExportTrace",
		"\"from_us\":%" PRId64 ",\"to_us\":%" PRId64 ",\"follow\":true",
		capture->span.from_us, capture->span.to_us);
}

static bool trace_has_room(void *ctx)
{
	return ((const struct capture *)ctx)->step == STEP_TRACE && has_room(ctx);
}

/* Records end early when the space for them is used up. */
static void on_records(void *ctx, const char *reply, size_t length, bool continues, bool failed)
{
	struct capture *capture = ctx;
	struct recording *row = &capture->row;
	if (failed) {
		snprintf(row->cut, sizeof(row->cut), "no records");
		close_connection(&capture->trace);
	} else if (!add_reply(capture, "ExportTrace", reply, length)) {
		snprintf(row->cut, sizeof(row->cut), "records end %.1f s after it: max_size",
			(double)(sysops()->now_ns() - capture->t_ns) / 1e9);
		close_connection(&capture->trace);
	} else {
		row->records += recording_count_rows(reply);
		row->lost = recording_last_number(reply, "\"lost\":");
	}
	if (capture->step == STEP_TRACE && (!capture->trace || !continues)) {
		advance(capture);
	}
}

/* The buffer is in the file, or could not be written. */
static void on_written(void *owner, int result)
{
	struct capture *capture = owner;
	struct recorder *recorder = capture->recorder;
	if (result == 0 && !capture->file.finish) {
		if (capture->trace) {
			connection_wake(capture->trace);
		}
		if (capture->ask) {
			connection_wake(capture->ask);
		}
		keep_writing(capture);
		return;
	}
	uv_timer_stop(&recorder->timer);
	close_connection(&capture->trace);
	close_connection(&capture->ask);
	capture->row.bytes = capture->lines.size;
	recorder->capture = NULL;
	recorder_on_captured(recorder, &capture->row, result, &capture->file.list);
	free(capture);
}

static void add_header(struct capture *capture, const struct record_cause *cause)
{
	struct json json;
	line_writer_json(&capture->lines, &json);
	json_string(&json, "schema", "edgeprof.recording/1");
	json_string(&json, "name", capture->row.name);
	json_open(&json, "trigger", '{');
	json_string(&json, "kind", record_kind_name(cause->kind));
	json_string(&json, "subject", cause->subject);
	json_string(&json, "text", capture->row.trigger);
	json_close(&json, '}');
	json_unsigned(&json, "flags", cause->flags);
	line_writer_origin(&json, capture->recorder->core, capture->row.time_us, capture->t_ns);
	json_unsigned(&json, "from_mono_us", capture->from_ns / 1000);
	json_unsigned(&json, "to_mono_us", capture->to_ns / 1000);
	line_writer_json_end(&capture->lines, &json);
	capture->header = capture->parted = capture->lines.size;
}

/* The span, which begins with history, or later where its records would not fit. */
static void choose_span(struct capture *capture, const struct record_cause *cause)
{
	const struct core *core = capture->recorder->core;
	uint64_t now_ns = cause->t_ns, fits_ns = 0;
	capture->t_ns = now_ns;
	capture->from_ns = now_ns - (cause->before_ns < now_ns ? cause->before_ns : now_ns);
	struct history_usage kept;
	history_usage(core->history, &kept);
	uint64_t first_ns = kept.tier[HISTORY_FULL].oldest_ns;
	first_ns = first_ns > 0 && first_ns < now_ns ? first_ns : now_ns;
	capture->from_ns = first_ns > capture->from_ns ? first_ns : capture->from_ns;
	capture->to_ns = now_ns + cause->after_ns;
	size_t bytes =
		recording_before_bytes(capture->max_bytes, cause->before_ns, cause->after_ns);
	apps_trace_since(core->apps, bytes / ROW_BYTES, &fits_ns);
	struct trace_usage usage;
	apps_trace_usage(core->apps, &usage);
	if (fits_ns > capture->from_ns) {
		capture->from_ns = fits_ns < now_ns ? fits_ns : now_ns;
		snprintf(
			capture->row.cut, sizeof(capture->row.cut), "begins later to fit max_size");
	} else if (usage.overwritten > 0 && usage.oldest_ns > capture->from_ns) {
		snprintf(capture->row.cut, sizeof(capture->row.cut), "records begin %.1f s later",
			(double)(usage.oldest_ns - capture->from_ns) / 1e9);
	}
	const struct timeline_entry *entry = timeline_from(core->timeline, 1);
	while (entry && entry->t_ns < capture->from_ns) {
		entry = timeline_from(core->timeline, entry->serial + 1);
	}
	capture->span.serial = entry ? entry->serial : timeline_last_serial(core->timeline) + 1;
}

static int start_calls(struct capture *capture)
{
	static const struct api_local_ops trace = {next_trace, trace_has_room, on_records};
	static const struct api_local_ops ask = {next_ask, has_room, on_answer};
	struct api *api = capture->recorder->api;
	int r = connection_open_local(api, &trace, capture, &capture->trace);
	r = r < 0 ? r : connection_open_local(api, &ask, capture, &capture->ask);
	r = r < 0 ? r : flush(capture);
	if (r == 0) {
		/* first, so that records of this moment are noted before they are overwritten */
		connection_wake(capture->trace);
		connection_wake(capture->ask);
	}
	return r;
}

int capture_start(struct recorder *recorder, const struct record_cause *cause)
{
	static const struct line_writer_ops ops = {.write = write_file, .written = on_written};
	struct capture *capture = mem_zalloc(sizeof(*capture));
	if (!capture) {
		return -ENOMEM;
	}
	capture->recorder = recorder;
	capture->span.app = "";
	line_writer_init(&capture->lines, recorder->loop, &ops, capture);
	capture->max_bytes = recorder->options.max_size;
	struct recording *row = &capture->row;
	memcpy(row->name, cause->name, sizeof(row->name));
	memcpy(row->trigger, cause->text, sizeof(row->trigger));
	row->triggers = 1 + cause->joined;
	row->flags = cause->flags;
	struct recording_file *file = &capture->file;
	*file = (struct recording_file){.folder = -1,
		.fd = -1,
		.keep = recorder->options.keep,
		.total_bytes = recorder->options.total_size};
	memcpy(file->dir, recorder->recordings.dir, sizeof(file->dir));
	memcpy(file->name, cause->name, sizeof(file->name));
	choose_span(capture, cause);
	capture_update_clock(capture);
	add_header(capture, cause);
	int r = start_calls(capture);
	if (r < 0) {
		close_connection(&capture->trace);
		close_connection(&capture->ask);
		free(capture);
		return r;
	}
	recorder->capture = capture;
	memcpy(recorder->recordings.open, cause->name, sizeof(cause->name));
	return 0;
}

void capture_update_clock(struct capture *capture)
{
	const struct wallclock *wall = capture->recorder->core->wall;
	capture->row.time_us = wallclock_us(wall, capture->t_ns);
	capture->span.from_us = wallclock_us(wall, capture->from_ns);
	capture->span.to_us = wallclock_us(wall, capture->to_ns) + 1;
}

/* Triggers of apps leave room for others; what does not fit is only counted. */
bool capture_join(struct capture *capture, const struct record_cause *cause)
{
	if (cause->t_ns > capture->to_ns) {
		return false;
	}
	size_t used = strlen(capture->joined), max = sizeof(capture->joined);
	struct text text = {
		capture->joined, cause->flags & RECORD_OF_APP ? max / 2 : max, used, false};
	if (used < text.size) {
		text_add(&text,
			",{\"time_us\":%" PRId64 ",\"mono_us\":%" PRIu64 ",\"text\":\"%s\"}",
			wallclock_us(capture->recorder->core->wall, cause->t_ns),
			cause->t_ns / 1000, cause->text);
		capture->joined[text.truncated ? used : text.length] = '\0';
	}
	capture->row.triggers++;
	capture->row.flags |= cause->flags & (RECORD_CRITICAL | RECORD_OF_PERSON);
	return true;
}

void capture_stop(struct capture *capture)
{
	if (capture->step != STEP_END) {
		snprintf(capture->row.cut, sizeof(capture->row.cut), "the daemon stopped");
		bool empty = capture->lines.size == capture->header;
		finish(capture);
		capture->result = empty ? -ECANCELED : capture->result;
	}
	keep_writing(capture);
}
