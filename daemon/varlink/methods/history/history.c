/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c: answers GetHistory: previous boots, then live history. With more: every row, in
 * chunks. Without: one reply; the rows are counted first, and when they are more than max_points a
 * step is chosen that makes them fewer. Either way a bounded number of rows is gone over in a turn.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/history/stream.h"
#include "daemon/varlink/methods/methods.h"

enum { ARG_GLOB, ARG_FROM, ARG_TO, ARG_STEP, ARG_MAX };

enum {
	POINTS_USUAL = 500,
	POINTS_MAX = 100000, /* that max_points may say */
	SERIES_PER_TURN = 256,
	TRIES_MAX = 24, /* of steps, each twice the one before */
};

#define USUAL_SPAN_US INT64_C(300000000)
#define STEP_MAX_MS 604800000.0

static bool turn_is_over(uint64_t started_ns)
{
	return sysops()->now_ns() - started_ns > HISTORY_TURN_NS;
}

/* The part of the range of which there may be rows. */
static uint64_t span_ns(const struct history_stream *stream)
{
	const struct core *core = history_core(stream);
	if (stream->past.wanted) {
		struct archive_span span;
		archive_span(core->archive, &span);
		int64_t from_us =
			span.oldest_us > stream->from_us ? span.oldest_us : stream->from_us;
		return from_us < stream->to_us ? (uint64_t)(stream->to_us - from_us) * 1000 : 0;
	}
	struct history_usage usage;
	history_usage(core->history, &usage);
	uint64_t from_ns = usage.oldest_ns > stream->from_ns ? usage.oldest_ns : stream->from_ns;
	return from_ns < stream->to_ns ? stream->to_ns - from_ns : 0;
}

/* Too many rows: chooses a step that leaves at most max_points of all series. Past rows are
 * returned boot by boot, so it may take a longer one than calculated. False: no step does. */
static bool choose_step(struct history_stream *stream)
{
	uint64_t before_ns = stream->step_ns;
	size_t series = stream->past.most > stream->series ? stream->past.most : stream->series;
	size_t each = series > 0 ? stream->max_points / series : 0;
	each = each > HISTORY_POINTS_KEPT ? (size_t)HISTORY_POINTS_KEPT : each;
	if (each < 2 || stream->tries++ == TRIES_MAX) {
		return false;
	}
	/* buckets are aligned, so a span touches one more than it holds */
	uint64_t step = stream->tries == 1 ? span_ns(stream) / (each - 1) + 1 : 2 * before_ns;
	/* whole milliseconds: step_ms says exactly what was used */
	uint64_t unit = stream->past.wanted ? HISTORY_TENS_NS : 1000000;
	for (int tier = HISTORY_TENS; tier < HISTORY_TIERS; tier++) {
		/* whole buckets, so that they can be used, where that makes it little longer */
		uint64_t bucket_ns = history_tier_step_ns((enum history_tier)tier);
		unit = step >= 4 * bucket_ns ? bucket_ns : unit;
	}
	step = (step + unit - 1) / unit * unit;
	stream->step_ns = step > before_ns ? step : before_ns;
	return true;
}

static void restart(struct history_stream *stream, enum history_phase phase)
{
	stream->phase = phase;
	history_past_restart(stream);
	history_live_restart(stream);
}

/* All is counted: write it, or count again with a longer step. False: that helps no more. */
static bool counted(struct history_stream *stream)
{
	if (stream->total <= stream->max_points) {
		restart(stream, PHASE_PAST);
		return true;
	}
	if (!choose_step(stream)) {
		return false;
	}
	/* of live history alone the step is exact */
	restart(stream, stream->past.wanted ? PHASE_COUNT_PAST : PHASE_PAST);
	stream->series = stream->total = 0;
	return true;
}

/* One step of counting. API_LAST: too many whatever is done; API_CHUNK: go on. */
static enum api_result run_count(struct history_stream *stream, unsigned *looks)
{
	if (stream->phase == PHASE_COUNT_PAST) {
		struct history_rows rows;
		enum history_step step = history_past_next(stream, SIZE_MAX, &rows);
		stream->total += rows.count;
		if (step == HISTORY_WAIT) {
			return API_WAIT;
		}
		if (step == HISTORY_END) {
			stream->phase = PHASE_COUNT;
		}
		return API_CHUNK;
	}
	enum history_step step = history_live_count(stream, looks);
	if (step == HISTORY_NO_ROOM) {
		return API_YIELD;
	}
	return step == HISTORY_ON || counted(stream) ? API_CHUNK : API_LAST;
}

/* One step of writing. HISTORY_END: all is written. */
static enum history_step run_write(struct history_stream *stream, struct json *out, unsigned *looks)
{
	if (stream->phase == PHASE_LIVE) {
		return history_live_write(stream, out, looks);
	}
	struct history_rows rows;
	size_t room = stream->single ? SIZE_MAX : history_room(out);
	room = stream->single || room < HISTORY_POINTS_CHUNK ? room : HISTORY_POINTS_CHUNK;
	enum history_step step = history_past_next(stream, room, &rows);
	if (rows.count > 0) {
		history_put(out, history_core(stream), &rows);
	}
	if (step == HISTORY_END) {
		stream->phase = PHASE_LIVE;
		return HISTORY_ON;
	}
	return step;
}

static enum api_result finish(struct history_stream *stream, struct json *out)
{
	json_close(out, ']');
	json_string_opt(out, "note", stream->past.note);
	return API_LAST;
}

static enum api_result run_single(struct history_stream *stream, struct json *out)
{
	uint64_t started_ns = sysops()->now_ns();
	unsigned looks = SERIES_PER_TURN;
	while (history_counts(stream)) {
		enum api_result result = run_count(stream, &looks);
		if (result == API_LAST) {
			return reply_too_large(out);
		}
		if (result != API_CHUNK) {
			return result;
		}
		if (looks == 0 || turn_is_over(started_ns)) {
			return API_YIELD;
		}
	}
	reply_resume(&stream->held, out, "series");
	enum history_step step;
	do {
		step = run_write(stream, out, &looks);
		if (out->overflow) {
			return reply_too_large(out);
		}
		if (step == HISTORY_WAIT) {
			return reply_hold(&stream->held, out, API_WAIT);
		}
		if (step == HISTORY_NO_ROOM || (step == HISTORY_ON && turn_is_over(started_ns))) {
			return reply_hold(&stream->held, out, API_YIELD);
		}
	} while (step != HISTORY_END);
	return finish(stream, out);
}

static enum api_result run_chunk(struct history_stream *stream, struct json *out)
{
	uint64_t started_ns = sysops()->now_ns();
	unsigned looks = SERIES_PER_TURN;
	json_open(out, "series", '[');
	size_t start = json_mark(out);
	enum history_step step;
	do {
		step = run_write(stream, out, &looks);
	} while (step == HISTORY_ON && !turn_is_over(started_ns));
	if (step == HISTORY_END) {
		return finish(stream, out);
	}
	if (json_mark(out) == start) {
		return step == HISTORY_WAIT ? API_WAIT : API_YIELD;
	}
	json_close(out, ']');
	return API_CHUNK;
}

static enum api_result history_next(struct api_stream *base, struct json *out)
{
	struct history_stream *stream = (struct history_stream *)base;
	return stream->single ? run_single(stream, out) : run_chunk(stream, out);
}

static void history_end(struct api_stream *base)
{
	struct history_stream *stream = (struct history_stream *)base;
	history_past_finish(stream);
	free(stream->held.text);
	free(stream);
}

static const struct api_stream_ops history_ops = {.next = history_next, .destroy = history_end};

/* The name of the first argument that is out of range, or NULL. */
static const char *check(const struct value *value)
{
	const struct value *step = &value[ARG_STEP], *max = &value[ARG_MAX];
	const char *glob = value[ARG_GLOB].string;
	if (strlen(glob) >= PROTO_PATH_SIZE || proto_glob_check(glob) < 0) {
		return "glob";
	}
	if (value[ARG_FROM].present && value[ARG_FROM].integer < 0) {
		return "from_us";
	}
	if (value[ARG_TO].present && value[ARG_TO].integer < 0) {
		return "to_us";
	}
	if (step->present && (step->number < 0 || step->number > STEP_MAX_MS)) {
		return "step_ms";
	}
	if (max->present && (max->integer < 1 || max->integer > POINTS_MAX)) {
		return "max_points";
	}
	return NULL;
}

/* Is there, or was there, a metric of that name? */
static bool known(const struct core *core, const char *name)
{
	uint32_t series;
	return history_find(core->history, name, &series) == 0 ||
	       (core->archive && archive_has(core->archive, name));
}

/* The archive's names are not looked through here: its worker does. A path that is none of them in
 * full is taken for a name that does not exist. */
static bool may_match(const struct core *core, const char *query)
{
	uint32_t next = 0, series;
	const char *name;
	enum unit unit;
	while (history_next_series(core->history, &next, &series, &name, &unit)) {
		if (proto_query_match(query, name)) {
			return true;
		}
	}
	return core->archive && !strchr(query, '/');
}

static void set_range(struct history_stream *stream, const struct api_call *call)
{
	const struct value *from = &call->value[ARG_FROM], *to = &call->value[ARG_TO];
	const struct wallclock *wall = call->core->wall;
	stream->to_us = to->present ? to->integer : wallclock_us(wall, call->now_ns);
	stream->from_us = from->present			  ? from->integer
			  : stream->to_us > USUAL_SPAN_US ? stream->to_us - USUAL_SPAN_US
							  : 0;
	stream->to_ns = to->present ? wallclock_mono_ns(wall, to->integer) : call->now_ns;
	const uint64_t span_ns = (uint64_t)USUAL_SPAN_US * 1000;
	stream->from_ns = from->present		    ? wallclock_mono_ns(wall, from->integer)
			  : stream->to_ns > span_ns ? stream->to_ns - span_ns
						    : 0;
}

/* Room for the stream and what it comes to hold, on the user's account. NULL: refused. */
static struct history_stream *create(struct api_call *call, size_t capacity, bool past)
{
	size_t size = sizeof(struct history_stream) + capacity * sizeof(struct history_point);
	struct history_stream *stream = stream_create(call, &history_ops, size,
		(call->more ? 0 : PROTO_FRAME_MAX) + (past ? HISTORY_PAST_BYTES : 0));
	if (!stream) {
		return NULL;
	}
	stream->single = !call->more;
	stream->capacity = capacity;
	return stream;
}

enum api_result method_get_history(struct api_call *call)
{
	const struct value *value = call->value;
	const char *glob = value[ARG_GLOB].string;
	struct history_stream wanted = {.max_points = POINTS_USUAL};
	const char *bad = check(value);
	if (bad) {
		return reply_invalid_parameter(call->out, bad);
	}
	set_range(&wanted, call);
	if (wanted.from_ns > wanted.to_ns ||
		(call->core->archive && wanted.from_us > wanted.to_us)) {
		return reply_invalid_parameter(call->out, "from_us");
	}
	bool exact = known(call->core, glob);
	if (!exact && !strpbrk(glob, "*?") && !may_match(call->core, glob)) {
		return reply_not_found(call->out, "metric", glob);
	}
	if (value[ARG_MAX].present) {
		wanted.max_points = (size_t)value[ARG_MAX].integer;
	}
	size_t capacity = call->more				    ? (size_t)HISTORY_POINTS_CHUNK
			  : wanted.max_points < HISTORY_POINTS_KEPT ? wanted.max_points
								    : (size_t)HISTORY_POINTS_KEPT;
	struct history_stream *stream = create(call, capacity, call->core->archive != NULL);
	if (!stream) {
		return API_LAST;
	}
	stream->phase = call->more ? PHASE_PAST : PHASE_COUNT_PAST;
	snprintf(stream->query, sizeof(stream->query), "%s%s", exact ? "=" : "", glob);
	stream->from_us = wanted.from_us;
	stream->to_us = wanted.to_us;
	stream->from_ns = wanted.from_ns;
	stream->to_ns = wanted.to_ns;
	stream->step_ns = value[ARG_STEP].present ? (uint64_t)(value[ARG_STEP].number * 1e6) : 0;
	stream->max_points = wanted.max_points;
	history_past_init(stream);
	connection_set_stream(call->connection, &stream->base);
	return API_YIELD;
}
