/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: declares questions to a stage: its recent window, exact, or its lifetime by histogram
 * (within 1 %), of all runs or of those that the hardware throttled or did not. Pure; nothing
 * allocates.
 */
#pragma once

#include "daemon/core/stages/stages.h"

/* scratch holds stage->window doubles; unused when stage->recent is the answer. */
void stage_ask(const struct stage *stage, const struct window_query *query, double *scratch,
	struct stage_answer *ret);

/* The mean that stage_ask would give, in ms, without sorting anything. */
double stage_mean_ms(const struct stage *stage, const struct window_query *query);
