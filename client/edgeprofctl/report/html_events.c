/* SPDX-License-Identifier: Apache-2.0 */
/* html_events.c: shows when the hardware throttled and what happened: across the time axis, and as
 * a table. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 500, TICKS = 60, ROWS_MAX = 40, CLOSE_S = 5 };

struct throttling {
	bool on[COLUMNS], known[COLUMNS];
};

static const struct {
	const char *kind, *glyph, *classes;
} looks[] = {
	{"alert", "▲", "alert"},
	{"mark", "◆", "event"},
	{"throttle", "■", "alert"},
	{"", "●", "event"},
};

static size_t look_of(const struct data_happening *happening)
{
	size_t i = 0;
	while (looks[i].kind[0] != '\0' && strcmp(looks[i].kind, happening->kind) != 0) {
		i++;
	}
	return i;
}

static size_t count(const bool columns[COLUMNS])
{
	size_t ret = 0;
	for (size_t i = 0; i < COLUMNS; i++) {
		ret += columns[i];
	}
	return ret;
}

static void fill(struct throttling *ret, bool on, double span_s, double from_s, double to_s)
{
	double from = from_s / span_s * COLUMNS, to = to_s / span_s * COLUMNS;
	for (size_t i = from > 0 ? (size_t)fmin(from, COLUMNS) : 0; i < COLUMNS && (double)i <= to;
		i++) {
		ret->known[i] = true;
		ret->on[i] |= on;
	}
}

/* By the sensor where there is one, else by what the frames and executions carry. */
static struct throttling throttling_of(const struct page *page)
{
	struct throttling ret = {0};
	const struct data *data = page->data;
	const struct data_series *series = data_series(data, "throttle/active");
	for (size_t i = 0; series && i < series->count; i++) {
		double until_s = i + 1 < series->count ? series->at_s[i + 1] : page->span_s;
		fill(&ret, series->value[i] > 0, page->span_s, series->at_s[i],
			fmin(until_s, series->at_s[i] + CLOSE_S));
	}
	for (size_t i = 0; i < data->frame_count; i++) {
		const struct data_frame *frame = &data->frame[i];
		double ms = isfinite(frame->time_ms) ? frame->time_ms : 0;
		if (frame->throttled >= 0) {
			fill(&ret, frame->throttled == 1, page->span_s, frame->at_s - ms / 1000,
				frame->at_s);
		}
	}
	return ret;
}

static void write_spans(FILE *out, const struct throttling *throttling, const char *classes)
{
	for (size_t i = 0, first = 0; i < COLUMNS; i++) {
		first = i > 0 && throttling->on[i - 1] ? first : i;
		if (throttling->on[i] && (i + 1 == COLUMNS || !throttling->on[i + 1])) {
			html(out,
				"<rect class=\"%s\" x=\"%.1f%%\" width=\"%.1f%%\" "
				"height=\"100%%\"><title>throttled</title></rect>",
				classes, (double)first * 100 / COLUMNS,
				(double)(i + 1 - first) * 100 / COLUMNS);
		}
	}
}

static bool is_grave(const struct data_happening *happening)
{
	return strcmp(happening->severity, "warning") == 0 ||
	       strcmp(happening->severity, "critical") == 0;
}

/* Lines across all panels, or the glyphs of the lane; of those that are too close one, if possible
 * one that is grave. Edges of throttling are shown as spans. */
static void write_ticks(const struct page *page, bool glyphs)
{
	const struct data_happening *slot[TICKS] = {NULL};
	for (size_t i = 0; i < page->data->happening_count; i++) {
		const struct data_happening *happening = &page->data->happening[i];
		double at = happening->at_s / page->span_s * TICKS;
		bool edge = strcmp(happening->kind, "throttle") == 0;
		if (!edge && at >= 0 && at < TICKS && (!slot[(int)at] || is_grave(happening))) {
			slot[(int)at] = happening;
		}
	}
	for (size_t i = 0; i < TICKS; i++) {
		if (slot[i]) {
			double x = html_percent(slot[i]->at_s, page->span_s);
			const char *classes = looks[look_of(slot[i])].classes;
			if (glyphs) {
				html(page->out,
					"<text class=\"m %s\" x=\"%.2f%%\" y=\"14\">%s</text>",
					classes, x, looks[look_of(slot[i])].glyph);
			} else {
				html(page->out,
					"<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" "
					"y2=\"100%%\"/>",
					classes, x, x);
			}
		}
	}
}

void html_time_spans(const struct page *page)
{
	FILE *out = page->out;
	struct throttling throttling = throttling_of(page);
	size_t known = count(throttling.known);
	fputs("<svg class=\"under\" aria-hidden=\"true\">", out);
	write_spans(out, &throttling, "throttled");
	write_ticks(page, false);
	fputs("</svg>\n<div class=\"legend\"><h3>Throttling</h3><ul><li>", out);
	if (known == 0) {
		fputs("not reported by this device", out);
	} else {
		html(out, "<b>%.1f %%</b> of the time",
			(double)count(throttling.on) * 100 / (double)known);
	}
	fputs("</li></ul></div>\n", out);
	html_chart(out, "chart", 20, "Throttling, alerts and marks");
	write_spans(out, &throttling, "lane");
	html(out, "<line class=\"base\" x2=\"100%%\" y1=\"20\" y2=\"20\"/>");
	write_ticks(page, true);
	fputs("</svg>\n", out);
}

/* Where there are too many, those of a severity go first. */
void html_happenings(const struct page *page)
{
	const struct data *data = page->data;
	size_t grave = 0, shown = 0, others = 0;
	for (size_t i = 0; i < data->happening_count; i++) {
		grave += is_grave(&data->happening[i]);
	}
	if (data->happening_count == 0) {
		return;
	}
	html_table(page->out, "Events", ">At||Kind|Severity|Event");
	for (size_t i = 0; i < data->happening_count && shown < ROWS_MAX; i++) {
		const struct data_happening *happening = &data->happening[i];
		size_t look = look_of(happening);
		if (!is_grave(happening) && others + grave >= ROWS_MAX) {
			continue;
		}
		others += !is_grave(happening);
		shown++;
		html(page->out,
			"<tr><td class=\"n\">%s</td><td class=\"%s\">%s</td><td>%s</td><td>%s"
			"</td><td>%s</td></tr>\n",
			html_at(page, happening->at_s).text, looks[look].classes, looks[look].glyph,
			happening->kind, happening->severity[0] != '\0' ? happening->severity : "-",
			happening->text);
	}
	html_table_end(page->out, "events", data->happening_count - shown);
}
