/* How long the loop was away from its sockets: the longest run of callbacks in one turn. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"

struct loopwatch {
	uv_check_t check;
	struct counters *counters;
	uint64_t turn_ns, idle_ns; /* end of the last turn; idle time until then */
};

/* Counts wakeups, adds to counters->load and keeps counters->loop_lag_max_us (whoever samples it
 * sets it to 0). Does not keep the loop alive. Call before the loop runs. */
void loopwatch_open(uv_loop_t *loop, struct counters *counters, struct loopwatch *watch);
void loopwatch_close(struct loopwatch *watch);
