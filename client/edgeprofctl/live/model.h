/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h: holds what one picture shows: the daemon's latest replies, or what history has of a
 * moment in the same shape, and the metrics with their last minute.
 */
#pragma once

#include <stdbool.h>
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

/* The first ones are replies with an array each. */
enum part {
	PART_APPS,
	PART_FRAMES,
	PART_STAGES,
	PART_PROCESSES,
	PART_ALERTS,
	PART_RULES,
	PART_EVENTS,
	PART_STATUS,
	PART_METRICS,
	PART_SERIES,
	PARTS
};

struct model {
	cJSON *parts[PARTS];
	struct ring **rings; /* the metrics */
	size_t ring_count;
	int64_t now_us; /* of the picture, on the daemon's clock; 0 = nothing yet */
	int64_t next_serial;
};

/* The limits of a metric by the alert rules; NAN: none. */
struct limits {
	double warning, critical;
};

void model_finish(struct model *model);

/* Takes the reply. */
void model_store(struct model *model, enum part part, cJSON *reply);

/* Gives each app its frames ("frame") and stages ("rows"). */
void model_join(struct model *model);

/* The rows of a part, and one of them by the text of a member; NULL: none. */
int model_count(const struct model *model, enum part part);
const cJSON *model_first(const struct model *model, enum part part);
cJSON *model_row(const struct model *model, enum part part, const char *member, const char *text);

/* The metric of that name; NULL: none. */
const struct ring *model_ring(const struct model *model, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* NAN when there is none. */
double ring_value(const struct ring *ring);
/* It has a value, or had one in the last minute. */
bool ring_has_value(const struct ring *ring);
/* The value at that moment: that of the point before it, unless it is too long ago. */
double ring_at(const struct ring *ring, int64_t time_us);

struct limits model_limits(const struct model *model, const char *metric);
