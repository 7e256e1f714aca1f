/* spark: draws one series over time as a line of small bars. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPARK_COLUMNS = 30, SPARK_SIZE = SPARK_COLUMNS * 3 + 1 };

/* Points are added in any order; each falls into the column of its time and counts there with the
 * mean of all. A column without a point is a gap, a blank. */
struct spark {
	int64_t from_us, to_us;
	size_t columns;
	double sums[SPARK_COLUMNS];
	unsigned counts[SPARK_COLUMNS];
};

/* At most `points` columns: a few samples are a short line, not one full of gaps. */
void spark_init(struct spark *spark, int64_t from_us, int64_t to_us, size_t points);
void spark_add(struct spark *spark, int64_t time_us, double value);

/* Bars between the smallest and the largest column; a constant is a low line. */
void spark_write(const struct spark *spark, bool utf8, char ret[SPARK_SIZE]);
