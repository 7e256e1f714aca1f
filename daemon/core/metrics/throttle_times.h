/*
 * When the hardware throttled: the edges of THROTTLE_ACTIVE of the last while, so that what ended a
 * moment ago can be told throttled, not throttled or unknown. Written at each sample of the
 * throttle source, read for each event of a stage. A state holds from the sample that saw it on.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Not from throttle.h, which includes this. */
enum throttle_value { THROTTLE_UNKNOWN, THROTTLE_NO, THROTTLE_YES };

enum { THROTTLE_TIMES_EDGES = 64 };

/* Behind the last sample its state goes on for three times the distance of samples, and at least
 * this long; after that nothing is known. */
#define THROTTLE_TIMES_HOLD_NS UINT64_C(5000000000)

struct throttle_edge {
	uint64_t t_ns;
	enum throttle_value value;
};

/* Zeroed = nothing is known of any time. */
struct throttle_times {
	size_t count, newest; /* ring of edges */
	struct throttle_edge edge[THROTTLE_TIMES_EDGES];
	uint64_t sampled_ns; /* the last sample; 0 = none */
	uint64_t hold_ns;
};

/* A sample said so at now_ns. Times before the last sample's are ignored. */
void throttle_times_sample(
	struct throttle_times *times, uint64_t now_ns, enum throttle_value value);

/* For a time before the newest edge. */
enum throttle_value throttle_times_search(const struct throttle_times *times, uint64_t t_ns);

/* The state at t_ns; THROTTLE_UNKNOWN before the oldest edge kept and long after the last sample.
 */
static inline enum throttle_value throttle_times_at(
	const struct throttle_times *times, uint64_t t_ns)
{
	const struct throttle_edge *edge = &times->edge[times->newest];
	if (t_ns >= edge->t_ns) {
		return t_ns <= times->sampled_ns + times->hold_ns ? edge->value : THROTTLE_UNKNOWN;
	}
	return throttle_times_search(times, t_ns);
}
