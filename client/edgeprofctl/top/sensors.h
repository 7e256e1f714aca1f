/* SPDX-License-Identifier: Apache-2.0 */
/* sensors.h: chooses the sensors that a picture lists, names them, and finds their scales. */
#pragma once

#include "client/edgeprofctl/top/view.h"

enum { SENSORS_MAX = 256, SENSOR_NAME = 64 };

struct sensor {
	const struct ring *ring;
	int rank; /* the most important ones have 1 */
	char name[SENSOR_NAME];
};

/* Those that the filter wants, in groups: at most `height`, the most important ones; or all, also
 * those without a value. */
enum { SENSORS_ALL = -1 };
size_t sensors_list(const struct view *view, int height, struct sensor ret[SENSORS_MAX]);

/* A value from `low` to `high`, and the limits of the alert rules (NAN: none). */
struct scale {
	double low, high, warning, critical;
	bool bounded; /* high is a limit, not the largest value of the minute */
};
struct scale sensor_scale(const struct model *model, const struct ring *ring);
int sensor_ink(const struct scale *scale, const struct ring *ring);

/* The value with its unit: what needs no limit to be understood is clean text. */
void sensor_value(const struct view *view, const struct ring *ring, char *ret, size_t size);
/* A further fact about the sensor, or "". */
void sensor_note(const struct view *view, const struct ring *ring, char *ret, size_t size);

/* Draws the last minute of the metric. */
void sensor_graph(const struct view *view, struct box box, const struct ring *ring,
	const struct scale *scale);
