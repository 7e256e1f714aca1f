/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse.c: judges whether a stream of events goes on. The median is not misled by one pause, and
 * follows a stream that became slower within a few events.
 */
#include "daemon/core/stages/pulse.h"

#include <string.h>

static const uint64_t IDLE_INTERVALS = 3;

static size_t pulse_known(const struct pulse *pulse)
{
	return pulse->count < PULSE_EVENTS && pulse->t_ns[PULSE_EVENTS - 1] == 0 ? pulse->count
										 : PULSE_EVENTS;
}

uint64_t pulse_last_ns(const struct pulse *pulse)
{
	uint64_t last_ns = 0;
	for (size_t i = 0; i < PULSE_EVENTS; i++) {
		last_ns = pulse->t_ns[i] > last_ns ? pulse->t_ns[i] : last_ns;
	}
	return last_ns;
}

static void sort_small(uint64_t *values, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t value = values[i];
		size_t at = i;
		while (at > 0 && values[at - 1] > value) {
			values[at] = values[at - 1];
			at--;
		}
		values[at] = value;
	}
}

uint64_t pulse_usual_ns(const struct pulse *pulse)
{
	uint64_t t_ns[PULSE_EVENTS];
	size_t count = pulse_known(pulse);
	if (count < 2) {
		return 0;
	}
	memcpy(t_ns, pulse->t_ns, sizeof(t_ns));
	sort_small(t_ns, count);
	for (size_t i = 0; i + 1 < count; i++) {
		t_ns[i] = t_ns[i + 1] - t_ns[i];
	}
	sort_small(t_ns, count - 1);
	return t_ns[(count - 1) / 2];
}

uint64_t pulse_idle_ns(const struct pulse *pulse, uint64_t now_ns)
{
	uint64_t last_ns = pulse_last_ns(pulse);
	uint64_t limit_ns = IDLE_INTERVALS * pulse_usual_ns(pulse);
	uint64_t silent_ns = last_ns > 0 && now_ns > last_ns ? now_ns - last_ns : 0;
	limit_ns = limit_ns < PULSE_IDLE_MIN_NS ? PULSE_IDLE_MIN_NS : limit_ns;
	return silent_ns > limit_ns ? silent_ns : 0;
}
