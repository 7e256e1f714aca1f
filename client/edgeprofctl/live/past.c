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

enum { TAG_SERIES = PAST_TAG, TAG_LOG };

/* "*" with two segments are all sensors, and the daemon's own few numbers. */
const char *const past_sensor_globs[] = {
	"*/*", "cpu/*/*", "engine/*/*", "pressure/*/*", "frame/*/fps", NULL};

static int request_series(struct feed *feed, int tag, const char *glob, int64_t to_us)
{
	cJSON *parameters = ctl_parameters("glob", glob);
	cJSON_AddItemToObject(parameters, "from_us", proto_json_integer(to_us - RING_SPAN_US));
	cJSON_AddItemToObject(parameters, "to_us", proto_json_integer(to_us));
	return feed_call(feed, tag, "GetHistory", parameters);
}

void past_request_minute(struct feed *feed, int tag, int64_t now_us)
{
	for (const char *const *glob = past_sensor_globs; *glob; glob++) {
		request_series(feed, tag, *glob, now_us);
	}
}

int past_request(struct feed *feed, int64_t time_us)
{
	static const char *const more[] = {"frame/*/*", "stage/*/*/*", "process/*/*", NULL};
	int sent = 0;
	for (const char *const *glob = past_sensor_globs; *glob; glob++) {
		sent += request_series(feed, TAG_SERIES, *glob, time_us);
	}
	for (const char *const *glob = more; *glob; glob++) {
		sent += request_series(feed, TAG_SERIES, *glob, time_us);
	}
	cJSON *limit = cJSON_CreateObject();
	cJSON_AddNumberToObject(limit, "limit", 128);
	sent += feed_call(feed, TAG_LOG, "GetAlertLog", limit);
	return sent;
}

void past_store(struct model *past, int tag, cJSON *reply)
{
	model_store(past, tag == TAG_LOG ? PART_ALERTS : PART_SERIES, reply);
}

static cJSON *add_part(struct model *past, enum part part, const char *array)
{
	cJSON *reply = cJSON_CreateObject();
	cJSON *rows = cJSON_AddArrayToObject(reply, array);
	model_store(past, part, reply);
	return rows;
}

/* The row with these names, which is made when there is none. */
static cJSON *row_of(cJSON *rows, const char *const members[2], const char *const texts[2])
{
	cJSON *row = NULL;
	cJSON_ArrayForEach(row, rows)
	{
		if (strcmp(json_word(row, members[0]), texts[0]) == 0 &&
			(!members[1] || strcmp(json_word(row, members[1]), texts[1]) == 0)) {
			return row;
		}
	}
	row = cJSON_CreateObject();
	for (int i = 0; i < 2 && members[i]; i++) {
		cJSON_AddStringToObject(row, members[i], texts[i]);
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
	if (isnan(value)) {
		return;
	}
	cJSON_AddNumberToObject(row, field, value);
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
		if (strcmp(renamed[i].field, field) == 0) {
			cJSON_AddNumberToObject(row, renamed[i].member, renamed[i].factor * value);
		}
	}
}

/* Copies what history lacks from the live row of the same name. */
static void complete_row(cJSON *row, const cJSON *live)
{
	static const char *const members[] = {
		"deadline_ms", "target_fps", "depth", "category", "unit", "pid", "uid", "comm"};
	for (size_t i = 0; live && i < sizeof(members) / sizeof(members[0]); i++) {
		const cJSON *item = json_get(live, members[i]);
		if (item && !json_get(row, members[i])) {
			cJSON_AddItemToObject(row, members[i], cJSON_Duplicate(item, true));
		}
	}
}

static const cJSON *live_stage(const cJSON *app, const char *stage)
{
	const cJSON *row = json_first(app, "rows");
	while (row && strcmp(json_word(row, "stage"), stage) != 0) {
		row = row->next;
	}
	return row;
}

/* Stages stay in the order of the live picture. */
static void seed_stages(cJSON *rows, const struct model *live)
{
	static const char *const app_stage[2] = {"app", "stage"};
	for (const cJSON *app = model_first(live, PART_APPS); app; app = app->next) {
		for (const cJSON *row = json_first(app, "rows"); row; row = row->next) {
			const char *const names[2] = {
				json_word(app, "name"), json_word(row, "stage")};
			row_of(rows, app_stage, names);
		}
	}
}

static void add_metric(struct model *past, cJSON *const rows[PARTS], const struct ring *ring)
{
	static const char *const app_stage[2] = {"app", "stage"}, *const app[2] = {"app", NULL};
	static const char *const name[2] = {"name", NULL};
	char path[PROTO_PATH_SIZE], *segments[4] = {NULL}, *rest = path;
	snprintf(path, sizeof(path), "%s", ring->name);
	for (int i = 0; i < 4 && rest; i++) {
		segments[i] = strsep(&rest, "/");
	}
	double value = ring_at(ring, past->now_us);
	const char *const names[2] = {segments[1], segments[2]};
	if (!segments[2] || isnan(value)) {
		return;
	}
	if (strcmp(segments[0], "stage") == 0 && segments[3]) {
		row_of(rows[PART_APPS], name, names);
		add_value(row_of(rows[PART_STAGES], app_stage, names), segments[3], value);
	} else if (strcmp(segments[0], "frame") == 0) {
		row_of(rows[PART_APPS], name, names);
		add_value(row_of(rows[PART_FRAMES], app, names), segments[2], value);
	} else if (strcmp(segments[0], "process") == 0) {
		add_value(row_of(rows[PART_PROCESSES], name, names), segments[2], value);
	}
}

static void complete_rows(struct model *past, const struct model *live, cJSON *const rows[PARTS])
{
	cJSON *row = NULL;
	cJSON_ArrayForEach(row, rows[PART_FRAMES])
	{
		const cJSON *app = model_row(live, PART_APPS, "name", json_word(row, "app"));
		complete_row(row, json_get(app, "frame"));
		cJSON_AddStringToObject(row, "status", "ok");
	}
	cJSON_ArrayForEach(row, rows[PART_STAGES])
	{
		const cJSON *app = model_row(live, PART_APPS, "name", json_word(row, "app"));
		complete_row(row, live_stage(app, json_word(row, "stage")));
	}
	cJSON_ArrayForEach(row, rows[PART_PROCESSES])
	{
		complete_row(row, model_row(live, PART_PROCESSES, "name", json_word(row, "name")));
	}
	model_join(past);
}

/* The alerts of that moment, from the transitions: the last one before it, or where the first one
 * after it came from. */
static void find_alerts(struct model *past)
{
	static const char *const rule_instance[2] = {"rule", "instance"};
	cJSON *log = past->parts[PART_ALERTS];
	past->parts[PART_ALERTS] = NULL;
	cJSON *rows = add_part(past, PART_ALERTS, "alerts"), *next;
	for (const cJSON *t = json_first(log, "transitions"); t; t = t->next) {
		const char *const names[2] = {json_word(t, "rule"), json_word(t, "instance")};
		int before = json_count(past->parts[PART_ALERTS], "alerts");
		cJSON *row = row_of(rows, rule_instance, names);
		bool first = json_count(past->parts[PART_ALERTS], "alerts") > before;
		bool later = json_integer(t, "time_us") > past->now_us;
		if (later && !first) {
			continue;
		}
		static const char *const copied[] = {
			"metric", "unit", "value", "threshold", "text"};
		for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
			cJSON_DeleteItemFromObjectCaseSensitive(row, copied[i]);
			const cJSON *item = json_get(t, copied[i]);
			cJSON_AddItemToObject(row, copied[i], cJSON_Duplicate(item, true));
		}
		cJSON_DeleteItemFromObjectCaseSensitive(row, "state");
		cJSON_DeleteItemFromObjectCaseSensitive(row, "severity");
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

void past_complete(struct model *past, const struct model *live)
{
	static const enum part copied[] = {PART_RULES, PART_STATUS, PART_EVENTS};
	cJSON *rows[PARTS] = {NULL}, *event;
	int64_t now_us = past->now_us;
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		cJSON_Delete(past->parts[copied[i]]);
		past->parts[copied[i]] = cJSON_Duplicate(live->parts[copied[i]], true);
	}
	rows[PART_APPS] = add_part(past, PART_APPS, "apps");
	rows[PART_FRAMES] = add_part(past, PART_FRAMES, "frames");
	rows[PART_STAGES] = add_part(past, PART_STAGES, "stages");
	rows[PART_PROCESSES] = add_part(past, PART_PROCESSES, "processes");
	past->now_us = now_us;
	seed_stages(rows[PART_STAGES], live);
	for (size_t i = 0; i < past->rings.count; i++) {
		add_metric(past, rows, past->rings.items[i]);
	}
	complete_rows(past, live, rows);
	find_alerts(past);
	cJSON *events = cJSON_GetObjectItemCaseSensitive(past->parts[PART_EVENTS], "events");
	while (events && events->child &&
		(event = events->child->prev, json_integer(event, "time_us") > now_us)) {
		cJSON_Delete(cJSON_DetachItemViaPointer(events, event));
	}
}
