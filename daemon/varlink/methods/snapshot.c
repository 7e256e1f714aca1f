/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c: answers GetSnapshot: the few numbers that describe the device and its inference at
 * one moment, each current, or null with the reason. A value of a source that is not ok is not
 * current.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/stages/stats.h"
#include "daemon/core/status/facts.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"
#include "proto/text.h"

/* The stage whose mean is the latency of inference. */
#define INFERENCE_STAGE "infer"

enum { REASON_SIZE = 256, NOTES_MAX = 8 };

/* The field, the metric, and the source that would give it. */
struct snapshot_value {
	const char *field, *metric, *source;
};

static const struct snapshot_value values[] = {
	{"cpu_usage", "cpu/utilization", "cpu"},
	{"temperature", "temperature/max", "thermal"},
	{"power_consumption", "power/total", "power"},
};

static const struct snapshot_value memory_values[] = {
	{"bytes", "memory/used", "memory"},
	{"percent", "memory/used_percent", "memory"},
	{"total_bytes", "memory/total", "memory"},
	{"available_bytes", "memory/available", "memory"},
};

/* The metrics of the process source that a row shows, by the end of their names. */
static const char *const sizes[][2] = {
	{"rss", "rss_bytes"}, {"vms", "vms_bytes"}, {"peak_rss", "peak_rss_bytes"}};

struct snapshot {
	struct api_call *call;
	const char *app; /* only this one; NULL = all */
	struct {
		const char *field;
		double age_ms; /* NAN = there is no value */
		char reason[REASON_SIZE];
	} note[NOTES_MAX];
	size_t count;
};

static void note(struct snapshot *snapshot, const char *field, double age_ms, const char *reason)
{
	size_t i = snapshot->count++;
	snapshot->note[i].field = field;
	snapshot->note[i].age_ms = age_ms;
	snprintf(snapshot->note[i].reason, REASON_SIZE, "%s", reason);
}

/* The metric when it is of now; else NULL, and why. */
static const struct metric *current(
	const struct api_call *call, const struct snapshot_value *value, char reason[REASON_SIZE])
{
	const struct metric *metric = metrics_find(call->core->metrics, value->metric);
	const struct source *source =
		metric ? metric->source : sources_find(call->core->sources, value->source);
	reason[0] = '\0';
	if (!source) {
		snprintf(reason, REASON_SIZE, "the daemon has no source %s", value->source);
		return NULL;
	}
	enum source_state state = source_state_at(source, call->now_ns);
	if (metric && state == SOURCE_OK && isfinite(metric->value)) {
		return metric;
	}
	if (metric && state == SOURCE_STALE) {
		snprintf(reason, REASON_SIZE, "source %s is stale: the last value is %s old",
			source->name,
			text_span((uint64_t)row_age_ms(call->now_ns, metric->t_ns) / 1000).text);
	} else if (!source->wanted) {
		snprintf(reason, REASON_SIZE, "source %s is switched off", source->name);
	} else if (state == SOURCE_OK && metric) {
		snprintf(reason, REASON_SIZE, "source %s: %s", source->name,
			metric_reason(metric, call->now_ns).text);
	} else if (state == SOURCE_OK) {
		snprintf(reason, REASON_SIZE, "source %s gives no %s", source->name, value->metric);
	} else {
		snprintf(reason, REASON_SIZE, "source %s: %s", source->name,
			source_reason_at(source, call->now_ns));
	}
	return NULL;
}

static void device_fields(struct snapshot *snapshot)
{
	struct api_call *call = snapshot->call;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char reason[REASON_SIZE];
		const struct metric *metric = current(call, &values[i], reason);
		json_number(call->out, values[i].field, metric ? metric->value : (double)NAN);
		note(snapshot, values[i].field,
			metric ? row_age_ms(call->now_ns, metric_time_ns(metric)) : (double)NAN,
			reason);
	}
}

static void memory_field(struct snapshot *snapshot)
{
	struct api_call *call = snapshot->call;
	char reason[REASON_SIZE], first[REASON_SIZE] = "";
	double age_ms = NAN;
	json_open(call->out, "memory_usage", '{');
	for (size_t i = 0; i < sizeof(memory_values) / sizeof(memory_values[0]); i++) {
		const struct metric *metric = current(call, &memory_values[i], reason);
		json_number(
			call->out, memory_values[i].field, metric ? metric->value : (double)NAN);
		if (metric) {
			age_ms = row_age_ms(call->now_ns, metric_time_ns(metric));
		} else if (first[0] == '\0') {
			snprintf(first, sizeof(first), "%s", reason);
		}
	}
	json_close(call->out, '}');
	note(snapshot, "memory_usage", age_ms, first);
}

struct inference {
	const struct app *app; /* the slowest */
	double latency_ms, age_ms;
	char reason[REASON_SIZE]; /* of the last that has none */
};

static void inference_item(struct json *out, const struct app *app, const struct stage *stage,
	uint64_t now_ns, struct inference *slowest)
{
	static const struct window_query recent = {.filter = WINDOW_ALL};
	struct app_rate_reason reason = {""};
	bool is_now = app_has_rate(app, &stage->pulse, now_ns, &reason);
	double mean_ms = is_now ? stage_mean_ms(stage, &recent) : (double)NAN;
	double age_ms = row_age_ms(now_ns, stage->last_ns);
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_number(out, "inference_latency", mean_ms);
	if (stage->count > 0) {
		json_number(out, "age_ms", age_ms);
	}
	json_string_opt(out, "reason", reason.text);
	json_close(out, '}');
	if (isfinite(mean_ms) && !(mean_ms <= slowest->latency_ms)) {
		*slowest = (struct inference){.app = app, .latency_ms = mean_ms, .age_ms = age_ms};
	} else if (isnan(mean_ms) && !slowest->app) {
		snprintf(slowest->reason, REASON_SIZE, "the stage " INFERENCE_STAGE " of %s: %s",
			app->name, reason.text[0] ? reason.text : "no event yet");
	}
}

/* An app that has ended is skipped, even while the live views still show it. */
static void inference_fields(struct snapshot *snapshot)
{
	const struct api_call *call = snapshot->call;
	struct json *out = call->out;
	struct inference slowest = {.latency_ms = NAN, .age_ms = NAN};
	const struct app *app;
	json_open(out, "apps", '[');
	for (size_t i = 0; (app = apps_at(call->core->apps, i)); i++) {
		bool wanted = !snapshot->app || strcmp(snapshot->app, app->name) == 0;
		const struct stage *stage = app_stage_find(app, INFERENCE_STAGE);
		if (wanted && app->processes > 0 && stage) {
			inference_item(out, app, stage, call->now_ns, &slowest);
		}
	}
	json_close(out, ']');
	json_number(out, "inference_latency", slowest.latency_ms);
	json_string_opt(out, "inference_app", slowest.app ? slowest.app->name : "");
	if (!slowest.app && slowest.reason[0] == '\0') {
		snprintf(slowest.reason, REASON_SIZE, "%s has a stage " INFERENCE_STAGE,
			snapshot->app ? "no process of the app runs that" : "no app that runs");
	}
	note(snapshot, "inference_latency", slowest.age_ms, slowest.reason);
}

/* One row for each watched name: what a metric process/NAME/rss says, and the ones next to it. */
static void process_item(const struct snapshot *snapshot, const struct metric *rss)
{
	const struct api_call *call = snapshot->call;
	const char *name = strchr(rss->name, '/') + 1;
	int length = (int)(strrchr(rss->name, '/') - name);
	char text[PROTO_PATH_SIZE];
	snprintf(text, sizeof(text), "%.*s", length, name);
	if (snapshot->app && strcmp(snapshot->app, text) != 0) {
		return;
	}
	bool ok = source_state_at(rss->source, call->now_ns) == SOURCE_OK;
	json_open(call->out, NULL, '{');
	json_string(call->out, "name", text);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(text, sizeof(text), "process/%.*s/%s", length, name, sizes[i][0]);
		json_number(call->out, sizes[i][1],
			ok ? metrics_value(call->core->metrics, text) : (double)NAN);
	}
	json_number(call->out, "age_ms", row_age_ms(call->now_ns, metric_time_ns(rss)));
	json_close(call->out, '}');
}

static void processes_field(const struct snapshot *snapshot)
{
	const struct api_call *call = snapshot->call;
	const struct source *source = sources_find(call->core->sources, "process");
	const struct metric *metric;
	json_open(call->out, "processes", '[');
	for (size_t i = 0; source && (metric = metrics_of(call->core->metrics, source, i)); i++) {
		const char *last = strrchr(metric->name, '/');
		if (strncmp(metric->name, "process/", 8) == 0 && last > metric->name + 8 &&
			strcmp(last, "/rss") == 0) {
			process_item(snapshot, metric);
		}
	}
	json_close(call->out, ']');
}

static void time_fields(const struct api_call *call)
{
	int64_t time_us = row_time_us(call->core, call->now_ns);
	time_t seconds = (time_t)(time_us / 1000000);
	struct tm tm;
	char day[32], text[64];
	if (gmtime_r(&seconds, &tm) && strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) > 0) {
		snprintf(text, sizeof(text), "%s.%06dZ", day, (int)(time_us % 1000000));
		json_string(call->out, "timestamp", text);
	} else {
		json_number(call->out, "timestamp", NAN); /* null */
	}
	json_integer(call->out, "time_us", time_us);
	json_bool(call->out, "clock_synced", wallclock_synced(call->core->wall));
	json_string(call->out, "hostname", call->core->facts->hostname);
}

static void notes_fields(const struct snapshot *snapshot)
{
	struct json *out = snapshot->call->out;
	json_open(out, "units", '{');
	json_string(out, "cpu_usage", "percent");
	json_string(out, "temperature", "celsius");
	json_string(out, "power_consumption", "milliwatts");
	json_string(out, "inference_latency", "milliseconds");
	json_close(out, '}');
	json_open(out, "ages_ms", '{');
	for (size_t i = 0; i < snapshot->count; i++) {
		json_number_opt(out, snapshot->note[i].field, snapshot->note[i].age_ms);
	}
	json_close(out, '}');
	json_open(out, "reasons", '{');
	for (size_t i = 0; i < snapshot->count; i++) {
		json_string_opt(out, snapshot->note[i].field, snapshot->note[i].reason);
	}
	json_close(out, '}');
}

enum api_result method_get_snapshot(struct api_call *call)
{
	char name[PROTO_NAME_SIZE];
	struct snapshot snapshot = {.call = call};
	if (call->value[0].present) {
		const char *text = call->value[0].string;
		proto_name_clean(text, strlen(text), name);
		if (!apps_find(call->core->apps, name)) {
			return reply_not_found(call->out, "app", text);
		}
		snapshot.app = name;
	}
	time_fields(call);
	device_fields(&snapshot);
	memory_field(&snapshot);
	inference_fields(&snapshot);
	processes_field(&snapshot);
	notes_fields(&snapshot);
	return API_LAST;
}
