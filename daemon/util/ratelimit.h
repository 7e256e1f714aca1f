/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ratelimit.h: limits rates by the generic cell rate algorithm. Each event moves the theoretical
 * arrival time (tat) of the next one by one interval; how far that may lie ahead is the burst. One
 * word of state, no timer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ratelimit {
	uint64_t interval_ns; /* between events in the long run */
	unsigned burst;	      /* events at once after a rest */
};

/* True when one more event may happen at now_ns; only then does it count. *tat_ns is zeroed before
 * the first. Times need not be in order: an earlier one counts as if nothing had expired since. */
static inline bool ratelimit_take(const struct ratelimit *limit, uint64_t *tat_ns, uint64_t now_ns)
{
	uint64_t from_ns = *tat_ns > now_ns ? *tat_ns : now_ns;
	if (from_ns - now_ns > (limit->burst - 1) * limit->interval_ns) {
		return false;
	}
	*tat_ns = from_ns + limit->interval_ns;
	return true;
}
