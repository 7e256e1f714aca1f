/* Whether a transition calls people, from the silences and acknowledgements there are. */
#include "daemon/core/alerts/private.h"

void alert_hold_drop_ack(struct alerts *alerts, const struct alert *alert)
{
	struct alert_ack *ack = alert_holds_ack(&alerts->holds, alert->rule->name, alert->instance);
	if (ack) {
		alert_holds_drop(&ack->serial);
	}
}

void alert_hold_judge(struct alerts *alerts, struct alert *alert,
	struct alert_transition *transition, uint64_t now_ns)
{
	uint64_t until_ns = alert_holds_until(&alerts->holds, alert, now_ns);
	alert->silenced_until_ns = until_ns;
	if (transition->to != ALERT_FIRING) {
		transition->quiet = alert->untold;
		alert_hold_drop_ack(alerts, alert);
		return;
	}
	bool begins = transition->from != ALERT_FIRING;
	bool worse = begins || alert->severity > transition->from_severity;
	if (worse) {
		alert_hold_drop_ack(alerts, alert);
		alert->acked = false;
	}
	transition->quiet = until_ns != 0 || alert->acked;
	if (begins) {
		alert->untold = transition->quiet;
	} else if (!transition->quiet) {
		alert->untold = false;
	}
}

void alert_hold_refresh(struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns)
{
	struct alert *alert = &instance->state.alert;
	if (alert->phase != ALERT_FIRING) {
		return;
	}
	uint64_t until_ns = alert_holds_until(&alerts->holds, alert, now_ns);
	bool acked = alert_holds_ack(&alerts->holds, alert->rule->name, alert->instance) != NULL;
	/* nobody was called, or of something less bad */
	bool missed = alert->untold || alert->silenced_until_ns != 0;
	bool told = instance->state.notifier.phase == ALERT_FIRING; /* else the limit has it */
	bool late = missed && told && until_ns == 0 && !acked;
	if (!late && until_ns == alert->silenced_until_ns && acked == alert->acked) {
		return;
	}
	alert->silenced_until_ns = until_ns;
	alert->acked = acked;
	alert->untold = alert->untold && !late;
	struct alert_transition transition = {.alert = alert,
		.from = late ? ALERT_OK : ALERT_FIRING,
		.to = ALERT_FIRING,
		.from_severity = alert->severity,
		.t_ns = alert->since_ns,
		.sent_ns = late && alert->since_ns < now_ns ? now_ns : 0,
		.value = late ? instance->state.notifier.value : alert->value,
		.quiet = !late,
		.update = !late};
	alerts_dispatch(alerts, alert, &transition);
	instance->slot = alerts_memory_store(&alerts->memory, instance->slot, &instance->state);
}

void alert_holds_prune(struct alerts *alerts)
{
	for (size_t i = 0; i < ALERT_ACKS; i++) {
		struct alert_ack *ack = &alerts->holds.ack[i];
		bool fires = false;
		for (size_t k = 0; ack->serial != 0 && k < alerts->count && !fires; k++) {
			const struct alert *alert = &alerts->instance[k]->state.alert;
			fires = alert->acked && alert_holds_ack(&alerts->holds, alert->rule->name,
							alert->instance) == ack;
		}
		if (!fires) {
			alert_holds_drop(&ack->serial);
		}
	}
}
