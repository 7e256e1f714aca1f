/* SPDX-License-Identifier: Apache-2.0 */
/* draw_apps.c: draws apps with their frame rate, and the stages of a frame as one bar whose length
 * is the deadline. */
#include "client/edgeprofctl/top/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/text.h"

enum { NAME_WIDTH = 15, RATE_WIDTH = 10, PARTS_MAX = 24, WIDE = 90 };

static const char *const app_sorts[] = {"", "frame.fps", "frame.misses-", "name", NULL};
enum { SORTS = sizeof(app_sorts) / sizeof(app_sorts[0]) - 1 };

/* The stages that a frame's time is made of: the outermost ones. */
static bool counts(const cJSON *stage)
{
	return !(json_number(stage, "depth") > 0) &&
	       strcmp(json_word(stage, "category"), "total") != 0 &&
	       strcmp(json_word(stage, "category"), "wait") != 0 &&
	       strcmp(json_word(stage, "stage"), "total") != 0;
}

static double cost_of(const cJSON *stage)
{
	double ms = json_number(stage, "per_frame_ms");
	return isnan(ms) ? json_number(stage, "mean_ms") : ms;
}

struct frame_bar {
	const char *names[PARTS_MAX];
	double ms[PARTS_MAX], total_ms, deadline_ms;
	size_t count;
	bool apart; /* of an app that has gone: which stages contain which is not known */
};

static void add_part(struct frame_bar *bar, const char *name, double ms)
{
	if (bar->count < PARTS_MAX && ms > 0) {
		bar->names[bar->count] = name;
		bar->ms[bar->count++] = ms;
		bar->total_ms += ms;
	}
}

static void make_bar(const cJSON *app, struct frame_bar *bar)
{
	const cJSON *frame = json_get(app, "frame");
	double target = json_number(frame, "target_fps");
	*bar = (struct frame_bar){.deadline_ms = json_number(frame, "deadline_ms")};
	for (const cJSON *stage = json_first(app, "rows"); stage; stage = stage->next) {
		if (counts(stage)) {
			add_part(bar, json_word(stage, "stage"), cost_of(stage));
			bar->apart = bar->apart || !json_get(stage, "depth");
		}
	}
	/* between the stages a frame waits: in a queue, or for a processor */
	add_part(bar, "waits",
		json_number(frame, "end_to_end_mean_ms") - json_number(frame, "stage_sum_mean_ms"));
	if (isnan(bar->deadline_ms) && target > 0) {
		bar->deadline_ms = 1000 / target;
	}
}

/* The bar with a mark at the deadline; below it, where there is space, what its colours are. */
static void draw_bar(const struct view *view, struct box box, const struct frame_bar *bar)
{
	const struct canvas *canvas = &view->canvas;
	bool limited = bar->deadline_ms > 0 && !bar->apart;
	double full = limited ? fmax(bar->deadline_ms, bar->total_ms) : bar->total_ms;
	double share = limited ? bar->total_ms / bar->deadline_ms : 0;
	int width = box.width - (limited ? 17 : 10), at = box.x, x = box.x, y = box.y;
	unsigned columns[PARTS_MAX];
	char text[64];
	if (bar->count == 0) {
		canvas_text(canvas, y, x, box.width, TONE_DIM, "no stage has ended yet");
		return;
	}
	plot_divide(bar->ms, bar->count, full, (unsigned)width, columns);
	canvas_bar(canvas, y, x, width, 0, TONE_NONE);
	for (size_t i = 0; i < bar->count; i++) {
		int ink = INK_STAGE + (int)i % INK_STAGES, part = (int)columns[i];
		canvas_fill(canvas, (struct box){y, at, 1, part}, ink);
		canvas_text(canvas, y, at, part > 0, ink, canvas->style.color ? "" : "|");
		at += part;
		snprintf(text, sizeof(text), "%.40s %.1f", bar->names[i], bar->ms[i]);
		int label = (int)text_width(text);
		if (box.height > 1 && x + 2 + label <= box.x + box.width) {
			canvas_fill(canvas, (struct box){y + 1, x, 1, 1}, ink);
			canvas_text(canvas, y + 1, x + 2, label, TONE_DIM, text);
			x += label + 4;
		}
	}
	if (bar->apart) {
		snprintf(text, sizeof(text), " -");
	} else {
		snprintf(text, sizeof(text), " %.1f ms", bar->total_ms);
	}
	if (limited) {
		at = box.x + (int)round((width - 1) * bar->deadline_ms / full);
		canvas_text(canvas, y, at, 1, share > 1 ? TONE_BAD : TONE_BOLD,
			canvas->style.utf8 ? "┃" : "|");
		snprintf(text, sizeof(text), " %.1f of %.3g ms", bar->total_ms, bar->deadline_ms);
	}
	canvas_right(canvas, y, box.x + width, box.width - width,
		share > 1     ? TONE_BAD
		: share > 0.9 ? TONE_WARN
			      : TONE_DIM,
		text);
}

/* State and name, rate with its minute, frame times and misses. */
static void draw_line(const struct view *view, struct box box, const cJSON *app)
{
	static const char *const parts[] = {
		"[p95 {frame.frame_time_p95_ms:1} ms]",
		("[{?frame.misses}{~warn}{frame.misses:count} missed|{frame.deadline_ms:is}{~dim}0 "
		 "missed]"),
		"[{advice.level:is}{!advice.level=full}{~warn}advice: {advice.level}]",
		"[{?dropped}{~bad}{dropped:count} events lost]",
		"[p50 {frame.frame_time_p50_ms:1}][, p99 {frame.frame_time_p99_ms:1} ms]",
	};
	static const char *const idle[] = {"{~:state}{state}",
		"{~dim}[last {frame.last_fps:1} fps {frame.idle_ms:ago}|[{last_words}]|no frames]"};
	const struct canvas *canvas = &view->canvas;
	const char *name = json_word(app, "name");
	int graph = box.width >= WIDE ? 30 : box.width >= 70 ? 15 : box.width >= 54 ? 8 : 0;
	const struct ring *ring = model_ring(view->model, "frame/%s/fps", name);
	bool known = !isnan(json_number(json_get(app, "frame"), "fps"));
	struct box rest = box;
	canvas_template(
		canvas, box.y, box.x, 1, canvas->style.utf8 ? "{~:state}●" : "{~:state}*", app);
	canvas_text(canvas, box.y, box.x + 2, NAME_WIDTH - 1, TONE_BOLD, name);
	rest.x += NAME_WIDTH + 2;
	char rate[64];
	struct text text = TEXT_IN(rate);
	template_add(&text, "[{frame.fps:1} fps|{~dim}-]", app, canvas->style.utf8);
	canvas_right(canvas, box.y, rest.x, RATE_WIDTH, TONE_NONE, rate);
	rest.x += RATE_WIDTH + 1;
	if (known && ring) {
		draw_minute(view, (struct box){box.y, rest.x, 1, graph}, ring);
	}
	rest.x += known ? graph + 2 : 0;
	rest.width -= rest.x - box.x;
	view_parts(view, rest, false, known ? parts : idle,
		known ? sizeof(parts) / sizeof(parts[0]) : sizeof(idle) / sizeof(idle[0]), app);
}

int apps_lines(const struct view *view)
{
	const cJSON *app = model_first(view->model, PART_APPS);
	while (app && !json_text(app, "diagnosis")) {
		app = app->next;
	}
	return APP_LINES + (app != NULL);
}

/* As many lines for each app, less at the end of the box. */
void draw_apps(struct view *view, struct box box, struct cursor *cursor)
{
	const cJSON *rows[VIEW_ROWS];
	struct cursor still = {0}, *at = cursor ? cursor : &still;
	int sort = view->cursors[TAB_APPS].sort;
	int count = (int)view_rows(view, PART_APPS, app_sorts, sort, rows);
	int lines = apps_lines(view), fit = (box.height + lines - 1) / lines;
	cursor_fit(at, count, fit);
	if (count == 0) {
		view_empty(view, box, TONE_DIM,
			"no app is attached: see edgeprof(3), edgeprof(3py), or start "
			"demo-pipeline");
	}
	for (int i = 0; i < fit && at->offset + i < count; i++) {
		const cJSON *app = rows[at->offset + i];
		int y = box.y + i * lines, left = box.y + box.height - y;
		int next = json_text(app, "diagnosis") ? 2 : 1;
		struct box line = {y, box.x, 1, box.width};
		struct frame_bar bar;
		make_bar(app, &bar);
		draw_line(view, line, app);
		if (left > 1) {
			canvas_template(&view->canvas, y + 1, box.x + 2, box.width - 2,
				"{~warn}{diagnosis}", app);
		}
		if (left > next) {
			line = (struct box){y + next, box.x + 2, left - next, box.width - 2};
			draw_bar(view, line, &bar);
		}
		if (cursor && at->offset + i == at->selected) {
			view->selected = app;
			canvas_select(&view->canvas, y, box.x - 1, box.width + 2);
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
	snprintf(title, sizeof(title), "stages%s%.96s", name[0] == '\0' ? "" : " of ", name);
	struct box inside = canvas_frame(&view->canvas, box, title);
	grid_draw(view, inside, columns, sizeof(columns) / sizeof(columns[0]), rows, count, NULL);
}

void draw_app_tab(struct view *view, struct box box)
{
	struct cursor *cursor = &view->cursors[TAB_APPS];
	const char *by = app_sorts[cursor->sort % (int)SORTS];
	char title[64];
	snprintf(title, sizeof(title), "apps (s: sorted by %s)", by[0] != '\0' ? by : "start");
	struct box list = box, stages = box;
	list.height = box.height / 2;
	stages.y += list.height;
	stages.height -= list.height;
	draw_apps(view, canvas_frame(&view->canvas, list, title), cursor);
	draw_stages(view, stages, view->selected);
}
