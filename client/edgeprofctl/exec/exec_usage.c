/* SPDX-License-Identifier: Apache-2.0 */
/* exec_usage.c: samples the processes of a command in /proc: how long their threads waited for a
 * CPU (schedstat) and for I/O (stat), which no system call reports at the end. */
#include "client/edgeprofctl/exec/exec.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IODELAY_FIELD = 42 /* of stat, proc(5) */ };

struct sample {
	struct exec_usage *usage;
	struct exec_thread threads[EXEC_THREADS];
	size_t count;
	pid_t except;
};

bool exec_read_file(int folder, const char *path, char *text, size_t size)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
	text[got > 0 ? got : 0] = '\0';
	if (fd >= 0) {
		close(fd);
	}
	return got > 0;
}

uint64_t exec_status_number(pid_t pid, const char *name)
{
	char path[64], text[4096];
	uint64_t kib = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	char *line = exec_read_file(AT_FDCWD, path, text, sizeof(text)) ? strstr(text, name) : NULL;
	return line && sscanf(line + strlen(name), ": %" SCNu64, &kib) == 1 ? kib * 1024 : 0;
}

void exec_usage_init(struct exec_usage *usage)
{
	char text[16];
	*usage = (struct exec_usage){.run_delay = true};
	/* a kernel without the switch always accounts for it */
	usage->iodelay =
		!exec_read_file(AT_FDCWD, "/proc/sys/kernel/task_delayacct", text, sizeof(text)) ||
		text[0] != '0';
}

static void add_process(struct sample *sample, pid_t pid)
{
	struct exec_usage *usage = sample->usage;
	for (size_t i = 0; i < usage->process_count; i++) {
		if (usage->process[i] == pid) {
			return;
		}
	}
	if (pid != sample->except && usage->process_count < EXEC_PROCESSES) {
		usage->process[usage->process_count++] = pid;
	}
}

static void add_children(struct sample *sample, int folder, const char *tid)
{
	char path[300];
	int pid;
	snprintf(path, sizeof(path), "%s/children", tid);
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	while (file && fscanf(file, "%d", &pid) == 1) {
		add_process(sample, pid);
	}
	if (file) {
		fclose(file);
	} else if (fd >= 0) {
		close(fd);
	}
}

static uint64_t read_iodelay(int folder, const char *tid)
{
	char path[300], text[1024];
	uint64_t ticks = 0;
	snprintf(path, sizeof(path), "%s/stat", tid);
	char *at = exec_read_file(folder, path, text, sizeof(text)) ? strrchr(text, ')') : NULL;
	for (int field = 2; at && field < IODELAY_FIELD; field++) {
		at = strchr(at + 1, ' ');
	}
	return at && sscanf(at, "%" SCNu64, &ticks) == 1 ? ticks : 0;
}

static void add_thread(struct sample *sample, int folder, const char *tid)
{
	char path[300], text[128];
	struct exec_thread thread = {.tid = (pid_t)strtol(tid, NULL, 10)};
	if (sample->count == EXEC_THREADS) {
		return;
	}
	snprintf(path, sizeof(path), "%s/schedstat", tid);
	if (!exec_read_file(folder, path, text, sizeof(text))) {
		sample->usage->run_delay =
			sample->usage->run_delay && access("/proc/self/schedstat", F_OK) == 0;
	} else {
		sscanf(text, "%*u %" SCNu64, &thread.run_delay_ns);
	}
	thread.iodelay_ticks = sample->usage->iodelay ? read_iodelay(folder, tid) : 0;
	sample->threads[sample->count++] = thread;
}

/* The threads of a process, unless it is this one, and the processes that they started. */
static void sample_process(struct sample *sample, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] != '.') {
			if (pid != getpid()) {
				add_thread(sample, dirfd(folder), entry->d_name);
			}
			add_children(sample, dirfd(folder), entry->d_name);
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

void exec_usage_sample(struct exec_usage *usage, pid_t pid, pid_t except)
{
	struct sample sample;
	sample.usage = usage;
	sample.except = except;
	sample.count = 0;
	usage->process_count = 0;
	add_process(&sample, pid);
	sample_process(&sample, getpid()); /* orphans are children of this process */
	for (size_t i = 0; i < usage->process_count; i++) {
		uint64_t peak_bytes = exec_status_number(usage->process[i], "VmHWM");
		usage->peak_rss_bytes =
			peak_bytes > usage->peak_rss_bytes ? peak_bytes : usage->peak_rss_bytes;
		sample_process(&sample, usage->process[i]);
	}
	qsort(sample.threads, sample.count, sizeof(sample.threads[0]), by_tid);
	/* A thread that is not there any more, or has a new owner, counts with what it had. */
	for (size_t i = 0, j = 0; i < usage->alive_count; i++) {
		const struct exec_thread *old = &usage->alive[i];
		while (j < sample.count && sample.threads[j].tid < old->tid) {
			j++;
		}
		if (j == sample.count || sample.threads[j].tid != old->tid ||
			sample.threads[j].run_delay_ns < old->run_delay_ns) {
			usage->ended_ns += old->run_delay_ns;
			usage->ended_ticks += old->iodelay_ticks;
		}
	}
	memcpy(usage->alive, sample.threads, sample.count * sizeof(sample.threads[0]));
	usage->alive_count = sample.count;
	usage->threads_peak =
		sample.count > usage->threads_peak ? sample.count : usage->threads_peak;
}

uint64_t exec_usage_run_delay_ns(const struct exec_usage *usage)
{
	uint64_t sum = usage->ended_ns;
	for (size_t i = 0; i < usage->alive_count; i++) {
		sum += usage->alive[i].run_delay_ns;
	}
	return sum;
}

uint64_t exec_usage_iodelay_ticks(const struct exec_usage *usage)
{
	uint64_t sum = usage->ended_ticks;
	for (size_t i = 0; i < usage->alive_count; i++) {
		sum += usage->alive[i].iodelay_ticks;
	}
	return sum;
}
