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
#include "client/edgeprofctl/similar.h"
#include "proto/text.h"

/* A call whose failure is a reason, unless the daemon is gone or a name is wrong. */
static int ask(struct values *values, const char *method, cJSON *parameters, cJSON **ret)
{
	struct ctl *ctl = values->ctl;
	int status = ctl_try(ctl, method, parameters, ret);
	if (status == CTL_NO_DATA) {
		snprintf(values->reason, sizeof(values->reason), "%s", ctl->failure);
		return CTL_FINE;
	}
	return status == CTL_FINE ? status : ctl_fail(ctl, status, "%s", ctl->failure);
}

/* Takes the rows of the reply's array, which must be of one app. */
static int read_rows(struct values *values, const char *method, const char *array, cJSON **ret)
{
	const char *app = values->ctl->options.app;
	const bool known = values->reason[0] != '\0';
	cJSON *reply;
	int status = ask(values, method, ctl_parameters("app", app), &reply);
	if (app && values->reason[0] && !known) {
		struct text text = {
			values->reason, sizeof(values->reason), strlen(values->reason), false};
		ctl_hint(values->ctl, &text, "app", app);
	}
	cJSON *rows = cJSON_DetachItemFromObjectCaseSensitive(reply, array);
	*ret = rows ? rows : cJSON_CreateArray();
	cJSON_Delete(reply);
	const cJSON *first = (*ret)->child;
	if (!first && !app && !values->reason[0]) {
		snprintf(values->reason, sizeof(values->reason),
			"no app is running; name one that ended with --app");
	}
	for (const cJSON *row = first; row; row = row->next) {
		const char *name = json_word(first, "app"), *other = json_word(row, "app");
		if (strcmp(name, other) != 0) {
			return ctl_fail(values->ctl, CTL_USAGE,
				"several apps are running (%s, %s …); name one with --app", name,
				other);
		}
	}
	return status;
}

/* The rows of a report: it has the names of the daemon's replies. */
static void read_recorded(struct values *values)
{
	const struct data *data = values->data;
	const char *error = json_text(data->about, "error");
	cJSON *tree = report_tree(data);
	values->frames = cJSON_CreateArray();
	cJSON_AddItemToArray(
		values->frames, cJSON_DetachItemFromObjectCaseSensitive(tree, "frames"));
	values->stages = cJSON_DetachItemFromObjectCaseSensitive(tree, "stages");
	cJSON_Delete(tree);
	if (error || (data->frame_count == 0 && data->stage_count == 0)) {
		snprintf(values->reason, sizeof(values->reason), "%s%s",
			error ? "the session failed: " : "no frames were recorded",
			error ? error : "");
	}
}

/* The member of the row, or why there is none. */
static int member(struct values *values, const cJSON *row, const char *name, struct value *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, name);
	char reason[64];
	if (cJSON_IsString(item)) {
		return ctl_fail(values->ctl, CTL_USAGE, "'%s' is not a number", name);
	}
	ret->number = cJSON_IsBool(item) ? cJSON_IsTrue(item) : cJSON_GetNumberValue(item);
	snprintf(reason, sizeof(reason), "%s_reason", name);
	const char *text = json_text(row, reason);
	text = text ? text : json_text(row, "reason");
	if (!text && text_starts_with(name, "energy_mj")) {
		text = json_text(row, "energy_reason");
	}
	struct text why = TEXT_IN(ret->reason);
	text_add(&why, "%s",
		text		    ? text
		: values->reason[0] ? values->reason
		: item		    ? "no value"
				    : "no value of that name");
	if (row && !item && !text) {
		struct similar similar = similar_to(name);
		for (item = row->child; item; item = item->next) {
			if (cJSON_IsNumber(item)) {
				similar_add(&similar, item->string);
			}
		}
		similar_ask(&similar, &why);
	}
	return CTL_FINE;
}

static bool is_worse(const struct term *term, double factor, double one, double other)
{
	return term_margin(term, one / factor) < term_margin(term, other / factor);
}

/* Whether the row is of that stage: "infer" or "infer@cpu". */
static bool is_stage(const cJSON *row, const char *wanted)
{
	const char *stage = json_word(row, "stage"), *unit = json_word(row, "unit");
	char full[2 * PROTO_NAME_SIZE];
	snprintf(full, sizeof(full), "%s@%s", stage, unit);
	return strcmp(wanted, stage) == 0 || strcmp(wanted, full) == 0;
}

/* "infer.p99_ms" or "infer@gpu.p99_ms": a member of the row of that stage; of a stage on several
 * units the one that is worst for the term. */
static int stage_member(
	struct values *values, const struct term *term, const char *name, struct value *ret)
{
	const char *dot = strrchr(name, '.');
	const double factor = unit_factor(term->unit, ret->unit);
	const struct value none = *ret;
	bool found = false;
	char wanted[PROTO_PATH_SIZE];
	if (!dot || dot == name) {
		return ctl_fail(values->ctl, CTL_USAGE,
			"'%s' lacks a stage or a field; write stages.infer.p99_ms", name);
	}
	snprintf(wanted, sizeof(wanted), "%.*s", (int)(dot - name), name);
	struct similar similar = similar_to(wanted);
	for (const cJSON *row = values->stages->child; row; row = row->next) {
		if (!is_stage(row, wanted)) {
			similar_add(&similar, json_word(row, "stage"));
			continue;
		}
		struct value one = none;
		int status = member(values, row, dot + 1, &one);
		if (status != CTL_FINE) {
			return status;
		}
		bool better = found && !isnan(ret->number) &&
			      !is_worse(term, factor, one.number, ret->number);
		*ret = better ? *ret : one;
		found = true;
	}
	if (found) {
		return CTL_FINE;
	}
	if (values->reason[0]) {
		return member(values, NULL, dot + 1, ret);
	}
	struct text text = TEXT_IN(ret->reason);
	text_add(&text, "unknown stage '%s'", wanted);
	similar_ask(&similar, &text);
	return CTL_FINE;
}

static int metric(struct values *values, const char *name, struct value *ret)
{
	cJSON *reply;
	int status = ask(values, "ListMetrics", ctl_parameters("glob", name), &reply);
	const cJSON *row = json_first(reply, "metrics"); /* those that begin with the name */
	while (row && strcmp(json_word(row, "name"), name) != 0) {
		row = row->next;
	}
	const char *reason = json_text(row, "reason");
	ret->number = json_number(row, "value");
	snprintf(ret->unit, sizeof(ret->unit), "%s", json_word(row, "unit"));
	struct text text = TEXT_IN(ret->reason);
	text_add(&text, "%s", !row ? "unknown metric" : reason ? reason : json_word(row, "state"));
	if (!row) {
		ctl_hint(values->ctl, &text, "metric", name);
	}
	cJSON_Delete(reply);
	return status;
}

/* The recorded value that is worst for the term. */
static void recorded_metric(struct values *values, const struct term *term, struct value *ret)
{
	const struct data_series *series = data_series(values->data, term->path);
	snprintf(ret->unit, sizeof(ret->unit), "%s", series ? series->unit : "");
	struct text text = TEXT_IN(ret->reason);
	text_add(&text, "%s", series ? "no values were recorded" : "the metric was not recorded");
	if (!series) {
		struct similar similar = similar_to(term->path);
		for (size_t i = 0; i < values->data->series_count; i++) {
			similar_add(&similar, values->data->series[i].name);
		}
		similar_ask(&similar, &text);
	}
	double factor = unit_factor(term->unit, ret->unit);
	for (size_t i = 0; series && i < series->count; i++) {
		double value = series->value[i];
		bool worse = is_worse(term, factor, value, ret->number);
		ret->number = isnan(ret->number) || worse ? value : ret->number;
	}
}

/* The unit that the name of a field ends with, or contains. */
static const char *unit_of_field(const char *field)
{
	return text_ends_with(field, "_ms")	 ? "ms"
	       : text_ends_with(field, "_s")	 ? "seconds"
	       : text_ends_with(field, "_bytes") ? "bytes"
	       : strstr(field, "_mj")		 ? "millijoules"
	       : strstr(field, "percent")	 ? "percent"
	       : strstr(field, "fps")		 ? "fps"
						 : "";
}

/* In the value's own unit. */
static int look_up(struct values *values, const struct term *term, struct value *ret)
{
	const char *path = term->path;
	bool stage = text_starts_with(path, "stages."), live = !values->data;
	int status = CTL_FINE;
	if (strchr(path, '/') && live) {
		return metric(values, path, ret);
	}
	if (strchr(path, '/')) {
		recorded_metric(values, term, ret);
		return CTL_FINE;
	}
	const char *dot = strrchr(path, '.');
	snprintf(ret->unit, sizeof(ret->unit), "%s", unit_of_field(dot ? dot + 1 : path));
	if (stage || text_starts_with(path, "frames.")) {
		cJSON **rows = stage ? &values->stages : &values->frames;
		if (!*rows) {
			status = stage ? read_rows(values, "ListStages", "stages", rows)
				       : read_rows(values, "GetFrames", "frames", rows);
		}
		path += strlen("stages.");
		return status != CTL_FINE ? status
		       : stage		  ? stage_member(values, term, path, ret)
					  : member(values, (*rows)->child, path, ret);
	}
	if (text_starts_with(path, "session.") && !live) {
		return member(values, values->data->about, path + strlen("session."), ret);
	}
	return ctl_fail(values->ctl, CTL_USAGE,
		"unknown name '%s'; use frames.FIELD, stages.STAGE.FIELD or a metric such as "
		"temperature/max",
		path);
}

int value_of(struct values *values, const struct term *term, struct value *ret)
{
	if (values->data && !values->frames) {
		read_recorded(values);
	}
	*ret = (struct value){.number = NAN};
	int status = look_up(values, term, ret);
	double factor = isfinite(ret->number) ? unit_factor(term->unit, ret->unit) : 1;
	if (status == CTL_FINE && isnan(factor)) {
		return ctl_fail(values->ctl, CTL_USAGE, "%s is not in '%s'%s%s", term->path,
			term->unit, ret->unit[0] ? ", but in " : "", ret->unit);
	}
	ret->number /= factor;
	return status;
}

void values_forget(struct values *values)
{
	cJSON_Delete(values->frames);
	cJSON_Delete(values->stages);
	values->frames = values->stages = NULL;
	values->reason[0] = '\0';
}
