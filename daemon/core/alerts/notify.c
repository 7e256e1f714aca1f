/* A bucket of ceil(n/2) that fills by floor(n/2) an hour: never more than n in any hour. It is kept
 * as the time at which it will be full again. */
#include "daemon/core/alerts/notify.h"

#include "daemon/core/alerts/state.h"

static const uint64_t HOUR_NS = UINT64_C(3600000000000);

bool alert_notify_pending(const struct alert_state *state)
{
	const struct alert *alert = &state->alert;
	const struct alert_notifier *sent = &state->notifier;
	if (alert->phase != ALERT_FIRING || sent->phase != ALERT_FIRING) {
		return (alert->phase == ALERT_FIRING) != (sent->phase == ALERT_FIRING);
	}
	const uint32_t severity = (uint32_t)alert->severity;
	return severity > sent->severity ||
	       (severity < sent->severity && alert_is_past(alert, alert->rule->threshold));
}

bool alert_notify_take(struct alert_state *state, uint64_t t_ns, uint64_t *due_ns)
{
	const struct alert *alert = &state->alert;
	struct alert_notifier *notifier = &state->notifier;
	const bool firing = alert->phase == ALERT_FIRING;
	const uint64_t most = alert->rule->max_per_hour;
	if (most > 0) {
		uint64_t *tat_ns =
			&notifier->tat_ns[!(firing && alert->severity == ALERT_CRITICAL)];
		const uint64_t cost_ns = HOUR_NS / (most > 1 ? most / 2 : 1);
		const uint64_t room_ns = cost_ns * ((most + 1) / 2);
		const uint64_t until_ns = (*tat_ns > t_ns ? *tat_ns : t_ns) + cost_ns;
		if (until_ns > t_ns + room_ns) {
			*due_ns = until_ns - room_ns;
			return false;
		}
		*tat_ns = until_ns;
	}
	notifier->phase = firing ? ALERT_FIRING : ALERT_OK;
	notifier->severity = (uint32_t)alert->severity;
	return true;
}

bool alert_notify_limits(const struct alert_state *state)
{
	const uint64_t t_ns = state->alert.t_ns;
	return state->notifier.tat_ns[0] > t_ns || state->notifier.tat_ns[1] > t_ns;
}
