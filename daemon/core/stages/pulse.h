/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse.h: measures the beat of a stream of events: when the latest came, how far apart they
 * usually are, and whether the stream has fallen idle. An event costs one store; questions sort a
 * few numbers.
 */
#pragma once

#include <stdint.h>

enum { PULSE_EVENTS = 8 };

#define PULSE_IDLE_MIN_NS UINT64_C(2000000000)

struct pulse {
	uint32_t count; /* of all events; it may wrap */
	uint64_t t_ns[PULSE_EVENTS];
};

/* Threads are drained one after the other: times need not ascend. */
static inline void pulse_note(struct pulse *pulse, uint64_t t_ns)
{
	pulse->t_ns[pulse->count++ % PULSE_EVENTS] = t_ns;
}

/* The time of the latest event; 0 = there was none. */
uint64_t pulse_last_ns(const struct pulse *pulse);

/* The usual interval: the median of the latest ones; 0 below two events. */
uint64_t pulse_usual_ns(const struct pulse *pulse);

/* How long there was no event, when that is over max(3 usual intervals, 2 s); else 0. A stream that
 * had no event yet is not idle. */
uint64_t pulse_idle_ns(const struct pulse *pulse, uint64_t now_ns);
