/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c: shows the processes that the daemon watches, and requests to watch more. */
#include "client/edgeprofctl/verb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "proto/name.h"
#include "proto/text.h"

/* Adds to each row its share of the machine's memory, which the reply contains once, and the age of
 * numbers that are older than the row. */
static void complete_rows(const cJSON *reply)
{
	static const struct {
		const char *age, *older;
	} ages[] = {{"cgroup_age_ms", "cgroup_older_ms"}, {"pss_age_ms", "pss_older_ms"}};
	static const double same_ms = 1000;
	double total = json_number(reply, "memory_total_bytes");
	cJSON *rows = cJSON_GetObjectItemCaseSensitive(reply, "processes"), *row;
	cJSON_ArrayForEach(row, rows)
	{
		double share = 100 * json_number(row, "rss_bytes") / total;
		if (!isnan(share)) {
			cJSON_AddNumberToObject(row, "memory_percent", share);
		}
		for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
			double age_ms = json_number(row, ages[i].age);
			if (age_ms - json_number(row, "age_ms") >= same_ms) {
				cJSON_AddNumberToObject(row, ages[i].older, age_ms);
			}
		}
	}
}

static void show_processes(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"PID", FIELD_NUMBER, "{pid:0}"},
		{"NAME", FIELD_LONG, "{name}"},
		{"COMM", FIELD_LONG, "{comm}"},
		{"UID", FIELD_NUMBER, "{uid:0}"},
		{"STATE", FIELD_TEXT, "{state}"},
		{"CPU %", FIELD_NUMBER, "{cpu_percent:1}"},
		{"USER %", FIELD_NUMBER, "{user_percent:1}"},
		{"SYS %", FIELD_NUMBER, "{system_percent:1}"},
		{"MEM %", FIELD_NUMBER, "{memory_percent:1}"},
		{"RSS", FIELD_NUMBER, "{rss_bytes:bytes}"},
		{"PEAK", FIELD_NUMBER, "{peak_rss_bytes:bytes}"},
		{"VSZ", FIELD_NUMBER, "{vms_bytes:bytes}"},
		{"THREADS", FIELD_NUMBER, "{threads:0}"},
		{"", FIELD_TEXT, "{~warn}[{?threshold_exceeded}over its memory limit]"},
	};
	listing_show(ctl, reply, "processes", fields, sizeof(fields) / sizeof(fields[0]));
}

static void show_scheduling(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"PID", FIELD_NUMBER, "{pid:0}"},
		{"NAME", FIELD_LONG, "{name}"},
		{"POLICY", FIELD_TEXT, "[{policy}|-][{?rt_priority} {rt_priority:0}]"},
		{"NICE", FIELD_NUMBER, "{nice:0}"},
		{"CORE", FIELD_NUMBER, "{last_core:0}"},
		{"CPUS", FIELD_LONG, "{affinity}"},
		{"QUOTA %", FIELD_NUMBER, "{quota_percent:0}"},
		{"HELD", FIELD_NUMBER,
			"[{?nr_throttled}{~warn}{nr_throttled:0}[ ({cgroup_older_ms:ago})]|"
			"{nr_throttled:0}|-]"},
		{"WAIT %", FIELD_NUMBER, "{wait_percent:1}"},
		{"VOL/s", FIELD_NUMBER, "{voluntary_switches:0}"},
		{"INVOL/s", FIELD_NUMBER, "{involuntary_switches:0}"},
		{"READ/s", FIELD_NUMBER, "{read_bytes:bytes}"},
		{"WRITE/s", FIELD_NUMBER, "{write_bytes:bytes}"},
		{"FILES", FIELD_NUMBER, "{fds:0}"},
		{"PSS", FIELD_NUMBER,
			"{~none}{pss_bytes:bytes}[{pss_bytes:is} ({pss_older_ms:ago})]"},
		{"IPC", FIELD_TEXT, "[{?ipc_verdict}{ipc:2} {ipc_verdict}|-]"},
	};
	fputc('\n', ctl->output.stream);
	listing_show(ctl, reply, "processes", fields, sizeof(fields) / sizeof(fields[0]));
}

static void show_threads(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"PID", FIELD_NUMBER, "{process:0}"},
		{"THREAD", FIELD_NUMBER, "{tid:0}"},
		{"COMM", FIELD_LONG, "{comm}"},
		{"CPU %", FIELD_NUMBER, "{cpu_percent:1}"},
	};
	struct listing listing;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	for (const cJSON *row = json_first(reply, "processes"); row; row = row->next) {
		cJSON *thread = NULL;
		cJSON_ArrayForEach(thread, cJSON_GetObjectItemCaseSensitive(row, "busiest"))
		{
			cJSON_AddNumberToObject(thread, "process", json_number(row, "pid"));
			listing_add(&listing, thread);
		}
	}
	fputc('\n', ctl->output.stream);
	listing_end(&listing);
}

static void show_tables(struct ctl *ctl, const cJSON *reply)
{
	complete_rows(reply);
	show_processes(ctl, reply);
	if (json_count(reply, "processes") > 0) {
		show_scheduling(ctl, reply);
	}
	if (ctl->options.threads) {
		show_threads(ctl, reply);
	}
}

/* The kinds of units that have processes. */
static bool is_unit(const char *text)
{
	static const char *const suffixes[] = {".service", ".scope", ".slice", ".socket", ".mount"};
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (text_ends_with(text, suffixes[i]) && text[0] != '.') {
			return !strchr(text, '/');
		}
	}
	return false;
}

/* Waits for the next look at /proc: how many processes match. NAN: it did not come. */
static double matching(struct ctl *ctl, const char *name)
{
	static const struct timespec pause = {.tv_nsec = 250 * 1000 * 1000};
	char metric[PROTO_PATH_SIZE];
	double count = NAN;
	snprintf(metric, sizeof(metric), "process/%s/count", name);
	ctl->quiet = true; /* the metric comes with the first look */
	for (int i = 0; i < 16 && isnan(count); i++) {
		cJSON *reply;
		nanosleep(&pause, NULL);
		if (ctl_call(ctl, "ListMetrics", ctl_parameters("glob", metric), false, &reply) ==
			CTL_FINE) {
			count = json_number(json_first(reply, "metrics"), "value");
			cJSON_Delete(reply);
		}
	}
	ctl->quiet = false;
	return count;
}

static bool is_pid(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	return digits > 0 && digits < 10 && text[digits] == '\0';
}

static void show_watched(struct ctl *ctl, const cJSON *reply)
{
	const char *name = json_word(reply, "name");
	FILE *out = ctl->output.stream;
	if (ctl->options.unwatch) {
		fprintf(out, "No longer watched: %s.\n", ctl->options.unwatch);
		return;
	}
	double count = matching(ctl, name);
	fprintf(out, "Watched: metrics process/%s/*.\n", name);
	if (count == 0 && is_pid(ctl->options.watch)) {
		fputs("No process has this id now.\n", out);
	} else if (count == 0) {
		fputs("No process matches yet; those that start from now on are found. The pattern "
		      "is a "
		      "glob on the\ncommand name, the program, or the complete command line: "
		      "'*sample_img*'.\n",
			out);
	} else if (!isnan(count)) {
		fprintf(out, "%.0f %s now.\n", count,
			count == 1 ? "process matches" : "processes match");
	}
}

static int change_watch(struct ctl *ctl, const char *what, bool removal)
{
	const char *field = removal ? "name" : is_unit(what) ? "unit" : "pattern";
	cJSON *parameters = ctl_parameters(field, is_pid(what) ? NULL : what);
	if (is_pid(what)) {
		cJSON_AddNumberToObject(parameters, "pid", (double)strtol(what, NULL, 10));
	}
	ctl_add_flag(parameters, "remove", removal);
	ctl_add_text(parameters, "name", ctl->options.name); /* not with --unwatch */
	return ctl_show(ctl, "WatchProcess", parameters, false, show_watched);
}

static int run(struct ctl *ctl)
{
	if (ctl->options.watch || ctl->options.unwatch || ctl->options.name) {
		bool removal = ctl->options.unwatch;
		if (ctl->options.threads ||
			(removal && (ctl->options.watch || ctl->options.name)) ||
			(!removal && !ctl->options.watch)) {
			return ctl_fail(ctl, CTL_USAGE,
				"usage: edgeprofctl ps --watch PID|PATTERN|UNIT [--name NAME] | "
				"--unwatch PID|PATTERN|UNIT|NAME");
		}
		if (ctl->options.name && !proto_name_valid(ctl->options.name)) {
			return ctl_fail(ctl, CTL_USAGE,
				"invalid name '%s'; use up to 48 characters of A-Z a-z 0-9 _ . -",
				ctl->options.name);
		}
		return change_watch(
			ctl, removal ? ctl->options.unwatch : ctl->options.watch, removal);
	}
	return ctl_list(ctl, "ListProcesses", ctl_add_flag(NULL, "threads", ctl->options.threads),
		"processes", show_tables,
		"no watched process is running that you may see; watch one with "
		"'edgeprofctl ps --watch PATTERN'");
}

static const struct option_spec options[] = {
	{"watch", 0, "PID|PATTERN|UNIT",
		"watch a process, matching command lines, or a systemd unit", option_nonempty,
		offsetof(struct options, watch)},
	{"unwatch", 0, "PID|PATTERN|UNIT|NAME", "end a watch that --watch began", option_nonempty,
		offsetof(struct options, unwatch)},
	{"name", 0, "NAME", "with --watch: name the metrics process/NAME/...", option_nonempty,
		offsetof(struct options, name)},
	{"threads", 0, NULL, "show the five busiest threads of each process", option_flag,
		offsetof(struct options, threads)},
	{.name = NULL},
};

const struct verb verb_ps = {"ps", "", "Show watched processes; add or remove watches.",
	"ps --watch '*sample_img*' --name sample", options, run};
