/* From the answers of several methods to one flat one. A value of a source that is not ok is one
 * from before: it is left out, and the reason says so. */
#include "client/edgeprofctl/snapshot_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/json.h"

/* The stage that every guide calls so. */
#define INFERENCE_STAGE "infer"

/* What goes where: the field, the metric, and the source that would give it. */
static const struct {
	const char *field, *metric, *source, *unit;
} values[] =
	{
		{"cpu_usage", "cpu/utilization", "cpu", "percent"},
		{"temperature", "temperature/max", "thermal", "celsius"},
		{"power_consumption", "power/total", "power", "milliwatts"},
},
  memory_values[] = {
	  {"bytes", "memory/used", "memory", "bytes"},
	  {"percent", "memory/used_percent", "memory", "percent"},
	  {"total_bytes", "memory/total", "memory", "bytes"},
	  {"available_bytes", "memory/available", "memory", "bytes"},
};

static const cJSON *find_named(const cJSON *reply, const char *array, const char *name)
{
	const cJSON *item = json_first(reply, array);
	while (item != NULL && strcmp(json_word(item, "name"), name) != 0) {
		item = item->next;
	}
	return item;
}

static void add_number(cJSON *object, const char *name, double value)
{
	if (isfinite(value)) {
		cJSON_AddNumberToObject(object, name, value);
	} else {
		cJSON_AddNullToObject(object, name);
	}
}

/* Why there is no number: the metric's own reason, else the source's, else what is known. */
static void say_why(char *text, size_t size, const cJSON *metric, const cJSON *source,
	const char *metric_name, const char *source_name)
{
	const char *state = json_word(metric != NULL ? metric : source, "state");
	const char *reason = json_word(metric, "reason");
	reason = reason[0] == '\0' ? json_word(source, "reason") : reason;
	bool stale = strcmp(state, "stale") == 0;
	if (stale && !isnan(json_number(metric, "age_ms"))) {
		snprintf(text, size, "source %s is stale: the last value is %.0f s old",
			source_name, json_number(metric, "age_ms") / 1000);
	} else if (source != NULL && cJSON_IsFalse(json_get(source, "enabled"))) {
		snprintf(text, size, "source %s is switched off", source_name);
	} else if (reason[0] != '\0') {
		snprintf(text, size, "source %s: %s", source_name, reason);
	} else if (source != NULL) {
		snprintf(text, size, "source %s gives no %s", source_name, metric_name);
	} else {
		snprintf(text, size, "the daemon has no source %s", source_name);
	}
}

static void add_value(cJSON *out, cJSON *reasons, const struct snapshot_replies *replies,
	const char *field, const char *name, const char *source_name)
{
	const cJSON *metric = find_named(replies->metrics, "metrics", name);
	const char *state = json_word(metric, "state");
	double value = json_number(metric, "value");
	bool present = strcmp(state, "ok") == 0 && isfinite(value);
	add_number(out, field, present ? value : (double)NAN);
	if (!present) {
		char text[256];
		const char *told = json_word(metric, "source");
		source_name = told[0] == '\0' ? source_name : told;
		say_why(text, sizeof(text), metric,
			find_named(replies->sources, "sources", source_name), name, source_name);
		cJSON_AddStringToObject(reasons, field, text);
	}
}

static void add_memory(cJSON *report, cJSON *reasons, const struct snapshot_replies *replies)
{
	cJSON *memory = cJSON_AddObjectToObject(report, "memory_usage");
	cJSON *why = cJSON_CreateObject();
	for (size_t i = 0; i < sizeof(memory_values) / sizeof(memory_values[0]); i++) {
		add_value(memory, why, replies, memory_values[i].field, memory_values[i].metric,
			memory_values[i].source);
	}
	const cJSON *first = why == NULL ? NULL : why->child;
	if (first != NULL) {
		cJSON_AddStringToObject(reasons, "memory_usage", first->valuestring);
	}
	cJSON_Delete(why);
}

static void add_inference(cJSON *report, cJSON *reasons, const struct snapshot_replies *replies)
{
	cJSON *apps = cJSON_CreateArray();
	const char *slowest = NULL;
	double latency = NAN;
	bool seen = false;
	for (const cJSON *stage = json_first(replies->stages, "stages"); stage != NULL;
		stage = stage->next) {
		if (strcmp(json_word(stage, "stage"), INFERENCE_STAGE) != 0) {
			continue;
		}
		double mean = json_number(stage, "mean_ms");
		cJSON *app = cJSON_CreateObject();
		cJSON_AddStringToObject(app, "app", json_word(stage, "app"));
		add_number(app, "inference_latency", mean);
		cJSON_AddItemToArray(apps, app);
		seen = true;
		if (isfinite(mean) && !(mean <= latency)) {
			latency = mean;
			slowest = json_word(stage, "app");
		}
	}
	add_number(report, "inference_latency", latency);
	if (slowest != NULL) {
		cJSON_AddStringToObject(report, "inference_app", slowest);
	} else {
		char text[160];
		if (seen) {
			snprintf(text, sizeof(text), "the stage " INFERENCE_STAGE " has no events");
		} else {
			snprintf(text, sizeof(text),
				replies->app != NULL ? "%.64s has no stage " INFERENCE_STAGE
						     : "no app has a stage " INFERENCE_STAGE "%s",
				replies->app != NULL ? replies->app : "");
		}
		cJSON_AddStringToObject(reasons, "inference_latency", text);
	}
	cJSON_AddItemToObject(report, "apps", apps);
}

/* The row of the process, made when it is not there yet. */
static cJSON *process_row(cJSON *processes, const char *name, size_t length)
{
	char text[128];
	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	for (cJSON *row = processes == NULL ? NULL : processes->child; row != NULL;
		row = row->next) {
		if (strcmp(json_word(row, "name"), text) == 0) {
			return row;
		}
	}
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "name", text);
	cJSON_AddItemToArray(processes, row);
	return row;
}

static void add_processes(cJSON *report, const struct snapshot_replies *replies)
{
	static const char prefix[] = "process/";
	static const struct {
		const char *metric, *field;
	} sizes[] = {{"rss", "rss_bytes"}, {"vms", "vms_bytes"}, {"peak_rss", "peak_rss_bytes"}};
	cJSON *processes = cJSON_AddArrayToObject(report, "processes");
	for (const cJSON *metric = json_first(replies->metrics, "metrics"); metric != NULL;
		metric = metric->next) {
		const char *name = json_word(metric, "name");
		const char *last = strrchr(name, '/');
		if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 ||
			last < name + sizeof(prefix) - 1) {
			continue;
		}
		const char *process = name + sizeof(prefix) - 1;
		size_t length = (size_t)(last - process);
		bool fresh = strcmp(json_word(metric, "state"), "ok") == 0;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (strcmp(last + 1, sizes[i].metric) == 0) {
				add_number(process_row(processes, process, length), sizes[i].field,
					fresh ? json_number(metric, "value") : (double)NAN);
			}
		}
	}
}

static void add_time(cJSON *report, const cJSON *status)
{
	int64_t time_us = json_integer(status, "time_us");
	time_t seconds = (time_t)(time_us / 1000000);
	struct tm tm;
	if (time_us > 0 && time_us < INT64_C(253402300800000000) &&
		gmtime_r(&seconds, &tm) != NULL) {
		char day[32], text[48];
		strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(text, sizeof(text), "%s.%06dZ", day, (int)(time_us % 1000000));
		cJSON_AddStringToObject(report, "timestamp", text);
	} else {
		cJSON_AddNullToObject(report, "timestamp");
	}
	cJSON_AddNumberToObject(report, "time_us", (double)time_us);
	cJSON_AddBoolToObject(report, "clock_synced", json_true(status, "clock_synced"));
	cJSON_AddStringToObject(report, "hostname", json_word(status, "hostname"));
}

cJSON *snapshot_report(const struct snapshot_replies *replies)
{
	cJSON *report = cJSON_CreateObject();
	cJSON *reasons = cJSON_CreateObject();
	cJSON *units = cJSON_CreateObject();
	if (report == NULL || reasons == NULL || units == NULL) {
		cJSON_Delete(report);
		cJSON_Delete(reasons);
		cJSON_Delete(units);
		return NULL;
	}
	add_time(report, replies->status);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		add_value(report, reasons, replies, values[i].field, values[i].metric,
			values[i].source);
		cJSON_AddStringToObject(units, values[i].field, values[i].unit);
	}
	add_memory(report, reasons, replies);
	add_inference(report, reasons, replies);
	cJSON_AddStringToObject(units, "inference_latency", "milliseconds");
	cJSON_AddItemToObject(report, "units", units);
	cJSON_AddItemToObject(report, "reasons", reasons);
	add_processes(report, replies);
	return report;
}
