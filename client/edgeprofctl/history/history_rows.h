/* The rows of the series that GetHistory answers with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Walks the columns of a series side by side; ends with the shortest. */
struct rows {
	const cJSON *time, *mean, *min, *max, *count;
};

/* What is null is NAN. */
struct row {
	int64_t time_us;
	double mean, min, max, count;
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
