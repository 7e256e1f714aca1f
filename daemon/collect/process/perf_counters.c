/* SPDX-License-Identifier: Apache-2.0 */
/* perf_counters.c: opens and reads perf_event_open(2) counters. Cycles, instructions and cache
 * misses are those of user mode, which perf_event_paranoid = 2 still allows for processes of the
 * same user; migrations and switches happen in the kernel and need 1 or CAP_PERFMON. */
#include "daemon/collect/process/perf_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	uint32_t type;
	uint64_t config;
	bool hardware;
} events[PROCESS_COUNTERS] = {
	[PROCESS_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true},
	[PROCESS_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true},
	[PROCESS_CACHE_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, true},
	[PROCESS_MIGRATIONS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false},
	[PROCESS_CONTEXT_SWITCHES] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false},
};

static const char no_pmu[] = "no PMU in this machine";

static int open_event(struct perf_event_attr *attr, pid_t tid)
{
	long fd = syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_counters_first(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1};
	return open_event(&attr, 0);
}

/* Texts of metrics must be static: one a level. */
static const char *paranoid_reason(const struct root *root)
{
	static const char *const levels[] = {
		"perf_event_paranoid is -1: needs the process's user or CAP_PERFMON",
		"perf_event_paranoid is 0: needs the process's user or CAP_PERFMON",
		"perf_event_paranoid is 1: needs the process's user or CAP_PERFMON",
		"perf_event_paranoid is 2: needs CAP_PERFMON",
		"perf_event_paranoid is 3: needs CAP_PERFMON",
		"perf_event_paranoid is 4: needs CAP_PERFMON",
	};
	long long level;
	int fd = root_open(root, "proc/sys/kernel/perf_event_paranoid", 0);
	if (fd < 0) {
		return "no perf events in this kernel";
	}
	int r = file_read_i64(fd, &level);
	close(fd);
	if (r < 0 || level < -1 || level + 1 >= (long long)(sizeof(levels) / sizeof(levels[0]))) {
		return "perf_event_paranoid forbids it";
	}
	return levels[level + 1];
}

static const char *reason_of(const struct perf_counters *perf, int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return paranoid_reason(perf->root);
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return no_pmu;
	case ENOSYS:
		return "no perf events in this kernel";
	case EMFILE:
		return "too many descriptors";
	case ESRCH:
		return "the process ended";
	default:
		return "perf_event_open failed";
	}
}

void perf_counters_init(struct perf_counters *perf, const struct root *root)
{
	memset(perf, 0, sizeof(*perf));
	perf->open = open_event;
	perf->root = root;
}

static void close_event(struct perf_counters *perf, struct perf_process *process, size_t event)
{
	for (size_t i = 0; i < process->threads; i++) {
		if (process->fd[i][event] >= 0) {
			close(process->fd[i][event]);
			process->fd[i][event] = -1;
			perf->descriptors--;
		}
	}
}

static void close_process(struct perf_counters *perf, struct perf_process *process)
{
	for (size_t event = 0; event < PROCESS_COUNTERS; event++) {
		close_event(perf, process, event);
	}
	process->pid = 0;
	process->start_ticks = 0;
}

void perf_counters_finish(struct perf_counters *perf)
{
	for (size_t i = 0; i < PERF_PROCESSES_MAX; i++) {
		if (perf->process[i].pid != 0) {
			close_process(perf, &perf->process[i]);
		}
	}
	perf_counters_init(perf, perf->root);
}

static struct perf_process *find(struct perf_counters *perf, pid_t pid, uint64_t start_ticks)
{
	for (size_t i = 0; i < PERF_PROCESSES_MAX; i++) {
		if (perf->process[i].pid == pid && perf->process[i].start_ticks == start_ticks) {
			return &perf->process[i];
		}
	}
	return NULL;
}

/* One event of all threads: all of them, or none with the reason. */
static void open_of_threads(
	struct perf_counters *perf, struct perf_process *process, size_t event, const pid_t *tids)
{
	struct perf_event_attr attr = {.type = events[event].type,
		.size = sizeof(attr),
		.config = events[event].config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,
		.exclude_kernel = events[event].hardware,
		.exclude_hv = 1};
	if (events[event].hardware && perf->no_pmu) {
		process->reason[event] = no_pmu;
		return;
	}
	for (size_t i = 0; i < process->threads; i++) {
		int fd = perf->open(&attr, tids[i]);
		if (fd == -ESRCH && process->threads > 1) {
			continue; /* the thread has ended */
		}
		if (fd < 0) {
			process->reason[event] = reason_of(perf, fd);
			perf->no_pmu = perf->no_pmu ||
				       (events[event].hardware && process->reason[event] == no_pmu);
			close_event(perf, process, event);
			return;
		}
		process->fd[i][event] = fd;
		perf->descriptors++;
	}
}

/* The process with its counters open, or NULL with the reason. */
static struct perf_process *open_process(struct perf_counters *perf, pid_t pid,
	uint64_t start_ticks, const pid_t *tids, size_t threads, const char **reason)
{
	struct perf_process *process = find(perf, 0, 0);
	*reason = "too many processes with counters";
	if (threads == 0 || threads > PERF_THREADS_MAX) {
		*reason = threads == 0 ? "no threads found" : "too many threads for counters";
		return NULL;
	}
	if (!process || perf->descriptors + threads * PROCESS_COUNTERS > PERF_DESCRIPTORS_MAX) {
		return NULL;
	}
	memset(process, 0, sizeof(*process));
	memset(process->fd, 0xff, sizeof(process->fd));
	process->pid = pid;
	process->start_ticks = start_ticks;
	process->threads = threads;
	for (size_t event = 0; event < PROCESS_COUNTERS; event++) {
		open_of_threads(perf, process, event, tids);
	}
	return process;
}

/* The event's count over all threads, scaled for the time it shared its counter; NAN: not read. */
static double total_of(const struct perf_process *process, size_t event)
{
	double total = 0;
	for (size_t i = 0; i < process->threads; i++) {
		uint64_t reading[3]; /* value, time enabled, time running */
		if (process->fd[i][event] < 0) {
			continue;
		}
		if (read(process->fd[i][event], reading, sizeof(reading)) !=
			(ssize_t)sizeof(reading)) {
			return NAN;
		}
		if (reading[2] > 0) {
			total += (double)reading[0] * ((double)reading[1] / (double)reading[2]);
		}
	}
	return total;
}

void perf_counters_read(struct perf_counters *perf, pid_t pid, uint64_t start_ticks,
	const pid_t *tids, size_t threads, uint64_t now_ns, struct process_extra *extra)
{
	const char *reason = NULL;
	struct perf_process *process = find(perf, pid, start_ticks);
	if (!process) {
		process = open_process(perf, pid, start_ticks, tids, threads, &reason);
	}
	for (size_t event = 0; event < PROCESS_COUNTERS; event++) {
		extra->counter[event] = NAN;
		extra->counter_reason[event] = process ? process->reason[event] : reason;
		if (!process || process->reason[event]) {
			continue;
		}
		double total = total_of(process, event);
		extra->counter_reason[event] = "needs two samples";
		if (process->t_ns != 0 && now_ns > process->t_ns && !isnan(total)) {
			double grown = fmax(total - process->total[event], 0);
			extra->counter[event] = grown * 1e9 / (double)(now_ns - process->t_ns);
			extra->counter_reason[event] = NULL;
		}
		process->total[event] = total;
	}
	if (process) {
		process->t_ns = now_ns;
	}
}

void perf_counters_drop(struct perf_counters *perf, pid_t pid, uint64_t start_ticks)
{
	struct perf_process *process = find(perf, pid, start_ticks);
	if (process) {
		close_process(perf, process);
	}
}
