/* Which rules judge which metrics, and who hears of it. Matching globs is done once for a metric
 * (until the rules change); a commit then only walks the alerts of its metrics. Absent rules are
 * looked at on every commit of any source: what they wait for does not commit. */
#include "daemon/core/alerts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts_memory.h"
#include "daemon/core/alerts_rules.h"
#include "daemon/core/alerts_state.h"
#include "daemon/core/alerts_text.h"
#include "daemon/util/seam.h"

struct instance {
	struct alert_state state;
	const struct metric *metric; /* NULL: gone or not there yet (absent rules only) */
	struct instance *next;	     /* of the same metric, or of all absent rules */
	int slot;		     /* in what is remembered; -1 = none */
};

struct alerts {
	struct metrics *metrics;
	struct timeline *timeline;
	size_t rules;
	struct alert_rule **rule;
	size_t count;
	struct instance *instance[ALERT_INSTANCES_MAX];
	/* By slot of the metric: serial + 1 of the one whose rules were looked up (0 = none yet),
	 * and its instances. */
	uint64_t matched[METRICS_MAX];
	struct instance *of[METRICS_MAX];
	struct instance *absent;
	uint64_t refused;
	struct alerts_memory memory;
	uint64_t orphans_ns; /* when what nobody took up ends; 0 = there is none */
	size_t observers;
	struct {
		alert_observer *call;
		void *ctx;
	} observer[ALERT_OBSERVERS];
};

int alerts_create(struct metrics *metrics, struct timeline *timeline, struct alerts **ret)
{
	struct alerts *alerts = mem_zalloc(sizeof(*alerts));
	if (!alerts) {
		return -ENOMEM;
	}
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
		free(alerts->instance[i]);
	}
	alert_rules_free(alerts->rule, alerts->rules);
	free(alerts);
}

static enum timeline_level timeline_level_of(const struct alert *alert)
{
	if (alert->phase != ALERT_FIRING) {
		return TIMELINE_INFO;
	}
	switch (alert->severity) {
	case ALERT_INFO:
		return TIMELINE_INFO;
	case ALERT_WARNING:
		return TIMELINE_WARNING;
	case ALERT_CRITICAL:
		break;
	}
	return TIMELINE_CRITICAL;
}

static void tell(struct alerts *alerts, struct alert *alert, enum alert_phase from,
	enum alert_severity from_severity, const char *ending)
{
	char subject[2 * PROTO_NAME_SIZE];
	alerts_text(alert, ending, alert->text, sizeof(alert->text));
	bool single = strcmp(alert->instance, "_") == 0;
	snprintf(subject, sizeof(subject), "%s%s%.*s", alert->rule->name, single ? "" : ":",
		PROTO_NAME_MAX, single ? "" : alert->instance);
	timeline_add(alerts->timeline, alert->t_ns, TIMELINE_ALERT, timeline_level_of(alert),
		subject, "%s", alert->text);
	struct alert_transition transition = {.alert = alert,
		.from = from,
		.to = alert->phase,
		.from_severity = from_severity,
		.t_ns = alert->t_ns};
	for (size_t i = 0; i < alerts->observers; i++) {
		alerts->observer[i].call(alerts->observer[i].ctx, &transition);
	}
}

static void judge(struct alerts *alerts, struct instance *instance, double value, uint64_t t_ns,
	uint64_t hold_ns)
{
	enum alert_phase from;
	enum alert_severity from_severity;
	if (alert_state_step(&instance->state, value, t_ns, hold_ns, &from, &from_severity)) {
		tell(alerts, &instance->state.alert, from, from_severity, NULL);
	}
	/* after it was told: killed in between, it is told twice rather than never */
	instance->slot = alerts_memory_store(&alerts->memory, instance->slot, &instance->state);
}

/* A firing alert ends with a transition whatever the hold times say. */
static void end_instance(
	struct alerts *alerts, struct instance *instance, uint64_t now_ns, const char *ending)
{
	struct alert *alert = &instance->state.alert;
	if (alert->phase == ALERT_FIRING) {
		enum alert_severity severity = alert->severity;
		alert->phase = ALERT_OK;
		alert->t_ns = now_ns > alert->t_ns ? now_ns : alert->t_ns;
		alert->since_ns = alert->t_ns;
		alert->transitions++;
		tell(alerts, alert, ALERT_FIRING, severity, ending);
	}
	alerts_memory_free(&alerts->memory, instance->slot);
	size_t at = 0;
	while (alerts->instance[at] != instance) {
		at++;
	}
	alerts->count--;
	memmove(alerts->instance + at, alerts->instance + at + 1,
		(alerts->count - at) * sizeof(alerts->instance[0]));
	free(instance);
}

/* The list an instance of the rule over the metric belongs to. */
static struct instance **list_of(
	struct alerts *alerts, const struct alert_rule *rule, const struct metric *metric)
{
	return rule->kind == ALERT_ABSENT ? &alerts->absent : &alerts->of[metric->id];
}

static void add_instance(struct alerts *alerts, const struct alert_rule *rule, const char *name,
	const struct metric *metric, uint64_t t_ns)
{
	struct instance **list = list_of(alerts, rule, metric);
	for (struct instance *known = *list; known; known = known->next) {
		if (known->state.alert.rule == rule &&
			strcmp(known->state.alert.metric, name) == 0) {
			known->metric = metric;
			known->state.alert.unit = metric ? metric->unit : UNIT_NONE;
			return;
		}
	}
	struct instance *instance = NULL;
	if (alerts->count < ALERT_INSTANCES_MAX) {
		instance = mem_zalloc(sizeof(*instance));
	}
	if (!instance) {
		alerts->refused++;
		return;
	}
	struct alert *alert = &instance->state.alert;
	if (proto_glob_instance(rule->metric, name, alert->instance, sizeof(alert->instance)) < 0) {
		snprintf(alert->instance, sizeof(alert->instance), "_");
	}
	snprintf(alert->metric, sizeof(alert->metric), "%s", name);
	alert->rule = rule;
	alert->unit = metric ? metric->unit : UNIT_NONE;
	alert_state_init(&instance->state, t_ns);
	instance->slot = alerts_memory_take(&alerts->memory, &instance->state);
	instance->metric = metric;
	instance->next = *list;
	*list = instance;
	alerts->instance[alerts->count++] = instance;
}

static void match_metric(struct alerts *alerts, const struct metric *metric, uint64_t t_ns)
{
	for (size_t i = 0; i < alerts->rules; i++) {
		const struct alert_rule *rule = alerts->rule[i];
		if (rule->enabled && proto_glob_match(rule->metric, metric->name)) {
			add_instance(alerts, rule, metric->name, metric, t_ns);
		}
	}
	alerts->matched[metric->id] = (uint64_t)metric->serial + 1;
}

static void judge_absent(struct alerts *alerts, struct instance *instance, uint64_t t_ns)
{
	const struct metric *metric = instance->metric;
	double value = metric ? metric->value : NAN;
	if (metric && source_state_at(metric->source, t_ns) == SOURCE_STALE) {
		value = NAN;
	}
	bool known = metric && metric->t_ns != 0;
	judge(alerts, instance, value, t_ns, known ? 0 : ALERT_ABSENT_GRACE_NS);
}

/* Ends what the last process left firing and nobody judges any more: its rule or its metric did not
 * come back. */
static void end_orphans(struct alerts *alerts, uint64_t t_ns)
{
	int slot;
	alerts->orphans_ns = 0;
	while ((slot = alerts_memory_orphan(&alerts->memory)) >= 0) {
		const struct alert_slot *saved = &alerts->memory.slot[slot];
		struct alert_rule rule = {.clear = NAN, .critical = NAN};
		struct alert alert = {.rule = &rule,
			.phase = ALERT_OK,
			.severity = (enum alert_severity)saved->severity,
			.value = NAN,
			.threshold = saved->threshold,
			.unit = (enum unit)saved->unit,
			.transitions = saved->transitions + 1,
			.since_ns = t_ns,
			.t_ns = t_ns};
		snprintf(rule.name, sizeof(rule.name), "%s", saved->name);
		snprintf(alert.instance, sizeof(alert.instance), "%s", saved->instance);
		snprintf(alert.metric, sizeof(alert.metric), "%s", saved->metric);
		if (saved->phase == ALERT_FIRING) {
			tell(alerts, &alert, ALERT_FIRING, alert.severity, " is gone");
		}
		alerts_memory_free(&alerts->memory, slot);
	}
}

void alerts_remember(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns)
{
	alerts_memory_adopt(&alerts->memory, memory, boot_id, now_ns);
	alerts->orphans_ns = now_ns + ALERT_ORPHAN_NS;
}

void alerts_commit(struct alerts *alerts, const struct source *source, uint64_t t_ns)
{
	if (alerts->orphans_ns > 0 && t_ns >= alerts->orphans_ns) {
		end_orphans(alerts, t_ns);
	}
	for (size_t i = 0; i < source->metrics; i++) {
		const struct metric *metric = metrics_of(alerts->metrics, source, i);
		if (alerts->matched[metric->id] != (uint64_t)metric->serial + 1) {
			match_metric(alerts, metric, t_ns);
		}
		struct instance *instance = alerts->of[metric->id];
		for (; instance; instance = instance->next) {
			judge(alerts, instance, metric->value, t_ns, 0);
		}
	}
	for (struct instance *instance = alerts->absent; instance; instance = instance->next) {
		judge_absent(alerts, instance, t_ns);
	}
}

void alerts_retire(struct alerts *alerts, const struct metric *metric, uint64_t now_ns)
{
	struct instance *instance = alerts->of[metric->id];
	alerts->of[metric->id] = NULL;
	alerts->matched[metric->id] = 0;
	while (instance) {
		struct instance *next = instance->next;
		end_instance(alerts, instance, now_ns, " is gone");
		instance = next;
	}
	for (instance = alerts->absent; instance; instance = instance->next) {
		if (instance->metric == metric) {
			instance->metric = NULL;
		}
	}
}

/* Drops the instances of rules that are not among the new ones. */
static void drop_instances(struct alerts *alerts, struct instance **list,
	struct alert_rule *const *rules, size_t count, uint64_t now_ns)
{
	while (*list) {
		struct instance *instance = *list;
		bool kept = false;
		for (size_t i = 0; i < count; i++) {
			kept = kept || rules[i] == instance->state.alert.rule;
		}
		if (kept) {
			list = &instance->next;
			continue;
		}
		*list = instance->next;
		end_instance(alerts, instance, now_ns, ": the rule was changed or removed");
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
		drop_instances(alerts, &alerts->of[i], fresh, count, now_ns);
		alerts->matched[i] = 0;
	}
	drop_instances(alerts, &alerts->absent, fresh, count, now_ns);
	alert_rules_free(alerts->rule, alerts->rules);
	alerts->rule = fresh;
	alerts->rules = count;
	for (size_t i = 0; i < count; i++) {
		const struct alert_rule *rule = fresh[i];
		if (rule->enabled && rule->kind == ALERT_ABSENT && proto_path_valid(rule->metric)) {
			add_instance(alerts, rule, rule->metric,
				metrics_find(alerts->metrics, rule->metric), now_ns);
		}
	}
	return 0;
}

const struct alert *alerts_at(const struct alerts *alerts, size_t index)
{
	return index < alerts->count ? &alerts->instance[index]->state.alert : NULL;
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

int alerts_observe(struct alerts *alerts, alert_observer *observer, void *ctx)
{
	if (alerts->observers == ALERT_OBSERVERS) {
		return -ENOSPC;
	}
	alerts->observer[alerts->observers].call = observer;
	alerts->observer[alerts->observers].ctx = ctx;
	alerts->observers++;
	return 0;
}

void alerts_unobserve(struct alerts *alerts, void *ctx)
{
	size_t kept = 0;
	for (size_t i = 0; i < alerts->observers; i++) {
		if (alerts->observer[i].ctx != ctx) {
			alerts->observer[kept++] = alerts->observer[i];
		}
	}
	alerts->observers = kept;
}
