/* snapshot: the few numbers that say how the device and its inference are, at one moment. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/format.h"
#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/merge.h"
#include "client/edgeprofctl/snapshot_report.h"
#include "client/edgeprofctl/table.h"

/* A call whose "there is no such thing" is part of the answer: *ret is NULL then. */
static int ask(struct ctl *ctl, const char *method, const char *name, const char *text, cJSON **ret)
{
	*ret = NULL;
	ctl->quiet = true;
	int status = ctl_call(ctl, method, ctl_parameters(name, text), true, ret);
	ctl->quiet = false;
	if (status == CTL_FINE || status == CTL_NO_DATA) {
		return CTL_FINE;
	}
	return ctl_fail(ctl, status, "%s", ctl->failure);
}

/* The metrics that are needed, in one answer. */
static int ask_metrics(struct ctl *ctl, cJSON **ret)
{
	static const char *const device[] = {
		"cpu/utilization", "temperature/max", "power/total", "memory/*"};
	char processes[256];
	int length = snprintf(processes, sizeof(processes), "process/%s/*",
		ctl->options.app == NULL ? "*" : ctl->options.app);
	size_t count = sizeof(device) / sizeof(device[0]);
	bool fits = length > 0 && (size_t)length < sizeof(processes);
	*ret = NULL;
	for (size_t i = 0; i < count + (fits ? 1 : 0); i++) {
		cJSON *part;
		int status =
			ask(ctl, "ListMetrics", "glob", i < count ? device[i] : processes, &part);
		if (status != CTL_FINE) {
			return status;
		}
		if (*ret == NULL) {
			*ret = part;
		} else if (part != NULL) {
			int r = merge_reply(*ret, part);
			cJSON_Delete(part);
			if (r < 0) {
				return ctl_fail(ctl, CTL_OUTPUT, "no memory");
			}
		}
	}
	return CTL_FINE;
}

static void add(struct table *table, const char *name, const char *value, const char *note)
{
	bool known = strcmp(value, "-") != 0;
	table_add(table, TONE_DIM, "%s", name);
	table_add(table, known ? TONE_NONE : TONE_DIM, "%s", value);
	table_add(table, TONE_DIM, "%s", note);
}

static void add_memory(struct table *table, const cJSON *report, const char *why)
{
	const cJSON *memory = json_get(report, "memory_usage");
	double percent = json_number(memory, "percent");
	char value[96], note[256];
	if (isnan(percent)) {
		add(table, "Memory", "-", why);
		return;
	}
	snprintf(value, sizeof(value), "%.1f %%", percent);
	snprintf(note, sizeof(note), "%s used, %s available of %s",
		format_bytes(json_number(memory, "bytes")).text,
		format_bytes(json_number(memory, "available_bytes")).text,
		format_bytes(json_number(memory, "total_bytes")).text);
	add(table, "Memory", value, note);
}

static void add_inference(struct table *table, const cJSON *report, const char *why, bool utf8)
{
	double latency = json_number(report, "inference_latency");
	char note[256];
	int apps = json_count(report, "apps");
	int length = snprintf(note, sizeof(note), "%s", json_word(report, "inference_app"));
	if (apps > 1 && length > 0 && (size_t)length < sizeof(note)) {
		snprintf(note + length, sizeof(note) - (size_t)length, ", the slowest of %d apps",
			apps);
	}
	add(table, "Inference", format_value(latency, "milliseconds", utf8).text,
		isnan(latency) ? why : note);
}

static void add_processes(struct table *table, const cJSON *report)
{
	for (const cJSON *row = json_first(report, "processes"); row != NULL; row = row->next) {
		char note[192];
		snprintf(note, sizeof(note), "peak %s, virtual %s",
			format_bytes(json_number(row, "peak_rss_bytes")).text,
			format_bytes(json_number(row, "vms_bytes")).text);
		add(table, json_word(row, "name"), format_bytes(json_number(row, "rss_bytes")).text,
			note);
	}
}

static void show_snapshot(struct ctl *ctl, const cJSON *report)
{
	static const struct column columns[] = {
		{NULL, false, true}, {NULL, true, false}, {NULL, false, true}};
	static const struct {
		const char *field, *title, *unit;
	} rows[] = {
		{"cpu_usage", "CPU", "percent"},
		{"temperature", "Temperature", "celsius"},
		{"power_consumption", "Power", "milliwatts"},
	};
	bool utf8 = ctl->style.utf8;
	const cJSON *reasons = json_get(report, "reasons");
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	fprintf(ctl->output.stream, "%s%s%s at %s%s\n", style_on(&ctl->style, TONE_BOLD),
		json_word(report, "hostname"), style_off(&ctl->style, TONE_BOLD),
		format_time(json_integer(report, "time_us")).text,
		json_true(report, "clock_synced") ? "" : " (clock not synchronised)");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		add(&table, rows[i].title,
			format_value(json_number(report, rows[i].field), rows[i].unit, utf8).text,
			json_word(reasons, rows[i].field));
	}
	add_memory(&table, report, json_word(reasons, "memory_usage"));
	add_inference(&table, report, json_word(reasons, "inference_latency"), utf8);
	add_processes(&table, report);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

int verb_snapshot(struct ctl *ctl)
{
	const char *app = ctl->options.app;
	cJSON *reply = NULL, *metrics = NULL, *stages = NULL, *sources = NULL, *report = NULL;
	int status = ctl_call(ctl, "GetStatus", NULL, false, &reply);
	/* an app that nobody knows is no data, not an empty row */
	if (status == CTL_FINE) {
		status = ctl_call(ctl, "ListStages", ctl_parameters("app", app), true, &stages);
	}
	if (status == CTL_FINE) {
		status = ask_metrics(ctl, &metrics);
	}
	if (status == CTL_FINE) {
		status = ask(ctl, "ListSources", NULL, NULL, &sources);
	}
	if (status == CTL_FINE) {
		const struct snapshot_replies replies = {reply, metrics, stages, sources, app};
		report = snapshot_report(&replies);
		status = report == NULL ? ctl_fail(ctl, CTL_OUTPUT, "no memory") : CTL_FINE;
	}
	if (status == CTL_FINE && !ctl_json(ctl, report)) {
		show_snapshot(ctl, report);
	}
	cJSON_Delete(report);
	cJSON_Delete(sources);
	cJSON_Delete(stages);
	cJSON_Delete(metrics);
	cJSON_Delete(reply);
	return status;
}
