/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: declares one alert, its phases, and the notifier that limits what is sent of it. Pure:
 * one value at a time, time is an argument. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/alerts/rules.h"
#include "daemon/core/metrics/unit.h"

#define ALERT_NEVER UINT64_MAX

enum alert_phase { ALERT_OK, ALERT_PENDING, ALERT_FIRING };

/* What was sent last, as it lies in mapped files. In any hour at most max_per_hour transitions of
 * an instance are sent, the first half of them at once, and as many steps to critical in addition.
 * The limit suppresses repeated notifications of this instance; it never delays its state, and
 * never affects another instance or rule. */
struct notified {
	uint32_t phase; /* enum alert_phase: ok or firing */
	uint32_t severity;
	uint64_t tat_ns[2];  /* theoretical arrival times (GCRA): of steps to critical, all else */
	uint64_t suppressed; /* changes since that were not sent */
	double value;	     /* at the last change */
};

struct notifier {
	struct notified last;
	/* While the alert fires: when the last silence over it ends (0 = none), whether it is
	 * acknowledged, and whether nobody was notified that it fires. */
	uint64_t muted_until_ns;
	bool acked, missed;
};

/* One (rule, instance). Open for reading. */
struct alert {
	const struct alert_rule *rule;
	char instance[PROTO_PATH_SIZE];
	char metric[PROTO_PATH_SIZE];
	enum unit unit;
	enum alert_phase phase;
	enum alert_severity severity; /* while firing or pending */
	double value;		      /* last; NAN = null */
	double threshold;	      /* the one that is or was crossed; NAN = none (absent) */
	uint64_t since_ns; /* of the present phase, or the first moment of this boot … */
	int64_t since_us;  /* … when it began in a previous boot: wall time, else 0 */
	uint64_t t_ns;	   /* of the last evaluation */
	uint64_t transitions;
	uint64_t record;       /* its newest entry in the log of transitions; 0 = none */
	char text[ALERT_TEXT]; /* message of the last transition */
	struct notifier notifier;
	bool test; /* TestAlert made it: nothing is wrong */
};

struct alert_state {
	struct alert alert;
	/* Since when, without a break: it could clear, it is past critical, it could step down.
	 * ALERT_NEVER = not now. */
	uint64_t clear_since_ns, critical_since_ns, calm_since_ns;
	bool ended;  /* set by the caller: the metric has ended, so its NAN is past no limit */
	uid_t owner; /* set by the caller: of the metric; 0 = the device */
};

const char *alert_phase_name(enum alert_phase phase); /* ok pending firing */

/* Before the first value: ok, value NAN. alert.rule, instance, metric and unit are the caller's. */
void alert_state_init(struct alert_state *state, uint64_t t_ns);

/* Is the alert's value past this limit of its rule's kind? */
bool alert_is_past(const struct alert *alert, double limit);

/* One value at t_ns (an earlier time is raised to the last one). For absent rules value is NAN when
 * the metric is absent, for slope rules when the metric vanished; else NAN changes no phase,
 * unless it is one of a metric that has ended. hold_ns: at least so long in pending, whatever the
 * rule's for says. True when the state changed in a way to notify of; phase and severity of
 * from are what it was. */
bool alert_state_step(struct alert_state *state, double value, uint64_t t_ns, uint64_t hold_ns,
	struct notified *from);

/* True when the present state is to be sent: it is not what was sent last. An alert that stepped
 * down waits until its value is past the limit of its present severity (again): else it would
 * contradict itself. */
bool alert_notify_pending(const struct alert *alert);

/* True when that may be sent at t_ns; it then counts as sent. False: *next_allowed_ns is when it
 * may. */
bool alert_notify_admit(struct alert *alert, uint64_t t_ns, uint64_t *next_allowed_ns);

/* True while the limit still counts something that was sent. */
bool alert_notify_limits(const struct alert *alert);
