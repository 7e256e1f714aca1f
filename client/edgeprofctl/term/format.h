/* SPDX-License-Identifier: Apache-2.0 */
/* format.h: numbers for people: with units, as times and spans, and as a line of bars. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A short text by value: format_bytes(x).text lives to the end of the expression. */
struct label {
	char text[64];
};

/* What somebody typed, for a message: cut, and fit for a terminal. */
struct label format_word(const char *word);
/* A value in a unit of the daemon ("celsius", "hertz", "bytes", …); "-" for NAN. utf8: °C, µs. */
struct label format_value(double value, const char *unit, bool utf8);
struct label format_bytes(double bytes);  /* "3.7 GiB" */
struct label format_count(int64_t count); /* "1,234,567" */
struct label format_span(double seconds); /* "0.4 s", "3 min 5 s", "2 d 4 h" */
struct label format_ago(double age_ms);	  /* "8 s ago" */
/* "last 49.0 fps 8 s ago" of a rate that is not of now; "" when one is not known. */
struct label format_last_fps(double last_fps, double idle_ms);
struct label format_time(int64_t time_us);  /* local "2026-11-21 05:40:23", "-" for 0 */
struct label format_clock(int64_t time_us); /* local "05:40:23.120" */

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
