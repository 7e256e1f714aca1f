/* SPDX-License-Identifier: Apache-2.0 */
/* status.c: shows the device at a glance: status, one screen that answers "is all well here?", and
 * snapshot, the few numbers that say how the device and its inference are at one moment. */
#include "client/edgeprofctl/verb.h"

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

static const struct line status_lines[] = {
	{"Device", "[{model}|-]"},
	{"System",
		"[{os}|-], kernel [{kernel}|-], [{arch}|-], {cpus:0} CPUs, {page_bytes:KiB} pages"},
	{"Clock", "[{?clock_synced}{time_us:time}, synchronised]"},
	{"Clock", "[{!clock_synced}{~warn}{time_us:time}, not synchronised]"},
	{"Temperature", "{temperature_celsius:celsius}"},
	{"CPU", "{cpu_percent:percent}"},
	{"Memory", "{memory_percent:percent}"},
	{"Power mode", "[{power_mode}[ {power_mode_name}][{?jetson_clocks}, clocks pinned|"
		       "{jetson_clocks:is}, clocks free]]"},
	{"Governor", "[{governor}[, GPU {gpu_governor}]]"},
	{"Sources",
		"[{?sources_bad}{~warn}]{sources_ok:0} ok[{?sources_bad}, {sources_bad} failing], "
		"{metrics:0} metrics"},
	{"{*sources_bad}  {name}", "{~:state}{state}[: {reason}]"},
	{"Apps", "[{!apps}none]"},
	{"[{?apps}Apps]", NULL},
	{"{*apps}  {name}",
		"{~:state}{state}[, {fps:fps}|, last {last_fps:fps} {idle_ms:ago}], {stages:0} "
		"stage[{?stages>=2}s|{?stages}|s][; {last_words}]"},
	{"{*apps}", "{~warn}{diagnosis}"},
	{"Alerts", "[{!alerts}{~good}none]"},
	{"{*alerts}Alerts",
		"[{?state=firing}{~:severity}[{severity}]|{~warn}pending]: [{text}|{rule}]"},
	{"MQTT", "[{?broker.state}{!broker.state=off}{~:broker.state}{broker.state}, "
		 "[{broker.host}|-]:[{broker.port:0}|-], [{broker.delivered:0}|-] delivered, "
		 "[{broker.queued:0}|-] queued[, {broker.lost:0} dropped][: {broker.reason}]|"
		 "{~dim}[{?broker.reason}{~warn}]off[: {broker.reason}]]"},
	{"{*degraded}Degraded", "{~warn}{}"},
};

static void show_status(struct ctl *ctl, const cJSON *status)
{
	const cJSON *broker = json_get(status, "broker");
	int64_t lost = json_integer(broker, "dropped") + json_integer(broker, "dropped_alerts");
	if (lost > 0) {
		cJSON_AddNumberToObject(
			cJSON_GetObjectItemCaseSensitive(status, "broker"), "lost", (double)lost);
	}
	listing_text(ctl,
		"{~bold}[{hostname}|-]{~none}: edgeprofd [{version}|-], up {uptime_s:s}\n", status);
	listing_facts(ctl, status, status_lines, sizeof(status_lines) / sizeof(status_lines[0]));
}

/* One row a machine. */
static void show_hosts(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"HOST", FIELD_TEXT, "{~bold}{host}"},
		{"TEMP", FIELD_NUMBER, "{status.temperature_celsius:celsius}"},
		{"CPU", FIELD_NUMBER, "{status.cpu_percent:percent}"},
		{"MEMORY", FIELD_NUMBER, "{status.memory_percent:percent}"},
		{"APPS", FIELD_LONG, "[{*status.apps,, }{name} {fps:fps}{/}|-]"},
		{"ALERTS", FIELD_LONG,
			"[{~bad}{reason}|{?status.alerts}{~warn}{*status.alerts,; "
			"}[{text}|{rule}]{/}|"
			"{~good}none]"},
	};
	listing_show(ctl, reply, "hosts", fields, sizeof(fields) / sizeof(fields[0]));
}

/* The replies of several machines, which are called at the same time. */
static int run_hosts(struct ctl *ctl)
{
	struct ctl hosts[REMOTE_MAX];
	int states[REMOTE_MAX], status = CTL_FINE;
	cJSON *all = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(all, "hosts");
	for (size_t i = 0; i < ctl_hosts(ctl); i++) {
		ctl_init_host(ctl, i, &hosts[i]);
		states[i] = ctl_subscribe(
			&hosts[i], "GetStatus", ctl_add_flag(NULL, "all", ctl->options.all));
	}
	for (size_t i = 0; i < ctl_hosts(ctl); i++) {
		cJSON *reply, *row = ctl_parameters("host", ctl_host(ctl, i));
		if (states[i] == CTL_FINE) {
			states[i] = ctl_expect(&hosts[i], ctl->options.timeout_ms, &reply);
		}
		if (states[i] == CTL_FINE) {
			cJSON_AddItemToObject(row, "status", reply);
		} else {
			cJSON_AddStringToObject(row, "reason", hosts[i].failure);
			status = states[i];
		}
		cJSON_AddItemToArray(rows, row);
		ctl_disconnect(&hosts[i]);
	}
	ctl_answer(ctl, all, show_hosts);
	return status;
}

static int run_status(struct ctl *ctl)
{
	if (ctl_hosts(ctl) > 1) {
		return run_hosts(ctl);
	}
	return ctl_show(
		ctl, "GetStatus", ctl_add_flag(NULL, "all", ctl->options.all), false, show_status);
}

static const struct option_spec status_table[] = {
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct options, all)},
	{.name = NULL},
};

const struct verb verb_status = {"status", "",
	"Show device, sources, apps and alerts on one screen.", "status", status_table, run_status};

/* A number that is older than 2 s says how old it is; an unknown one, why. */
static const struct line snapshot_lines[] = {
	{"CPU", "{cpu_usage:percent}\t[{?ages_ms.cpu_usage>=2000}{ages_ms.cpu_usage:ago}|"
		"{reasons.cpu_usage}]"},
	{"Temperature", "{temperature:celsius}\t[{?ages_ms.temperature>=2000}"
			"{ages_ms.temperature:ago}|{reasons.temperature}]"},
	{"Power", "{power_consumption:milliwatts}\t[{?ages_ms.power_consumption>=2000}"
		  "{ages_ms.power_consumption:ago}|{reasons.power_consumption}]"},
	{"Memory", "[{memory_usage.percent:is}[{memory_usage.percent:1} "
		   "%]\t[{memory_usage.bytes:bytes}|-] used, "
		   "[{memory_usage.available_bytes:bytes}|-] available of "
		   "[{memory_usage.total_bytes:bytes}|-]|-\t[{reasons.memory_usage}]]"},
	{"Inference", "[{inference_latency:is}{inference_latency:milliseconds}\t[{inference_app}]"
		      "[{?apps>=2}, the slowest app]|-\t[{reasons.inference_latency}]]"},
	{"{*processes}{name}",
		"{rss_bytes:bytes}\tpeak {peak_rss_bytes:bytes}, virtual {vms_bytes:bytes}"},
};

static void show_snapshot(struct ctl *ctl, const cJSON *report)
{
	static const struct column columns[] = {
		{NULL, false, false}, {NULL, true, false}, {NULL, false, false}};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	listing_text(ctl,
		"{~bold}{hostname}{~none} at {time_us:time}[{!clock_synced} (clock not "
		"synchronised)]\n",
		report);
	listing_lines(ctl, &table, report, snapshot_lines,
		sizeof(snapshot_lines) / sizeof(snapshot_lines[0]));
	ctl_table(ctl, &table);
}

static int run_snapshot(struct ctl *ctl)
{
	return ctl_show(
		ctl, "GetSnapshot", ctl_parameters("app", ctl->options.app), false, show_snapshot);
}

static const struct option_spec snapshot_table[] = {
	{"app", 0, "APP", "show only what belongs to this app", option_nonempty,
		offsetof(struct options, app)},
	{.name = NULL},
};

const struct verb verb_snapshot = {"snapshot", "",
	"Show the most important numbers of this moment.", "snapshot -j", snapshot_table,
	run_snapshot};
