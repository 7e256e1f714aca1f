/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.c: resamples values in blocks. A replicate counts how often each rank was drawn, from
 * which the mean and all percentiles follow in one pass, without sorting. */
#include "client/edgeprofctl/compare/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/percentile.h"

enum {
	REPLICATES = 500,
	REPLICATES_LEAST = 100,
	DRAWS_MAX = 10000000, /* values drawn for one estimate: about 0.1 s */
	WARMUP_BATCH = 5,
};

/* The squared error of the mean must fall to this share of it. */
#define WARMUP_GAIN 0.8

/* A lower one, of ten blocks, is chance; a higher one cannot be measured with them. */
#define CORRELATION_MIN 0.5
#define CORRELATION_MAX 0.8

static const double percents[STATISTICS] = {0, 50, 95, 99};

/* A side's values, sorted, and which place each has among them, in the order of time. */
struct sample {
	size_t count;
	double *sorted;
	uint32_t *rank, *drawn;
};

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15U;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

static uint32_t rank_of(const struct sample *sample, double value)
{
	size_t low = 0, high = sample->count - 1;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (sample->sorted[middle] < value) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return (uint32_t)low;
}

static void draw(const struct sample *sample, size_t block, uint64_t *state)
{
	for (size_t i = 0; i < sample->count; i++) {
		sample->drawn[i] = 0;
	}
	for (size_t left = sample->count; left > 0;) {
		size_t at = (size_t)(next_random(state) % sample->count);
		size_t length = left < block ? left : block;
		for (size_t i = 0; i < length; i++) {
			sample->drawn[sample->rank[at]]++;
			at = at + 1 < sample->count ? at + 1 : 0;
		}
		left -= length;
	}
}

/* The statistics of what was drawn; percentiles as proto_percentile does. */
static void statistics_drawn(const struct sample *sample, double ret[STATISTICS])
{
	double sum = 0, lower = 0;
	size_t seen = 0;
	int next = STATISTIC_P50, waiting = 0; /* the upper one of two is still to come */
	for (size_t i = 0; i < sample->count; i++) {
		if (sample->drawn[i] == 0) {
			continue;
		}
		double value = sample->sorted[i];
		seen += sample->drawn[i];
		sum += value * sample->drawn[i];
		while (next < STATISTICS) {
			double k = (double)(sample->count - 1) * percents[next] / 100;
			size_t below = (size_t)k;
			if (!waiting && seen > below) {
				lower = value;
				waiting = 1;
			}
			if (!waiting || (seen <= below + 1 && seen < sample->count)) {
				break;
			}
			ret[next++] = lower + (value - lower) * (k - (double)below);
			waiting = 0;
		}
	}
	ret[STATISTIC_MEAN] = sum / (double)sample->count;
}

/* Of a percentile of values with a coarse resolution: that of a uniform error of one step. */
static double step_variance(const struct sample *sample, double percent)
{
	size_t at = (size_t)((double)(sample->count - 1) * percent / 100), low = at, high = at;
	double value = sample->sorted[at];
	while (low > 0 && sample->sorted[low] >= value) {
		low--;
	}
	while (high + 1 < sample->count && sample->sorted[high] <= value) {
		high++;
	}
	if (high - low <= 2) { /* no two are equal */
		return 0;
	}
	double step = fmax(value - sample->sorted[low], sample->sorted[high] - value);
	return step * step / 12;
}

static void resample(const struct sample *sample, struct estimate ret[STATISTICS])
{
	size_t block = (sample->count + STATISTICS_BLOCKS - 1) / STATISTICS_BLOCKS;
	size_t replicates = DRAWS_MAX / sample->count;
	replicates = replicates > REPLICATES	     ? REPLICATES
		     : replicates < REPLICATES_LEAST ? REPLICATES_LEAST
						     : replicates;
	double sum[STATISTICS] = {0}, squares[STATISTICS] = {0}, drawn[STATISTICS];
	uint64_t state = 1;
	for (size_t i = 0; i < replicates; i++) {
		draw(sample, block, &state);
		statistics_drawn(sample, drawn);
		for (int s = 0; s < STATISTICS; s++) {
			double off = drawn[s] - ret[s].value;
			sum[s] += off;
			squares[s] += off * off;
		}
	}
	double blocks = (double)sample->count / (double)block, n = (double)replicates;
	for (int s = 0; s < STATISTICS; s++) {
		double mean = sum[s] / n;
		double variance = (squares[s] / n - mean * mean) * n / (n - 1);
		variance = fmax(variance, 0) * blocks / (blocks - 1);
		if (s != STATISTIC_MEAN) {
			variance += step_variance(sample, percents[s]);
		}
		ret[s].variance = variance / (ret[s].value * ret[s].value);
		ret[s].freedom = blocks - 1;
	}
}

/* The squared change of the values over the run by a straight line through them. */
static double drift_squared(const double *values, size_t count)
{
	double n = (double)count, sum = 0;
	for (size_t i = 0; i < count; i++) {
		sum += values[i] * ((double)i - (n - 1) / 2);
	}
	double change = sum * 12 / (n * (n + 1) * (n - 1)) * n;
	return change * change;
}

/* The correlation of the means of neighbouring blocks, corrected for its bias (Kendall 1954). */
static double block_correlation(const double *values, size_t count, double mean)
{
	double before = 0, products = 0, squares = 0;
	for (size_t block = 0; block < STATISTICS_BLOCKS; block++) {
		size_t from = count * block / STATISTICS_BLOCKS;
		size_t to = count * (block + 1) / STATISTICS_BLOCKS;
		double sum = 0;
		for (size_t i = from; i < to; i++) {
			sum += values[i] - mean;
		}
		sum /= (double)(to - from);
		products += sum * before;
		squares += sum * sum;
		before = sum;
	}
	double correlation = squares > 0 ? products / squares : 0;
	return correlation + (1 + 4 * correlation) / STATISTICS_BLOCKS;
}

/* The share of the variance to add when blocks are not independent: as that of the mean of an
 * AR(1) process of their means. Or, where the run changes by more than twice what chance makes (a
 * line through independent values has twelve times the variance of their mean), that of an error
 * which is uniform over the change: the run could as well have begun later. */
static void widen(const double *values, size_t count, struct estimate ret[STATISTICS])
{
	struct estimate *mean = &ret[STATISTIC_MEAN];
	double correlation = fmin(block_correlation(values, count, mean->value), CORRELATION_MAX);
	double factor = correlation > CORRELATION_MIN ? (1 + correlation) / (1 - correlation) : 1;
	double drift = drift_squared(values, count) / (mean->value * mean->value);
	drift = drift > 4 * 12 * mean->variance ? drift / 12 : 0;
	for (int s = 0; s < STATISTICS; s++) {
		ret[s].variance = fmax(ret[s].variance * factor, ret[s].variance + drift);
	}
}

static int sample_init(struct sample *sample, const double *values, size_t count)
{
	sample->count = count;
	sample->sorted = malloc(count * sizeof(*sample->sorted));
	sample->rank = malloc(count * sizeof(*sample->rank));
	sample->drawn = malloc(count * sizeof(*sample->drawn));
	if (!sample->sorted || !sample->rank || !sample->drawn) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		sample->sorted[i] = values[i];
	}
	proto_sort(sample->sorted, count);
	for (size_t i = 0; i < count; i++) {
		sample->rank[i] = rank_of(sample, values[i]);
	}
	return 0;
}

int estimate_values(const double *values, size_t count, struct estimate ret[STATISTICS])
{
	struct sample sample = {0};
	for (int s = 0; s < STATISTICS; s++) {
		ret[s] = (struct estimate){NAN, NAN, NAN};
	}
	if (count == 0) {
		return 0;
	}
	int r = count > UINT32_MAX ? -ENOMEM : sample_init(&sample, values, count);
	if (r == 0) {
		double sum = 0;
		for (size_t i = 0; i < count; i++) {
			sum += values[i];
		}
		ret[STATISTIC_MEAN].value = sum / (double)count;
		for (int s = STATISTIC_P50; s < STATISTICS; s++) {
			ret[s].value = proto_percentile(sample.sorted, count, percents[s]);
		}
		if (count >= STATISTICS_LEAST) {
			resample(&sample, ret);
			widen(values, count, ret);
		}
	}
	free(sample.sorted);
	free(sample.rank);
	free(sample.drawn);
	return r;
}

struct estimate estimate_runs(const struct estimate *runs, size_t count)
{
	struct estimate ret = {NAN, NAN, NAN};
	double n = (double)count, sum = 0, within = 0, between = 0, freedom = 0;
	if (count < 2) {
		return count == 1 ? runs[0] : ret;
	}
	for (size_t i = 0; i < count; i++) {
		sum += runs[i].value;
		within += runs[i].variance * runs[i].value * runs[i].value;
		freedom += runs[i].freedom;
	}
	ret.value = sum / n;
	for (size_t i = 0; i < count; i++) {
		between += (runs[i].value - ret.value) * (runs[i].value - ret.value);
	}
	within /= n * n;
	between /= n * (n - 1);
	/* Values that are known for each run only once have no variance within. */
	bool between_counts = !(within >= between);
	ret.variance = (between_counts ? between : within) / (ret.value * ret.value);
	ret.freedom = between_counts ? n - 1 : freedom;
	return ret;
}

struct difference difference_of(const struct estimate *baseline, const struct estimate *current)
{
	struct difference ret = {NAN, NAN, NAN, NAN};
	double a = baseline->value, b = current->value;
	if (!(a > 0) || !(b > 0)) {
		return ret;
	}
	ret.percent = (b / a - 1) * 100;
	double va = baseline->variance, vb = current->variance, variance = va + vb;
	if (!isfinite(variance)) {
		return ret;
	}
	if (variance == 0) { /* constants */
		ret.low = ret.high = ret.percent;
		ret.p = a == b ? 1 : 0;
		return ret;
	}
	/* Welch 1947, on the scale of the logarithm */
	double freedom =
		variance * variance / (va * va / baseline->freedom + vb * vb / current->freedom);
	double error = sqrt(variance), off = log(b / a);
	double reach = student_quantile(0.05, freedom) * error;
	ret.low = expm1(off - reach) * 100;
	ret.high = expm1(off + reach) * 100;
	ret.p = student_tail(off / error, freedom);
	return ret;
}

void difference_adjust(struct difference **differences, size_t count)
{
	size_t tests = 0;
	for (size_t i = 0; i < count; i++) { /* ascending; those that are known first */
		struct difference *moved = differences[i];
		size_t at = i;
		tests += !isnan(moved->p);
		for (; at > 0 && !(differences[at - 1]->p <= moved->p) && !isnan(moved->p); at--) {
			differences[at] = differences[at - 1];
		}
		differences[at] = moved;
	}
	double least = 0;
	for (size_t i = 0; i < tests; i++) {
		least = fmax(least, fmin(differences[i]->p * (double)(tests - i), 1));
		differences[i]->p = least;
	}
}

size_t warmup_length(const double *values, size_t count)
{
	size_t batches = count / WARMUP_BATCH, best = 0;
	double sum = 0, squares = 0, first = 0, least = INFINITY, offset = 0, rest = 0;
	for (size_t i = 0; i < batches * WARMUP_BATCH; i++) {
		offset += values[i] / (double)(batches * WARMUP_BATCH);
	}
	/* From the end on: what is left when all before this batch is skipped. */
	for (size_t i = batches; i-- > 0;) {
		double mean = -offset;
		for (size_t j = 0; j < WARMUP_BATCH; j++) {
			mean += values[i * WARMUP_BATCH + j] / WARMUP_BATCH;
		}
		sum += mean;
		squares += mean * mean;
		double n = (double)(batches - i);
		double error = (squares - sum * sum / n) / (n * n);
		if (i <= batches / 4 && error < least) {
			least = error;
			best = i;
			rest = sum / n;
		}
		first = error;
	}
	bool slower = rest < sum / (double)batches; /* the skipped ones */
	return slower && least < WARMUP_GAIN * first ? best * WARMUP_BATCH : 0;
}

/* The continued fraction of the incomplete beta function (Lentz's method; DLMF 8.17.22). */
static double beta_fraction(double x, double a, double b)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double product = d;
	for (int m = 1; m < 1000; m++) {
		for (int odd = 0; odd < 2; odd++) {
			double at = a + 2 * m;
			double factor = odd ? -(a + m) * (a + b + m) * x / (at * (at + 1))
					    : m * (b - m) * x / ((at - 1) * at);
			d = 1 + factor * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + factor / c;
			c = fabs(c) < tiny ? tiny : c;
			product *= c * d;
		}
		if (fabs(c * d - 1) < 1e-12) {
			break;
		}
	}
	return product;
}

double student_tail(double t, double freedom)
{
	double a = freedom / 2, b = 0.5, x = freedom / (freedom + t * t);
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (!(x < 1)) {
		return 1;
	}
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
					 : 1 - front * beta_fraction(1 - x, b, a) / b;
}

double student_quantile(double tail, double freedom)
{
	double low = 0, high = 1e4;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;
		if (student_tail(middle, freedom) > tail) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return (low + high) / 2;
}
