/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slope.h: estimates how fast a metric grows, as the slope of the least squares line through at
 * most ALERT_SLOPE_POINTS samples of the last `over`, at their true times. A window is in memory
 * that outlives the process, or on the heap; anybody may read it, only slope.c writes it. Never
 * allocates.
 */
#pragma once

#include <stdint.h>

enum { ALERT_SLOPE_POINTS = 32 };

struct alert_slope {
	uint64_t key;	   /* of rule and metric; 0 = free */
	uint64_t from, to; /* serial numbers of the points that count: [from, to) */
	uint64_t vanished; /* the metric was null when this window began */
	double slope;	   /* in the metric's unit a minute; NAN = unknown */
	struct {
		uint64_t t_ns;
		double value;
	} point[ALERT_SLOPE_POINTS + 1]; /* by serial; one is being written while 32 count */
};

enum alert_slope_found {
	ALERT_SLOPE_KNOWN,
	ALERT_SLOPE_UNKNOWN,  /* too little since the start, or since a gap */
	ALERT_SLOPE_VANISHED, /* the metric is null, or was and there is too little since */
};

/* Appends a sample (NAN = null). A point is kept every over/32 at most. Known when the points span
 * half of `over`; a null, or over/4 without a point, restarts the window. */
enum alert_slope_found alert_slope_add(
	struct alert_slope *window, uint64_t over_ns, double value, uint64_t t_ns);

/* What comes is not a continuation (the machine was suspended). */
void alert_slope_break(struct alert_slope *window);

/* Makes any bytes a window that can be used: damaged points are dropped. */
void alert_slope_restore(struct alert_slope *window, uint64_t now_ns);
