/* SPDX-License-Identifier: Apache-2.0 */
/* draw_sensors.c: draws sensors as lines with value, bar and graph, and the most important of them
 * as large graphs. */
#include "client/edgeprofctl/top/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/top/sensors.h"
#include "proto/text.h"

enum { VALUE_WIDTH = 10, NOTE_WIDTH = 18, GROUP_WIDTH = 12, TILE_WIDTH = 34, TILES_MAX = 6 };
enum { COLUMN_WIDTH = 84 };

/* Where the parts of a line are, for the width of the box. */
struct sensor_line {
	int group, name, bar, graph, note;
};

static struct sensor_line line_of(int width)
{
	struct sensor_line line = {0};
	line.group = width >= 84 ? GROUP_WIDTH : 0;
	line.name = width >= 120 ? 26 : width >= 84 ? 15 : 17;
	line.note = width >= 66 ? NOTE_WIDTH : 0;
	int left = width - line.group - line.name - line.note - VALUE_WIDTH - 3;
	line.bar = left / 3 < 8 ? 8 : left / 3 > 24 ? 24 : left / 3;
	line.graph = left - line.bar - (line.note > 0 ? 2 : 0);
	return line;
}

static void draw_line(
	const struct view *view, int y, struct box box, const struct sensor *sensor, bool heading)
{
	const struct canvas *canvas = &view->canvas;
	struct sensor_line line = line_of(box.width);
	struct scale scale = sensor_scale(view->model, sensor->ring);
	char text[160];
	int x = box.x, ink = sensor_ink(&scale, sensor->ring);
	if (line.group > 0 && heading) {
		canvas_text(canvas, y, x, line.group, INK_TITLE, sensor->group);
	}
	x += line.group;
	bool known = isfinite(ring_value(sensor->ring));
	canvas_text(canvas, y, x, line.name - 1, known ? TONE_NONE : TONE_DIM,
		line.group > 0 ? sensor->name : sensor->short_name);
	x += line.name;
	sensor_value(view, sensor->ring, text, sizeof(text));
	int value_ink = !known ? TONE_DIM : ink == INK_GRAPH ? TONE_NONE : ink;
	canvas_right(canvas, y, x, VALUE_WIDTH, value_ink, text);
	x += VALUE_WIDTH + 2;
	sensor_note(view, sensor->ring, text, sizeof(text));
	if (!known) {
		canvas_text(canvas, y, x, box.x + box.width - x, TONE_DIM, text);
		return;
	}
	struct box graph = {y, x + line.bar + 1, 1, line.graph};
	if (scale.bounded) {
		double share = (ring_value(sensor->ring) - scale.low) / (scale.high - scale.low);
		canvas_bar(canvas, y, x, line.bar, share, ink);
	} else {
		graph.x = x;
		graph.width += line.bar + 1;
	}
	sensor_graph(view, graph, sensor->ring, RING_SPAN_US, &scale);
	canvas_text(canvas, y, box.x + box.width - line.note, line.note, TONE_DIM, text);
}

/* The flags that the hardware raises, on one line; all are listed where there is space. */
static void draw_flags(const struct view *view, struct box box)
{
	static const char *const flags[][2] = {{"under_voltage", "under-voltage"},
		{"freq_capped", "frequency capped"}, {"throttled", "throttled"},
		{"soft_temp_limit", "soft temperature limit"}, {"over_current", "over-current"}};
	const struct canvas *canvas = &view->canvas;
	bool utf8 = canvas->style.utf8;
	double active = ring_value(model_ring(view->model, "throttle/active"));
	int x = box.x + canvas_text(canvas, box.y, box.x, GROUP_WIDTH, INK_TITLE, "throttle");
	x = box.x + (box.width >= 84 ? GROUP_WIDTH : x - box.x + 2);
	x += canvas_text(canvas, box.y, x, 20,
		active > 0    ? TONE_BAD
		: active == 0 ? TONE_GOOD
			      : TONE_DIM,
		active > 0    ? "throttling"
		: active == 0 ? "not throttling"
			      : "unknown");
	for (size_t i = 0; i < 2 * sizeof(flags) / sizeof(flags[0]); i++) {
		const char *const *flag = flags[i % (sizeof(flags) / sizeof(flags[0]))];
		double now = ring_value(model_ring(view->model, "throttle/%s", flag[0]));
		double past = ring_value(model_ring(view->model, "throttle/%s_occurred", flag[0]));
		bool first = i < sizeof(flags) / sizeof(flags[0]);
		char text[64];
		snprintf(text, sizeof(text), "  %s %s%s",
			now > 0 ? (utf8 ? "●" : "!") : (utf8 ? "○" : "-"), flag[1],
			now == 0 && past > 0 ? " (earlier)" : "");
		/* those that are raised come first */
		if (isnan(now) || first != (now > 0 || past > 0) ||
			x + (int)text_width(text) > box.x + box.width) {
			continue;
		}
		x += canvas_text(canvas, box.y, x, box.x + box.width - x,
			now > 0	   ? TONE_BAD
			: past > 0 ? TONE_WARN
				   : TONE_DIM,
			text);
	}
}

int sensors_count(const struct view *view)
{
	struct sensor sensors[SENSORS_MAX];
	return (int)sensors_list(view, SENSORS_MAX, sensors) + 1;
}

void draw_sensors(struct view *view, struct box box, struct cursor *cursor)
{
	struct sensor sensors[SENSORS_MAX];
	int height = box.height - 1, columns = box.width / COLUMN_WIDTH;
	size_t count = sensors_list(view, view->tab == TAB_SENSORS ? SENSORS_ALL : height, sensors);
	columns = columns < 1 || (int)count <= height ? 1 : columns;
	draw_flags(view, box);
	cursor_fit(cursor, (int)count, height * columns);
	int width = (box.width - 2 * (columns - 1)) / columns;
	for (int i = 0; i < height * columns && cursor->offset + i < (int)count; i++) {
		int index = cursor->offset + i, x = box.x + i / height * (width + 2);
		struct box at = {box.y + 1 + i % height, x, 1, width};
		bool heading = i % height == 0 ||
			       strcmp(sensors[index].group, sensors[index - 1].group) != 0;
		draw_line(view, at.y, at, &sensors[index], heading);
		if (index == cursor->selected) {
			view->selected = sensors[index].ring->metric;
			view->ring = sensors[index].ring;
			canvas_select(&view->canvas, at.y, at.x - 1, width + 1);
		}
	}
}

/* The metrics of the large graphs that this machine has. */
static int find_tiles(const struct view *view, const struct ring *rings[TILES_MAX + 1])
{
	static const char *const names[] = {"temperature/max", "cpu/utilization", "gpu/utilization",
		"power/total", "memory/used_percent"};
	int count = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct ring *ring = rings_find(&view->model->rings, names[i]);
		if (ring_has_value(ring)) {
			rings[count++] = ring;
		}
	}
	for (size_t at = 0; at < view->model->rings.count && count < TILES_MAX; at++) {
		const struct ring *ring = view->model->rings.items[at];
		if (text_starts_with(ring->name, "frame/") && ring_has_value(ring)) {
			rings[count++] = ring;
		}
	}
	const struct ring *load = rings_find(&view->model->rings, "cpu/load1");
	if (count < 3 && ring_has_value(load)) {
		rings[count++] = load;
	}
	return count;
}

int tiles_count(const struct view *view)
{
	const struct ring *rings[TILES_MAX + 1];
	return find_tiles(view, rings);
}

/* "temperature", "cpu", …; of an app its name. */
static void tile_title(const struct ring *ring, char *ret, size_t size)
{
	const char *name = ring->name;
	if (text_starts_with(name, "frame/")) {
		snprintf(ret, size, "%.*s", (int)strcspn(name + 6, "/"), name + 6);
	} else {
		snprintf(ret, size, "%.*s", (int)strcspn(name, "/"), name);
	}
}

void draw_tiles(const struct view *view, struct box box)
{
	const struct ring *rings[TILES_MAX + 1];
	int count = find_tiles(view, rings), most = box.width / TILE_WIDTH;
	most = most < 2 ? 2 : most;
	count = count < most ? count : most;
	for (int i = 0; i < count; i++) {
		int left = box.width * i / count, right = box.width * (i + 1) / count;
		struct box tile = {box.y, box.x + left, box.height, right - left};
		struct scale scale = sensor_scale(view->model, rings[i]);
		int ink = sensor_ink(&scale, rings[i]);
		char title[PROTO_PATH_SIZE], value[64], note[80];
		tile_title(rings[i], title, sizeof(title));
		struct box inside = canvas_frame(&view->canvas, tile, title, "");
		sensor_value(view, rings[i], value, sizeof(value));
		snprintf(note, sizeof(note), " %s ", value);
		canvas_right(&view->canvas, tile.y, tile.x + 2, tile.width - 4,
			ink == INK_GRAPH || ink == TONE_GOOD ? TONE_BOLD : ink, note);
		sensor_graph(view, inside, rings[i], RING_SPAN_US, &scale);
	}
}
