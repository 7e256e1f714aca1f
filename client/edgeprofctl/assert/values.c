/* SPDX-License-Identifier: Apache-2.0 */
/* values.c: reads GetFrames, ListStages and ListMetrics, or makes the same rows of what was
 * recorded. */
#include "client/edgeprofctl/assert/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/report/report.h"
#include "proto/text.h"

/* A call whose failure is a reason, unless the daemon is gone or a name is wrong. */
static int ask(struct values *values, const char *method, cJSON *parameters, cJSON **ret)
{
	struct ctl *ctl = values->ctl;
	enum json_mode json = ctl->options.json;
	ctl->quiet = true;
	ctl->options.json = JSON_OFF; /* texts are cleaned */
	int status = ctl_call(ctl, method, parameters, true, ret);
	ctl->quiet = false;
	ctl->options.json = json;
	if (status == CTL_NO_DATA) {
		snprintf(values->reason, sizeof(values->reason), "%s", ctl->failure);
		*ret = NULL;
		return CTL_FINE;
	}
	return status == CTL_FINE ? status : ctl_fail(ctl, status, "%s", ctl->failure);
}

/* The only app in the rows; *ret is theirs. */
static int only_app(struct values *values, const cJSON *rows, const char **ret)
{
	char bytes[200];
	struct text names = TEXT_IN(bytes);
	const char *app = NULL;
	bool several = false;
	for (const cJSON *row = rows; row; row = row->next) {
		const char *name = json_word(row, "app");
		several = several || (app && strcmp(app, name) != 0);
		if (!app || strcmp(app, name) != 0) {
			text_join(&names, ", ", "%s", name);
		}
		app = name;
	}
	*ret = app;
	if (!app) {
		snprintf(values->reason, sizeof(values->reason), "no app has sent anything yet");
	}
	return several ? ctl_fail(values->ctl, CTL_USAGE,
				 "several apps are running (%s); name one with --app", bytes)
		       : CTL_FINE;
}

/* Keeps the rows of the reply's array that are of the app. */
static int read_rows(struct values *values, const char *method, const char *array, cJSON **ret)
{
	cJSON *reply = NULL;
	const char *app = values->app;
	int status = ask(values, method, ctl_parameters("app", app), &reply);
	*ret = cJSON_CreateArray();
	if (status == CTL_FINE && reply && !app) {
		status = only_app(values, json_first(reply, array), &app);
	}
	if (status == CTL_FINE && reply && app) {
		cJSON_Delete(*ret);
		*ret = cJSON_DetachItemFromObjectCaseSensitive(reply, array);
	}
	cJSON_Delete(reply);
	return status;
}

/* The rows of a report: it has the names of the daemon's replies. */
static void read_recorded(struct values *values)
{
	const struct data *data = values->data;
	cJSON *tree = report_tree(data);
	values->frames = cJSON_CreateArray();
	cJSON_AddItemToArray(
		values->frames, cJSON_DetachItemFromObjectCaseSensitive(tree, "frames"));
	values->stages = cJSON_DetachItemFromObjectCaseSensitive(tree, "stages");
	cJSON_Delete(tree);
	if (json_text(data->about, "error")) {
		snprintf(values->reason, sizeof(values->reason), "the session failed: %s",
			json_text(data->about, "error"));
	} else if (data->frame_count == 0 && data->stage_count == 0) {
		snprintf(values->reason, sizeof(values->reason), "no frames were recorded");
	}
}

/* The member of the row, or why there is none. */
static int member(struct values *values, const cJSON *row, const char *name, const char *path,
	struct value *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, name);
	if (cJSON_IsBool(item) || cJSON_IsNumber(item)) {
		ret->number = cJSON_IsNumber(item) ? item->valuedouble : cJSON_IsTrue(item);
		return CTL_FINE;
	}
	if (cJSON_IsString(item)) {
		return ctl_fail(values->ctl, CTL_USAGE, "'%s' is not a number", path);
	}
	char reason[64];
	snprintf(reason, sizeof(reason), "%s_reason", name);
	const char *text = json_text(row, reason);
	text = text ? text : json_text(row, "reason");
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		text		    ? text
		: values->reason[0] ? values->reason
		: item		    ? "no value"
				    : "no value of that name");
	return CTL_FINE;
}

static int frame_value(struct values *values, const char *name, const char *path, struct value *ret)
{
	int status = values->frames ? CTL_FINE
				    : read_rows(values, "GetFrames", "frames", &values->frames);
	return status != CTL_FINE ? status : member(values, values->frames->child, name, path, ret);
}

/* "infer" or "infer@gpu": the row of that stage. */
static const cJSON *stage_row(const cJSON *rows, const char *name, size_t length)
{
	for (const cJSON *row = rows->child; row; row = row->next) {
		char full[2 * PROTO_NAME_SIZE];
		const char *stage = json_word(row, "stage"), *unit = json_word(row, "unit");
		snprintf(full, sizeof(full), "%s@%s", stage, unit);
		bool same = (strlen(stage) == length && memcmp(stage, name, length) == 0) ||
			    (strlen(full) == length && memcmp(full, name, length) == 0);
		if (same) {
			return row;
		}
	}
	return NULL;
}

static int stage_value(struct values *values, const char *name, const char *path, struct value *ret)
{
	const char *dot = strrchr(name, '.');
	if (!dot || dot == name) {
		return ctl_fail(values->ctl, CTL_USAGE,
			"'%s' lacks a stage or a field; write stages.infer.p99_ms", path);
	}
	int status = values->stages ? CTL_FINE
				    : read_rows(values, "ListStages", "stages", &values->stages);
	if (status != CTL_FINE) {
		return status;
	}
	const cJSON *row = stage_row(values->stages, name, (size_t)(dot - name));
	if (!row && !values->reason[0]) {
		snprintf(ret->reason, sizeof(ret->reason), "unknown stage '%.*s'",
			(int)(dot - name), name);
		return CTL_FINE;
	}
	return member(values, row, dot + 1, path, ret);
}

static int metric_value(struct values *values, const char *name, struct value *ret)
{
	cJSON *reply;
	int status = ask(values, "ListMetrics", ctl_parameters("glob", name), &reply);
	if (status != CTL_FINE) {
		return status;
	}
	const cJSON *row = json_first(reply, "metrics"); /* those that begin with the name */
	while (row && strcmp(json_word(row, "name"), name) != 0) {
		row = row->next;
	}
	static const char *const units[] = {"percent", "celsius", "bytes", "hertz", "milliwatts",
		"millijoules", "volts", "seconds", "ms", "fps"};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		ret->unit = strcmp(json_word(row, "unit"), units[i]) == 0 ? units[i] : ret->unit;
	}
	ret->number = json_number(row, "value");
	const char *reason = json_text(row, "reason");
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		!row	 ? "unknown metric; 'edgeprofctl sensors' lists them"
		: reason ? reason
			 : json_word(row, "state"));
	cJSON_Delete(reply);
	return CTL_FINE;
}

/* The recorded value that is worst for the term. */
static int series_value(struct values *values, const struct term *term, struct value *ret)
{
	const struct data_series *series = data_series(values->data, term->path);
	for (size_t i = 0; series && i < series->count; i++) {
		double value = series->value[i];
		double off = fabs(value - term->number), worst = fabs(ret->number - term->number);
		bool worse =
			term->relation == MORE || term->relation == AT_LEAST  ? value < ret->number
			: term->relation == LESS || term->relation == AT_MOST ? value > ret->number
			: term->relation == EQUAL			      ? off > worst
									      : off < worst;
		ret->number = isnan(ret->number) || worse ? value : ret->number;
	}
	ret->unit = series ? series->unit : "";
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		series ? "no values were recorded" : "the metric was not recorded");
	return CTL_FINE;
}

int value_of(struct values *values, const struct term *term, struct value *ret)
{
	const char *path = term->path;
	if (values->data && !values->frames) {
		read_recorded(values);
	}
	*ret = (struct value){.number = NAN, .unit = ""};
	if (strchr(path, '/')) {
		return values->data ? series_value(values, term, ret)
				    : metric_value(values, path, ret);
	}
	ret->unit = text_ends_with(path, "_ms")	     ? "ms"
		    : text_ends_with(path, "_bytes") ? "bytes"
		    : strstr(path, "fps")	     ? "fps"
						     : "";
	if (text_starts_with(path, "frames.")) {
		return frame_value(values, path + strlen("frames."), path, ret);
	}
	if (text_starts_with(path, "stages.")) {
		return stage_value(values, path + strlen("stages."), path, ret);
	}
	if (text_starts_with(path, "session.") && values->data) {
		return member(values, values->data->about, path + strlen("session."), path, ret);
	}
	return ctl_fail(values->ctl, CTL_USAGE,
		"unknown name '%s'; use frames.FIELD, stages.STAGE.FIELD or a metric such as "
		"temperature/max",
		path);
}

void values_forget(struct values *values)
{
	cJSON_Delete(values->frames);
	cJSON_Delete(values->stages);
	values->frames = values->stages = NULL;
	values->reason[0] = '\0';
}
