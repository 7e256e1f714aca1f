/* SPDX-License-Identifier: Apache-2.0 */
/* instances.c: makes the (rule, metric) pairs that are evaluated, when a metric is seen for the
 * first time or was stored by the previous process, and ends them with their rule or their metric.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/util/accounts.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"

static struct alert_list *bucket_of(
	struct alerts *alerts, const struct alert_rule *rule, const char *name)
{
	const uint64_t hash = fnv64_text(fnv64_text(FNV64_BASIS, rule->name), name);
	return &alerts->bucket[(hash ^ hash >> 32) % ALERT_BUCKETS];
}

static struct alert_instance *find(
	struct alerts *alerts, const struct alert_rule *rule, const char *name)
{
	struct alert_instance *instance;
	LIST_FOREACH(instance, bucket_of(alerts, rule, name), bucket)
	{
		const struct alert *alert = &instance->state.alert;
		if (alert->rule == rule && strcmp(alert->metric, name) == 0) {
			return instance;
		}
	}
	return NULL;
}

static bool is_waiting(const struct alert_instance *instance)
{
	return !instance->metric && instance->state.alert.rule->kind != ALERT_ABSENT;
}

/* An instance of an absent rule stays in the list of these, with or without its metric. */
static struct alert_list *list_of(struct alerts *alerts, const struct alert_instance *instance)
{
	if (instance->state.alert.rule->kind == ALERT_ABSENT) {
		return &alerts->absent;
	}
	return instance->metric ? &alerts->of[instance->metric->id] : &alerts->waiting;
}

static size_t index_of(const struct alerts *alerts, const struct alert_instance *instance)
{
	size_t at = 0;
	while (alerts->instance[at] != instance) {
		at++;
	}
	return at;
}

void alert_instance_end(
	struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns, const char *ending)
{
	alert_end(alerts, &instance->state, now_ns, ending);
	alert_drop_ack(alerts, &instance->state.alert); /* also of one that was not sent */
	alert_store_free(&alerts->store, instance->slot);
	alert_store_free_slope(&alerts->store, instance->slope, false);
	LIST_REMOVE(instance, peers);
	LIST_REMOVE(instance, bucket);
	const size_t at = index_of(alerts, instance);
	alerts->count--;
	memmove(alerts->instance + at, alerts->instance + at + 1,
		(alerts->count - at) * sizeof(alerts->instance[0]));
	memmove(alerts->owner + at, alerts->owner + at + 1,
		(alerts->count - at) * sizeof(alerts->owner[0]));
	alerts->own = SIZE_MAX;
	alerts->retry |= alerts->starved;
	alerts->starved = false;
	free(instance);
}

/* Whether there may be one more of a metric of that user, 0: of the device. */
static bool fits(struct alerts *alerts, uid_t owner)
{
	if (alerts->own == SIZE_MAX || alerts->counted != owner) {
		alerts->counted = owner;
		alerts->own = 0;
		for (size_t i = 0; i < alerts->count; i++) {
			alerts->own += alerts->owner[i] == owner;
		}
	}
	return accounts_fits(ALERT_OWN_MAX, alerts->own, alerts->count, 1, owner == 0);
}

/* NULL: the limit, or no memory. */
static struct alert_instance *create(
	struct alerts *alerts, const struct alert_rule *rule, const char *name, uid_t owner)
{
	if (!fits(alerts, owner)) {
		return NULL;
	}
	struct alert_instance *instance = mem_zalloc(sizeof(*instance));
	if (instance && rule->kind == ALERT_SLOPE) {
		instance->slope = alert_store_slope(&alerts->store, rule, name, owner);
		if (!instance->slope) {
			free(instance);
			instance = NULL;
		}
	}
	alerts->short_of_memory |= !instance;
	return instance;
}

static void init(struct alerts *alerts, struct alert_instance *instance,
	const struct alert_rule *rule, const char *name, uid_t owner, uint64_t t_ns)
{
	struct alert *alert = &instance->state.alert;
	if (proto_glob_instance(rule->metric, name, alert->instance, sizeof(alert->instance)) < 0) {
		snprintf(alert->instance, sizeof(alert->instance), "_");
	}
	snprintf(alert->metric, sizeof(alert->metric), "%s", name);
	alert->rule = rule;
	alert->unit = instance->metric ? instance->metric->unit : UNIT_NONE;
	alert_state_init(&instance->state, t_ns);
	instance->state.owner = owner;
	instance->slot = alert_store_restore(&alerts->store, &instance->state);
	if (alert_notify_pending(alert)) {
		alerts->deferred_ns = t_ns; /* by the previous process */
	}
	if (instance->slot >= 0) {
		/* observers may not be there yet: they get it at the next commit */
		alert->notifier.acked =
			alert->phase == ALERT_FIRING &&
			overrides_ack(&alerts->overrides, rule->name, alert->instance);
		alerts->restored = true;
		alerts->due_ns = 0;
	}
}

/* Makes the instance of the rule over the metric; one that exists already gets the metric. metric
 * NULL: not there yet. */
static void alert_instance_add(struct alerts *alerts, const struct alert_rule *rule,
	const char *name, const struct metric *metric, uint64_t t_ns)
{
	struct alert_instance *instance = find(alerts, rule, name);
	const uid_t owner = metric ? metric->owner : 0; /* of one that fired before a restart */
	if (instance) {
		LIST_REMOVE(instance, peers);
		instance->metric = metric;
		instance->state.alert.unit = metric ? metric->unit : UNIT_NONE;
		alerts->owner[index_of(alerts, instance)] = instance->state.owner = owner;
		alerts->own = SIZE_MAX;
	} else {
		instance = create(alerts, rule, name, owner);
		if (!instance) {
			alerts->refused++;
			alerts->starved = true;
			return;
		}
		instance->metric = metric;
		init(alerts, instance, rule, name, owner, t_ns);
		LIST_INSERT_HEAD(bucket_of(alerts, rule, name), instance, bucket);
		alerts->owner[alerts->count] = owner;
		alerts->instance[alerts->count++] = instance;
		alerts->own++;
	}
	LIST_INSERT_HEAD(list_of(alerts, instance), instance, peers);
}

/* Alerts about an app as such last until it attaches again: that it is not attached proves nothing,
 * and an app that hangs or is gone does not attach. */
static bool outlives_metric(const char *name)
{
	return proto_glob_match("app/*/*", name);
}

/* A stored alert is there at once: it continues to fire, and its metric comes with the first
 * samples. Until then its value is unknown. */
static void restore_waiting(
	struct alerts *alerts, const struct alert_rule *rule, int slot, uint64_t now_ns)
{
	const struct alert_slot *stored = &alerts->store.slot[slot];
	/* that an app is gone is a fact; all other values were measured */
	const bool known = proto_glob_match("app/*/died", stored->metric);
	char name[PROTO_PATH_SIZE];
	if (stored->phase != ALERT_FIRING && !(known && stored->phase == ALERT_PENDING)) {
		return;
	}
	snprintf(name, sizeof(name), "%s", stored->metric);
	const size_t before = alerts->count;
	alert_instance_add(alerts, rule, name, metrics_find(alerts->metrics, name), now_ns);
	if (!known && alerts->count > before) {
		alerts->instance[before]->state.alert.value = NAN;
	}
}

void alert_instances_restore(struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns)
{
	char name[PROTO_PATH_SIZE];
	const bool absent = rule->kind == ALERT_ABSENT;
	size_t cursor = 0;
	int slot;
	if (absent && proto_path_valid(rule->metric)) {
		alert_instance_add(alerts, rule, rule->metric,
			metrics_find(alerts->metrics, rule->metric), now_ns);
	}
	while ((slot = alert_store_inherited(&alerts->store, rule, &cursor)) >= 0) {
		if (!absent) {
			restore_waiting(alerts, rule, slot, now_ns);
			continue;
		}
		snprintf(name, sizeof(name), "%s", alerts->store.slot[slot].metric);
		alert_instance_add(alerts, rule, name, metrics_find(alerts->metrics, name), now_ns);
	}
}

/* Acknowledgements of alerts that do not fire any more. */
static void drop_stale_acks(struct alerts *alerts)
{
	for (size_t i = 0; i < alerts->overrides.acks; i++) {
		struct alert_ack *ack = &alerts->overrides.ack[i];
		bool fires = false;
		for (size_t k = 0; ack->serial != 0 && k < alerts->count && !fires; k++) {
			const struct alert *alert = &alerts->instance[k]->state.alert;
			fires = alert->notifier.acked &&
				overrides_ack(&alerts->overrides, alert->rule->name,
					alert->instance) == ack;
		}
		if (!fires) {
			overrides_drop(&ack->serial);
		}
	}
}

static void end_slot(struct alerts *alerts, const struct alert_slot *slot, uint64_t now_ns)
{
	struct alert_rule rule = {.clear = NAN, .critical = NAN};
	struct alert_state state = {.alert = {.rule = &rule}};
	struct alert *alert = &state.alert;
	snprintf(rule.name, sizeof(rule.name), "%s", slot->name);
	snprintf(alert->instance, sizeof(alert->instance), "%s", slot->instance);
	snprintf(alert->metric, sizeof(alert->metric), "%s", slot->metric);
	alert_slot_read(slot, &state);
	alert->value = NAN;
	alert->notifier.muted_until_ns = 0;
	alert_end(alerts, &state, now_ns, " is gone");
}

void alert_instances_end_orphans(struct alerts *alerts, uint64_t now_ns)
{
	size_t cursor = 0;
	int slot;
	alerts->orphans_ns = 0;
	for (size_t i = 0; i < alerts->count;) {
		struct alert_instance *instance = alerts->instance[i];
		if (is_waiting(instance) && !outlives_metric(instance->state.alert.metric)) {
			alert_instance_end(alerts, instance, now_ns, " is gone");
		} else {
			i++;
		}
	}
	while ((slot = alert_store_inherited(&alerts->store, NULL, &cursor)) >= 0) {
		end_slot(alerts, &alerts->store.slot[slot], now_ns);
		alert_store_free(&alerts->store, slot);
	}
	alert_store_drop_slopes(&alerts->store);
	drop_stale_acks(alerts);
}

size_t alert_instances_match(struct alerts *alerts, const struct metric *metric, uint64_t t_ns)
{
	const struct alert_rule_set set = alert_match_find(&alerts->match, metric->name);
	const size_t before = alerts->count;
	const uint64_t refused = alerts->refused, again = alerts->matched[metric->id];
	size_t work = 1;
	for (size_t i = 0; i < ALERT_MATCH_WORDS; i++) {
		for (uint64_t bits = set.bit[i]; bits != 0; bits &= bits - 1) {
			const struct alert_rule *rule =
				&alerts->rule[64 * i + (size_t)__builtin_ctzll(bits)];
			if (proto_glob_match(rule->metric, metric->name)) {
				alert_instance_add(alerts, rule, metric->name, metric, t_ns);
			}
			work++;
		}
	}
	alerts->matched[metric->id] = (uint64_t)metric->serial + 1;
	if (alerts->refused != refused) {
		alerts->matched[metric->id] |= ALERT_REFUSED;
		alerts->refused = again & ALERT_REFUSED ? refused : alerts->refused;
	}
	return work + ALERT_WORK_INSTANCE * (alerts->count - before);
}

void alert_instances_retry(struct alerts *alerts, uint64_t now_ns)
{
	const uint64_t refused = alerts->refused;
	alerts->retry = false;
	alerts->behind = true;
	for (size_t i = 0; i < METRICS_MAX; i++) {
		if (alerts->matched[i] & ALERT_REFUSED) {
			alerts->matched[i] = ALERT_REFUSED;
		}
	}
	for (size_t i = 0; i < alerts->rules; i++) {
		if (alerts->rule[i].enabled) {
			alert_instances_restore(alerts, &alerts->rule[i], now_ns);
		}
	}
	alerts->refused = refused;
}
