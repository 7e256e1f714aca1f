/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_counters.h: reads hardware and software counters of watched processes (perf_event_open). A
 * counter belongs to one thread, so each thread of a process has its own set and new threads
 * inherit. Descriptors are scarce: their total is limited, and they are closed when their process
 * ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/util/root.h"

struct perf_event_attr;

enum {
	PERF_PROCESSES_MAX = 8,
	PERF_THREADS_MAX = 16, /* of a process when its counters are opened */
	PERF_DESCRIPTORS_MAX = 120,
};

struct perf_process {
	pid_t pid; /* 0 = free */
	uint64_t start_ticks;
	size_t threads;
	int fd[PERF_THREADS_MAX][PROCESS_COUNTERS]; /* -1 = none */
	double total[PROCESS_COUNTERS];		    /* as of t_ns */
	const char *reason[PROCESS_COUNTERS];	    /* why there is none; NULL = there is one */
	uint64_t t_ns;
};

struct perf_counters {
	/* perf_event_open(2); a test's own. A descriptor or -errno. */
	int (*open)(struct perf_event_attr *attr, pid_t tid);
	const struct root *root; /* for proc/sys/kernel/perf_event_paranoid */
	size_t descriptors;
	bool no_pmu; /* found out: not tried again */
	struct perf_process process[PERF_PROCESSES_MAX];
};

/* Opens a counter of nothing for the calling thread: a descriptor or -errno. The kernel's first
 * counter of a task waits for all processors, 10 ms and more, so a thread that may block opens it;
 * while it is open, further ones are opened at once. */
int perf_counters_first(void);

void perf_counters_init(struct perf_counters *perf, const struct root *root);
/* Closes everything; after it perf is as after perf_counters_init. */
void perf_counters_finish(struct perf_counters *perf);

/* The process's counters: the rates since the last call into extra, opened at the first. tids: its
 * threads. */
void perf_counters_read(struct perf_counters *perf, pid_t pid, uint64_t start_ticks,
	const pid_t *tids, size_t threads, uint64_t now_ns, struct process_extra *extra);

/* Closes the counters of the process; nothing when it has none. */
void perf_counters_drop(struct perf_counters *perf, pid_t pid, uint64_t start_ticks);
