/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.c: makes the tree of a report: the session, its environment, metrics, events, and
 * what makes the numbers less trustworthy. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

enum { FEW_FRAMES = 100, SHORT_S = 10, BUSY_PERCENT = 5 };

cJSON *report_add_row(cJSON *array)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddItemToArray(array, row);
	return row;
}

void report_insert(cJSON *array, cJSON *row, const char *member)
{
	int at = 0;
	for (const cJSON *next = array->child;
		next && json_number(next, member) >= json_number(row, member); next = next->next) {
		at++;
	}
	cJSON_InsertItemInArray(array, at, row);
}

void report_add_word(cJSON *to, const char *name, const char *word)
{
	if (word && word[0] != '\0') {
		cJSON_AddStringToObject(to, name, word);
	}
}

double report_percent(double part, double all)
{
	return all > 0 ? 100 * part / all : (double)NAN;
}

static void add_series(cJSON *tree, const struct data *data)
{
	cJSON *series = cJSON_AddObjectToObject(tree, "series");
	for (size_t i = 0; i < data->series_count; i++) {
		const struct data_series *one = &data->series[i];
		double *values = calloc(one->count + 1, sizeof(*values));
		if (values && one->count > 0) {
			memcpy(values, one->value, one->count * sizeof(*values));
			struct data_numbers numbers = data_numbers_of(values, one->count);
			cJSON *row = cJSON_AddObjectToObject(series, one->name);
			report_add_word(row, "unit", one->unit);
			json_add_number(row, "mean", numbers.mean);
			json_add_number(row, "min", numbers.min);
			json_add_number(row, "max", numbers.max);
			json_add_number(row, "first", one->value[0]);
			json_add_number(row, "last", one->value[one->count - 1]);
		}
		free(values);
	}
}

static void add_events(cJSON *tree, const struct data *data)
{
	cJSON *events = cJSON_AddArrayToObject(tree, "events");
	for (size_t i = 0; i < data->happening_count; i++) {
		const struct data_happening *one = &data->happening[i];
		cJSON *row = report_add_row(events);
		json_add_number(row, "at_s", one->at_s);
		json_add_number(row, "time_us", (double)data->begin_us + floor(one->at_s * 1e6));
		report_add_word(row, "kind", one->kind);
		report_add_word(row, "severity", one->severity);
		report_add_word(row, "text", one->text);
	}
}

__attribute__((format(printf, 2, 3))) static void warn(cJSON *warnings, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cJSON_AddItemToArray(warnings, cJSON_CreateString(text));
}

static double mean_of(const struct data *data, const char *name)
{
	const struct data_series *series = data_series(data, name);
	double sum = 0;
	for (size_t i = 0; series && i < series->count; i++) {
		sum += series->value[i];
	}
	return series && series->count > 0 ? sum / (double)series->count : (double)NAN;
}

/* What makes the numbers less trustworthy. */
static void add_warnings(cJSON *tree, const struct data *data)
{
	cJSON *warnings = cJSON_AddArrayToObject(tree, "warnings");
	double took_s = data->frame_time_ms.sum / 1000,
	       daemon = mean_of(data, "process/edgeprofd/cpu");
	size_t known = 0, throttled = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		known += data->frame[i].throttled >= 0;
		throttled += data->frame[i].throttled == 1;
	}
	if (data->incomplete) {
		warn(warnings, "%s", data->incomplete);
	}
	if (data->frame_count < FEW_FRAMES) {
		warn(warnings, "only %zu frames: percentiles want %d or more", data->frame_count,
			FEW_FRAMES);
	}
	if (took_s < SHORT_S) {
		warn(warnings, "only %.1f s: caches, clocks and heat settle later", took_s);
	}
	if (data->kept_share < 1) {
		warn(warnings, "%.0f %% of the time was kept: counts and sums are too low",
			100 * data->kept_share);
	}
	if (data->warmup == 0 && !(json_number(data->about, "warmup") > 0)) {
		warn(warnings, "no warm-up: the first frames count");
	}
	if (data->lost > 0) {
		warn(warnings, "%llu records were lost: counts and sums are too low",
			(unsigned long long)data->lost);
	}
	if (throttled > 0) {
		warn(warnings, "the hardware throttled in %.1f %% of the frames",
			report_percent((double)throttled, (double)known));
	}
	if (daemon > BUSY_PERCENT) {
		warn(warnings, "edgeprofd used %.1f %% of a core", daemon);
	}
	const char *build = data_tag(data, "build");
	if (build && strcmp(build, "debug") == 0) {
		warn(warnings, "a debug build");
	}
	for (const cJSON *note = data->notes ? data->notes->child : NULL; note; note = note->next) {
		warn(warnings, "%s", note->valuestring);
	}
}

static void add_environment(cJSON *tree, const struct data *data)
{
	static const char *const facts[] = {
		"model", "os", "kernel", "version", "power_mode_name", "governor", "cpus"};
	cJSON *environment = cJSON_AddObjectToObject(tree, "environment");
	for (const cJSON *one = json_first(data->about, "environment"); one; one = one->next) {
		cJSON_AddStringToObject(
			environment, json_word(one, "name"), json_word(one, "value"));
	}
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		const cJSON *fact = json_get(data->device, facts[i]);
		if (fact && !json_get(environment, facts[i])) {
			cJSON_AddItemToObject(environment, facts[i], cJSON_Duplicate(fact, true));
		}
	}
}

cJSON *report_tree(const struct data *data)
{
	cJSON *tree = cJSON_CreateObject();
	cJSON *session = data->about ? cJSON_Duplicate(data->about, true) : cJSON_CreateObject();
	if (!data->about) {
		report_add_word(session, "name", data->name);
		report_add_word(session, "app", data->app);
		json_add_number(session, "started_us", (double)data->begin_us);
		json_add_number(session, "elapsed_s", data->span_s);
	}
	cJSON_AddItemToObject(tree, "session", session);
	add_environment(tree, data);
	cJSON_AddItemToObject(tree, "summary", report_summary(data, 1e9));
	report_add_frames(tree, data);
	report_add_slow(tree, data);
	report_add_stages(tree, data);
	add_series(tree, data);
	add_events(tree, data);
	add_warnings(tree, data);
	return tree;
}
