/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: declares questions to a stage: its recent window, exact, or its lifetime by histogram
 * (within 1 %), of all runs or of those that the hardware throttled or did not. Pure; nothing
 * allocates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/stages/stages.h"

struct stage_answer {
	struct proto_summary summary; /* count 0 and NANs when there is a reason, or no event */
	bool exact;
	const char *reason; /* why there are no numbers although there are events; static text */
	uint64_t unknown;   /* events of the span whose throttle state is not known */
	uint64_t throttled; /* that were throttled */
	/* of the window's runs (of the filter) that measured it; NAN when none did */
	double wall_ms, cpu_ms, process_cpu_ms;
	double cpu_ratio; /* of all threads' CPU time to wall time, else of its thread's */
};

/* scratch holds stage->window doubles. */
void stage_ask(const struct stage *stage, const struct window_query *query, double *scratch,
	struct stage_answer *ret);

/* The mean that stage_ask would give, in ms, without sorting anything. */
double stage_mean_ms(const struct stage *stage, const struct window_query *query);
