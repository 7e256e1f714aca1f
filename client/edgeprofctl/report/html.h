/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h: declares the pieces that the HTML report is made of. Every text passes html(), which
 * escapes it. Charts are SVG without a view box: x is in percent and y in pixels, such that type
 * keeps its size at any width; only paths are stretched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/term/format.h"

struct page {
	FILE *out;
	const struct data *data;
	const cJSON *tree;
	double deadline_ms; /* of a frame; NAN: none is known */
	double span_s;	    /* above 0 */
};

extern const char report_css[]; /* report.css */

/* printf with the conversions %s, %d, %u, %zu, %.Nf, %.*f and %%. Text is escaped for HTML,
 * characters that are hidden or turn its direction are replaced, and what is not finite is "-". */
__attribute__((format(printf, 2, 3))) void html(FILE *out, const char *format, ...);

/* "8.12 ms", "120 ms", "1.53 s"; "-" for NAN. */
struct label html_ms(double ms);

/* A time since the start: "1.25 s", in a long span "2:04:05". */
struct label html_at(const struct page *page, double at_s);

/* value / whole * 100, within 0 and 100; 0 when it is not a number. */
double html_percent(double value, double whole);

/* A step of 1, 2 or 5 times a power of ten that divides the range into at most `parts`. */
double html_step(double range, int parts);

/* Decimals that tell values a step apart. */
int html_decimals(double step);

/* Opens a section, with a sentence below the title ("" = none). Close it with HTML_END. */
void html_section(FILE *out, const char *id, const char *title, const char *about);
#define HTML_END "</section>\n"

/* Opens a chart of a height in pixels; label describes it to those who can't see it. */
void html_chart(FILE *out, const char *classes, double height, const char *label);

/* An x axis from 0 to last, with its labels below y; a vertical line across the chart. */
void html_axis(FILE *out, double y, double last, const char *unit);
void html_vertical(FILE *out, const char *classes, double x, double from, double to);

/* A table: heads are separated by '|', those that begin with '>' are right-aligned. `more` rows
 * of the named things are not in it. */
void html_table(FILE *out, const char *label, const char *heads);
void html_table_end(FILE *out, const char *things, size_t more);

/* The duration of a frame: its total, else the time since the one before. */
double html_frame_ms(const struct data_frame *frame);
/* Those of all frames. */
const struct data_numbers *html_frame_numbers(const struct data *data);

/* Values over time, reduced to columns: the size of a line is bounded, and a spike of one value
 * still shows. */
enum { LINE_COLUMNS = 500 };
struct line {
	double span_s, low, high; /* of all points */
	size_t points;
	struct line_column {
		double low, high, sum;
		size_t count;
	} column[LINE_COLUMNS];
};
void line_init(struct line *line, double span_s);
/* What is not finite or not within the span is ignored. */
void line_add(struct line *line, double at_s, double value);
/* The mean of the columns from a part of the span (0 to 1) to another, NAN; and the maximum. */
double line_mean(const struct line *line, double from, double to, double *most);
/* Draws a zigzag through minimum and maximum of each column, x and y from 0 to 1000, and where they
 * stand for many values a line through the means. It is open where more than five usual intervals
 * have no value. */
void line_write(FILE *out, const struct line *line, int color, double bottom, double top);

/* Sections; those without data write why they are empty, or nothing. */
void html_breakdown(const struct page *page);
void html_latency(const struct page *page);
void html_slow_frames(const struct page *page);
void html_time_axis(const struct page *page);
void html_time_spans(const struct page *page); /* throttling and events, across its panels */
void html_happenings(const struct page *page);
