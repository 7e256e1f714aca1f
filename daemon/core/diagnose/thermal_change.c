/* SPDX-License-Identifier: Apache-2.0 */
/* thermal_change.c: fits all segments between candidates of changes, and weighs the last ones. */
#include "daemon/core/diagnose/thermal_change.h"

#include <math.h>
#include <string.h>

#include "proto/percentile.h"

enum { GRID_SLOW = 10, GRID_FAST = 3, POINTS_MIN = 8, POINTS_OF_SCATTER = 20 };

/* Heat sinks take minutes, dies seconds. */
static const double SLOW_MIN_S = 45, SLOW_MAX_S = 5400, FAST_MAX_S = 24, FAST_OCTAVES = 5;

/* Low enough that a change which is hard to see leaves candidates after it some weight. */
static const double CHANGE_COST = 10;

static const double PRIOR_SIGMA = 40; /* °C, of the steady state */

struct division {
	struct thermal_change *change;
	size_t candidates, count, end;
	double squares[THERMAL_STARTS][THERMAL_STARTS + 1]; /* of the segment from i to j */
	double cost[THERMAL_STARTS + 1];		    /* of all before candidate i */
};

/* Variance of the noise, from how far points are off the line between their neighbours; the
 * farthest do not count, so that steps do not. What is quantised has the noise of the quantum, in
 * a saw tooth whose neighbours agree: three times as much, in effect. */
static double noise_variance(const struct thermal_series *series)
{
	double off[THERMAL_POINTS], quantum = INFINITY, sum = 0;
	for (size_t i = 1; i < series->count; i++) {
		const double step = fabs(series->value[i] - series->value[i - 1]);
		quantum = step > 1e-6 ? fmin(quantum, step) : quantum;
	}
	const size_t count = series->count - 2, kept = count - count / 32 - (count > 8 ? 2 : 0);
	for (size_t i = 1; i <= count; i++) {
		const double *t = series->t + i, *y = series->value + i;
		const double part = (t[0] - t[-1]) / (t[1] - t[-1]);
		const double distance = y[0] - y[-1] - part * (y[1] - y[-1]);
		off[i - 1] = distance * distance / (1 + part * part + (1 - part) * (1 - part));
	}
	proto_sort(off, count);
	for (size_t i = 0; i < kept; i++) {
		sum += off[i] / (double)kept;
	}
	const double floor = isfinite(quantum) ? quantum * quantum / 12 : 0;
	sum *= 1.1; /* for those that do not count */
	return fmax(sum < floor ? 3 * floor : sum, 1e-4);
}

void thermal_grid(const struct thermal_series *series, size_t end, size_t stride, size_t slows,
	size_t fasts, thermal_fit_function *function, void *context)
{
	const double step =
		(series->t[series->count - 1] - series->t[0]) / (double)(series->count - 1);
	for (size_t i = 0; i < slows; i++) {
		const double part = (double)i / (double)(slows - 1);
		const double slow = SLOW_MAX_S * pow(SLOW_MIN_S / SLOW_MAX_S, part);
		for (size_t j = 0; j <= fasts; j++) {
			const double octaves = FAST_OCTAVES * ((double)j - 1) / (double)fasts;
			const double fast = j == 0 ? 0 : FAST_MAX_S * exp2(-octaves);
			if (fast <= slow / 3 && (j == 0 || fast > step / 3)) {
				thermal_fit_ends(
					series, slow, fast, end, stride, function, context);
			}
		}
	}
}

static void note_squares(void *context, size_t first, const struct thermal_fit *fit)
{
	struct division *division = context;
	double *squares = &division->squares[first / division->change->stride][division->end];
	*squares = fmin(*squares, fit->squares);
}

static size_t point_of(const struct division *division, size_t candidate)
{
	const size_t point = candidate * division->change->stride;
	return point < division->count ? point : division->count;
}

static void fit_segments(const struct thermal_series *series, struct division *division)
{
	double least = INFINITY;
	for (size_t j = 1; j <= division->candidates; j++) {
		for (size_t i = 0; i < j; i++) {
			division->squares[i][j] = INFINITY;
		}
		division->end = j;
		thermal_grid(series, point_of(division, j), division->change->stride, GRID_SLOW,
			GRID_FAST, note_squares, division);
		for (size_t i = 0; i < j; i++) {
			const size_t points = point_of(division, j) - point_of(division, i);
			if (points >= POINTS_OF_SCATTER) {
				least = fmin(least, division->squares[i][j] / (double)(points - 4));
			}
		}
	}
	/* Noise whose neighbours agree shows only here. */
	division->change->noise =
		isfinite(least) ? fmax(division->change->noise, least) : division->change->noise;
}

static void add_costs(struct division *division)
{
	const double noise = division->change->noise;
	division->cost[0] = 0;
	for (size_t j = 1; j <= division->candidates; j++) {
		division->cost[j] = INFINITY;
		for (size_t i = 0; i < j; i++) {
			const size_t points = point_of(division, j) - point_of(division, i);
			const double few = points < POINTS_MIN ? 1.5 * (double)points : INFINITY;
			const double cost = division->cost[i] + (i > 0 ? CHANGE_COST : 0) +
					    fmin(division->squares[i][j] / noise, few);
			division->cost[j] = fmin(division->cost[j], cost);
		}
	}
}

void thermal_change_find(struct thermal_series *series, struct thermal_change *ret)
{
	struct division division = {.change = ret, .count = series->count};
	*ret = (struct thermal_change){.noise = noise_variance(series),
		.stride = (series->count + THERMAL_STARTS - 1) / THERMAL_STARTS};
	series->prior_weight = ret->noise / (PRIOR_SIGMA * PRIOR_SIGMA);
	division.candidates = (series->count + ret->stride - 1) / ret->stride;
	fit_segments(series, &division);
	add_costs(&division);
	double least = INFINITY, sorted[THERMAL_STARTS];
	const size_t end = division.candidates;
	for (size_t i = 0; i < end; i++) {
		ret->weight[i] = division.cost[i] + division.squares[i][end] / ret->noise +
				 (i > 0 ? CHANGE_COST : 0);
		if (ret->weight[i] < least) {
			least = ret->weight[i];
			ret->likeliest = i;
		}
	}
	for (size_t i = 0; i < end; i++) {
		ret->weight[i] = sorted[i] = exp(-(ret->weight[i] - least) / 2);
	}
	proto_sort(sorted, end);
	const double limit = end > THERMAL_STARTS_KEPT ? sorted[end - THERMAL_STARTS_KEPT] : 0;
	for (size_t i = 0; i < end; i++) {
		ret->weight[i] = ret->weight[i] < fmax(limit, 0.002) ? 0 : ret->weight[i];
	}
}
