/* SPDX-License-Identifier: Apache-2.0 */
/* exec_show.c: makes the result of exec, as JSON and as a table of a few lines. */
#include "client/edgeprofctl/exec/exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "proto/text.h"

static const double block_bytes = 512; /* of ru_inblock and ru_oublock, getrusage(2) */

/* The CPUs as the kernel lists them, "0-3,6". */
static void add_affinity(cJSON *object, pid_t pid)
{
	char path[64], line[1024], list[512];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Cpus_allowed_list: %511s", list) == 1) {
			cJSON_AddStringToObject(object, "affinity", list);
			break;
		}
	}
	if (file) {
		fclose(file);
	}
}

cJSON *exec_controls_json(const struct ctl *ctl, pid_t pid)
{
	static const struct {
		int policy;
		const char *name;
	} policies[] = {{SCHED_OTHER, "SCHED_OTHER"}, {SCHED_FIFO, "SCHED_FIFO"},
		{SCHED_RR, "SCHED_RR"}, {SCHED_BATCH, "SCHED_BATCH"}, {SCHED_IDLE, "SCHED_IDLE"}};
	cJSON *object = cJSON_CreateObject();
	struct sched_param parameters = {0};
	int policy = sched_getscheduler(pid);
	sched_getparam(pid, &parameters);
	add_affinity(object, pid);
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (policies[i].policy == policy) {
			cJSON_AddStringToObject(object, "policy", policies[i].name);
		}
	}
	json_add_number(object, "rt_priority",
		parameters.sched_priority > 0 ? parameters.sched_priority : NAN);
	json_add_number(object, "nice", getpriority(PRIO_PROCESS, (id_t)pid));
	double quota_percent = ctl->options.exec.quota_percent;
	json_add_number(object, "quota_percent", quota_percent > 0 ? quota_percent : NAN);
	return object;
}

/* What limits the threads of numeric libraries, as the command sees it. */
static void add_environment(cJSON *result, const struct option_list *env)
{
	cJSON *object = cJSON_AddObjectToObject(result, "environment");
	for (char **at = environ; *at; at++) {
		size_t length = strcspn(*at, "=");
		char *name = strndup(*at, length);
		if (name && text_ends_with(name, "_NUM_THREADS") && (*at)[length] == '=') {
			cJSON_AddStringToObject(object, name, *at + length + 1);
		}
		free(name);
	}
	for (size_t i = 0; i < env->count; i++) {
		const char *value = strchr(env->items[i], '=') + 1;
		char *name = strndup(env->items[i], (size_t)(value - env->items[i]) - 1);
		if (name) {
			cJSON_DeleteItemFromObjectCaseSensitive(object, name);
			cJSON_AddStringToObject(object, name, value);
		}
		free(name);
	}
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void add_end(cJSON *object, const struct exec_result *result)
{
	int number = WIFSIGNALED(result->status) ? WTERMSIG(result->status) : 0;
	json_add_number(object, "exit_status",
		WIFEXITED(result->status) ? WEXITSTATUS(result->status) : NAN);
	json_add_number(object, "signal", number > 0 ? number : NAN);
	if (number > 0) {
		cJSON_AddStringToObject(object, "signal_name", strsignal(number));
		cJSON_AddBoolToObject(object, "core_dumped", WCOREDUMP(result->status));
	}
	cJSON_AddBoolToObject(object, "limit_reached", result->limit_reached);
}

static void add_times(cJSON *object, const struct exec_result *result)
{
	double user_s = seconds_of(result->rusage.ru_utime);
	double system_s = seconds_of(result->rusage.ru_stime), percent = 100 / result->wall_s;
	json_add_number(object, "wall_s", result->wall_s);
	json_add_number(object, "user_s", user_s);
	json_add_number(object, "system_s", system_s);
	json_add_number(object, "cpu_percent", percent * (user_s + system_s));
	json_add_number(object, "user_percent", percent * user_s);
	json_add_number(object, "system_percent", percent * system_s);
}

static void add_waits(
	cJSON *object, const struct exec_result *result, const struct exec_usage *usage)
{
	double delay_ms = usage->run_delay ? (double)exec_usage_run_delay_ns(usage) / 1e6 : NAN;
	double ticks = usage->iodelay ? (double)exec_usage_iodelay_ticks(usage) : NAN;
	json_add_number(object, "run_delay_ms", delay_ms);
	json_add_number(object, "wait_percent", delay_ms / 10 / result->wall_s);
	json_add_number(object, "iodelay_ms", ticks * 1000 / (double)sysconf(_SC_CLK_TCK));
	if (!usage->run_delay) {
		cJSON_AddStringToObject(object, "wait_reason", "this kernel has no schedstat");
	}
	if (!usage->iodelay) {
		cJSON_AddStringToObject(object, "iodelay_reason", "kernel.task_delayacct is 0");
	}
	json_add_number(object, "threads_peak", (double)usage->threads_peak);
}

/* A program inherits, as its maximum, what the forked process had before exec(2), at most as much
 * as this one: a maximum that is not larger may not be the program's, and the kernel's peaks of its
 * processes count, as they were sampled. */
static void add_memory(
	cJSON *object, const struct exec_result *result, const struct exec_usage *usage)
{
	double peak_bytes = (double)result->rusage.ru_maxrss * 1024;
	if (peak_bytes <= (double)result->own_rss_bytes) {
		peak_bytes = usage->peak_rss_bytes > 0 ? (double)usage->peak_rss_bytes : NAN;
	}
	json_add_number(object, "max_rss_bytes", peak_bytes);
	if (isnan(peak_bytes)) {
		cJSON_AddStringToObject(object, "max_rss_reason",
			"smaller than edgeprofctl, and too short to be sampled");
	}
}

cJSON *exec_result_json(
	const struct ctl *ctl, const struct exec_result *result, const struct exec_usage *usage)
{
	const struct rusage *rusage = &result->rusage;
	cJSON *object = cJSON_CreateObject();
	cJSON_AddItemToObject(object, "command",
		cJSON_CreateStringArray((const char *const *)ctl->words, ctl->word_count));
	json_add_number(object, "start_us", (double)result->start_us);
	add_end(object, result);
	add_times(object, result);
	add_waits(object, result, usage);
	add_memory(object, result, usage);
	json_add_number(object, "minor_faults", (double)rusage->ru_minflt);
	json_add_number(object, "major_faults", (double)rusage->ru_majflt);
	json_add_number(object, "voluntary_switches", (double)rusage->ru_nvcsw);
	json_add_number(object, "involuntary_switches", (double)rusage->ru_nivcsw);
	json_add_number(object, "file_system_inputs", (double)rusage->ru_inblock);
	json_add_number(object, "file_system_outputs", (double)rusage->ru_oublock);
	json_add_number(object, "read_bytes", (double)rusage->ru_inblock * block_bytes);
	json_add_number(object, "write_bytes", (double)rusage->ru_oublock * block_bytes);
	add_environment(object, &ctl->options.exec.env);
	if (result->perf_data) {
		cJSON_AddStringToObject(object, "perf_data", result->perf_data);
	}
	return object;
}

void exec_show(struct ctl *ctl, const cJSON *result)
{
	static const struct line lines[] = {
		{"Command", "{*command, }{}{/}"},
		{"Ended", "[{signal:is}{~bad}killed by signal {signal:0} ({signal_name})|"
			  "[{?exit_status}{~warn}]exit status {exit_status:0}]"
			  "[{?limit_reached} after its time limit]"},
		{"Time", "{wall_s:3} s elapsed, {user_s:3} s user, {system_s:3} s system"},
		{"CPU", "{cpu_percent:1} %[, waited {wait_percent:1} % for a CPU]"
			"[, {iodelay_ms:ms} for I/O]"},
		{"Memory",
			"[{max_rss_bytes:is}{max_rss_bytes:bytes} at most|- ({max_rss_reason})]"},
		{"Page faults", "{minor_faults:count} minor, {major_faults:count} major"},
		{"Switches", "{voluntary_switches:count} voluntary, "
			     "{involuntary_switches:count} involuntary"},
		{"File system", "{read_bytes:bytes} read, {write_bytes:bytes} written"},
		{"Threads", "{threads_peak:count} at most"},
		{"Counters", "[{cycles:is}{cycles:count} cycles, {instructions:count} "
			     "instructions[{ipc:is}, IPC {ipc:2}]]"},
		{"", "[{cache_misses:is}{cache_misses:count} cache misses, "
		     "{branch_misses:count} branch misses]"},
		{"Counters", "[{counters_reason:is}{~dim}- ({counters_reason})]"},
		{"Scheduling", "[{controls.policy}][ {controls.rt_priority:0}]"
			       "[, nice {controls.nice:0}][, CPUs {controls.affinity}]"},
		{"Quota", "[{controls.quota_percent:0} % of a CPU][{controls.nr_throttled:is}, "
			  "throttled {controls.nr_throttled:count} times]"},
		{"Call stacks", "[{perf_data}]"},
	};
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, true}};
	struct table table;
	table_init(&table, columns, 2);
	listing_lines(ctl, &table, result, lines, sizeof(lines) / sizeof(lines[0]));
	ctl_table(ctl, &table);
}
