/*
 * The notifier of one alert: what was sent of it last, and how often more may be sent. In any hour
 * at most max_per_hour transitions of an instance, the first half of them at once, and as many
 * steps to critical in addition. The limit suppresses repeated notifications of this instance. It
 * never delays its state, and never touches another instance or rule.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct alert_state;

struct alert_notifier {
	uint32_t phase; /* sent last. enum alert_phase: ok or firing */
	uint32_t severity;
	uint64_t tat_ns[2];  /* theoretical arrival times (GCRA): of steps to critical, all else */
	uint64_t suppressed; /* changes since that were not sent */
	double value;	     /* at the last change */
};

/* True when the present state is to be sent: it is not what was sent last. An alert that stepped
 * down waits until its value is past the limit of its present severity (again): else it would
 * contradict itself. */
bool alert_notify_pending(const struct alert_state *state);

/* True when that may be sent at t_ns; it then counts as sent. False: *due_ns is when it may. */
bool alert_notify_take(struct alert_state *state, uint64_t t_ns, uint64_t *due_ns);

/* True while the limit still counts something that was sent. */
bool alert_notify_limits(const struct alert_state *state);
