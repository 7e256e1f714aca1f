/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: stores replies, joins what belongs to one app, keeps a list of metrics, and looks things
 * up. */
#include "client/edgeprofctl/live/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/name.h"

enum { EVENTS_MAX = 256, HOLD_US = 3 * 1000 * 1000, HOLD_MAX_US = 90 * 1000 * 1000 };
/* A point closer to the one before replaces it, so that a minute always fits. */
enum { STEP_US = RING_SPAN_US / RING_POINTS + 1 };

/* Each part's array; the others have none. */
static const char *const arrays[PARTS] = {
	"apps", "frames", "stages", "processes", "alerts", "rules", "events"};

const struct ring *model_ring(const struct model *model, const char *format, ...)
{
	char name[PROTO_PATH_SIZE];
	va_list ap;
	va_start(ap, format);
	vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	for (size_t i = 0; i < model->ring_count; i++) {
		if (strcmp(model->rings[i]->name, name) == 0) {
			return model->rings[i];
		}
	}
	return NULL;
}

/* The ring of the metric, which becomes its latest; NULL without memory. */
static struct ring *insert(struct model *model, cJSON *metric)
{
	const char *name = json_word(metric, "name");
	struct ring *ring = (struct ring *)model_ring(model, "%s", name);
	if (!ring) {
		struct ring **rings =
			realloc(model->rings, (model->ring_count + 1) * sizeof(*rings));
		model->rings = rings ? rings : model->rings;
		ring = rings ? calloc(1, sizeof(*ring)) : NULL;
		if (!ring) {
			return NULL;
		}
		rings[model->ring_count++] = ring;
	}
	cJSON_Delete(ring->metric);
	ring->metric = metric;
	ring->name = name;
	ring->seen_us = model->now_us;
	return ring;
}

static void append(struct ring *ring, int64_t time_us, double value)
{
	struct point *end = ring->points + ring->count;
	if (ring->count > 0 && time_us <= end[-1].time_us) {
		return;
	}
	if (ring->count > 1 && time_us - end[-2].time_us < STEP_US) {
		end--;
	} else if (ring->count == RING_POINTS) {
		memmove(ring->points, ring->points + 1, (RING_POINTS - 1) * sizeof(*end));
		end--;
	} else {
		ring->count++;
	}
	*end = (struct point){time_us, value};
}

static void add_metrics(struct model *model, cJSON *reply)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(reply, "metrics"), *next;
	for (cJSON *metric = all ? all->child : NULL; metric; metric = next) {
		next = metric->next;
		if (!json_text(metric, "name")) {
			continue;
		}
		cJSON_DetachItemViaPointer(all, metric);
		struct ring *ring = insert(model, metric);
		if (!ring) {
			cJSON_Delete(metric);
			return;
		}
		int64_t time_us = json_integer(metric, "time_us");
		append(ring, time_us > 0 ? time_us : model->now_us, json_number(metric, "value"));
	}
}

static void add_series(struct model *model, const cJSON *reply)
{
	for (const cJSON *s = json_first(reply, "series"); s; s = s->next) {
		const cJSON *time = json_first(s, "time_us"), *mean = json_first(s, "mean");
		cJSON *metric = json_text(s, "name") ? cJSON_CreateObject() : NULL;
		cJSON_AddStringToObject(metric, "name", json_word(s, "name"));
		cJSON_AddStringToObject(metric, "unit", json_word(s, "unit"));
		struct ring *ring = metric ? insert(model, metric) : NULL;
		if (!ring) {
			cJSON_Delete(metric);
			continue;
		}
		double value = NAN;
		ring->step_us = json_whole(1000 * json_number(s, "step_ms"));
		for (; time && mean; time = time->next, mean = mean->next) {
			int64_t time_us = json_whole(time->valuedouble);
			if (time_us > model->now_us) {
				break;
			}
			value = cJSON_IsNumber(mean) ? mean->valuedouble : NAN;
			append(ring, time_us, value);
		}
		json_add_number(metric, "value", value);
	}
}

/* Drops metrics that were in no reply since then. */
static void prune(struct model *model, int64_t since_us)
{
	size_t kept = 0;
	for (size_t i = 0; i < model->ring_count; i++) {
		struct ring *ring = model->rings[i];
		if (ring->seen_us < since_us) {
			cJSON_Delete(ring->metric);
			free(ring);
		} else {
			model->rings[kept++] = ring;
		}
	}
	model->ring_count = kept;
}

void model_finish(struct model *model)
{
	for (int i = 0; i < PARTS; i++) {
		cJSON_Delete(model->parts[i]);
	}
	prune(model, INT64_MAX);
	free(model->rings);
	*model = (struct model){0};
}

/* Events come once each: they are appended to those that are there. */
static void store_events(struct model *model, cJSON *reply)
{
	cJSON *had = model->parts[PART_EVENTS];
	cJSON *all = cJSON_GetObjectItemCaseSensitive(had, "events");
	cJSON *more = cJSON_GetObjectItemCaseSensitive(reply, "events"), *event;
	int64_t last = json_integer(reply, "last_serial");
	if (!all || last + 1 < model->next_serial) { /* another daemon counts from 1 again */
		cJSON_Delete(had);
		model->parts[PART_EVENTS] = reply;
		all = more;
	} else {
		while (more && (event = cJSON_DetachItemFromArray(more, 0))) {
			cJSON_AddItemToArray(all, event);
		}
		cJSON_Delete(reply);
	}
	for (int count = cJSON_GetArraySize(all); count > EVENTS_MAX; count--) {
		cJSON_DeleteItemFromArray(all, 0);
	}
	const cJSON *newest = all && all->child ? all->child->prev : NULL;
	int64_t serial = newest ? json_integer(newest, "serial") : 0;
	model->next_serial = serial < last ? serial + 1 : last + 1;
}

void model_store(struct model *model, enum part part, cJSON *reply)
{
	if (part == PART_METRICS || part == PART_SERIES) {
		if (part == PART_METRICS) {
			add_metrics(model, reply);
		} else {
			add_series(model, reply);
		}
		cJSON_Delete(reply);
		return;
	}
	if (part == PART_EVENTS) {
		store_events(model, reply);
		return;
	}
	if (part == PART_STATUS) {
		model->now_us = json_integer(reply, "time_us");
		prune(model, model->now_us - RING_SPAN_US);
	}
	cJSON_Delete(model->parts[part]);
	model->parts[part] = reply;
}

int model_count(const struct model *model, enum part part)
{
	return json_count(model->parts[part], arrays[part]);
}

const cJSON *model_first(const struct model *model, enum part part)
{
	return json_first(model->parts[part], arrays[part]);
}

cJSON *model_row(const struct model *model, enum part part, const char *member, const char *text)
{
	cJSON *row = NULL;
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(model->parts[part], arrays[part]))
	{
		if (strcmp(json_word(row, member), text) == 0) {
			return row;
		}
	}
	return NULL;
}

void model_join(struct model *model)
{
	cJSON *app = NULL;
	cJSON *frames = cJSON_GetObjectItemCaseSensitive(model->parts[PART_FRAMES], "frames");
	cJSON *stages = cJSON_GetObjectItemCaseSensitive(model->parts[PART_STAGES], "stages");
	cJSON_ArrayForEach(app, cJSON_GetObjectItemCaseSensitive(model->parts[PART_APPS], "apps"))
	{
		const char *name = json_word(app, "name");
		cJSON *frame = model_row(model, PART_FRAMES, "app", name);
		if (frame) {
			cJSON_DetachItemViaPointer(frames, frame);
			cJSON_DeleteItemFromObjectCaseSensitive(app, "frame");
			cJSON_AddItemToObject(app, "frame", frame);
		}
		cJSON *stage = model_row(model, PART_STAGES, "app", name);
		if (stage) {
			cJSON_DeleteItemFromObjectCaseSensitive(app, "rows");
		}
		cJSON *rows = stage ? cJSON_AddArrayToObject(app, "rows") : NULL;
		for (; rows && stage; stage = model_row(model, PART_STAGES, "app", name)) {
			cJSON_DetachItemViaPointer(stages, stage);
			cJSON_AddItemToArray(rows, stage);
		}
	}
}

double ring_value(const struct ring *ring)
{
	return ring ? json_number(ring->metric, "value") : NAN;
}

bool ring_has_value(const struct ring *ring)
{
	for (unsigned i = 0; ring && i < ring->count; i++) {
		if (isfinite(ring->points[i].value)) {
			return true;
		}
	}
	return isfinite(ring_value(ring));
}

double ring_at(const struct ring *ring, int64_t time_us)
{
	unsigned i = ring->count;
	while (i > 0 && ring->points[i - 1].time_us > time_us) {
		i--;
	}
	if (i == 0) {
		return NAN;
	}
	/* slow sources and buckets of history are lines, not dots */
	const struct point *point = &ring->points[i - 1];
	int64_t step_us = i > 1 ? point->time_us - point[-1].time_us : 0;
	step_us = step_us > ring->step_us ? step_us : ring->step_us;
	int64_t hold_us = step_us + step_us / 2;
	hold_us = hold_us < HOLD_US ? HOLD_US : hold_us < HOLD_MAX_US ? hold_us : HOLD_MAX_US;
	return time_us - point->time_us <= hold_us ? point->value : NAN;
}

struct limits model_limits(const struct model *model, const char *metric)
{
	struct limits limits = {NAN, NAN};
	bool zone = strncmp(metric, "temperature/", 12) == 0;
	for (const cJSON *rule = model_first(model, PART_RULES); rule; rule = rule->next) {
		const char *glob = json_word(rule, "metric");
		bool judged = proto_glob_match(glob, metric) ||
			      (zone && proto_glob_match(glob, "temperature/max"));
		if (!judged || strcmp(json_word(rule, "condition"), "above") != 0 ||
			strcmp(json_word(rule, "state"), "disabled") == 0) {
			continue;
		}
		double threshold = json_number(rule, "threshold");
		bool critical = strcmp(json_word(rule, "severity"), "critical") == 0;
		/* fmin of a NAN and a number is the number */
		limits.warning = fmin(limits.warning, critical ? NAN : threshold);
		limits.critical =
			fmin(limits.critical, critical ? threshold : json_number(rule, "critical"));
	}
	return limits;
}
