/* SPDX-License-Identifier: Apache-2.0 */
/* html_time.c: shows frames, sensors, throttling, alerts and marks on one time axis: a panel per
 * quantity, with spans of throttling and moments of events across all of them. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "proto/name.h"

enum { LINES_MAX = 5, HEIGHT = 80, GLOBS = 3 };
enum { FRAME_RATE, FRAME_TIME }; /* the first of kinds */

static const struct kind {
	const char *title, *unit, *glob[GLOBS];
	double scale;
	bool zero; /* the axis begins at 0 */
} kinds[] = {
	{"Frame rate", "fps", {NULL}, 1, true},
	{NULL, "ms", {NULL}, 1, true}, /* html_frames() */
	{"Temperature", "°C", {"temperature/*"}, 1, false},
	{"Power", "W", {"power/*"}, 1e-3, true},
	{"Clocks", "GHz", {"gpu/frequency", "cpu/*/frequency", "clock/*"}, 1e-9, true},
	{"Load", "%", {"cpu/utilization", "gpu/utilization", "emc/utilization"}, 1, true},
	{"Memory", "MiB", {"process/{session.app}/rss", "process/*/rss", "memory/used"},
		1.0 / (1 << 20), false},
	{"Fan", "rpm", {"fan/*"}, 1, true},
};

struct panel {
	size_t count, more; /* lines; series that have none */
	const char *name[LINES_MAX];
	struct line_columns line[LINES_MAX];
};

void line_add(struct line_columns *line, double at, double value)
{
	if (!isfinite(value) || fabs(value) > 1e15 || !(at >= 0 && at <= 1)) {
		return;
	}
	size_t i = at < 1 ? (size_t)(at * LINE_COLUMNS) : LINE_COLUMNS - 1;
	bool first = line->column[i].count++ == 0;
	line->column[i].low = first ? value : fmin(line->column[i].low, value);
	line->column[i].high = first ? value : fmax(line->column[i].high, value);
	first = line->points++ == 0;
	line->low = first ? value : fmin(line->low, value);
	line->high = first ? value : fmax(line->high, value);
}

void line_write(FILE *out, const struct line_columns *line, size_t color, double bottom, double top)
{
	size_t last = LINE_COLUMNS, gap = 2 + 5 * LINE_COLUMNS / (line->points + 1);
	fprintf(out, "<path class=\"l%zu\" d=\"", color);
	for (size_t i = 0; i < LINE_COLUMNS; i++) {
		if (line->column[i].count > 0) {
			bool begins = last == LINE_COLUMNS || i - last > gap;
			double x = (2 * (double)i + 1) * 500 / LINE_COLUMNS, range = top - bottom;
			double low = html_percent(line->column[i].low - bottom, range) * 10;
			double high = html_percent(line->column[i].high - bottom, range) * 10;
			fprintf(out, "%s%.0f,%.0f%sV%.0f", begins ? "M" : "L", x, 1000 - low,
				begins ? "h1" : "", 1000 - high);
			last = i;
		}
	}
	fputs("\"/>", out);
}

static bool shows(const struct panel *panel, const struct data_series *series)
{
	size_t i = 0;
	while (i < panel->count && panel->name[i] != series->name) {
		i++;
	}
	return i < panel->count;
}

static void add_series(struct panel *panel, const struct page *page, const struct kind *kind)
{
	const struct data *data = page->data;
	for (size_t g = 0; g < GLOBS && kind->glob[g]; g++) {
		char bytes[PROTO_PATH_SIZE];
		struct text glob = TEXT_IN(bytes);
		template_add(&glob, kind->glob[g], page->tree, true);
		for (size_t i = 0; i < data->series_count; i++) {
			const struct data_series *series = &data->series[i];
			if (!proto_glob_match(bytes, series->name) || shows(panel, series)) {
				continue;
			}
			if (panel->count == LINES_MAX) {
				panel->more++;
				continue;
			}
			struct line_columns *line = &panel->line[panel->count];
			panel->name[panel->count] = series->name;
			for (size_t k = 0; k < series->count; k++) {
				line_add(line, series->at_s[k] / page->span_s,
					series->value[k] * kind->scale);
			}
			panel->count += line->points > 0;
		}
	}
}

/* The rate is that of the second before each frame. */
static void add_frames(struct panel *panel, const struct page *page, bool rate)
{
	const struct data *data = page->data;
	panel->name[0] = "frames";
	for (size_t i = 0, from = 0; i < data->frame_count; i++) {
		double at_s = data->frame[i].at_s;
		while (at_s - data->frame[from].at_s > 1) {
			from++;
		}
		double fps = (double)(i - from) / (at_s - data->frame[from].at_s);
		line_add(&panel->line[0], at_s / page->span_s,
			!rate	   ? data_frame_ms(&data->frame[i])
			: from > 0 ? fps
				   : (double)NAN);
	}
	panel->count = panel->line[0].points > 0;
}

/* Where the hardware throttled: by the sensor, and by what the frames carry. */
static void write_throttling(struct panel *panel, const struct page *page)
{
	static const struct kind kind = {"Throttling", "", {"throttle/active"}, 1, true};
	const struct data *data = page->data;
	const struct line_columns *line = &panel->line[0];
	add_series(panel, page, &kind);
	for (size_t i = 0; i < data->frame_count; i++) {
		if (data->frame[i].throttled >= 0) {
			line_add(&panel->line[0], data->frame[i].at_s / page->span_s,
				data->frame[i].throttled);
		}
	}
	size_t width = 1 + LINE_COLUMNS / (line->points + 1); /* up to the next sample */
	fputs("<g class=\"throttled\">", page->out); /* where they overlap, it is not darker */
	for (size_t i = 0; i < LINE_COLUMNS; i++) {
		if (line->column[i].high > 0) {
			fprintf(page->out,
				"<rect x=\"%.1f%%\" width=\"%.1f%%\" "
				"height=\"100%%\"/>",
				(double)i * 100 / LINE_COLUMNS,
				fmin((double)width, LINE_COLUMNS - (double)i) * 100 / LINE_COLUMNS);
		}
	}
	fputs("</g>\n", page->out);
}

/* A step of 1, 2 or 5 times a power of ten that divides the range into at most `parts`. */
static double step_of(double range, int parts)
{
	double power = pow(10, floor(log10(range / parts))), part = range / parts / power;
	return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static int decimals_of(double step)
{
	return step < 0.095 ? 2 : step < 0.95 ? 1 : 0;
}

static void write_panel(const struct panel *panel, const struct page *page, const struct kind *kind)
{
	FILE *out = page->out;
	const char *title = kind->title ? kind->title : html_frames(page->data);
	double low = INFINITY, high = -INFINITY;
	double deadline = kind == &kinds[FRAME_TIME] ? page->data->frame_deadline_ms : (double)NAN;
	fprintf(out, "<div class=\"legend\"><h3>%s <span>%s</span></h3>", title, kind->unit);
	for (size_t i = 0; i < panel->count; i++) {
		const struct line_columns *line = &panel->line[i];
		low = fmin(low, line->low);
		high = fmax(high, line->high);
		fprintf(out,
			"<span><svg class=\"key\" width=\"20\" height=\"8\"><path class=\"l%zu\" "
			"d=\"M0 4H20\"/></svg> %s <b>%.1f to %.1f</b></span>",
			i, html_text(panel->name[i]).text, line->low, line->high);
	}
	fprintf(out, panel->more > 0 ? "<span>%zu more</span></div>\n" : "</div>\n", panel->more);
	low = kind->zero ? fmin(low, 0) : low;
	high = deadline < 2 * high ? fmax(high, deadline) : high;
	double step = step_of(fmax(high - low, fmax(fabs(high) * 0.02, 0.03)), 3);
	double bottom = floor(low / step) * step;
	double top = fmax(ceil(high / step) * step, bottom + step), range = top - bottom;
	fprintf(out, "<svg class=\"chart\" height=\"%d\" role=\"img\" aria-label=\"%s\">", HEIGHT,
		title);
	for (int i = 0; bottom + i * step <= top + range / 1e4; i++) {
		double y = HEIGHT - i * step / range * HEIGHT;
		fprintf(out,
			"<line class=\"grid\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text "
			"class=\"e\" x=\"-6\" y=\"%.1f\">%.*f</text>",
			y, y, y + 4, decimals_of(step), bottom + i * step);
	}
	fprintf(out,
		"<svg width=\"100%%\" height=\"%d\" viewBox=\"0 0 1000 1000\" "
		"preserveAspectRatio=\"none\">",
		HEIGHT);
	for (size_t i = panel->count; i-- > 0;) {
		line_write(out, &panel->line[i], i, bottom, top);
	}
	fputs("</svg>", out);
	if (deadline <= top) {
		double y = HEIGHT - deadline / range * HEIGHT;
		fprintf(out, "<line class=\"dead\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>", y, y);
	}
	fputs("</svg>\n", out);
}

void html_time(const struct page *page)
{
	FILE *out = page->out;
	struct panel *panel = calloc(1, sizeof(*panel));
	if (!panel) {
		return;
	}
	fputs("<p>All panels share one time axis. Shaded: the hardware throttled. Vertical lines: "
	      "the events below.</p>\n<div class=\"time\"><svg class=\"under\">",
		out);
	write_throttling(panel, page);
	for (const cJSON *row = json_first(page->tree, "events"); row; row = row->next) {
		double x = html_percent(json_number(row, "at_s"), page->span_s);
		fprintf(out, "<line class=\"event\" x1=\"%.2f%%\" x2=\"%.2f%%\" y2=\"100%%\"/>", x,
			x);
	}
	fputs("</svg>\n", out);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		memset(panel, 0, sizeof(*panel));
		if (kinds[i].glob[0]) {
			add_series(panel, page, &kinds[i]);
		} else {
			add_frames(panel, page, i == FRAME_RATE);
		}
		if (panel->count > 0) {
			write_panel(panel, page, &kinds[i]);
		}
	}
	fputs("<svg class=\"chart\" height=\"22\" role=\"img\" aria-label=\"Time\">", out);
	for (int i = 0; i <= 5; i++) {
		fprintf(out, "<text class=\"%s\" x=\"%d%%\" y=\"16\">%s</text>",
			i == 0	 ? "s"
			: i == 5 ? "e"
				 : "m",
			20 * i, format_span(page->span_s * i / 5).text);
	}
	fputs("</svg>\n", out);
	fputs("</div>\n", out);
	free(panel);
}
