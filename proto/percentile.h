/* SPDX-License-Identifier: Apache-2.0 */
/* percentile.h: defines the statistics for all parts of edgeprof. Percentile: linear interpolation
 * on the sorted values, k = (n-1)*p/100 (numpy's default); "nearest" is the value at index
 * floor(n*p/100), capped to n-1. std is the population's (ddof 0), std_sample has ddof 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto_summary {
	size_t count;
	double mean, min, max;
	double std;	   /* ddof 0; 0 for one value */
	double std_sample; /* ddof 1; NAN below two values */
	double p50, p90, p95, p99;
};

/* Percentile p (0..100) of ascending values. NAN when count is 0. */
double proto_percentile(const double *sorted, size_t count, double p);
double proto_percentile_nearest(const double *sorted, size_t count, double p);

/* Sorts values in place (no allocation) and fills *ret. With count 0 every number is NAN. The mean
 * is summed with compensation, the deviation in a second pass, so 1e9 ns offsets lose nothing. */
void proto_summarize(double *values, size_t count, struct proto_summary *ret);

/* Where the percentiles of a window are likely to be; zeroed = not known. */
struct proto_guess {
	float low, high; /* around the median */
	float top;	 /* below p90 */
	bool crowded;	 /* too many are in between: equal ones */
};

/* The same in ms of a window of whole ns, in a third of the time: it sorts no more than percentiles
 * need, and the sum of whole numbers is exact as it is. nearest: percentiles of that kind. guess,
 * which may be NULL, is kept from one call to the next for a window of which a part is new: it
 * makes them faster and changes no number, but ns holds other values then. */
void proto_summarize_window(double *ns, size_t count, bool nearest, struct proto_guess *guess,
	struct proto_summary *ret);

/* Ascending sort of n doubles in place, no allocation, O(n log n) worst case. No NAN allowed. */
void proto_sort(double *values, size_t count);
