/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h: opens the event loop, and measures how long it is away from its sockets. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"

/* An event loop that never allocates for a further descriptor. -EMFILE, -ENOMEM; ends the process
 * with a line in the log when libuv itself finds no memory. */
int loop_open(uv_loop_t *loop);

struct loopwatch {
	uv_check_t check;
	struct counters *counters;
	uint64_t turn_ns, idle_ns; /* end of the last iteration; idle time until then */
};

/* Counts iterations, adds to counters->load and keeps counters->loop_lag_max_us, the longest run of
 * callbacks in one iteration (whoever samples it sets it to 0). Does not keep the loop alive. Call
 * before the loop runs. */
void loopwatch_open(uv_loop_t *loop, struct counters *counters, struct loopwatch *watch);
void loopwatch_close(struct loopwatch *watch);
