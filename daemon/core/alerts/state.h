/* The state machine of one (rule, instance): pure, one value at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/alerts/notify.h"

#define ALERT_NEVER UINT64_MAX

struct alert_state {
	struct alert alert;
	/* Since when, without a break: it could clear, it is past critical, it could step down.
	 * ALERT_NEVER = not now. */
	uint64_t clear_since_ns, critical_since_ns, calm_since_ns;
	struct alert_notifier notifier;
	bool ended; /* by the caller: the metric has ended, so its NAN is past no limit */
};

/* Before the first value: ok, value NAN. alert.rule, instance, metric and unit are the caller's. */
void alert_state_init(struct alert_state *state, uint64_t t_ns);

/* Is the alert's value past this limit of its rule's kind? */
bool alert_is_past(const struct alert *alert, double limit);

/* One value at t_ns (an earlier time is raised to the last one). For absent rules value is NAN when
 * the metric is absent, for slope rules when the metric vanished; else NAN changes no phase,
 * unless it is one of a metric that has ended.
 * hold_ns: at least so long in pending, beside the rule's for. True when the state changed in a way
 * to tell; from and from_severity are what it was. */
bool alert_state_step(struct alert_state *state, double value, uint64_t t_ns, uint64_t hold_ns,
	enum alert_phase *from, enum alert_severity *from_severity);
