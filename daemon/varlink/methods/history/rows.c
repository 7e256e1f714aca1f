/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: writes a part of a series in JSON: columns of equal length. */
#include "daemon/varlink/methods/history/stream.h"
#include "daemon/varlink/methods/rows.h"

enum column { COLUMN_TIME, COLUMN_MEAN, COLUMN_MIN, COLUMN_MAX, COLUMN_COUNT, COLUMNS };

static void put_point(struct json *out, const struct core *core, const struct history_rows *rows,
	const struct history_point *point, enum column column)
{
	const double number[] = {
		[COLUMN_MEAN] = point->mean, [COLUMN_MIN] = point->min, [COLUMN_MAX] = point->max};
	if (column == COLUMN_TIME) {
		json_integer(
			out, NULL, rows->past ? point->time_us : row_time_us(core, point->t_ns));
	} else if (column == COLUMN_COUNT) {
		json_unsigned(out, NULL, point->count);
	} else {
		json_number(out, NULL, number[column]);
	}
}

void history_put(struct json *out, const struct core *core, const struct history_rows *rows)
{
	static const char *const names[] = {"time_us", "mean", "min", "max", "count"};
	json_open(out, NULL, '{');
	json_string(out, "name", rows->name);
	json_string(out, "unit", unit_name(rows->unit));
	if (rows->boot_seq > 0) {
		json_unsigned(out, "boot_seq", rows->boot_seq);
	}
	json_number(out, "step_ms", (double)(rows->step_ns / 1000) / 1000.0);
	for (int column = 0; column < COLUMNS; column++) {
		json_open(out, names[column], '[');
		for (size_t i = 0; i < rows->count; i++) {
			put_point(out, core, rows, &rows->points[i], (enum column)column);
		}
		json_close(out, ']');
	}
	json_close(out, '}');
}

size_t history_room(const struct json *out)
{
	size_t room = json_room(out);
	return room > HISTORY_SERIES_BYTES ? (room - HISTORY_SERIES_BYTES) / HISTORY_POINT_BYTES
					   : 0;
}
