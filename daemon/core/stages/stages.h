/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h: declares one stage and what happens for each of its runs. Its runs become a recent
 * window, kept as integers so that it is exact, and a lifetime histogram; in addition deadlines,
 * CPU time, memory growth and who its parent is. Queries are in stats.h. An event allocates
 * nothing, but the first throttled one (a second histogram), the first with CPU time (a window of
 * them), one of an octave that its histogram has not seen, and one that fills the window while that
 * is small: they grow. A budget has what all of it may take in the end, so that nothing that grows
 * can exceed it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "daemon/core/stages/open.h"
#include "daemon/core/stages/pulse.h"
#include "daemon/core/stages/window.h"
#include "proto/histogram.h"
#include "proto/mapping.h"
#include "proto/percentile.h"

/* One finished run of a stage. */
struct stage_run {
	uint64_t end_ns;
	uint64_t duration_ns;
	uint64_t frame;		       /* PROTO_NO_FRAME = none */
	uint32_t cpu_us;	       /* of its thread; PROTO_CPU_NOT_MEASURED */
	uint64_t process_cpu_ns;       /* of all threads; UINT64_MAX = not measured */
	int64_t rss_growth;	       /* bytes; INT64_MIN = not measured */
	enum throttle_value throttled; /* the hardware's state when it ended */
	bool failed;		       /* its body ended by an error */
};

/* Words of a window at first, and as many again by the stage's name: stages that run equally often
 * do not all grow at once. */
enum { STAGE_CAPACITY = 32 };

enum { STAGE_PARENTS = 4 /* different parents that are counted separately */ };

#define STAGE_RSS_GROWTH_LIMIT (INT64_C(10) << 20) /* acceptance.md, G2.3 */

/* Its metric, see edgeprof-metrics(7); alerts know it by this name. */
#define STAGE_GROWTH_METRIC "growth_over_limit"

/* What stages may allocate; several share one. limit 0 = no limit. */
struct stage_budget {
	size_t used, limit;
	size_t past;	  /* what previous runs take of what is left; they make room first */
	uint64_t refused; /* times the limit was reached */
};

/* What the operator says about a stage; zero or "" = nothing. */
struct stage_settings {
	uint64_t deadline_ns; /* wins over the app's */
	char category[PROTO_LABEL_SIZE];
	char unit[PROTO_LABEL_SIZE]; /* the expected one; the app's own is kept */
	uint32_t warmup;	     /* events to skip at the start of the app */
	int64_t rss_growth_limit;
};

/* What stage_ask() answers; stats.h. */
struct stage_answer {
	struct proto_summary summary; /* count 0 and NANs when there is a reason, or no event */
	bool exact;
	const char *reason; /* why there are no numbers although there are events; static text */
	uint64_t unknown;   /* events of the span whose throttle state is not known */
	uint64_t throttled; /* that were throttled */
	/* of the window's runs (of the filter) that measured it; NAN when none did */
	double wall_ms, cpu_ms, process_cpu_ms;
	double cpu_ratio; /* of all threads' CPU time to wall time, else of its thread's */
};

/* CPU time of one run of the window; PROTO_CPU_NOT_MEASURED each. */
struct stage_cpu {
	uint32_t thread_us, process_us;
};

enum { STAGE_ATTRIBUTES_MAX = 16 };

/* A number that the runs of a stage carry, over the app's life (G3.10). */
struct app_attribute {
	char name[PROTO_NAME_SIZE];
	double last, min, max, sum;
	uint64_t count;
	uint64_t key; /* of the declaration that came last: private */
};

struct app_attributes {
	size_t count;
	uint64_t refused; /* records of names beyond the limit */
	struct app_attribute attribute[STAGE_ATTRIBUTES_MAX];
};

/* Its part of the energy; by energy.c. */
struct app_energy_share {
	uint64_t total_ns; /* at the interval's start */
	double share;	   /* of the last interval's wall time, 0 … 1 */
};

enum {
	LOOP_NOTES = 21, /* of the sums; the window ends at the oldest within it */
	LOOP_CEASED =
		16, /* runs of a stage in one iteration: the stage that began it came to an end */
};

struct loop_sum {
	uint64_t runs, ns;
};

/* Its part of the iterations of the loop, by loop.c. Zeroed = nothing ran. */
struct stage_loop {
	struct loop_sum inside; /* of iterations, the one that goes on too */
	struct loop_sum closed; /* inside at the end of the last one; see loop_closed() */
	uint32_t epoch;		/* of the app's loop, at the last run */
	uint32_t votes;		/* runs that count for being the most frequent */
	bool apart;		/* it runs on another thread than the iterations */
	uint64_t first_ns;	/* end of the first run inside */
	struct loop_sum outside;
	struct loop_sum note[LOOP_NOTES];
};

struct stage {
	char name[PROTO_NAME_SIZE]; /* of one in the app: with the unit when another has the base */
	char base[PROTO_NAME_SIZE]; /* as shown: without its unit */
	char category[PROTO_LABEL_SIZE];
	char unit[PROTO_LABEL_SIZE]; /* that the app declared; "" = none */
	uint32_t serial; /* 1, 2, …: never reused within the apps; owned by app_stages.c */
	struct stage_settings settings;
	uint64_t deadline_ns; /* 0 = none */
	uint64_t declared_ns; /* deadline by the app; 0 = none */
	/* lifetime (since the app's since_ns), warm-up skipped */
	uint64_t count;
	uint64_t misses;      /* events over the deadline of their time */
	uint64_t orphan_ends; /* G0.3: end without its begin */
	uint64_t abandoned;   /* G0.3: begin over an open begin of the same id */
	uint64_t total_ns;
	uint64_t min_ns, max_ns; /* UINT64_MAX and 0 before the first */
	uint64_t failed;
	uint64_t warmup_skipped;
	/* deadlines */
	uint64_t judged;   /* events that had a deadline */
	uint64_t worst_ns; /* longest run over its deadline; 0 = none */
	uint64_t consecutive_misses, longest_misses;
	/* throttling: events whose state was not known; those of throttled are in the histogram */
	uint64_t unknown_count;
	/* memory */
	uint64_t rss_measured;
	int64_t rss_growth_max, rss_growth_total;
	bool rss_over;		    /* the last measured run grew over the limit */
	uint64_t rss_logged_ns;	    /* by app_stages.c */
	bool rss_seen, rss_offered; /* there was a measured run; its metric was asked for */
	int64_t rss_over_max;	    /* largest growth over the limit since the last sample */
	/* nesting; by nesting.c */
	uint64_t nested_count;
	uint64_t nested_ns;   /* of total_ns, of runs inside of others */
	uint64_t children_ns; /* of total_ns, in stages that ran right inside */
	uint8_t depth;	      /* of the last run */
	uint8_t parents;
	uint32_t own_runs; /* with a run of itself right inside: recursion */
	struct {
		uint32_t serial;
		uint64_t runs;
	} parent[STAGE_PARENTS];
	struct app_energy_share energy; /* by energy.c */
	struct stage_loop loop;		/* by loop.c */
	/* What each run touches, next to each other. */
	struct pulse pulse; /* of all events, those of the warm-up as well */
	uint64_t last_ns;   /* end of the last event */
	uint64_t last_frame;
	/* Since the last stage_interval_reset, of events that ended since then or since the process
	 * attached: what queued while nobody read is in the window, but it is not of now. */
	uint64_t interval_from_ns;
	/* recent window: duration and throttle state in one word (window.h). A ring of capacity
	 * words, which doubles whenever it is full until it has window words. */
	size_t window, capacity, next;
	uint64_t *runs;
	struct stage_cpu *cpu; /* NULL until the first measured */
	uint32_t noted;	       /* the runs right before next, which stage_fold() counts */
	uint32_t warmup_left;
	bool noted_recent; /* these are of the interval */
	bool listed;	   /* among those to be folded; by records.c */
	bool cpu_refused, throttled_refused;
	bool noted_states; /* of the noted runs one was throttled, or that is not known */
	size_t filled;
	struct {
		uint64_t count, misses, max_ns;
		uint64_t cpu_us, cpu_count;
	} interval;
	struct stage_answer recent;		 /* of all of it, linear, by stage_refresh() */
	uint64_t recent_of;			 /* count + 1 then; 0 = never */
	struct proto_guess guess;		 /* for the next one */
	struct proto_histogram *all, *throttled; /* the latter NULL until the first throttled */
	struct stage_open *open;		 /* NULL until the first begin by id */
	struct stage_budget *budget;
	/* owned by apps.c */
	struct metric *metric[10];
	bool sampled_ahead; /* the next is of this interval; by metrics.c */
	bool resumed;	    /* restored, and its process has not meant it since: no warm-up again */
	uint32_t timely;    /* what intervals counted since the daemon's start; it wraps */
	size_t users;	    /* declarations of living processes that mean this stage */
	struct app_attributes *attributes; /* by values.c; freed with the stage */
};

/* -ENOMEM. window >= 2. */
int stage_create(const char *name, size_t window, struct stage **ret);
void stage_destroy(struct stage *stage);

/* What a stage with this window takes from a budget at least: with all that grows at its largest.
 */
size_t stage_bytes(size_t window);
/* From now on what it takes counts there, what it has already as well. The budget outlives it. */
void stage_set_budget(struct stage *stage, struct stage_budget *budget);

/* No event comes any more: the window shrinks to what it holds, and the stage leaves its budget.
 * What it takes from now on. */
size_t stage_freeze(struct stage *stage);

/* Takes the settings (a copy): the category and a deadline replace those of the app; the warm-up
 * starts when nothing was counted yet. */
void stage_configure(struct stage *stage, const struct stage_settings *settings);
/* A new process means the stage and no other does: skips its first events again. */
void stage_warm_up(struct stage *stage);
/* What the app says; 0 = none. Without effect when the operator set one. */
void stage_set_deadline(struct stage *stage, uint64_t deadline_ns);
/* The same for labels; "" = nothing said. */
void stage_set_labels(struct stage *stage, const char *category, const char *unit);

/* Its compute unit: the declared one, else the configured one; "" = neither. */
static inline const char *stage_unit(const struct stage *stage)
{
	return stage->unit[0] ? stage->unit : stage->settings.unit;
}

/* Part of what a frame costs: not a sum of others (named total or of that category), nor time in
 * which a frame waits for its turn (category wait). */
static inline bool stage_is_work(const struct stage *stage)
{
	return strcmp(stage->name, "total") != 0 && strcmp(stage->category, "total") != 0 &&
	       strcmp(stage->category, "wait") != 0;
}

/* Most runs are inside of another stage; by recursion they are in their own. */
static inline bool stage_is_nested(const struct stage *stage)
{
	uint64_t inside = stage->nested_count - stage->own_runs;
	return stage->nested_count > stage->own_runs && inside * 2 > stage->count - stage->own_runs;
}

/* A run of which only its times are known. */
static inline struct stage_run stage_run_of(uint64_t end_ns, uint64_t duration_ns, uint64_t frame)
{
	return (struct stage_run){.end_ns = end_ns,
		.duration_ns = duration_ns,
		.frame = frame,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.process_cpu_ns = UINT64_MAX,
		.rss_growth = INT64_MIN,
		.throttled = THROTTLE_UNKNOWN};
}

void stage_event(struct stage *stage, const struct stage_run *run);

/* Begin and end by id. The daemon calls them in the order of time within a drain. An end without a
 * begin counts orphan_ends; a begin over an open begin of the id counts abandoned; with all slots
 * used the one begun first is abandoned; no memory for slots: abandoned at once. */
void stage_begin(struct stage *stage, uint64_t id, uint64_t start_ns, uint64_t frame);
/* *run holds what is known of the end (end_ns, cpu_us, throttled …); duration and frame come from
 * the begin. False: there was none. */
bool stage_end_run(struct stage *stage, uint64_t id, struct stage_run *run);
bool stage_is_open(const struct stage *stage, uint64_t id);
/* Gives up every open begin, counted in abandoned. */
void stage_abandon(struct stage *stage);

/* Statistics of the recent window in milliseconds (G0.4). scratch holds stage->window doubles.
 * count of the summary = events in the window; the lifetime count is stage->count. */
void stage_summary(const struct stage *stage, double *scratch, struct proto_summary *ret);

/* Brings stage->recent up to date: the window is computed once after an event, however often the
 * sample tick and queries read it. scratch holds stage->window doubles. */
void stage_refresh(struct stage *stage, double *scratch);

void stage_interval_reset(struct stage *stage);

/*
 * A run is counted in two steps. To note it does what depends on the order of the runs of several
 * stages, and stage_fold() adds the durations noted since to the statistics, several at once. In
 * between the statistics are not complete: whoever notes folds before anything else sees the stage.
 */

/* False: the run is one of the warm-up. */
bool stage_note(struct stage *stage, const struct stage_run *run);
void stage_fold(struct stage *stage);

/* A run that ends then can be noted by its times and the throttle state alone, if nothing else of
 * it was measured. */
static inline bool stage_is_plain(const struct stage *stage, uint64_t end_ns)
{
	bool recent = end_ns >= stage->interval_from_ns;
	return recent == stage->noted_recent && stage->warmup_left == 0 && !stage->cpu;
}

/* Behind the last word of the ring: more of it, or its first one again. */
void stage_came_round(struct stage *stage);

/* duration_ns: at most STAGE_WORD_DURATION. */
static inline void stage_note_plain(struct stage *stage, uint64_t end_ns, uint64_t duration_ns,
	enum throttle_value throttled, uint64_t frame)
{
	pulse_note(&stage->pulse, end_ns);
	stage->runs[stage->next++] = duration_ns | (uint64_t)throttled << STAGE_WORD_SHIFT;
	stage->noted++;
	stage->noted_states |= throttled != THROTTLE_NO;
	if (__builtin_expect(stage->next == stage->capacity, 0)) {
		stage_came_round(stage);
	}
	if (end_ns > stage->last_ns) { /* slots are drained one after the other */
		stage->last_ns = end_ns;
		stage->last_frame = frame;
	}
}
