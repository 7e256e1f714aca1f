/* SPDX-License-Identifier: Apache-2.0 */
/* sensors.c: makes lines of a picture out of metrics: in a fixed order, with short names, and
 * scales that end at the limits of the alert rules. */
#include "client/edgeprofctl/top/sensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "proto/name.h"
#include "proto/text.h"

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
	const struct rings *rings = &view->model->rings;
	const char *glob = groups[group].glob;
	size_t begin = count;
	for (size_t i = 0; i < rings->count; i++) {
		const struct ring *ring = rings->items[i];
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

size_t sensors_list(const struct view *view, int height, struct sensor ret[SENSORS_MAX])
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

struct scale sensor_scale(const struct model *model, const struct ring *ring)
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

int sensor_ink(const struct scale *scale, const struct ring *ring)
{
	double value = ring_value(ring);
	bool judged = isfinite(scale->warning) || isfinite(scale->critical);
	return value >= scale->critical	 ? (int)TONE_BAD
	       : value >= scale->warning ? (int)TONE_WARN
	       : judged			 ? (int)TONE_GOOD
					 : (int)INK_GRAPH;
}

void sensor_value(const struct view *view, const struct ring *ring, char *ret, size_t size)
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

void sensor_note(const struct view *view, const struct ring *ring, char *ret, size_t size)
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
		const struct ring *found = rings_find(&view->model->rings, other);
		if (isfinite(ring_value(found))) {
			sensor_value(view, found, value, sizeof(value));
			snprintf(ret, size, "%s%s", notes[i].word, value);
		}
		return;
	}
}

struct minute {
	const struct ring *ring;
	int64_t until_us;
};

static double minute_value(const void *ctx, int column, int columns)
{
	const struct minute *minute = ctx;
	int64_t before_us = (int64_t)RING_SPAN_US * (columns - 1 - column) / columns;
	return ring_at(minute->ring, minute->until_us - before_us);
}

void sensor_graph(
	const struct view *view, struct box box, const struct ring *ring, const struct scale *scale)
{
	struct minute minute = {ring, view->model->now_us};
	struct graph graph = {minute_value, &minute, scale->low, scale->high, scale->warning,
		scale->critical, INK_GRAPH};
	canvas_graph(&view->canvas, box, &graph);
}
