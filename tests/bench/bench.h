/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h: reads clocks and finds the median of rounds, for the programs of this folder. */
#pragma once

#include <stdlib.h>
#include <time.h>

static inline double clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline double now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), by_value);
	return values[count / 2];
}
