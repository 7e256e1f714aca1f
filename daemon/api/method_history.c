/*
 * GetHistory. With more: every row, in chunks, read from a resumable cursor. Without: one reply;
 * the rows are counted first, and when they are more than max_points a step is chosen that makes
 * them fewer. Both go over a bounded number of rows a turn.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/connection.h"
#include "daemon/api/methods.h"
#include "daemon/api/queue.h"
#include "daemon/api/rows.h"
#include "daemon/api/state.h"
#include "daemon/util/seam.h"

enum { ARG_GLOB, ARG_FROM, ARG_TO, ARG_STEP, ARG_MAX };

enum {
	POINTS_USUAL = 500,
	POINTS_MAX = 100000,  /* that max_points may say */
	POINTS_KEPT = 1024,   /* of a series: more do not fit into a reply */
	POINTS_CHUNK = 256,   /* of a series in one entry of a chunk */
	POINT_BYTES = 112,    /* of a point in JSON at most: 17 + 3 * 25 + 11 and commas */
	SERIES_BYTES = 512,   /* of an entry's name, unit and brackets */
	ROWS_PER_TURN = 1024, /* gone over */
	SERIES_PER_TURN = 256,
};

#define USUAL_SPAN_NS 300000000000u
#define STEP_MAX_MS 604800000.0
#define HISTORY_TURN_NS 1000000u

enum phase { PHASE_COUNT, PHASE_WRITE };

struct history_stream {
	struct api_stream base;
	bool single;
	enum phase phase;
	char glob[PROTO_PATH_SIZE];
	uint64_t from_ns, to_ns, step_ns;
	size_t max_points;
	/* where it stands */
	uint32_t next; /* history_next_series */
	bool in_series;
	struct history_cursor cursor;
	char name[PROTO_PATH_SIZE];
	enum unit unit;
	size_t filled;
	/* counted */
	size_t series, total;
	/* a single reply's text between turns */
	char *held;
	size_t held_length;
	size_t capacity;
	struct history_point points[];
};

static const struct history *history_of(const struct history_stream *stream)
{
	return stream->base.connection->api->core->history;
}

/* Moves on to the next series that matches. False at the end. */
static bool next_series(struct history_stream *stream, unsigned *budget)
{
	struct history *history = stream->base.connection->api->core->history;
	uint32_t series;
	const char *name;
	enum unit unit;
	while (*budget > 0 && history_next_series(history, &stream->next, &series, &name, &unit)) {
		--*budget;
		if (!proto_glob_match(stream->glob, name)) {
			continue;
		}
		size_t length = strnlen(name, sizeof(stream->name) - 1);
		memcpy(stream->name, name, length);
		stream->name[length] = '\0';
		stream->unit = unit;
		stream->cursor = (struct history_cursor){
			.series = series,
			.from_ns = stream->from_ns,
			.to_ns = stream->to_ns,
			.step_ns = stream->step_ns,
		};
		stream->in_series = true;
		stream->filled = 0;
		return true;
	}
	return false;
}

static void restart(struct history_stream *stream)
{
	stream->next = 0;
	stream->in_series = false;
	stream->filled = 0;
}

/* Too many rows: the step that leaves at most max_points of all series. False: no step does. */
static bool choose_step(struct history_stream *stream)
{
	struct history_usage usage;
	history_usage(history_of(stream), &usage);
	uint64_t from = stream->from_ns;
	if (usage.oldest_ns > from) {
		from = usage.oldest_ns;
	}
	size_t each = stream->series > 0 ? stream->max_points / stream->series : 0;
	each = each > POINTS_KEPT ? POINTS_KEPT : each;
	if (each < 2 || from > stream->to_ns) {
		return false;
	}
	/* buckets are aligned, so a span touches one more than it holds */
	uint64_t step = (stream->to_ns - from) / (each - 1) + 1;
	/* whole milliseconds: step_ms says exactly what was used */
	uint64_t unit = 1000000;
	for (int tier = HISTORY_TENS; tier < HISTORY_TIERS; tier++) {
		/* whole buckets, so that they can be used, where that makes it little longer */
		uint64_t bucket_ns = history_tier_step_ns((enum history_tier)tier);
		unit = step >= 4 * bucket_ns ? bucket_ns : unit;
	}
	step = (step + unit - 1) / unit * unit;
	stream->step_ns = step > stream->step_ns ? step : stream->step_ns;
	return true;
}

/* Counts until the rows are too many or all are counted. True when that is known. */
static bool run_count(struct history_stream *stream, unsigned *looks)
{
	struct history *history = stream->base.connection->api->core->history;
	bool done = false;
	if (!stream->in_series && !next_series(stream, looks)) {
		return *looks > 0;
	}
	size_t n = history_read(
		history, &stream->cursor, stream->points, stream->capacity, ROWS_PER_TURN, &done);
	stream->series += stream->filled == 0 && n > 0;
	stream->filled += n;
	stream->total += n;
	if (done || stream->total > stream->max_points) {
		/* once it is too much only the number of series still matters */
		stream->in_series = false;
	}
	return false;
}

enum column { COLUMN_TIME, COLUMN_MEAN, COLUMN_MIN, COLUMN_MAX, COLUMN_COUNT };

static void put_column(
	struct json *out, const struct history_stream *stream, const char *name, enum column column)
{
	const struct core *core = stream->base.connection->api->core;
	json_open(out, name, '[');
	for (size_t i = 0; i < stream->filled; i++) {
		const struct history_point *point = &stream->points[i];
		switch (column) {
		case COLUMN_TIME:
			json_integer(out, NULL, row_time_us(core, point->t_ns));
			break;
		case COLUMN_MEAN:
			json_number(out, NULL, point->mean);
			break;
		case COLUMN_MIN:
			json_number(out, NULL, point->min);
			break;
		case COLUMN_MAX:
			json_number(out, NULL, point->max);
			break;
		case COLUMN_COUNT:
			json_unsigned(out, NULL, point->count);
			break;
		}
	}
	json_close(out, ']');
}

static void put_series(struct json *out, struct history_stream *stream)
{
	json_open(out, NULL, '{');
	json_string(out, "name", stream->name);
	json_string(out, "unit", unit_name(stream->unit));
	json_number(out, "step_ms", (double)(stream->step_ns / 1000) / 1000.0);
	put_column(out, stream, "time_us", COLUMN_TIME);
	put_column(out, stream, "mean", COLUMN_MEAN);
	put_column(out, stream, "min", COLUMN_MIN);
	put_column(out, stream, "max", COLUMN_MAX);
	put_column(out, stream, "count", COLUMN_COUNT);
	json_close(out, '}');
	stream->filled = 0;
}

/* Points that certainly still fit into this reply. */
static size_t points_room(const struct json *out)
{
	size_t room = json_room(out);
	return room > SERIES_BYTES ? (room - SERIES_BYTES) / POINT_BYTES : 0;
}

enum step { STEP_ON, STEP_FULL, STEP_END };

/* One read of one series into the reply. */
static enum step run_write(struct history_stream *stream, struct json *out, unsigned *looks)
{
	struct history *history = stream->base.connection->api->core->history;
	if (!stream->in_series && !next_series(stream, looks)) {
		return *looks > 0 ? STEP_END : STEP_FULL;
	}
	size_t max = stream->capacity - stream->filled;
	if (!stream->single) {
		size_t room = points_room(out);
		if (room < 8) {
			return STEP_FULL;
		}
		max = room < max ? room : max;
	}
	bool done = false;
	size_t n = history_read(history, &stream->cursor, stream->points + stream->filled, max,
		ROWS_PER_TURN, &done);
	stream->filled += n;
	bool full = stream->filled == stream->capacity;
	if (done || full || !stream->single) {
		if (stream->filled > 0) {
			put_series(out, stream);
		}
		/* a single reply's counted rows fit; what came in since waits for the next call */
		stream->in_series = !done && !stream->single;
	}
	return STEP_ON;
}

static enum api_result hold(struct history_stream *stream, struct json *out)
{
	stream->held = mem_zalloc(out->length);
	if (!stream->held) {
		return reply_limit(out, "memory", 0);
	}
	memcpy(stream->held, out->buffer, out->length);
	stream->held_length = out->length;
	return API_YIELD;
}

static enum api_result run_single(struct history_stream *stream, struct json *out)
{
	uint64_t started_ns = seam()->now_ns();
	unsigned looks = SERIES_PER_TURN;
	while (stream->phase == PHASE_COUNT) {
		if (run_count(stream, &looks)) {
			if (stream->total > stream->max_points && !choose_step(stream)) {
				return reply_too_large(out);
			}
			stream->phase = PHASE_WRITE;
			restart(stream);
		}
		if (looks == 0 || seam()->now_ns() - started_ns > HISTORY_TURN_NS) {
			return API_YIELD;
		}
	}
	if (stream->held) {
		json_rollback(out, 0);
		memcpy(out->buffer, stream->held, stream->held_length);
		out->length = stream->held_length;
		free(stream->held);
		stream->held = NULL;
	} else {
		json_open(out, "series", '[');
	}
	enum step step;
	do {
		step = run_write(stream, out, &looks);
		if (out->overflow) {
			return reply_too_large(out);
		}
		if (step == STEP_FULL ||
			(step == STEP_ON && seam()->now_ns() - started_ns > HISTORY_TURN_NS)) {
			return hold(stream, out);
		}
	} while (step != STEP_END);
	json_close(out, ']');
	return API_LAST;
}

static enum api_result run_chunk(struct history_stream *stream, struct json *out)
{
	uint64_t started_ns = seam()->now_ns();
	unsigned looks = SERIES_PER_TURN;
	json_open(out, "series", '[');
	size_t start = json_mark(out);
	enum step step;
	do {
		step = run_write(stream, out, &looks);
	} while (step == STEP_ON && seam()->now_ns() - started_ns < HISTORY_TURN_NS);
	if (step != STEP_END && json_mark(out) == start) {
		return API_YIELD;
	}
	json_close(out, ']');
	return step == STEP_END ? API_LAST : API_CHUNK;
}

static enum api_result history_next(struct api_stream *base, struct json *out)
{
	struct history_stream *stream = (struct history_stream *)base;
	return stream->single ? run_single(stream, out) : run_chunk(stream, out);
}

static void history_end(struct api_stream *base)
{
	struct history_stream *stream = (struct history_stream *)base;
	free(stream->held);
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

enum api_result method_get_history(struct api_call *call)
{
	const struct value *value = call->value;
	const struct core *core = call->core;
	uint32_t series;
	const char *bad = check(value);
	if (bad) {
		return reply_invalid_parameter(call->out, bad);
	}
	uint64_t to_ns = value[ARG_TO].present
				 ? wallclock_mono_ns(core->wall, value[ARG_TO].integer)
				 : call->now_ns;
	uint64_t from_ns = value[ARG_FROM].present
				   ? wallclock_mono_ns(core->wall, value[ARG_FROM].integer)
				   : to_ns - (to_ns < USUAL_SPAN_NS ? to_ns : USUAL_SPAN_NS);
	if (from_ns > to_ns) {
		return reply_invalid_parameter(call->out, "from_us");
	}
	const char *glob = value[ARG_GLOB].string;
	if (!strpbrk(glob, "*?") && history_find(core->history, glob, &series) < 0) {
		return reply_not_found(call->out, "metric", glob);
	}
	size_t max_points = value[ARG_MAX].present ? (size_t)value[ARG_MAX].integer : POINTS_USUAL;
	size_t capacity = call->more		     ? (size_t)POINTS_CHUNK
			  : max_points < POINTS_KEPT ? max_points
						     : (size_t)POINTS_KEPT;
	struct history_stream *stream = NULL;
	size_t size = sizeof(*stream) + capacity * sizeof(stream->points[0]);
	size_t charge = size + (call->more ? 0 : PROTO_FRAME_MAX);
	if (!queue_charge(call->connection, charge)) {
		return reply_limit(
			call->out, "bytes of this user", call->api->options.max_queue_uid);
	}
	stream = mem_zalloc(size);
	if (!stream) {
		queue_release(call->connection, charge);
		return reply_limit(call->out, "memory", 0);
	}
	stream->base.ops = &history_ops;
	stream->base.charged = charge;
	stream->single = !call->more;
	stream->phase = call->more ? PHASE_WRITE : PHASE_COUNT;
	memcpy(stream->glob, glob, strlen(glob) + 1);
	stream->from_ns = from_ns;
	stream->to_ns = to_ns;
	stream->step_ns = value[ARG_STEP].present ? (uint64_t)(value[ARG_STEP].number * 1e6) : 0;
	stream->max_points = max_points;
	stream->capacity = capacity;
	connection_set_stream(call->connection, &stream->base);
	return API_YIELD;
}
