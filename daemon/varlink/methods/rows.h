/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h: writes the types of the interface description that several methods share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/core.h"

struct alert;
struct app;
struct json;
struct metric;
struct pulse;
struct source;
struct stage;
struct timeline_entry;

/* What a stage or a frame stream has of its deadline. */
struct row_deadline {
	uint64_t deadline_ns; /* 0 = none */
	bool configured;      /* else declared by the app */
	uint64_t misses, judged, consecutive_misses, longest_misses, worst_ns;
};
void row_deadline(struct json *out, const struct row_deadline *deadline);

/* Wall time of a monotonic one, µs. */
int64_t row_time_us(const struct core *core, uint64_t t_ns);
/* Milliseconds since, to the µs; 0 for a time that is yet to come. */
double row_age_ms(uint64_t now_ns, uint64_t t_ns);

/* The value of a metric whose source is ok; NAN: it is not known now. */
double row_current(const struct core *core, const char *name, uint64_t now_ns);
void row_metric(
	struct json *out, const struct core *core, const struct metric *metric, uint64_t now_ns);
void row_source(struct json *out, const char *name, const struct source *source, uint64_t now_ns);
void row_alert(struct json *out, const struct core *core, const struct alert *alert);
void row_event(struct json *out, const struct core *core, const struct timeline_entry *entry);
/* The field "attributes" of a stage that has some. */
void row_attributes(struct json *out, const struct stage *stage);
/* name: of the field; NULL = an item of a list. */
void row_advice(struct json *out, const struct core *core, const struct app *app, const char *name);
/* The field "fps" of a stream of the app; null with fps_reason. When it is not of now, also what it
 * was last: last_fps, idle_ms. */
void row_rate(struct json *out, const struct app *app, const struct pulse *pulse, double fps,
	uint64_t now_ns);
