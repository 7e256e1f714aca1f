/* SPDX-License-Identifier: Apache-2.0 */
/* group.h: computes the metrics process/<name>/… of one watched name, sums over its processes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/timeline/timeline.h"
#include "proto/name.h"

enum process_value {
	PROCESS_RSS,
	PROCESS_VMS,
	PROCESS_PEAK_RSS,
	PROCESS_CPU,
	PROCESS_USER,
	PROCESS_SYSTEM,
	PROCESS_THREADS,
	PROCESS_STOPPED,
	PROCESS_MEM_PERCENT,
	PROCESS_MINOR_FAULTS,
	PROCESS_MAJOR_FAULTS,
	PROCESS_PSS,
	PROCESS_FDS,
	PROCESS_VOLUNTARY,
	PROCESS_INVOLUNTARY,
	PROCESS_RUN_DELAY,
	PROCESS_IODELAY,
	PROCESS_READ,
	PROCESS_WRITE,
	PROCESS_COUNTER_FIRST, /* the first four of enum process_counter, in its order */
	PROCESS_COUNTER_LAST = PROCESS_COUNTER_FIRST + PROCESS_MIGRATIONS,
	PROCESS_IPC,
	PROCESS_VALUES
};

struct group {
	char name[PROTO_NAME_SIZE];
	bool wanted;   /* by a watch */
	unsigned slot; /* its own number while it lives, below WATCHES_MAX */
	bool events;   /* starts and exits are reported; not those of apps, which ingest reports */
	bool known;    /* looked for at least once: what comes now has started */
	unsigned started, exited;      /* not reported yet */
	pid_t started_pid, exited_pid; /* the last ones; 0 = none yet */
	uint64_t reported_ns;
	struct metric *metric[PROCESS_VALUES];
	struct metric *count_metric;
	struct metric *over_metric; /* NULL: no watch of the name has a memory limit */
	uint32_t over;		    /* processes above it */
	uint64_t limit_reported_ns;
	double sum[PROCESS_VALUES];	    /* NAN = of no process */
	const char *reason[PROCESS_VALUES]; /* why one is not known; NULL = the usual */
	uint32_t count;
	const char *unsure;	   /* why there may be more processes; NULL = these are all */
	uint64_t pss_ns, extra_ns; /* of the oldest that is part of the sum; 0 = none */
};

/* Adds the metrics; a metric that is refused (limit, another owner) is skipped. 0 or -ENOMEM. */
int group_open(struct group *group, struct metrics *metrics, struct source *source);
void group_retire(struct group *group, struct metrics *metrics);

/* Whether a watch of the name has a memory limit: adds or removes process/<name>/over_limit, the
 * number of processes above it. -ENOMEM. */
int group_limit(struct group *group, struct metrics *metrics, struct source *source, bool limited);

void group_reset(struct group *group);
/* Adds the process to the sums. */
void group_add(struct group *group, const struct process_row *row);
void group_commit(struct group *group);

/* Count a process of the name that started or exited. */
void group_started(struct group *group, pid_t pid);
void group_exited(struct group *group, pid_t pid);
/* Compares one process with its memory limit (0 = none). *over is the state that the timeline has:
 * both crossings are entered, at most one a second, the lower one at 95 % of the limit. */
void group_check_limit(struct group *group, bool *over, pid_t pid, double rss_bytes,
	uint64_t limit_bytes, struct timeline *timeline, uint64_t now_ns);
/* Enters starts and exits into the timeline, at most one line a second. */
void group_report(struct group *group, struct timeline *timeline, uint64_t now_ns);
