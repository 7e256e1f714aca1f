/* Who hears of a transition: the timeline, then the observers. */
#include "daemon/core/alerts_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts_text.h"

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

void alerts_tell(struct alerts *alerts, struct alert *alert, enum alert_phase from,
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

void alerts_end_orphans(struct alerts *alerts, uint64_t t_ns)
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
			alerts_tell(alerts, &alert, ALERT_FIRING, alert.severity, " is gone");
		}
		alerts_memory_free(&alerts->memory, slot);
	}
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
