/* SPDX-License-Identifier: Apache-2.0 */
/* percentile.c: computes percentiles, means and deviations of a window. Stage and frame statistics,
 * sessions and reports all call it, so that a term means the same number everywhere. */
#include "proto/percentile.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
	SMALL_MAX = 12,
	LANES = 4,
	PART_BLOCK = 64,
	PART_MAX = 224 + PART_BLOCK, /* values of a part that a guess bounds */
	GUESS_MIN = 128,	     /* values that are worth one */
};

/* Two numbers, which one instruction adds or compares. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_of_bits __attribute__((vector_size(16)));

static pair pair_at(const double *values)
{
	pair two;
	memcpy(&two, values, sizeof(two));
	return two;
}

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

/* The ranks of an array that are wanted in their places. */
struct ranks {
	const double *values; /* the array */
	size_t count, rank[11];
};

/* Whether one is in this part of the array; without ranks all are. */
static bool has_rank(const struct ranks *ranks, const double *values, size_t count)
{
	bool has = !ranks;
	for (size_t i = 0; ranks && i < ranks->count; i++) {
		has |= ranks->rank[i] - (size_t)(values - ranks->values) < count;
	}
	return has;
}

/* Quick sort that turns to heap sort when the pivots are bad: a peer chooses the values, so the
 * worst case must be cheap too. Equal values (a coarse clock's) are done at once. Parts without a
 * wanted rank stay as they are. */
static void intro_sort(double *values, size_t count, unsigned depth, const struct ranks *ranks)
{
	while (count > SMALL_MAX) {
		if (!has_rank(ranks, values, count)) {
			return;
		}
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
			intro_sort(values, left, depth, ranks);
			values += left + 1;
			count = right;
		} else {
			intro_sort(values + left + 1, right, depth, ranks);
			count = left;
		}
	}
	if (has_rank(ranks, values, count)) {
		small_sort(values, count);
	}
}

static void sort_ranks(double *values, size_t count, const struct ranks *ranks)
{
	unsigned depth = 2;
	for (size_t n = count; n > 1; n /= 2) {
		depth += 2;
	}
	intro_sort(values, count, depth, ranks);
}

void proto_sort(double *values, size_t count)
{
	sort_ranks(values, count, NULL);
}

/* Copies the ranks [from, end) out of a part of the sorted array, which it sorts as far as needed.
 */
static void select_part(double *values, const struct ranks *ranks, size_t from, size_t end,
	double *part, size_t count, size_t first)
{
	struct ranks within = {.values = part};
	for (size_t i = from; i < end; i++) {
		within.rank[within.count++] = ranks->rank[i] - first;
	}
	sort_ranks(part, count, &within);
	for (size_t i = from; i < end; i++) {
		if (ranks->rank[i] - first < count) {
			values[ranks->rank[i]] = part[ranks->rank[i] - first];
		}
	}
}

/* What a pass over an array finds. low and high are around the median, top is below p90. */
struct scan {
	pair low, high, top;
	pair_of_bits apart;	       /* -1: values around the median differ, and are kept */
	size_t below, upto, below_top; /* less than low, not more than high, less than top */
	size_t middles, uppers;
	double middle[PART_MAX], upper[PART_MAX]; /* around the median; above top */
};

/* Counts a block, and keeps what is wanted of it. A comparison is 0 or -1, and what is to be kept
 * becomes a bit: no branch depends on a value, and several are compared at once. */
static void scan_block(struct scan *scan, const double *values)
{
	const pair low = scan->low, high = scan->high, top = scan->top;
	pair_of_bits below = {0}, upto = {0}, below_top = {0}, kept = {0};
	for (size_t i = 0; i < PART_BLOCK; i += 2) {
		pair two = pair_at(values + i);
		pair_of_bits less = (pair_of_bits)(two < low);
		pair_of_bits not_above = (pair_of_bits)(two <= high);
		below -= less;
		upto -= not_above;
		below_top -= (pair_of_bits)(two < top);
		kept = kept + kept -
		       ((not_above & ~less & scan->apart) | (pair_of_bits)(two > top));
	}
	scan->below += (size_t)(below[0] + below[1]);
	scan->upto += (size_t)(upto[0] + upto[1]);
	scan->below_top += (size_t)(below_top[0] + below_top[1]);
	for (size_t k = 0; k < 2; k++) {
		const double *last = values + PART_BLOCK - 2 + k;
		for (uint64_t bits = (uint64_t)kept[k]; bits; bits &= bits - 1) {
			double value = *(last - 2 * __builtin_ctzll(bits));
			scan->middle[scan->middles] = scan->upper[scan->uppers] = value;
			scan->middles += value <= high[0];
			scan->uppers += value > top[0];
		}
	}
}

/* Puts the ranks, those of the median first, in their places, and other values anywhere. False: the
 * guess is bad, and nothing has changed. */
static bool select_guessed(
	double *values, size_t count, const struct ranks *ranks, struct proto_guess *guess)
{
	const bool one = guess->low == guess->high;
	struct scan scan;
	scan.low = (pair){guess->low, guess->low};
	scan.high = (pair){guess->high, guess->high};
	scan.top = (pair){guess->top, guess->top};
	scan.apart = (pair_of_bits){one - 1, one - 1};
	scan.below = scan.upto = scan.below_top = scan.middles = scan.uppers = 0;
	for (size_t i = 0; i < count; i += PART_BLOCK) {
		double rest[PART_BLOCK];
		guess->crowded = scan.middles > PART_MAX - PART_BLOCK;
		if (guess->crowded || scan.uppers > PART_MAX - PART_BLOCK) {
			return false;
		}
		for (size_t k = 0; k < PART_BLOCK && count - i < PART_BLOCK; k++) {
			rest[k] = i + k < count ? values[i + k] : (double)NAN; /* never counts */
		}
		scan_block(&scan, count - i < PART_BLOCK ? rest : values + i);
	}
	const size_t first = count - scan.uppers, *rank = ranks->rank;
	if (rank[0] < scan.below || rank[1] >= scan.upto || rank[2] < scan.below_top) {
		return false;
	}
	for (size_t k = 2; k < ranks->count && rank[k] < first; k++) {
		values[rank[k]] = guess->top;
	}
	select_part(values, ranks, 2, ranks->count, scan.upper, scan.uppers, first);
	if (one) {
		values[rank[0]] = values[rank[1]] = guess->low;
	} else {
		select_part(values, ranks, 0, 2, scan.middle, scan.middles, scan.below);
	}
	return true;
}

/* Puts in their places what the percentiles below need. */
static void select_ranks(double *values, size_t count, struct proto_guess *guess)
{
	static const double p[] = {50, 90, 95, 99};
	struct ranks ranks = {.values = values};
	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++) {
		/* the nearest one is this or the next, too */
		size_t low = count > 0 ? (size_t)((double)(count - 1) * p[i] / 100.0) : 0;
		ranks.rank[ranks.count++] = low;
		ranks.rank[ranks.count++] = low + 1;
	}
	if (!guess || count < GUESS_MIN) {
		sort_ranks(values, count, &ranks);
	} else if (!select_guessed(values, count, &ranks, guess)) {
		const size_t low = count * 45 / 100, high = count * 55 / 100,
			     top = count * 87 / 100;
		ranks.rank[ranks.count++] = low;
		ranks.rank[ranks.count++] = high;
		ranks.rank[ranks.count++] = top;
		sort_ranks(values, count, &ranks);
		const bool one = guess->crowded; /* many are equal */
		guess->low = (float)values[one ? ranks.rank[0] : low];
		guess->high = (float)values[one ? ranks.rank[0] : high];
		guess->top = (float)values[top];
	}
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

struct totals {
	double sum, min, max;
};

/* In LANES sums at once: in one, each addition waits for the one before. Unrolled, they are in
 * registers. Sums of whole numbers are exact up to 2^53 ns, 104 days. count > 0. */
static struct totals totals_of(const double *values, size_t count)
{
	double min[LANES], max[LANES];
	pair sum[LANES / 2] = {{0}};
	size_t i = 0;
	for (size_t k = 0; k < LANES; k++) {
		min[k] = max[k] = values[0];
	}
	for (; i + LANES <= count; i += LANES) {
		sum[0] += pair_at(values + i);
		sum[1] += pair_at(values + i + 2);
#pragma GCC unroll 4
		for (size_t k = 0; k < LANES; k++) {
			double value = values[i + k];
			min[k] = value < min[k] ? value : min[k];
			max[k] = value > max[k] ? value : max[k];
		}
	}
	struct totals totals = {0, values[0], values[0]};
	for (; i < count; i++) {
		totals.sum += values[i];
		totals.min = fmin(totals.min, values[i]);
		totals.max = fmax(totals.max, values[i]);
	}
	for (size_t k = 0; k < LANES; k++) {
		totals.sum += sum[k / 2][k % 2];
		totals.min = fmin(totals.min, min[k]);
		totals.max = fmax(totals.max, max[k]);
	}
	return totals;
}

/* Of the distances from the mean. */
static double squares_of(const double *values, size_t count, double mean)
{
	pair lane[LANES / 2] = {{0}};
	double squares = 0;
	size_t i = 0;
	for (; i + LANES <= count; i += LANES) {
#pragma GCC unroll 4
		for (size_t k = 0; k < LANES / 2; k++) {
			pair distance = pair_at(values + i + 2 * k) - mean;
			lane[k] += distance * distance;
		}
	}
	for (; i < count; i++) {
		squares += (values[i] - mean) * (values[i] - mean);
	}
	for (size_t k = 0; k < LANES; k++) {
		squares += lane[k / 2][k % 2];
	}
	return squares;
}

void proto_summarize_window(double *ns, size_t count, bool nearest, struct proto_guess *guess,
	struct proto_summary *ret)
{
	double (*percentile)(const double *sorted, size_t count, double p) =
		nearest ? proto_percentile_nearest : proto_percentile;
	proto_summarize(NULL, 0, ret);
	if (count == 0) {
		return;
	}
	struct totals totals = totals_of(ns, count);
	double mean_ns = totals.sum / (double)count, squares = squares_of(ns, count, mean_ns);
	select_ranks(ns, count, guess);
	ret->count = count;
	ret->mean = mean_ns / 1e6;
	ret->min = totals.min / 1e6;
	ret->max = totals.max / 1e6;
	ret->std = sqrt(squares / (double)count) / 1e6;
	ret->std_sample = count > 1 ? sqrt(squares / (double)(count - 1)) / 1e6 : (double)NAN;
	ret->p50 = percentile(ns, count, 50) / 1e6;
	ret->p90 = percentile(ns, count, 90) / 1e6;
	ret->p95 = percentile(ns, count, 95) / 1e6;
	ret->p99 = percentile(ns, count, 99) / 1e6;
}
