/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.c: estimates without drawing: the variance of a mean under a block bootstrap is known
 * exactly, and a percentile is as uncertain as the share of values below it. */
#include "client/edgeprofctl/compare/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "client/edgeprofctl/ctl.h"
#include "proto/percentile.h"

enum { WARMUP_BATCH = 5 };

/* The squared error of the mean must fall to this share of it. */
#define WARMUP_GAIN 0.8

static double mean_of(const double *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++) {
		sum += values[i];
	}
	return sum / (double)count;
}

static size_t block_length(size_t count)
{
	return (count + STATISTICS_BLOCKS - 1) / STATISTICS_BLOCKS;
}

/* Of the mean: that of a circular block bootstrap. */
static double block_variance(const double *values, size_t count, double mean)
{
	size_t block = block_length(count);
	double blocks = (double)count / (double)block, sum = 0, squares = 0;
	for (size_t i = 0; i < count + block; i++) {
		sum += values[i % count] - mean;
		sum -= i >= block ? values[i - block] - mean : 0;
		squares += i >= block ? sum * sum : 0;
	}
	return squares / ((double)count * (double)block * (double)block * (blocks - 1));
}

/* Of a percentile: that of the percentiles between which the share of values up to it may as well
 * lie (Woodruff 1952), of the farther one. */
static double percentile_variance(
	const double *values, const double *sorted, double *below, size_t count, double percent)
{
	double value = proto_percentile(sorted, count, percent);
	for (size_t i = 0; i < count; i++) {
		below[i] = values[i] <= value;
	}
	double quantile = student_quantile(0.05, STATISTICS_BLOCKS - 1);
	double error = sqrt(block_variance(below, count, mean_of(below, count)));
	double reach = 100 * quantile * error;
	double low = proto_percentile(sorted, count, fmax(percent - reach, 0));
	double high = proto_percentile(sorted, count, fmin(percent + reach, 100));
	double off = fmax(value - low, high - value) / quantile;
	return off * off;
}

/* What a drift adds: where a straight line through the run changes by more than twice what chance
 * makes (a line through independent values has twelve times the variance of their mean), that of an
 * error which is uniform over the change: the run could as well have begun later. */
static double drift_variance(const double *values, size_t count, double variance)
{
	double n = (double)count, sum = 0;
	for (size_t i = 0; i < count; i++) {
		sum += values[i] * ((double)i - (n - 1) / 2);
	}
	double change = sum * 12 / ((n + 1) * (n - 1));
	return change * change > 4 * 12 * variance ? change * change / 12 : 0;
}

void estimate_values(const double *values, size_t count, struct estimate ret[STATISTICS])
{
	static const double percents[STATISTICS] = {[STATISTIC_P50] = 50, 95, 99};
	double *sorted = ctl_memory(count, sizeof(*sorted));
	double *below = ctl_memory(count, sizeof(*below));
	double mean = mean_of(values, count), variance = NAN, drift = NAN;
	double freedom = (double)count / (double)block_length(count) - 1;
	for (size_t i = 0; i < count; i++) {
		sorted[i] = values[i];
	}
	proto_sort(sorted, count);
	if (count >= STATISTICS_LEAST) {
		variance = block_variance(values, count, mean);
		drift = drift_variance(values, count, variance) / (mean * mean);
	}
	ret[STATISTIC_MEAN] = (struct estimate){mean, variance / (mean * mean) + drift, freedom};
	for (int s = STATISTIC_P50; s < STATISTICS; s++) {
		double value = proto_percentile(sorted, count, percents[s]);
		if (count >= STATISTICS_LEAST) {
			variance = percentile_variance(values, sorted, below, count, percents[s]);
		}
		ret[s] = (struct estimate){value, variance / (value * value) + drift, freedom};
	}
	free(sorted);
	free(below);
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

size_t warmup_length(const double *values, size_t count)
{
	size_t batches = count / WARMUP_BATCH, best = 0;
	double sum = 0, squares = 0, first = 0, least = INFINITY, rest = 0;
	/* From the end on: what is left when all before this batch is skipped. */
	for (size_t i = batches; i-- > 0;) {
		double mean = mean_of(values + i * WARMUP_BATCH, WARMUP_BATCH);
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

/* The density is that of t = sqrt(freedom) * tan(angle), integrated by Simpson's rule. */
double student_tail(double t, double freedom)
{
	enum { PARTS = 200 };
	double step = atan(fabs(t) / sqrt(freedom)) / PARTS, sum = 0;
	for (int i = 0; i <= PARTS; i++) {
		double weight = i == 0 || i == PARTS ? 1 : i % 2 > 0 ? 4 : 2;
		sum += weight * pow(cos(i * step), freedom - 1);
	}
	double scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(acos(-1));
	return fmax(1 - 2 * scale * sum * step / 3, 0);
}

double student_quantile(double tail, double freedom)
{
	double low = 0, high = 1e4;
	for (int i = 0; i < 40; i++) {
		double middle = (low + high) / 2;
		if (student_tail(middle, freedom) > tail) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return (low + high) / 2;
}
