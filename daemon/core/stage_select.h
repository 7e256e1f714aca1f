/*
 * The few percentiles of a stage's window that become metrics, without sorting it: the sample tick
 * reads hundreds of windows in one turn of the loop.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/stages.h"

struct stage_metrics {
	double mean, p50, p95, p99; /* ms; the numbers of stage_summary; NAN with an empty window */
};

/* scratch holds 3 * stage->window words. */
void stage_select(const struct stage *stage, uint64_t *scratch, struct stage_metrics *ret);
