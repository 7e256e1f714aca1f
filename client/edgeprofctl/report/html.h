/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h: declares the pieces that the HTML report is made of. Every text passes html_text(), which
 * escapes it. Charts are SVG without a view box: x is in percent and y in pixels, such that type
 * keeps its size at any width; only paths are stretched.
 */
#pragma once

#include <stdio.h>

#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/term/format.h"

struct page {
	FILE *out;
	const struct data *data;
	const cJSON *tree;
	double span_s; /* above 0 */
};

extern const char report_css[]; /* report.css */

enum { HTML_TEXT_MAX = 1000 /* a hostile name may be long */ };
struct html_text {
	char text[6 * HTML_TEXT_MAX];
};

/* Escaped; characters that are hidden or turn its direction are replaced. */
struct html_text html_text(const char *text);

/* value / whole * 100, within 0 and 100; 0 when it is not a number. */
double html_percent(double value, double whole);

/* What data_frame_ms() is of most frames: "End to end" or, of those without a start, "Frame time".
 */
const char *html_frames(const struct data *data);

/* Values over time, reduced to columns: the size of a line is bounded, and a spike of one value
 * still shows. */
enum { LINE_COLUMNS = 500 };
struct line_columns {
	double low, high; /* of all points */
	size_t points;
	struct {
		double low, high;
		size_t count;
	} column[LINE_COLUMNS];
};
/* `at` is a part of the span. What is not finite or not within it is ignored. */
void line_add(struct line_columns *line, double at, double value);
/* Draws a zigzag through minimum and maximum of each column, x and y from 0 to 1000. It is open
 * where more than five usual intervals have no value. */
void line_write(
	FILE *out, const struct line_columns *line, size_t color, double bottom, double top);

/* Charts: where the time of a frame goes, how often each duration occurred, and everything on one
 * time axis. */
void html_stages(const struct page *page);
void html_latency(const struct page *page);
void html_time(const struct page *page);
