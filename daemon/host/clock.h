/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: watches the wall clock for steps and synchronisation; feeds the wallclock table and the
 * timeline. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"

struct clock_watch {
	uv_timer_t timer;
	uv_poll_t poll;
	bool polled; /* the kernel reports steps */
	int fd;
	struct core *core;
	struct wallclock *wall;
	void *saved;	       /* for wallclock_save; NULL: none */
	uint64_t suspended_ns; /* since the boot, as of the last look */
	int open_handles;
};

/* First reading at once; then on each clock step and every 60 s. Always succeeds: without timerfd
 * only the 60 s readings remain. */
void clock_watch_open(uv_loop_t *loop, struct core *core, struct wallclock *wall, void *saved,
	struct clock_watch *clock);
/* It stays where it is until its handles are closed. */
void clock_watch_close(struct clock_watch *clock);
