/* Who hears of a transition: the timeline, then the observers. */
#include "daemon/core/alerts_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts_text.h"

enum timeline_level alert_timeline_level(const struct alert *alert)
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

void alert_subject(const struct alert *alert, char ret[2 * PROTO_NAME_SIZE])
{
	bool single = strcmp(alert->instance, "_") == 0;
	snprintf(ret, 2 * PROTO_NAME_SIZE, "%s%s%.*s", alert->rule->name, single ? "" : ":",
		PROTO_NAME_MAX, single ? "" : alert->instance);
}

static void record_transition(struct alerts *alerts, const struct alert_transition *transition)
{
	const struct alert *alert = transition->alert;
	struct alert_record record = {.t_ns = transition->t_ns,
		.value = alert->value,
		.threshold = alert->threshold,
		.from = (uint8_t)transition->from,
		.to = (uint8_t)transition->to,
		.severity = (uint8_t)alert->severity,
		.from_severity = (uint8_t)transition->from_severity,
		.unit = (uint8_t)alert->unit};
	record.flags =
		(uint8_t)((alert->silenced_until_ns ? RECORD_SILENCED : 0) |
			  (alert->acked ? RECORD_ACKED : 0) | (transition->test ? RECORD_TEST : 0) |
			  (transition->late ? RECORD_LATE : 0));
	memcpy(record.rule, alert->rule->name, sizeof(record.rule));
	memcpy(record.instance, alert->instance, sizeof(record.instance));
	memcpy(record.metric, alert->metric, sizeof(record.metric));
	memcpy(record.text, alert->text, sizeof(record.text));
	alert_holds_log(&alerts->holds, &record);
}

/* What stands behind the text on the timeline. */
static const char *remark(const struct alert_transition *transition)
{
	if (transition->test) {
		return " (test)";
	}
	if (transition->late) {
		return " (told now: no longer silenced)";
	}
	if (!transition->quiet) {
		return "";
	}
	return transition->alert->acked ? " (acknowledged)" : " (silenced)";
}

void alerts_hand_on(struct alerts *alerts, const struct alert_transition *transition)
{
	const struct alert *alert = transition->alert;
	if (!transition->update) {
		char subject[2 * PROTO_NAME_SIZE];
		alert_subject(alert, subject);
		timeline_add(alerts->timeline, transition->t_ns,
			transition->quiet ? TIMELINE_SILENCED : TIMELINE_ALERT,
			transition->quiet ? TIMELINE_INFO : alert_timeline_level(alert), subject,
			"%s%s", alert->text, remark(transition));
		record_transition(alerts, transition);
	}
	for (size_t i = 0; i < alerts->observers; i++) {
		alerts->observer[i].call(alerts->observer[i].ctx, transition);
	}
}

void alerts_tell(struct alerts *alerts, struct alert *alert, enum alert_phase from,
	enum alert_severity from_severity, const char *ending)
{
	alerts_text(alert, ending, alert->text, sizeof(alert->text));
	struct alert_transition transition = {.alert = alert,
		.from = from,
		.to = alert->phase,
		.from_severity = from_severity,
		.t_ns = alert->t_ns};
	alert_hold_judge(alerts, alert, &transition);
	alerts_hand_on(alerts, &transition);
	if (alert->phase != ALERT_FIRING) {
		alert->acked = alert->untold = false;
		alert->silenced_until_ns = 0;
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
			.untold = (saved->holds & SLOT_UNTOLD) != 0,
			.since_ns = t_ns,
			.t_ns = t_ns};
		snprintf(rule.name, sizeof(rule.name), "%s", saved->name);
		snprintf(alert.instance, sizeof(alert.instance), "%s", saved->instance);
		snprintf(alert.metric, sizeof(alert.metric), "%s", saved->metric);
		if (saved->told.phase == ALERT_FIRING) {
			alerts_tell(alerts, &alert, ALERT_FIRING,
				(enum alert_severity)saved->told.severity, " is gone");
		}
		alerts_memory_free(&alerts->memory, slot);
	}
	alerts_memory_drop_slopes(&alerts->memory);
	alert_holds_prune(alerts);
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
