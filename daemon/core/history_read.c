/* Reading history: from block to block of a series, decoding rows, giving samples or buckets. A
 * read may stop at any row and go on in the next call; what a bucket holds so far travels in the
 * cursor, so that a long step needs no longer turn than a short one. */
#include "daemon/core/history_self.h"

#include <math.h>

#include "daemon/core/history_names.h"

struct reader {
	struct history_cursor *cursor;
	struct history_point *points;
	size_t count, max;
	size_t rows, budget;
	uint64_t start_ns; /* rows before are skipped */
	bool stopped;
};

/* Hands out the bucket in the cursor. */
static void emit_open(struct reader *reader)
{
	struct history_point point = reader->cursor->open;
	point.mean /= point.count;
	reader->points[reader->count++] = point;
	reader->cursor->open.count = 0;
}

/* Takes one sample. False when there is no room for it: it is to come again. */
static bool take(struct reader *reader, uint64_t t_ns, double value)
{
	struct history_cursor *cursor = reader->cursor;
	if (cursor->step_ns == 0) {
		if (reader->count == reader->max) {
			return false;
		}
		reader->points[reader->count++] =
			(struct history_point){t_ns, value, value, value, 1};
		return true;
	}
	struct history_point *open = &cursor->open;
	uint64_t bucket_ns = t_ns - t_ns % cursor->step_ns;
	if (open->count > 0 && open->t_ns != bucket_ns) {
		if (reader->count == reader->max) {
			return false;
		}
		emit_open(reader);
	}
	if (open->count == 0) {
		*open = (struct history_point){bucket_ns, value, value, value, 1};
		return true;
	}
	open->min = fmin(open->min, value);
	open->max = fmax(open->max, value);
	open->mean += value; /* the sum until it is handed out */
	open->count++;
	return true;
}

/* Goes over the rows of one block. */
static void read_block(const struct history_pool *pool, const struct history_series *series,
	uint32_t place, struct reader *reader)
{
	uint32_t index = place / HISTORY_COLUMNS;
	unsigned column = place % HISTORY_COLUMNS;
	const struct history_info *info = &pool->info[index];
	const uint8_t *payload =
		history_block_payload(history_pool_block(pool, index), info->columns);
	struct history_row_state state;
	history_row_start(&state, info->first_ns, info->columns);
	for (size_t at = 0; state.rows < info->rows;) {
		int used = history_row_decode(&state, payload + at, info->bytes - at);
		if (used < 0) {
			return;
		}
		at += (size_t)used;
		uint64_t t_ns = state.last.t_ns;
		if (t_ns < reader->start_ns) {
			continue;
		}
		if (t_ns > reader->cursor->to_ns) {
			return;
		}
		if (reader->budget > 0 && reader->rows == reader->budget) {
			reader->stopped = true;
			return;
		}
		reader->rows++;
		if (!(state.last.nulls >> column & 1) &&
			!take(reader, t_ns,
				history_unquantise(series->unit, state.last.value[column]))) {
			reader->stopped = true;
			return;
		}
		reader->start_ns = t_ns + 1;
	}
}

size_t history_read(struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, size_t budget, bool *done)
{
	const struct history_pool *pool = &history->pool;
	const struct history_series *series = history_names_by_id(pool, cursor->series);
	struct reader reader = {.cursor = cursor, .points = points, .max = max, .budget = budget};
	reader.start_ns = cursor->next_ns > cursor->from_ns ? cursor->next_ns : cursor->from_ns;
	uint32_t place = series ? series->head : HISTORY_NONE;
	while (place != HISTORY_NONE && !reader.stopped) {
		uint32_t index = place / HISTORY_COLUMNS;
		const struct history_info *info = &pool->info[index];
		if (info->first_ns <= cursor->to_ns && info->last_ns >= reader.start_ns) {
			read_block(pool, series, place, &reader);
		}
		place = history_pool_block(pool, index)->column[place % HISTORY_COLUMNS].next;
	}
	cursor->next_ns = reader.start_ns;
	if (!reader.stopped && cursor->open.count > 0) {
		if (reader.count < max) {
			emit_open(&reader);
		} else {
			reader.stopped = true;
		}
	}
	*done = !reader.stopped;
	return reader.count;
}
