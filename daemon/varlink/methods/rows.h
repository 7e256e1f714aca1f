/* One object of each type of the interface description, written as an array item or a field. */
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
/* The field "fps" of a stream of the app. When it is not of now, null with its reason, and what it
 * was last: fps_reason, last_fps, idle_ms. */
void row_rate(struct json *out, const struct app *app, const struct pulse *pulse, double fps,
	uint64_t now_ns);
