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
#include "proto/text.h"
#include "proto/varlink.h"

enum {
	VALUES_MAX = 2048, /* of a series */
	BLOCK = 128,	   /* values that follow each other, where not all are kept */
	FILE_MAX = 16 << 20,
	RUNS_MAX = 64,
};

#define SCHEMA "edgeprof.baseline/1"

/* What a file lacks, and where. */
struct reader {
	struct text where;
	char bytes[160];
};

static cJSON *columns_of(const struct measured_series *series)
{
	cJSON *object = ctl_parameters("name", series->name);
	cJSON *values = cJSON_AddArrayToObject(object, "values");
	cJSON *conditions = cJSON_AddArrayToObject(object, "conditions");
	size_t blocks = VALUES_MAX / BLOCK, count = series->count;
	bool all = count <= VALUES_MAX;
	cJSON_AddNumberToObject(object, "count", (double)count);
	for (size_t i = 0; i < (all ? count : VALUES_MAX); i++) {
		size_t at = all ? i : (count - BLOCK) * (i / BLOCK) / (blocks - 1) + i % BLOCK;
		double value = round(series->value[at] * 1e6) / 1e6;
		cJSON_AddItemToArray(values, cJSON_CreateNumber(value));
		cJSON_AddItemToArray(conditions, cJSON_CreateNumber((double)series->condition[at]));
	}
	return object;
}

static cJSON *run_of(const struct measured *run)
{
	cJSON *object = ctl_parameters("name", run->name);
	cJSON_AddItemToObject(object, "environment", cJSON_Duplicate(run->environment, true));
	cJSON_AddItemToObject(object, "tags", cJSON_Duplicate(run->tags, true));
	cJSON_AddItemToObject(object, "single", cJSON_Duplicate(run->single, true));
	cJSON *list = cJSON_AddArrayToObject(object, "series");
	for (size_t i = 0; i < run->series_count; i++) {
		if (run->series[i].count > 0) {
			cJSON_AddItemToArray(list, columns_of(&run->series[i]));
		}
	}
	return object;
}

int baseline_write(
	struct ctl *ctl, const char *path, const struct measured *const *runs, size_t count)
{
	struct trace_file file;
	cJSON *object = ctl_parameters("schema", SCHEMA);
	cJSON_AddItemToObject(object, "created_us", proto_json_integer(when_now_us()));
	cJSON *list = cJSON_AddArrayToObject(object, "runs");
	for (size_t i = 0; i < count; i++) {
		cJSON_AddItemToArray(list, run_of(runs[i]));
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

static bool is_number_list(const cJSON *list, double least, double most)
{
	bool fine = cJSON_IsArray(list);
	for (const cJSON *item = fine ? list->child : NULL; item && fine; item = item->next) {
		fine = cJSON_IsNumber(item) && item->valuedouble >= least &&
		       item->valuedouble <= most;
	}
	return fine;
}

static bool read_series(struct reader *reader, const cJSON *object, struct measured *run)
{
	const cJSON *values = json_get(object, "values");
	const cJSON *conditions = json_get(object, "conditions");
	int count = cJSON_GetArraySize(values);
	if (!json_text(object, "name") || !is_number_list(values, 0, 1e15)) {
		text_add(&reader->where, ".%s", json_text(object, "name") ? "values" : "name");
		return false;
	}
	if (!is_number_list(conditions, CONDITION_UNKNOWN, 1e6) ||
		cJSON_GetArraySize(conditions) != count) {
		text_add(&reader->where, ".conditions");
		return false;
	}
	struct measured_series *series =
		measured_add(run, json_word(object, "name"), (size_t)count);
	const cJSON *condition = series ? conditions->child : NULL;
	for (const cJSON *value = series ? values->child : NULL; value; value = value->next) {
		series->condition[series->count] = (int)condition->valuedouble;
		series->value[series->count++] = value->valuedouble;
		condition = condition->next;
	}
	return series;
}

/* An object whose members are of one type. */
static bool read_object(struct reader *reader, const cJSON *run, const char *name,
	cJSON_bool (*is)(const cJSON *item), cJSON **ret)
{
	const cJSON *object = json_get(run, name);
	bool fine = cJSON_IsObject(object);
	for (const cJSON *item = fine ? object->child : NULL; item && fine; item = item->next) {
		fine = is(item) || cJSON_IsNull(item);
	}
	*ret = fine ? cJSON_Duplicate(object, true) : NULL;
	if (!fine) {
		text_add(&reader->where, ".%s", name);
	}
	return fine;
}

static bool read_run(struct reader *reader, const cJSON *object, struct measured *run)
{
	struct text *where = &reader->where;
	size_t start = where->length, number = 0;
	snprintf(run->name, sizeof(run->name), "%s", json_word(object, "name"));
	if (!read_object(reader, object, "environment", cJSON_IsString, &run->environment) ||
		!read_object(reader, object, "tags", cJSON_IsString, &run->tags) ||
		!read_object(reader, object, "single", cJSON_IsNumber, &run->single)) {
		return false;
	}
	if (!cJSON_IsArray(json_get(object, "series"))) {
		text_add(where, ".series");
		return false;
	}
	for (const cJSON *item = json_first(object, "series"); item; item = item->next) {
		where->data[where->length = start] = '\0';
		text_add(where, ".series[%zu]", number++);
		if (!read_series(reader, item, run)) {
			return false;
		}
	}
	where->data[where->length = start] = '\0';
	return true;
}

static int load(struct ctl *ctl, const char *path, cJSON **ret)
{
	FILE *file = fopen(path, "re");
	if (!file) {
		return errno == ENOENT ? ctl_fail(ctl, CTL_NO_DATA,
						 "baseline '%s' does not exist; create it with "
						 "--create-baseline",
						 path)
				       : ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path,
						 strerror(errno));
	}
	char *bytes = malloc(FILE_MAX + 1);
	size_t got = bytes ? fread(bytes, 1, FILE_MAX + 1, file) : 0;
	bool failed = !bytes || ferror(file), long_file = got > FILE_MAX;
	fclose(file);
	if (bytes && !long_file) {
		bytes[got] = '\0';
	}
	const char *end = NULL;
	cJSON *object =
		!failed && !long_file ? cJSON_ParseWithLengthOpts(bytes, got + 1, &end, 1) : NULL;
	size_t at = end ? (size_t)(end - bytes) : 0;
	free(bytes);
	json_clean(object, true);
	*ret = object;
	return failed ? ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path, strerror(EIO))
	       : long_file ? ctl_fail(ctl, CTL_NO_INPUT, "'%s' is larger than 16 MiB", path)
	       : object	   ? CTL_FINE
			: ctl_fail(ctl, CTL_NO_INPUT, "'%s' is not JSON: error at byte %zu", path,
				  at + 1);
}

int baseline_read(struct ctl *ctl, const char *path, struct measured **ret, size_t *ret_count)
{
	cJSON *object = NULL;
	struct reader reader;
	int status = load(ctl, path, &object);
	if (status != CTL_FINE) {
		return status;
	}
	const char *schema = json_word(object, "schema");
	int wanted = json_count(object, "runs");
	if (strcmp(schema, SCHEMA) != 0 || wanted < 1 || wanted > RUNS_MAX) {
		status = ctl_fail(ctl, CTL_NO_INPUT, "'%s' is not a baseline: member '%s'", path,
			strcmp(schema, SCHEMA) != 0 ? "schema" : "runs");
		cJSON_Delete(object);
		return status;
	}
	struct measured *runs = calloc((size_t)wanted, sizeof(*runs));
	size_t count = 0;
	bool fine = runs;
	for (const cJSON *run = json_first(object, "runs"); run && fine; run = run->next) {
		reader.where = TEXT_IN(reader.bytes);
		text_add(&reader.where, "runs[%zu]", count);
		fine = read_run(&reader, run, &runs[count++]);
	}
	cJSON_Delete(object);
	if (fine) {
		*ret = runs;
		*ret_count = count;
		return CTL_FINE;
	}
	for (size_t i = 0; i < count; i++) {
		measured_finish(&runs[i]);
	}
	free(runs);
	return !runs ? ctl_fail(ctl, CTL_OUTPUT, "out of memory")
		     : ctl_fail(ctl, CTL_NO_INPUT, "'%s' is damaged: member '%s'", path,
			       reader.bytes);
}
