/* SPDX-License-Identifier: Apache-2.0 */
/* draw_sensors.c: draws sensors as lines with value, bar and graph, and the most important of them
 * as large graphs. */
#include "client/edgeprofctl/top/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/top/sensors.h"
#include "proto/name.h"
#include "proto/text.h"

enum { VALUE_WIDTH = 10, NOTE_WIDTH = 18, TILE_WIDTH = 34, TILES_MAX = 6, WIDE = 66 };

static void draw_line(const struct view *view, struct box box, const struct sensor *sensor)
{
	const struct canvas *canvas = &view->canvas;
	struct scale scale = sensor_scale(view->model, sensor->ring);
	int name = box.width >= 100 ? 26 : 17, note = box.width >= WIDE ? NOTE_WIDTH : 0;
	int left = box.width - name - note - VALUE_WIDTH - 3, y = box.y, x = box.x;
	int bar = left < 24 ? 8 : left > 72 ? 24 : left / 3;
	int ink = sensor_ink(&scale, sensor->ring);
	double value = ring_value(sensor->ring);
	bool known = isfinite(value);
	char text[160];
	canvas_text(canvas, y, x, name - 1, known ? TONE_NONE : TONE_DIM, sensor->name);
	x += name;
	sensor_value(view, sensor->ring, text, sizeof(text));
	canvas_right(canvas, y, x, VALUE_WIDTH,
		!known		   ? (int)TONE_DIM
		: ink == INK_GRAPH ? (int)TONE_NONE
				   : ink,
		text);
	x += VALUE_WIDTH + 2;
	sensor_note(view, sensor->ring, text, sizeof(text));
	if (!known) {
		canvas_text(canvas, y, x, box.x + box.width - x, TONE_DIM, text);
		return;
	}
	struct box graph = {y, x, 1, left - (note > 0 ? 1 : 0)};
	if (scale.bounded) {
		double share = (value - scale.low) / (scale.high - scale.low);
		canvas_bar(canvas, y, x, bar, share, ink);
		graph.x += bar + 1;
		graph.width -= bar + 1;
	}
	sensor_graph(view, graph, sensor->ring, &scale);
	canvas_text(canvas, y, box.x + box.width - note, note, TONE_DIM, text);
}

/* The flags that the hardware raises, on one line; those that are raised or were come first. */
static void draw_flags(const struct view *view, struct box box)
{
	static const char *const flags[] = {
		"under_voltage", "freq_capped", "throttled", "soft_temp_limit", "over_current"};
	enum { FLAGS = sizeof(flags) / sizeof(flags[0]) };
	double active = ring_value(model_ring(view->model, "throttle/active"));
	int x = box.x, right = box.x + box.width;
	x += canvas_text(&view->canvas, box.y, x, box.width,
		active > 0    ? TONE_BAD
		: active == 0 ? TONE_GOOD
			      : TONE_DIM,
		active > 0    ? "throttling"
		: active == 0 ? "not throttling"
			      : "throttling unknown");
	for (int i = 0; i < 2 * FLAGS; i++) {
		const char *flag = flags[i % FLAGS];
		double now = ring_value(model_ring(view->model, "throttle/%s", flag));
		double past = ring_value(model_ring(view->model, "throttle/%s_occurred", flag));
		enum tone tone = now > 0 ? TONE_BAD : past > 0 ? TONE_WARN : TONE_DIM;
		char text[64];
		snprintf(text, sizeof(text), "  %s %s%s", now > 0 ? "!" : "-", flag,
			tone == TONE_WARN ? " (earlier)" : "");
		bool fits = x + (int)strlen(text) <= right;
		if (!isnan(now) && fits && (tone == TONE_DIM) == (i >= FLAGS)) {
			x += canvas_text(&view->canvas, box.y, x, right - x, tone, text);
		}
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
	int height = box.height - 1, most = view->tab == TAB_SENSORS ? SENSORS_ALL : height;
	int count = (int)sensors_list(view, most, sensors);
	draw_flags(view, box);
	cursor_fit(cursor, count, height);
	for (int i = 0; i < height && cursor->offset + i < count; i++) {
		const struct sensor *sensor = &sensors[cursor->offset + i];
		struct box line = {box.y + 1 + i, box.x, 1, box.width};
		draw_line(view, line, sensor);
		if (cursor->offset + i == cursor->selected) {
			view->selected = sensor->ring->metric;
			canvas_select(&view->canvas, line.y, line.x - 1, line.width + 2);
		}
	}
}

/* The metrics of the large graphs that this machine has. */
static int find_tiles(const struct view *view, const struct ring *rings[TILES_MAX])
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
	return count;
}

int tiles_count(const struct view *view)
{
	const struct ring *rings[TILES_MAX];
	return find_tiles(view, rings);
}

void draw_tiles(const struct view *view, struct box box)
{
	const struct ring *rings[TILES_MAX];
	int count = find_tiles(view, rings), most = box.width / TILE_WIDTH;
	most = most < 2 ? 2 : most;
	count = count < most ? count : most;
	for (int i = 0; i < count; i++) {
		int left = box.width * i / count, right = box.width * (i + 1) / count;
		struct box tile = {box.y, box.x + left, box.height, right - left};
		struct scale scale = sensor_scale(view->model, rings[i]);
		int ink = sensor_ink(&scale, rings[i]);
		char title[PROTO_PATH_SIZE], value[64], note[80];
		const char *name = rings[i]->name; /* "temperature", "cpu", …; of an app its name */
		name += text_starts_with(name, "frame/") ? sizeof("frame/") - 1 : 0;
		snprintf(title, sizeof(title), "%.*s", (int)strcspn(name, "/"), name);
		struct box inside = canvas_frame(&view->canvas, tile, title);
		sensor_value(view, rings[i], value, sizeof(value));
		snprintf(note, sizeof(note), " %s ", value);
		canvas_right(&view->canvas, tile.y, tile.x + 2, tile.width - 4,
			ink == INK_GRAPH || ink == TONE_GOOD ? TONE_BOLD : ink, note);
		sensor_graph(view, inside, rings[i], &scale);
	}
}
