/* SPDX-License-Identifier: Apache-2.0 */
/* draw_apps.c: draws apps with their frame rate, and the stages of a frame as one bar whose length
 * is the deadline. */
#include "client/edgeprofctl/top/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/top/sensors.h"

enum { NAME_WIDTH = 15, RATE_WIDTH = 10, LINES = 3, BLOCK = 4, LABEL = 64 };
enum { WIDE = 90, GRAPH_MAX = 14 };

static const char *const app_sorts[] = {"", "frame.fps", "frame.misses-", "name", NULL};

/* The stages that a frame's time is made of: the outermost ones. */
static bool counts(const cJSON *stage)
{
	return !(json_number(stage, "depth") > 0) &&
	       strcmp(json_word(stage, "category"), "total") != 0 &&
	       strcmp(json_word(stage, "stage"), "total") != 0;
}

static double cost_of(const cJSON *stage)
{
	double ms = json_number(stage, "per_frame_ms");
	return isnan(ms) ? json_number(stage, "mean_ms") : ms;
}

struct frame_bar {
	struct part_of_bar parts[BAR_PARTS];
	char labels[BAR_PARTS][LABEL];
	size_t count;
	double total_ms, deadline_ms;
};

static void add_part(struct frame_bar *bar, const char *name, double ms, int ink)
{
	if (bar->count == BAR_PARTS || !(ms > 0)) {
		return;
	}
	snprintf(bar->labels[bar->count], LABEL, "%.40s %.1f", name, ms);
	bar->parts[bar->count] = (struct part_of_bar){ms, ink, bar->labels[bar->count]};
	bar->count++;
	bar->total_ms += ms;
}

static void make_bar(const cJSON *app, struct frame_bar *bar)
{
	const cJSON *frame = json_get(app, "frame");
	int index = 0;
	*bar = (struct frame_bar){.count = 0};
	for (const cJSON *stage = json_first(app, "rows"); stage; stage = stage->next) {
		if (counts(stage)) {
			add_part(bar, json_word(stage, "stage"), cost_of(stage),
				INK_STAGE + index++ % (INK_STAGES - 1));
		}
	}
	/* between the stages a frame waits: in a queue, or for a processor */
	add_part(bar, "waits",
		json_number(frame, "end_to_end_mean_ms") - json_number(frame, "stage_sum_mean_ms"),
		INK_STAGE + INK_STAGES - 1);
	bar->deadline_ms = json_number(frame, "deadline_ms");
	double target = json_number(frame, "target_fps");
	if (isnan(bar->deadline_ms) && target > 0) {
		bar->deadline_ms = 1000 / target;
	}
}

static void draw_bar(const struct view *view, int y, int x, int width, const cJSON *app)
{
	const struct canvas *canvas = &view->canvas;
	struct frame_bar bar;
	char text[64];
	make_bar(app, &bar);
	bool limited = bar.deadline_ms > 0;
	double full = limited ? fmax(bar.deadline_ms, bar.total_ms) : bar.total_ms;
	double share = limited ? bar.total_ms / bar.deadline_ms : 0;
	int ink = share > 1 ? TONE_BAD : share > 0.9 ? TONE_WARN : TONE_DIM;
	if (bar.count == 0) {
		canvas_text(canvas, y, x, width, TONE_DIM, "no stage has ended yet");
		return;
	}
	if (limited) {
		snprintf(text, sizeof(text), " %.1f of %.3g ms", bar.total_ms, bar.deadline_ms);
	} else {
		snprintf(text, sizeof(text), " %.1f ms", bar.total_ms);
	}
	int label = limited ? 17 : 10;
	canvas_right(canvas, y, x + width - label, label, ink, text);
	int mark = limited ? (int)round((width - label - 1) * bar.deadline_ms / full) : -1;
	canvas_stack(canvas, y, x, width - label, bar.parts, bar.count, full, mark,
		share > 1 ? TONE_BAD : TONE_BOLD);
}

/* What the colours are. */
static void draw_legend(const struct view *view, int y, int x, int width, const cJSON *app)
{
	struct frame_bar bar;
	int end = x + width;
	make_bar(app, &bar);
	for (size_t i = 0; i < bar.count && x + 3 < end; i++) {
		int columns = (int)text_width(bar.parts[i].label);
		if (x + 2 + columns > end) {
			break;
		}
		canvas_fill(&view->canvas, (struct box){y, x, 1, 1}, bar.parts[i].ink);
		canvas_text(&view->canvas, y, x + 2, columns, TONE_DIM, bar.parts[i].label);
		x += columns + 4;
	}
}

/* State and name, rate with its minute, frame times and misses. */
static void draw_line(const struct view *view, int y, struct box box, const cJSON *app)
{
	static const char *const times[2] = {"[p95 {frame.frame_time_p95_ms:1} ms]",
		"[p50 {frame.frame_time_p50_ms:1}, ][p95 {frame.frame_time_p95_ms:1}]"
		"[, p99 {frame.frame_time_p99_ms:1}][{frame.frame_time_p95_ms:is} ms]"};
	static const char *const parts[] = {
		("[{?frame.misses}{~warn}{frame.misses:count} missed|{frame.deadline_ms:is}{~dim}0 "
		 "missed]"),
		"[{advice.level:is}{!advice.level=full}{~warn}advice: {advice.level}]",
		"[{?dropped}{~bad}{dropped:count} events lost]"};
	const struct canvas *canvas = &view->canvas;
	const char *name = json_word(app, "name");
	int x = box.x, right = box.x + box.width;
	const char *state = json_word(app, "state");
	canvas_text(canvas, y, x, 1, style_of_state(state), canvas->style.utf8 ? "●" : "*");
	canvas_text(canvas, y, x + 2, NAME_WIDTH - 1, TONE_BOLD, name);
	x += NAME_WIDTH + 2;
	const struct ring *ring = model_ring(view->model, "frame/%s/fps", name);
	double fps = json_number(json_get(app, "frame"), "fps");
	if (isnan(fps)) {
		canvas_right(canvas, y, x, RATE_WIDTH, TONE_DIM, "-");
		x += RATE_WIDTH + 1;
		x += canvas_text(canvas, y, x, right - x, style_of_state(state), state) + 2;
		canvas_template(canvas, y, x, right - x,
			"{~dim}[last {frame.last_fps:1} fps {frame.idle_ms:ago}|"
			"[{last_words}]|no frames]",
			app);
		return;
	}
	char text[32];
	snprintf(text, sizeof(text), "%.1f fps", fps);
	canvas_right(canvas, y, x, RATE_WIDTH, TONE_NONE, text);
	x += RATE_WIDTH + 1;
	int graph = box.width >= WIDE ? 30 : box.width >= 70 ? 15 : 8;
	if (ring) {
		struct scale scale = sensor_scale(view->model, ring);
		sensor_graph(view, (struct box){y, x, 1, graph}, ring, RING_SPAN_US, &scale);
	}
	x += graph;
	x += 2 + canvas_template(canvas, y, x + 2, right - x - 2, times[box.width >= WIDE], app);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && x + 2 < right; i++) {
		char bytes[128];
		struct text part = TEXT_IN(bytes);
		template_add(&part, parts[i], app, canvas->style.utf8);
		enum tone tone = style_take(bytes, TONE_NONE);
		int width = (int)text_width(bytes);
		if (width > 0 && x + 2 + width <= right) {
			x += 2 + canvas_text(canvas, y, x + 2, width, tone, bytes);
		}
	}
}

/* The frame rate of the last minute, where there is space for it. */
static void draw_graph(const struct view *view, struct box box, const cJSON *app)
{
	const struct ring *ring = model_ring(view->model, "frame/%s/fps", json_word(app, "name"));
	if (ring && box.height > 0) {
		struct scale scale = sensor_scale(view->model, ring);
		sensor_graph(view, box, ring, RING_SPAN_US, &scale);
	}
}

int apps_lines(const struct view *view)
{
	int count = 0;
	for (const cJSON *app = model_first(view->model, PART_APPS); app; app = app->next) {
		count++;
	}
	return count > 0 ? LINES * count : 1;
}

/* Several lines an app: as many as fit below each other. */
void draw_apps(struct view *view, struct box box, struct cursor *cursor)
{
	const cJSON *rows[VIEW_ROWS];
	struct cursor still = {0}, *at = cursor ? cursor : &still;
	int sort = view->cursors[TAB_APPS].sort;
	int count = (int)view_rows(view, PART_APPS, app_sorts, sort, rows);
	int block = BLOCK * count - 1 <= box.height ? BLOCK
		    : LINES * count <= box.height   ? LINES
						    : 2;
	int spare = count > 0 ? box.height / count - BLOCK : 0;
	int graph = spare < 2 ? 0 : spare > GRAPH_MAX ? GRAPH_MAX : spare;
	block += graph;
	int fit = (box.height + block - 1) / block;
	cursor_fit(at, count, fit > 0 ? fit : 1);
	if (count == 0) {
		canvas_text(&view->canvas, box.y, box.x, box.width, TONE_DIM,
			"no app is attached: see edgeprof(3), edgeprof(3py), or start "
			"demo-pipeline");
	}
	for (int i = 0; i < fit && at->offset + i < count; i++) {
		const cJSON *app = rows[at->offset + i];
		int y = box.y + i * block;
		draw_line(view, y, box, app);
		if (i * block + 1 < box.height) {
			draw_bar(view, y + 1, box.x + 2, box.width - 2, app);
		}
		if (block >= LINES) {
			draw_graph(view, (struct box){y + 3, box.x + 2, graph, box.width - 2}, app);
			draw_legend(view, y + 2, box.x + 2, box.width - 2, app);
		}
		if (at->offset + i == at->selected) {
			view->selected = cursor ? app : view->selected;
			canvas_select(&view->canvas, y, box.x - 1, cursor ? box.width + 2 : 0);
		}
	}
}

static void draw_stages(struct view *view, struct box box, const cJSON *app)
{
	static const struct grid_column columns[] = {
		{"STAGE", 0, "[{stage}[@{unit}]]"},
		{"MEAN ms", -8, "{mean_ms:2}"},
		{"P50", -8, "{p50_ms:2}"},
		{"P95", -8, "{p95_ms:2}"},
		{"P99", -8, "{p99_ms:2}"},
		{"MAX", -8, "{max_ms:2}"},
		{"DEADLINE", -8, "{deadline_ms:g4}"},
		{"MISSED", -8, "[{?misses}{~warn}{misses:0}|{misses:0}|-]"},
		{"CPU ms", -8, "{cpu_ms:2}"},
		{"SHARE %", -8, "{percent_of_total:1}"},
		{"COUNT", -10, "{count:count}"},
		{"CATEGORY", 10, "{category}"},
		{"NOTE", 24, "{~warn}[{?cpu_fallback}CPU fallback from {expected_unit}]"},
	};
	const cJSON *rows[VIEW_ROWS];
	size_t count = 0;
	char title[160];
	const char *name = json_word(app, "name");
	for (const cJSON *row = json_first(app, "rows"); row && count < VIEW_ROWS;
		row = row->next) {
		rows[count++] = row;
	}
	snprintf(title, sizeof(title), "stages of %.96s", name);
	struct box inside = canvas_frame(&view->canvas, box, title, "");
	grid_draw(view, inside, columns, sizeof(columns) / sizeof(columns[0]), rows, count, NULL);
}

/* The facts about an app's frames that are no number of the list. */
static void draw_frames(const struct view *view, struct box box, const cJSON *app)
{
	static const char *const lines[] = {
		"end to end   [mean {frame.end_to_end_mean_ms:1}, ][p95 "
		"{frame.end_to_end_p95_ms:1}][, "
		"p99 {frame.end_to_end_p99_ms:1}][, max {frame.end_to_end_max_ms:1}] ms",
		"jitter       {frame.jitter_ms:2} ms",
		"[frames       {frame.total_count:count}[, {frame.slow_count:0} slow]"
		"[{?frame.skipped_ids}, {frame.skipped_ids:0} skipped]]",
		"[deadline     {frame.deadline_ms:g4} ms, {frame.misses:0} missed "
		"({frame.miss_rate:share})]",
		"[target       {frame.target_fps:1} fps]",
		"[in flight    {frame.in_flight:1} frames at a time]",
		"[energy       {frame.energy_mj_per_frame:1} mJ a frame, an estimate]",
		"[advice       {advice.level}: {advice.reason}]",
		"[events       {received:count} received[{?dropped}, {~bad}{dropped:count} lost]]",
		"[restarts     {?restarts}{restarts:0}]", "[last words   {last_words}]"};
	int y = box.y;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && y < box.y + box.height; i++) {
		y += canvas_template(&view->canvas, y, box.x, box.width, lines[i], app) > 0;
	}
}

void draw_app_tab(struct view *view, struct box box)
{
	struct cursor *cursor = &view->cursors[TAB_APPS];
	char note[64];
	snprintf(note, sizeof(note), "sorted by %s",
		app_sorts[cursor->sort % 4][0] != '\0' ? app_sorts[cursor->sort % 4] : "start");
	int lines = apps_lines(view) + 2, height = box.height / 2;
	struct box list = box, stages = box;
	list.height = lines < height ? lines : height;
	struct box inside = canvas_frame(&view->canvas, list, "apps", note);
	draw_apps(view, inside, cursor);
	const cJSON *app = view->selected;
	if (!app) {
		return;
	}
	int rows = json_count(app, "rows") + 3, left = box.height - list.height;
	stages.y += list.height;
	stages.height = rows < left - 6 ? rows : left;
	draw_stages(view, stages, app);
	struct box facts = {stages.y + stages.height, box.x, left - stages.height, box.width};
	if (facts.height < 4) {
		return;
	}
	struct box plot = facts;
	if (facts.width >= 100) {
		facts.width /= 2;
		plot.x += facts.width;
		plot.width -= facts.width;
		draw_graph(view, canvas_frame(&view->canvas, plot, "frame rate, 60 s", ""), app);
	}
	draw_frames(view, canvas_frame(&view->canvas, facts, "frames", ""), app);
}
