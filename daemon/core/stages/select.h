/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h: computes the few percentiles of a stage's window that become metrics, without sorting
 * it: the sample tick reads hundreds of windows in one iteration of the loop.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stage;
struct stage_metrics;

/* scratch holds 3 * stage->window words. */
void stage_select(const struct stage *stage, uint64_t *scratch, struct stage_metrics *ret);
