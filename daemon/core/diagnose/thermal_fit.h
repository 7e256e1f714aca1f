/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thermal_fit.h: fits the step response of a board to the end of a series of temperatures.
 *
 * A die on a heat sink is a chain of two thermal resistances and capacities (Cauer network; see
 * JEDEC JESD51-14). After a step of load, its temperature is
 *
 *     T(t) = A + B exp(-t / slow) + C exp(-t / fast)
 *
 * where A is the steady state; without C it is Newton's law of cooling. For given time constants
 * the model is linear in A, B and C (variable projection: Golub and Pereyra, SIAM J. Numer. Anal.
 * 10(2), 1973), so the time constants are a grid and the rest is a regression. The sums of a
 * regression over the points from k on follow from those from k + 1 on, which makes the fits of
 * all ends of the series as cheap as one.
 */
#pragma once

#include <stddef.h>

enum { THERMAL_POINTS = 512, THERMAL_TERMS = 3 /* 1, slow, fast */ };

struct thermal_series {
	size_t count;
	double base;		    /* °C that value is relative to */
	double prior, prior_weight; /* an assumed value of A, and how many points it counts as */
	double t[THERMAL_POINTS];   /* s, ascending */
	double value[THERMAL_POINTS];
};

struct thermal_fit {
	double slow_s, fast_s;		   /* fast_s 0: one exponential */
	size_t terms;			   /* 2 or 3 */
	double coefficient[THERMAL_TERMS]; /* of 1, slow, fast; time counts from the first point */
	double inverse[THERMAL_TERMS][THERMAL_TERMS]; /* of the normal matrix */
	double squares;				      /* sum of the squared residuals */
};

/* Called with the fit of the points from `first` to the end. */
typedef void thermal_fit_function(void *context, size_t first, const struct thermal_fit *fit);

/* Fits the points before `end`, from each multiple of stride on, if these are at least 8. */
void thermal_fit_ends(const struct thermal_series *series, double slow_s, double fast_s, size_t end,
	size_t stride, thermal_fit_function *function, void *context);

/* Temperature relative to base `t` seconds after the first point of the fit (INFINITY: the steady
 * state); its variance, in units of that of a residual, in *ret_variance. */
double thermal_fit_at(const struct thermal_fit *fit, double t, double *ret_variance);
