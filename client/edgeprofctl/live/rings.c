/* SPDX-License-Identifier: Apache-2.0 */
/* rings.c: keeps a list of metrics. A point closer than half a second to the one before
 * replaces it, so that a minute always fits. */
#include "client/edgeprofctl/live/rings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

enum { STEP_US = RING_SPAN_US / RING_POINTS + 1, HOLD_US = 3 * 1000 * 1000 };
enum { HOLD_MAX_US = 90 * 1000 * 1000 };

static void ring_free(struct ring *ring)
{
	cJSON_Delete(ring->metric);
	free(ring);
}

void rings_finish(struct rings *rings)
{
	for (size_t i = 0; i < rings->count; i++) {
		ring_free(rings->items[i]);
	}
	free(rings->items);
	*rings = (struct rings){0};
}

const struct ring *rings_find(const struct rings *rings, const char *name)
{
	for (size_t i = 0; i < rings->count; i++) {
		if (strcmp(rings->items[i]->name, name) == 0) {
			return rings->items[i];
		}
	}
	return NULL;
}

/* The ring of the metric, which becomes its latest; NULL without memory. */
static struct ring *insert(struct rings *rings, cJSON *metric, int64_t now_us)
{
	const char *name = json_word(metric, "name");
	struct ring *ring = (struct ring *)rings_find(rings, name);
	if (!ring) {
		struct ring **items = realloc(rings->items, (rings->count + 1) * sizeof(*items));
		rings->items = items ? items : rings->items;
		ring = items ? calloc(1, sizeof(*ring)) : NULL;
		if (!ring) {
			return NULL;
		}
		rings->items[rings->count++] = ring;
	}
	cJSON_Delete(ring->metric);
	ring->metric = metric;
	ring->name = name;
	ring->seen_us = now_us;
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

void rings_add_metrics(struct rings *rings, cJSON *reply, int64_t now_us)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(reply, "metrics"), *next;
	for (cJSON *metric = all ? all->child : NULL; metric; metric = next) {
		next = metric->next;
		if (!json_text(metric, "name")) {
			continue;
		}
		cJSON_DetachItemViaPointer(all, metric);
		struct ring *ring = insert(rings, metric, now_us);
		if (!ring) {
			cJSON_Delete(metric);
			return;
		}
		int64_t time_us = json_integer(metric, "time_us");
		append(ring, time_us > 0 ? time_us : now_us, json_number(metric, "value"));
	}
}

void rings_add_series(struct rings *rings, const cJSON *reply, int64_t now_us)
{
	for (const cJSON *s = json_first(reply, "series"); s; s = s->next) {
		const cJSON *time = json_first(s, "time_us"), *mean = json_first(s, "mean");
		cJSON *metric = json_text(s, "name") ? cJSON_CreateObject() : NULL;
		cJSON_AddStringToObject(metric, "name", json_word(s, "name"));
		cJSON_AddStringToObject(metric, "unit", json_word(s, "unit"));
		struct ring *ring = metric ? insert(rings, metric, now_us) : NULL;
		if (!ring) {
			cJSON_Delete(metric);
			continue;
		}
		double value = NAN;
		ring->step_us = json_whole(1000 * json_number(s, "step_ms"));
		for (; time && mean; time = time->next, mean = mean->next) {
			int64_t time_us = json_whole(time->valuedouble);
			if (time_us > now_us) {
				break;
			}
			value = cJSON_IsNumber(mean) ? mean->valuedouble : NAN;
			append(ring, time_us, value);
		}
		json_add_number(metric, "value", value);
	}
}

void rings_prune(struct rings *rings, int64_t now_us)
{
	size_t kept = 0;
	for (size_t i = 0; i < rings->count; i++) {
		struct ring *ring = rings->items[i];
		if (now_us - ring->seen_us > RING_SPAN_US) {
			ring_free(ring);
		} else {
			rings->items[kept++] = ring;
		}
	}
	rings->count = kept;
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
