/* What is remembered of each watched process between samples: counters for the rates, the costly
 * values, and in which groups it was. A process is (pid, start time). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/process/cgroup.h"
#include "daemon/collect/process/perf_counters.h"
#include "daemon/collect/process/proc_files.h"
#include "daemon/collect/process/proc_pss.h"
#include "daemon/collect/process/proc_threads.h"
#include "daemon/collect/process/procfs.h"
#include "daemon/core/metrics/processes.h"

enum {
	TRACKS_MAX = 2 * PROCESS_ROWS_MAX, /* all may be replaced between two samples */
	EXTRAS_PER_TICK = 32,		   /* processes that are looked at closely in one tick */
};

struct track {
	struct thread_owner owner;
	uint64_t t_ns; /* of the counters; the entry is dropped when a sample leaves it behind */
	uint64_t user_ticks, system_ticks, guest_ticks, iodelay_ticks, minor_faults, major_faults;
	double user, system, guest, iodelay, minor,
		major;		    /* rates as of t_ns; NAN = first sample */
	uint64_t now[2], before[2]; /* bits of the groups that have it */
	uint64_t over[2];	    /* … and in which it was told to be over its memory limit */
	uint64_t extra_ns, pss_ns, group_ns; /* 0 = never */
	uint64_t pss_asked_ns;		     /* 0 = never */
	bool pss_waits;			     /* for the answer */
	uint64_t status_ns;		     /* of status, where stat has not told newer numbers */
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
	struct {	       /* the group read last: often that of the next process, too */
		unsigned tick; /* 0 = none */
		bool fixture;
		char path[PROCESS_CGROUP_SIZE];
		struct cgroup_cpu cpu;
	} cgroup;
	struct proc_threads threads;
	struct perf_counters perf;
	struct track track[TRACKS_MAX];
};

void tracks_init(struct tracks *tracks, const struct root *root);
void tracks_finish(struct tracks *tracks);
/* A sample begins; pss and pss_late as in struct tracks. */
void tracks_begin(struct tracks *tracks, struct pss_reads *pss, const char *pss_late);
/* What was asked for by an earlier sample; each keeps the time at which it was read. */
void tracks_take_pss(struct tracks *tracks, const struct pss_reads *reads, uint64_t now_ns);

/* The process's entry, made when it is new; NULL when there is no room. */
struct track *tracks_find(struct tracks *tracks, const struct thread_owner *owner);

/* The rates since the last sample; nothing when this sample has had it already. no_delays: why the
 * kernel does not count delays; NULL = it does. */
void track_update(struct track *track, const struct proc_stat *stat, uint64_t now_ns,
	double ticks_per_second, const char *no_delays);

/* Fills track->status: from the file, which is costly, when the process is new or has its turn,
 * else brought up to date with stat. 0; -ENOENT and other errors: it is gone. */
int tracks_status(struct tracks *tracks, struct track *track, const struct root *root,
	const struct proc_stat *stat, uint64_t now_ns);

/* Reads what is beside stat and status when it is this process's turn; after tracks_status.
 * counters: it may have perf counters. */
void tracks_look_closer(struct tracks *tracks, struct track *track, const struct root *root,
	const struct proc_stat *stat, bool counters, uint64_t now_ns);

/* Drops an entry and what is open for it. */
void tracks_drop(struct tracks *tracks, struct track *track);
