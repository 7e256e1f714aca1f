/* SPDX-License-Identifier: Apache-2.0 */
/* proc_track.h: keeps state of each watched process between samples: counters for the rates, the
 * costly values, and the groups it was in. A process is (pid, start time). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/process/cgroup.h"
#include "daemon/collect/process/perf_counters.h"
#include "daemon/collect/process/proc_threads.h"
#include "daemon/collect/process/procfs.h"
#include "daemon/collect/sched/collector.h"
#include "daemon/core/metrics/processes.h"

enum {
	TRACKS_MAX = 2 * PROCESS_ROWS_MAX, /* all may be replaced between two samples */
	EXTRAS_PER_TICK = 32,		   /* processes whose extra is read in one tick */
	PSS_PER_TICK = 8,
};

/* smaps_rollup of some processes, read on a thread: the kernel walks through all pages, which takes
 * 50 ms for a process of 2 GiB, and waits for whoever changes its memory map. The first perf
 * counter is opened there as well. */
struct pss_reads {
	bool counters;	   /* some are wanted */
	int first_counter; /* its descriptor; 0 or -errno: none */
	size_t count;
	struct {
		struct thread_owner owner;
		int result; /* 0 or -errno; the others are of 0 */
		double bytes;
		uint64_t t_ns; /* when it was read */
	} read[PSS_PER_TICK];
};

/* fetch reads what owner says. */
extern const struct collector_ops proc_pss_reader;

enum track_rate {
	RATE_USER,
	RATE_SYSTEM,
	RATE_GUEST,
	RATE_IODELAY, /* so far in ticks */
	RATE_MINOR_FAULTS,
	RATE_MAJOR_FAULTS,
	RATES
};

struct track {
	struct thread_owner owner;
	uint64_t t_ns; /* of the counters; the entry is dropped when a sample leaves it behind */
	uint64_t count[RATES];	    /* as of t_ns */
	double rate[RATES];	    /* percent of a core, or a second; NAN = first sample */
	uint64_t now[2], before[2]; /* bits of the groups that have it */
	uint64_t over[2];	    /* … and in which it was reported over its memory limit */
	uint64_t extra_ns, pss_ns, group_ns; /* 0 = never */
	uint64_t pss_asked_ns;		     /* 0 = never */
	bool pss_waits;			     /* for the answer */
	uint64_t status_ns;		     /* of status, where stat has no newer numbers */
	struct proc_status status;
	const char *iodelay_reason;
	bool has_io;
	struct proc_io io;
	struct process_extra extra;
};

struct tracks {
	size_t count;
	unsigned tick;
	struct pss_reads *pss; /* what this tick asks for; NULL = the reader is busy */
	const char *pss_late;  /* why it does not answer; NULL = it is not late */
	size_t next;	       /* where the search goes on: processes come in the same order */
	double page_bytes;
	pid_t self;	       /* the daemon's */
	struct {	       /* the group read last: often that of the next process, too */
		unsigned tick; /* 0 = none */
		bool fixture;
		char path[PROCESS_CGROUP_SIZE];
		struct cgroup_cpu cpu;
	} cgroup;
	struct proc_threads threads;
	bool counters_ready; /* the first one is open, or none can be */
	struct perf_counters perf;
	struct track track[TRACKS_MAX];
};

void tracks_init(struct tracks *tracks, const struct root *root);
void tracks_finish(struct tracks *tracks);
/* A sample begins; pss and pss_late as in struct tracks. */
void tracks_begin(struct tracks *tracks, struct pss_reads *pss, const char *pss_late);
/* The answer to an earlier sample; each value keeps the time at which it was read. */
void tracks_on_pss(struct tracks *tracks, const struct pss_reads *reads, uint64_t now_ns);

/* The process's entry, made when it is new; NULL when the table is full. */
struct track *tracks_find(struct tracks *tracks, const struct thread_owner *owner);

/* The rates since the last sample; nothing when this sample has had it already. no_delays: why the
 * kernel does not count delays; NULL = it does. */
void track_update(struct track *track, const struct proc_stat *stat, uint64_t now_ns,
	double ticks_per_second, const char *no_delays);

/* Fills track->status: from the file, which is costly, when the process is new or it is its turn,
 * else updated from stat. 0; -ENOENT and other errors: it is gone. */
int tracks_status(struct tracks *tracks, struct track *track, const struct root *root,
	const struct proc_stat *stat, uint64_t now_ns);

/* Reads track->extra when it is this process's turn; after tracks_status. counters: it may have
 * perf counters. */
void tracks_read_extra(struct tracks *tracks, struct track *track, const struct root *root,
	const struct proc_stat *stat, bool counters, uint64_t now_ns);

/* The row of the process under a watch, as other layers get it. */
void track_row(const struct track *track, const struct watch *watch, const struct proc_stat *stat,
	double memory_total, struct process_row *ret);

/* Drops an entry and what is open for it. */
void tracks_drop(struct tracks *tracks, struct track *track);
