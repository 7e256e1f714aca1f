/* SPDX-License-Identifier: Apache-2.0 */
/* status.c: shows the device at a glance: status, one screen that answers "is all well here?", and
 * snapshot, the few numbers that say how the device and its inference are at one moment. */
#include "client/edgeprofctl/verb.h"

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"

static const struct line device_lines[] = {
	{"Device", "[{model}|-]", "", TONE_NONE},
	{"System",
		"[{os}|-], kernel [{kernel}|-], [{arch}|-], {cpus:0} CPUs, {page_bytes:KiB} pages",
		"", TONE_NONE},
	{"Clock", "[{?clock_synced}{time_us:time}, synchronised]", "", TONE_NONE},
	{"Clock", "[{!clock_synced}{time_us:time}, not synchronised]", "", TONE_WARN},
	{"Temperature", "{temperature_celsius:celsius}", "", TONE_NONE},
	{"CPU", "{cpu_percent:percent}", "", TONE_NONE},
	{"Memory", "{memory_percent:percent}", "", TONE_NONE},
	{"Power mode",
		"[{power_mode}[ {power_mode_name}][{?jetson_clocks}, clocks pinned|"
		"{jetson_clocks:is}, clocks free]]",
		"", TONE_NONE},
	{"Governor", "[{governor}[, GPU {gpu_governor}]]", "", TONE_NONE},
};

enum { DEVICE_LINES = sizeof(device_lines) / sizeof(device_lines[0]) };

/* One line about an item of the status. */
static void add(struct ctl *ctl, struct table *table, const cJSON *item, const char *name,
	const char *value, enum tone tone)
{
	const struct line line = {name, value, "", tone};
	listing_lines(ctl, table, item, &line, 1);
}

static void add_lists(struct ctl *ctl, struct table *table, const cJSON *status)
{
	char value[96], failing[32] = "";
	int bad = json_count(status, "sources_bad");
	if (bad > 0) {
		snprintf(failing, sizeof(failing), ", %d failing", bad);
	}
	snprintf(value, sizeof(value), "{sources_ok:0} ok%s, {metrics:0} metrics", failing);
	add(ctl, table, status, "Sources", value, bad > 0 ? TONE_WARN : TONE_NONE);
	for (const cJSON *row = json_first(status, "sources_bad"); row; row = row->next) {
		add(ctl, table, row, "  {name}", "{state}[: {reason}]", listing_state(row));
	}
	add(ctl, table, status, "Apps", json_count(status, "apps") > 0 ? NULL : "none", TONE_NONE);
	for (const cJSON *row = json_first(status, "apps"); row; row = row->next) {
		add(ctl, table, row, "  {name}",
			"{state}[, {fps:fps}|, last {last_fps:fps} {idle_ms:ago}], "
			"{stages:0} stages[; {last_words}]",
			listing_state(row));
	}
	const char *title = "Alerts";
	for (const cJSON *row = json_first(status, "alerts"); row; row = row->next, title = "") {
		bool firing = strcmp(json_word(row, "state"), "firing") == 0;
		add(ctl, table, row, title,
			firing ? "{severity}: [{text}|{rule}]" : "pending: [{text}|{rule}]",
			style_of_state(firing ? json_word(row, "severity") : "pending"));
	}
	if (title[0] != '\0') {
		add(ctl, table, status, title, "none", TONE_GOOD);
	}
}

static void add_broker(struct ctl *ctl, struct table *table, const cJSON *broker)
{
	const char *state = json_word(broker, "state");
	if (state[0] == '\0' || strcmp(state, "off") == 0) {
		bool failed = json_word(broker, "reason")[0] != '\0';
		add(ctl, table, broker, "MQTT", "off[: {reason}]", failed ? TONE_WARN : TONE_DIM);
		return;
	}
	char value[160], lost[48] = "";
	int64_t dropped = json_integer(broker, "dropped") + json_integer(broker, "dropped_alerts");
	if (dropped > 0) {
		snprintf(lost, sizeof(lost), ", %lld dropped", (long long)dropped);
	}
	snprintf(value, sizeof(value),
		"{state}, [{host}|-]:{port:0}, {delivered:0} delivered, {queued:0} queued%s"
		"[: {reason}]",
		lost);
	add(ctl, table, broker, "MQTT", value, style_of_state(state));
}

static void show_status(struct ctl *ctl, const cJSON *status)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, true}};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	listing_text(ctl, TONE_BOLD, "[{hostname}|-]", status);
	listing_text(ctl, TONE_NONE, ": edgeprofd [{version}|-], up {uptime_s:s}\n", status);
	listing_lines(ctl, &table, status, device_lines, DEVICE_LINES);
	add_lists(ctl, &table, status);
	add_broker(ctl, &table, json_get(status, "broker"));
	const char *title = "Degraded";
	for (const cJSON *item = json_first(status, "degraded"); item; item = item->next) {
		table_add(&table, TONE_DIM, "%s", title);
		table_add(&table, TONE_WARN, "%s", cJSON_IsString(item) ? item->valuestring : "");
		title = "";
	}
	ctl_table(ctl, &table);
}

struct status_options {
	bool all;
};

static int run_status(struct ctl *ctl)
{
	const struct status_options *options = ctl->verb_options;
	return ctl_show(ctl, "GetStatus", ctl_all(options->all, NULL), false, show_status);
}

static const struct option_spec status_table[] = {
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct status_options, all)},
	{.name = NULL},
};

const struct verb verb_status = {"status", "",
	"Show device, sources, apps and alerts on one screen.", "status", status_table,
	sizeof(struct status_options), run_status};

/* A number that is older says how old it is. */
static const double OLD_MS = 2000;

/* A value of the snapshot, and how old it is or why it is unknown. */
static void add_value(struct ctl *ctl, struct table *table, const cJSON *report, const char *title,
	const char *member, const char *template)
{
	double age_ms = json_number(json_get(report, "ages_ms"), member);
	table_add(table, TONE_DIM, "%s", title);
	listing_cell(ctl, table, template, report, TONE_NONE);
	table_add(table, TONE_DIM, "%s",
		age_ms >= OLD_MS ? format_ago(age_ms).text
				 : json_word(json_get(report, "reasons"), member));
}

static void add_memory(struct ctl *ctl, struct table *table, const cJSON *report)
{
	const cJSON *memory = json_get(report, "memory_usage");
	const struct line known = {"Memory", "[{percent:1} %]",
		"{bytes:bytes} used, {available_bytes:bytes} available of {total_bytes:bytes}",
		TONE_NONE};
	const struct line unknown = {"Memory", "-", "{memory_usage}", TONE_NONE};
	if (json_get(memory, "percent")) {
		listing_lines(ctl, table, memory, &known, 1);
	} else {
		listing_lines(ctl, table, json_get(report, "reasons"), &unknown, 1);
	}
}

static void add_inference(struct ctl *ctl, struct table *table, const cJSON *report)
{
	char note[96] = "{inference_app}";
	int apps = json_count(report, "apps");
	if (apps > 1) {
		snprintf(note, sizeof(note), "{inference_app}, the slowest of %d apps", apps);
	}
	const struct line known = {
		"Inference", "{inference_latency:milliseconds}", note, TONE_NONE};
	const struct line unknown = {"Inference", "-", "{inference_latency}", TONE_NONE};
	bool measured = json_get(report, "inference_latency");
	listing_lines(ctl, table, measured ? report : json_get(report, "reasons"),
		measured ? &known : &unknown, 1);
}

static void show_snapshot(struct ctl *ctl, const cJSON *report)
{
	static const struct column columns[] = {
		{NULL, false, true}, {NULL, true, false}, {NULL, false, true}};
	static const struct line process = {"{name}", "{rss_bytes:bytes}",
		"peak {peak_rss_bytes:bytes}, virtual {vms_bytes:bytes}", TONE_NONE};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	listing_text(ctl, TONE_BOLD, "{hostname}", report);
	listing_text(ctl, TONE_NONE,
		" at {time_us:time}[{!clock_synced} (clock not synchronised)]\n", report);
	add_value(ctl, &table, report, "CPU", "cpu_usage", "{cpu_usage:percent}");
	add_value(ctl, &table, report, "Temperature", "temperature", "{temperature:celsius}");
	add_value(ctl, &table, report, "Power", "power_consumption",
		"{power_consumption:milliwatts}");
	add_memory(ctl, &table, report);
	add_inference(ctl, &table, report);
	for (const cJSON *row = json_first(report, "processes"); row; row = row->next) {
		listing_lines(ctl, &table, row, &process, 1);
	}
	ctl_table(ctl, &table);
}

struct snapshot_options {
	const char *app;
};

static int run_snapshot(struct ctl *ctl)
{
	const struct snapshot_options *options = ctl->verb_options;
	return ctl_show(
		ctl, "GetSnapshot", ctl_parameters("app", options->app), false, show_snapshot);
}

static const struct option_spec snapshot_table[] = {
	{"app", 0, "APP", "show only what belongs to this app", option_text,
		offsetof(struct snapshot_options, app)},
	{.name = NULL},
};

const struct verb verb_snapshot = {"snapshot", "",
	"Show the most important numbers of this moment.", "snapshot -j", snapshot_table,
	sizeof(struct snapshot_options), run_snapshot};
