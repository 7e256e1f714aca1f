/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: moves one alert through ok, pending and firing, and limits its notifications. A level is
 * 0 (fine), 1 (past the threshold) or 2 (past critical); a change of level counts once it has
 * lasted for its time. */
#include "daemon/core/alerts/state.h"

#include <math.h>

#include "daemon/util/ratelimit.h"

static const uint64_t HOUR_NS = UINT64_C(3600000000000);

const char *alert_phase_name(enum alert_phase phase)
{
	static const char *const names[] = {
		[ALERT_OK] = "ok", [ALERT_PENDING] = "pending", [ALERT_FIRING] = "firing"};
	return names[phase];
}

static void set_severity(struct alert *alert, bool critical)
{
	alert->severity = critical ? ALERT_CRITICAL : alert->rule->severity;
	alert->threshold = critical			       ? alert->rule->critical
			   : alert->rule->kind == ALERT_ABSENT ? (double)NAN
							       : alert->rule->threshold;
}

void alert_state_init(struct alert_state *state, uint64_t t_ns)
{
	struct alert *alert = &state->alert;
	alert->phase = ALERT_OK;
	alert->value = NAN;
	set_severity(alert, false);
	alert->since_ns = alert->t_ns = t_ns;
	alert->since_us = 0;
	alert->transitions = alert->record = 0;
	alert->text[0] = '\0';
	alert->notifier = (struct notifier){.last = {.phase = ALERT_OK, .value = NAN}};
	state->clear_since_ns = state->critical_since_ns = state->calm_since_ns = ALERT_NEVER;
}

static bool crossed(const struct alert *alert, double value, double threshold)
{
	bool at = alert->unit == UNIT_CELSIUS && value == threshold;
	switch (alert->rule->kind) {
	case ALERT_ABOVE:
		return value > threshold || at;
	case ALERT_BELOW:
		return value < threshold || at;
	case ALERT_EQUALS:
		return value == threshold;
	case ALERT_SLOPE:
		return value > threshold;
	case ALERT_ABSENT:
		break;
	}
	return isnan(value);
}

bool alert_is_past(const struct alert *alert, double limit)
{
	return crossed(alert, alert->value, limit);
}

static int level_of(const struct alert *alert, double value)
{
	const struct alert_rule *rule = alert->rule;
	if (rule->kind != ALERT_ABSENT && !isnan(rule->critical) &&
		crossed(alert, value, rule->critical)) {
		return 2;
	}
	return crossed(alert, value, rule->threshold) ? 1 : 0;
}

/* Not past the threshold, and past it by the distance of clear on the other side. */
static bool calm(const struct alert *alert, double value, double threshold)
{
	const struct alert_rule *rule = alert->rule;
	if (crossed(alert, value, threshold)) {
		return false;
	}
	if (isnan(rule->clear) || rule->kind == ALERT_EQUALS || rule->kind == ALERT_ABSENT) {
		return true;
	}
	if (isnan(value)) {
		return true; /* the growing metric is gone, or its source has ended */
	}
	double line = threshold - (rule->threshold - rule->clear);
	return rule->kind == ALERT_BELOW ? value >= line : value <= line;
}

static void track(uint64_t *since_ns, bool active, uint64_t t_ns)
{
	if (!active) {
		*since_ns = ALERT_NEVER;
	} else if (*since_ns == ALERT_NEVER) {
		*since_ns = t_ns;
	}
}

static bool held(uint64_t since_ns, uint64_t t_ns, uint64_t duration_ns)
{
	return since_ns != ALERT_NEVER && t_ns - since_ns >= duration_ns;
}

static void enter(struct alert_state *state, enum alert_phase phase, uint64_t t_ns)
{
	state->alert.phase = phase;
	state->alert.since_ns = t_ns;
	state->alert.since_us = 0;
	state->clear_since_ns = ALERT_NEVER;
	state->calm_since_ns = ALERT_NEVER;
}

static bool step_waiting(struct alert_state *state, int level, uint64_t t_ns, uint64_t for_ns)
{
	struct alert *alert = &state->alert;
	if (level == 0) {
		if (alert->phase == ALERT_PENDING) {
			enter(state, ALERT_OK, t_ns);
		}
		return false;
	}
	if (alert->phase == ALERT_OK) {
		enter(state, ALERT_PENDING, t_ns);
	}
	set_severity(alert, held(state->critical_since_ns, t_ns, for_ns));
	if (!held(alert->since_ns, t_ns, for_ns)) {
		return false;
	}
	enter(state, ALERT_FIRING, t_ns);
	return true;
}

static bool step_firing(struct alert_state *state, double value, uint64_t t_ns)
{
	struct alert *alert = &state->alert;
	const struct alert_rule *rule = alert->rule;
	track(&state->clear_since_ns, calm(alert, value, rule->threshold), t_ns);
	if (held(state->clear_since_ns, t_ns, rule->clear_for_ns)) {
		enter(state, ALERT_OK, t_ns);
		return true;
	}
	if (isnan(rule->critical) || rule->kind == ALERT_ABSENT) {
		return false;
	}
	enum alert_severity before = alert->severity;
	track(&state->calm_since_ns, calm(alert, value, rule->critical), t_ns);
	if (held(state->critical_since_ns, t_ns, rule->for_ns)) {
		set_severity(alert, true);
	} else if (state->clear_since_ns == ALERT_NEVER &&
		   held(state->calm_since_ns, t_ns, rule->clear_for_ns)) {
		set_severity(alert, false); /* one that may clear soon stays critical until then */
	}
	if (alert->severity == before) {
		return false;
	}
	alert->since_ns = t_ns;
	alert->since_us = 0;
	return true;
}

bool alert_state_step(struct alert_state *state, double value, uint64_t t_ns, uint64_t hold_ns,
	struct notified *from)
{
	struct alert *alert = &state->alert;
	if (t_ns < alert->t_ns) {
		t_ns = alert->t_ns;
	}
	alert->t_ns = t_ns;
	alert->value = value;
	/* Nobody is notified of pending. */
	from->phase = alert->phase == ALERT_FIRING ? ALERT_FIRING : ALERT_OK;
	from->severity = (uint32_t)alert->severity;
	if (isnan(value) && !state->ended && alert->rule->kind != ALERT_ABSENT &&
		alert->rule->kind != ALERT_SLOPE) {
		return false;
	}
	int level = level_of(alert, value);
	track(&state->critical_since_ns, level == 2, t_ns);
	uint64_t for_ns = alert->rule->for_ns > hold_ns ? alert->rule->for_ns : hold_ns;
	const bool changed = alert->phase == ALERT_FIRING
				     ? step_firing(state, value, t_ns)
				     : step_waiting(state, level, t_ns, for_ns);
	alert->transitions += changed;
	return changed;
}

bool alert_notify_pending(const struct alert *alert)
{
	const struct notified *last = &alert->notifier.last;
	if (alert->phase != ALERT_FIRING || last->phase != ALERT_FIRING) {
		return (alert->phase == ALERT_FIRING) != (last->phase == ALERT_FIRING);
	}
	const uint32_t severity = (uint32_t)alert->severity;
	return severity > last->severity ||
	       (severity < last->severity && alert_is_past(alert, alert->rule->threshold) &&
		       !alert_is_past(alert, alert->rule->critical));
}

/* A bucket of ceil(n/2) that refills by floor(n/2) an hour: never more than n in any hour. */
bool alert_notify_admit(struct alert *alert, uint64_t t_ns, uint64_t *next_allowed_ns)
{
	struct notified *last = &alert->notifier.last;
	const bool firing = alert->phase == ALERT_FIRING;
	const uint64_t max = alert->rule->max_per_hour;
	if (max > 0) {
		uint64_t *tat_ns = &last->tat_ns[!(firing && alert->severity == ALERT_CRITICAL)];
		const struct ratelimit limit = {.interval_ns = HOUR_NS / (max > 1 ? max / 2 : 1),
			.burst = (unsigned)((max + 1) / 2)};
		if (!ratelimit_take(&limit, tat_ns, t_ns)) {
			*next_allowed_ns = *tat_ns - (limit.burst - 1) * limit.interval_ns;
			return false;
		}
	}
	last->phase = firing ? ALERT_FIRING : ALERT_OK;
	last->severity = (uint32_t)alert->severity;
	return true;
}

bool alert_notify_limits(const struct alert *alert)
{
	const struct notified *last = &alert->notifier.last;
	return last->tat_ns[0] > alert->t_ns || last->tat_ns[1] > alert->t_ns;
}
