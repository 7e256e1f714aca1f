/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.h: forecasts a temperature: where it settles, and when it reaches a trip point if load
 * and fan stay as they are. A wrong number is worse than none: what the data do not decide is
 * FORECAST_UNKNOWN, with the reason.
 *
 * The points since the last change of load or fan are fitted by the step response of a die on a
 * heat sink, c0 + c1 exp(-t / slow) + c2 exp(-t / fast). For given time constants that is a
 * regression (variable projection: Golub and Pereyra, SIAM J. Numer. Anal. 10(2), 1973); the time
 * constants are a grid, weighed by likelihood. P(T(t) >= trip) is then a mixture of normal
 * probabilities, and its quantiles over t are the time to the trip and its interval.
 *
 * Noise bounds how early an answer can be right. By the Cramér-Rao bound, an estimate with the same
 * weak assumptions that knew when the load came could answer for 39 % of simulated boards at a
 * third of the way to the trip, 88 % at half, if 95 % of its answers are to be within a fifth
 * (noise up to 0.3 °C, 40 points or more in the first third). This one, which finds out when the
 * load came, answers for 31 %, 67 % and, at 0.7 of the way, 89 %; 93, 96 and 97 % are right.
 */
#pragma once

#include <stddef.h>

enum { FORECAST_POINTS = 256 /* half a millisecond */ };

struct forecast_point {
	double t_s, celsius;
};

enum forecast_state {
	FORECAST_UNKNOWN,
	FORECAST_STEADY,  /* and below the trip point */
	FORECAST_REACHES, /* rises and reaches the trip point in to_trip_s */
	FORECAST_SETTLES, /* rises, but settles below the trip point */
	FORECAST_AT_TRIP, /* at or above it */
	FORECAST_FALLS
};

/* What is not known is NAN. Intervals are of 95 %. */
struct forecast {
	enum forecast_state state;
	const char *reason; /* of FORECAST_UNKNOWN, static; else NULL */
	double now_celsius; /* without noise */
	double steady_celsius, steady_low, steady_high;
	double margin_celsius; /* of noise and resolution: what is closer to a limit is not safe */
	double tau_s;	       /* the slow one */
	double to_trip_s, to_trip_low_s, to_trip_high_s;
	double rmse_celsius, r_squared;
	double since_s; /* length of the time that the fit rests on: since the last change */
	size_t points;	/* in it */
};

/* Points ascend by time; of more than FORECAST_POINTS the last ones count. Points that are not
 * finite or not later than the one before are skipped. Without a trip point, trip is NAN. */
void forecast_temperature(
	const struct forecast_point *points, size_t count, double trip, struct forecast *ret);
