/* SPDX-License-Identifier: Apache-2.0 */
/* html_latency.c: shows how long frames and stages took: a histogram each, with percentiles. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS_MAX = 40, CARDS_MAX = 14, MARK_HEIGHT = 15, BARS_TOP = 48, BARS_HEIGHT = 84 };

struct histogram {
	double from_ms, to_ms; /* of the bins */
	size_t bins, bin[BINS_MAX], above, most;
};

/* The axis ends at the maximum, or above p99 where that would leave no space for the rest. */
static struct histogram histogram_for(const struct data_numbers *ms)
{
	struct histogram histogram = {.from_ms = ms->min, .to_ms = ms->max};
	histogram.bins = (size_t)fmin(BINS_MAX, fmax(10, 2 * sqrt((double)ms->count)));
	double width = ms->p99 - ms->min;
	if (width > 0 && ms->max - ms->min > 2 * width) {
		histogram.to_ms = ms->p99 + 0.5 * width;
	}
	if (histogram.to_ms - histogram.from_ms < 1e-4) {
		histogram.from_ms = fmax(0, ms->mean - 0.01);
		histogram.to_ms = ms->mean + 0.01;
	}
	return histogram;
}

static void count(struct histogram *histogram, double ms)
{
	double bins = (double)histogram->bins;
	double at = (ms - histogram->from_ms) / (histogram->to_ms - histogram->from_ms) * bins;
	if (!isfinite(at) || at < 0) {
		return;
	}
	if (at > bins + 1e-9) {
		histogram->above++;
		return;
	}
	size_t bin = at < bins ? (size_t)at : histogram->bins - 1;
	if (++histogram->bin[bin] > histogram->most) {
		histogram->most = histogram->bin[bin];
	}
}

static void mark(FILE *out, const struct histogram *histogram, const char *name, double ms, int row)
{
	double x = html_percent(ms - histogram->from_ms, histogram->to_ms - histogram->from_ms);
	bool left = x > 60;
	html_vertical(out, "mark", x, row * MARK_HEIGHT + 3, BARS_TOP + BARS_HEIGHT);
	html(out, "<text class=\"%s\" x=\"%.2f%%\" dx=\"%d\" y=\"%d\">%s %s</text>",
		left ? "e" : "s", x, left ? -4 : 4, row * MARK_HEIGHT + 12, name, html_ms(ms).text);
}

static void bars(FILE *out, const struct histogram *histogram, const char *classes)
{
	double width = 100 / (double)histogram->bins;
	double step = (histogram->to_ms - histogram->from_ms) / (double)histogram->bins;
	for (size_t i = 0; i < histogram->bins; i++) {
		if (histogram->bin[i] == 0) {
			continue;
		}
		double from_ms = histogram->from_ms + (double)i * step;
		double height = fmax(
			1.5, (double)histogram->bin[i] / (double)histogram->most * BARS_HEIGHT);
		html(out,
			"<rect class=\"%s\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" "
			"height=\"%.1f\"><title>%.3f to %.3f ms: %zu</title></rect>",
			classes, (double)i * width, BARS_TOP + BARS_HEIGHT - height, width * 0.92,
			height, from_ms, from_ms + step, histogram->bin[i]);
	}
}

static void card(FILE *out, const char *name, const char *unit, const char *classes,
	const struct histogram *histogram, const struct data_numbers *ms)
{
	html(out, "<div class=\"card\"><h3>%s%s%s</h3><p class=\"dim\">%s, mean %s, p99/mean %.1f",
		name, unit[0] != '\0' ? " @" : "", unit, format_count((int64_t)ms->count).text,
		html_ms(ms->mean).text, ms->p99 / ms->mean);
	if (histogram->above > 0) {
		html(out, "; %zu above the axis, up to %s", histogram->above,
			html_ms(ms->max).text);
	}
	html(out, "</p>\n");
	struct label p50 = html_ms(ms->p50), p95 = html_ms(ms->p95), p99 = html_ms(ms->p99);
	char label[512];
	snprintf(label, sizeof(label), "Histogram of %s: p50 %s, p95 %s, p99 %s", name, p50.text,
		p95.text, p99.text);
	html_chart(out, "chart", BARS_TOP + BARS_HEIGHT + 20, label);
	bars(out, histogram, classes);
	mark(out, histogram, "p50", ms->p50, 0);
	mark(out, histogram, "p95", ms->p95, 1);
	mark(out, histogram, "p99", ms->p99, 2);
	html(out,
		"<line class=\"base\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/><text class=\"s\" "
		"y=\"%d\">%s</text><text class=\"e\" x=\"100%%\" y=\"%d\">%s</text></svg></div>\n",
		BARS_TOP + BARS_HEIGHT, BARS_TOP + BARS_HEIGHT, BARS_TOP + BARS_HEIGHT + 16,
		html_ms(histogram->from_ms).text, BARS_TOP + BARS_HEIGHT + 16,
		html_ms(histogram->to_ms).text);
}

/* Of the frames: their totals, or the times between them. */
static void frame_card(const struct page *page, const char *name, bool total)
{
	const struct data *data = page->data;
	double *values = calloc(data->frame_count + 1, sizeof(*values));
	size_t kept = 0;
	for (size_t i = 0; values && i < data->frame_count; i++) {
		double ms = total ? data->frame[i].total_ms : data->frame[i].time_ms;
		if (isfinite(ms)) {
			values[kept++] = ms;
		}
	}
	if (kept > 0) {
		struct data_numbers ms = data_numbers_of(values, kept);
		struct histogram histogram = histogram_for(&ms);
		for (size_t i = 0; i < kept; i++) {
			count(&histogram, values[i]);
		}
		card(page->out, name, "", "whole", &histogram, &ms);
	}
	free(values);
}

void html_latency(const struct page *page)
{
	const struct data *data = page->data;
	size_t cards = 2;
	if (data->frame_count == 0 && data->stage_count == 0) {
		return;
	}
	html_section(page->out, "latency", "Latency",
		"How often each duration occurred. Percentiles are interpolated linearly.");
	fputs("<div class=\"cards\">\n", page->out);
	frame_card(page, "Frame, first start to last end", true);
	frame_card(page, "From frame to frame", false);
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *stage = &data->stage[i];
		if (stage->count == 0 || stage->ms.count == 0 || ++cards > CARDS_MAX) {
			continue;
		}
		char classes[16];
		snprintf(classes, sizeof(classes), "f%d", (int)(i % 9));
		struct histogram histogram = histogram_for(&stage->ms);
		for (size_t k = 0; k < stage->count; k++) {
			count(&histogram, stage->execution[k].ms);
		}
		card(page->out, stage->name, stage->unit, classes, &histogram, &stage->ms);
	}
	fputs("</div>\n", page->out);
	if (cards > CARDS_MAX) {
		html(page->out, "<p class=\"dim\">%zu more stages: see the table.</p>\n",
			cards - CARDS_MAX);
	}
	fputs(HTML_END, page->out);
}
