/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: evaluates rules at each commit. Globs are matched once for a metric (until the rules
 * change); a commit then only walks the alerts of its metrics, and matches a bounded number of new
 * metrics. Absent rules are evaluated on every commit of any source: what they wait for does not
 * commit. */
#include "daemon/core/alerts/alerts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/util/sysops.h"

int alerts_create(struct metrics *metrics, struct timeline *timeline, struct alerts **ret)
{
	static const uint8_t no_boot[16];
	struct alerts *alerts = mem_zalloc(sizeof(*alerts));
	if (!alerts) {
		return -ENOMEM;
	}
	alerts->own_overrides = mem_zalloc(overrides_bytes());
	if (!alerts->own_overrides) {
		free(alerts);
		return -ENOMEM;
	}
	overrides_attach(&alerts->overrides, alerts->own_overrides, no_boot, 0);
	alerts->due_ns = UINT64_MAX;
	alerts->deferred_ns = UINT64_MAX;
	alerts->metrics = metrics;
	alerts->timeline = timeline;
	*ret = alerts;
	return 0;
}

void alerts_destroy(struct alerts *alerts)
{
	if (!alerts) {
		return;
	}
	for (size_t i = 0; i < alerts->count; i++) {
		alert_store_free_slope(&alerts->store, alerts->instance[i]->slope, true);
		free(alerts->instance[i]);
	}
	free(alerts->rule);
	free(alerts->own_overrides);
	free(alerts);
}

size_t alerts_attach_store(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns)
{
	alerts->orphans_ns = now_ns + ALERT_ORPHAN_NS;
	return alert_store_attach(&alerts->store, memory, boot_id, now_ns);
}

static void evaluate(struct alerts *alerts, struct alert_instance *instance, double value,
	uint64_t t_ns, uint64_t hold_ns)
{
	alert_evaluate(alerts, &instance->state, instance->metric, value, t_ns, hold_ns);
	/* after it was sent: killed in between, it is sent twice rather than never */
	instance->slot = alert_store_put(&alerts->store, instance->slot, &instance->state);
}

static void evaluate_slope(
	struct alerts *alerts, struct alert_instance *instance, double value, uint64_t t_ns)
{
	struct alert *alert = &instance->state.alert;
	enum alert_slope_found found =
		alert_slope_add(instance->slope, alert->rule->over_ns, value, t_ns);
	if (found == ALERT_SLOPE_UNKNOWN && alert->phase == ALERT_FIRING) {
		alert->value = NAN;
		alert->t_ns = t_ns;
		return;
	}
	evaluate(alerts, instance, instance->slope->slope, t_ns, 0);
}

/* A metric that is there again may not have been matched yet. */
static void evaluate_absent(struct alerts *alerts, struct alert_instance *instance, uint64_t t_ns)
{
	const struct metric *metric =
		instance->metric ? instance->metric
				 : metrics_find(alerts->metrics, instance->state.alert.metric);
	double value = metric ? metric->value : NAN;
	if (metric && source_state_at(metric->source, t_ns) == SOURCE_STALE) {
		value = NAN;
	}
	const bool known = metric && metric->t_ns != 0;
	evaluate(alerts, instance, value, t_ns, known ? 0 : ALERT_ABSENT_GRACE_NS);
}

static void evaluate_metric(struct alerts *alerts, const struct metric *metric, uint64_t t_ns)
{
	struct alert_instance *instance;
	LIST_FOREACH(instance, &alerts->of[metric->id], peers)
	{
		instance->state.ended = metric->ended;
		if (instance->slope) {
			evaluate_slope(alerts, instance, metric->value, t_ns);
		} else {
			evaluate(alerts, instance, metric->value, t_ns, 0);
		}
	}
}

/* What does not depend on the source that commits. */
static void evaluate_others(struct alerts *alerts, uint64_t t_ns)
{
	struct alert_instance *instance;
	LIST_FOREACH(instance, &alerts->absent, peers)
	{
		evaluate_absent(alerts, instance, t_ns);
	}
	LIST_FOREACH(instance, &alerts->waiting, peers)
	{
		const double value = instance->state.alert.value;
		if (!isnan(value)) {
			evaluate(alerts, instance, value, t_ns, 0);
		}
	}
}

static bool is_matched(const struct alerts *alerts, const struct metric *metric)
{
	return (alerts->matched[metric->id] & ~ALERT_REFUSED) == (uint64_t)metric->serial + 1;
}

void alerts_commit(struct alerts *alerts, const struct source *source, uint64_t t_ns)
{
	if (alerts->orphans_ns > 0 && t_ns >= alerts->orphans_ns) {
		alert_instances_end_orphans(alerts, t_ns);
	}
	if (t_ns >= alerts->due_ns) {
		alerts_tick(alerts, t_ns);
	}
	if (t_ns >= alerts->deferred_ns) {
		alerts_flush_deferred(alerts, t_ns);
	}
	size_t work = 0;
	bool behind = false;
	for (size_t i = 0; i < source->metrics; i++) {
		const struct metric *metric = metrics_of(alerts->metrics, source, i);
		if (!is_matched(alerts, metric)) {
			if (work < ALERT_WORK_COMMIT) {
				work += alert_instances_match(alerts, metric, t_ns);
			} else {
				behind = true;
			}
		}
		evaluate_metric(alerts, metric, t_ns);
	}
	if (behind && alerts->orphans_ns > 0) {
		alerts->orphans_ns = t_ns + ALERT_ORPHAN_NS; /* its metric may be among them */
	}
	alerts->behind |= behind;
	alerts->retry |= alerts->short_of_memory;
	alerts->short_of_memory = false;
	evaluate_others(alerts, t_ns);
}

bool alerts_catch_up(struct alerts *alerts, uint64_t now_ns)
{
	const struct metric *metric;
	uint32_t cursor = 0;
	size_t work = 0;
	if (alerts->retry) {
		alert_instances_retry(alerts, now_ns);
	}
	if (!alerts->behind) {
		return false;
	}
	while (work < ALERT_WORK_COMMIT && (metric = metrics_next(alerts->metrics, &cursor))) {
		if (!is_matched(alerts, metric)) {
			work += alert_instances_match(alerts, metric, now_ns);
		}
	}
	alerts->behind = work >= ALERT_WORK_COMMIT;
	return true;
}

void alerts_retire(struct alerts *alerts, const struct metric *metric, uint64_t now_ns)
{
	struct alert_instance *instance;
	alerts->matched[metric->id] = 0;
	while ((instance = LIST_FIRST(&alerts->of[metric->id]))) {
		alert_instance_end(alerts, instance, now_ns, " is gone");
	}
	LIST_FOREACH(instance, &alerts->absent, peers)
	{
		if (instance->metric == metric) {
			instance->metric = NULL;
		}
	}
}

/* Moves instances to the new copy of their rule, and ends those whose rule is not among them. */
static void move_instances(
	struct alerts *alerts, const struct alert_rule *rules, size_t count, uint64_t now_ns)
{
	for (size_t i = 0; i < alerts->count;) {
		struct alert *alert = &alerts->instance[i]->state.alert;
		size_t k = 0;
		while (k < count && !alert_rule_equal(&rules[k], alert->rule)) {
			k++;
		}
		if (k < count) {
			alert->rule = &rules[k];
			i++;
		} else {
			alert_instance_end(alerts, alerts->instance[i], now_ns,
				": the rule was changed or removed");
		}
	}
}

int alerts_set_rules(
	struct alerts *alerts, const struct alert_rule *rules, size_t count, uint64_t now_ns)
{
	if (count > ALERT_RULES_MAX) {
		return -ENOSPC;
	}
	/* One more: an empty set of rules is not a failed allocation. */
	struct alert_rule *copy = mem_calloc(count + 1, sizeof(*copy));
	if (!copy) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		copy[i] = rules[i];
	}
	move_instances(alerts, copy, count, now_ns);
	memset(alerts->matched, 0, sizeof(alerts->matched));
	alerts->retry = false;
	free(alerts->rule);
	alerts->rule = copy;
	alerts->rules = count;
	alert_match_set(&alerts->match, copy, count);
	for (size_t i = 0; i < count; i++) {
		if (copy[i].enabled) {
			alert_instances_restore(alerts, &copy[i], now_ns);
		}
	}
	return 0;
}

void alerts_break(struct alerts *alerts)
{
	for (size_t i = 0; i < alerts->count; i++) {
		if (alerts->instance[i]->slope) {
			alert_slope_break(alerts->instance[i]->slope);
		}
	}
}

const struct alert *alerts_at(const struct alerts *alerts, size_t index)
{
	const struct alert *test = &alerts->test.state.alert;
	if (index < alerts->count) {
		return &alerts->instance[index]->state.alert;
	}
	/* the test is the last one while it fires */
	return index == alerts->count && test->phase == ALERT_FIRING ? test : NULL;
}

const struct alert_rule *alerts_rule_at(const struct alerts *alerts, size_t index)
{
	return index < alerts->rules ? &alerts->rule[index] : NULL;
}

bool alerts_knows_rule(const struct alerts *alerts, const char *glob)
{
	bool known = alerts->rules == 0;
	for (size_t i = 0; i < alerts->rules && !known; i++) {
		known = proto_glob_match(glob, alerts->rule[i].name);
	}
	return known;
}

struct alert_tally alerts_count(
	const struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns)
{
	struct alert_tally tally = {0};
	for (size_t i = 0; i < alerts->count; i++) {
		const struct alert *alert = &alerts->instance[i]->state.alert;
		if (alert->rule == rule) {
			const bool firing = alert->phase == ALERT_FIRING;
			tally.instances++;
			tally.pending += alert->phase == ALERT_PENDING;
			tally.firing += firing;
			tally.silenced += firing && overrides_muted_until(
							    &alerts->overrides, alert, now_ns) != 0;
		}
	}
	return tally;
}

size_t alerts_firing(const struct alerts *alerts)
{
	size_t firing = 0;
	for (size_t i = 0; i < alerts->count; i++) {
		firing += alerts->instance[i]->state.alert.phase == ALERT_FIRING;
	}
	return firing;
}

uint64_t alerts_refused(const struct alerts *alerts)
{
	return alerts->refused;
}
