/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: prints current values as Prometheus text: metrics, the statistics of stages and frames
 * as summaries, alerts. When the daemon does not answer, edgeprof_up is 0 and all that there is. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/metrics/exposition.h"
#include "client/edgeprofctl/metrics/families.h"
#include "client/edgeprofctl/trace/trace.h"

/* A stage without an execution for that long has no quantiles, as a stream of frames that is idle.
 */
enum { FRESH_MS = 60000 };

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

static const struct member status_members[] = {
	{"uptime_s", "uptime_seconds", 1, "Time since the daemon's start.", false},
};

static void add_members(struct exposition *exposition, const cJSON *row,
	const struct member *members, size_t count, const struct text *labels, bool fresh)
{
	bool deadline = json_get(row, "deadline_ms");
	for (size_t i = 0; i < count; i++) {
		bool applies = strcmp(members[i].name, "misses") != 0 || deadline;
		if (applies && (fresh || !members[i].window)) {
			exposition_add(exposition, members[i].family, members[i].help, labels,
				json_number(row, members[i].name) / members[i].divisor);
		}
	}
}

/* The quantiles are members PREFIXp50_ms and so on. */
static void add_summary(struct exposition *exposition, const char *family, const char *help,
	const struct text *labels, const cJSON *row, const char *prefix, bool fresh)
{
	static const char *const quantiles[][2] = {
		{"0.5", "p50"}, {"0.9", "p90"}, {"0.95", "p95"}, {"0.99", "p99"}};
	for (size_t i = 0; fresh && i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		char name[48];
		snprintf(name, sizeof(name), "%s%s_ms", prefix, quantiles[i][1]);
		exposition_add_summary(exposition, family, help, labels, quantiles[i][0],
			json_number(row, name) / 1000);
	}
}

static void add_totals(struct exposition *exposition, const char *family, const char *help,
	const struct text *labels, double sum_ms, double count)
{
	if (isfinite(sum_ms) && isfinite(count)) {
		exposition_add_summary(exposition, family, help, labels, "sum", sum_ms / 1000);
		exposition_add_summary(exposition, family, help, labels, "count", count);
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
			exposition_label(&labels, name ? name : member, json_word(row, member));
		}
	}
	return labels;
}

static void add_metrics(struct exposition *exposition, const cJSON *reply)
{
	for (const cJSON *row = json_first(reply, "metrics"); row; row = row->next) {
		families_add_metric(exposition, row);
	}
}

static void add_stages(struct exposition *exposition, const cJSON *reply)
{
	char bytes[LABELS_SIZE];
	for (const cJSON *row = json_first(reply, "stages"); row; row = row->next) {
		struct text labels = labels_of(bytes, row, "app,stage,unit");
		bool fresh = json_number(row, "age_ms") < FRESH_MS;
		add_summary(exposition, "stage_seconds", stage_help, &labels, row, "", fresh);
		add_totals(exposition, "stage_seconds", stage_help, &labels,
			json_number(row, "total_ms"), json_number(row, "total_count"));
		add_members(exposition, row, stage_members,
			sizeof(stage_members) / sizeof(stage_members[0]), &labels, fresh);
	}
}

static void add_frames(struct exposition *exposition, const cJSON *reply)
{
	char bytes[LABELS_SIZE];
	for (const cJSON *row = json_first(reply, "frames"); row; row = row->next) {
		struct text labels = labels_of(bytes, row, "app");
		bool fresh = json_get(row, "fps");
		add_summary(exposition, "frame_seconds", frame_help, &labels, row, "frame_time_",
			fresh);
		add_summary(exposition, "frame_end_to_end_seconds", end_help, &labels, row,
			"end_to_end_", fresh);
		add_members(exposition, row, frame_members,
			sizeof(frame_members) / sizeof(frame_members[0]), &labels, fresh);
	}
}

/* The sums of those summaries: mean and number of the lifetime. */
static void add_lifetimes(struct exposition *exposition, const cJSON *reply)
{
	char bytes[LABELS_SIZE];
	for (const cJSON *row = json_first(reply, "frames"); row; row = row->next) {
		struct text labels = labels_of(bytes, row, "app");
		double count = json_number(row, "frame_count");
		add_totals(exposition, "frame_seconds", frame_help, &labels,
			count * json_number(row, "frame_time_mean_ms"), count);
		add_totals(exposition, "frame_end_to_end_seconds", end_help, &labels,
			count * json_number(row, "end_to_end_mean_ms"), count);
	}
}

static void add_alerts(struct exposition *exposition, const cJSON *reply)
{
	char bytes[LABELS_SIZE];
	for (const cJSON *row = json_first(reply, "alerts"); row; row = row->next) {
		/* Prometheus has a label "instance" of its own */
		struct text labels = labels_of(bytes, row, "rule,instance:alert_instance,severity");
		exposition_add(exposition, "alert_firing", "1 while the alert fires.", &labels,
			strcmp(json_word(row, "state"), "firing") == 0);
	}
}

static void add_status(struct exposition *exposition, const cJSON *reply)
{
	char bytes[LABELS_SIZE];
	struct text labels = labels_of(
		bytes, reply, "version,model,os,kernel,arch,power_mode_name,governor,gpu_governor");
	exposition_add(exposition, "info", "The daemon and its device.", &labels, 1);
	add_members(exposition, reply, status_members,
		sizeof(status_members) / sizeof(status_members[0]), NULL, true);
}

static const struct {
	const char *method, *parameter, *word; /* a parameter and its value; word NULL: true */
	bool more;
	void (*add)(struct exposition *exposition, const cJSON *reply);
} calls[] = {
	{"GetStatus", NULL, NULL, false, add_status},
	{"ListMetrics", NULL, NULL, true, add_metrics},
	{"ListStages", NULL, NULL, true, add_stages},
	{"GetFrames", NULL, NULL, true, add_frames},
	{"GetFrames", "span", "lifetime", true, add_lifetimes},
	{"ListAlerts", "all", NULL, true, add_alerts},
};

static int collect(struct ctl *ctl, struct exposition *exposition)
{
	int status = CTL_FINE;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && status == CTL_FINE; i++) {
		cJSON *reply, *parameters = ctl_parameters(
				      calls[i].word ? calls[i].parameter : NULL, calls[i].word);
		if (calls[i].parameter && !calls[i].word) {
			ctl_add_flag(parameters, calls[i].parameter, true);
		}
		status = ctl_call(ctl, calls[i].method, parameters, calls[i].more, &reply);
		if (status == CTL_FINE) {
			calls[i].add(exposition, reply);
			cJSON_Delete(reply);
		}
	}
	return status;
}

static int write_file(struct ctl *ctl, struct exposition *exposition)
{
	const char *path = ctl->options.output;
	struct trace_file file;
	int r = trace_file_open(path, &file);
	if (r == 0) {
		exposition_write(exposition, file.stream);
		r = trace_file_finish(&file);
	}
	return r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "%s: %s", path, strerror(-r)) : CTL_FINE;
}

static int run_metrics(struct ctl *ctl)
{
	static const char up_help[] = "1 when the daemon replied.";
	struct exposition exposition = {0};
	ctl->style.utf8 =
		true; /* as the format is, whatever the locale; else labels would be equal */
	if (ctl->options.json != JSON_OFF && ctl->options.output) {
		return ctl_fail(ctl, CTL_USAGE, "--output is for Prometheus text, not for JSON");
	}
	if (ctl->options.json != JSON_OFF) {
		return ctl_show(ctl, "ListMetrics", NULL, true, NULL);
	}
	int status = collect(ctl, &exposition);
	if (status != CTL_FINE) {
		exposition_finish(&exposition); /* half of it would look like metrics that ended */
	}
	exposition_add(&exposition, "up", up_help, NULL, status == CTL_FINE);
	if (exposition.out_of_memory) {
		status = ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	} else if (ctl->options.output) {
		int written = write_file(ctl, &exposition);
		status = status != CTL_FINE ? status : written;
	} else {
		exposition_write(&exposition, ctl->output.stream);
	}
	exposition_finish(&exposition);
	return status;
}

static const struct option_spec table[] = {
	{"output", 'o', "FILE", "write to FILE, which is replaced as a whole", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

const struct verb verb_metrics = {"metrics", "", "Print current values as Prometheus text.",
	"metrics -o edgeprof.prom", table, run_metrics};
