/*
 * Percentiles, means and deviations of a window. Stage and frame statistics, sessions and reports
 * all come here, so that the same word is the same number everywhere.
 */
#include "proto/percentile.h"

#include <math.h>

enum { INSERTION_MAX = 24 };

static void swap(double *a, double *b)
{
	double t = *a;
	*a = *b;
	*b = t;
}

static void insertion_sort(double *values, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		double value = values[i];
		size_t at = i;
		while (at > 0 && values[at - 1] > value) {
			values[at] = values[at - 1];
			at--;
		}
		values[at] = value;
	}
}

static void sift_down(double *values, size_t root, size_t count)
{
	for (;;) {
		size_t child = 2 * root + 1;
		if (child >= count) {
			return;
		}
		if (child + 1 < count && values[child + 1] > values[child]) {
			child++;
		}
		if (values[root] >= values[child]) {
			return;
		}
		swap(&values[root], &values[child]);
		root = child;
	}
}

static void heap_sort(double *values, size_t count)
{
	for (size_t i = count / 2; i-- > 0;) {
		sift_down(values, i, count);
	}
	for (size_t end = count; end-- > 1;) {
		swap(&values[0], &values[end]);
		sift_down(values, 0, end);
	}
}

/* Puts the median of first, middle and last in the middle and returns it. */
static double median_of_three(double *values, size_t count)
{
	double *first = &values[0], *middle = &values[count / 2], *last = &values[count - 1];
	if (*middle < *first) {
		swap(middle, first);
	}
	if (*last < *middle) {
		swap(last, middle);
		if (*middle < *first) {
			swap(middle, first);
		}
	}
	return *middle;
}

/* Quick sort that turns to heap sort when the pivots are bad: a peer chooses the values, so the
 * worst case must be cheap too. */
static void intro_sort(double *values, size_t count, unsigned depth)
{
	while (count > INSERTION_MAX) {
		if (depth-- == 0) {
			heap_sort(values, count);
			return;
		}
		double pivot = median_of_three(values, count);
		size_t i = 0, j = count - 1;
		for (;;) {
			while (values[i] < pivot) {
				i++;
			}
			while (values[j] > pivot) {
				j--;
			}
			if (i >= j) {
				break;
			}
			swap(&values[i++], &values[j--]);
		}
		size_t left = j + 1;
		if (left < count - left) {
			intro_sort(values, left, depth);
			values += left;
			count -= left;
		} else {
			intro_sort(values + left, count - left, depth);
			count = left;
		}
	}
	insertion_sort(values, count);
}

void proto_sort(double *values, size_t count)
{
	unsigned depth = 2;
	for (size_t n = count; n > 1; n /= 2) {
		depth += 2;
	}
	intro_sort(values, count, depth);
}

double proto_percentile(const double *sorted, size_t count, double p)
{
	if (count == 0) {
		return NAN;
	}
	double k = (double)(count - 1) * p / 100.0;
	if (!(k > 0)) {
		return sorted[0];
	}
	size_t low = (size_t)k;
	if (low >= count - 1) {
		return sorted[count - 1];
	}
	return sorted[low] + (k - (double)low) * (sorted[low + 1] - sorted[low]);
}

double proto_percentile_nearest(const double *sorted, size_t count, double p)
{
	if (count == 0) {
		return NAN;
	}
	double k = (double)count * p / 100.0;
	if (!(k > 0)) {
		return sorted[0];
	}
	return k >= (double)count ? sorted[count - 1] : sorted[(size_t)k];
}

/* Neumaier's sum: a term may be larger than the sum so far. */
static double sum_compensated(const double *values, size_t count)
{
	double sum = 0, lost = 0;
	for (size_t i = 0; i < count; i++) {
		double next = sum + values[i];
		if (fabs(sum) >= fabs(values[i])) {
			lost += (sum - next) + values[i];
		} else {
			lost += (values[i] - next) + sum;
		}
		sum = next;
	}
	return sum + lost;
}

void proto_summarize(double *values, size_t count, struct proto_summary *ret)
{
	*ret = (struct proto_summary){.count = count,
		.mean = NAN,
		.min = NAN,
		.max = NAN,
		.std = NAN,
		.std_sample = NAN,
		.p50 = NAN,
		.p90 = NAN,
		.p95 = NAN,
		.p99 = NAN};
	if (count == 0) {
		return;
	}
	proto_sort(values, count);
	ret->mean = sum_compensated(values, count) / (double)count;
	double squares = 0;
	for (size_t i = 0; i < count; i++) {
		double d = values[i] - ret->mean;
		squares += d * d;
	}
	ret->std = sqrt(squares / (double)count);
	if (count > 1) {
		ret->std_sample = sqrt(squares / (double)(count - 1));
	}
	ret->min = values[0];
	ret->max = values[count - 1];
	ret->p50 = proto_percentile(values, count, 50);
	ret->p90 = proto_percentile(values, count, 90);
	ret->p95 = proto_percentile(values, count, 95);
	ret->p99 = proto_percentile(values, count, 99);
}
