/* ps: the processes that the daemon watches, and the wish to watch more. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "proto/name.h"

static void show_processes(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"PID", true, false},
		{"NAME", false, true},
		{"COMM", false, true},
		{"UID", true, false},
		{"STATE", false, false},
		{"CPU %", true, false},
		{"USER %", true, false},
		{"SYS %", true, false},
		{"MEM %", true, false},
		{"RSS", true, false},
		{"PEAK", true, false},
		{"VSZ", true, false},
		{"THREADS", true, false},
		{"", false, false},
	};
	static const char *const shares[] = {"cpu_percent", "user_percent", "system_percent"};
	static const char *const sizes[] = {"rss_bytes", "peak_rss_bytes", "vms_bytes"};
	double total = json_number(reply, "memory_total_bytes");
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *row = json_first(reply, "processes"); row != NULL; row = row->next) {
		table_add_number(&table, json_number(row, "pid"), 0);
		table_add(&table, TONE_NONE, "%s", json_word(row, "name"));
		table_add(&table, TONE_NONE, "%s", json_word(row, "comm"));
		table_add_number(&table, json_number(row, "uid"), 0);
		table_add(&table, TONE_NONE, "%s", json_word(row, "state"));
		for (size_t i = 0; i < 3; i++) {
			table_add_number(&table, json_number(row, shares[i]), 1);
		}
		table_add_number(&table, 100 * json_number(row, "rss_bytes") / total, 1);
		for (size_t i = 0; i < 3; i++) {
			table_add(&table, TONE_NONE, "%s",
				format_bytes(json_number(row, sizes[i])).text);
		}
		table_add_number(&table, json_number(row, "threads"), 0);
		table_add(&table, TONE_WARN, "%s",
			json_true(row, "threshold_exceeded") ? "over its memory limit" : "");
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static void add_bytes(struct table *table, const cJSON *row, const char *name)
{
	table_add(table, TONE_NONE, "%s", format_bytes(json_number(row, name)).text);
}

/* " (10 s ago)" of a number that is older than its row. */
static struct label older(const cJSON *row, const char *age)
{
	static const double same_ms = 1000;
	struct label label = {""};
	double age_ms = json_number(row, age);
	if (age_ms - json_number(row, "age_ms") >= same_ms) {
		snprintf(label.text, sizeof(label.text), " (%.50s)", format_ago(age_ms).text);
	}
	return label;
}

static void add_policy(struct table *table, const cJSON *row)
{
	const char *policy = json_word(row, "policy");
	double priority = json_number(row, "rt_priority");
	if (priority > 0) {
		table_add(table, TONE_NONE, "%s %.0f", policy, priority);
	} else {
		table_add(table, TONE_NONE, "%s", policy[0] == '\0' ? "-" : policy);
	}
	table_add_number(table, json_number(row, "nice"), 0);
	table_add_number(table, json_number(row, "last_core"), 0);
	table_add(table, TONE_NONE, "%s", json_word(row, "affinity"));
}

static void add_ipc(struct table *table, const cJSON *row)
{
	const char *verdict = json_word(row, "ipc_verdict");
	if (verdict[0] == '\0') {
		table_add(table, TONE_DIM, "-");
	} else {
		table_add(table, TONE_NONE, "%.2f %s", json_number(row, "ipc"), verdict);
	}
}

static void show_scheduling(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"PID", true, false},
		{"NAME", false, true},
		{"POLICY", false, false},
		{"NICE", true, false},
		{"CORE", true, false},
		{"CPUS", false, true},
		{"QUOTA %", true, false},
		{"HELD", true, false},
		{"WAIT %", true, false},
		{"VOL/s", true, false},
		{"INVOL/s", true, false},
		{"READ/s", true, false},
		{"WRITE/s", true, false},
		{"FILES", true, false},
		{"PSS", true, false},
		{"IPC", false, false},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *row = json_first(reply, "processes"); row != NULL; row = row->next) {
		double held = json_number(row, "nr_throttled");
		table_add_number(&table, json_number(row, "pid"), 0);
		table_add(&table, TONE_NONE, "%s", json_word(row, "name"));
		add_policy(&table, row);
		table_add_number(&table, json_number(row, "quota_percent"), 0);
		if (held > 0) {
			table_add(&table, TONE_WARN, "%.0f%s", held,
				older(row, "cgroup_age_ms").text);
		} else {
			table_add_number(&table, held, 0);
		}
		table_add_number(&table, json_number(row, "wait_percent"), 1);
		table_add_number(&table, json_number(row, "voluntary_switches"), 0);
		table_add_number(&table, json_number(row, "involuntary_switches"), 0);
		add_bytes(&table, row, "read_bytes");
		add_bytes(&table, row, "write_bytes");
		table_add_number(&table, json_number(row, "fds"), 0);
		table_add(&table, TONE_NONE, "%s%s",
			format_bytes(json_number(row, "pss_bytes")).text,
			json_get(row, "pss_bytes") != NULL ? older(row, "pss_age_ms").text : "");
		add_ipc(&table, row);
	}
	fputc('\n', ctl->output.stream);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static void show_threads(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"PID", true, false},
		{"THREAD", true, false},
		{"COMM", false, true},
		{"CPU %", true, false},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *row = json_first(reply, "processes"); row != NULL; row = row->next) {
		for (const cJSON *thread = json_first(row, "busiest"); thread != NULL;
			thread = thread->next) {
			table_add_number(&table, json_number(row, "pid"), 0);
			table_add_number(&table, json_number(thread, "tid"), 0);
			table_add(&table, TONE_NONE, "%s", json_word(thread, "comm"));
			table_add_number(&table, json_number(thread, "cpu_percent"), 1);
		}
	}
	fputc('\n', ctl->output.stream);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length > tail && strcmp(text + length - tail, end) == 0;
}

/* The kinds of units that have processes. */
static bool is_unit(const char *text)
{
	static const char *const suffixes[] = {".service", ".scope", ".slice", ".socket", ".mount"};
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (ends_with(text, suffixes[i])) {
			return strchr(text, '/') == NULL;
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

static void say_watched(struct ctl *ctl, const char *name)
{
	double count = matching(ctl, name);
	FILE *out = ctl->output.stream;
	fprintf(out, "Watched: metrics process/%s/*.\n", name);
	if (count == 0) {
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
	size_t digits = strspn(what, "0123456789");
	bool is_pid = digits > 0 && digits < 10 && what[digits] == '\0';
	const char *field = removal ? "name" : is_unit(what) ? "unit" : "pattern";
	cJSON *parameters = ctl_parameters(field, is_pid ? NULL : what);
	if (is_pid) {
		cJSON_AddNumberToObject(parameters, "pid", (double)strtol(what, NULL, 10));
	}
	if (removal) {
		cJSON_AddBoolToObject(parameters, "remove", true);
	} else if (ctl->options.name != NULL) {
		cJSON_AddStringToObject(parameters, "name", ctl->options.name);
	}
	cJSON *reply;
	int status = ctl_call(ctl, "WatchProcess", parameters, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		const char *name = json_word(reply, "name");
		if (removal) {
			fprintf(ctl->output.stream, "No longer watched: %s.\n", what);
		} else {
			say_watched(ctl, name);
		}
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int verb_ps(struct ctl *ctl)
{
	uint64_t given = ctl->options.given;
	if (given & (OPTION_WATCH | OPTION_UNWATCH | OPTION_NAME)) {
		bool removal = given == OPTION_UNWATCH;
		if (!removal && given != OPTION_WATCH && given != (OPTION_WATCH | OPTION_NAME)) {
			return ctl_fail(ctl, CTL_USAGE,
				"usage: edgeprofctl ps --watch PID|PATTERN|UNIT [--name NAME] | "
				"--unwatch PID|PATTERN|UNIT|NAME");
		}
		return change_watch(
			ctl, removal ? ctl->options.unwatch : ctl->options.watch, removal);
	}
	cJSON *reply, *parameters = NULL;
	if (given & OPTION_THREADS) {
		parameters = cJSON_CreateObject();
		cJSON_AddBoolToObject(parameters, "threads", true);
	}
	int status = ctl_call(ctl, "ListProcesses", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_processes(ctl, reply);
		if (json_count(reply, "processes") > 0) {
			show_scheduling(ctl, reply);
		}
		if (given & OPTION_THREADS) {
			show_threads(ctl, reply);
		}
	}
	if (json_count(reply, "processes") == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			"no watched process that you may see runs; watch one: edgeprofctl ps "
			"--watch PATTERN");
	}
	cJSON_Delete(reply);
	return status;
}
