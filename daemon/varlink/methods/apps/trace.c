/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c: answers ExportTrace: the raw records in memory, app by app, in chunks of columns. The
 * apps and the ends of their logs are noted at the start; records are copied out of the logs a few
 * at a time, so that new ones neither prolong the answer nor hold the loop. Records that were
 * overwritten before they were copied are counted. With follow the ends are noted again and again
 * until to_us: no record comes twice, and none between two rounds is missed.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/apps/trace_rows.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

enum {
	ARG_APP,
	ARG_FROM,
	ARG_TO,
	ARG_FOLLOW,
	FOLLOW_MS = 200,   /* between two rounds */
	TRACE_SCAN = 4096, /* records scanned in a slice; some 20 us */
};

#define USUAL_SPAN_NS 300000000000u
#define FOLLOW_SPAN_NS 600000000000u /* that a call may go on for */

/* An app as it was when the call came. */
struct trace_app {
	char name[PROTO_NAME_SIZE];
	uid_t uid;
	bool own;
	uint64_t known_ns;
	uint64_t first;	     /* number of the oldest record when it was noted */
	uint64_t begin, end; /* numbers of its records of this round */
	uint64_t oldest_ns;
};

struct trace_stream {
	struct api_stream base;
	bool begun;
	bool follow, permitted;
	bool only;	/* one app was asked for */
	bool waited;	/* since the last round */
	uint64_t clock; /* clock_state() when the start was written */
	uint64_t from_ns, to_ns;
	uint64_t lost;
	size_t apps, at;
	struct trace_app app[APPS_MAX];
	struct trace_cursor cursor;
	struct trace_batch batch; /* of the chunk in the making */
};

static bool wanted(const struct trace_stream *stream, const struct proto_record *record)
{
	uint64_t end_ns = record->start_ns + (trace_lasts(record) ? record->value : 0);
	return trace_kind_name((enum proto_kind)record->kind) &&
	       record->start_ns <= stream->to_ns && end_ns >= stream->from_ns;
}

static bool is_same(const struct trace_app *noted, const struct app *app)
{
	return strcmp(noted->name, app->name) == 0 && noted->uid == app->uid &&
	       noted->known_ns == app->known_ns;
}

/* The app, when it is still the one that was there at the start, with its log. */
static const struct app *app_of(const struct trace_stream *stream, const struct trace_app *noted)
{
	const struct app *app = apps_find(stream->base.connection->api->core->apps, noted->name);
	return app && is_same(noted, app) && app->log ? app : NULL;
}

/* Copies records until the chunk is full, the app is done or the slice is over. True when the app
 * is done. */
static bool gather(
	struct trace_stream *stream, const struct trace_app *app, const struct trace_log *log)
{
	for (unsigned scanned = 0; scanned < TRACE_SCAN && stream->batch.rows < TRACE_ROWS;
		scanned++) {
		uint64_t before = stream->cursor.position;
		if (before >= app->end) {
			return true;
		}
		const struct event *event = trace_log_next(log, &stream->cursor, NULL);
		if (!event) {
			stream->lost += app->end - before;
			return true;
		}
		uint64_t position = stream->cursor.position - 1;
		stream->lost += (position < app->end ? position : app->end) - before;
		if (position >= app->end) {
			return true;
		}
		if (wanted(stream, &event->record)) {
			stream->batch.row[stream->batch.rows++] = *event;
		}
	}
	return stream->cursor.position >= app->end;
}

/* The clock, written once in front of all records. */
static void put_clock(struct json *out, const struct wallclock *wall)
{
	uint32_t first = 0;
	while (first < wall->count && !wall->entry[first].synced) {
		first++;
	}
	first = first == wall->count ? 0 : first;
	json_open(out, "clock_mono_us", '[');
	for (uint32_t i = first; i < wall->count; i++) {
		json_unsigned(out, NULL, wall->entry[i].t_ns / 1000);
	}
	json_close(out, ']');
	json_open(out, "clock_time_us", '[');
	for (uint32_t i = first; i < wall->count; i++) {
		json_integer(out, NULL, wallclock_us(wall, wall->entry[i].t_ns));
	}
	json_close(out, ']');
}

static void put_app(struct json *out, const struct trace_app *app)
{
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_unsigned(out, "uid", app->uid);
	if (app->own) {
		json_unsigned(out, "records", app->end - app->first);
		json_unsigned(out, "overwritten", app->first);
		if (app->oldest_ns != 0) {
			json_unsigned(out, "oldest_mono_us", app->oldest_ns / 1000);
		}
	} else {
		json_string(out, "reason", "the app is another user's");
	}
	json_close(out, '}');
}

static void put_start(struct json *out, const struct trace_stream *stream)
{
	const struct core *core = stream->base.connection->api->core;
	const struct machine_facts *facts = core->facts;
	json_open(out, "start", '{');
	json_string(out, "version", facts->version);
	json_string(out, "hostname", facts->hostname);
	json_string(out, "boot_id", facts->boot_id);
	json_bool(out, "clock_synced", wallclock_synced(core->wall));
	json_unsigned(out, "from_mono_us", stream->from_ns / 1000);
	json_unsigned(out, "to_mono_us", stream->to_ns / 1000);
	json_integer(out, "from_us", row_time_us(core, stream->from_ns));
	json_integer(out, "to_us", row_time_us(core, stream->to_ns));
	put_clock(out, core->wall);
	json_open(out, "apps", '[');
	for (size_t i = 0; i < stream->apps; i++) {
		put_app(out, &stream->app[i]);
	}
	json_close(out, ']');
	json_close(out, '}');
	json_unsigned(out, "lost", 0);
}

/* On to the next app that has records. False at the end. */
static bool next_app(struct trace_stream *stream)
{
	while (stream->at < stream->apps &&
		stream->app[stream->at].begin == stream->app[stream->at].end) {
		stream->at++;
	}
	if (stream->at == stream->apps) {
		return false;
	}
	if (stream->cursor.position < stream->app[stream->at].begin) {
		stream->cursor = (struct trace_cursor){.position = stream->app[stream->at].begin};
	}
	return true;
}

static void note_app(struct trace_stream *stream, const struct app *app, bool own)
{
	struct trace_app *noted = &stream->app[stream->apps++];
	memcpy(noted->name, app->name, sizeof(noted->name));
	noted->uid = app->uid;
	noted->own = own;
	noted->known_ns = app->known_ns;
	if (own && app->log) {
		struct trace_usage span;
		trace_log_span(app->log, &span);
		noted->first = noted->begin = span.overwritten;
		noted->end = span.overwritten + span.count;
		noted->oldest_ns = span.oldest_ns;
	}
}

/* Changes when the clock was set, or what is known of it. */
static uint64_t clock_state(const struct trace_stream *stream)
{
	const struct wallclock *wall = stream->base.connection->api->core->wall;
	return 2 * (wall->steps + wall->count) + wallclock_synced(wall);
}

/* One more round: of each app what came since, and apps that are new. */
static void note_again(struct trace_stream *stream)
{
	struct api *api = stream->base.connection->api;
	size_t noted = stream->apps;
	const struct app *app;
	for (size_t i = 0; (app = apps_at(api->core->apps, i)); i++) {
		size_t at = 0;
		while (at < noted && !is_same(&stream->app[at], app)) {
			at++;
		}
		if (at < noted && stream->app[at].own && app->log) {
			struct trace_usage span;
			trace_log_span(app->log, &span);
			stream->app[at].begin = stream->app[at].end;
			stream->app[at].end = span.overwritten + span.count;
		} else if (at == noted && !stream->only && stream->apps < APPS_MAX) {
			bool own = stream->permitted || app->uid == stream->base.connection->uid;
			note_app(stream, app, own);
			stream->begun = false; /* the start is written again */
		}
	}
	if (clock_state(stream) != stream->clock) {
		stream->begun = false;
	}
	for (size_t i = 0; i < noted; i++) {
		if (!app_of(stream, &stream->app[i])) {
			stream->app[i].begin = stream->app[i].end;
		}
	}
}

static void on_round(uv_timer_t *timer)
{
	connection_wake(timer->data);
}

/* All that was noted is written. True when there will be more. */
static bool follow(struct trace_stream *stream, enum api_result *result)
{
	struct api_connection *connection = stream->base.connection;
	struct api *api = connection->api;
	if (!stream->follow) {
		return false;
	}
	if (!stream->waited) {
		stream->waited = true;
		uv_timer_start(&connection->tick, on_round, FOLLOW_MS, 0);
		*result = API_WAIT;
		return true;
	}
	uint64_t now_ns = sysops()->now_ns();
	if (uv_is_active((uv_handle_t *)&connection->tick)) {
		*result = API_WAIT; /* woken by something else */
		return true;
	}
	if (now_ns >= stream->to_ns) {
		stream->follow = false; /* the last round */
		if (api->options.refresh) {
			api->options.refresh(api->options.ctx, now_ns);
		}
	}
	stream->waited = false;
	stream->at = 0;
	stream->cursor = (struct trace_cursor){0};
	note_again(stream);
	*result = API_YIELD;
	return true;
}

static enum api_result trace_next(struct api_stream *base, struct json *out)
{
	struct trace_stream *stream = (struct trace_stream *)base;
	enum api_result result;
	if (!stream->begun) {
		stream->begun = true;
		stream->clock = clock_state(stream);
		put_start(out, stream);
		return API_CHUNK;
	}
	if (!next_app(stream)) {
		if (follow(stream, &result)) {
			return result;
		}
		json_unsigned(out, "lost", stream->lost);
		return API_LAST;
	}
	const struct trace_app *noted = &stream->app[stream->at];
	const struct app *app = app_of(stream, noted);
	bool done = true;
	if (app) {
		done = gather(stream, noted, app->log);
	} else { /* the app was removed, with all its records */
		stream->lost += noted->end - stream->cursor.position;
		stream->batch.rows = 0;
	}
	bool full = stream->batch.rows == TRACE_ROWS;
	bool full_chunk = stream->batch.rows > 0 && (done || full);
	if (full_chunk) {
		json_string(out, "app", noted->name);
		trace_rows_write(out, &stream->batch, app);
		json_unsigned(out, "lost", stream->lost);
	}
	if (done) {
		stream->at++;
		stream->cursor = (struct trace_cursor){0};
	}
	return full_chunk ? API_CHUNK : API_YIELD;
}

static void trace_end(struct api_stream *base)
{
	uv_timer_stop(&base->connection->tick);
	free(base);
}

static const struct api_stream_ops trace_ops = {.next = trace_next, .destroy = trace_end};

static void note_apps(struct trace_stream *stream, const struct api_call *call, const char *name)
{
	bool permitted = stream->permitted = call_permitted(call);
	const struct app *app;
	stream->only = name;
	for (size_t i = 0; i < APPS_MAX && (app = apps_at(call->core->apps, i)); i++) {
		if (!name || strcmp(app->name, name) == 0) {
			note_app(stream, app, permitted || app->uid == call->connection->uid);
		}
	}
}

/* Without from_us: since the oldest record that will be written. */
static uint64_t oldest_of(const struct trace_stream *stream)
{
	uint64_t oldest_ns =
		stream->to_ns - (stream->to_ns < USUAL_SPAN_NS ? stream->to_ns : USUAL_SPAN_NS);
	bool any = false;
	for (size_t i = 0; i < stream->apps; i++) {
		uint64_t its_ns = stream->app[i].oldest_ns;
		if (its_ns != 0 && its_ns <= stream->to_ns && (!any || its_ns < oldest_ns)) {
			oldest_ns = its_ns;
			any = true;
		}
	}
	return oldest_ns;
}

enum api_result method_export_trace(struct api_call *call)
{
	const struct value *value = call->value;
	const struct wallclock *wall = call->core->wall;
	const char *text = value[ARG_APP].string, *app = NULL;
	char name[PROTO_NAME_SIZE];
	for (int i = ARG_FROM; i <= ARG_TO; i++) {
		if (value[i].present && value[i].integer < 0) {
			return reply_invalid_parameter(
				call->out, i == ARG_FROM ? "from_us" : "to_us");
		}
	}
	if (value[ARG_APP].present) { /* as the app itself was named: any name finds its app */
		proto_name_clean(text, strlen(text), name);
		app = name;
		if (!apps_find(call->core->apps, app)) {
			return reply_not_found(call->out, "app", text);
		}
	}
	uint64_t to_ns = value[ARG_TO].present ? wallclock_mono_ns(wall, value[ARG_TO].integer)
					       : call->now_ns;
	uint64_t from_ns =
		value[ARG_FROM].present ? wallclock_mono_ns(wall, value[ARG_FROM].integer) : 0;
	if (from_ns > to_ns) {
		return reply_invalid_parameter(call->out, "from_us");
	}
	bool follow = value[ARG_FOLLOW].boolean && to_ns > call->now_ns;
	if (follow && to_ns - call->now_ns > FOLLOW_SPAN_NS) {
		return reply_invalid_parameter(call->out, "to_us");
	}
	struct trace_stream *stream = stream_create(call, &trace_ops, sizeof(*stream), 0);
	if (!stream) {
		return API_LAST;
	}
	stream->to_ns = to_ns;
	stream->follow = follow;
	note_apps(stream, call, app);
	stream->from_ns = value[ARG_FROM].present ? from_ns : oldest_of(stream);
	connection_set_stream(call->connection, &stream->base);
	return API_YIELD;
}
