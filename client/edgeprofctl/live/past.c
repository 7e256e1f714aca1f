/* SPDX-License-Identifier: Apache-2.0 */
/* past.c: rebuilds the picture of a moment. Stage, frame and process statistics are metrics, so
 * history has them all; rows in the shape of the live replies are made of their paths. */
#include "client/edgeprofctl/live/past.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/name.h"
#include "proto/varlink.h"

/* "*" with two segments are all sensors, and the daemon's own few numbers. */
const char *const past_sensor_globs[] = {
	"*/*", "cpu/*/*", "engine/*/*", "pressure/*/*", "frame/*/fps", NULL};

static void request_series(struct feed *feed, int tag, const char *glob, int64_t to_us)
{
	cJSON *parameters = ctl_parameters("glob", glob);
	cJSON_AddItemToObject(parameters, "from_us", proto_json_integer(to_us - RING_SPAN_US));
	cJSON_AddItemToObject(parameters, "to_us", proto_json_integer(to_us));
	feed_call(feed, tag, "GetHistory", parameters);
}

void past_request_minute(struct feed *feed, int tag, int64_t now_us)
{
	for (const char *const *glob = past_sensor_globs; *glob; glob++) {
		request_series(feed, tag, *glob, now_us);
	}
}

void past_request(struct feed *feed, int64_t time_us)
{
	static const char *const more[] = {"frame/*/*", "stage/*/*/*", "process/*/*", NULL};
	past_request_minute(feed, PAST_TAG + PART_SERIES, time_us);
	for (const char *const *glob = more; *glob; glob++) {
		request_series(feed, PAST_TAG + PART_SERIES, *glob, time_us);
	}
	cJSON *limit = cJSON_CreateObject();
	cJSON_AddNumberToObject(limit, "limit", 128);
	feed_call(feed, PAST_TAG + PART_ALERTS, "GetAlertLog", limit);
}

static cJSON *add_part(struct model *past, enum part part, const char *array)
{
	cJSON *reply = cJSON_CreateObject();
	cJSON *rows = cJSON_AddArrayToObject(reply, array);
	model_store(past, part, reply);
	return rows;
}

/* Leaves of a live row what history does not have and what changes rarely: that is not of its
 * moment, but the best there is. Stages stay in their order. */
static void strip(cJSON *row)
{
	static const char *const kept[] = {"name", "stage", "deadline_ms", "target_fps", "depth",
		"runs_per_frame", "category", "unit"};
	cJSON *next;
	for (cJSON *item = row->child; item; item = next) {
		bool keep = cJSON_IsObject(item) || cJSON_IsArray(item);
		next = item->next;
		if (keep) {
			strip(item);
		}
		for (size_t i = 0; !keep && i < sizeof(kept) / sizeof(kept[0]); i++) {
			keep = item->string && strcmp(item->string, kept[i]) == 0;
		}
		if (!keep) {
			cJSON_Delete(cJSON_DetachItemViaPointer(row, item));
		}
	}
}

static const cJSON *find_row(const cJSON *row, const char *member, const char *text)
{
	while (row && strcmp(json_word(row, member), text) != 0) {
		row = row->next;
	}
	return row;
}

/* The row of that name, which is made when there is none, of the live one where there is one. */
static cJSON *row_of(cJSON *rows, const char *member, const char *text, const cJSON *live)
{
	const cJSON *found = find_row(rows->child, member, text);
	if (found) {
		return (cJSON *)found;
	}
	cJSON *row = cJSON_Duplicate(find_row(live, member, text), true);
	if (row) {
		strip(row);
	} else {
		row = ctl_parameters(member, text);
	}
	cJSON_AddItemToArray(rows, row);
	return row;
}

/* The member that a metric's last segment is in the live reply. */
static void add_value(cJSON *row, const char *field, double value)
{
	static const struct {
		const char *field, *member;
		double factor;
	} renamed[] = {{"cpu", "cpu_percent", 1}, {"user", "user_percent", 1},
		{"system", "system_percent", 1}, {"rss", "rss_bytes", 1}, {"pss", "pss_bytes", 1},
		{"vms", "vms_bytes", 1}, {"peak_rss", "peak_rss_bytes", 1},
		{"mean_ms", "per_frame_ms", 1}, {"miss_percent", "miss_rate", 0.01}};
	double runs = json_number(row, "runs_per_frame"); /* of now: history has none */
	cJSON_AddNumberToObject(row, field, value);
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
		if (strcmp(renamed[i].field, field) == 0) {
			bool of_frame = strcmp(renamed[i].member, "per_frame_ms") == 0;
			double factor = of_frame && !isnan(runs) ? runs : renamed[i].factor;
			cJSON_AddNumberToObject(row, renamed[i].member, factor * value);
		}
	}
}

static void add_metric(struct model *past, const struct model *live, const struct ring *ring)
{
	char path[PROTO_PATH_SIZE], *segments[4] = {NULL}, *rest = path;
	snprintf(path, sizeof(path), "%s", ring->name);
	for (int i = 0; i < 4 && rest; i++) {
		segments[i] = strsep(&rest, "/");
	}
	double value = ring_at(ring, past->now_us);
	bool stage = strcmp(segments[0], "stage") == 0 && segments[3];
	if (!segments[2] || isnan(value)) {
		return;
	}
	if (strcmp(segments[0], "process") == 0) {
		cJSON *rows =
			cJSON_GetObjectItemCaseSensitive(past->parts[PART_PROCESSES], "processes");
		const cJSON *others = model_first(live, PART_PROCESSES);
		add_value(row_of(rows, "name", segments[1], others), segments[2], value);
	} else if (stage || strcmp(segments[0], "frame") == 0) {
		cJSON *rows = cJSON_GetObjectItemCaseSensitive(past->parts[PART_APPS], "apps");
		const char *name = stage ? "rows" : "frame";
		cJSON *app = row_of(rows, "name", segments[1], model_first(live, PART_APPS));
		cJSON *part = cJSON_GetObjectItemCaseSensitive(app, name);
		if (!part) {
			part = stage ? cJSON_CreateArray() : cJSON_CreateObject();
			cJSON_AddItemToObject(app, name, part);
		}
		add_value(stage ? row_of(part, "stage", segments[2], NULL) : part,
			segments[stage ? 3 : 2], value);
	}
}

/* The alerts of that moment, from the transitions: the last one before it, or where the first one
 * after it came from. */
static void find_alerts(struct model *past)
{
	static const char *const copied[] = {
		"rule", "instance", "metric", "unit", "value", "threshold", "text"};
	cJSON *log = past->parts[PART_ALERTS], *next;
	past->parts[PART_ALERTS] = NULL;
	cJSON *rows = add_part(past, PART_ALERTS, "alerts");
	for (const cJSON *t = json_first(log, "transitions"); t; t = t->next) {
		char key[PROTO_PATH_SIZE];
		snprintf(key, sizeof(key), "%s:%s", json_word(t, "rule"), json_word(t, "instance"));
		cJSON *row = row_of(rows, "key", key, NULL);
		bool later = json_integer(t, "time_us") > past->now_us;
		if (later && json_get(row, "state")) {
			continue;
		}
		while (row->child->next) {
			cJSON_Delete(cJSON_DetachItemViaPointer(row, row->child->next));
		}
		for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
			const cJSON *item = json_get(t, copied[i]);
			cJSON_AddItemToObject(row, copied[i], cJSON_Duplicate(item, true));
		}
		ctl_add_text(row, "state", json_word(t, later ? "from" : "to"));
		ctl_add_text(row, "severity", json_word(t, later ? "from_severity" : "severity"));
	}
	for (cJSON *row = rows->child; row; row = next) {
		next = row->next;
		if (strcmp(json_word(row, "state"), "ok") == 0) {
			cJSON_Delete(cJSON_DetachItemViaPointer(rows, row));
		}
	}
	cJSON_Delete(log);
}

/* What a machine keeps. Modes and failed sources are of now, and so is a daemon started since. */
static cJSON *status_of(const cJSON *live, double ago_s)
{
	static const char *const kept[] = {"hostname", "model", "os", "arch", "cpus"};
	double uptime_s = json_number(live, "uptime_s") - ago_s;
	cJSON *status = cJSON_CreateObject();
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		cJSON_AddItemToObject(
			status, kept[i], cJSON_Duplicate(json_get(live, kept[i]), true));
	}
	if (uptime_s >= 0) {
		cJSON_AddNumberToObject(status, "uptime_s", uptime_s);
	}
	return status;
}

void past_complete(struct model *past, const struct model *live)
{
	static const enum part copied[] = {PART_RULES, PART_EVENTS};
	cJSON *event;
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		past->parts[copied[i]] = cJSON_Duplicate(live->parts[copied[i]], true);
	}
	double ago_s = (double)(live->now_us - past->now_us) / 1e6;
	past->parts[PART_STATUS] = status_of(live->parts[PART_STATUS], ago_s);
	add_part(past, PART_APPS, "apps");
	add_part(past, PART_PROCESSES, "processes");
	for (size_t i = 0; i < past->ring_count; i++) {
		add_metric(past, live, past->rings[i]);
	}
	find_alerts(past);
	cJSON *events = cJSON_GetObjectItemCaseSensitive(past->parts[PART_EVENTS], "events");
	while (events && events->child &&
		(event = events->child->prev, json_integer(event, "time_us") > past->now_us)) {
		cJSON_Delete(cJSON_DetachItemViaPointer(events, event));
	}
}
