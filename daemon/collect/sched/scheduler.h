/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.h: decides when each source is sampled, records the state and cost of each, and applies
 * the requests of core/sources. Due times are aligned to the intervals, so one timer serves all
 * sources and the loop wakes once for those that are due together. */
#pragma once

#include <uv.h>

#include "daemon/collect/sched/adaptive.h"
#include "daemon/collect/sched/collector.h"

struct scheduler;

struct scheduler_options {
	uint64_t interval_ns;		      /* [sampling] interval */
	struct adaptive_options adaptive;     /* zeroed = the interval stays */
	const struct source_options *sources; /* sections of the configuration */
	size_t source_count;
	const char *
		pdeath_exec; /* executable for children (child.h), at scheduler_open; NULL = none */
	const struct collector_ops *const *collectors; /* tests only; NULL = the registry's */
};

/* Opens all collectors and starts their timers, first sample at once. Keeps core, roots; copies
 * options. -ENOMEM. One collector's failure is its source's state, never the scheduler's. */
int scheduler_open(uv_loop_t *loop, struct core *core, const struct root *root,
	const struct root *real_root, const struct scheduler_options *options,
	struct scheduler **ret);

/* Runs what is due as of now_ns and returns when to run next. The timer calls it; tests call it
 * with times of their own. */
uint64_t scheduler_run(struct scheduler *scheduler, uint64_t now_ns);

/* Waits at most limit_ns for what workers read, and takes it: at the start, so that the first
 * numbers are there; and in tests. */
void scheduler_wait(struct scheduler *scheduler, uint64_t limit_ns);

/* New options after a reload: intervals and enabled take effect at the next tick. */
void scheduler_configure(struct scheduler *scheduler, const struct scheduler_options *options);

/* True when every source that is wanted and not stuck ticked within its last 3 intervals: the
 * watchdog is fed only then. */
bool scheduler_healthy(const struct scheduler *scheduler, uint64_t now_ns);

/* Closing finishes later: done(ctx) is called from the loop after the last handle is closed. */
void scheduler_close(struct scheduler *scheduler, void (*done)(void *ctx), void *ctx);
