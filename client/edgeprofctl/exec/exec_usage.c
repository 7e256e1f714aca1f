/* SPDX-License-Identifier: Apache-2.0 */
/* exec_usage.c: samples the processes of a command in /proc: how long their threads waited for a
 * CPU (schedstat) and for I/O (stat), which no system call reports at the end. Counts what they do
 * in user mode: the set of perf stat that perf_event_paranoid = 2 permits. */
#include "client/edgeprofctl/exec/exec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"

enum { IODELAY_FIELD = 42 /* of stat, proc(5) */ };

struct sample {
	struct exec_usage *usage;
	struct exec_thread threads[EXEC_THREADS];
	size_t count;
};

static const struct {
	const char *name;
	uint64_t config;
} events[EXEC_COUNTERS] = {
	{"cycles", PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"cache_misses", PERF_COUNT_HW_CACHE_MISSES},
	{"branch_misses", PERF_COUNT_HW_BRANCH_MISSES},
};

bool exec_read(char *text, size_t size, const char *format, ...)
{
	char path[600];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
	text[got > 0 ? got : 0] = '\0';
	if (fd >= 0) {
		close(fd);
	}
	return got > 0;
}

uint64_t exec_peak_rss(pid_t pid)
{
	char text[4096];
	uint64_t kib = 0;
	exec_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	const char *line = strstr(text, "VmHWM:");
	return line && sscanf(line, "VmHWM: %" SCNu64, &kib) == 1 ? kib * 1024 : 0;
}

void exec_usage_init(struct exec_usage *usage, pid_t pid, pid_t except)
{
	char text[16];
	*usage = (struct exec_usage){
		.except = except, .run_delay = access("/proc/self/schedstat", F_OK) == 0};
	/* a kernel without the switch always accounts for it */
	usage->iodelay =
		!exec_read(text, sizeof(text), "/proc/sys/kernel/task_delayacct") || text[0] != '0';
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
		usage->counter[i] =
			(int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (usage->counter[i] < 0) {
			usage->counters_reason = errno == EACCES || errno == EPERM
							 ? "kernel.perf_event_paranoid or a "
							   "seccomp filter forbids it"
						 : errno == ENOSYS ? "no perf events in this kernel"
								   : "no PMU in this machine";
		}
	}
}

static void add_process(struct sample *sample, pid_t pid)
{
	struct exec_usage *usage = sample->usage;
	for (size_t i = 0; i < usage->process_count; i++) {
		if (usage->process[i] == pid) {
			return; /* it got another parent meanwhile */
		}
	}
	if (pid != usage->except && usage->process_count < EXEC_PROCESSES) {
		usage->process[usage->process_count++] = pid;
	}
}

static void add_thread(struct sample *sample, const char *task)
{
	char text[1024];
	struct exec_thread thread = {.tid = (pid_t)strtol(strrchr(task, '/') + 1, NULL, 10)};
	exec_read(text, sizeof(text), "%s/schedstat", task);
	sscanf(text, "%*u %" SCNu64, &thread.run_delay_ns);
	exec_read(text, sizeof(text), "%s/stat", task);
	char *at = strrchr(text, ')'); /* the end of a name, which may contain blanks */
	for (int field = 2; at && field < IODELAY_FIELD; field++) {
		at = strchr(at + 1, ' ');
	}
	if (at && sscanf(at, "%" SCNu64, &thread.iodelay_ticks) == 1 &&
		sample->count < EXEC_THREADS) {
		sample->threads[sample->count++] = thread;
	}
}

/* The threads of a process, unless it is this one, and the processes that they started. */
static void sample_process(struct sample *sample, pid_t pid)
{
	char path[96], task[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		int child;
		snprintf(task, sizeof(task), "/proc/%d/task/%.16s", (int)pid, entry->d_name);
		if (pid != getpid() && entry->d_name[0] != '.') {
			add_thread(sample, task);
		}
		snprintf(path, sizeof(path), "%s/children", task);
		FILE *file = fopen(path, "re");
		while (file && fscanf(file, "%d", &child) == 1) {
			add_process(sample, child);
		}
		if (file) {
			fclose(file);
		}
	}
	if (folder) {
		closedir(folder);
	}
}

static int by_tid(const void *a, const void *b)
{
	const struct exec_thread *first = a, *second = b;
	return (first->tid > second->tid) - (first->tid < second->tid);
}

void exec_usage_sample(struct exec_usage *usage)
{
	struct sample sample;
	sample.usage = usage;
	sample.count = 0;
	usage->process_count = 0;
	sample_process(&sample, getpid()); /* orphans are children of this process, too */
	for (size_t i = 0; i < usage->process_count; i++) {
		uint64_t peak_bytes = exec_peak_rss(usage->process[i]);
		usage->peak_rss_bytes =
			peak_bytes > usage->peak_rss_bytes ? peak_bytes : usage->peak_rss_bytes;
		sample_process(&sample, usage->process[i]);
	}
	for (size_t i = 0; i < sample.count; i++) {
		static const struct exec_thread none;
		const struct exec_thread *now = &sample.threads[i];
		const struct exec_thread *old =
			bsearch(now, usage->threads, usage->thread_count, sizeof(*old), by_tid);
		if (!old || now->run_delay_ns < old->run_delay_ns) {
			old = &none; /* a new thread, perhaps with the number of one that ended */
		}
		usage->run_delay_ns += now->run_delay_ns - old->run_delay_ns;
		usage->iodelay_ticks += now->iodelay_ticks - old->iodelay_ticks;
	}
	qsort(sample.threads, sample.count, sizeof(sample.threads[0]), by_tid);
	memcpy(usage->threads, sample.threads, sample.count * sizeof(sample.threads[0]));
	usage->thread_count = sample.count;
	usage->threads_peak =
		sample.count > usage->threads_peak ? sample.count : usage->threads_peak;
}

void exec_usage_begin(struct exec_usage *usage)
{
	exec_usage_sample(usage);
	usage->run_delay_ns = usage->iodelay_ticks = usage->peak_rss_bytes = 0;
}

void exec_counters_add(struct exec_usage *usage, cJSON *object)
{
	double values[EXEC_COUNTERS];
	for (size_t i = 0; i < EXEC_COUNTERS; i++) {
		/* Where events share a register, each counts for a part of the time: scaled, as
		 * perf stat does. */
		uint64_t counts[3] = {0}; /* the count, ns enabled, ns running */
		ssize_t got = read(usage->counter[i], counts, sizeof(counts));
		bool known = got == sizeof(counts) && counts[2] > 0;
		values[i] = known ? floor((double)counts[0] * (double)counts[1] / (double)counts[2])
				  : NAN;
		if (!known && !usage->counters_reason) {
			usage->counters_reason = "other programs use the counters";
		}
		close(usage->counter[i]);
		json_add_number(object, events[i].name, values[i]);
	}
	json_add_number(object, "ipc", values[0] > 0 ? values[1] / values[0] : NAN);
	if (usage->counters_reason) {
		cJSON_AddStringToObject(object, "counters_reason", usage->counters_reason);
	}
}
