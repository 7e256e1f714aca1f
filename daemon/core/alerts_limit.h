/*
 * What the world was told of an alert, and how often it may hear of it: in any hour at most
 * max_per_hour transitions of an instance, the first half of them at once, and as many steps to
 * critical beside. The state itself is never held back; what differs from what was told is told as
 * soon as it may be.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct alert_state;

struct alert_told {
	uint32_t phase; /* enum alert_phase: ok or firing */
	uint32_t severity;
	uint64_t debt_ns[2]; /* until when what was told is owed for: to critical, all else */
};

/* True when phase or severity are not what was told. */
bool alert_limit_differs(const struct alert_state *state);

/* True when that may be told at t_ns; it then counts as told. False: *due_ns is when it may. */
bool alert_limit_take(struct alert_state *state, uint64_t t_ns, uint64_t *due_ns);

/* True while something that was told still counts. */
bool alert_limit_owes(const struct alert_state *state);
