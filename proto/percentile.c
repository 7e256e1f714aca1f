/* SPDX-License-Identifier: Apache-2.0 */
/* percentile.c: computes percentiles, means and deviations of a window. Stage and frame statistics,
 * sessions and reports all call it, so that a term means the same number everywhere. */
#include "proto/percentile.h"

#include <math.h>

enum { SMALL_MAX = 24 };

static void swap(double *a, double *b)
{
	double t = *a;
	*a = *b;
	*b = t;
}

/* Each pair adds one to the rank of one of the two, without a branch: durations are noise, and a
 * mispredicted branch costs as much as ten of these. */
static void small_sort(double *values, size_t count)
{
	double copy[SMALL_MAX];
	size_t ranks[SMALL_MAX];
	for (size_t i = 0; i < count; i++) {
		double value = values[i];
		size_t rank = 0;
		for (size_t j = 0; j < i; j++) {
			size_t greater = copy[j] > value;
			ranks[j] += greater;
			rank += 1 - greater;
		}
		copy[i] = value;
		ranks[i] = rank;
	}
	for (size_t i = 0; i < count; i++) {
		values[ranks[i]] = copy[i];
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

static void order(double *a, double *b)
{
	if (*b < *a) {
		swap(a, b);
	}
}

/* Puts the median of three of the middle first: ends are where the partitions leave what they
 * displaced. */
static double choose_pivot(double *values, size_t count)
{
	double *low = &values[count / 4], *middle = &values[count / 2],
	       *high = &values[count / 4 * 3];
	order(low, middle);
	order(middle, high);
	order(low, middle);
	swap(&values[0], middle);
	return values[0];
}

/* Moves what is less than the limit to the front and returns how many that are. No branch on a
 * value (Lomuto's partition): 3 to 4 times as fast as Hoare's on 1024 durations. */
static size_t partition(double *values, size_t count, double limit)
{
	size_t less = 0;
	for (size_t i = 0; i < count; i++) {
		double value = values[i];
		values[i] = values[less];
		values[less] = value;
		less += value < limit;
	}
	return less;
}

/* Quick sort that turns to heap sort when the pivots are bad: a peer chooses the values, so the
 * worst case must be cheap too. Equal values (a coarse clock's) are done at once. */
static void intro_sort(double *values, size_t count, unsigned depth)
{
	while (count > SMALL_MAX) {
		if (depth-- == 0) {
			heap_sort(values, count);
			return;
		}
		double pivot = choose_pivot(values, count);
		size_t left = partition(values + 1, count - 1, pivot);
		if (left == 0) {
			size_t equal = partition(values + 1, count - 1, nextafter(pivot, INFINITY));
			values += equal + 1;
			count -= equal + 1;
			continue;
		}
		swap(&values[0], &values[left]);
		size_t right = count - left - 1;
		if (left < right) {
			intro_sort(values, left, depth);
			values += left + 1;
			count = right;
		} else {
			intro_sort(values + left + 1, right, depth);
			count = left;
		}
	}
	small_sort(values, count);
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
