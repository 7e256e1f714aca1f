/*
 * A small ring of edges between the throttle source, which adds one when the state changes, and the
 * stages, whose events look their end up in it.
 */
#include "daemon/core/metrics/throttle_times.h"

static void add(struct throttle_times *times, uint64_t t_ns, enum throttle_value value)
{
	if (times->count > 0) {
		times->newest = (times->newest + 1) % THROTTLE_TIMES_EDGES;
	}
	times->count += times->count < THROTTLE_TIMES_EDGES;
	times->edge[times->newest] = (struct throttle_edge){t_ns, value};
}

void throttle_times_sample(struct throttle_times *times, uint64_t now_ns, enum throttle_value value)
{
	if (times->sampled_ns > 0 && now_ns <= times->sampled_ns) {
		return;
	}
	enum throttle_value last =
		times->count > 0 ? times->edge[times->newest].value : THROTTLE_UNKNOWN;
	if (times->sampled_ns > 0 && now_ns - times->sampled_ns > times->hold_ns) {
		/* samples were missing: what was between is not known */
		if (last != THROTTLE_UNKNOWN) {
			add(times, times->sampled_ns + times->hold_ns, THROTTLE_UNKNOWN);
			last = THROTTLE_UNKNOWN;
		}
		times->hold_ns = THROTTLE_TIMES_HOLD_NS;
	} else if (times->sampled_ns > 0) {
		uint64_t hold_ns = 3 * (now_ns - times->sampled_ns);
		times->hold_ns =
			hold_ns > THROTTLE_TIMES_HOLD_NS ? hold_ns : THROTTLE_TIMES_HOLD_NS;
	} else {
		times->hold_ns = THROTTLE_TIMES_HOLD_NS;
	}
	if (value != last) {
		add(times, now_ns, value);
	}
	times->sampled_ns = now_ns;
}

enum throttle_value throttle_times_search(const struct throttle_times *times, uint64_t t_ns)
{
	for (size_t back = 0; back < times->count; back++) {
		size_t i = (times->newest + THROTTLE_TIMES_EDGES - back) % THROTTLE_TIMES_EDGES;
		if (t_ns >= times->edge[i].t_ns) {
			return times->edge[i].value;
		}
	}
	return THROTTLE_UNKNOWN;
}
