/* Which (rule, metric) pairs are judged: made when a metric is seen for the first time, ended with
 * their rule or their metric. */
#include "daemon/core/alerts/private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

static struct alert_instance **bucket_of(
	struct alerts *alerts, const struct alert_rule *rule, const char *name)
{
	uint64_t hash = (uint64_t)(uintptr_t)rule;
	for (; *name != '\0'; name++) {
		hash = (hash ^ (uint8_t)*name) * UINT64_C(1099511628211);
	}
	return &alerts->bucket[(hash ^ hash >> 32) % ALERT_ABSENT_BUCKETS];
}

static void leave_bucket(struct alerts *alerts, const struct alert_instance *instance)
{
	const struct alert *alert = &instance->state.alert;
	struct alert_instance **at = bucket_of(alerts, alert->rule, alert->metric);
	while (*at != instance) {
		at = &(*at)->alike;
	}
	*at = instance->alike;
}

void alert_instance_end(
	struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns, const char *ending)
{
	struct alert *alert = &instance->state.alert;
	const enum alert_phase phase = alert->phase;
	alert->transitions += phase == ALERT_FIRING;
	alert->phase = ALERT_OK;
	alert->t_ns = now_ns > alert->t_ns ? now_ns : alert->t_ns;
	alert->since_ns = alert->t_ns;
	alert->since_us = 0;
	alerts_end(alerts, alert, phase, &instance->state.notifier, ending);
	alert_hold_drop_ack(alerts, alert); /* also of one that was not sent */
	alerts_memory_free(&alerts->memory, instance->slot);
	alerts_memory_free_slope(&alerts->memory, instance->slope);
	if (alert->rule->kind == ALERT_ABSENT) {
		leave_bucket(alerts, instance);
	}
	size_t at = 0;
	while (alerts->instance[at] != instance) {
		at++;
	}
	alerts->count--;
	memmove(alerts->instance + at, alerts->instance + at + 1,
		(alerts->count - at) * sizeof(alerts->instance[0]));
	free(instance);
}

static struct alert_instance *find(struct alerts *alerts, const struct alert_rule *rule,
	const char *name, const struct metric *metric)
{
	if (rule->kind == ALERT_ABSENT) {
		struct alert_instance *known = *bucket_of(alerts, rule, name);
		while (known && (known->state.alert.rule != rule ||
					strcmp(known->state.alert.metric, name) != 0)) {
			known = known->alike;
		}
		return known;
	}
	struct alert_instance *known = metric ? alerts->of[metric->id] : NULL;
	while (known && known->state.alert.rule != rule) {
		known = known->next;
	}
	return known;
}

static void enlist(struct alerts *alerts, struct alert_instance *instance)
{
	const struct alert *alert = &instance->state.alert;
	struct alert_instance **list;
	if (alert->rule->kind == ALERT_ABSENT) {
		struct alert_instance **bucket = bucket_of(alerts, alert->rule, alert->metric);
		instance->alike = *bucket;
		*bucket = instance;
		list = &alerts->absent;
	} else {
		list = instance->metric ? &alerts->of[instance->metric->id] : &alerts->waiting;
	}
	instance->next = *list;
	*list = instance;
}

/* The one that was restored before its metric came, out of its list. NULL: none. */
static struct alert_instance *take_waiting(
	struct alerts *alerts, const struct alert_rule *rule, const char *name)
{
	struct alert_instance **at = &alerts->waiting;
	while (*at &&
		((*at)->state.alert.rule != rule || strcmp((*at)->state.alert.metric, name) != 0)) {
		at = &(*at)->next;
	}
	struct alert_instance *found = *at;
	if (found) {
		*at = found->next;
	}
	return found;
}

void alert_instance_add(struct alerts *alerts, const struct alert_rule *rule, const char *name,
	const struct metric *metric, uint64_t t_ns)
{
	struct alert_instance *known = find(alerts, rule, name, metric);
	if (!known && metric && (known = take_waiting(alerts, rule, name))) {
		known->metric = metric;
		enlist(alerts, known);
	}
	if (known) {
		known->metric = metric;
		known->state.alert.unit = metric ? metric->unit : UNIT_NONE;
		return;
	}
	struct alert_instance *instance = NULL;
	if (alerts->count < ALERT_INSTANCES_MAX) {
		instance = mem_zalloc(sizeof(*instance));
	}
	struct alert_slope *slope = NULL;
	if (instance && rule->kind == ALERT_SLOPE) {
		slope = alerts_memory_slope(&alerts->memory, rule, name);
	}
	if (!instance || (rule->kind == ALERT_SLOPE && !slope)) {
		alerts->refused++;
		free(instance);
		return;
	}
	instance->slope = slope;
	struct alert *alert = &instance->state.alert;
	if (proto_glob_instance(rule->metric, name, alert->instance, sizeof(alert->instance)) < 0) {
		snprintf(alert->instance, sizeof(alert->instance), "_");
	}
	snprintf(alert->metric, sizeof(alert->metric), "%s", name);
	alert->rule = rule;
	alert->unit = metric ? metric->unit : UNIT_NONE;
	alert_state_init(&instance->state, t_ns);
	instance->slot = alerts_memory_take(&alerts->memory, &instance->state);
	if (alert_notify_pending(&instance->state)) {
		alerts->deferred_ns = t_ns; /* by the last process */
	}
	instance->metric = metric;
	enlist(alerts, instance);
	alerts->instance[alerts->count++] = instance;
	if (instance->slot >= 0) {
		/* observers may not be there yet: they hear at the next commit */
		alert->acked = alert->phase == ALERT_FIRING &&
			       alert_holds_ack(&alerts->holds, rule->name, alert->instance);
		alerts->restored = true;
		alerts->due_ns = 0;
	}
}

/* What is said of an app as such: that it is not attached proves nothing, the alert lasts until it
 * is. Nobody but the app itself can attach, and one that hangs or is gone does not. */
static bool outlives_metric(const char *name)
{
	return proto_glob_match("app/*/*", name);
}

/* What the last process left in the slot is there at once: it fires on, and its metric comes with
 * the first samples. Until then its value is not known. */
static void restore_waiting(
	struct alerts *alerts, const struct alert_rule *rule, int slot, uint64_t now_ns)
{
	const struct alert_slot *saved = &alerts->memory.slot[slot];
	/* that it is gone is known; all else was measured */
	const bool known = proto_glob_match("app/*/died", saved->metric);
	char name[PROTO_PATH_SIZE];
	if (saved->phase != ALERT_FIRING && !(known && saved->phase == ALERT_PENDING)) {
		return;
	}
	snprintf(name, sizeof(name), "%s", saved->metric);
	const size_t before = alerts->count;
	alert_instance_add(alerts, rule, name, metrics_find(alerts->metrics, name), now_ns);
	if (!known && alerts->count > before) {
		alerts->instance[before]->state.alert.value = NAN;
	}
}

void alert_instances_await(struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns)
{
	char name[PROTO_PATH_SIZE];
	const bool absent = rule->kind == ALERT_ABSENT;
	size_t cursor = 0;
	int slot;
	if (absent && proto_path_valid(rule->metric)) {
		alert_instance_add(alerts, rule, rule->metric,
			metrics_find(alerts->metrics, rule->metric), now_ns);
	}
	while ((slot = alerts_memory_of_rule(&alerts->memory, rule, &cursor)) >= 0) {
		if (!absent) {
			restore_waiting(alerts, rule, slot, now_ns);
			continue;
		}
		snprintf(name, sizeof(name), "%s", alerts->memory.slot[slot].metric);
		alert_instance_add(alerts, rule, name, metrics_find(alerts->metrics, name), now_ns);
	}
}

void alert_instances_end_waiting(struct alerts *alerts, uint64_t now_ns)
{
	struct alert_instance **at = &alerts->waiting;
	while (*at) {
		struct alert_instance *instance = *at;
		if (outlives_metric(instance->state.alert.metric)) {
			at = &instance->next;
			continue;
		}
		*at = instance->next;
		alert_instance_end(alerts, instance, now_ns, " is gone");
	}
}

size_t alert_instances_match(struct alerts *alerts, const struct metric *metric, uint64_t t_ns)
{
	const struct alert_rule_set set = alerts_match_find(&alerts->match, metric->name);
	const size_t before = alerts->count;
	size_t work = 1;
	for (size_t i = 0; i < ALERT_MATCH_WORDS; i++) {
		for (uint64_t bits = set.bit[i]; bits != 0; bits &= bits - 1) {
			const struct alert_rule *rule =
				alerts->rule[64 * i + (size_t)__builtin_ctzll(bits)];
			if (proto_glob_match(rule->metric, metric->name)) {
				alert_instance_add(alerts, rule, metric->name, metric, t_ns);
			}
			work++;
		}
	}
	alerts->matched[metric->id] = (uint64_t)metric->serial + 1;
	return work + ALERT_WORK_INSTANCE * (alerts->count - before);
}

void alert_instances_drop(struct alerts *alerts, struct alert_instance **list,
	struct alert_rule *const *rules, size_t count, uint64_t now_ns)
{
	while (*list) {
		struct alert_instance *instance = *list;
		bool kept = false;
		for (size_t i = 0; i < count; i++) {
			kept = kept || rules[i] == instance->state.alert.rule;
		}
		if (kept) {
			list = &instance->next;
			continue;
		}
		*list = instance->next;
		alert_instance_end(alerts, instance, now_ns, ": the rule was changed or removed");
	}
}
