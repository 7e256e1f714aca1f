/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: writes a part of a series in JSON: columns of equal length. */
#include "daemon/core/archive/archive.h"
#include "daemon/varlink/methods/history/stream.h"
#include "daemon/varlink/methods/rows.h"

enum column { COLUMN_TIME, COLUMN_MEAN, COLUMN_MIN, COLUMN_MAX, COLUMN_COUNT };

static struct archive_point point_of(
	const struct core *core, const struct history_rows *rows, size_t index)
{
	if (rows->past) {
		return rows->past[index];
	}
	const struct history_point *point = &rows->live[index];
	return (struct archive_point){
		row_time_us(core, point->t_ns), point->min, point->mean, point->max, point->count};
}

static void put_column(struct json *out, const struct core *core, const struct history_rows *rows,
	const char *name, enum column column)
{
	json_open(out, name, '[');
	for (size_t i = 0; i < rows->count; i++) {
		struct archive_point point = point_of(core, rows, i);
		switch (column) {
		case COLUMN_TIME:
			json_integer(out, NULL, point.time_us);
			break;
		case COLUMN_MEAN:
			json_number(out, NULL, point.mean);
			break;
		case COLUMN_MIN:
			json_number(out, NULL, point.min);
			break;
		case COLUMN_MAX:
			json_number(out, NULL, point.max);
			break;
		case COLUMN_COUNT:
			json_unsigned(out, NULL, point.count);
			break;
		}
	}
	json_close(out, ']');
}

void history_put(struct json *out, const struct core *core, const struct history_rows *rows)
{
	json_open(out, NULL, '{');
	json_string(out, "name", rows->name);
	json_string(out, "unit", unit_name(rows->unit));
	if (rows->boot_seq > 0) {
		json_unsigned(out, "boot_seq", rows->boot_seq);
	}
	json_number(out, "step_ms", (double)(rows->step_ns / 1000) / 1000.0);
	put_column(out, core, rows, "time_us", COLUMN_TIME);
	put_column(out, core, rows, "mean", COLUMN_MEAN);
	put_column(out, core, rows, "min", COLUMN_MIN);
	put_column(out, core, rows, "max", COLUMN_MAX);
	put_column(out, core, rows, "count", COLUMN_COUNT);
	json_close(out, '}');
}

size_t history_room(const struct json *out)
{
	size_t room = json_room(out);
	return room > HISTORY_SERIES_BYTES ? (room - HISTORY_SERIES_BYTES) / HISTORY_POINT_BYTES
					   : 0;
}
