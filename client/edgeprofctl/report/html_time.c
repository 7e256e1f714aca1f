/* SPDX-License-Identifier: Apache-2.0 */
/* html_time.c: shows frames, sensors, throttling, alerts and marks on one time axis: a panel per
 * quantity, with spans of throttling and moments of events across all of them. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/name.h"
#include "proto/text.h"

enum { LINES_MAX = 5, PANELS_MAX = 10, HOVERS = 100, GLOBS = 3 };

struct panel_kind {
	const char *title, *unit, *glob[GLOBS];
	double scale;
	bool zero; /* the axis begins at 0 */
	double height;
};

static const struct panel_kind kinds[] = {
	{"Frame time", "ms", {NULL}, 1, true, 120},
	{"Frame rate", "fps", {NULL}, 1, true, 72},
	{"Temperature", "°C", {"temperature/*", "temperature/max"}, 1, false, 72},
	{"Power", "W", {"power/total", "power/*"}, 1e-3, true, 72},
	{"Clocks", "GHz", {"gpu/frequency", "cpu/*/frequency", "clock/*"}, 1e-9, true, 72},
	{"Load", "%", {"cpu/utilization", "gpu/utilization", "emc/utilization"}, 1, true, 72},
	{"Resident memory", "MiB", {"process/*/rss"}, 1.0 / (1 << 20), false, 72},
	{"Memory in use", "GiB", {"memory/used"}, 1.0 / (1 << 30), false, 60},
	{"Fan", "rpm", {"fan/*"}, 1, true, 60},
};

#define FRAME_TIME (&kinds[0])
#define FRAME_RATE (&kinds[1])

struct panel {
	const struct panel_kind *kind;
	size_t count, more; /* lines; series that have none */
	struct panel_line {
		char name[PROTO_PATH_SIZE];
		struct line line;
	} item[LINES_MAX];
	double bottom, top, step; /* of the y axis */
};

/* "CPU" of temperature/CPU, "cpu/0" of cpu/0/frequency, "cam" of process/cam/rss. */
static void short_name(const char *path, char ret[PROTO_PATH_SIZE])
{
	const char *last = strrchr(path, '/');
	bool is_rss = text_ends_with(path, "/rss");
	if (is_rss || text_ends_with(path, "/frequency") || text_ends_with(path, "/utilization")) {
		path += is_rss ? strlen("process/") : 0;
		snprintf(ret, PROTO_PATH_SIZE, "%.*s", (int)(last - path), path);
	} else {
		snprintf(ret, PROTO_PATH_SIZE, "%s", last ? last + 1 : path);
	}
}

/* Cores of one cluster have one clock, and temperature/max is one of the zones: drawn once. */
static bool drawn_already(const struct panel *panel, const struct line *line)
{
	for (size_t i = 0; i < panel->count; i++) {
		const struct line *other = &panel->item[i].line;
		if (memcmp(other->column, line->column, sizeof(line->column)) == 0) {
			return true;
		}
	}
	return false;
}

static void add_series(struct panel *panel, const struct data_series *series, double span_s)
{
	if (panel->count == LINES_MAX) {
		panel->more++;
		return;
	}
	struct panel_line *item = &panel->item[panel->count];
	line_init(&item->line, span_s);
	for (size_t i = 0; i < series->count; i++) {
		line_add(&item->line, series->at_s[i], series->value[i] * panel->kind->scale);
	}
	if (item->line.points == 0 || drawn_already(panel, &item->line)) {
		return;
	}
	short_name(series->name, item->name);
	panel->count++;
}

/* The glob that a sensor goes with: one that is its name, else the first that matches; GLOBS. */
static size_t glob_of(const struct panel_kind *kind, const char *name)
{
	size_t found = GLOBS;
	for (size_t g = GLOBS; g-- > 0;) {
		if (kind->glob[g] && strcmp(kind->glob[g], name) == 0) {
			return g;
		}
		found = kind->glob[g] && proto_glob_match(kind->glob[g], name) ? g : found;
	}
	return found;
}

static void add_sensors(struct panel *panel, const struct page *page)
{
	const struct data *data = page->data;
	for (size_t g = 0; g < GLOBS; g++) {
		for (size_t i = 0; i < data->series_count; i++) {
			if (glob_of(panel->kind, data->series[i].name) == g) {
				add_series(panel, &data->series[i], page->span_s);
			}
		}
	}
}

/* The rate is of spans of at least a second and ten frames, from the first frame on and without
 * gaps. */
static void add_rate(struct panel *panel, const struct page *page)
{
	const struct data *data = page->data;
	struct panel_line *item = &panel->item[0];
	double rate = (double)data->frame_count / page->span_s;
	double window_s = fmax(fmax(1, 10 / rate), page->span_s / LINE_COLUMNS);
	if (data->frame_count < 20 || page->span_s < 5 * window_s) {
		return;
	}
	line_init(&item->line, page->span_s);
	size_t next = 0;
	for (double from_s = data->frame[0].at_s; next < data->frame_count && from_s < page->span_s;
		from_s += window_s) {
		size_t first = next;
		bool gap = false;
		while (next < data->frame_count && data->frame[next].at_s < from_s + window_s) {
			gap = gap || (next > 0 && isnan(data->frame[next].time_ms));
			next++;
		}
		if (next < data->frame_count && !gap && !isnan(data->frame[next].time_ms)) {
			line_add(&item->line, from_s + window_s / 2,
				(double)(next - first) / window_s);
		}
	}
	snprintf(item->name, sizeof(item->name), "mean of %.3g s", window_s);
	panel->count = item->line.points > 0;
}

static void add_frames(struct panel *panel, const struct page *page)
{
	const struct data *data = page->data;
	struct panel_line *item = &panel->item[0];
	line_init(&item->line, page->span_s);
	for (size_t i = 0; i < data->frame_count; i++) {
		line_add(&item->line, data->frame[i].at_s, html_frame_ms(&data->frame[i]));
	}
	snprintf(item->name, sizeof(item->name), "frames");
	panel->count = item->line.points > 0;
}

/* Frames that took very long go past the top, which is said in the legend. */
static void scale(struct panel *panel, const struct page *page)
{
	double low = INFINITY, high = -INFINITY;
	for (size_t i = 0; i < panel->count; i++) {
		low = fmin(low, panel->item[i].line.low);
		high = fmax(high, panel->item[i].line.high);
	}
	if (panel->kind == FRAME_TIME) {
		double p99 = html_frame_numbers(page->data)->p99;
		high = p99 > 0 ? fmin(high, 4 * p99) : high;
		high = page->deadline_ms < 2 * high ? fmax(high, page->deadline_ms) : high;
	}
	low = panel->kind->zero ? fmin(low, 0) : low;
	panel->step = html_step(fmax(high - low, fmax(fabs(high) * 0.02, 0.03)), 3);
	panel->bottom = floor(low / panel->step) * panel->step;
	panel->top = fmax(ceil(high / panel->step) * panel->step, panel->bottom + panel->step);
}

static void write_legend(const struct panel *panel, const struct page *page)
{
	FILE *out = page->out;
	int decimals = panel->step < 0.1 ? 2 : panel->step < 20 ? 1 : 0;
	html(out, "<div class=\"legend\"><h3>%s <span>%s</span></h3><ul>", panel->kind->title,
		panel->kind->unit);
	for (size_t i = 0; i < panel->count; i++) {
		const struct line *line = &panel->item[i].line;
		html(out,
			"<li><svg class=\"key\" width=\"20\" height=\"8\" aria-hidden=\"true\">"
			"<path class=\"l%d\" d=\"M0 4H20\"/></svg>%s <b>%.*f",
			(int)i, panel->item[i].name, decimals, line->low);
		if (line->high > line->low) {
			html(out, " to %.*f", decimals, line->high);
		}
		html(out, "</b>%s</li>", line->high > panel->top ? ", past the top" : "");
	}
	html(out, panel->more > 0 ? "<li>%zu more</li></ul></div>\n" : "</ul></div>\n",
		panel->more);
}

static void write_panel(const struct panel *panel, const struct page *page)
{
	FILE *out = page->out;
	double range = panel->top - panel->bottom, height = panel->kind->height;
	write_legend(panel, page);
	html_chart(out, "chart", height, panel->kind->title);
	for (double value = panel->bottom; value <= panel->top + range / 1e4;
		value += panel->step) {
		double y = height - (value - panel->bottom) / range * height;
		html(out,
			"<line class=\"grid\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text "
			"class=\"e\" x=\"-6\" y=\"%.1f\">%.*f</text>",
			y, y, y + 4, html_decimals(panel->step), value);
	}
	html(out,
		"<svg width=\"100%%\" height=\"%.0f\" viewBox=\"0 0 1000 1000\" "
		"preserveAspectRatio=\"none\">",
		height);
	for (size_t i = panel->count; i-- > 0;) {
		line_write(out, &panel->item[i].line, (int)i, panel->bottom, panel->top);
	}
	fputs("</svg>", out);
	if (panel->kind == FRAME_TIME && page->deadline_ms <= panel->top) {
		double y = height - page->deadline_ms / range * height;
		html(out,
			"<line class=\"dead\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text "
			"class=\"e bad\" x=\"100%%\" y=\"%.1f\">deadline %s</text>",
			y, y, y - 4, html_ms(page->deadline_ms).text);
	}
	fputs("</svg>\n", out);
}

static void hover_text(
	const struct page *page, struct panel *const *panels, size_t count, double from, double to)
{
	FILE *out = page->out;
	double at_s = from * page->span_s;
	int64_t at_us = at_s >= 0 && at_s < 1e9 ? (int64_t)(at_s * 1e6) : 0;
	html(out, "%s (%s)", html_at(page, at_s).text,
		format_clock(page->data->begin_us + at_us).text);
	for (size_t p = 0; p < count; p++) {
		const struct panel_kind *kind = panels[p]->kind;
		for (size_t i = 0; i < panels[p]->count; i++) {
			const struct panel_line *item = &panels[p]->item[i];
			double most, mean = line_mean(&item->line, from, to, &most);
			if (isfinite(mean)) {
				html(out, "\n%s %.2f %s", kind->glob[0] ? item->name : kind->title,
					mean, kind->unit);
			}
			if (kind == FRAME_TIME && isfinite(most)) {
				html(out, ", max %.2f %s", most, kind->unit);
			}
		}
	}
}

/* What a pointer shows: all panels' values at that time. */
static void write_hover(const struct page *page, struct panel *const *panels, size_t count)
{
	fputs("<svg class=\"over\" aria-hidden=\"true\">\n", page->out);
	for (int i = 0; i < HOVERS; i++) {
		html(page->out, "<rect x=\"%d%%\" width=\"1%%\" height=\"100%%\"><title>", i);
		hover_text(page, panels, count, (double)i / HOVERS, (double)(i + 1) / HOVERS);
		fputs("</title></rect>\n", page->out);
	}
	fputs("</svg>\n", page->out);
}

static struct panel *panel_of(const struct page *page, const struct panel_kind *kind)
{
	struct panel *panel = calloc(1, sizeof(*panel));
	if (!panel) {
		return NULL;
	}
	panel->kind = kind;
	if (kind == FRAME_TIME) {
		add_frames(panel, page);
	} else if (kind == FRAME_RATE) {
		add_rate(panel, page);
	} else {
		add_sensors(panel, page);
	}
	if (panel->count == 0) {
		free(panel);
		return NULL;
	}
	scale(panel, page);
	return panel;
}

void html_time_axis(const struct page *page)
{
	struct panel *panels[PANELS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		panels[count] = panel_of(page, &kinds[i]);
		count += panels[count] != NULL;
	}
	if (count == 0 && page->data->happening_count == 0) {
		return;
	}
	html_section(page->out, "time", "Over time",
		"All panels share one time axis. Shaded spans: the hardware throttled. Vertical "
		"lines: alerts, marks and other events, listed below.");
	fputs("<div class=\"time\">\n", page->out);
	html_time_spans(page);
	for (size_t i = 0; i < count; i++) {
		write_panel(panels[i], page);
	}
	double unit_s = page->span_s >= 7200 ? 3600 : page->span_s >= 600 ? 60 : 1;
	html_chart(page->out, "chart", 22, "Time since the start");
	html_axis(page->out, 0, page->span_s / unit_s,
		unit_s > 60  ? "h"
		: unit_s > 1 ? "min"
			     : "s");
	fputs("</svg>\n", page->out);
	write_hover(page, panels, count);
	fputs("</div>\n", page->out);
	html_happenings(page);
	fputs(HTML_END, page->out);
	for (size_t i = 0; i < count; i++) {
		free(panels[i]);
	}
}
