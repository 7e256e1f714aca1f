/* SPDX-License-Identifier: Apache-2.0 */
/* html.c: escapes text for the HTML report, and draws what has no time axis: the stages of a frame,
 * and histograms of durations. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/term/text.h"
#include "proto/text.h"

enum { ROW_HEIGHT = 26, STAGES_MAX = 64, BINS = 40, CARDS_MAX = 14, MARK_HEIGHT = 15 };
enum { BARS_TOP = 48, BARS_BOTTOM = 132 };

struct html_text html_text(const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	struct html_text ret;
	char clean[HTML_TEXT_MAX];
	struct text escaped = TEXT_IN(ret.text);
	snprintf(clean, sizeof(clean), "%s", text);
	text_clean(clean, true);
	for (const char *at = clean; *at != '\0'; at++) {
		const char *found = strchr(special, *at), plain[] = {*at, '\0'};
		text_add(&escaped, "%s", found ? entities[found - special] : plain);
	}
	return ret;
}

/* "0.41 µs", "8.12 ms", "120 ms", "1.53 s"; "-" for NAN. */
static struct label html_ms(double ms)
{
	struct label label = {"-"};
	if (isfinite(ms) && fabs(ms) < 1e15) {
		bool micro = ms < 0.0995, seconds = ms >= 999.5;
		double value = micro ? ms * 1000 : seconds ? ms / 1000 : ms;
		int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
		snprintf(label.text, sizeof(label.text), "%.*f %s", decimals, value,
			micro	  ? "µs"
			: seconds ? "s"
				  : "ms");
	}
	return label;
}

double html_percent(double value, double whole)
{
	double percent = whole > 0 ? value / whole * 100 : 0;
	return percent >= 0 ? fmin(percent, 100) : 0;
}

const char *html_frames(const struct data *data)
{
	bool whole = data->frame_count > 0 && isfinite(data->frame[0].total_ms);
	return whole ? "End to end" : "Frame time";
}

static double cost_of(const struct data *data, const struct data_stage *stage)
{
	double cost = data->frame_count > 0 ? stage->per_frame_ms : stage->ms.mean;
	return cost > 0 && isfinite(cost) ? cost : 0;
}

/* A row for each stage: it begins where the one before it ends, one inside of another where that
 * begins. */
void html_stages(const struct page *page)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	double from_ms[STAGES_MAX], next_ms[STAGES_MAX + 1] = {0}, whole_ms = 0;
	size_t count = data->stage_count < STAGES_MAX ? data->stage_count : STAGES_MAX;
	for (size_t i = 0; i < count; i++) {
		unsigned depth = data->stage[i].depth;
		from_ms[i] = next_ms[depth];
		next_ms[depth] += cost_of(data, &data->stage[i]);
		next_ms[depth + 1] = from_ms[i];
		whole_ms = fmax(whole_ms, next_ms[depth]);
	}
	fprintf(out, "<p>Mean time %s; below a stage, those inside of it.",
		data->frame_count > 0 ? "per frame" : "of each stage");
	if (count < data->stage_count) {
		fprintf(out, " The first %zu of %zu stages.", count, data->stage_count);
	}
	fprintf(out,
		"</p>\n<svg class=\"chart\" height=\"%zu\" role=\"img\" "
		"aria-label=\"Mean time of each stage\">\n",
		count * ROW_HEIGHT);
	for (size_t i = 0; i < count; i++) {
		double ms = cost_of(data, &data->stage[i]);
		double x = html_percent(from_ms[i], whole_ms), width = html_percent(ms, whole_ms);
		bool left = x > 60;
		fprintf(out,
			"<rect class=\"f%zu\" x=\"%.2f%%\" y=\"%zu\" width=\"%.2f%%\" "
			"height=\"%d\"/><text class=\"%s\" x=\"%.2f%%\" dx=\"%d\" y=\"%zu\">%s "
			"%s</text>\n",
			i % 9, x, i * ROW_HEIGHT, width, ROW_HEIGHT - 2, left ? "e" : "s",
			left ? x + width : x, left ? -6 : 6, i * ROW_HEIGHT + 17,
			html_text(data->stage[i].name).text, html_ms(ms).text);
	}
	fputs("</svg>\n", out);
}

static void mark(FILE *out, const char *name, double ms, double from_ms, double range_ms, int row)
{
	double x = html_percent(ms - from_ms, range_ms);
	bool left = x > 60;
	fprintf(out,
		"<line class=\"mark\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/><text "
		"class=\"%s\" x=\"%.2f%%\" dx=\"%d\" y=\"%d\">%s %s</text>",
		x, x, row * MARK_HEIGHT + 3, BARS_BOTTOM, left ? "e" : "s", x, left ? -4 : 4,
		row * MARK_HEIGHT + 12, name, html_ms(ms).text);
}

/* The axis ends at the maximum, or above p99 where that would leave no space for the rest. */
static void card(FILE *out, const char *name, size_t color, double *values, size_t count)
{
	size_t bins[BINS] = {0}, most = 1, above = 0;
	struct proto_summary ms = data_numbers_of(values, count);
	double tail_ms = ms.p99 - ms.min, from_ms = ms.min;
	double to_ms = tail_ms > 0 ? fmin(ms.max, ms.p99 + tail_ms / 2) : ms.max;
	double range_ms = fmax(to_ms - from_ms, 1e-4);
	for (size_t i = 0; i < count; i++) {
		double at = (values[i] - from_ms) / range_ms * BINS;
		size_t bin = at < BINS ? (size_t)at : BINS - 1;
		above += at > BINS * 1.0001;
		bins[bin] += at <= BINS * 1.0001;
		most = bins[bin] > most ? bins[bin] : most;
	}
	fprintf(out, "<div class=\"card\"><h3>%s</h3><p>%s, mean %s, %zu above the axis</p>\n",
		html_text(name).text, format_count((int64_t)count).text, html_ms(ms.mean).text,
		above);
	fprintf(out, "<svg class=\"chart\" height=\"%d\" role=\"img\" aria-label=\"Histogram\">",
		BARS_BOTTOM + 20);
	for (size_t i = 0; i < BINS; i++) {
		double height = (double)bins[i] / (double)most * (BARS_BOTTOM - BARS_TOP);
		if (bins[i] > 0) {
			fprintf(out,
				"<rect class=\"f%zu\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" "
				"height=\"%.1f\"/>",
				color, (double)i * 100 / BINS, BARS_BOTTOM - fmax(height, 1.5),
				92.0 / BINS, fmax(height, 1.5));
		}
	}
	mark(out, "p50", ms.p50, from_ms, range_ms, 0);
	mark(out, "p95", ms.p95, from_ms, range_ms, 1);
	mark(out, "p99", ms.p99, from_ms, range_ms, 2);
	fprintf(out,
		"<line class=\"base\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/><text y=\"%d\">%s</text>"
		"<text class=\"e\" x=\"100%%\" y=\"%d\">%s</text></svg></div>\n",
		BARS_BOTTOM, BARS_BOTTOM, BARS_BOTTOM + 16, html_ms(from_ms).text, BARS_BOTTOM + 16,
		html_ms(to_ms).text);
}

/* Whether the stage is one of those with the most time, that have a card. */
static bool is_large(const struct data *data, size_t at)
{
	const struct proto_summary *ms = &data->stage[at].ms;
	size_t larger = 0;
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct proto_summary *other = &data->stage[i].ms;
		double more = other->mean * (double)other->count - ms->mean * (double)ms->count;
		larger += more > 0 || (more == 0 && i < at);
	}
	return larger < CARDS_MAX - 1;
}

void html_latency(const struct page *page)
{
	const struct data *data = page->data;
	size_t most = data->frame_count;
	for (size_t i = 0; i < data->stage_count; i++) {
		most = data->stage[i].count > most ? data->stage[i].count : most;
	}
	double *values = calloc(most + 1, sizeof(*values));
	fputs("<div class=\"cards\">\n", page->out);
	/* the frames, and then the stages */
	for (size_t n = 0; values && n <= data->stage_count; n++) {
		const struct data_stage *stage = n > 0 ? &data->stage[n - 1] : NULL;
		size_t count = stage ? stage->count : data->frame_count, kept = 0;
		if (stage && !is_large(data, n - 1)) {
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			values[kept] =
				stage ? stage->execution[i].ms : data_frame_ms(&data->frame[i]);
			kept += isfinite(values[kept]) != 0;
		}
		if (kept > 0) {
			card(page->out, stage ? stage->name : html_frames(data), n % 9, values,
				kept);
		}
	}
	fputs("</div>\n", page->out);
	free(values);
}
