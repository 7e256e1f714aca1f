/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c: decides who is notified of an alert's transitions: the log and the timeline, then the
 * observers, unless an override mutes the alert or its limit defers the notification. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/core/alerts/text.h"
#include "proto/text.h"

void alert_subject(const char *rule, const char *instance, char ret[2 * PROTO_NAME_SIZE])
{
	snprintf(ret, 2 * PROTO_NAME_SIZE, "%s%s%.*s", rule, instance[0] ? ":" : "", PROTO_NAME_MAX,
		instance);
}

static void put_on_timeline(
	struct alerts *alerts, const struct alert *alert, const struct alert_transition *transition)
{
	static const enum timeline_level levels[] = {[ALERT_INFO] = TIMELINE_INFO,
		[ALERT_WARNING] = TIMELINE_WARNING,
		[ALERT_CRITICAL] = TIMELINE_CRITICAL};
	char subject[2 * PROTO_NAME_SIZE], remark[64];
	const bool single = strcmp(alert->instance, "_") == 0;
	alert_subject(alert->rule->name, single ? "" : alert->instance, subject);
	snprintf(remark, sizeof(remark), "%s",
		transition->test	? " (test)"
		: !transition->quiet	? ""
		: alert->notifier.acked ? " (acknowledged)"
					: " (silenced)");
	if (transition->sent_ns != 0) {
		snprintf(remark, sizeof(remark), " (sent %s later)",
			text_span((transition->sent_ns - transition->t_ns) / 1000000000).text);
	}
	timeline_add(alerts->timeline, transition->t_ns,
		transition->quiet ? TIMELINE_SILENCED : TIMELINE_ALERT,
		transition->quiet || alert->phase != ALERT_FIRING ? TIMELINE_INFO
								  : levels[alert->severity],
		subject, "%s%s", alert->text, remark);
}

/* The entry of the log that the transition belongs to: one that was not sent, of a later state or
 * sent now. 0: it gets an entry of its own. */
static uint64_t entry_of(const struct alerts *alerts, const struct alert *alert,
	const struct alert_transition *transition, struct alert_record *record)
{
	const struct alert_record *last = overrides_logged(&alerts->overrides, alert->record);
	if (!last || last->serial != alert->record || strcmp(last->rule, record->rule) != 0 ||
		strcmp(last->instance, record->instance) != 0) {
		return 0;
	}
	const bool same = last->t_ns == record->t_ns && last->to == record->to;
	if (same) {
		record->from = last->from;
		record->from_severity = last->from_severity;
	}
	return (last->flags & RECORD_SUPPRESSED) || (same && transition->sent_ns != 0)
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
	record.flags = (uint8_t)((alert->notifier.muted_until_ns ? RECORD_SILENCED : 0) |
				 (alert->notifier.acked ? RECORD_ACKED : 0) |
				 (transition->test ? RECORD_TEST : 0) |
				 (transition->update ? RECORD_SUPPRESSED : 0) |
				 (alert->rule->kind == ALERT_SLOPE ? RECORD_PER_MINUTE : 0));
	memcpy(record.rule, alert->rule->name, sizeof(record.rule));
	memcpy(record.instance, alert->instance, sizeof(record.instance));
	memcpy(record.metric, alert->metric, sizeof(record.metric));
	memcpy(record.text, alert->text, sizeof(record.text));
	record.serial = alert->record ? entry_of(alerts, alert, transition, &record) : 0;
	alert->record = overrides_log(&alerts->overrides, &record);
}

static void dispatch(
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

void alert_drop_ack(struct alerts *alerts, const struct alert *alert)
{
	struct alert_ack *ack =
		overrides_ack(&alerts->overrides, alert->rule->name, alert->instance);
	if (ack) {
		overrides_drop(&ack->serial);
	}
}

/* Whether anybody is to be notified of the transition, by the overrides of now. */
static void apply_overrides(struct alerts *alerts, struct alert *alert,
	struct alert_transition *transition, uint64_t now_ns)
{
	struct notifier *notifier = &alert->notifier;
	notifier->muted_until_ns = overrides_muted_until(&alerts->overrides, alert, now_ns);
	if (transition->to != ALERT_FIRING) {
		transition->quiet = notifier->missed;
		alert_drop_ack(alerts, alert);
		return;
	}
	const bool begins = transition->from != ALERT_FIRING;
	if (begins || alert->severity > transition->from_severity) {
		alert_drop_ack(alerts, alert);
		notifier->acked = false;
	}
	transition->quiet = notifier->muted_until_ns != 0 || notifier->acked;
	if (begins) {
		notifier->missed = transition->quiet;
	} else if (!transition->quiet) {
		notifier->missed = false;
	}
}

static struct alert_transition transition_from(struct alerts *alerts, const struct alert *alert,
	const struct notified *from, uint64_t t_ns)
{
	return (struct alert_transition){.alert = alert,
		.from = (enum alert_phase)from->phase,
		.to = alert->phase,
		.from_severity = (enum alert_severity)from->severity,
		.t_ns = t_ns,
		.value = from->value,
		.test = alert->test ? &alerts->test : NULL};
}

/* Sends the present state, whose text is made; from is what was sent before, with the value of now.
 * sent_ns: now, of what happened earlier; 0 = it happens now. */
static void send(
	struct alerts *alerts, struct alert *alert, const struct notified *from, uint64_t sent_ns)
{
	struct alert_transition transition =
		transition_from(alerts, alert, from, sent_ns ? alert->since_ns : alert->t_ns);
	transition.sent_ns = sent_ns;
	alert_text_suppressed(alert, from->suppressed);
	if (!alert->test) {
		apply_overrides(alerts, alert, &transition, sent_ns ? sent_ns : alert->t_ns);
	}
	dispatch(alerts, alert, &transition);
	if (alert->phase != ALERT_FIRING) {
		alert->notifier.acked = alert->notifier.missed = false;
		alert->notifier.muted_until_ns = 0;
	}
}

/* Nobody is notified of this change: observers only get the state. */
static void suppress(struct alerts *alerts, struct alert *alert, const struct notified *from,
	uint64_t t_ns, bool logged)
{
	struct alert_transition transition = transition_from(alerts, alert, from, t_ns);
	transition.value = alert->value;
	transition.quiet = transition.update = true;
	if (logged) {
		record_transition(alerts, alert, &transition);
	}
	dispatch(alerts, alert, &transition);
}

void alerts_set_comment(struct alerts *alerts, alert_comment *comment, void *ctx)
{
	alerts->comment = comment;
	alerts->comment_ctx = ctx;
}

/* The text of the present state. */
static void write_text(struct alerts *alerts, struct alert *alert)
{
	alert_text(alert, NULL);
	const char *comment =
		alerts->comment && alert->phase == ALERT_FIRING && !alert->test
			? alerts->comment(alerts->comment_ctx, alert->metric, alert->t_ns)
			: NULL;
	if (comment) {
		alert_text_comment(alert, comment);
	}
}

static bool is_step_down(const struct alert *alert)
{
	const struct notified *last = &alert->notifier.last;
	return alert->phase == ALERT_FIRING && last->phase == ALERT_FIRING &&
	       (uint32_t)alert->severity < last->severity;
}

/* Sends the present state when it differs from what was sent and the limit allows it; else that is
 * tried again when the limit does. from: the state before, when it changed just now; else NULL. */
static void notify(
	struct alerts *alerts, struct alert *alert, const struct notified *from, uint64_t t_ns)
{
	struct notified *last = &alert->notifier.last;
	struct notified sent = *last;
	const bool pending = alert_notify_pending(alert);
	/* a step down that waited for its value happens when it has it */
	const bool now = from || is_step_down(alert);
	const bool counts = pending || !is_step_down(alert);
	uint64_t next_allowed_ns = UINT64_MAX;
	if (now) {
		last->value = sent.value = alert->value;
		write_text(alerts, alert);
	}
	if (pending && alert_notify_admit(alert, t_ns, &next_allowed_ns)) {
		sent.suppressed -= !now && sent.suppressed > 0; /* this change */
		last->suppressed = 0;
		send(alerts, alert, &sent, now ? 0 : t_ns);
		return;
	}
	if (pending && next_allowed_ns < alerts->deferred_ns) {
		alerts->deferred_ns = next_allowed_ns;
	}
	if (from) {
		last->suppressed += counts;
		suppress(alerts, alert, from, alert->t_ns, counts);
	}
}

/* A metric that counts only what is past a limit of its own (a stage's growth; that of a state is
 * only its highest) says which, and is 0 in between: the alert shows what it fired for. */
static void show_own_limit(struct alert *alert, const struct metric *metric)
{
	if (!metric || metric->unit == UNIT_STATE || isnan(metric->limit)) {
		return;
	}
	alert->threshold = metric->limit;
	if (alert->phase == ALERT_FIRING && !alert_is_past(alert, alert->rule->threshold)) {
		alert->value = alert->notifier.last.value;
	}
}

void alert_evaluate(struct alerts *alerts, struct alert_state *state, const struct metric *metric,
	double value, uint64_t t_ns, uint64_t hold_ns)
{
	struct notified from = {0};
	struct alert *alert = &state->alert;
	const bool changed = alert_state_step(state, value, t_ns, hold_ns, &from);
	show_own_limit(alert, metric);
	if (changed || alert_notify_pending(alert)) {
		notify(alerts, alert, changed ? &from : NULL, alert->t_ns);
	}
}

void alerts_flush_deferred(struct alerts *alerts, uint64_t t_ns)
{
	alerts->deferred_ns = UINT64_MAX;
	for (size_t i = 0; i < alerts->count; i++) {
		struct alert_instance *instance = alerts->instance[i];
		struct alert *alert = &instance->state.alert;
		if (alert_notify_pending(alert)) {
			alert->t_ns = t_ns > alert->t_ns ? t_ns : alert->t_ns;
			notify(alerts, alert, NULL, alert->t_ns);
			instance->slot =
				alert_store_put(&alerts->store, instance->slot, &instance->state);
		}
	}
}

void alert_end(
	struct alerts *alerts, struct alert_state *state, uint64_t now_ns, const char *ending)
{
	struct alert *alert = &state->alert;
	struct notified last = alert->notifier.last;
	const struct notified from = {
		.phase = (uint32_t)alert->phase, .severity = (uint32_t)alert->severity};
	alert->transitions += alert->phase == ALERT_FIRING;
	alert->phase = ALERT_OK;
	alert->t_ns = now_ns > alert->t_ns ? now_ns : alert->t_ns;
	alert->since_ns = alert->t_ns;
	alert->since_us = 0;
	last.value = alert->value;
	alert_text(alert, ending);
	if (last.phase == ALERT_FIRING) {
		send(alerts, alert, &last, 0);
	} else if (from.phase == ALERT_FIRING) {
		suppress(alerts, alert, &from, alert->t_ns, true);
	}
}

void alert_refresh(struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns)
{
	struct alert *alert = &instance->state.alert;
	struct notifier *notifier = &alert->notifier;
	if (alert->phase != ALERT_FIRING) {
		return;
	}
	const uint64_t until_ns = overrides_muted_until(&alerts->overrides, alert, now_ns);
	const bool acked =
		overrides_ack(&alerts->overrides, alert->rule->name, alert->instance) != NULL;
	/* nobody was notified, or only of something less bad */
	const bool missed = notifier->missed || notifier->muted_until_ns != 0;
	const bool admitted = notifier->last.phase == ALERT_FIRING; /* else the limit defers it */
	const bool due = missed && admitted && until_ns == 0 && !acked;
	if (!due && until_ns == notifier->muted_until_ns && acked == notifier->acked) {
		return;
	}
	notifier->muted_until_ns = until_ns;
	notifier->acked = acked;
	notifier->missed = notifier->missed && !due;
	const struct notified from = {.phase = due ? ALERT_OK : ALERT_FIRING,
		.severity = (uint32_t)alert->severity,
		.value = notifier->last.value};
	if (due) {
		send(alerts, alert, &from, alert->since_ns < now_ns ? now_ns : 0);
	} else {
		suppress(alerts, alert, &from, alert->since_ns, false);
	}
	instance->slot = alert_store_put(&alerts->store, instance->slot, &instance->state);
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
	size_t count = 0;
	for (size_t i = 0; i < alerts->observers; i++) {
		if (alerts->observer[i].ctx != ctx) {
			alerts->observer[count++] = alerts->observer[i];
		}
	}
	alerts->observers = count;
}
