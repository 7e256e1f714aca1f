/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: keeps the table of current values. Sources fill it, one commit at a time; observers
 * read it during the commit and whenever they like. Names are found through an index of slot
 * numbers; each metric is its own allocation, so that pointers to it stay valid. */
#include "daemon/core/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/index.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum { FIRST_CAPACITY = 16 };

/* The metrics of one source. */
struct metrics_list {
	struct metric **item;
	size_t capacity;
	uint64_t committed_ns; /* of the last commit */
};

struct metrics {
	size_t count;
	uint32_t next_serial;
	uint32_t high; /* slots below have been used */
	uint32_t holes;
	uint16_t hole[METRICS_MAX]; /* retired slots, used again before new ones */
	struct metric *slot[METRICS_MAX];
	struct index names;
	struct metrics_list of[SOURCES_MAX];
	size_t observers;
	struct metrics_observer observer[METRICS_OBSERVERS];
	uint64_t refused;
};

int metrics_create(struct metrics **ret)
{
	struct metrics *metrics = mem_zalloc(sizeof(*metrics));
	if (!metrics) {
		return -ENOMEM;
	}
	*ret = metrics;
	return 0;
}

void metrics_destroy(struct metrics *metrics)
{
	if (!metrics) {
		return;
	}
	for (uint32_t i = 0; i < metrics->high; i++) {
		free(metrics->slot[i]);
	}
	for (size_t i = 0; i < SOURCES_MAX; i++) {
		free(metrics->of[i].item);
	}
	index_finish(&metrics->names);
	free(metrics);
}

static bool is_named(const void *table, uint32_t slot, const void *key)
{
	const struct metrics *metrics = table;
	return strcmp(metrics->slot[slot]->name, key) == 0;
}

static struct metric *find(const struct metrics *metrics, uint32_t hash, const char *name)
{
	uint32_t slot = index_find(&metrics->names, hash, is_named, metrics, name);
	return slot == INDEX_NONE ? NULL : metrics->slot[slot];
}

struct metric *metrics_find(struct metrics *metrics, const char *name)
{
	return find(metrics, hash_text(name), name);
}

double metrics_value(struct metrics *metrics, const char *name)
{
	const struct metric *metric = metrics_find(metrics, name);
	return metric ? metric->value : (double)NAN;
}

/* Reserves capacity for one more in the source's list. */
static int list_reserve(struct metrics_list *list, size_t count)
{
	if (count < list->capacity) {
		return 0;
	}
	size_t capacity = list->capacity ? 2 * list->capacity : FIRST_CAPACITY;
	struct metric **item = mem_calloc(capacity, sizeof(struct metric *));
	if (!item) {
		return -ENOMEM;
	}
	if (count > 0) {
		memcpy(item, list->item, count * sizeof(struct metric *));
	}
	free(list->item);
	list->item = item;
	list->capacity = capacity;
	return 0;
}

int metrics_add(struct metrics *metrics, struct source *source, const char *name, enum unit unit,
	struct metric **ret)
{
	const size_t size = strlen(name) + 1;
	if (!proto_path_valid(name) || size > PROTO_PATH_SIZE) {
		return -EINVAL;
	}
	uint32_t hash = hash_text(name);
	struct metric *known = find(metrics, hash, name);
	if (known) {
		if (known->source == source) {
			*ret = known;
			return 0;
		}
		if (!(known->yields || known->source->yields) || source->yields) {
			return -EEXIST;
		}
		metrics_retire(metrics, known);
	}
	if (metrics->count == METRICS_MAX) {
		metrics_refuse(metrics);
		return -ENOSPC;
	}
	struct metrics_list *list = &metrics->of[source->id];
	if (list_reserve(list, source->metrics) < 0 ||
		index_reserve(&metrics->names, metrics->count + 1) < 0) {
		return -ENOMEM;
	}
	struct metric *metric = mem_zalloc(sizeof(*metric) + size);
	if (!metric) {
		return -ENOMEM;
	}
	metric->id = metrics->holes > 0 ? metrics->hole[--metrics->holes] : metrics->high++;
	metric->serial = metrics->next_serial++;
	metric->source = source;
	metric->unit = unit;
	metric->value = NAN;
	metric->limit = NAN;
	metric->zone = -1;
	metric->reason = "not sampled yet";
	metric->full_rate = true;
	memcpy(metric->name, name, size);
	metrics->slot[metric->id] = metric;
	index_add(&metrics->names, hash, metric->id); /* reserved */
	metrics->count++;
	metric->list_index = (uint32_t)source->metrics;
	list->item[source->metrics++] = metric;
	*ret = metric;
	return 0;
}

void metrics_retire(struct metrics *metrics, struct metric *metric)
{
	for (size_t i = 0; i < metrics->observers; i++) {
		const struct metrics_observer *observer = &metrics->observer[i];
		if (observer->retire) {
			observer->retire(observer->ctx, metric);
		}
	}
	struct source *source = metric->source;
	struct metric **item = metrics->of[source->id].item;
	struct metric *last = item[--source->metrics];
	item[metric->list_index] = last;
	last->list_index = metric->list_index;
	index_remove(&metrics->names, hash_text(metric->name), metric->id);
	metrics->slot[metric->id] = NULL;
	metrics->hole[metrics->holes++] = (uint16_t)metric->id;
	metrics->count--;
	free(metric);
}

void metric_set(struct metric *metric, double value)
{
	if (!isfinite(value)) {
		metric_set_null(metric, "not a number");
		return;
	}
	metric->value = value;
	metric->value_ns = 0;
	metric->reason = NULL;
	metric->ended = false;
	metric->set = true;
}

void metric_set_at(struct metric *metric, double value, uint64_t value_ns)
{
	metric_set(metric, value);
	metric->value_ns = value_ns;
}

void metric_set_null(struct metric *metric, const char *reason)
{
	metric->value = NAN;
	metric->value_ns = 0;
	metric->reason = reason ? reason : "unknown";
	metric->ended = false;
	metric->set = true;
}

void metric_set_or_null(struct metric *metric, double value, const char *reason)
{
	if (metric && reason) {
		metric_set_null(metric, reason);
	} else if (metric) {
		metric_set(metric, value);
	}
}

void metric_set_idle(struct metric *metric, uint64_t last_event_ns)
{
	metric_set_null(metric, "no event");
	metric->value_ns = last_event_ns;
}

struct metric_reason metric_reason(const struct metric *metric, uint64_t now_ns)
{
	struct metric_reason reason = {""};
	if (metric->reason && metric->value_ns > 0 && now_ns > metric->value_ns) {
		snprintf(reason.text, sizeof(reason.text), "%s for %s", metric->reason,
			text_span((now_ns - metric->value_ns) / 1000000000).text);
	} else if (metric->reason) {
		snprintf(reason.text, sizeof(reason.text), "%s", metric->reason);
	}
	return reason;
}

void metric_set_ended(struct metric *metric, const char *reason)
{
	metric_set_null(metric, reason);
	metric->ended = true;
}

void metrics_commit(struct metrics *metrics, struct source *source, uint64_t t_ns)
{
	struct metrics_list *list = &metrics->of[source->id];
	if (t_ns < list->committed_ns) {
		t_ns = list->committed_ns;
	}
	list->committed_ns = t_ns;
	bool good = false;
	for (size_t i = 0; i < source->metrics; i++) {
		struct metric *metric = list->item[i];
		if (!metric->set) {
			metric_set_null(metric, "not reported");
		}
		metric->set = false;
		metric->t_ns = t_ns;
		good = good || !metric->reason;
	}
	if (good) {
		source->last_ok_ns = t_ns;
	}
	for (size_t i = 0; i < metrics->observers; i++) {
		const struct metrics_observer *observer = &metrics->observer[i];
		if (observer->commit) {
			observer->commit(observer->ctx, source, t_ns);
		}
	}
}

struct metric *metrics_next(struct metrics *metrics, uint32_t *cursor)
{
	while (*cursor < metrics->high) {
		struct metric *metric = metrics->slot[(*cursor)++];
		if (metric) {
			return metric;
		}
	}
	return NULL;
}

struct metric *metrics_of(struct metrics *metrics, const struct source *source, size_t index)
{
	return index < source->metrics ? metrics->of[source->id].item[index] : NULL;
}

size_t metrics_count(const struct metrics *metrics)
{
	return metrics->count;
}

uint64_t metrics_refused(const struct metrics *metrics)
{
	return metrics->refused;
}

void metrics_refuse(struct metrics *metrics)
{
	metrics->refused++;
}

int metrics_observe(struct metrics *metrics, struct metrics_observer observer)
{
	if (metrics->observers == METRICS_OBSERVERS) {
		return -ENOSPC;
	}
	metrics->observer[metrics->observers++] = observer;
	return 0;
}

void metrics_unobserve(struct metrics *metrics, void *ctx)
{
	size_t kept = 0;
	for (size_t i = 0; i < metrics->observers; i++) {
		if (metrics->observer[i].ctx != ctx) {
			metrics->observer[kept++] = metrics->observer[i];
		}
	}
	metrics->observers = kept;
}

const char *errno_reason(int error)
{
	const char *text = strerrordesc_np(error < 0 && error > INT_MIN ? -error : error);
	return text && error != 0 ? text : "error";
}
