/* SPDX-License-Identifier: Apache-2.0 */
/* exec_counters.c: counts what a command does in user mode with perf_event_open(2), from its exec
 * on and with all of its children: the set of perf stat that perf_event_paranoid = 2 permits. */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"

static const struct {
	const char *name;
	uint64_t config;
} events[EXEC_COUNTERS] = {
	{"cycles", PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"cache_misses", PERF_COUNT_HW_CACHE_MISSES},
	{"branch_misses", PERF_COUNT_HW_BRANCH_MISSES},
};

static const char *reason_of(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return "kernel.perf_event_paranoid or a seccomp filter forbids it";
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "no PMU in this machine";
	case ENOSYS:
		return "no perf events in this kernel";
	default:
		return "perf_event_open failed";
	}
}

void exec_counters_open(struct exec_counters *counters, pid_t pid)
{
	counters->reason = NULL;
	for (size_t i = 0; i < EXEC_COUNTERS; i++) {
		struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
			.size = sizeof(attr),
			.config = events[i].config,
			.read_format =
				PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
			.disabled = 1,
			.enable_on_exec = 1,
			.inherit = 1,
			.exclude_kernel = 1,
			.exclude_hv = 1};
		counters->fd[i] =
			(int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (counters->fd[i] < 0) {
			counters->reason = reason_of(errno);
		}
	}
}

/* Where events share a register, each counts for a part of the time: scaled, as perf stat does. */
static double read_counter(int fd)
{
	uint64_t values[3]; /* the count, ns enabled, ns running */
	bool good = fd >= 0 && read(fd, values, sizeof(values)) == sizeof(values) && values[2] > 0;
	return good ? floor((double)values[0] * (double)values[1] / (double)values[2]) : NAN;
}

void exec_counters_add(struct exec_counters *counters, cJSON *object)
{
	double values[EXEC_COUNTERS];
	for (size_t i = 0; i < EXEC_COUNTERS; i++) {
		values[i] = read_counter(counters->fd[i]);
		if (isnan(values[i]) && !counters->reason) {
			counters->reason = "other programs use the counters";
		}
		if (counters->fd[i] >= 0) {
			close(counters->fd[i]);
		}
		json_add_number(object, events[i].name, values[i]);
	}
	json_add_number(object, "ipc", values[0] > 0 ? values[1] / values[0] : NAN);
	if (counters->reason) {
		cJSON_AddStringToObject(object, "counters_reason", counters->reason);
	}
}
