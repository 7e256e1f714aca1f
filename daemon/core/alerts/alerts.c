/* Which rules judge which metrics. Matching globs is done once for a metric
 * (until the rules change); a commit then only walks the alerts of its metrics. A commit looks so
 * many new metrics up, the next ones the rest. Absent rules are looked at on every commit of any
 * source: what they wait for does not commit. */
#include "daemon/core/alerts/alerts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/core/alerts/rules.h"
#include "daemon/util/sysops.h"

int alerts_create(struct metrics *metrics, struct timeline *timeline, struct alerts **ret)
{
	struct alerts *alerts = mem_zalloc(sizeof(*alerts));
	if (!alerts) {
		return -ENOMEM;
	}
	alerts->own_holds = mem_zalloc(alert_holds_bytes());
	if (!alerts->own_holds) {
		free(alerts);
		return -ENOMEM;
	}
	static const uint8_t no_boot[16];
	alert_holds_adopt(&alerts->holds, alerts->own_holds, no_boot, 0);
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
		alerts_memory_leave_slope(&alerts->memory, alerts->instance[i]->slope);
		free(alerts->instance[i]);
	}
	alert_rules_free(alerts->rule, alerts->rules);
	free(alerts->own_holds);
	free(alerts);
}

size_t alerts_remember(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns)
{
	alerts->orphans_ns = now_ns + ALERT_ORPHAN_NS;
	return alerts_memory_adopt(&alerts->memory, memory, boot_id, now_ns);
}

void alerts_commit(struct alerts *alerts, const struct source *source, uint64_t t_ns)
{
	if (alerts->orphans_ns > 0 && t_ns >= alerts->orphans_ns) {
		alerts_end_orphans(alerts, t_ns);
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
		if (alerts->matched[metric->id] != (uint64_t)metric->serial + 1) {
			if (work < ALERT_WORK_COMMIT) {
				work += alert_instances_match(alerts, metric, t_ns);
			} else {
				behind = true;
			}
		}
		struct alert_instance *instance = alerts->of[metric->id];
		for (; instance; instance = instance->next) {
			instance->state.ended = metric->ended;
			if (instance->slope) {
				alert_instance_judge_slope(alerts, instance, metric->value, t_ns);
			} else {
				alert_instance_judge(alerts, instance, metric->value, t_ns, 0);
			}
		}
	}
	if (behind && alerts->orphans_ns > 0) {
		alerts->orphans_ns = t_ns + ALERT_ORPHAN_NS; /* its metric may be among them */
	}
	for (struct alert_instance *instance = alerts->absent; instance;
		instance = instance->next) {
		alert_instance_judge_absent(alerts, instance, t_ns);
	}
	for (struct alert_instance *instance = alerts->waiting; instance;
		instance = instance->next) {
		alert_instance_judge_waiting(alerts, instance, t_ns);
	}
}

void alerts_retire(struct alerts *alerts, const struct metric *metric, uint64_t now_ns)
{
	struct alert_instance *instance = alerts->of[metric->id];
	alerts->of[metric->id] = NULL;
	alerts->matched[metric->id] = 0;
	while (instance) {
		struct alert_instance *next = instance->next;
		alert_instance_end(alerts, instance, now_ns, " is gone");
		instance = next;
	}
	for (instance = alerts->absent; instance; instance = instance->next) {
		if (instance->metric == metric) {
			instance->metric = NULL;
		}
	}
}

int alerts_set_rules(
	struct alerts *alerts, const struct alert_rule *rules, size_t count, uint64_t now_ns)
{
	struct alert_rule **fresh;
	int r = alert_rules_copy(rules, count, &fresh);
	if (r < 0) {
		return r;
	}
	alert_rules_keep(fresh, count, alerts->rule, alerts->rules);
	for (size_t i = 0; i < METRICS_MAX; i++) {
		alert_instances_drop(alerts, &alerts->of[i], fresh, count, now_ns);
		alerts->matched[i] = 0;
	}
	alert_instances_drop(alerts, &alerts->absent, fresh, count, now_ns);
	alert_instances_drop(alerts, &alerts->waiting, fresh, count, now_ns);
	alert_rules_free(alerts->rule, alerts->rules);
	alerts->rule = fresh;
	alerts->rules = count;
	alerts_match_set(&alerts->match, fresh, count);
	for (size_t i = 0; i < count; i++) {
		if (fresh[i]->enabled) {
			alert_instances_await(alerts, fresh[i], now_ns);
		}
	}
	return 0;
}

const struct alert *alerts_at(const struct alerts *alerts, size_t index)
{
	if (index < alerts->count) {
		return &alerts->instance[index]->state.alert;
	}
	/* the test is the last one while it fires */
	return index == alerts->count && alerts->test.alert.phase == ALERT_FIRING
		       ? &alerts->test.alert
		       : NULL;
}

const struct alert_rule *alerts_rule_at(const struct alerts *alerts, size_t index)
{
	return index < alerts->rules ? alerts->rule[index] : NULL;
}

bool alerts_knows_rule(const struct alerts *alerts, const char *glob)
{
	bool known = alerts->rules == 0;
	for (size_t i = 0; i < alerts->rules && !known; i++) {
		known = proto_glob_match(glob, alerts->rule[i]->name);
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
			tally.silenced +=
				firing && alert_holds_until(&alerts->holds, alert, now_ns);
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

void alerts_break(struct alerts *alerts)
{
	for (size_t i = 0; i < alerts->count; i++) {
		if (alerts->instance[i]->slope) {
			alert_slope_break(alerts->instance[i]->slope);
		}
	}
}

uint64_t alerts_suppressed(const struct alerts *alerts)
{
	return alerts->suppressed;
}

uint64_t alerts_refused(const struct alerts *alerts)
{
	return alerts->refused;
}
