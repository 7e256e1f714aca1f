/* SPDX-License-Identifier: Apache-2.0 */
/* draw_screen.c: draws the header, the tabs, and the help. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/style.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/top/draw.h"
#include "client/edgeprofctl/top/layout.h"

static const char *const tab_names[TABS] = {"overview", "sensors", "apps", "processes", "events"};

/* Texts in the order of their importance: those that do not fit are skipped. */
static void draw_facts(const struct view *view, int y, int x, int width, const cJSON *status)
{
	static const char *const parts[] = {"{~bold}{hostname}", "[{power_mode_name}]",
		"[{!power_mode_name}{power_mode:is}power mode {power_mode:0}]", "[{governor}]",
		"[{jetson_clocks:is}{?jetson_clocks}clocks pinned]", "[{~dim}{model}|{os}|{arch}]",
		"[{~dim}gpu {gpu_governor}]", "[{~dim}up {uptime_s:s}]"};
	int used = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char bytes[256];
		struct text text = TEXT_IN(bytes);
		template_add(&text, parts[i], status, view->canvas.style.utf8);
		enum tone tone = style_take(bytes, TONE_NONE);
		int columns = (int)text_width(bytes), gap = used > 0 ? 3 : 0;
		if (columns == 0 || (used > 0 && used + gap + columns > width)) {
			continue;
		}
		if (gap > 0) {
			const char *dot = view->canvas.style.utf8 ? " · " : " | ";
			canvas_text(&view->canvas, y, x + used, gap, INK_TRACK, dot);
		}
		canvas_text(&view->canvas, y, x + used + gap, columns, tone, bytes);
		used += gap + columns;
	}
}

static int firing(const struct model *model)
{
	int count = 0;
	for (const cJSON *a = model_first(model, PART_ALERTS); a; a = a->next) {
		count += strcmp(json_word(a, "state"), "firing") == 0;
	}
	return count;
}

void draw_header(const struct view *view, const char *note, int ink)
{
	const struct canvas *canvas = &view->canvas;
	const cJSON *status = view->model->parts[PART_STATUS];
	int width = canvas->width, x = 1;
	char text[160];
	struct label now = format_time(view->model->now_us);
	const char *clock = now.text;
	if (width < 100 && strlen(clock) > 11) {
		clock += 11;
	}
	int right = (int)strlen(clock);
	canvas_right(canvas, 0, width - right - 1, right, TONE_NONE, clock);
	draw_facts(view, 0, 1, width - right - 4, status);
	for (int tab = 0; tab < TABS; tab++) {
		snprintf(text, sizeof(text), "%s%d %s ", width < 70 ? "" : " ", tab + 1,
			tab_names[tab]);
		int length = (int)strlen(text);
		canvas_text(canvas, 1, x, length, view->tab == (enum tab)tab ? INK_TITLE : TONE_DIM,
			text);
		if (view->tab == (enum tab)tab) {
			canvas_select(canvas, 1, x, length);
		}
		x += length;
	}
	int alerts = firing(view->model), bad = json_count(status, "sources_bad");
	int space = width - x - 2, notice = (int)text_width(note);
	if (notice <= space || ink == INK_NOTICE) {
		canvas_text(canvas, 1, width - notice - 1, notice, ink, note);
		space -= notice + 2;
	}
	snprintf(text, sizeof(text), "%d%s%s firing", alerts, width < 100 ? "" : " alert",
		width < 100 || alerts == 1 ? "" : "s");
	if (alerts > 0 && (int)strlen(text) < space) {
		space -= (int)strlen(text) + 2;
		canvas_text(canvas, 1, x + 1 + space, (int)strlen(text), TONE_BAD, text);
	}
	snprintf(text, sizeof(text), "%d source%s failing", bad, bad == 1 ? "" : "s");
	if (bad > 0 && (int)strlen(text) < space) {
		space -= (int)strlen(text) + 2;
		canvas_text(canvas, 1, x + 1 + space, (int)strlen(text), TONE_WARN, text);
	}
}

static int count_rows(const struct model *model, enum part part)
{
	int count = 0;
	for (const cJSON *row = model_first(model, part); row; row = row->next) {
		count++;
	}
	return count;
}

static void draw_overview(struct view *view, struct box area)
{
	const struct model *model = view->model;
	struct layout layout;
	int alerts = count_rows(model, PART_ALERTS);
	struct wants wants = {.tiles = tiles_count(view)};
	wants.lines[PANEL_SENSORS] = sensors_count(view);
	wants.lines[PANEL_APPS] = apps_lines(view);
	wants.lines[PANEL_PROCESSES] = count_rows(model, PART_PROCESSES) + 1;
	wants.lines[PANEL_ALERTS] = alerts > 1 ? alerts + 1 : 1;
	wants.lines[PANEL_EVENTS] = count_rows(model, PART_EVENTS);
	if (area.width < 100 && alerts == 0) {
		wants.lines[PANEL_ALERTS] = 0;
	}
	layout_overview(area, &wants, &layout);
	if (layout.tiles.height > 0) {
		draw_tiles(view, layout.tiles);
	}
	static const char *const titles[PANELS] = {
		"sensors", "apps", "processes", "alerts", "events"};
	for (enum panel panel = 0; panel < PANELS; panel++) {
		if (layout.panels[panel].height < 3) {
			continue;
		}
		struct box box =
			canvas_frame(&view->canvas, layout.panels[panel], titles[panel], "");
		switch (panel) {
		case PANEL_SENSORS:
			draw_sensors(view, box, &view->cursors[TAB_OVERVIEW]);
			break;
		case PANEL_APPS:
			draw_apps(view, box, NULL);
			break;
		case PANEL_PROCESSES:
			draw_processes(view, box, NULL);
			break;
		case PANEL_ALERTS:
			draw_alerts(view, box, NULL);
			break;
		case PANEL_EVENTS:
			draw_events(view, box, NULL);
			break;
		case PANELS:
			break;
		}
	}
}

/* Alerts, then events: one cursor goes through both. */
static void draw_event_tab(struct view *view, struct box area)
{
	struct cursor *cursor = &view->cursors[TAB_EVENTS], part = *cursor;
	int alerts = count_rows(view->model, PART_ALERTS), half = area.height / 2;
	struct box top = area, bottom = area;
	top.height = alerts + 3 < half ? alerts + 3 : half;
	bottom.y += top.height;
	bottom.height -= top.height;
	struct box inside =
		canvas_frame(&view->canvas, top, "alerts", "a: acknowledge  z: silence  s: sort");
	bool in_alerts = part.selected < alerts;
	draw_alerts(view, inside, in_alerts ? &part : NULL);
	inside = canvas_frame(&view->canvas, bottom, "events", "");
	part = (struct cursor){.selected = cursor->selected - alerts};
	draw_events(view, inside, in_alerts ? NULL : &part);
	int count = alerts + count_rows(view->model, PART_EVENTS);
	cursor_fit(cursor, count, count);
}

void draw_tab(struct view *view, struct box area)
{
	switch (view->tab) {
	case TAB_OVERVIEW:
		draw_overview(view, area);
		break;
	case TAB_SENSORS:
		draw_sensors(view, canvas_frame(&view->canvas, area, "sensors", "60 s"),
			&view->cursors[TAB_SENSORS]);
		break;
	case TAB_APPS:
		draw_app_tab(view, area);
		break;
	case TAB_PROCESSES:
		draw_processes(view, canvas_frame(&view->canvas, area, "processes", "s: sort"),
			&view->cursors[TAB_PROCESSES]);
		break;
	case TAB_EVENTS:
		draw_event_tab(view, area);
		break;
	case TABS:
		break;
	}
}

void draw_help(const struct view *view, struct box area)
{
	static const char *const lines[][2] = {
		{"1 to 5, Tab", "overview, sensors, apps, processes, events"},
		{"arrows, j k", "select; Page Up and Down, g G: first, last"},
		{"Enter", "everything about the selected line"}, {"s", "sort by the next column"},
		{"/", "filter: lines that contain a text; empty: all"}, {"space", "pause"},
		{"[ ]  < >", "back and forward in history: 10 s, 1 min; Left, Right"},
		{"t", "go to a time: 14:03, 5min (ago)"}, {"End", "back to now"},
		{"m", "mark this moment on the timeline"},
		{"r", "record now: the last seconds and the next"}, {"a", "acknowledge the alert"},
		{"z", "silence the alert's notifications for a while"}, {"h", "the next host"},
		{"q", "quit"}};
	int count = sizeof(lines) / sizeof(lines[0]), width = 74, height = count + 2;
	struct box box = {area.y, area.x, height, width};
	box.height = box.height < area.height ? box.height : area.height;
	box.width = box.width < area.width - 2 ? box.width : area.width - 2;
	box.y += (area.height - box.height) / 2;
	box.x += (area.width - box.width) / 2;
	canvas_fill(&view->canvas, box, TONE_NONE);
	struct box inside = canvas_frame(&view->canvas, box, "keys", "any key: close");
	for (int i = 0; i < count && i < inside.height; i++) {
		canvas_text(&view->canvas, inside.y + i, inside.x, 14, TONE_BOLD, lines[i][0]);
		canvas_text(&view->canvas, inside.y + i, inside.x + 14, inside.width - 14,
			TONE_NONE, lines[i][1]);
	}
}
