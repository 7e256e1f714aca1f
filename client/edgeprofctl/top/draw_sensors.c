/* SPDX-License-Identifier: Apache-2.0 */
/* draw_sensors.c: makes lines out of metrics: in a fixed order, with short names, bars up to the
 * limits of the alert rules, and graphs; the most important ones are also large graphs. */
#include "client/edgeprofctl/top/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "proto/name.h"
#include "proto/text.h"

enum { SENSORS_MAX = 256, SENSOR_NAME = 64, GRAPH_MAX = 512 };
enum { VALUE_WIDTH = 10, NOTE_WIDTH = 18, TILE_WIDTH = 34, TILES_MAX = 6, WIDE = 66 };

struct sensor {
	const struct ring *ring;
	int rank; /* the most important ones have 1 */
	char name[SENSOR_NAME];
};

/* A metric belongs to the first line that it matches; %s is what the wildcard stands for. */
static const struct {
	const char *glob, *name;
	int rank; /* 1 to 3: where space is short, the lowest are shown; 0: never */
} groups[] = {
	{"temperature/max", "hottest", 1},
	{"temperature/*", "%s", 3},
	{"power/total", "power", 1},
	{"budget/power", "power budget", 2},
	{"power/*", "%s power", 3},
	{"cpu/utilization", "cpu", 1},
	{"cpu/*/utilization", "core %s", 3},
	{"cpu/load1", "load", 2},
	{"gpu/utilization", "gpu", 1},
	{"emc/utilization", "emc", 1},
	{"engine/*/utilization", "%s", 3},
	{"memory/used_percent", "memory", 1},
	{"swap/used", "swap", 2},
	{"pressure/*/some", "%s pressure", 3},
	{"fan/*", "fan %s", 2},
	{"fan_duty/*", "%s duty", 0},
	{"cooling/*", "cooling %s", 0},
	{"cpu/*/frequency", "core %s clock", 0},
	{"gpu/frequency", "gpu clock", 0},
	{"clock/*", "%s clock", 0},
	{"voltage/*", "%s voltage", 0},
	{"power_limit/*", "%s limit", 0},
};

/* What the note of a metric shows: the metric of the same instance, in front of it a word. */
static const struct {
	const char *glob, *other, *word;
} notes[] = {
	{"temperature/*", "headroom/%s", "headroom "},
	{"cpu/*/utilization", "cpu/%s/frequency", ""},
	{"gpu/utilization", "gpu/frequency", ""},
	{"emc/utilization", "emc/frequency", ""},
	{"engine/*/utilization", "engine/%s/frequency", ""},
	{"memory/used_percent", "memory/used", ""},
	{"fan/*", "fan_duty/%s", ""},
	{"cpu/utilization", "cpu/0/frequency", ""},
};

static int compare_sensors(const void *a, const void *b)
{
	const struct sensor *x = a, *y = b;
	return strverscmp(x->ring->name, y->ring->name);
}

/* Puts the text in place of %s. */
static void fill_in(char *ret, size_t size, const char *pattern, const char *with)
{
	struct text text = text_in(ret, size);
	const char *at = strstr(pattern, "%s");
	text_add(&text, "%.*s%s%s", (int)(at ? (size_t)(at - pattern) : strlen(pattern)), pattern,
		at ? with : "", at ? at + 2 : "");
}

/* A metric that this machine does not have is skipped, one that cannot be read is listed. */
static bool is_shown(const struct view *view, const struct ring *ring, bool all)
{
	const char *state = json_word(ring->metric, "state");
	bool there = ring_has_value(ring) || strcmp(state, "error") == 0 ||
		     strcmp(state, "stale") == 0 || (all && strcmp(state, "ok") == 0);
	return there && view_wants(view, ring->metric);
}

/* Appends the metrics of one line of the table. */
static size_t add_group(
	const struct view *view, size_t group, bool all, struct sensor *sensors, size_t count)
{
	const struct model *model = view->model;
	const char *glob = groups[group].glob;
	size_t begin = count;
	for (size_t i = 0; i < model->ring_count; i++) {
		const struct ring *ring = model->rings[i];
		bool had = false;
		if (!proto_glob_match(glob, ring->name) || !is_shown(view, ring, all)) {
			continue;
		}
		for (size_t j = 0; j < begin && !had; j++) {
			had = sensors[j].ring == ring;
		}
		if (!had && count < SENSORS_MAX) {
			struct sensor *sensor = &sensors[count++];
			char instance[PROTO_PATH_SIZE] = "";
			proto_glob_instance(glob, ring->name, instance, sizeof(instance));
			*sensor = (struct sensor){.ring = ring, .rank = groups[group].rank};
			fill_in(sensor->name, sizeof(sensor->name), groups[group].name, instance);
		}
	}
	qsort(sensors + begin, count - begin, sizeof(*sensors), compare_sensors);
	return count;
}

/* At most `height` sensors, the most important ones; SENSORS_ALL: all, also those without a value.
 */
enum { SENSORS_ALL = -1 };
static size_t sensors_list(const struct view *view, int height, struct sensor ret[SENSORS_MAX])
{
	size_t count = 0;
	bool all = height == SENSORS_ALL;
	for (size_t group = 0; group < sizeof(groups) / sizeof(groups[0]); group++) {
		if (all || groups[group].rank > 0) {
			count = add_group(view, group, all, ret, count);
		}
	}
	while (!all && count > (size_t)height) {
		size_t least = count - 1;
		for (size_t i = count; i-- > 0;) {
			least = ret[i].rank > ret[least].rank ? i : least;
		}
		count--;
		memmove(ret + least, ret + least + 1, (count - least) * sizeof(*ret));
	}
	return count;
}

static double largest(const struct ring *ring)
{
	double max = 0;
	for (unsigned i = 0; i < ring->count; i++) {
		max = fmax(max, ring->points[i].value);
	}
	return max;
}

static struct scale sensor_scale(const struct model *model, const struct ring *ring)
{
	struct limits limits = model_limits(model, ring->name);
	struct scale scale = {0, NAN, limits.warning, limits.critical, true};
	const char *unit = json_word(ring->metric, "unit");
	if (strcmp(unit, "percent") == 0) {
		scale.high = 100;
	} else if (strcmp(unit, "celsius") == 0) {
		const char *zone = strchr(ring->name, '/');
		double trip = ring_value(ring) +
			      ring_value(model_ring(model, "headroom%s", zone ? zone : ""));
		double over = fmax(fmax(limits.warning, limits.critical), trip);
		scale.low = 20;
		scale.high = isfinite(over) ? over : 100;
		scale.critical = isfinite(limits.critical) ? limits.critical : trip;
	} else if (strcmp(unit, "state") == 0) {
		scale.high = json_number(ring->metric, "max");
	} else if (strcmp(ring->name, "swap/used") == 0) {
		scale.high = ring_value(model_ring(model, "swap/total"));
	} else if (strcmp(ring->name, "cpu/load1") == 0) {
		scale.high = json_number(model->parts[PART_STATUS], "cpus");
	} else if (text_starts_with(ring->name, "power/") &&
		   strcmp(ring->name, "power/total") != 0) {
		scale.high = ring_value(model_ring(model, "power/total"));
	}
	if (!isfinite(scale.high) || scale.high <= 0) {
		scale.bounded = false;
		scale.high = 1.25 * largest(ring);
	}
	return scale;
}

static int sensor_ink(const struct scale *scale, const struct ring *ring)
{
	double value = ring_value(ring);
	bool judged = isfinite(scale->warning) || isfinite(scale->critical);
	return value >= scale->critical	 ? (int)TONE_BAD
	       : value >= scale->warning ? (int)TONE_WARN
	       : judged			 ? (int)TONE_GOOD
					 : (int)INK_GRAPH;
}

static void sensor_value(const struct view *view, const struct ring *ring, char *ret, size_t size)
{
	const char *unit = json_word(ring->metric, "unit");
	double value = ring_value(ring), max = json_number(ring->metric, "max");
	if (strcmp(unit, "state") == 0 && isfinite(value) && isfinite(max)) {
		snprintf(ret, size, "%.0f of %.0f", value, max);
	} else {
		struct label label = format_value(value, unit, view->canvas.style.utf8);
		snprintf(ret, size, "%s", label.text);
	}
}

/* A further fact about the sensor, or "". */
static void sensor_note(const struct view *view, const struct ring *ring, char *ret, size_t size)
{
	const char *state = json_word(ring->metric, "state");
	double age_ms = json_number(ring->metric, "age_ms");
	snprintf(ret, size, "%s", "");
	if (!isfinite(ring_value(ring))) {
		const char *reason = json_word(ring->metric, "reason");
		snprintf(ret, size, "%s", reason[0] != '\0' ? reason : state);
		return;
	}
	if (strcmp(state, "stale") == 0 || age_ms > 15000) {
		snprintf(ret, size, "%s", format_ago(age_ms).text);
		return;
	}
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		char instance[PROTO_PATH_SIZE], other[PROTO_PATH_SIZE], value[64];
		if (proto_glob_instance(notes[i].glob, ring->name, instance, sizeof(instance)) <
			0) {
			continue;
		}
		fill_in(other, sizeof(other), notes[i].other, instance);
		const struct ring *found = model_ring(view->model, "%s", other);
		if (isfinite(ring_value(found))) {
			sensor_value(view, found, value, sizeof(value));
			snprintf(ret, size, "%s%s", notes[i].word, value);
		}
		return;
	}
}

void draw_minute(const struct view *view, struct box box, const struct ring *ring)
{
	struct scale scale = sensor_scale(view->model, ring);
	double values[2 * GRAPH_MAX];
	box.width = box.width < GRAPH_MAX ? box.width : GRAPH_MAX;
	for (int i = 0; i < 2 * box.width; i++) {
		int64_t before_us =
			(int64_t)RING_SPAN_US * (2 * box.width - 1 - i) / (2 * box.width);
		values[i] = ring_at(ring, view->model->now_us - before_us);
	}
	canvas_graph(&view->canvas, box, &scale, values);
}

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
	draw_minute(view, graph, sensor->ring);
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
		const struct ring *ring = model_ring(view->model, "%s", names[i]);
		if (ring_has_value(ring)) {
			rings[count++] = ring;
		}
	}
	for (size_t at = 0; at < view->model->ring_count && count < TILES_MAX; at++) {
		const struct ring *ring = view->model->rings[at];
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
		draw_minute(view, inside, rings[i]);
	}
}
