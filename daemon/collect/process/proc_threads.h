/* SPDX-License-Identifier: Apache-2.0 */
/* proc_threads.h: reads the threads of watched processes: CPU time, waiting time and switches,
 * summed for the process. /proc/<pid>/{schedstat,status} cover the main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/util/root.h"

enum {
	THREADS_MAX = 512,	 /* that are remembered, of all processes */
	THREADS_OF_PROCESS = 64, /* a process with more has no sums */
};

/* A process. real: of the machine's own proc, not of a fixture. */
struct thread_owner {
	pid_t pid;
	bool real;
	uint64_t start_ticks;
};

struct thread_track {
	struct thread_owner owner;
	pid_t tid;
	uint64_t t_ns; /* of the counters */
	uint64_t run_ns, delay_ns;
	double voluntary, involuntary; /* totals */
	char comm[16];
};

struct proc_threads {
	size_t count;
	struct thread_track track[THREADS_MAX];
	char buf[4096]; /* of getdents64 */
};

static inline bool same_owner(const struct thread_owner *a, const struct thread_owner *b)
{
	return a->pid == b->pid && a->real == b->real && a->start_ticks == b->start_ticks;
}

/* What the process's own stat and status say, which is of its main thread. */
struct thread_main {
	uint64_t threads;
	const char *comm;
	double voluntary, involuntary;
};

/* Reads all threads of the process: fills wait_percent, run_delay_ms, voluntary, involuntary with
 * their reasons and thread[] of extra, tids[0..*ret_tids) for who opens counters. */
void proc_threads_read(struct proc_threads *threads, const struct root *root,
	const struct thread_owner *owner, const struct thread_main *process, uint64_t now_ns,
	struct process_extra *extra, pid_t tids[THREADS_OF_PROCESS], size_t *ret_tids);

/* Forgets the threads of the process that were not seen at now_ns; now_ns 0: all of them. */
void proc_threads_forget(
	struct proc_threads *threads, const struct thread_owner *owner, uint64_t now_ns);
