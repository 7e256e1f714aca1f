/* Who hears of a transition: the timeline, then the observers. */
#include "daemon/core/alerts/private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/text.h"

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

/* The entry of the log that the transition belongs to: one that was not sent, of a later state or
 * sent now. 0: it gets an entry of its own. */
static uint64_t entry_of(const struct alerts *alerts, const struct alert *alert,
	const struct alert_transition *transition, struct alert_record *record)
{
	const struct alert_record *last = alert_holds_logged(&alerts->holds, alert->record);
	if (!last || last->serial != alert->record || strcmp(last->rule, record->rule) != 0 ||
		strcmp(last->instance, record->instance) != 0) {
		return 0;
	}
	const bool itself = last->t_ns == record->t_ns && last->to == record->to;
	if (itself) {
		record->from = last->from;
		record->from_severity = last->from_severity;
	}
	return (last->flags & RECORD_SUPPRESSED) || (itself && transition->sent_ns != 0)
		       ? last->serial
		       : 0;
}

static void record_transition(
	struct alerts *alerts, struct alert *alert, const struct alert_transition *transition)
{
	struct alert_record record = {.t_ns = transition->t_ns,
		.sent_ns = transition->sent_ns,
		.value = transition->value,
		.threshold = alert->threshold,
		.from = (uint8_t)transition->from,
		.to = (uint8_t)transition->to,
		.severity = (uint8_t)alert->severity,
		.from_severity = (uint8_t)transition->from_severity,
		.unit = (uint8_t)alert->unit};
	record.flags =
		(uint8_t)((alert->silenced_until_ns ? RECORD_SILENCED : 0) |
			  (alert->acked ? RECORD_ACKED : 0) | (transition->test ? RECORD_TEST : 0) |
			  (transition->update ? RECORD_SUPPRESSED : 0) |
			  (alert->rule->kind == ALERT_SLOPE ? RECORD_PER_MINUTE : 0));
	memcpy(record.rule, alert->rule->name, sizeof(record.rule));
	memcpy(record.instance, alert->instance, sizeof(record.instance));
	memcpy(record.metric, alert->metric, sizeof(record.metric));
	memcpy(record.text, alert->text, sizeof(record.text));
	record.serial = alert->record ? entry_of(alerts, alert, transition, &record) : 0;
	alert->record = alert_holds_log(&alerts->holds, &record);
}

/* What stands behind the text on the timeline. */
static void put_remark(const struct alert_transition *transition, char *ret, size_t size)
{
	const char *word = transition->test	      ? " (test)"
			   : !transition->quiet	      ? ""
			   : transition->alert->acked ? " (acknowledged)"
						      : " (silenced)";
	snprintf(ret, size, "%s", word);
	if (transition->sent_ns != 0) {
		snprintf(ret, size, " (sent %.0f s later)",
			(double)(transition->sent_ns - transition->t_ns) / 1e9);
	}
}

static void put_on_timeline(
	struct alerts *alerts, const struct alert *alert, const struct alert_transition *transition)
{
	char subject[2 * PROTO_NAME_SIZE], remark[64];
	alert_subject(alert, subject);
	put_remark(transition, remark, sizeof(remark));
	timeline_add(alerts->timeline, transition->t_ns,
		transition->quiet ? TIMELINE_SILENCED : TIMELINE_ALERT,
		transition->quiet ? TIMELINE_INFO : alert_timeline_level(alert), subject, "%s%s",
		alert->text, remark);
}

void alerts_dispatch(
	struct alerts *alerts, struct alert *alert, const struct alert_transition *transition)
{
	if (!transition->update) {
		put_on_timeline(alerts, alert, transition);
		record_transition(alerts, alert, transition);
	}
	for (size_t i = 0; i < alerts->observers; i++) {
		alerts->observer[i].call(alerts->observer[i].ctx, transition);
	}
}

void alerts_send(struct alerts *alerts, struct alert *alert, const struct alert_notifier *sent,
	uint64_t sent_ns)
{
	const uint64_t now_ns = sent_ns ? sent_ns : alert->t_ns;
	struct alert_transition transition = {.alert = alert,
		.from = (enum alert_phase)sent->phase,
		.to = alert->phase,
		.from_severity = (enum alert_severity)sent->severity,
		.t_ns = sent_ns ? alert->since_ns : now_ns,
		.sent_ns = sent_ns,
		.value = sent->value};
	alerts_text_suppressed(alert->text, sizeof(alert->text), sent->suppressed);
	alert_hold_judge(alerts, alert, &transition, now_ns);
	alerts_dispatch(alerts, alert, &transition);
	if (alert->phase != ALERT_FIRING) {
		alert->acked = alert->untold = false;
		alert->silenced_until_ns = 0;
	}
}

void alerts_suppress(struct alerts *alerts, struct alert *alert, enum alert_phase from,
	enum alert_severity from_severity, bool logged)
{
	const struct alert_transition transition = {.alert = alert,
		.from = from,
		.to = alert->phase,
		.from_severity = from_severity,
		.t_ns = alert->t_ns,
		.value = alert->value,
		.quiet = true,
		.update = true};
	if (logged) {
		record_transition(alerts, alert, &transition);
	}
	alerts_dispatch(alerts, alert, &transition);
}

void alerts_end(struct alerts *alerts, struct alert *alert, enum alert_phase phase,
	const struct alert_notifier *notifier, const char *ending)
{
	struct alert_notifier sent = *notifier;
	sent.value = alert->value;
	alerts_text(alert, ending, alert->text, sizeof(alert->text));
	if (sent.phase == ALERT_FIRING) {
		alerts_send(alerts, alert, &sent, 0);
	} else if (phase == ALERT_FIRING) {
		alerts_suppress(alerts, alert, phase, alert->severity, true);
	}
}

void alerts_end_orphans(struct alerts *alerts, uint64_t t_ns)
{
	int slot;
	alerts->orphans_ns = 0;
	alert_instances_end_waiting(alerts, t_ns);
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
			.record = saved->record,
			.untold = (saved->holds & SLOT_UNTOLD) != 0,
			.since_ns = t_ns,
			.t_ns = t_ns};
		snprintf(rule.name, sizeof(rule.name), "%s", saved->name);
		snprintf(alert.instance, sizeof(alert.instance), "%s", saved->instance);
		snprintf(alert.metric, sizeof(alert.metric), "%s", saved->metric);
		alerts_end(alerts, &alert, (enum alert_phase)saved->phase, &saved->notifier,
			" is gone");
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
