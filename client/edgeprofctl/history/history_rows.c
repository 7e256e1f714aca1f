/* Series as GetHistory tells them, column by column, read row by row. */
#include "client/edgeprofctl/history/history_rows.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

struct rows rows_begin(const cJSON *series)
{
	return (struct rows){json_first(series, "time_us"), json_first(series, "mean"),
		json_first(series, "min"), json_first(series, "max"), json_first(series, "count")};
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
