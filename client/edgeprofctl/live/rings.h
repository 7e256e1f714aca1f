/* SPDX-License-Identifier: Apache-2.0 */
/* rings.h: keeps the latest metrics of the daemon, each with its last minute. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

enum { RING_POINTS = 128, RING_SPAN_US = 60 * 1000 * 1000 };

struct ring {
	cJSON *metric;		  /* as in the reply; owned */
	const char *name;	  /* in it */
	int64_t seen_us, step_us; /* step of the history that it is from; else 0 */
	unsigned count;
	struct point {
		int64_t time_us;
		double value;
	} points[RING_POINTS]; /* in order of time */
};

struct rings {
	struct ring **items;
	size_t count;
};

void rings_finish(struct rings *rings);

/* Appends the metrics of a reply of ListMetrics, which loses them. */
void rings_add_metrics(struct rings *rings, cJSON *reply, int64_t now_us);
/* Appends the series of a reply of GetHistory; the last row before or at now_us is the value. */
void rings_add_series(struct rings *rings, const cJSON *reply, int64_t now_us);
/* Drops metrics that were in no reply for a minute. */
void rings_prune(struct rings *rings, int64_t now_us);

const struct ring *rings_find(const struct rings *rings, const char *name);

/* NAN when there is none. */
double ring_value(const struct ring *ring);
/* It has a value, or had one in the last minute. */
bool ring_has_value(const struct ring *ring);
/* The value at that moment: that of the point before it, unless it is too long ago. */
double ring_at(const struct ring *ring, int64_t time_us);
