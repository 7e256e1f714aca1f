/* One instance judged at one moment, and notified of when people know something else of it. */
#include "daemon/core/alerts/private.h"

#include <math.h>

#include "daemon/core/alerts/text.h"

static bool is_step_down(const struct alert_state *state)
{
	return state->alert.phase == ALERT_FIRING && state->notifier.phase == ALERT_FIRING &&
	       (uint32_t)state->alert.severity < state->notifier.severity;
}

/* Sends the present state when people do not know it and the limit allows it; else it is looked at
 * again when the limit does. from: the state before, when it changed just now; else NULL. */
static void notify(struct alerts *alerts, struct alert_instance *instance,
	const struct alert_notifier *from, uint64_t t_ns)
{
	struct alert_state *state = &instance->state;
	struct alert *alert = &state->alert;
	struct alert_notifier *notifier = &state->notifier;
	struct alert_notifier sent = *notifier;
	const bool pending = alert_notify_pending(state);
	/* a step down that waited for its value happens when it has it */
	const bool now = from || is_step_down(state);
	uint64_t due_ns;
	if (now) {
		notifier->value = sent.value = alert->value;
		alerts_text(alert, NULL, alert->text, sizeof(alert->text));
	}
	if (pending && alert_notify_take(state, t_ns, &due_ns)) {
		sent.suppressed -= !now && sent.suppressed > 0; /* itself */
		notifier->suppressed = 0;
		alerts_send(alerts, alert, &sent, now ? 0 : t_ns);
		return;
	}
	if (pending) {
		alerts->deferred_ns = due_ns < alerts->deferred_ns ? due_ns : alerts->deferred_ns;
	}
	if (from) {
		notifier->suppressed += pending || !is_step_down(state);
		alerts->suppressed += pending;
		alerts_suppress(alerts, alert, (enum alert_phase)from->phase,
			(enum alert_severity)from->severity, pending || !is_step_down(state));
	}
}

/* A metric that counts only what is past a limit of its own (a stage's growth; that of a state is
 * only its highest) says which, and is 0 in between: the alert shows what it fired for. */
static void show_own_limit(struct alert_state *state, const struct metric *metric)
{
	struct alert *alert = &state->alert;
	if (!metric || metric->unit == UNIT_STATE || isnan(metric->limit)) {
		return;
	}
	alert->threshold = metric->limit;
	if (alert->phase == ALERT_FIRING && !alert_is_past(alert, alert->rule->threshold)) {
		alert->value = state->notifier.value;
	}
}

void alert_instance_judge(struct alerts *alerts, struct alert_instance *instance, double value,
	uint64_t t_ns, uint64_t hold_ns)
{
	enum alert_phase from;
	enum alert_severity from_severity;
	struct alert_state *state = &instance->state;
	bool changed = alert_state_step(state, value, t_ns, hold_ns, &from, &from_severity);
	show_own_limit(state, instance->metric);
	if (changed || alert_notify_pending(state)) {
		const struct alert_notifier before = {
			.phase = (uint32_t)from, .severity = (uint32_t)from_severity};
		notify(alerts, instance, changed ? &before : NULL, state->alert.t_ns);
	}
	/* after it was sent: killed in between, it is sent twice rather than never */
	instance->slot = alerts_memory_store(&alerts->memory, instance->slot, state);
}

void alert_instance_judge_slope(
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
	alert_instance_judge(alerts, instance, instance->slope->slope, t_ns, 0);
}

/* A metric that is there again may not have been looked up yet. */
void alert_instance_judge_absent(
	struct alerts *alerts, struct alert_instance *instance, uint64_t t_ns)
{
	const struct metric *metric =
		instance->metric ? instance->metric
				 : metrics_find(alerts->metrics, instance->state.alert.metric);
	double value = metric ? metric->value : NAN;
	if (metric && source_state_at(metric->source, t_ns) == SOURCE_STALE) {
		value = NAN;
	}
	bool known = metric && metric->t_ns != 0;
	alert_instance_judge(alerts, instance, value, t_ns, known ? 0 : ALERT_ABSENT_GRACE_NS);
}

void alert_instance_judge_waiting(
	struct alerts *alerts, struct alert_instance *instance, uint64_t t_ns)
{
	const double value = instance->state.alert.value;
	if (!isnan(value)) {
		alert_instance_judge(alerts, instance, value, t_ns, 0);
	}
}

void alerts_flush_deferred(struct alerts *alerts, uint64_t t_ns)
{
	alerts->deferred_ns = UINT64_MAX;
	for (size_t i = 0; i < alerts->count; i++) {
		struct alert_instance *instance = alerts->instance[i];
		struct alert *alert = &instance->state.alert;
		if (alert_notify_pending(&instance->state)) {
			alert->t_ns = t_ns > alert->t_ns ? t_ns : alert->t_ns;
			notify(alerts, instance, NULL, alert->t_ns);
			instance->slot = alerts_memory_store(
				&alerts->memory, instance->slot, &instance->state);
		}
	}
}
