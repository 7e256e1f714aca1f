/* One instance judged at one moment, and told when the world has heard something else of it. */
#include "daemon/core/alerts_private.h"

#include <math.h>

#include "daemon/core/alerts_text.h"

/* Tells the present state when it differs from what was told and the limit allows it; else it is
 * looked at again when the limit does. changed: there was a transition just now. */
static void settle(
	struct alerts *alerts, struct alert_instance *instance, bool changed, uint64_t t_ns)
{
	struct alert_state *state = &instance->state;
	struct alert *alert = &state->alert;
	const struct alert_told told = state->told;
	uint64_t due_ns;
	if (!alert_limit_differs(state)) {
		alert->withheld += changed; /* back at what was told, with nothing told between */
	} else if (alert_limit_take(state, t_ns, &due_ns)) {
		/* what is told now is one of those withheld, unless it is new */
		alert->withheld -= !changed && alert->withheld > 0;
		alerts_tell(alerts, alert, (enum alert_phase)told.phase,
			(enum alert_severity)told.severity, NULL);
		alert->withheld = 0;
		return;
	} else {
		alert->withheld += changed;
		alerts->withheld += changed;
		alerts->owed_ns = due_ns < alerts->owed_ns ? due_ns : alerts->owed_ns;
	}
	if (changed) {
		alerts_text(alert, NULL, alert->text, sizeof(alert->text));
	}
}

void alert_instance_judge(struct alerts *alerts, struct alert_instance *instance, double value,
	uint64_t t_ns, uint64_t hold_ns)
{
	enum alert_phase from;
	enum alert_severity from_severity;
	bool changed =
		alert_state_step(&instance->state, value, t_ns, hold_ns, &from, &from_severity);
	if (changed || alert_limit_differs(&instance->state)) {
		settle(alerts, instance, changed, instance->state.alert.t_ns);
	}
	/* after it was told: killed in between, it is told twice rather than never */
	instance->slot = alerts_memory_store(&alerts->memory, instance->slot, &instance->state);
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

void alerts_settle_owed(struct alerts *alerts, uint64_t t_ns)
{
	alerts->owed_ns = UINT64_MAX;
	for (size_t i = 0; i < alerts->count; i++) {
		struct alert_instance *instance = alerts->instance[i];
		struct alert *alert = &instance->state.alert;
		if (alert_limit_differs(&instance->state)) {
			alert->t_ns = t_ns > alert->t_ns ? t_ns : alert->t_ns;
			settle(alerts, instance, false, alert->t_ns);
			instance->slot = alerts_memory_store(
				&alerts->memory, instance->slot, &instance->state);
		}
	}
}
