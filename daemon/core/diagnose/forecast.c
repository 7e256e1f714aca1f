/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c: weighs the fits since the last change of load, and judges what they agree on. */
#include "daemon/core/diagnose/forecast.h"

#include <math.h>
#include <stdbool.h>

#include "daemon/core/diagnose/thermal_change.h"

enum {
	POINTS_MIN = 12,
	SLOW = 40,
	FAST = 4,
	NODES = THERMAL_STARTS_KEPT * SLOW * (FAST + 1),
	BISECTIONS = 40
};

static const double HORIZON_S = 24 * 3600;
static const double TAIL = 0.025;    /* outside an interval, on each side */
static const double CERTAIN = 0.83;  /* of a time to the trip: to be within TOLERANCE */
static const double SETTLING_S = 60; /* before, the heat sink has hardly shown what it does */
static const double TOLERANCE = 0.2;
static const double REACHES = 0.975; /* at least: to say that the trip is reached */
static const double SAFE = 0.02;     /* at most: to say that it is not */
/* Weak assumptions, which count while there are few data: a steady state around 70 °C, a heat sink
 * of 4 min by a factor of 3. */
static const double STEADY = 70, TAU_S = 240, TAU_LOG_SIGMA = 1.2;

struct node {
	struct thermal_fit fit;
	size_t start;  /* candidate */
	double span_s; /* from there to the last point */
	double weight;
};

struct mixture {
	struct thermal_series series;
	struct thermal_change change;
	double variance; /* of a residual, times the inflation */
	size_t nodes, best;
	struct node node[NODES];
};

static void add_node(void *context, size_t first, const struct thermal_fit *fit)
{
	struct mixture *mixture = context;
	const struct thermal_series *series = &mixture->series;
	const size_t start = first / mixture->change.stride;
	if (mixture->change.weight[start] <= 0 || mixture->nodes == NODES) {
		return;
	}
	mixture->node[mixture->nodes] = (struct node){.fit = *fit,
		.start = start,
		.span_s = series->t[series->count - 1] - series->t[first]};
	if (start == mixture->change.likeliest &&
		(mixture->best == NODES ||
			fit->squares < mixture->node[mixture->best].fit.squares)) {
		mixture->best = mixture->nodes;
	}
	mixture->nodes++;
}

/* Residuals of the best fit: their variance, inflated by how much neighbours agree. */
static void inspect_residuals(struct mixture *mixture, struct forecast *ret)
{
	const struct node *best = &mixture->node[mixture->best];
	const size_t first = best->start * mixture->change.stride;
	const size_t count = mixture->series.count - first;
	const double *t = mixture->series.t + first, *y = mixture->series.value + first;
	double residual[THERMAL_POINTS], ignored, mean = 0, total = 0, squares = 0, inflation = 1;
	for (size_t i = 0; i < count; i++) {
		residual[i] = y[i] - thermal_fit_at(&best->fit, t[i] - t[0], &ignored);
		squares += residual[i] * residual[i];
		mean += y[i] / (double)count;
	}
	for (size_t i = 0; i < count; i++) {
		total += (y[i] - mean) * (y[i] - mean);
	}
	for (size_t lag = 1; lag < count / 3; lag++) {
		double product = 0;
		for (size_t i = lag; i < count; i++) {
			product += residual[i] * residual[i - lag];
		}
		if (!(product > 0.05 * squares)) {
			break;
		}
		inflation += 2 * product / squares;
	}
	const double variance = squares / (double)(count - best->fit.terms - 1);
	/* The fifth more is for time constants that a best fit makes look better than they are. */
	mixture->variance = 1.2 * inflation * fmax(variance, mixture->change.noise / 2);
	ret->rmse_celsius = sqrt(squares / (double)count);
	ret->r_squared = total > 0 ? 1 - squares / total : (double)NAN;
}

static void weigh(struct mixture *mixture)
{
	double least[THERMAL_STARTS], sum[THERMAL_STARTS] = {0}, total = 0;
	for (size_t i = 0; i < THERMAL_STARTS; i++) {
		least[i] = INFINITY;
	}
	for (size_t i = 0; i < mixture->nodes; i++) {
		const struct node *node = &mixture->node[i];
		least[node->start] = fmin(least[node->start], node->fit.squares);
	}
	for (size_t i = 0; i < mixture->nodes; i++) {
		struct node *node = &mixture->node[i];
		const double off = log(node->fit.slow_s / TAU_S) / TAU_LOG_SIGMA;
		const double count =
			(double)(mixture->series.count - node->start * mixture->change.stride);
		const double excess = node->fit.squares - least[node->start];
		node->weight = exp(-excess / (2 * mixture->variance) - off * off / 2) *
			       pow(count, -(double)node->fit.terms / 2);
		sum[node->start] += node->weight;
	}
	for (size_t i = 0; i < THERMAL_STARTS; i++) {
		total += sum[i] > 0 ? mixture->change.weight[i] : 0;
	}
	for (size_t i = 0; i < mixture->nodes; i++) {
		struct node *node = &mixture->node[i];
		node->weight *= mixture->change.weight[node->start] / sum[node->start] / total;
	}
}

/* P(T >= level) `ahead` seconds after the last point. */
static double above(const struct mixture *mixture, double level, double ahead)
{
	double sum = 0, variance;
	for (size_t i = 0; i < mixture->nodes; i++) {
		const struct node *node = &mixture->node[i];
		if (node->weight > 1e-6) {
			const double mean =
				thermal_fit_at(&node->fit, node->span_s + ahead, &variance);
			const double off = level - mixture->series.base - mean;
			sum += node->weight / 2 *
			       erfc(off / sqrt(2 * variance * mixture->variance + 1e-9));
		}
	}
	return sum;
}

/* Where the probability crosses this: the steady state (trip NAN), or when the trip point is
 * reached (INFINITY = not within the horizon). */
static double quantile(const struct mixture *mixture, double trip, double probability)
{
	const bool steady = isnan(trip);
	double low = steady ? -300 : 0, high = steady ? 1000 : HORIZON_S;
	if (!steady && above(mixture, trip, high) < probability) {
		return INFINITY;
	}
	for (int i = 0; i < BISECTIONS; i++) {
		const double middle = (low + high) / 2;
		const bool past = steady ? above(mixture, middle, INFINITY) <= probability
					 : above(mixture, trip, middle) >= probability;
		*(past ? &high : &low) = middle;
	}
	return (low + high) / 2;
}

static void set_unknown(struct forecast *ret, const char *reason)
{
	ret->state = FORECAST_UNKNOWN;
	ret->reason = reason;
}

static void judge_rise(const struct mixture *mixture, double trip, struct forecast *ret)
{
	if (!(above(mixture, trip, HORIZON_S) >= REACHES)) {
		set_unknown(ret, "it is too early to say where the temperature settles");
		return;
	}
	ret->soak = SOAK_THROTTLES;
	const double time = quantile(mixture, trip, 0.5);
	const double certain = above(mixture, trip, (1 + TOLERANCE) * time) -
			       above(mixture, trip, (1 - TOLERANCE) * time);
	if (!(certain >= CERTAIN)) {
		set_unknown(ret, "it is too early to say when the trip point is reached");
		return;
	}
	ret->state = FORECAST_REACHES;
	ret->to_trip_s = time;
	ret->to_trip_low_s = quantile(mixture, trip, TAIL);
	ret->to_trip_high_s = quantile(mixture, trip, 1 - TAIL);
}

static void judge(const struct mixture *mixture, double trip, struct forecast *ret)
{
	const double change = ret->steady_celsius - ret->now_celsius;
	const double noticeable = fmax(1, 2 * sqrt(mixture->change.noise));
	if (isnan(trip)) {
		set_unknown(ret, "there is no trip point");
	} else if (ret->now_celsius >= trip) {
		ret->state = FORECAST_AT_TRIP;
		ret->soak = SOAK_THROTTLES;
	} else if (!(above(mixture, trip, INFINITY) < SAFE)) {
		judge_rise(mixture, trip, ret);
	} else if (ret->since_s < SETTLING_S) {
		set_unknown(ret, "load or fan changed just now");
	} else {
		ret->soak = SOAK_SAFE;
		ret->state = change < -noticeable  ? FORECAST_FALLS
			     : change > noticeable ? FORECAST_SETTLES
						   : FORECAST_STEADY;
	}
}

static void read_series(
	const struct forecast_point *points, size_t count, struct thermal_series *series)
{
	const size_t skip = count > FORECAST_POINTS ? count - FORECAST_POINTS : 0;
	series->count = 0;
	for (size_t i = skip; i < count; i++) {
		const size_t at = series->count;
		if (!isfinite(points[i].t_s) || !(fabs(points[i].celsius) < 1000) ||
			(at > 0 && points[i].t_s <= series->t[at - 1])) {
			continue;
		}
		series->base = at == 0 ? points[i].celsius : series->base;
		series->t[at] = points[i].t_s;
		series->value[at] = points[i].celsius - series->base;
		series->count++;
	}
}

static void describe(const struct mixture *mixture, struct forecast *ret)
{
	const struct node *best = &mixture->node[mixture->best];
	double ignored, coldest = INFINITY;
	for (size_t i = 0; i < mixture->series.count; i++) {
		coldest = fmin(coldest, mixture->series.value[i]);
	}
	const double now = thermal_fit_at(&best->fit, best->span_s, &ignored),
		     steady = thermal_fit_at(&best->fit, INFINITY, &ignored);
	ret->points = mixture->series.count - best->start * mixture->change.stride;
	ret->since_s = best->span_s;
	ret->tau_s = best->fit.slow_s;
	ret->now_celsius = mixture->series.base + now;
	ret->steady_celsius = quantile(mixture, NAN, 0.5);
	ret->steady_low = quantile(mixture, NAN, 1 - TAIL);
	ret->steady_high = quantile(mixture, NAN, TAIL);
	/* What is left of the rise decays with the slow time constant. */
	const double left = (steady - now) / (steady - coldest);
	ret->soak_s = left > 0.05 ? best->fit.slow_s * log(left / 0.05) : 0;
}

void forecast_temperature(
	const struct forecast_point *points, size_t count, double trip, struct forecast *ret)
{
	struct mixture mixture;
	*ret = (struct forecast){.state = FORECAST_UNKNOWN};
	ret->now_celsius = ret->steady_celsius = ret->steady_low = ret->steady_high = NAN;
	ret->to_trip_s = ret->to_trip_low_s = ret->to_trip_high_s = ret->tau_s = NAN;
	ret->rmse_celsius = ret->r_squared = ret->since_s = ret->soak_s = NAN;
	read_series(points, count, &mixture.series);
	if (mixture.series.count < POINTS_MIN) {
		set_unknown(ret, "there are too few temperatures");
		return;
	}
	mixture.series.prior = STEADY - mixture.series.base;
	thermal_change_find(&mixture.series, &mixture.change);
	mixture.nodes = 0;
	mixture.best = NODES;
	thermal_grid(&mixture.series, mixture.series.count, mixture.change.stride, SLOW, FAST,
		add_node, &mixture);
	if (mixture.best == NODES ||
		mixture.series.count - mixture.node[mixture.best].start * mixture.change.stride <
			POINTS_MIN) {
		set_unknown(ret, "load or fan changed just now");
		return;
	}
	inspect_residuals(&mixture, ret);
	weigh(&mixture);
	describe(&mixture, ret);
	judge(&mixture, trip, ret);
}
