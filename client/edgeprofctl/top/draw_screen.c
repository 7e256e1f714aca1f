/* SPDX-License-Identifier: Apache-2.0 */
/* draw_screen.c: draws the header and the tabs. */
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/style.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/top/view.h"
#include "client/edgeprofctl/top/layout.h"

static const char *const tab_names[TABS] = {"overview", "sensors", "apps", "processes", "events"};

static int firing(const struct model *model)
{
	int count = 0;
	for (const cJSON *a = model_first(model, PART_ALERTS); a; a = a->next) {
		count += strcmp(json_word(a, "state"), "firing") == 0;
	}
	return count;
}

/* A text at the right end of what is left of the line; a notice also over the tabs. */
static void put_right(const struct canvas *canvas, int x, int *space, int ink, const char *text)
{
	int width = (int)text_width(text);
	if (width <= *space || ink == INK_NOTICE) {
		canvas_text(canvas, 1, x + *space - width, width, ink, text);
		*space -= width + 2;
	}
}

void draw_header(const struct view *view, const char *note, int ink)
{
	static const char *const facts[] = {"{~bold}{hostname}", "[{power_mode_name}]",
		"[{!power_mode_name}{power_mode:is}power mode {power_mode:0}]", "[{governor}]",
		"[{jetson_clocks:is}{?jetson_clocks}clocks pinned]", "[{~dim}{model}|{os}|{arch}]",
		"[{~dim}gpu {gpu_governor}]", "[{~dim}up {uptime_s:s}]"};
	const struct canvas *canvas = &view->canvas;
	const cJSON *status = view->model->parts[PART_STATUS];
	struct label now = format_time(view->model->now_us);
	int width = canvas->width, x = 1;
	bool short_clock = width < 100 && strlen(now.text) > 11;
	const char *clock = now.text + (short_clock ? 11 : 0);
	int right = (int)strlen(clock);
	canvas_text(canvas, 0, width - right - 1, right, TONE_NONE, clock);
	view_parts(view, (struct box){0, 1, 1, width - right - 4}, true, facts,
		sizeof(facts) / sizeof(facts[0]), status);
	for (int tab = 0; tab < TABS; tab++) {
		char text[32];
		bool shown = view->tab == (enum tab)tab;
		snprintf(text, sizeof(text), "%s%d %s ", width < 70 ? "" : " ", tab + 1,
			tab_names[tab]);
		int length = (int)strlen(text);
		canvas_text(canvas, 1, x, length, shown ? INK_TITLE : TONE_DIM, text);
		canvas_select(canvas, 1, x, shown ? length : 0);
		x += length;
	}
	int space = width - x - 1, alerts = firing(view->model);
	int bad = json_count(status, "sources_bad");
	char text[64];
	put_right(canvas, x, &space, ink, note);
	snprintf(text, sizeof(text), "%d firing", alerts);
	if (alerts > 0) {
		put_right(canvas, x, &space, TONE_BAD, text);
	}
	snprintf(text, sizeof(text), "%d source%s failing", bad, bad == 1 ? "" : "s");
	if (bad > 0) {
		put_right(canvas, x, &space, TONE_WARN, text);
	}
}

static void draw_overview(struct view *view, struct box area)
{
	static const char *const titles[PANELS] = {
		"sensors", "apps", "processes", "alerts", "events"};
	static const enum part parts[PANELS] = {[PANEL_PROCESSES] = PART_PROCESSES,
		[PANEL_ALERTS] = PART_ALERTS,
		[PANEL_EVENTS] = PART_EVENTS};
	const struct model *model = view->model;
	int alerts = model_count(model, PART_ALERTS), apps = model_count(model, PART_APPS);
	struct layout layout;
	struct wants wants = {.tiles = tiles_count(view),
		.lines = {sensors_count(view), apps > 0 ? apps_lines(view) * apps : 1,
			model_count(model, PART_PROCESSES) + 1, alerts > 0 ? alerts + 1 : 1,
			model_count(model, PART_EVENTS) + 1}};
	if (area.width < 100 && alerts == 0) {
		wants.lines[PANEL_ALERTS] = 0;
	}
	layout_overview(area, &wants, &layout);
	if (layout.tiles.height > 0) {
		draw_tiles(view, layout.tiles);
	}
	for (enum panel panel = 0; panel < PANELS; panel++) {
		if (layout.panels[panel].height < 3) {
			continue;
		}
		struct box box = canvas_frame(&view->canvas, layout.panels[panel], titles[panel]);
		if (panel == PANEL_SENSORS) {
			draw_sensors(view, box, &view->cursors[TAB_OVERVIEW]);
		} else if (panel == PANEL_APPS) {
			draw_apps(view, box, NULL);
		} else {
			draw_list(view, box, parts[panel], NULL);
		}
	}
}

/* Alerts, then events: one cursor goes through both. */
static void draw_event_tab(struct view *view, struct box area)
{
	struct cursor *cursor = &view->cursors[TAB_EVENTS], part = *cursor;
	int alerts = model_count(view->model, PART_ALERTS), half = area.height / 2;
	struct box top = area, bottom = area;
	top.height = alerts + 3 < half ? alerts + 3 : half;
	bottom.y += top.height;
	bottom.height -= top.height;
	bool in_alerts = part.selected < alerts;
	draw_list(view,
		canvas_frame(&view->canvas, top, "alerts (a: acknowledge  z: silence  s: sort)"),
		PART_ALERTS, in_alerts ? &part : NULL);
	part = (struct cursor){.selected = cursor->selected - alerts};
	draw_list(view, canvas_frame(&view->canvas, bottom, "events"), PART_EVENTS,
		in_alerts ? NULL : &part);
	int count = alerts + model_count(view->model, PART_EVENTS);
	cursor_fit(cursor, count, count);
}

void draw_tab(struct view *view, struct box area)
{
	const struct canvas *canvas = &view->canvas;
	switch (view->tab) {
	case TAB_OVERVIEW:
		draw_overview(view, area);
		break;
	case TAB_SENSORS:
		draw_sensors(view, canvas_frame(canvas, area, "sensors (60 s)"),
			&view->cursors[TAB_SENSORS]);
		break;
	case TAB_APPS:
		draw_app_tab(view, area);
		break;
	case TAB_PROCESSES:
		draw_list(view, canvas_frame(canvas, area, "processes (s: sort)"), PART_PROCESSES,
			&view->cursors[TAB_PROCESSES]);
		break;
	case TAB_EVENTS:
		draw_event_tab(view, area);
		break;
	case TABS:
		break;
	}
}
