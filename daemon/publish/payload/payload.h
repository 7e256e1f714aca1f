/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h: declares what is published over MQTT: flat JSON objects, numbers keyed by name with
 * the unit in the key, no arrays. Every one holds schema, ts (ISO 8601, Z, ms) and ts_ms, mono_us
 * (the same time on CLOCK_MONOTONIC, unless it is of an earlier boot), boot_id, clock_synchronized,
 * and "clock":"unsynchronised" until the clock was set. Unknown values are omitted. Each function
 * returns bytes to free(3) and their length (without a NUL), NULL when memory is short. The schemas
 * are in schema/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/metrics/unit.h"
#include "proto/json_write.h"
#include "proto/name.h"

struct alert;
struct alert_transition;
struct app;
struct diagnosis;
struct missed;
struct recording;
struct stage;

enum {
	PAYLOAD_SIZE = 64 * 1024,   /* of any */
	PAYLOAD_SUMMARY_KEYS = 512, /* further metrics are counted in "left_out" */
	PAYLOAD_KEY_SIZE = PROTO_PATH_SIZE + 16,
	NAME_SET_SIZE = 1024,
};

/* Names, by a hash that is not 0; zeroed = empty. */
struct name_set {
	size_t count;
	uint64_t hash[NAME_SET_SIZE]; /* open addressing; 0 = free */
};

uint64_t name_hash(const char *name);
bool name_set_has(const struct name_set *set, uint64_t hash);
/* True when it is new; false, too, when more than half of the places are taken. */
bool name_set_add(struct name_set *set, uint64_t hash);

/* Begins and finishes an object of at most size bytes. What does not fit, or has no memory, makes
 * payload_finish return NULL. */
struct json payload_begin(size_t size);
char *payload_finish(struct json *json, size_t *length);

char *payload_info(const struct core *core, size_t *length);

/* The current value of every metric except stage/… (its own topic) and collector/… . */
char *payload_summary(const struct core *core, uint64_t now_ns, size_t *length);

/* One stage over the interval since the last one: events of it in interval_s seconds. scratch holds
 * stage->window doubles. */
char *payload_stage(const struct core *core, const struct app *app, const struct stage *stage,
	uint64_t events, double interval_s, uint64_t now_ns, double *scratch, size_t *length);

/* The present state of one alert; its time is that of the state. */
char *payload_alert(const struct core *core, const struct alert *alert, size_t *length);

/* One transition: the same fields and "from", at its own time. */
char *payload_alert_event(
	const struct core *core, const struct alert_transition *transition, size_t *length);

/* A diagnosis with its first finding; its time is when it was made. */
char *payload_diagnosis(const struct core *core, const char *app, const struct diagnosis *diagnosis,
	size_t *length);

/* A finished recording; its time is that of the trigger. */
char *payload_recording(const struct core *core, const struct recording *recording, size_t *length);

/* What was given up: first and last time, and how many by rule. */
char *payload_missed(const struct core *core, const struct missed *missed, size_t *length);

/* The key of a metric: "temperature/max" in celsius -> "temperature_max_celsius"; a name that ends
 * in its unit is left as it is. Never holds '/', '.' or '-'. */
void payload_key(const char *name, enum unit unit, char ret[PAYLOAD_KEY_SIZE]);
