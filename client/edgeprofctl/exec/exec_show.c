/* SPDX-License-Identifier: Apache-2.0 */
/* exec_show.c: makes the result of exec, as JSON and as a table of a few lines. */
#include "client/edgeprofctl/exec/exec.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

static const double block_bytes = 512; /* of ru_inblock and ru_oublock, getrusage(2) */

cJSON *exec_controls_json(const struct ctl *ctl, pid_t pid)
{
	static const char *const policies[] = {[SCHED_OTHER] = "SCHED_OTHER",
		[SCHED_FIFO] = "SCHED_FIFO",
		[SCHED_RR] = "SCHED_RR",
		[SCHED_BATCH] = "SCHED_BATCH",
		[SCHED_IDLE] = "SCHED_IDLE"};
	static const char list_name[] = "Cpus_allowed_list:\t";
	cJSON *object = cJSON_CreateObject();
	struct sched_param parameters = {0};
	double quota_percent = ctl->options.exec.quota_percent;
	char text[4096];
	exec_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	char *list = strstr(text, list_name);
	if (list) {
		list += strlen(list_name);
		list[strcspn(list, "\n")] = '\0';
		cJSON_AddStringToObject(object, "affinity", list);
	}
	int policy = sched_getscheduler(pid);
	sched_getparam(pid, &parameters);
	if (policy >= 0 && policy <= SCHED_IDLE && policies[policy]) {
		cJSON_AddStringToObject(object, "policy", policies[policy]);
	}
	json_add_number(object, "rt_priority",
		parameters.sched_priority > 0 ? parameters.sched_priority : NAN);
	json_add_number(object, "nice", getpriority(PRIO_PROCESS, (id_t)pid));
	json_add_number(object, "quota_percent", quota_percent > 0 ? quota_percent : NAN);
	return object;
}

/* Adds "NAME=VALUE" if the name matches. */
static void add_variable(cJSON *object, const char *text, const char *glob)
{
	char name[256];
	const char *value = strchr(text, '=');
	snprintf(name, sizeof(name), "%.*s", value ? (int)(value - text) : 0, text);
	if (value && fnmatch(glob, name, 0) == 0) {
		cJSON_DeleteItemFromObjectCaseSensitive(object, name);
		cJSON_AddStringToObject(object, name, value + 1);
	}
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* A program inherits, as its maximum, what the forked process had before exec(2), at most as much
 * as this one: a maximum that is not larger may not be the program's, and the kernel's peaks of its
 * processes count, as they were sampled. */
static double peak_rss(const struct exec_result *result)
{
	const struct exec_usage *usage = &result->usage;
	double peak_bytes = (double)result->rusage.ru_maxrss * 1024;
	double sampled_bytes = usage->peak_rss_bytes > 0 ? (double)usage->peak_rss_bytes : NAN;
	return peak_bytes > (double)result->own_rss_bytes ? peak_bytes : sampled_bytes;
}

static void add_numbers(cJSON *object, const struct exec_result *result)
{
	const struct exec_usage *usage = &result->usage;
	const struct rusage *rusage = &result->rusage;
	double wall_s = result->wall_s, user_s = seconds_of(rusage->ru_utime);
	double system_s = seconds_of(rusage->ru_stime);
	double delay_ms = usage->run_delay ? (double)usage->run_delay_ns / 1e6 : NAN;
	double ticks = usage->iodelay ? (double)usage->iodelay_ticks : NAN;
	int status = result->status;
	const struct {
		const char *name;
		double value;
	} numbers[] = {
		{"start_us", (double)result->start_us},
		{"exit_status", WIFEXITED(status) ? WEXITSTATUS(status) : NAN},
		{"signal", WIFSIGNALED(status) ? WTERMSIG(status) : NAN},
		{"wall_s", wall_s},
		{"user_s", user_s},
		{"system_s", system_s},
		{"cpu_percent", 100 * (user_s + system_s) / wall_s},
		{"user_percent", 100 * user_s / wall_s},
		{"system_percent", 100 * system_s / wall_s},
		{"run_delay_ms", delay_ms},
		{"wait_percent", delay_ms / 10 / wall_s},
		{"iodelay_ms", ticks * 1000 / (double)sysconf(_SC_CLK_TCK)},
		{"threads_peak", (double)usage->threads_peak},
		{"max_rss_bytes", peak_rss(result)},
		{"minor_faults", (double)rusage->ru_minflt},
		{"major_faults", (double)rusage->ru_majflt},
		{"voluntary_switches", (double)rusage->ru_nvcsw},
		{"involuntary_switches", (double)rusage->ru_nivcsw},
		{"file_system_inputs", (double)rusage->ru_inblock},
		{"file_system_outputs", (double)rusage->ru_oublock},
		{"read_bytes", (double)rusage->ru_inblock * block_bytes},
		{"write_bytes", (double)rusage->ru_oublock * block_bytes},
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		json_add_number(object, numbers[i].name, numbers[i].value);
	}
}

cJSON *exec_result_json(const struct ctl *ctl, struct exec_result *result)
{
	const struct exec_usage *usage = &result->usage;
	cJSON *object = cJSON_CreateObject();
	const struct option_list *env = &ctl->options.exec.env;
	cJSON_AddItemToObject(object, "command",
		cJSON_CreateStringArray((const char *const *)ctl->words, ctl->word_count));
	add_numbers(object, result);
	exec_counters_add(&result->usage, object);
	cJSON_AddBoolToObject(object, "limit_reached", result->limit_reached);
	if (WIFSIGNALED(result->status)) {
		ctl_add_text(object, "signal_name", strsignal(WTERMSIG(result->status)));
		cJSON_AddBoolToObject(object, "core_dumped", WCOREDUMP(result->status));
	}
	ctl_add_text(
		object, "wait_reason", usage->run_delay ? NULL : "this kernel has no schedstat");
	ctl_add_text(
		object, "iodelay_reason", usage->iodelay ? NULL : "kernel.task_delayacct is 0");
	ctl_add_text(object, "max_rss_reason",
		isnan(peak_rss(result)) ? "smaller than edgeprofctl, and too short to be sampled"
					: NULL);
	ctl_add_text(object, "perf_data", result->perf_data);
	cJSON *environment = cJSON_AddObjectToObject(object, "environment");
	/* what limits the threads of numeric libraries, as the command sees it */
	for (char **at = environ; *at; at++) {
		add_variable(environment, *at, "*_NUM_THREADS");
	}
	for (size_t i = 0; i < env->count; i++) {
		add_variable(environment, env->items[i], "*");
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
	listing_facts(ctl, result, lines, sizeof(lines) / sizeof(lines[0]));
}
