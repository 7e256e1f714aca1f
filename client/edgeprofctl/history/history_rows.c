/* SPDX-License-Identifier: Apache-2.0 */
/* history_rows.c: reads the columns of a series row by row, and judges how much the series changed.
 * A change is the part of the rows' extremes outside of the range before, over the width of that
 * range. The width has a minimum for each unit, the smallest change worth reporting, so that a
 * constant with a little noise does not come first. */
#include "client/edgeprofctl/history/history_rows.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

struct rows rows_begin(const cJSON *series)
{
	return (struct rows){json_first(series, "time_us"), json_first(series, "mean"),
		json_first(series, "min"), json_first(series, "max"), json_first(series, "count"),
		json_first(series, "boot")};
}

static double take(const cJSON **item)
{
	double value = cJSON_IsNumber(*item) ? (*item)->valuedouble : NAN;
	*item = (*item)->next;
	return value;
}

bool rows_next(struct rows *rows, struct row *ret)
{
	if (!rows->time || !rows->mean || !rows->min || !rows->max || !rows->count) {
		return false;
	}
	double time_us = take(&rows->time);
	ret->time_us = fabs(time_us) < 9e15 ? (int64_t)time_us : 0;
	ret->mean = take(&rows->mean);
	ret->min = take(&rows->min);
	ret->max = take(&rows->max);
	ret->count = take(&rows->count);
	ret->boot = rows->boot ? (uint32_t)take(&rows->boot) : 0;
	return true;
}

double row_value(const struct row *row, const char *aggregate)
{
	const struct {
		const char *name;
		double value;
	} values[] = {{"min", row->min}, {"max", row->max}, {"count", row->count}};
	for (size_t i = 0; aggregate && i < sizeof(values) / sizeof(values[0]); i++) {
		if (strcmp(aggregate, values[i].name) == 0) {
			return values[i].value;
		}
	}
	return row->mean;
}

const char *row_unit(const char *unit, const char *aggregate)
{
	return aggregate && strcmp(aggregate, "count") == 0 ? "" : unit;
}

struct rows_span rows_span(const cJSON *reply)
{
	struct rows_span span = {INT64_MAX, INT64_MIN, 0};
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		struct rows rows = rows_begin(series);
		struct row row;
		size_t count = 0;
		while (rows_next(&rows, &row)) {
			span.from_us = row.time_us < span.from_us ? row.time_us : span.from_us;
			span.to_us = row.time_us > span.to_us ? row.time_us : span.to_us;
			count++;
		}
		span.rows = count > span.rows ? count : span.rows;
	}
	return span.rows > 0 ? span : (struct rows_span){0};
}

static const struct {
	const char *unit;
	double width;
	bool counter; /* grows for ever: how fast is what counts */
} units[] = {
	{"celsius", 1, false},
	{"percent", 2, false},
	{"hertz", 5e7, false},
	{"bytes", 1 << 20, false},
	{"milliwatts", 50, false},
	{"millijoules", 50, true},
	{"volts", 0.02, false},
	{"rpm", 100, false},
	{"state", 0.1, false},
	{"bool", 0.1, false},
	{"count", 1, true},
	{"per_second", 1, false},
	{"milliseconds", 0.2, false},
	{"microseconds", 200, false},
	{"seconds", 1, true},
	{"fps", 0.5, false},
};

static void range_add(struct range *range, const struct row *row)
{
	if (!isfinite(row->mean)) {
		return;
	}
	if (range->rows == 0) {
		range->first = row->mean;
		range->first_us = row->time_us;
		range->mean = 0;
	}
	range->least = fmin(range->least, fmin(row->min, row->mean));
	range->most = fmax(range->most, fmax(row->max, row->mean));
	range->last = row->mean;
	range->last_us = row->time_us;
	range->rows++;
	range->mean += (row->mean - range->mean) / range->rows;
}

/* Growth per second of what never fell; NAN when it did, or when there are too few rows. */
static double growth(const cJSON *series, const struct range *range)
{
	struct rows rows = rows_begin(series);
	struct row row;
	double last = -INFINITY;
	while (rows_next(&rows, &row)) {
		if (row.time_us < range->first_us || row.time_us > range->last_us ||
			!isfinite(row.mean)) {
			continue;
		}
		if (row.mean < last) {
			return NAN;
		}
		last = row.mean;
	}
	double seconds = (double)(range->last_us - range->first_us) / 1e6;
	return range->rows > 2 && seconds > 0 ? (range->last - range->first) / seconds : NAN;
}

static bool goes_up(const struct change *change)
{
	const struct range *before = &change->before, *within = &change->within;
	double above = within->most - before->most, below = before->least - within->least;
	return before->rows == 0 ? within->last >= within->first : above >= below;
}

int64_t change_time(const cJSON *series, const struct change *change)
{
	const struct range *before = &change->before;
	bool up = goes_up(change);
	struct rows rows = rows_begin(series);
	struct row row;
	while (rows_next(&rows, &row)) {
		if (row.time_us >= change->within.first_us && isfinite(row.mean) &&
			(before->rows == 0 ||
				(up ? row.max > before->most : row.min < before->least))) {
			return row.time_us;
		}
	}
	return change->time_us;
}

bool change_find(const cJSON *series, int64_t from_us, int64_t to_us, struct change *ret)
{
	const struct range none = {NAN, NAN, NAN, NAN, NAN, 0, 0, 0};
	*ret = (struct change){.before = none, .within = none, .extreme = NAN};
	struct rows rows = rows_begin(series);
	struct row row;
	while (rows_next(&rows, &row)) {
		if (row.time_us < from_us) {
			range_add(&ret->before, &row);
		} else if (row.time_us <= to_us) {
			range_add(&ret->within, &row);
		}
	}
	if (ret->within.rows == 0) {
		return false;
	}
	size_t unit = 0;
	const size_t count = sizeof(units) / sizeof(units[0]);
	while (unit < count && strcmp(units[unit].unit, json_word(series, "unit")) != 0) {
		unit++;
	}
	double least_width = unit < count ? units[unit].width : 0.1;
	least_width = fmax(least_width, 0.005 * fabs(ret->before.mean));
	const struct range *before = &ret->before, *within = &ret->within;
	ret->extreme = goes_up(ret) ? within->most : within->least;
	ret->time_us = within->first_us;
	ret->time_us = change_time(series, ret);
	if (before->rows == 0) {
		ret->score = (within->most - within->least) / (least_width + fabs(within->mean));
		return true;
	}
	double was = growth(series, before), is = growth(series, within);
	if (unit < count && units[unit].counter && was > 0 && isfinite(is)) {
		double excess = fabs(is - was) / was - 1; /* twice as fast, or stood still */
		ret->score = excess > 0 ? excess : 0;
		return true;
	}
	double excess = fmax(within->most - before->most, before->least - within->least);
	ret->score = excess > 0 ? excess / fmax(before->most - before->least, least_width) : 0;
	return true;
}
