/* SPDX-License-Identifier: Apache-2.0 */
/* families.c: names the families of metrics. A family's name is that of its row and the base unit;
 * "_total" is at the end. A metric that no row names is a family of its own first segment. */
#include "client/edgeprofctl/metrics/metrics.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

enum { NAME_SIZE = 256 };

/* labels: a name for each segment with a "*"; "-" makes it a part of the family's name. One more,
 * "unit": the unit is the app's choice, so it is a label, and values are as they are. name NULL:
 * omitted. The first row that matches counts. */
static const struct family {
	const char *path, *name, *labels, *help;
} rows[] = {
	{"temperature/max", "temperature_max", "",
		"Highest temperature of the real thermal zones."},
	{"temperature/*", "temperature", "zone", "Temperature of a thermal zone or sensor."},
	{"temperature_peak/*", "temperature_peak", "zone", "Highest temperature since the start."},
	{"headroom/*", "temperature_headroom", "zone", "Distance to the first passive trip point."},
	{"cooling/*", "cooling_state", "device", "State of a cooling device; 0 is off."},
	{"fan/*", "fan", "fan", "Speed of a fan."},
	{"fan_duty/*", "fan_duty", "fan", "Duty cycle of a fan."},
	{"throttle/*_rate", "throttle_events", "counter", "Throttle events of the hardware."},
	{"throttle/core_events", "throttle_core_events_total", "", "Thermal events of cores."},
	{"throttle/package_events", "throttle_package_events_total", "",
		"Thermal events of processor packages."},
	{"throttle/*", "throttle", "flag",
		"1 while the hardware throttles for this reason; _occurred: since boot."},
	{"power/total", "power_board", "", "Power of the device."},
	{"power/*", "power", "rail", "Power of a rail."},
	{"power_average/*", "power_average", "rail", "Mean power of a rail since the start."},
	{"power_peak/*", "power_peak", "rail", "Highest power of a rail since the start."},
	{"power_limit/*", "power_limit", "supply", "Power that a supply offers."},
	{"budget/power", "power_budget", "", "Power relative to what the power mode allows."},
	{"energy/total", "energy_total", "", "Energy since the daemon's start."},
	{"energy/gap_time", "energy_gap_total", "", "Time without a reading of power."},
	{"cpu/utilization", "cpu_utilization", "", "Time that the processors were busy."},
	{"cpu/iowait", "cpu_iowait", "", "Time that idle processors waited for disks."},
	{"cpu/steal", "cpu_steal", "", "Time that the host gave to other virtual machines."},
	{"cpu/load1", "load1", "", "Load average of 1 minute."},
	{"cpu/load5", "load5", "", "Load average of 5 minutes."},
	{"cpu/load15", "load15", "", "Load average of 15 minutes."},
	{"cpu/*/utilization", "cpu_core_utilization", "cpu", "Time that a processor was busy."},
	{"cpu/*/frequency", "cpu_frequency", "cpu", "Clock of a processor."},
	{"memory/used_percent", "memory_used", "", "Used share of the memory."},
	{"memory/*", "memory", "-", "Memory of the machine."},
	{"swap/*", "swap", "-", "Swap of the machine."},
	{"memory_split/*", "memory_split", "owner", "Memory that the firmware assigned."},
	{"pressure/*/*", "pressure", "resource,kind",
		"Time that some or all tasks waited for the resource, mean of 10 s."},
	{"gpu/*", "gpu", "-", "The GPU."},
	{"emc/*", "emc", "-", "The memory controller."},
	{"engine/*/utilization", "engine_utilization", "engine", "Load of an engine or NPU."},
	{"clock/*", "clock", "clock", "Measured clock."},
	{"voltage/*", "voltage", "rail", "Voltage of a rail."},
	{"tegra/*", "tegra", "-", "A value of tegrastats."},
	{"process/*/count", "process_instances", "process", "Processes that match."},
	{"process/*/rss", "process_resident_memory", "process", "Resident memory."},
	{"process/*/pss", "process_proportional_memory", "process",
		"Memory, where pages shared by n processes count 1/n."},
	{"process/*/vms", "process_virtual_memory", "process", "Address space."},
	{"process/*/peak_rss", "process_peak_resident_memory", "process",
		"Highest resident memory."},
	{"process/*/mem_percent", "process_memory", "process", "Share of the machine's memory."},
	{"process/*/over_limit", "process_over_memory_limit", "process",
		"Processes over their memory_limit."},
	{"process/*/cpu", "process_cpu", "process", "Processors in use; 1 is one core."},
	{"process/*/user", "process_cpu_user", "process", "Processors in use, user mode."},
	{"process/*/system", "process_cpu_system", "process", "Processors in use, kernel mode."},
	{"process/*/fds", "process_open_fds", "process", "Open file descriptors."},
	{"process/*/ipc", "process_instructions_per_cycle", "process", "Instructions per cycle."},
	{"process/*/run_delay", "process_run_delay", "process",
		"Time that its threads waited for a processor."},
	{"process/*/iodelay", "process_io_delay", "process",
		"Time that its main thread waited for disks."},
	{"process/*/*", "process", "process,-", "A value of a watched process."},
	{"stage/*/*/growth_over_limit", "stage_memory_growth_over_limit", "app,stage",
		"Memory growth of an execution over rss_growth_limit."},
	{"stage/*/*/*", NULL, "", ""},
	{"frame/*/target_percent", "frame_target", "app", "Frame rate relative to target_fps."},
	{"frame/*/*", NULL, "", ""},
	{"gauge/*/*", "app_value", "app,name,unit", "A value that the app reports."},
	{"counter/*/*", "app_count_total", "app,name,unit", "A counter of the app."},
	{"app/*/hung", "app_hung", "app", "1 while a stage of the app hangs."},
	{"app/*/processes", "app_processes", "app", "Attached processes of the app."},
	{"app/*/died", "app_died", "app", "1 after its run died and none was started."},
	{"collector/*/duration_us", "source_read", "source", "Time of a reading of the source."},
	{"collector/*/errors", "source_errors_total", "source", "Failed readings of the source."},
	{"collector/*/age_s", "source_age", "source", "Time since the last reading."},
	{"collector/*/stale", "source_stale", "source", "1 while a source delivers no readings."},
	{"collector/*/*", "source_total", "source,-", "Output of a program that was skipped."},
	{"self/*_rate", "self", "-", "The daemon itself."},
	{"self/events_*", "self_total", "-", "Events from apps."},
	{"self/*_refused", "self_total", "-", "What was refused: a limit was reached."},
	{"self/attaches", "self_attaches_total", "", "Processes that attached."},
	{"self/drains", "self_drains_total", "", "Times that the rings of apps were read."},
	{"self/api_calls", "self_api_calls_total", "", "Calls of the local API."},
	{"self/api_errors", "self_api_errors_total", "", "Calls that were answered with an error."},
	{"self/history_written_bytes", "self_history_written_total", "",
		"Bytes written for history across reboots."},
	{"self/history_evicted_blocks", "self_history_evicted_blocks_total", "",
		"Blocks of history that made room."},
	{"self/*", "self", "-", "The daemon itself."},
};

static const struct unit {
	const char *name, *suffix;
	double divisor;
} units[] = {
	{"celsius", "_celsius", 1},
	{"percent", "_ratio", 100},
	{"hertz", "_hertz", 1},
	{"bytes", "_bytes", 1},
	{"milliwatts", "_watts", 1000},
	{"millijoules", "_joules", 1000},
	{"volts", "_volts", 1},
	{"rpm", "_rpm", 1},
	{"per_second", "_per_second", 1},
	{"fps", "_per_second", 1},
	{"milliseconds", "_seconds", 1000},
	{"microseconds", "_seconds", 1e6},
	{"seconds", "_seconds", 1},
};

/* Each segment that the row's path has a "*" for becomes a label, or a part of the name. */
static void add_segments(
	const struct family *family, char *path, struct text *name, struct text *labels)
{
	char words[64], *rest = words;
	const char *pattern = family->path;
	snprintf(words, sizeof(words), "%s", family->labels);
	for (char *segment; (segment = strsep(&path, "/")); pattern += strcspn(pattern, "/") + 1) {
		if (!memchr(pattern, '*', strcspn(pattern, "/"))) {
			continue;
		}
		const char *label = strsep(&rest, ",");
		if (label[0] == '-') {
			text_join(name, "_", "%s", segment);
		} else {
			metrics_label(labels, label, segment);
		}
	}
}

static void add(cJSON *out, const struct family *family, char *path, const cJSON *metric)
{
	char name_bytes[NAME_SIZE], label_bytes[LABELS_SIZE];
	struct text name = TEXT_IN(name_bytes), labels = TEXT_IN(label_bytes);
	const char *word = json_word(metric, "unit");
	struct unit unit = {word, "", 1};
	bool raw = text_ends_with(family->labels, ",unit");
	const char *total = text_ends_with(family->name, "_total") ? "_total" : "";
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && !raw; i++) {
		unit = strcmp(units[i].name, word) == 0 ? units[i] : unit;
	}
	text_add(&name, "%.*s", (int)(strlen(family->name) - strlen(total)), family->name);
	if (family->name[0] == '\0') { /* unknown */
		text_add(&name, "%s", strsep(&path, "/"));
		metrics_label(&labels, "name", path ? path : "");
	} else {
		add_segments(family, path, &name, &labels);
	}
	if (raw && word[0] != '\0' && strcmp(word, "count") != 0) {
		metrics_label(&labels, "unit", word);
	}
	text_add(&name, "%s%s", unit.suffix, total);
	metrics_add(out, name.data, family->help, &labels, NULL,
		json_number(metric, "value") / unit.divisor);
	text_add(&name, "_max"); /* of cooling devices */
	metrics_add(
		out, name.data, "Its highest value.", &labels, NULL, json_number(metric, "max"));
}

void metrics_add_metric(cJSON *out, const cJSON *metric)
{
	static const struct family unknown = {"*", "", "", "A metric of edgeprof-metrics(7)."};
	const struct family *family = &unknown;
	char path[NAME_SIZE];
	snprintf(path, sizeof(path), "%s", json_word(metric, "name"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && family == &unknown; i++) {
		family = fnmatch(rows[i].path, path, FNM_PATHNAME) == 0 ? &rows[i] : family;
	}
	if (family->name && strcmp(json_word(metric, "state"), "ok") == 0) {
		add(out, family, path, metric);
	}
}
