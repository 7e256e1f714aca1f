/* SPDX-License-Identifier: Apache-2.0 */
/* live.c: does the live part of GetHistory: series by series out of the pool, by a cursor that goes
 * on where the last turn stopped. */
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/varlink/methods/history/stream.h"

/* Moves on to the next series that matches. False at the end. */
static bool next_series(struct history_stream *stream, unsigned *budget)
{
	struct history *history = history_core(stream)->history;
	uint32_t series;
	const char *name;
	enum unit unit;
	while (*budget > 0 && history_next_series(history, &stream->next, &series, &name, &unit)) {
		--*budget;
		if (!proto_query_match(stream->query, name)) {
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

void history_live_restart(struct history_stream *stream)
{
	stream->next = 0;
	stream->in_series = false;
	stream->filled = 0;
}

enum history_step history_live_count(struct history_stream *stream, unsigned *looks)
{
	bool done = false;
	if (!stream->in_series && !next_series(stream, looks)) {
		return *looks > 0 ? HISTORY_END : HISTORY_NO_ROOM;
	}
	size_t n = history_read(history_core(stream)->history, &stream->cursor, stream->points,
		stream->capacity, HISTORY_ROWS_PER_TURN, &done);
	stream->series += stream->filled == 0 && n > 0;
	stream->filled += n;
	stream->total += n;
	if (done || stream->total > stream->max_points) {
		/* once it is too much only the number of series still matters */
		stream->in_series = false;
	}
	return HISTORY_ON;
}

static void put(struct history_stream *stream, struct json *out)
{
	const struct core *core = history_core(stream);
	const struct history_rows rows = {
		.name = stream->name,
		.unit = stream->unit,
		.step_ns = stream->step_ns,
		.boot_seq = core->archive ? archive_boot_seq(core->archive) : 0,
		.points = stream->points,
		.count = stream->filled,
	};
	history_put(out, core, &rows);
	stream->filled = 0;
}

enum history_step history_live_write(
	struct history_stream *stream, struct json *out, unsigned *looks)
{
	if (!stream->in_series && !next_series(stream, looks)) {
		return *looks > 0 ? HISTORY_END : HISTORY_NO_ROOM;
	}
	size_t max = stream->capacity - stream->filled;
	if (!stream->single) {
		size_t room = history_room(out);
		if (room < 8) {
			return HISTORY_NO_ROOM;
		}
		max = room < max ? room : max;
	}
	bool done = false;
	size_t n = history_read(history_core(stream)->history, &stream->cursor,
		stream->points + stream->filled, max, HISTORY_ROWS_PER_TURN, &done);
	stream->filled += n;
	bool full = stream->filled == stream->capacity;
	if (done || full || !stream->single) {
		if (stream->filled > 0) {
			put(stream, out);
		}
		/* a single reply's counted rows fit; what came in since waits for the next call */
		stream->in_series = !done && !stream->single;
	}
	return HISTORY_ON;
}
