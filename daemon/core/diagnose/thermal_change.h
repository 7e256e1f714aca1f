/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thermal_change.h: finds where load or fan last changed in a series of temperatures.
 *
 * The series is divided into segments, each of which has a step response of its own; the cheapest
 * division follows from those of its beginnings (optimal partitioning: Jackson et al., IEEE Signal
 * Process. Lett. 12(2), 2005), where the cost of a segment is its sum of squared residuals in units
 * of the noise, and that of a change a constant. exp(-cost / 2) weighs the possible last changes.
 */
#pragma once

#include "daemon/core/diagnose/thermal_fit.h"

enum { THERMAL_STARTS = 32, THERMAL_STARTS_KEPT = 10 };

struct thermal_change {
	double noise;		       /* variance of a value */
	size_t stride;		       /* candidate i is point i × stride */
	double weight[THERMAL_STARTS]; /* of a candidate, the likeliest 1; 0: ruled out */
	size_t likeliest;
};

/* Needs 3 points or more; sets the weight of the series' prior. Takes some 10 ms for 512. */
void thermal_change_find(struct thermal_series *series, struct thermal_change *ret);

/* Calls the function for the fits of the points before `end`, from each multiple of stride on, with
 * `slows` slow time constants, each alone and with `fasts` fast ones. */
void thermal_grid(const struct thermal_series *series, size_t end, size_t stride, size_t slows,
	size_t fasts, thermal_fit_function *function, void *context);
