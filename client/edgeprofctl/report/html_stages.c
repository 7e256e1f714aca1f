/* SPDX-License-Identifier: Apache-2.0 */
/* html_stages.c: shows where the time of a frame goes: nested bars, and the table of stages. */
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

enum { ROW_HEIGHT = 30, ROWS_MAX = 12, STAGES_MAX = 64 };

/* The bars below each other, from the frame to the innermost stages. */
struct icicle {
	const struct page *page;
	double whole_ms; /* width of the chart */
	unsigned top;	 /* rows above the outermost stages: that of the frame */
};

static double cost_of(const struct data *data, const struct data_stage *stage)
{
	double cost = data->frame_count > 0 ? stage->per_frame_ms : stage->ms.mean;
	return cost > 0 && isfinite(cost) ? cost : 0;
}

/* A label shows from the page width on at which it fits: 0 always, 4 never. */
static int label_class(double percent, size_t length)
{
	static const int widths[] = {310, 560, 800, 1080};
	int i = 0;
	while (i < 4 && percent / 100 * widths[i] < (double)length * 7 + 10) {
		i++;
	}
	return i;
}

static void bar(const struct icicle *icicle, unsigned row, double from_ms, double ms,
	const char *classes, const char *name, const char *title)
{
	double width = html_percent(ms, icicle->whole_ms);
	size_t name_length = strlen(name);
	struct label cost = html_ms(ms);
	html(icicle->page->out,
		"<svg x=\"%.3f%%\" y=\"%u\" width=\"%.3f%%\" height=\"%d\"><g><title>%s</title>"
		"<rect class=\"%s\" width=\"100%%\" height=\"100%%\"/>"
		"<text class=\"w%d\" x=\"6\" y=\"19\">%s<tspan class=\"w%d\" dx=\"6\">%s</tspan>"
		"</text></g></svg>\n",
		html_percent(from_ms, icicle->whole_ms), row * ROW_HEIGHT, width, ROW_HEIGHT - 1,
		title, classes, label_class(width, name_length), name,
		label_class(width, name_length + 1 + strlen(cost.text)), cost.text);
}

static void stage_bar(const struct icicle *icicle, const struct data_stage *stage, unsigned row,
	double from_ms, double ms)
{
	char classes[16], title[700];
	const struct data *data = icicle->page->data;
	snprintf(classes, sizeof(classes), "f%d", (int)((stage - data->stage) % 9));
	snprintf(title, sizeof(title), "%s%s%s: %s per %s (%.1f %%), p95 %s, p99 %s, %zu times",
		stage->name, stage->unit[0] != '\0' ? " @" : "", stage->unit, html_ms(ms).text,
		data->frame_count > 0 ? "frame" : "execution", html_percent(ms, icicle->whole_ms),
		html_ms(stage->ms.p95).text, html_ms(stage->ms.p99).text, stage->count);
	bar(icicle, row, from_ms, ms, classes, stage->name, title);
}

/* The sum of the stages directly inside of parent (-1: of all), without those that contain the
 * others only for their name. */
static double sum_inside(const struct data *data, int parent)
{
	double sum = 0;
	for (size_t i = (size_t)(parent + 1); i < data->stage_count && i < STAGES_MAX; i++) {
		if (data->stage[i].parent == parent) {
			sum += data->stage[i].left_out ? sum_inside(data, (int)i)
						       : cost_of(data, &data->stage[i]);
		}
	}
	return sum;
}

/* Lays the stages inside of parent out from from_ms on; scale < 1 where threads ran at the same
 * time, such that they fit. Returns where they end. */
static double lay(
	const struct icicle *icicle, int parent, unsigned row, double from_ms, double scale)
{
	const struct data *data = icicle->page->data;
	for (size_t i = (size_t)(parent + 1); i < data->stage_count && i < STAGES_MAX; i++) {
		const struct data_stage *stage = &data->stage[i];
		if (stage->parent != parent || row >= ROWS_MAX) {
			continue;
		}
		if (stage->left_out) {
			from_ms = lay(icicle, (int)i, row, from_ms, scale);
			continue;
		}
		double ms = cost_of(data, stage), inside = sum_inside(data, (int)i);
		if (html_percent(ms * scale, icicle->whole_ms) >= 0.02) {
			stage_bar(icicle, stage, row, from_ms, ms * scale);
			lay(icicle, (int)i, row + 1, from_ms,
				inside > ms ? scale * ms / inside : scale);
		}
		from_ms += ms * scale;
	}
	return from_ms;
}

static unsigned rows_of(const struct data *data)
{
	unsigned rows = 0;
	for (size_t i = 0; i < data->stage_count && i < STAGES_MAX; i++) {
		rows = data->stage[i].depth >= rows ? data->stage[i].depth + 1 : rows;
	}
	return rows < ROWS_MAX ? rows : ROWS_MAX;
}

static void stage_row(const struct page *page, const struct data_stage *stage, double whole_ms)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	const struct data_numbers *ms = &stage->ms;
	double own_ms = cost_of(data, stage) - sum_inside(data, (int)(stage - data->stage));
	const double columns[] = {data->frame_count > 0 ? stage->per_frame_ms : NAN,
		stage->left_out ? NAN : fmax(own_ms, 0) / whole_ms * 100, ms->mean, ms->p50,
		ms->p90, ms->p95, ms->p99, ms->min, ms->max, ms->std};
	html(out, "<tr><th scope=\"row\"><i class=\"f%d\"></i>", (int)((stage - data->stage) % 9));
	for (unsigned i = 0; i < stage->depth && i < ROWS_MAX; i++) {
		fputs("<i class=\"in\"></i>", out);
	}
	html(out, "%s</th>", stage->name);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		html(out, "<td class=\"n\">%.*f</td>", i == 1 ? 1 : 2, columns[i]);
	}
	html(out, "<td class=\"n\">%s</td><td class=\"n\">%zu</td><td>%s</td><td>%s</td></tr>\n",
		format_count((int64_t)stage->count).text, stage->failed,
		stage->unit[0] != '\0' ? stage->unit : "-",
		stage->category[0] != '\0' ? stage->category : "-");
}

static void stage_table(const struct page *page)
{
	const struct data *data = page->data;
	size_t shown = data->stage_count < STAGES_MAX ? data->stage_count : STAGES_MAX;
	double whole_ms = sum_inside(data, -1);
	html_table(page->out, "Stages",
		"Stage|>ms per frame|>Own share, %|>Mean, "
		"ms|>p50|>p90|>p95|>p99|>Min|>Max|>Std|>Count|"
		">Failed|Unit|Category");
	for (size_t i = 0; i < shown; i++) {
		stage_row(page, &data->stage[i], whole_ms);
	}
	html_table_end(page->out, "stages", data->stage_count - shown);
}

static void deadline_row(FILE *out, const char *name, const cJSON *row)
{
	if (isfinite(json_number(row, "deadline_ms"))) {
		html(out,
			"<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td "
			"class=\"n\">%s</td>"
			"<td class=\"n\">%.1f</td><td class=\"n\">%s</td><td "
			"class=\"n\">%s</td></tr>\n",
			name, html_ms(json_number(row, "deadline_ms")).text,
			format_count(json_integer(row, "misses")).text,
			100 * json_number(row, "miss_rate"),
			format_count(json_integer(row, "longest_consecutive_misses")).text,
			html_ms(json_number(row, "worst_ms")).text);
	}
}

/* Of the frames and of each stage that has one. */
static void deadline_table(const struct page *page)
{
	const cJSON *frames = json_get(page->tree, "frames");
	bool any = isfinite(json_number(frames, "deadline_ms"));
	for (const cJSON *row = json_first(page->tree, "stages"); row; row = row->next) {
		any = any || isfinite(json_number(row, "deadline_ms"));
	}
	if (!any) {
		return;
	}
	fputs("<h3>Deadlines</h3>\n", page->out);
	html_table(page->out, "Deadlines",
		"Of|>Deadline|>Missed|>Missed, %|>Most in a row|>Worst miss");
	deadline_row(page->out, "each frame", frames);
	for (const cJSON *row = json_first(page->tree, "stages"); row; row = row->next) {
		deadline_row(page->out, json_word(row, "stage"), row);
	}
	html_table_end(page->out, "", 0);
}

void html_breakdown(const struct page *page)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	double stages_ms = sum_inside(data, -1);
	bool frames = data->frame_count > 0 && isfinite(data->total_ms.mean);
	double frame_ms = frames ? fmax(data->total_ms.mean, 0) : 0;
	struct icicle icicle = {page, fmax(stages_ms, frame_ms), frame_ms > 0};
	if (icicle.whole_ms <= 0) {
		return;
	}
	if (page->deadline_ms < 5 * icicle.whole_ms) {
		icicle.whole_ms = fmax(icicle.whole_ms, page->deadline_ms);
	}
	html_section(out, "stages", "Where the time goes",
		stages_ms > frame_ms * 1.02 && frame_ms > 0
			? "Mean time per frame. Stages overlap: together they take longer than the "
			  "frame."
		: frame_ms > 0 ? "Mean time per frame; below a stage, those inside of it."
			       : "Mean time of each stage; no duration of a frame is known.");
	double height = ROW_HEIGHT * (rows_of(data) + icicle.top);
	html_chart(out, "chart icicle", height + 24, "Mean time of each stage in a frame");
	if (frame_ms > 0) {
		bar(&icicle, 0, 0, frame_ms, "whole", "frame", "frame: mean of its total");
	}
	double end_ms = lay(&icicle, -1, icicle.top, 0, 1);
	if (frame_ms - end_ms > frame_ms * 0.005 && data->stage_count > 0) {
		bar(&icicle, icicle.top, end_ms, frame_ms - end_ms, "none", "no stage",
			"between the stages");
	}
	html_axis(out, height, icicle.whole_ms, "ms");
	if (page->deadline_ms <= icicle.whole_ms) {
		double x = html_percent(page->deadline_ms, icicle.whole_ms);
		html_vertical(out, "dead", x, 0, height + 5);
		html(out, "<text class=\"bad %s\" x=\"%.2f%%\" y=\"-5\">deadline %s</text>",
			x < 30 ? "s" : "e", x, html_ms(page->deadline_ms).text);
	}
	fputs("</svg>\n", out);
	if (data->stage_count > 0) {
		stage_table(page);
	}
	deadline_table(page);
	fputs(HTML_END, out);
}
