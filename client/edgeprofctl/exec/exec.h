/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h: declares what the files of `exec` share: the controls of a command, its start in two
 * steps, the processes that it consists of, and what was measured.
 */
#pragma once

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "client/edgeprofctl/ctl.h"

/* ---- controls (exec_controls.c) */

struct exec_controls {
	bool has_cpus, has_nice;
	cpu_set_t cpus;
	int policy, priority, nice; /* policy -1: inherited */
	const struct option_list *env;
};

/* "0-3,6". 0 or -EINVAL. */
int exec_parse_cpus(const char *text, cpu_set_t *ret);

/* The options are valid (exec_options); CTL_USAGE when they contradict each other. */
int exec_controls_of(struct ctl *ctl, struct exec_controls *ret);

enum exec_step { EXEC_READY, EXEC_CPUS, EXEC_POLICY, EXEC_NICE, EXEC_ENV, EXEC_RUN };

/* Where the start of a command failed; error is an errno. */
struct exec_failure {
	int step, error;
};

/* Applies all of them to this process. */
struct exec_failure exec_controls_apply(const struct exec_controls *controls);

extern const struct option_spec exec_options[];

/* ---- the process (exec_child.c) */

struct exec_child {
	pid_t pid;
	int go, report;	   /* pipes: it runs when `go` has a byte, and ends when it is closed */
	sigset_t previous; /* the mask that it, and helpers, have */
};

/* Forks a process that has the controls and waits. Signals are blocked from now on. */
struct exec_failure exec_child_start(
	struct exec_child *child, char **argv, const struct exec_controls *controls);
/* Lets it run the program. */
struct exec_failure exec_child_release(struct exec_child *child);
/* Ends one that was not released. */
void exec_child_abort(struct exec_child *child);

/* ---- its processes (exec_usage.c) */

/* What is beyond is not sampled. */
enum { EXEC_PROCESSES = 1024, EXEC_THREADS = 4096 };

struct exec_thread {
	pid_t tid;
	uint64_t run_delay_ns, iodelay_ticks;
};

/* What /proc reports of the command's processes, from samples. */
struct exec_usage {
	bool iodelay, run_delay;		/* the kernel accounts for it */
	struct exec_thread alive[EXEC_THREADS]; /* sorted by tid */
	size_t alive_count;
	uint64_t ended_ns, ended_ticks; /* of threads that have ended */
	size_t threads_peak;
	uint64_t peak_rss_bytes;       /* of the largest process; 0: never seen */
	pid_t process[EXEC_PROCESSES]; /* at the last sample */
	size_t process_count;
};

void exec_usage_init(struct exec_usage *usage);
/* Samples the process and all descendants of this one, but for `except`. */
void exec_usage_sample(struct exec_usage *usage, pid_t pid, pid_t except);
uint64_t exec_usage_run_delay_ns(const struct exec_usage *usage);
uint64_t exec_usage_iodelay_ticks(const struct exec_usage *usage);

/* ---- counters (exec_counters.c) */

enum { EXEC_COUNTERS = 4 };

struct exec_counters {
	int fd[EXEC_COUNTERS];
	const char *reason; /* why one or more are unknown; NULL */
};

/* Counts the process, from its exec(2), and its children, in user mode. */
void exec_counters_open(struct exec_counters *counters, pid_t pid);
/* Adds cycles, instructions, cache_misses, branch_misses, ipc, counters_reason; closes them. */
void exec_counters_add(struct exec_counters *counters, cJSON *object);

/* ---- a quota (exec_quota.c) */

struct exec_quota {
	char folder[512]; /* of the control group; "" = none */
	bool v1, own;	  /* own: created here, not by systemd */
};

/* Puts the process into a group of its own with that quota. An exit status, after a message. */
int exec_quota_apply(struct ctl *ctl, struct exec_quota *quota, const struct exec_child *child);
/* Adds nr_throttled and throttled_us, null where the group is gone. */
void exec_quota_add(const struct exec_quota *quota, cJSON *object);
void exec_quota_finish(struct exec_quota *quota);

/* ---- helpers: busctl and perf (exec_helper.c) */

struct exec_helper {
	pid_t pid; /* 0: none */
	int messages;
	bool ended;
	int status; /* of wait(2), once it has ended */
	char reason[160];
};

/* Starts a program, with its messages in memory. 0, or -ENOENT … */
int exec_helper_start(struct exec_helper *helper, const char *const argv[], const sigset_t *mask);
/* True when it has ended, then with `reason`, the first line that says something. */
bool exec_helper_ended(struct exec_helper *helper);
/* Waits up to that long, then kills it. True: it ended with status 0. */
bool exec_helper_finish(struct exec_helper *helper, double milliseconds);

/* Attaches perf record; an exit status, after a message. */
int exec_perf_start(struct ctl *ctl, struct exec_helper *perf, const struct exec_child *child);

/* ---- the result (exec_show.c) */

struct exec_result {
	int64_t start_us;
	double wall_s;
	int status; /* of wait(2) */
	struct rusage rusage;
	uint64_t own_rss_bytes; /* the maximum of this process */
	bool limit_reached;
	const char *perf_data;
};

/* Of the process that waits: affinity, policy, priority, nice, quota_percent. */
cJSON *exec_controls_json(const struct ctl *ctl, pid_t pid);
cJSON *exec_result_json(
	const struct ctl *ctl, const struct exec_result *result, const struct exec_usage *usage);
void exec_show(struct ctl *ctl, const cJSON *result);

/* Reads the beginning of a file of /proc or /sys. False: nothing, and an empty text. */
bool exec_read_file(int folder, const char *path, char *text, size_t size);
/* The bytes of a line "NAME: 12 kB" of /proc/PID/status; 0 = none. */
uint64_t exec_status_number(pid_t pid, const char *name);
