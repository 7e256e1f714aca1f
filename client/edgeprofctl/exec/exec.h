/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h: declares what the files of `exec` share: the start of a command in two steps, its quota,
 * the processes that it consists of, and what was measured.
 */
#pragma once

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "client/edgeprofctl/ctl.h"

/* ---- the process (exec_child.c); functions with a ctl return an exit status, after a message */

struct exec_child {
	pid_t pid;
	int fd;		   /* it runs after a byte from here, and ends when this is closed */
	sigset_t previous; /* the mask that it, and perf, have */
};

extern const struct option_spec exec_options[];

/* "0-3,6". 0 or -EINVAL. */
int exec_parse_cpus(const char *text, cpu_set_t *ret);

/* Forks a process that has the controls and waits. Signals are blocked from now on. */
int exec_child_start(struct ctl *ctl, struct exec_child *child);
/* Lets it run the program. */
int exec_child_release(struct ctl *ctl, struct exec_child *child);
/* Ends one that was not released. */
void exec_child_abort(struct exec_child *child);

/* ---- its processes (exec_usage.c) */

/* What is beyond is not sampled. */
enum { EXEC_PROCESSES = 1024, EXEC_THREADS = 4096, EXEC_COUNTERS = 4 };

struct exec_thread {
	pid_t tid;
	uint64_t run_delay_ns, iodelay_ticks;
};

/* What /proc reports of the command's processes, from samples, and what the PMU counts. */
struct exec_usage {
	pid_t except;
	bool iodelay, run_delay;		  /* the kernel accounts for it */
	struct exec_thread threads[EXEC_THREADS]; /* at the last sample, sorted by tid */
	size_t thread_count, threads_peak;
	uint64_t run_delay_ns, iodelay_ticks;
	uint64_t peak_rss_bytes;       /* of the largest process; 0: never seen */
	pid_t process[EXEC_PROCESSES]; /* at the last sample */
	size_t process_count;
	int counter[EXEC_COUNTERS];  /* descriptors */
	const char *counters_reason; /* why one or more are unknown; NULL */
};

/* Counts the process, from its exec(2), and its children, in user mode. */
void exec_usage_init(struct exec_usage *usage, pid_t pid, pid_t except);
/* What the process waited for until now, before its exec(2), does not count. */
void exec_usage_begin(struct exec_usage *usage);
/* Samples all descendants of this process, but for `except`. */
void exec_usage_sample(struct exec_usage *usage);
/* Adds cycles, instructions, cache_misses, branch_misses, ipc, counters_reason; closes them. */
void exec_counters_add(struct exec_usage *usage, cJSON *object);

/* Reads the beginning of the file of that path. False: nothing, and an empty text. */
__attribute__((format(printf, 3, 4))) bool exec_read(
	char *text, size_t size, const char *format, ...);
/* The largest RSS that the process had, in bytes; 0: unknown. */
uint64_t exec_peak_rss(pid_t pid);

/* ---- a quota (exec_quota.c) */

struct exec_quota {
	char folder[512]; /* of the control group; "" = none */
	bool v1, own;	  /* own: was created */
};

/* Puts the process into a group of its own with that quota. */
int exec_quota_apply(struct ctl *ctl, struct exec_quota *quota, pid_t pid);
/* Adds nr_throttled and throttled_us, null where the group is gone. */
void exec_quota_add(const struct exec_quota *quota, cJSON *object);
void exec_quota_finish(struct exec_quota *quota);

/* ---- perf record (exec_perf.c) */

struct exec_perf {
	pid_t pid; /* 0: none */
	int messages;
	bool ended;
	int status;	  /* of wait(2), once it has ended */
	char reason[160]; /* then: the first line that says something */
};

/* Starts perf, and waits until it has attached. */
int exec_perf_start(struct ctl *ctl, struct exec_perf *perf, const struct exec_child *child);
/* Ends it. False: it failed. */
bool exec_perf_finish(struct exec_perf *perf);

/* ---- the result (exec_show.c) */

struct exec_result {
	int64_t start_us;
	double wall_s;
	int status; /* of wait(2) */
	struct rusage rusage;
	uint64_t own_rss_bytes; /* the maximum of this process */
	bool limit_reached;
	const char *perf_data;
	struct exec_usage usage;
};

/* Of the process that waits: affinity, policy, priority, nice, quota_percent. */
cJSON *exec_controls_json(const struct ctl *ctl, pid_t pid);
cJSON *exec_result_json(const struct ctl *ctl, struct exec_result *result);
void exec_show(struct ctl *ctl, const cJSON *result);
