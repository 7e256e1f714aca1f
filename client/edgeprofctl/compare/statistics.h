/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.h: estimates the mean and percentiles of values in the order of time, how uncertain
 * they are, and whether those of two runs differ. Nothing is assumed of the values but that what is
 * a sixth of a run apart is nearly independent.
 *
 * The uncertainty of a mean is that of a circular block bootstrap (Politis and Romano 1992) of few,
 * long blocks, which is known without drawing, with Student's quantiles for their number (Schmeiser
 * 1982): so autocorrelated, switching and drifting values widen the interval instead of making it
 * wrong. That of a percentile follows from the mean of what is not above it (Woodruff 1952).
 */
#pragma once

#include <stddef.h>

enum statistic { STATISTIC_MEAN, STATISTIC_P50, STATISTIC_P95, STATISTIC_P99, STATISTICS };

enum {
	STATISTICS_LEAST = 10, /* values that an estimate takes */
	STATISTICS_BLOCKS = 6,
};

struct estimate {
	double value;	 /* NAN without values */
	double variance; /* of the value, divided by its square; NAN: not known */
	double freedom;	 /* degrees of freedom of the variance */
};

/* Of the values, in the order of time. With less than STATISTICS_LEAST of them no variance is
 * known. */
void estimate_values(const double *values, size_t count, struct estimate ret[STATISTICS]);

/* Of several runs: the mean of their values; its variance is the larger one of that within the runs
 * and that between them. */
struct estimate estimate_runs(const struct estimate *runs, size_t count);

/* A regression is shown when its p, times the number of rows that could be one, is below this. */
#define REGRESSION_P 0.01

struct difference {
	double percent;	  /* of the baseline */
	double low, high; /* the interval of 95 %; NAN: not known */
	double p;	  /* of a difference like this, or larger, by chance; NAN: not known */
};
struct difference difference_of(const struct estimate *baseline, const struct estimate *current);

/* How many of the first values to leave out: those of a warm-up (MSER-5, White 1997), at most a
 * quarter of them; 0 when the rest gains little. */
size_t warmup_length(const double *values, size_t count);

/* The probability of |t| or more under Student's distribution, and the t of a probability. */
double student_tail(double t, double freedom);
double student_quantile(double tail, double freedom);
