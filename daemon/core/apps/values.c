/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.c: turns gauges, counters and attributes into numbers: records of their kinds come here,
 * once an interval gauges and counters become metrics. A name takes memory when it is seen for the
 * first time only.
 */
#include "daemon/core/apps/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/accounts.h"
#include "daemon/util/sysops.h"

static double number_of(const struct proto_record *record)
{
	double value;
	memcpy(&value, &record->value, sizeof(value));
	return value;
}

static enum unit unit_named(const char text[PROTO_LABEL_SIZE], enum unit otherwise)
{
	for (int i = 0; i < UNIT_COUNT_OF_UNITS; i++) {
		if (text[0] != '\0' &&
			strncmp(text, unit_name((enum unit)i), PROTO_LABEL_SIZE) == 0) {
			return (enum unit)i;
		}
	}
	return otherwise;
}

struct scope {
	const struct app_process *process;
	bool counter;
};

/* A name is taken when another declaration of the same process means it. */
static bool taken_in_process(void *ctx, const char *name)
{
	const struct scope *scope = ctx;
	struct app_value *const *own = scope->process->values[scope->counter];
	for (size_t i = 0; i < PROTO_DECLARATIONS; i++) {
		if (own[i] && strcmp(own[i]->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static struct app_value *value_find(struct app_values *values, const char *name, bool counter)
{
	for (size_t i = 0; i < values->count; i++) {
		struct app_value *value = &values->value[i];
		if (value->counter == counter && strcmp(value->name, name) == 0) {
			return value;
		}
	}
	return NULL;
}

static void value_retire(struct apps *apps, struct app_value *value)
{
	if (value->metric) {
		metrics_retire(apps->metrics, value->metric);
		value->metric = NULL;
	}
}

/* The least recently used that no living process has used; NULL when there is none. */
static struct app_value *value_unused(const struct app *app)
{
	uint64_t before_ns = UINT64_MAX;
	for (size_t i = 0; i < app->processes; i++) {
		if (app->process[i]->attached_ns < before_ns) {
			before_ns = app->process[i]->attached_ns;
		}
	}
	struct app_value *found = NULL;
	for (size_t i = 0; i < app->values->count; i++) {
		struct app_value *value = &app->values->value[i];
		if (value->used_ns < before_ns) {
			before_ns = value->used_ns;
			found = value;
		}
	}
	return found;
}

/* Whether the app's user may have one more metric: half of what is free, or a part of what is on
 * top of the limit for those who find all taken. living: values of others' apps that ended are not
 * counted, because they make room. */
static bool metric_fits(const struct apps *apps, const struct app *app, bool living)
{
	size_t all = metrics_count(apps->metrics), own = 0;
	for (size_t i = 0; i < apps->count; i++) {
		const struct app *other = apps->app[i];
		const size_t count = other->values ? other->values->count : 0;
		own += other->uid == app->uid ? count : 0;
		all -= living && other->uid != app->uid && other->processes == 0 ? count : 0;
	}
	const bool trusted = app->uid == 0 || app->uid == apps->options.owner;
	return trusted ? all < METRICS_OWN_MAX : accounts_fits(METRICS_OWN_MAX, own, all, 1, false);
}

/* Takes a value from the app that ended first: of this user or, where there is a share left, of
 * any. False: there is none. */
static bool values_displace(struct apps *apps, const struct app *by)
{
	const bool of_all = metric_fits(apps, by, true);
	struct app *found = NULL;
	for (size_t i = 0; i < apps->count; i++) {
		struct app *app = apps->app[i];
		if (app->processes == 0 && app->values && app->values->count > 0 &&
			(of_all || app->uid == by->uid) &&
			(!found || app->last_seen_ns < found->last_seen_ns)) {
			found = app;
		}
	}
	if (found) {
		value_retire(apps, &found->values->value[--found->values->count]);
	}
	return found;
}

/* A slot for a new name; NULL: the limits are reached. */
static struct app_value *value_slot(struct apps *apps, struct app *app)
{
	struct app_values *values = app->values;
	const bool full = values->count == APP_VALUES_MAX;
	if (!full && metric_fits(apps, app, false)) {
		return &values->value[values->count++];
	}
	struct app_value *value = value_unused(app);
	if (value) {
		value_retire(apps, value);
		return value;
	}
	return !full && values_displace(apps, app) ? &values->value[values->count++] : NULL;
}

/* Without a metric (metrics counts the refusal) the value is kept all the same. */
static void add_metric(struct apps *apps, const struct app *app, struct app_value *value)
{
	char path[PROTO_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/%s/%s", value->counter ? "counter" : "gauge", app->name,
		value->name);
	value->metric = app_metric_add(apps, app, path, value->unit);
}

static struct app_value *value_add(struct apps *apps, struct app *app, const char *name,
	const struct scope *scope, const struct proto_declaration *declaration)
{
	struct app_value *value = value_slot(apps, app);
	if (!value) {
		return NULL;
	}
	*value = (struct app_value){.counter = scope->counter};
	memcpy(value->name, name, sizeof(value->name));
	value->unit = unit_named(declaration->unit, scope->counter ? UNIT_COUNT : UNIT_NONE);
	add_metric(apps, app, value);
	return value;
}

static struct app_value *value_of(
	struct apps *apps, struct app_process *process, uint32_t index, bool counter)
{
	if (process->values[counter][index]) {
		return process->values[counter][index];
	}
	struct app *app = process->app;
	if (!app->values) {
		app->values = mem_zalloc(sizeof(*app->values));
		if (!app->values) {
			return NULL;
		}
	}
	const struct proto_declaration *declaration = process->declaration[index];
	struct scope scope = {process, counter};
	char name[PROTO_NAME_SIZE];
	if (proto_name_unique(declaration->name, strnlen(declaration->name, PROTO_NAME_MAX),
		    taken_in_process, &scope, name) < 0) {
		return NULL;
	}
	struct app_value *value = value_find(app->values, name, counter);
	if (!value) {
		value = value_add(apps, app, name, &scope, declaration);
	}
	if (!value) { /* so that a flood of it costs little */
		metrics_refuse(apps->metrics);
		value = &apps->no_value;
	}
	process->values[counter][index] = value;
	return value;
}

bool app_on_value(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	const bool counter = record->kind == PROTO_KIND_COUNTER;
	(void)slot;
	double number = number_of(record);
	if (!isfinite(number)) {
		return false;
	}
	struct app_value *value = value_of(apps, process, record->stage, counter);
	if (!value) {
		return false;
	}
	if (value == &apps->no_value) {
		process->app->values->refused++;
		return true; /* believable, but the table is full */
	}
	double sum = counter ? value->value + number : number;
	if (!isfinite(sum)) {
		return false;
	}
	value->used_ns = process->frame_state.pass_ns;
	if (!counter && record->start_ns < value->set_ns) {
		return true; /* another thread's or process's was set later */
	}
	value->value = sum;
	value->set_ns = record->start_ns;
	process->app->values->changes++;
	return true;
}

/* A gauge holds until it is set again; a counter's total is what it is, whenever it grew. */
static void value_sample(const struct apps *apps, const struct app_value *value, uint64_t now_ns)
{
	if (value->counter) {
		metric_set(value->metric, value->value);
	} else if (value->set_ns == 0) {
		metric_set_null(value->metric, "not set since the app started");
	} else if (now_ns > value->set_ns &&
		   now_ns - value->set_ns > apps->config.gauge_expire_ns) {
		metric_set_null(value->metric, "not set for longer than [gauge] expire");
	} else {
		metric_set_at(value->metric, value->value, value->set_ns);
	}
}

void app_values_end(struct app *app)
{
	for (size_t i = 0; app->values && i < app->values->count; i++) {
		app->values->value[i].set_ns = 0;
	}
}

static bool is_complete(const struct app_value *value)
{
	return memchr(value->name, '\0', sizeof(value->name)) && isfinite(value->value) &&
	       (unsigned)value->unit < UNIT_COUNT_OF_UNITS;
}

bool app_values_restored(struct apps *apps, struct app *app)
{
	struct app_values *values = app->values;
	bool complete = values->count <= APP_VALUES_MAX;
	for (size_t i = 0; complete && i < values->count; i++) {
		complete = is_complete(&values->value[i]);
	}
	values->count = complete ? values->count : 0;
	for (size_t i = 0; i < values->count; i++) {
		values->value[i].metric = NULL;
		add_metric(apps, app, &values->value[i]);
	}
	return complete;
}

void app_values_sample(struct apps *apps, struct app *app, uint64_t now_ns)
{
	for (size_t i = 0; app->values && i < app->values->count; i++) {
		struct app_value *value = &app->values->value[i];
		if (!value->metric) {
			continue;
		}
		if (app->processes == 0) {
			metric_set_ended(value->metric, "app ended");
		} else {
			value_sample(apps, value, now_ns);
		}
	}
}

void app_values_retire(struct apps *apps, struct app *app)
{
	for (size_t i = 0; app->values && i < app->values->count; i++) {
		value_retire(apps, &app->values->value[i]);
	}
	free(app->values);
	app->values = NULL;
}

/* key identifies the declaration that came last, so that most records need no comparing of names.
 */
static struct app_attribute *attribute_of(struct app_attributes *attributes,
	const struct proto_declaration *declaration, uint64_t key)
{
	for (size_t i = 0; i < attributes->count; i++) {
		if (attributes->attribute[i].key == key) {
			return &attributes->attribute[i];
		}
	}
	char name[PROTO_NAME_SIZE];
	proto_name_clean(
		declaration->name, strnlen(declaration->name, sizeof(declaration->name)), name);
	size_t i = 0;
	while (i < attributes->count && strcmp(attributes->attribute[i].name, name) != 0) {
		i++;
	}
	if (i == STAGE_ATTRIBUTES_MAX) {
		return NULL;
	}
	struct app_attribute *attribute = &attributes->attribute[i];
	if (i == attributes->count) {
		attributes->count++;
		memcpy(attribute->name, name, sizeof(attribute->name));
	}
	attribute->key = key;
	return attribute;
}

static bool on_stage_attribute(struct apps *apps, struct app_process *process, uint32_t index,
	const struct proto_record *record, double value)
{
	struct stage *stage = app_stage_of(apps, process, index);
	if (!stage) {
		return false;
	}
	if (!stage->attributes) {
		stage->attributes = mem_zalloc(sizeof(*stage->attributes));
		if (!stage->attributes) {
			return false;
		}
	}
	struct app_attribute *attribute = attribute_of(stage->attributes,
		process->declaration[record->stage], process->id_key + record->stage + 1);
	if (!attribute) {
		stage->attributes->refused++;
		return true;
	}
	if (!isfinite(attribute->sum + value)) {
		return false;
	}
	if (attribute->count++ == 0) {
		attribute->min = attribute->max = value;
	}
	attribute->last = value;
	attribute->min = value < attribute->min ? value : attribute->min;
	attribute->max = value > attribute->max ? value : attribute->max;
	attribute->sum += value;
	return true;
}

/* Its stage or mark is the declaration cpu_us. */
bool app_on_attribute(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)slot;
	uint32_t index = record->cpu_us;
	double value = number_of(record);
	if (index >= PROTO_DECLARATIONS || !process->declaration[index] || !isfinite(value)) {
		return false;
	}
	if (process->marked[index] && (app_mark_attribute(apps, process, index, record, value) ||
					      !process->stages[index])) {
		return true; /* the mark may have been refused: its label is not a stage */
	}
	return on_stage_attribute(apps, process, index, record, value);
}
