/*
 * ratelimit: the generic cell rate algorithm. Each event moves the time at which the next one would
 * be due by one interval; how far that may lie ahead is the burst. One word of state, no timer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ratelimit {
	uint64_t interval_ns; /* between events in the long run */
	unsigned burst;	      /* events at once after a rest */
};

/* Whether one more event may happen at now_ns; it counts only then. *due_ns: zeroed before the
 * first. Times need not be in order: an earlier one is as if nothing had become due since. */
static inline bool ratelimit_take(const struct ratelimit *limit, uint64_t *due_ns, uint64_t now_ns)
{
	uint64_t from_ns = *due_ns > now_ns ? *due_ns : now_ns;
	if (from_ns - now_ns > (limit->burst - 1) * limit->interval_ns) {
		return false;
	}
	*due_ns = from_ns + limit->interval_ns;
	return true;
}
