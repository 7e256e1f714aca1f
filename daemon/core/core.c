/* The words for states, as answers and the status screen show them, and how long turns of the loop
 * took. */
#include "daemon/core/core.h"

const uint32_t loop_bound_us[LOOP_BOUNDS] = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

static void spans_move(struct loop_turns *turns, uint64_t now_ns)
{
	uint64_t span = now_ns / UINT64_C(10000000000);
	for (unsigned i = 0; turns->span < span && i < LOOP_SPANS; i++) {
		uint64_t next =
			span - turns->span > LOOP_SPANS ? span - LOOP_SPANS + 1 : turns->span + 1;
		turns->span_us[next % LOOP_SPANS] = 0;
		turns->span = next;
	}
}

void loop_turns_add(struct loop_turns *turns, uint32_t busy_us, uint64_t now_ns)
{
	unsigned bound = 0;
	while (bound < LOOP_BOUNDS && busy_us > loop_bound_us[bound]) {
		bound++;
	}
	turns->count[bound]++;
	spans_move(turns, now_ns);
	uint32_t *longest_us = &turns->span_us[turns->span % LOOP_SPANS];
	*longest_us = busy_us > *longest_us ? busy_us : *longest_us;
	turns->longest_us = busy_us > turns->longest_us ? busy_us : turns->longest_us;
}

uint32_t loop_turns_minute(struct loop_turns *turns, uint64_t now_ns)
{
	uint32_t longest_us = 0;
	spans_move(turns, now_ns);
	for (unsigned i = 0; i < LOOP_SPANS; i++) {
		longest_us = turns->span_us[i] > longest_us ? turns->span_us[i] : longest_us;
	}
	return longest_us;
}

const char *broker_state_name(enum broker_state state)
{
	switch (state) {
	case BROKER_OFF:
		return "off";
	case BROKER_CONNECTING:
		return "connecting";
	case BROKER_CONNECTED:
		return "connected";
	case BROKER_AWAY:
		return "away";
	}
	return "unknown";
}

const char *persist_state_name(enum persist_state state)
{
	switch (state) {
	case PERSIST_OFF:
		return "off";
	case PERSIST_STARTING:
		return "starting";
	case PERSIST_OK:
		return "ok";
	case PERSIST_PAUSED:
		return "paused";
	case PERSIST_DEGRADED:
		return "degraded";
	case PERSIST_STUCK:
		return "stuck";
	case PERSIST_IMPAIRED:
		return "impaired";
	}
	return "unknown";
}
