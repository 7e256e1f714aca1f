/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: predicts, from measured durations of stages, what an app would do at another frame rate
 * and deadline; and what throttling costs.
 *
 * A camera delivers a frame each T = 1 / fps. One thread for all stages is a queue with one server:
 * a frame waits W(n+1) = max(0, W(n) + S(n) - T) (Lindley, Proc. Cambridge Phil. Soc. 48(2), 1952).
 * A thread per stage is a tandem of queues: a stage starts on a frame when both the stage before
 * has finished it and the frame before has left, D(n,k) = max(D(n,k-1), D(n-1,k)) + S(n,k)
 * (Friedman, Oper. Res. 13(1), 1965). Queues are unlimited: a rate that cannot be sustained shows
 * as a latency that grows. The frames are replayed in the order in which they were measured, again
 * from the first when they end: what one slow frame does to the next counts, and stages that are
 * slow together stay so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/diagnose/facts/facts.h"

enum {
	PLAN_FRAMES_MIN = 30, /* below: unknown */
	PLAN_FRAMES_MAX = 1024,
	PLAN_PASSES = 4 /* over the frames; the first is warm-up */
};

struct plan_input {
	size_t frames, stages; /* of more than PLAN_FRAMES_MAX frames the last ones count */
	const float *ms;    /* frames × stages, a row per frame in their order; NAN: did not run */
	double fps;	    /* NAN: as fast as possible, judged is max_fps alone */
	double deadline_ms; /* from the camera to the end of the last stage; NAN: 1000 / fps */
	double miss_percent; /* that max_fps may have */
};

/* Of one way to execute the stages; all but max_fps is NAN without fps. Shares are 0 … 1. */
struct plan_execution {
	double miss, miss_low, miss_high; /* Wilson; of few busy periods nearer 85 % than 95 % */
	double latency_p50_ms, latency_p95_ms, latency_p99_ms;
	double max_fps; /* at which at most input->miss_percent miss the deadline; 0 = none */
};

/* False: too few frames, or no stages; what is predicted is NAN. */
bool plan_predict(const struct plan_input *input, struct plan_execution *sequential,
	struct plan_execution *pipelined);

/* What throttling costs; NAN = not known. Medians have intervals of 95 %. */
struct throttle_tax {
	double share;	/* of the frames, 0 … 1 */
	double lost_ms; /* by a throttled frame; negative: throttled ones are faster */
	double fps, unthrottled_fps, unthrottled_low_fps, unthrottled_high_fps;
	double throttled_joules, unthrottled_joules; /* of one frame */
	const char *reason;			     /* why not all is known; NULL: it is */
};

void throttle_tax(const struct facts *facts, struct throttle_tax *ret);
