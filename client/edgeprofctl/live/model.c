/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: stores replies, joins what belongs to one app, and looks things up. */
#include "client/edgeprofctl/live/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/name.h"

enum { EVENTS_MAX = 256 };

/* Each part's array; the others have none. */
static const char *const arrays[PARTS] = {
	"apps", "frames", "stages", "processes", "alerts", "rules", "events"};

void model_finish(struct model *model)
{
	for (int i = 0; i < PARTS; i++) {
		cJSON_Delete(model->parts[i]);
	}
	rings_finish(&model->rings);
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
			rings_add_metrics(&model->rings, reply, model->now_us);
		} else {
			rings_add_series(&model->rings, reply, model->now_us);
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
		rings_prune(&model->rings, model->now_us);
	}
	cJSON_Delete(model->parts[part]);
	model->parts[part] = reply;
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

const struct ring *model_ring(const struct model *model, const char *format, ...)
{
	char name[PROTO_PATH_SIZE];
	va_list ap;
	va_start(ap, format);
	vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	return rings_find(&model->rings, name);
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
