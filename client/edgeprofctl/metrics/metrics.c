/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: prints current values as Prometheus text: metrics, the statistics of stages and frames
 * as summaries, alerts. When the daemon does not answer, edgeprof_up is 0 and all that there is. */
#include "client/edgeprofctl/verb.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/metrics/metrics.h"
#include "client/edgeprofctl/trace/trace.h"

/* A stage without an execution for that long has no quantiles, as a stream of frames that is idle.
 */
enum { FRESH_MS = 60000, NAME_SIZE = 256 };

static const char stage_help[] = "Time of an execution: quantiles of the recent window.",
		  frame_help[] = "Time between frames: quantiles of the recent window.",
		  end_help[] = "Time from a frame's first start to its last end.";

/* A member of a reply's row that is a family of its own; window: of the recent window. */
struct member {
	const char *name, *family;
	double divisor;
	const char *help;
	bool window;
};

static const struct member stage_members[] = {
	{"deadline_ms", "stage_deadline_seconds", 1000, "Deadline of the stage.", false},
	{"misses", "stage_deadline_misses_total", 1, "Executions over the deadline.", false},
	{"failed", "stage_failed_total", 1, "Executions that failed.", false},
	{"cpu_ms", "stage_cpu_seconds", 1000, "Mean processor time of an execution.", true},
	{"energy_mj", "stage_energy_joules", 1000, "Energy of the stage in a frame, an estimate.",
		true},
	{"rss_growth_max_bytes", "stage_memory_growth_max_bytes", 1,
		"Largest growth of the memory during an execution.", false},
};

static const struct member frame_members[] = {
	{"fps", "frames_per_second", 1, "Frame rate.", true},
	{"total_count", "frames_total", 1, "Frames.", false},
	{"target_fps", "frame_target_per_second", 1, "Configured frame rate.", false},
	{"deadline_ms", "frame_deadline_seconds", 1000, "Deadline of frames.", false},
	{"misses", "frame_deadline_misses_total", 1, "Frames over the deadline.", false},
	{"slow_count", "frames_slow_total", 1, "Frames that were slow.", false},
	{"skipped_ids", "frames_lost_total", 1, "Frames whose id was skipped.", false},
	{"jitter_ms", "frame_jitter_seconds", 1000, "Deviation of the time of frames.", true},
	{"in_flight", "frames_in_flight", 1, "Mean number of frames in flight.", true},
	{"energy_mj_per_frame", "frame_energy_joules", 1000, "Energy of a frame, an estimate.",
		true},
};

void metrics_label(struct text *labels, const char *name, const char *value)
{
	text_add(labels, "%s%s=\"", labels->length > 0 ? "," : "", name);
	for (; *value != '\0'; value++) {
		bool escaped = *value == '\\' || *value == '"' || *value == '\n';
		text_add(labels, "%s%c", escaped ? "\\" : "", *value == '\n' ? 'n' : *value);
	}
	text_add(labels, "\"");
}

void metrics_add(cJSON *families, const char *family, const char *help, const struct text *labels,
	const char *part, double value)
{
	char name[NAME_SIZE], all_bytes[LABELS_SIZE], key_bytes[LABELS_SIZE + 16];
	struct text all = TEXT_IN(all_bytes), key = TEXT_IN(key_bytes);
	bool quantile = part && isdigit((unsigned char)part[0]);
	const char *type = part				      ? "summary"
			   : text_ends_with(family, "_total") ? "counter"
							      : "gauge";
	if (labels) {
		text_add(&all, "%s", labels->data);
	}
	if (quantile) {
		metrics_label(&all, "quantile", part);
	}
	text_add(&key, part && !quantile ? "_%s" : "%s", part && !quantile ? part : "");
	text_add(&key, all.length > 0 ? "{%s}" : "%s", all.data);
	if (!isfinite(value) || all.truncated || (labels && labels->truncated)) {
		return;
	}
	/* Parts of names come from the daemon. */
	snprintf(name, sizeof(name), "edgeprof_%s", family);
	for (char *at = name; *at != '\0'; at++) {
		*at = (char)(isascii(*at) && isalnum((unsigned char)*at) ? *at : '_');
	}
	cJSON *object = cJSON_GetObjectItemCaseSensitive(families, name);
	if (!object) {
		object = cJSON_AddObjectToObject(families, name);
		cJSON_AddStringToObject(object, "help", help);
		cJSON_AddStringToObject(object, "type", type);
		cJSON_AddObjectToObject(object, "samples");
	}
	cJSON *samples = cJSON_GetObjectItemCaseSensitive(object, "samples");
	if (!cJSON_GetObjectItemCaseSensitive(samples, key.data)) {
		cJSON_AddNumberToObject(samples, key.data, value);
	}
}

static void write_families(const cJSON *families, FILE *out)
{
	const cJSON *family, *sample;
	cJSON_ArrayForEach(family, families)
	{
		fprintf(out, "# HELP %s %s\n", family->string, json_word(family, "help"));
		fprintf(out, "# TYPE %s %s\n", family->string, json_word(family, "type"));
		cJSON_ArrayForEach(sample, json_get(family, "samples"))
		{
			fprintf(out, "%s%s %.15g\n", family->string, sample->string,
				sample->valuedouble);
		}
	}
}

static void add_members(cJSON *families, const cJSON *row, const struct member *members,
	size_t count, const struct text *labels, bool fresh)
{
	bool deadline = json_get(row, "deadline_ms");
	for (size_t i = 0; i < count; i++) {
		bool applies = strcmp(members[i].name, "misses") != 0 || deadline;
		if (applies && (fresh || !members[i].window)) {
			metrics_add(families, members[i].family, members[i].help, labels, NULL,
				json_number(row, members[i].name) / members[i].divisor);
		}
	}
}

/* The quantiles are members PREFIXp50_ms and so on. */
static void add_summary(cJSON *families, const char *family, const char *help,
	const struct text *labels, const cJSON *row, const char *prefix, bool fresh)
{
	static const char *const quantiles[][2] = {
		{"0.5", "p50"}, {"0.9", "p90"}, {"0.95", "p95"}, {"0.99", "p99"}};
	for (size_t i = 0; fresh && i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		char name[48];
		snprintf(name, sizeof(name), "%s%s_ms", prefix, quantiles[i][1]);
		metrics_add(families, family, help, labels, quantiles[i][0],
			json_number(row, name) / 1000);
	}
}

static void add_totals(cJSON *families, const char *family, const char *help,
	const struct text *labels, double sum_ms, double count)
{
	if (isfinite(sum_ms) && isfinite(count)) {
		metrics_add(families, family, help, labels, "sum", sum_ms / 1000);
		metrics_add(families, family, help, labels, "count", count);
	}
}

/* Labels of the row's members "a,b,c" that are there; a member is NAME or MEMBER:NAME. */
static struct text labels_of(char bytes[LABELS_SIZE], const cJSON *row, const char *names)
{
	struct text labels = text_in(bytes, LABELS_SIZE);
	char words[128], *rest = words, *name;
	snprintf(words, sizeof(words), "%s", names);
	while ((name = strsep(&rest, ","))) {
		const char *member = strsep(&name, ":");
		if (json_text(row, member)) {
			metrics_label(&labels, name ? name : member, json_word(row, member));
		}
	}
	return labels;
}

static void add_metric(cJSON *families, const cJSON *row, const struct text *labels)
{
	(void)labels; /* depend on the metric */
	metrics_add_metric(families, row);
}

static void add_stage(cJSON *families, const cJSON *row, const struct text *labels)
{
	bool fresh = json_number(row, "age_ms") < FRESH_MS;
	add_summary(families, "stage_seconds", stage_help, labels, row, "", fresh);
	add_totals(families, "stage_seconds", stage_help, labels, json_number(row, "total_ms"),
		json_number(row, "total_count"));
	add_members(families, row, stage_members, sizeof(stage_members) / sizeof(stage_members[0]),
		labels, fresh);
}

static void add_frames(cJSON *families, const cJSON *row, const struct text *labels)
{
	bool fresh = json_get(row, "fps");
	add_summary(families, "frame_seconds", frame_help, labels, row, "frame_time_", fresh);
	add_summary(
		families, "frame_end_to_end_seconds", end_help, labels, row, "end_to_end_", fresh);
	add_members(families, row, frame_members, sizeof(frame_members) / sizeof(frame_members[0]),
		labels, fresh);
}

/* The sums of those summaries: mean and number of the lifetime. */
static void add_lifetime(cJSON *families, const cJSON *row, const struct text *labels)
{
	double count = json_number(row, "frame_count");
	add_totals(families, "frame_seconds", frame_help, labels,
		count * json_number(row, "frame_time_mean_ms"), count);
	add_totals(families, "frame_end_to_end_seconds", end_help, labels,
		count * json_number(row, "end_to_end_mean_ms"), count);
}

static void add_alert(cJSON *families, const cJSON *row, const struct text *labels)
{
	metrics_add(families, "alert_firing", "1 while the alert fires.", labels, NULL,
		strcmp(json_word(row, "state"), "firing") == 0);
}

static void add_status(cJSON *families, const cJSON *reply, const struct text *labels)
{
	metrics_add(families, "info", "The daemon and its device.", labels, NULL, 1);
	metrics_add(families, "uptime_seconds", "Time since the daemon's start.", NULL, NULL,
		json_number(reply, "uptime_s"));
}

static int collect(struct ctl *ctl, cJSON *families)
{
	/* Prometheus has a label "instance" of its own */
	static const struct {
		const char *method, *parameters; /* JSON; NULL: none */
		const char *array, *labels;	 /* array NULL: the reply itself is the row */
		void (*add)(cJSON *families, const cJSON *row, const struct text *labels);
	} calls[] = {
		{"GetStatus", NULL, NULL,
			"version,model,os,kernel,arch,power_mode_name,governor,gpu_governor",
			add_status},
		{"ListMetrics", NULL, "metrics", "", add_metric},
		{"ListStages", NULL, "stages", "app,stage,unit", add_stage},
		{"GetFrames", NULL, "frames", "app", add_frames},
		{"GetFrames", "{\"span\":\"lifetime\"}", "frames", "app", add_lifetime},
		{"ListAlerts", "{\"all\":true}", "alerts", "rule,instance:alert_instance,severity",
			add_alert},
	};
	int status = CTL_FINE;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && status == CTL_FINE; i++) {
		const char *array = calls[i].array;
		cJSON *reply,
			*parameters = calls[i].parameters ? cJSON_Parse(calls[i].parameters) : NULL;
		status = ctl_call(ctl, calls[i].method, parameters, array, &reply);
		if (status != CTL_FINE) {
			break;
		}
		const cJSON *row = array ? json_first(reply, array) : reply;
		for (; row; row = row->next) {
			char bytes[LABELS_SIZE];
			struct text labels = labels_of(bytes, row, calls[i].labels);
			calls[i].add(families, row, &labels);
		}
		cJSON_Delete(reply);
	}
	return status;
}

static int write_file(struct ctl *ctl, const cJSON *families)
{
	const char *path = ctl->options.output;
	struct trace_file file;
	int r = trace_file_open(path, &file);
	if (r == 0) {
		write_families(families, file.stream);
		r = trace_file_finish(&file);
	}
	return r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "%s: %s", path, strerror(-r)) : CTL_FINE;
}

static int run_metrics(struct ctl *ctl)
{
	/* as the format is, whatever the locale; else labels would be equal */
	ctl->style.utf8 = true;
	ctl->output.style = NULL; /* no line of it may be broken */
	if (ctl->options.json != JSON_OFF) {
		return ctl->options.output
			       ? ctl_fail(ctl, CTL_USAGE,
					 "--output is for Prometheus text, not for JSON")
			       : ctl_show(ctl, "ListMetrics", NULL, true, NULL);
	}
	cJSON *families = cJSON_CreateObject();
	int status = collect(ctl, families);
	if (status != CTL_FINE) {
		/* half of it would look like metrics that ended */
		cJSON_Delete(families);
		families = cJSON_CreateObject();
	}
	metrics_add(families, "up", "1 when the daemon replied.", NULL, NULL, status == CTL_FINE);
	if (ctl->options.output) {
		int written = write_file(ctl, families);
		status = status != CTL_FINE ? status : written;
	} else {
		write_families(families, ctl->output.stream);
	}
	cJSON_Delete(families);
	return status;
}

static const struct option_spec table[] = {
	{"output", 'o', "FILE", "write to FILE, which is replaced as a whole", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

const struct verb verb_metrics = {"metrics", "", "Print current values as Prometheus text.",
	"metrics -o edgeprof.prom", table, run_metrics};
