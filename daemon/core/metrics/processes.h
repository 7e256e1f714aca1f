/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.h: holds which processes are watched, and the last sample of each. Ingest (for apps),
 * the configuration and WatchProcess add watches; the process collector fills the rows, which the
 * methods list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

enum {
	WATCHES_MAX = 96,
	WATCHES_RUNTIME_MAX = 32, /* of WATCHES_MAX */
	PROCESS_ROWS_MAX = 256,
	WATCH_PATTERN_SIZE = 128,
	PROCESS_THREADS_TOP = 5,
	PROCESS_CGROUP_SIZE = 192,
	PROCESS_CPUS_SIZE = 64,
};

enum watch_kind {
	WATCH_SELF,    /* the daemon itself */
	WATCH_APP,     /* pids of an instrumented app (a row a process) */
	WATCH_PATTERN, /* glob on comm, the program or the complete command line */
	WATCH_PID,
	WATCH_UNIT, /* processes below the control group of a systemd unit (pattern) */
};

struct watch {
	enum watch_kind kind;
	char name[PROTO_NAME_SIZE];	  /* of the metrics: process/<name>/… */
	char pattern[WATCH_PATTERN_SIZE]; /* WATCH_PATTERN, WATCH_UNIT */
	pid_t pid;			  /* WATCH_PID, WATCH_APP (one watch a process) */
	uint64_t start_ticks;	     /* 0 = any; else another start time means another process */
	uint64_t memory_limit_bytes; /* 0 = none; a process above it is marked */
	bool runtime; /* by WatchProcess: a reload leaves it; a pid is pinned at first sight */
};

enum process_counter {
	PROCESS_CYCLES,
	PROCESS_INSTRUCTIONS,
	PROCESS_CACHE_MISSES,
	PROCESS_MIGRATIONS,
	PROCESS_CONTEXT_SWITCHES,
	PROCESS_COUNTERS
};

struct process_thread {
	pid_t tid;
	char comm[16];	    /* raw bytes */
	double cpu_percent; /* of one core; NAN = needs two samples */
};

/* What is read in addition to stat and status, of at most 32 processes per tick. NAN = unknown;
 * the reasons are static texts, NULL = no reason. */
struct process_extra {
	double read_bytes, write_bytes, cancelled_bytes; /* a second */
	double voluntary, involuntary;			 /* switches a second, all threads */
	double wait_percent;				 /* waited for a processor, all threads */
	double run_delay_ms;				 /* the same since the threads' start */
	double fds;
	double pss_bytes; /* up to 10 s old */
	const char *io_reason, *wait_reason, *switches_reason, *fds_reason, *pss_reason;
	/* when it was read; of PSS, and of the control group's numbers, which are read less often
	 */
	uint64_t t_ns, pss_ns, group_ns;
	char cgroup[PROCESS_CGROUP_SIZE]; /* "" = not reported */
	double quota_percent;		  /* of one core, the tightest on the way up; NAN = none */
	double nr_throttled, throttled_us;
	double throttled_share; /* of the time between the last two readings; NAN = not known */
	double counter[PROCESS_COUNTERS]; /* a second, in user mode but for the last two */
	const char *counter_reason[PROCESS_COUNTERS];
	size_t threads;
	struct process_thread thread[PROCESS_THREADS_TOP]; /* the busiest first */
};

/* One process as last sampled. NAN = unknown. */
struct process_row {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid;
	char watch[PROTO_NAME_SIZE]; /* the watch's name */
	char comm[16];		     /* raw bytes, NUL-terminated; may hold anything */
	char state;		     /* R S D … */
	double cpu_percent, user_percent, system_percent; /* of one core, over the last interval */
	double rss_bytes, vms_bytes, peak_rss_bytes;
	uint32_t threads;
	uint64_t t_ns;
	double guest_percent, iodelay_percent;
	const char *iodelay_reason;	   /* why it is not known; static text; NULL = the usual */
	double minor_faults, major_faults; /* a second */
	double mem_percent;		   /* rss of MemTotal */
	double iodelay_ticks;		   /* since its start */
	uint64_t memory_limit_bytes;	   /* of its watch; 0 = none */
	bool scheduling_known;
	int last_core, priority, nice, rt_priority, policy; /* of the main thread */
	char cpus[PROCESS_CPUS_SIZE];			    /* "0-3,6"; "" = not reported */
	struct process_extra extra;
};

struct processes {
	size_t watches;
	struct watch watch[WATCHES_MAX];
	uint32_t serial; /* grows with each change of the watches */
	size_t rows;
	struct process_row row[PROCESS_ROWS_MAX];
	uint64_t refused; /* watches or rows beyond the limits */
};

/* Adds a watch (copied). -EEXIST for an equal one, -ENOSPC (counted). */
int processes_watch(struct processes *processes, const struct watch *watch);
/* The equal one, or NULL. */
struct watch *processes_find(struct processes *processes, const struct watch *watch);
/* Removes watches of the kind with this name and, unless 0, this pid, except those of WatchProcess.
 * Returns the number removed. */
int processes_unwatch(
	struct processes *processes, enum watch_kind kind, const char *name, pid_t pid);

/* Watches of WatchProcess: how many, and the removal of those with this pid (0 = any) and this
 * name, pattern or unit (NULL = any). The number removed. */
size_t processes_runtime(const struct processes *processes);
int processes_unwatch_runtime(struct processes *processes, pid_t pid, const char *name);

/* Instructions per cycle, NAN when unknown, and what it means: "stalled" (< 1.0), "efficient"
 * (> 1.5), else "mixed"; "" when unknown. */
double process_ipc(const double counter[PROCESS_COUNTERS]);
const char *process_ipc_verdict(double ipc);

/* "SCHED_RR" …; "" for an unknown number. */
const char *process_policy_name(int policy);
