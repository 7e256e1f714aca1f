/* SPDX-License-Identifier: Apache-2.0 */
/* history_rows.h: rows of a series in a reply of GetHistory, and how far they left the range they
 * had before. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Walks the columns of a series side by side; ends with the shortest. */
struct rows {
	const cJSON *time, *mean, *min, *max, *count, *boot;
};

/* What is null is NAN. */
struct row {
	int64_t time_us;
	double mean, min, max, count;
	uint32_t boot; /* of joined series; 0 = not known */
};

/* One of a row's numbers by its name: mean, min, max, count; of NULL the mean. */
double row_value(const struct row *row, const char *aggregate);

/* The unit of that number. */
const char *row_unit(const char *unit, const char *aggregate);

struct rows rows_begin(const cJSON *series);
bool rows_next(struct rows *rows, struct row *ret);

/* The time that all series cover together, and the rows of the longest. */
struct rows_span {
	int64_t from_us, to_us;
	size_t rows;
};

struct rows_span rows_span(const cJSON *reply);

/* Least and largest value, mean of the means, first and last mean; NAN without rows. */
struct range {
	double least, most, mean, first, last;
	int64_t first_us, last_us;
	unsigned rows;
};

struct change {
	struct range before, within;
	double score; /* excess over the range before, in widths of that range; 0 = stayed in it */
	double extreme;	 /* the value that went furthest */
	int64_t time_us; /* of the row that left the range first */
};

/* Rows before from_us are what it is compared with. False: no row lies in from_us … to_us. A series
 * without rows before is new: its score is what it moved by. Counters are judged by how fast they
 * grow. */
bool change_find(const cJSON *series, int64_t from_us, int64_t to_us, struct change *ret);

/* The time of the first row that left the range, in rows of any step; that of the change, if none
 * of these did. */
int64_t change_time(const cJSON *series, const struct change *change);
