/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.c: reads and writes baseline files: JSON with the values of each series, so that the
 * next comparison has an interval too. */
#include "client/edgeprofctl/compare/measured.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/trace/trace.h"

enum {
	VALUES_MAX = 2048, /* of a series */
	BLOCK = 128,	   /* values that follow each other, where not all are kept */
	FILE_MAX = 16 << 20,
};

#define SCHEMA "edgeprof.baseline/1"

static cJSON *columns_of(const struct measured_series *series)
{
	cJSON *object = ctl_parameters("name", series->name);
	cJSON *values = cJSON_AddArrayToObject(object, "values");
	cJSON *conditions = cJSON_AddArrayToObject(object, "conditions");
	size_t blocks = VALUES_MAX / BLOCK, count = series->count;
	bool all = count <= VALUES_MAX;
	for (size_t i = 0; i < (all ? count : VALUES_MAX); i++) {
		size_t at = all ? i : (count - BLOCK) * (i / BLOCK) / (blocks - 1) + i % BLOCK;
		double value = round(series->value[at] * 1e6) / 1e6;
		cJSON_AddItemToArray(values, cJSON_CreateNumber(value));
		cJSON_AddItemToArray(conditions, cJSON_CreateNumber((double)series->condition[at]));
	}
	return object;
}

int baseline_write(struct ctl *ctl, const char *path, const struct measured *runs, size_t count)
{
	struct trace_file file;
	cJSON *object = ctl_parameters("schema", SCHEMA);
	cJSON_AddNumberToObject(object, "created_us", (double)when_now_us());
	cJSON *list = cJSON_AddArrayToObject(object, "runs");
	for (size_t i = 0; i < count; i++) {
		cJSON *run = ctl_parameters("name", runs[i].name);
		cJSON_AddItemToArray(list, run);
		cJSON_AddItemToObject(run, "tags", cJSON_Duplicate(runs[i].tags, true));
		cJSON *series = cJSON_AddArrayToObject(run, "series");
		for (size_t j = 0; j < runs[i].series_count; j++) {
			if (runs[i].series[j].count > 0) {
				cJSON_AddItemToArray(series, columns_of(&runs[i].series[j]));
			}
		}
	}
	int r = trace_file_open(path, &file);
	if (r == 0) {
		json_write(file.stream, object, false);
		r = trace_file_finish(&file);
	}
	cJSON_Delete(object);
	return r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "cannot write '%s': %s", path, strerror(-r))
		     : CTL_FINE;
}

/* Numbers from `low` to `high`, as many as the other list has. */
static bool is_column(const cJSON *list, double low, double high, const cJSON *other)
{
	bool fine = cJSON_IsArray(list) && cJSON_GetArraySize(list) == cJSON_GetArraySize(other);
	for (const cJSON *item = fine ? list->child : NULL; item && fine; item = item->next) {
		fine = item->valuedouble >= low && item->valuedouble <= high &&
		       cJSON_IsNumber(item);
	}
	return fine;
}

/* The member that is not what it should be; NULL: none. */
static const char *read_series(const cJSON *object, struct measured *run)
{
	const cJSON *values = json_get(object, "values");
	const cJSON *conditions = json_get(object, "conditions");
	if (!json_text(object, "name")) {
		return "name";
	}
	if (!is_column(values, 0, 1e15, values)) {
		return "values";
	}
	if (!is_column(conditions, CONDITION_UNKNOWN, CONDITIONS - 1, values)) {
		return "conditions";
	}
	struct measured_series *series =
		measured_add(run, json_word(object, "name"), (size_t)cJSON_GetArraySize(values));
	const cJSON *condition = series ? conditions->child : NULL;
	for (const cJSON *value = series ? values->child : NULL; value; value = value->next) {
		series->condition[series->count] = (int)condition->valuedouble;
		series->value[series->count++] = value->valuedouble;
		condition = condition->next;
	}
	return series ? NULL : "name";
}

/* The same; ret_series is the number of the series with it, or -1. */
static const char *read_run(const cJSON *object, struct measured *run, int *ret_series)
{
	const cJSON *tags = json_get(object, "tags");
	const char *fault = NULL;
	*ret_series = -1;
	snprintf(run->name, sizeof(run->name), "%s", json_word(object, "name"));
	for (const cJSON *tag = tags ? tags->child : NULL; tag; tag = tag->next) {
		fault = cJSON_IsString(tag) ? fault : "tags";
	}
	if (fault || !cJSON_IsObject(tags) || !cJSON_IsArray(json_get(object, "series"))) {
		return fault || !cJSON_IsObject(tags) ? "tags" : "series";
	}
	run->tags = cJSON_Duplicate(tags, true);
	for (const cJSON *item = json_first(object, "series"); item && !fault; item = item->next) {
		fault = read_series(item, run);
		++*ret_series;
	}
	return fault;
}

static int load(struct ctl *ctl, const char *path, cJSON **ret)
{
	FILE *file = fopen(path, "re");
	if (!file && errno == ENOENT) {
		return ctl_fail(ctl, CTL_NO_DATA,
			"baseline '%s' does not exist; create it with --create-baseline", path);
	}
	char *bytes = ctl_memory(FILE_MAX + 1, 1);
	size_t got = file ? fread(bytes, 1, FILE_MAX + 1, file) : 0;
	const char *fault = !file || ferror(file) ? strerror(errno)
			    : got > FILE_MAX	  ? "larger than 16 MiB"
						  : NULL;
	*ret = fault ? NULL : cJSON_ParseWithOpts(bytes, NULL, true);
	fault = fault || *ret ? fault : "not JSON";
	if (file) {
		fclose(file);
	}
	free(bytes);
	json_clean(*ret, true);
	return fault ? ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path, fault) : CTL_FINE;
}

int baseline_read(struct ctl *ctl, const char *path, struct measured *ret, size_t *ret_count)
{
	cJSON *object = NULL;
	int status = load(ctl, path, &object), series;
	if (status != CTL_FINE) {
		return status;
	}
	int count = json_count(object, "runs");
	bool known = strcmp(json_word(object, "schema"), SCHEMA) == 0;
	if (!known || count < 1 || count > MEASURED_RUNS_MAX) {
		status = ctl_fail(ctl, CTL_NO_INPUT, "'%s' is not a baseline: member '%s'", path,
			known ? "runs" : "schema");
	}
	for (const cJSON *run = json_first(object, "runs"); run && status == CTL_FINE;
		run = run->next) {
		const char *fault = read_run(run, &ret[*ret_count], &series);
		char where[32] = "";
		if (series >= 0) {
			snprintf(where, sizeof(where), ".series[%d]", series);
		}
		status = fault ? ctl_fail(ctl, CTL_NO_INPUT,
					 "'%s' is damaged: member 'runs[%zu]%s.%s'", path,
					 *ret_count, where, fault)
			       : CTL_FINE;
		++*ret_count;
	}
	cJSON_Delete(object);
	return status;
}
