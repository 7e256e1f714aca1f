/* SPDX-License-Identifier: Apache-2.0 */
/* slope.c: fits a line to the recent samples of a metric. Points are decimated samples, not means
 * of several: a window then has no half-made point that a kill could damage. A point is written
 * next to those that count, and counts with one store. */
#include "daemon/core/alerts/slope.h"

#include <math.h>
#include <stdbool.h>

enum { SLOTS = ALERT_SLOPE_POINTS + 1, POINTS_MIN = 3 };

static const double MINUTE_NS = 60e9;

static uint64_t time_of(const struct alert_slope *window, uint64_t serial)
{
	return window->point[serial % SLOTS].t_ns;
}

/* Relative to the newest point, so that large values lose no digits; two passes, for the same. */
static double fit(const struct alert_slope *window)
{
	double x[ALERT_SLOPE_POINTS], y[ALERT_SLOPE_POINTS], mean_x = 0, mean_y = 0;
	const uint64_t count = window->to - window->from, last = window->to - 1;
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t serial = window->from + i;
		x[i] = -(double)(time_of(window, last) - time_of(window, serial)) / MINUTE_NS;
		y[i] = window->point[serial % SLOTS].value - window->point[last % SLOTS].value;
		mean_x += x[i] / (double)count;
		mean_y += y[i] / (double)count;
	}
	double xy = 0, xx = 0;
	for (uint64_t i = 0; i < count; i++) {
		xy += (x[i] - mean_x) * (y[i] - mean_y);
		xx += (x[i] - mean_x) * (x[i] - mean_x);
	}
	return xy / xx;
}

static void update(struct alert_slope *window, uint64_t over_ns)
{
	const uint64_t last_ns = time_of(window, window->to - 1);
	while (last_ns - time_of(window, window->from) > over_ns ||
		window->to - window->from > ALERT_SLOPE_POINTS) {
		window->from++;
	}
	const bool enough = window->to - window->from >= POINTS_MIN &&
			    last_ns - time_of(window, window->from) >= over_ns / 2;
	window->slope = enough ? fit(window) : (double)NAN;
	window->vanished = window->vanished && !enough;
}

void alert_slope_break(struct alert_slope *window)
{
	window->from = window->to;
	window->slope = NAN;
}

static enum alert_slope_found found(const struct alert_slope *window)
{
	return !isnan(window->slope) ? ALERT_SLOPE_KNOWN
	       : window->vanished    ? ALERT_SLOPE_VANISHED
				     : ALERT_SLOPE_UNKNOWN;
}

enum alert_slope_found alert_slope_add(
	struct alert_slope *window, uint64_t over_ns, double value, uint64_t t_ns)
{
	if (!isfinite(value)) {
		alert_slope_break(window);
		window->vanished = true;
		return ALERT_SLOPE_VANISHED;
	}
	if (window->from < window->to) {
		const uint64_t last_ns = time_of(window, window->to - 1);
		const uint64_t passed_ns = t_ns > last_ns ? t_ns - last_ns : 0;
		if (passed_ns < over_ns / ALERT_SLOPE_POINTS || passed_ns == 0) {
			return found(window);
		}
		if (passed_ns > over_ns / 4) {
			alert_slope_break(window);
		}
	}
	window->point[window->to % SLOTS].t_ns = t_ns;
	window->point[window->to % SLOTS].value = value;
	if (window->to - window->from == ALERT_SLOPE_POINTS) {
		window->from++;
	}
	__atomic_store_n(&window->to, window->to + 1, __ATOMIC_RELEASE);
	update(window, over_ns);
	return found(window);
}

void alert_slope_restore(struct alert_slope *window, uint64_t now_ns)
{
	const uint64_t count = window->to - window->from;
	bool valid = count <= ALERT_SLOPE_POINTS && window->to <= UINT64_MAX / 2;
	for (uint64_t i = 0; valid && i < count; i++) {
		const uint64_t serial = window->from + i;
		valid = isfinite(window->point[serial % SLOTS].value) &&
			time_of(window, serial) <= now_ns &&
			(i == 0 || time_of(window, serial) > time_of(window, serial - 1));
	}
	if (!valid) {
		window->from = window->to = 0;
	}
	window->slope =
		valid && count >= POINTS_MIN && !isnan(window->slope) ? fit(window) : (double)NAN;
	window->vanished = window->vanished != 0;
}
