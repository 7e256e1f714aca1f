/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apps.h: declares the registry of instrumented apps: app = (name, uid) ⊃ processes (pid, start
 * time) ⊃ threads, their stages and frame streams. ingest feeds it attachments and validated
 * copies of records; time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/apps/advice.h"
#include "daemon/core/apps/app_frames.h"
#include "daemon/core/apps/energy.h"
#include "daemon/core/apps/loop.h"
#include "daemon/core/apps/marks.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/apps/values.h"
#include "daemon/core/frames/frames.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/stages/stages.h"
#include "daemon/core/timeline/timeline.h"
#include "proto/mapping.h"

enum {
	APPS_OWN_MAX =
		64, /* all usable by one owner; an eighth on top is for others (accounts.h) */
	APPS_MAX = APPS_OWN_MAX + APPS_OWN_MAX / 8, /* ACCOUNTS_RESERVE */
	APP_PROCESSES_MAX = 64,
	APP_STAGES_MAX = 128,
	STAGES_MAX = 256,     /* over all apps */
	APP_NAME_HOLD_S = 60, /* a name stays its uid's this long after the last process */
	APP_BY_ID_MAX = 4096, /* begins and ends by id of a process that wait for a drain's end */
	APP_MARKS_MAX = 64,   /* marks of one process on the timeline between two samples */
	APP_OTHER_NAMES = 8,  /* names kept of stages that went into __other__ */
	APPS_OBSERVERS = 8,
	APP_RUNS_KEPT = 8, /* previous runs of an app */
};

/* The stage that counts what exceeds the limits. */
#define APP_STAGE_OTHER "__other__"

struct app;
struct app_settings;

/* sent = received + dropped + in_ring, of one mapping; filled by ingest after each drain. */
struct app_accounting {
	uint64_t sent, received, dropped, in_ring;
	uint64_t invalid; /* received records that were not believable (counted in received) */
};

enum process_end {
	PROCESS_ENDED,
	PROCESS_DIED,	  /* a crash signal, or an unexplained end */
	PROCESS_KILLED,	  /* SIGKILL */
	PROCESS_RELEASED, /* the process goes on, only the daemon detaches: nothing is logged */
};

struct app_open_stage {
	char stage[PROTO_NAME_SIZE];
	uint64_t frame; /* PROTO_NO_FRAME = none */
	uint64_t start_ns;
	uint32_t tid;	 /* as the daemon sees it; 0 = not known */
	uint32_t ns_tid; /* as the process sees it; 0 = not known */
	uint16_t index;	 /* declaration */
};

struct app_process {
	struct app *app;
	pid_t pid;	      /* as the daemon sees it; 0 = not visible */
	pid_t ns_pid;	      /* as the process sees it (a container's); 0 = not known */
	uint64_t start_ticks; /* field 22 of /proc/pid/stat; 0 = unknown */
	uint64_t attached_ns;
	uint32_t mapping_size;
	struct app_accounting accounting;
	uint32_t threads;		/* slots in use at the last drain */
	struct app_open_stage open[16]; /* at the last drain, oldest first */
	uint32_t open_count;
	uint64_t marks_refused; /* beyond APP_MARKS_MAX */
	/* private to apps.c and app_*.c, by declaration index */
	struct proto_declaration *declaration[PROTO_DECLARATIONS]; /* NULL = not declared */
	struct stage *stages[PROTO_DECLARATIONS]; /* NULL until its first event: marks have none */
	bool other[PROTO_DECLARATIONS];		  /* goes into __other__ */
	bool grew[PROTO_DECLARATIONS];		  /* its memory growth was measured once */
	uint8_t declared;
	uint32_t marks;	 /* since the last sample */
	uint64_t id_key; /* keeps equal ids of two processes apart */
	struct app_by_id *by_id;
	struct app_process_frames frame_state;
	struct app_slots *slots; /* NULL until the first nested stage or cost */
	struct app_value *values[2][PROTO_DECLARATIONS]; /* gauges, counters */
	bool marked[PROTO_DECLARATIONS];		 /* has been a mark's label */
	char cause[32]; /* why it died, "died of SIGSEGV"; "" = not known; by ingest */
	bool met[PROTO_DECLARATIONS]; /* apps_meet() */
	bool away;		      /* it ended while no daemon ran; by restore.c */
};

/*
 * An app with the statistics of its current or latest run (runs.h). A previous run is an object
 * of the same kind without processes, log and values, so that whatever reads the statistics of an
 * app reads those of a previous run, too.
 */
struct app {
	char name[PROTO_NAME_SIZE];
	uid_t uid;
	uint64_t known_ns;     /* when the app was first seen: with name and uid its identity */
	uint64_t run;	       /* 1, 2, … of the app */
	uint64_t since_ns;     /* first attachment of the run: its statistics count from here */
	uint64_t last_seen_ns; /* end of the last process; meaningful when processes == 0 */
	size_t runs;	       /* previous ones that are kept */
	struct app *previous[APP_RUNS_KEPT]; /* the newest first */
	size_t bytes;			     /* of a previous run: what keeping it takes */
	size_t processes;
	struct app_process *process[APP_PROCESSES_MAX];
	size_t stages;
	struct stage *stage[APP_STAGES_MAX]; /* in first-seen order */
	struct frames *frames;		     /* NULL until the first frame */
	struct app_frames *frame_state;	     /* the frames themselves; NULL likewise */
	struct app_energy energy;
	struct app_loop loop;	    /* loop.h */
	struct trace_log *log;	    /* its raw records; NULL until the first */
	struct app_accounting past; /* sums over processes of the run that went */
	uint64_t restarts;	    /* processes of the app beyond the first */
	uint64_t starts;	    /* processes of the run */
	pid_t last_pid;		    /* of the newest process … */
	uint64_t last_start_ticks;  /* … that may attach again, and goes on with its run */
	/* of a run that was there before the daemon: */
	uint64_t covers_since_ns;   /* its statistics begin here; 0 = with the run */
	uint64_t missing;	    /* records, at most, that they miss from before */
	struct saved_app *restored; /* what was saved of it; NULL */
	enum process_end end;	    /* of the last process; meaningful when processes == 0 */
	char last_words[160];	    /* "died in `infer`, frame 8841"; "" = none */
	struct app_values *values;  /* NULL until the first gauge or counter */
	struct app_hangs hangs;
	uint64_t marks_refused; /* of processes that went */
	struct advice advice;	/* advice.h */
};

struct apps;

struct apps_options {
	size_t stage_window;  /* events of a stage's recent window: 1024 */
	size_t frame_window;  /* deltas of a frame stream's window: 300 */
	size_t stage_memory;  /* bytes of all stages together; 0 = 8 MiB */
	size_t events_memory; /* bytes of raw records of all apps; 0 = 4 MiB */
	uid_t owner;	      /* the daemon's user; root and it may fill what is shared */
};

/* Does not own metrics and timeline. -ENOMEM. */
int apps_create(struct metrics *metrics, struct source *source, struct timeline *timeline,
	const struct apps_options *options, struct apps **ret);
void apps_destroy(struct apps *apps);

/* displace: processes of the app must be detached now, because their name goes to another user;
 * called within apps_attach. ended: the last process of an app ended or died; its last words,
 * statistics, marks and accounts stay as they are until it comes back or its slot is needed; called
 * within apps_detach, not when only the daemon releases the process; must not call functions that
 * change apps. Either may be NULL. */
struct apps_observer {
	void (*displace)(void *ctx, const struct app *app);
	void (*ended)(void *ctx, const struct app *app, enum process_end how, uint64_t now_ns);
	void *ctx;
};
int apps_observe(struct apps *apps, const struct apps_observer *observer); /* a copy; -ENOSPC */
void apps_unobserve(struct apps *apps, const void *ctx);

/* A process attached. name is cleaned here. -EPERM: the name is reserved for another user; -EACCES:
 * another uid owns the name (until 60 s after its last process), and this one has no precedence:
 * the name is not reserved for it, nor is it root; -ENOSPC: 64 apps or 64 processes of the app;
 * -ENOMEM. An app without processes is retired (metrics too) when its slot is needed. */
int apps_attach(struct apps *apps, const char *name, uid_t uid, pid_t pid, uint64_t start_ticks,
	uint32_t mapping_size, uint64_t now_ns, struct app_process **ret);

/* A declaration became visible (index below PROTO_DECLARATIONS, once each). Past the limits it goes
 * into the app's stage __other__, counted. */
void apps_declare(struct apps *apps, struct app_process *process, uint32_t index,
	const struct proto_declaration *copy);

/* n records of one slot in their order, private copies. Anything may be in them: what is not
 * believable (undeclared stage, unknown kind, start over a second in the future, end before the
 * process attached minus a day, duration over a day) is counted invalid and changes nothing else.
 * How many were accepted; fewer than n when the next one would be the first of its declaration and
 * no more new names are allowed. The statistics of their stages are complete after
 * apps_fold_stages(): call it before anything else looks at them. */
size_t apps_records(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *records, size_t n, uint64_t now_ns);

/* Once for all records of a pass: many runs of a stage are counted at once. */
void apps_fold_stages(struct apps *apps);

static inline void apps_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	apps_records(apps, process, slot, record, 1, now_ns);
	apps_fold_stages(apps);
}

/* Another thread took the slot: stages that the earlier one left open do not enclose its own. */
void apps_slot_taken(struct app_process *process, uint32_t slot);

/* New names are the expensive ones: from now on at most count of them are accepted. SIZE_MAX = no
 * limit, the initial value. */
void apps_allow_new(struct apps *apps, size_t count);
/* A pass over all slots of the process ended. Frames are counted and begins and ends by id matched
 * here, in the order of time: an end without its begin (and a begin over an open one) waits for one
 * more pass, because the other half may have been published in a slot that had just been read. */
void apps_drained(struct apps *apps, struct app_process *process);

/* The open stages as of this drain: clear, then add each, oldest first; what does not fit pushes
 * the oldest out. */
void apps_open_clear(struct app_process *process);
void apps_open_add(struct app_process *process, const struct proto_open_stage *copy, uint32_t tid,
	uint32_t ns_tid);

/* The process is gone and its mapping drained. Writes the timeline's last words from open[]. The
 * pointer is dead afterwards. */
void apps_detach(
	struct apps *apps, struct app_process *process, enum process_end how, uint64_t now_ns);

/* Ahead of apps_sample(): looks into the windows of at most n stages, which is most of its work.
 * True when stages are left; apps_sample() processes the rest. */
bool apps_sample_ahead(struct apps *apps, size_t n);

/* Statistics of the interval become metrics: stage/<app>/<stage>/…, frame/<app>/…, and the
 * interval's sums start again. Call at the interval; commits the source. */
void apps_sample(struct apps *apps, uint64_t now_ns);

/* Advises all apps, once a second at most. Call after apps_sample(), and once a second where the
 * interval is longer. */
void apps_advise(struct apps *apps, uint64_t now_ns);

/* The trace buffer's use over all apps. */
struct trace_usage;
void apps_trace_usage(const struct apps *apps, struct trace_usage *ret);
/* trace_buffer_since() over all apps; 0 as well while nothing is recorded. */
int apps_trace_since(const struct apps *apps, size_t count, uint64_t *ret);

struct app *apps_at(
	struct apps *apps, size_t index); /* NULL past the end; stable while no attach */
struct app *apps_find(struct apps *apps, const char *name);
/* The stage with that name, or NULL. */
struct stage *app_stage_find(const struct app *app, const char *name);
/* What is counted over all apps. */
struct apps_counts {
	size_t stages; /* of current runs */
	uint64_t stages_refused;
	uint64_t suppressed;	/* entries that apps_may_log() refused */
	uint64_t advice_serial; /* grows with each change of any app's advice */
	/* What all stages take and may take. Past it the least recently used that no process uses
	 * makes room, and new ones go into __other__. */
	struct stage_budget stage_budget;
	uint64_t other_names; /* ever noted; the newest are kept */
};
const struct apps_counts *apps_counts(const struct apps *apps);
/* "app/stage" of the index-th newest that went into __other__, of APP_OTHER_NAMES; NULL past the
 * end. */
const char *apps_other_name(const struct apps *apps, size_t index);
/* Apps that have a process: of this user, or of all (NULL). */
size_t apps_running(const struct apps *apps, const uid_t *uid);

/* Whether one more entry about this user's apps may go on the timeline; what may not is counted
 * and reported in one line (entry_quota.h). */
bool apps_may_log(struct apps *apps, uid_t uid, enum timeline_level level, uint64_t now_ns);

/* Sums over present and past processes of the app. */
uint64_t app_marks_refused(const struct app *app);
void app_accounting(const struct app *app, struct app_accounting *ret);

#define STAGES_MEMORY ((size_t)8 << 20) /* when apps_options.stage_memory is 0 */

/* The times that decide whether an event was throttled; they outlive apps. NULL = nobody knows. */
void apps_set_throttle_times(struct apps *apps, const struct throttle_times *times);

/* What the operator says. */
struct apps_config {
	const struct app_settings *settings; /* valid until the next apps_configure(); NULL: none */
	struct advice_options advice;	     /* in effect at the next sample */
	uint64_t gauge_expire_ns;	     /* for how long a gauge keeps its value */
};
/* Takes a copy; stages and frame streams that are there get their settings at once. */
void apps_configure(struct apps *apps, const struct apps_config *config);

/* What the operator wants of the app's frames, or of its iterations; 0 = nothing. */
double apps_target_fps(const struct apps *apps, const struct app *app);

/* The compute unit that the operator configured, else the one that a stage of this name declared
 * first; "" = neither. */
const char *app_expected_unit(const struct app *app, const struct stage *stage);
/* A CPU (cpu, onnx_cpu, CPU0) in place of something else. */
bool app_is_cpu_fallback(const char *unit, const char *expected);
