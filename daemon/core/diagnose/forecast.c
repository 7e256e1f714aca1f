/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c: finds where the present load began, fits step responses from there on with each time
 * constant of a grid, and judges what the likely ones agree on. */
#include "daemon/core/diagnose/forecast.h"

#include <math.h>
#include <stdbool.h>

#include "proto/percentile.h"

enum { TERMS = 3, SLOW = 28, FAST = 3, NODES = SLOW * (FAST + 1), SCAN_SLOW = 8 };
enum { POINTS_MIN = 12, FIT_MIN = 8, BLOCKS = 40, BISECTIONS = 16, ANSWER_POINTS = 20, MANY = 40 };

/* Heat sinks take minutes, dies seconds; steady states are around 70 °C, rises some tens. Weaker
 * assumptions answer a tenth more often at a third of the way, but 12 % of them wrong, not 7 %. */
static const double SLOW_MIN_S = 45, SLOW_MAX_S = 1800, FAST_S[FAST] = {2, 5, 13}, FINER = 0.55,
		    WIDE = 4;
static const double STEADY = 70, SIGMA[TERMS + 1] = {20, 30, 8, INFINITY};

static const double DRIFT = 0.8, CHANGE = 5; /* of the test for a change, in sigma */
static const double CERTAIN = 0.83; /* at least, of the time to the trip: to be within a fifth */
static const double CERTAIN_OF_FEW = 0.91, NOISY = 0.18; /* or noisy ones, °C² */
static const double REACHES = 0.95, SAFE = 0.005;	 /* P(trip is reached): at least, at most */
static const double TAIL = 0.025;			 /* outside an interval, on each side */
static const double MARGIN = 1;				 /* °C; sensors resolve 0.5 to 1 °C */
static const double HORIZON_S = 24 * 3600, ANSWER_S = 30, SAFE_S = 60;

/* T = STEADY + c0 + c1 exp(-t / slow) + c2 exp(-t / fast), t from the first point of the fit. The
 * rows are of Cholesky's decomposition of the normal equations, the last that of their values. */
struct node {
	double slow_s, fast_s, weight, squares; /* fast 0: without it */
	double lower[TERMS + 1][TERMS + 1];
};

struct block {
	double squares, slow_s, fast_s; /* of the best fit of the points from here on */
};

struct mixture {
	size_t count, first, best;
	double step_s, span_s;	/* mean distance in time; from the first point of the fit */
	double noise, variance; /* of a point; of a residual, times their correlation */
	double t[FORECAST_POINTS], y[FORECAST_POINTS];
	struct node node[NODES];
};

static double square(double x)
{
	return x * x;
}

/* The weak assumptions about the coefficients count as further points. */
static void decompose(struct node *node, double sums[TERMS + 1][TERMS + 1], double noise)
{
	for (size_t i = 0; i <= TERMS; i++) {
		double *row = node->lower[i];
		const double weight = noise / square(SIGMA[i]);
		for (size_t j = 0; j <= i; j++) {
			row[j] = sums[i][j] + (i == j ? weight : 0);
			for (size_t k = 0; k < j; k++) {
				row[j] -= row[k] * node->lower[j][k];
			}
			row[j] = i == j ? sqrt(fmax(row[j], weight / 4))
					: row[j] / node->lower[j][j];
		}
	}
	node->squares = square(node->lower[TERMS][TERMS]);
}

/* exp(-dt / tau), from that of a mean step, which is hardly different: exp takes most time. */
static double decay(double dt, double step_s, double tau_s, double of_step)
{
	const double x = (step_s - dt) / tau_s;
	return fabs(x) < 0.03 ? of_step * (1 + x * (1 + x / 2 * (1 + x / 3))) : exp(-dt / tau_s);
}

/* Fits the points from `first` on, backwards, which makes each the new origin of time. */
static void fit(
	const struct mixture *mixture, size_t stride, struct block *blocks, struct node *node)
{
	const double step_s = mixture->step_s, slow_step = exp(-step_s / node->slow_s),
		     fast_step = node->fast_s > 0 ? exp(-step_s / node->fast_s) : 0;
	double sums[TERMS + 1][TERMS + 1] = {{0}}, part[TERMS + 1] = {1, 0, 0, 1};
	for (size_t k = mixture->count; k-- > mixture->first;) {
		const double term[TERMS + 1] = {1, 1, node->fast_s > 0, mixture->y[k]};
		if (k + 1 < mixture->count) {
			const double dt = mixture->t[k + 1] - mixture->t[k];
			part[1] = decay(dt, step_s, node->slow_s, slow_step);
			part[2] = fast_step > 0 ? decay(dt, step_s, node->fast_s, fast_step) : 0;
		}
		for (size_t i = 0; i <= TERMS; i++) {
			for (size_t j = 0; j <= i; j++) {
				sums[i][j] = term[i] * term[j] + part[i] * part[j] * sums[i][j];
			}
		}
		if (blocks && k % stride == 0 && mixture->count - k >= FIT_MIN) {
			decompose(node, sums, mixture->noise);
			if (node->squares < blocks[k / stride].squares) {
				blocks[k / stride] =
					(struct block){node->squares, node->slow_s, node->fast_s};
			}
		}
	}
	decompose(node, sums, mixture->noise);
}

/* Fits a grid of time constants: all, or those around a block's best. */
static void fit_grid(struct mixture *mixture, size_t slows, const struct block *around,
	size_t stride, struct block *blocks)
{
	const double low = around ? fmax(around->slow_s / WIDE, SLOW_MIN_S) : SLOW_MIN_S,
		     high = around ? fmin(around->slow_s * WIDE, SLOW_MAX_S) : SLOW_MAX_S;
	mixture->best = 0;
	for (size_t i = 0; i < slows * (FAST + 1); i++) {
		const size_t j = i % (FAST + 1);
		const double part = (double)(i / (FAST + 1)) / (double)(slows - 1);
		const double fast = j == 0 ? 0
				    : around && around->fast_s > 0
					    ? around->fast_s * pow(FINER, (double)j - 2)
					    : FAST_S[j - 1];
		struct node *node = &mixture->node[i];
		*node = (struct node){.slow_s = low * pow(high / low, part),
			.fast_s = fast > mixture->step_s / 3 ? fast : 0};
		fit(mixture, stride, blocks, node);
		mixture->best =
			node->squares < mixture->node[mixture->best].squares ? i : mixture->best;
	}
}

/* Going backwards, a change shows as squares that grow faster than by noise: a cumulative sum
 * (Page, Biometrika 41, 1954), whose last zero is where the change was. Leaves the fit of it. */
static void find_change(struct mixture *mixture)
{
	const size_t stride = (mixture->count + BLOCKS - 1) / BLOCKS;
	size_t at = (mixture->count - FIT_MIN) / stride, first = at;
	struct block best[BLOCKS];
	double sum = 0;
	for (size_t i = 0; i < BLOCKS; i++) {
		best[i].squares = INFINITY;
	}
	fit_grid(mixture, SCAN_SLOW, NULL, stride, best);
	while (at-- > 0 && sum <= CHANGE) {
		const double count = (double)(mixture->count - (at + 1) * stride);
		const double last = best[at + 1].squares,
			     noise = fmax(mixture->noise, last / fmax(count - 4, 4)),
			     m = (double)stride;
		const double excess = (best[at].squares - last) / noise - m;
		sum = fmax(0, sum + excess / sqrt(2 * m) - DRIFT);
		first = sum > 0 ? first : at;
	}
	mixture->first = first * stride;
	mixture->span_s = mixture->t[mixture->count - 1] - mixture->t[mixture->first];
	fit_grid(mixture, SLOW, &best[first], 0, NULL);
}

/* Value t seconds after the first point (INFINITY: the steady state); its variance, in units of
 * that of a residual, in *ret_variance. */
static double fit_at(const struct node *node, double t, double *ret_variance)
{
	double part[TERMS] = {
		1, exp(-t / node->slow_s), t < 20 * node->fast_s ? exp(-t / node->fast_s) : 0};
	double value = 0;
	*ret_variance = 0;
	for (size_t i = 0; i < TERMS; i++) {
		for (size_t j = 0; j < i; j++) {
			part[i] -= node->lower[i][j] * part[j];
		}
		part[i] /= node->lower[i][i];
		value += part[i] * node->lower[TERMS][i];
		*ret_variance += square(part[i]);
	}
	return value;
}

/* Posterior weights: likelihood, with what the coefficients' integral contributes. */
static void weigh(struct mixture *mixture, struct forecast *ret)
{
	const struct node *best = &mixture->node[mixture->best];
	const double *t = mixture->t + mixture->first, *y = mixture->y + mixture->first;
	const double count = (double)(mixture->count - mixture->first);
	double last = 0, ignored, sum = 0, y_y = 0, squares = 0, product = 0, total = 0;
	for (size_t i = 0; i < mixture->count - mixture->first; i++) {
		const double residual = y[i] - fit_at(best, t[i] - t[0], &ignored);
		squares += square(residual);
		product += residual * last;
		sum += y[i];
		y_y += square(y[i]);
		last = residual;
	}
	const double correlation = fmin(fmax(0, product / squares - 2 / sqrt(count)), 0.9);
	mixture->variance =
		fmax(mixture->noise, squares / (count - 4)) * (1 + correlation) / (1 - correlation);
	ret->rmse_celsius = sqrt(squares / count);
	ret->r_squared = 1 - squares / fmax(y_y - sum * sum / count, squares);
	for (size_t i = 0; i < NODES; i++) {
		struct node *node = &mixture->node[i];
		node->weight = exp((best->squares - node->squares) / (2 * mixture->variance));
		for (size_t k = 0; k < TERMS; k++) {
			node->weight *= sqrt(mixture->noise) / SIGMA[k] / node->lower[k][k];
		}
		total += node->weight *= node->fast_s > 0 ? 0.6 / FAST : 0.4;
	}
	for (size_t i = 0; i < NODES; i++) {
		mixture->node[i].weight /= total;
	}
}

/* P(T >= level) `ahead` seconds after the last point. */
static double above(const struct mixture *mixture, double level, double ahead)
{
	double sum = 0, variance;
	for (size_t i = 0; i < NODES; i++) {
		const struct node *node = &mixture->node[i];
		if (node->weight > 5e-4) {
			const double off =
				level - STEADY - fit_at(node, mixture->span_s + ahead, &variance);
			sum += node->weight / 2 *
			       erfc(off / sqrt(2 * variance * mixture->variance + 1e-9));
		}
	}
	return sum;
}

/* Where the probability crosses this: the steady state (trip NAN), or the time to the trip
 * (INFINITY = not within the horizon). */
static double quantile(const struct mixture *mixture, double trip, double probability)
{
	const bool steady = isnan(trip);
	double low = steady ? -100 : 0.1, high = steady ? 300 : HORIZON_S;
	for (int i = 0; i < BISECTIONS; i++) {
		const double middle = steady ? (low + high) / 2 : sqrt(low * high);
		const bool past = steady ? above(mixture, middle, INFINITY) <= probability
					 : above(mixture, trip, middle) >= probability;
		*(past ? &high : &low) = middle;
	}
	return high < HORIZON_S ? high : INFINITY;
}

static void judge(const struct mixture *mixture, double trip, struct forecast *ret)
{
	const double change = ret->steady_celsius - ret->now_celsius;
	const double time = isnan(trip) ? trip : quantile(mixture, trip, 0.5);
	if (isnan(trip)) {
		ret->reason = "there is no trip point";
	} else if (ret->now_celsius >= trip) {
		ret->state = FORECAST_AT_TRIP;
	} else if (ret->since_s < ANSWER_S || ret->points < ANSWER_POINTS) {
		ret->reason = mixture->first > 0 ? "load or fan changed just now"
						 : "temperatures are known for too short a time";
	} else if (ret->since_s >= SAFE_S && above(mixture, trip, INFINITY) < SAFE) {
		ret->state = change < -ret->margin_celsius  ? FORECAST_FALLS
			     : change > ret->margin_celsius ? FORECAST_SETTLES
							    : FORECAST_STEADY;
	} else if (above(mixture, trip, HORIZON_S) < REACHES) {
		ret->reason = "it is too early to say where the temperature settles";
	} else {
		const double certain =
			above(mixture, trip, time / 0.8) - above(mixture, trip, time / 1.2);
		const bool few = ret->points < MANY || mixture->noise > NOISY;
		if (certain < (few ? CERTAIN_OF_FEW : CERTAIN)) {
			ret->reason = "it is too early to say when the trip point is reached";
			return;
		}
		ret->state = FORECAST_REACHES;
		ret->to_trip_s = time;
		ret->to_trip_low_s = quantile(mixture, trip, TAIL);
		ret->to_trip_high_s = quantile(mixture, trip, 1 - TAIL);
	}
}

/* Variance of the noise, from how far points are off the line between their neighbours; the
 * farthest do not count, so that steps do not. A quantum larger than the noise does not show. */
static double noise_variance(const struct mixture *mixture)
{
	double off[FORECAST_POINTS], quantum = INFINITY, sum = 0;
	const size_t count = mixture->count - 2, kept = count - count / 32 - 2;
	for (size_t i = 0; i < count; i++) {
		const double *t = mixture->t + i, *y = mixture->y + i;
		const double part = (t[1] - t[0]) / (t[2] - t[0]), step = fabs(y[1] - y[0]);
		quantum = step > 1e-3 ? fmin(quantum, step) : quantum;
		off[i] = square(y[1] - y[0] - part * (y[2] - y[0])) /
			 (1 + square(part) + square(1 - part));
	}
	proto_sort(off, count);
	for (size_t i = 0; i < kept; i++) {
		sum += 1.1 * off[i] / (double)kept;
	}
	return fmax(fmax(sum, isfinite(quantum) ? square(quantum) / 12 : 0), 1e-4);
}

static void describe(const struct mixture *mixture, struct forecast *ret)
{
	const struct node *best = &mixture->node[mixture->best];
	double ignored;
	ret->points = mixture->count - mixture->first;
	ret->since_s = mixture->span_s;
	ret->tau_s = best->slow_s;
	ret->now_celsius = STEADY + fit_at(best, mixture->span_s, &ignored);
	ret->steady_celsius = quantile(mixture, NAN, 0.5);
	ret->steady_low = quantile(mixture, NAN, 1 - TAIL);
	ret->steady_high = quantile(mixture, NAN, TAIL);
}

/* The same value for long needs no fit, which would take the end of a step for a change. A sensor
 * of coarse steps also keeps its value while it rises, but not for half of the time. */
static bool is_constant(const struct mixture *mixture, double trip, struct forecast *ret)
{
	const size_t last = mixture->count - 1;
	const double value = mixture->y[last] + STEADY;
	size_t first = last;
	while (first > 0 && mixture->y[first - 1] == mixture->y[last]) {
		first--;
	}
	const double since_s = mixture->t[last] - mixture->t[first];
	if (since_s < SAFE_S || 2 * since_s < mixture->t[last] - mixture->t[0] || !(value < trip)) {
		return false;
	}
	ret->state = FORECAST_STEADY;
	ret->now_celsius = ret->steady_celsius = ret->steady_low = ret->steady_high = value;
	ret->since_s = since_s;
	ret->points = mixture->count - first;
	return true;
}

void forecast_temperature(
	const struct forecast_point *points, size_t count, double trip, struct forecast *ret)
{
	struct mixture mixture = {.count = 0};
	*ret = (struct forecast){FORECAST_UNKNOWN, NULL, NAN, NAN, NAN, NAN, MARGIN, NAN, NAN, NAN,
		NAN, NAN, NAN, NAN, 0};
	for (size_t i = count > FORECAST_POINTS ? count - FORECAST_POINTS : 0; i < count; i++) {
		const size_t at = mixture.count;
		if (isfinite(points[i].t_s) && fabs(points[i].celsius) < 1000 &&
			(at == 0 || points[i].t_s > mixture.t[at - 1])) {
			mixture.t[at] = points[i].t_s;
			mixture.y[at] = points[i].celsius - STEADY;
			mixture.count++;
		}
	}
	if (mixture.count < POINTS_MIN) {
		ret->reason = "there are too few temperatures";
		return;
	}
	if (is_constant(&mixture, trip, ret)) {
		return;
	}
	mixture.step_s =
		(mixture.t[mixture.count - 1] - mixture.t[0]) / (double)(mixture.count - 1);
	mixture.noise = noise_variance(&mixture);
	ret->margin_celsius = fmax(MARGIN, 2 * sqrt(mixture.noise));
	find_change(&mixture);
	weigh(&mixture, ret);
	describe(&mixture, ret);
	judge(&mixture, trip, ret);
	if (ret->state == FORECAST_UNKNOWN) { /* then its steady state is a guess, too */
		ret->steady_celsius = ret->steady_low = ret->steady_high = NAN;
	}
}
