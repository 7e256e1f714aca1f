/* SPDX-License-Identifier: Apache-2.0 */
/* draw_lists.c: draws processes, alerts and events as tables, and everything about one of them. */
#include "client/edgeprofctl/top/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/top/sensors.h"
#include "proto/text.h"

enum { NAME_WIDTH = 28 };

void draw_processes(struct view *view, struct box box, struct cursor *cursor)
{
	static const struct grid_column columns[] = {
		{"NAME", 0, "{name}"},
		{"PID", -7, "{pid:0}"},
		{"CPU %", -6, "{cpu_percent:1}"},
		{"RSS", -10, "[{?threshold_exceeded}{~warn}]{rss_bytes:bytes}"},
		{"THR", -4, "{threads:0}"},
		{"WAIT %", -6, "{wait_percent:1}"},
		{"STATE", 5, "{state}"},
		{"IPC", -5, "{ipc:2}"},
		{"READ/s", -10, "{read_bytes:bytes}"},
		{"WRITE/s", -10, "{write_bytes:bytes}"},
		{"FAULTS/s", -9, "{minor_faults:0}"},
		{"SWITCHES/s", -10, "{involuntary_switches:0}"},
		{"CORE", -4, "{last_core:0}"},
		{"CPUS", 8, "{affinity}"},
		{"PSS", -10, "{pss_bytes:bytes}"},
		{"PEAK", -10, "{peak_rss_bytes:bytes}"},
		{"POLICY", 12, "{policy}"},
		{"FILES", -5, "{fds:0}"},
	};
	static const char *const sorts[] = {"cpu_percent-", "rss_bytes-", "name", "pid", NULL};
	const cJSON *rows[VIEW_ROWS];
	size_t count =
		view_rows(view, PART_PROCESSES, sorts, view->cursors[TAB_PROCESSES].sort, rows);
	if (count == 0) {
		canvas_text(&view->canvas, box.y, box.x, box.width, TONE_DIM,
			"no processes: apps that attach are listed, and what [process] names");
	}
	grid_draw(view, box, columns, sizeof(columns) / sizeof(columns[0]), rows, count, cursor);
}

void draw_alerts(struct view *view, struct box box, struct cursor *cursor)
{
	static const struct grid_column columns[] = {
		{"ALERT", 0,
			"[{state=firing}{~:severity}|{~warn}]{rule}"
			"[{!instance=_} {instance}]"},
		{"STATE", 12, "[{?silenced}{~dim}silenced|{?acked}{~dim}acknowledged|{state}]"},
		{"SEVERITY", 8, "{~:severity}{severity}"},
		{"VALUE", -10, "{value:value}"},
		{"LIMIT", -10, "{threshold:value}"},
		{"SINCE", 19, "[{since_us:time}]"},
		{"TEXT", 60, "{text}"},
	};
	static const char *const sorts[] = {"", "severity", "since_us-", "rule", NULL};
	const cJSON *rows[VIEW_ROWS];
	size_t count = view_rows(view, PART_ALERTS, sorts, view->cursors[TAB_EVENTS].sort, rows);
	if (count == 0) {
		canvas_text(&view->canvas, box.y, box.x, box.width, TONE_GOOD,
			"no alert is pending or firing");
	}
	grid_draw(view, box, columns, sizeof(columns) / sizeof(columns[0]), rows, count, cursor);
}

void draw_events(struct view *view, struct box box, struct cursor *cursor)
{
	const cJSON *rows[VIEW_ROWS];
	struct cursor still = {0}, *at = cursor ? cursor : &still;
	static const char *const newest[] = {"time_us-", NULL};
	int count = (int)view_rows(view, PART_EVENTS, newest, 0, rows);
	cursor_fit(at, count, box.height);
	for (int line = 0; line < box.height && at->offset + line < count; line++) {
		const cJSON *event = rows[at->offset + line];
		const char *severity = json_word(event, "severity"), *kind;
		int y = box.y + line, x = box.x, right = box.x + box.width;
		char clock[16];
		kind = json_word(event, "kind");
		snprintf(clock, sizeof(clock), "%.8s",
			format_clock(json_integer(event, "time_us")).text);
		x += canvas_text(&view->canvas, y, x, 8, TONE_DIM, clock) + 2;
		if (box.width >= 60) {
			canvas_text(&view->canvas, y, x, 8, TONE_DIM, kind);
			x += 9;
		}
		enum tone tone =
			strcmp(severity, "info") == 0 ? TONE_NONE : style_of_state(severity);
		canvas_text(&view->canvas, y, x, right - x, tone, "");
		x += canvas_template(
			&view->canvas, y, x, right - x, "[{~bold}{subject}{~none} ]", event);
		canvas_text(&view->canvas, y, x, right - x, tone, json_word(event, "text"));
		if (cursor && at->offset + line == at->selected) {
			view->selected = event;
			canvas_select(&view->canvas, y, box.x - 1, box.width + 2);
		}
	}
	if (count == 0) {
		canvas_text(&view->canvas, box.y, box.x, box.width, TONE_DIM, "no events yet");
	}
}

/* "rss_bytes" is a size: the unit by the end of the name, which then loses it; "": none. */
static const char *take_unit(char *name)
{
	static const struct {
		const char *end, *unit;
	} units[] = {{"_bytes", "bytes"}, {"_ms", "milliseconds"}, {"_percent", "percent"},
		{"_fps", "fps"}, {"_mj", "millijoules"}, {"_celsius", "celsius"}, {"_us", "us"}};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (text_ends_with(name, units[i].end)) {
			name[strlen(name) - strlen(units[i].end)] = '\0';
			return units[i].unit;
		}
	}
	return "";
}

/* A member as two texts; false: it is an array or an object. */
static bool detail_texts(const struct view *view, const cJSON *item, char name[64], char value[256])
{
	double number = item->valuedouble;
	snprintf(name, 64, "%.60s", item->string ? item->string : "");
	if (cJSON_IsString(item)) {
		snprintf(value, 256, "%s", item->valuestring);
	} else if (cJSON_IsBool(item)) {
		snprintf(value, 256, "%s", cJSON_IsTrue(item) ? "yes" : "no");
	} else if (cJSON_IsNull(item)) {
		snprintf(value, 256, "-");
	} else if (!cJSON_IsNumber(item)) {
		return false;
	} else {
		bool own = strcmp(name, "value") == 0 || strcmp(name, "threshold") == 0 ||
			   strcmp(name, "max") == 0;
		const char *unit = own ? json_word(view->selected, "unit") : take_unit(name);
		struct label label = strcmp(unit, "us") == 0 ? format_time(json_whole(number))
				     : unit[0] == '\0' && number == floor(number)
					     ? format_count(json_whole(number))
					     : format_value(number, unit, view->canvas.style.utf8);
		snprintf(value, 256, "%s", label.text);
	}
	for (char *at = name; *at != '\0'; at++) {
		*at = (char)(*at == '_' ? ' ' : *at);
	}
	return true;
}

/* The selected item with all its members, below the minute of a sensor. */
void draw_detail(const struct view *view, struct box area)
{
	const struct canvas *canvas = &view->canvas;
	char name[64], value[256];
	int width = area.width > 104 ? 100 : area.width - 4, lines = 0;
	for (const cJSON *item = view->selected ? view->selected->child : NULL; item;
		item = item->next) {
		lines += detail_texts(view, item, name, value);
	}
	int columns = lines > area.height - 4 ? 2 : 1, rows = (lines + columns - 1) / columns;
	int graph = view->ring ? 8 : 0, height = rows + graph + 2;
	height = height < area.height ? height : area.height;
	struct box box = {area.y + (area.height - height) / 2, area.x + (area.width - width) / 2,
		height, width};
	if (lines == 0) {
		return;
	}
	canvas_fill(canvas, box, TONE_NONE);
	struct box inside = canvas_frame(canvas, box, "details", "Enter: close");
	if (view->ring && inside.height > graph) {
		struct scale scale = sensor_scale(view->model, view->ring);
		struct box plot = inside;
		plot.height = graph - 1;
		sensor_graph(view, plot, view->ring, RING_SPAN_US, &scale);
		inside.y += graph;
		inside.height -= graph;
	}
	int line = 0, each = inside.width / columns;
	for (const cJSON *item = view->selected->child; item; item = item->next) {
		if (line < inside.height * columns && detail_texts(view, item, name, value)) {
			int x = inside.x + line / inside.height * each;
			int y = inside.y + line % inside.height;
			canvas_text(canvas, y, x, NAME_WIDTH - 1, TONE_DIM, name);
			canvas_text(
				canvas, y, x + NAME_WIDTH, each - NAME_WIDTH - 1, TONE_NONE, value);
			line++;
		}
	}
}
