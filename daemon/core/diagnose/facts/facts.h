/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.h: declares what a diagnosis rests on, as plain numbers: gather.c measures them, rules.c
 * judges them, and a test writes them down as literals.
 *
 * The span is the current run, divided into at most FACTS_SEGMENTS segments. "now" is the mean of
 * the last ones; "usual" that of those in which frames were fast and which are not of now: what
 * the app reaches when nothing is wrong. Both are NAN when they are not known; without an earlier
 * fast time usual is NAN, and a rule must judge by targets, deadlines and shares alone.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/mapping.h"

#define MISSES 2.0 /* percent: fewer misses of a deadline are chance */

#define PIPELINED 1.2 /* frames in flight */

enum { FACTS_SEGMENTS = 64, FACTS_STAGES = 24, FACTS_PROCESSES = 3 };

struct fact {
	double now, usual;
};

/* What a stage does, by its name (G0.6). */
enum stage_role {
	ROLE_OTHER,
	ROLE_CAPTURE,
	ROLE_PREPROCESS,
	ROLE_INFER,
	ROLE_POSTPROCESS,
	ROLE_PUBLISH,
	ROLES
};

struct fact_stage {
	char name[PROTO_NAME_SIZE];
	enum stage_role role;
	char unit[PROTO_LABEL_SIZE], expected_unit[PROTO_LABEL_SIZE]; /* "" = none */
	char category[PROTO_LABEL_SIZE];			      /* "" = none */
	bool cpu_fallback;
	struct fact ms;	     /* a frame: time in it / frames; without what is nested in it */
	double share;	     /* of busy_ms.now, 0 … 1 */
	double p99_ms;	     /* of a frame's time in it, now */
	double cpu_ratio;    /* CPU time / wall time of its last executions; NAN: not measured */
	double excess_ms;    /* a frame: what it adds in slow ones (spikes); NAN without any */
	double wait_ms;	     /* pipelines: from the end of the stage before to its start */
	double deadline_ms;  /* of its own; NAN = none, then the others are, too */
	struct fact took_ms; /* an execution, with what is nested in it */
	double least_ms, miss_percent; /* of executions now: p5, and those over the deadline */
};

/* Sensors and other metrics by path; X(NAME, "path", how). A path may have wildcards: the value is
 * the max, min or sum over what matches, and path becomes the name of the metric that it is from.
 * %s is the app. */
#define FACT_METRICS(X)                                            \
	X(TEMPERATURE, "temperature/max", MAX)                     \
	X(HEADROOM, "headroom/*", MIN)                             \
	X(THROTTLE_ACTIVE, "throttle/active", MAX)                 \
	X(UNDER_VOLTAGE, "throttle/under_voltage", MAX)            \
	X(FREQ_CAPPED, "throttle/freq_capped", MAX)                \
	X(THROTTLED, "throttle/throttled", MAX)                    \
	X(SOFT_TEMP_LIMIT, "throttle/soft_temp_limit", MAX)        \
	X(OVER_CURRENT, "throttle/over_current", MAX)              \
	X(OVER_CURRENT_RATE, "throttle/oc*_rate", MAX)             \
	X(CPU, "cpu/utilization", MAX)                             \
	X(CPU_BUSIEST, "cpu/*/utilization", MAX)                   \
	X(CPU_FREQUENCY, "cpu/*/frequency", MAX)                   \
	X(CPU_IOWAIT, "cpu/iowait", MAX)                           \
	X(CPU_STEAL, "cpu/steal", MAX)                             \
	X(GPU, "gpu/utilization", MAX)                             \
	X(GPU_FREQUENCY, "gpu/frequency", MAX)                     \
	X(EMC, "emc/utilization", MAX)                             \
	X(ENGINE, "engine/*/utilization", MAX)                     \
	X(MEMORY_PERCENT, "memory/used_percent", MAX)              \
	X(MEMORY_AVAILABLE, "memory/available", MIN)               \
	X(SWAP_USED, "swap/used", MAX)                             \
	X(PRESSURE_CPU, "pressure/cpu/some", MAX)                  \
	X(PRESSURE_MEMORY, "pressure/memory/some", MAX)            \
	X(PRESSURE_IO, "pressure/io/some", MAX)                    \
	X(POWER, "power/total", MAX)                               \
	X(POWER_BUDGET, "budget/power", MAX)                       \
	X(APP_CPU, "process/%s/cpu", MAX)                          \
	X(APP_SYSTEM, "process/%s/system", MAX)                    \
	X(APP_RSS, "process/%s/rss", MAX)                          \
	X(APP_THREADS, "process/%s/threads", MAX)                  \
	X(APP_STOPPED, "process/%s/stopped", MAX)                  \
	X(APP_RUN_DELAY, "process/%s/run_delay", MAX)              \
	X(APP_IODELAY, "process/%s/iodelay", MAX)                  \
	X(APP_INVOLUNTARY, "process/%s/involuntary_switches", MAX) \
	X(APP_MAJOR_FAULTS, "process/%s/major_faults", MAX)        \
	X(APP_MINOR_FAULTS, "process/%s/minor_faults", MAX)        \
	X(APP_READ, "process/%s/read_bytes", MAX)                  \
	X(APP_WRITE, "process/%s/write_bytes", MAX)                \
	X(DAEMON_CPU, "process/edgeprofd/cpu", MAX)

enum fact_metric {
#define X(name, path, how) FACT_##name,
	FACT_METRICS(X)
#undef X
		FACT_METRIC_COUNT
};

struct fact_series {
	char path[PROTO_PATH_SIZE]; /* "" = there is no such metric */
	struct fact mean;
	double least, most; /* of the segments of now */
	double first_s;	    /* seconds ago at which it left the usual level for good; NAN */
	double slope;	    /* a second, robust (Theil–Sen): of the span or its last third; NAN */
	double slope_low;   /* lower bound of its 95 % interval */
	double begin;	    /* mean of the first segment that has one; NAN without a slope */
	double frames_match; /* rank correlation of segments with frame_ms, -1 … 1; NAN below 8 */
};

/* Another process that is not the app and not edgeprofd. */
struct fact_process {
	char name[32]; /* "" = none */
	int32_t pid;
	double cpu_percent; /* of one core */
	double busy_s;	    /* seconds for which it has been busy; NAN = it is not */
	double rss_bytes;
	double io_bytes; /* a second; NAN = not known */
};

/* Of the frame_ms of one kind of frames. */
struct fact_scatter {
	double count;  /* of independent frames: where neighbours agree, fewer than there are */
	double iqr_ms; /* interquartile range */
};

struct facts {
	char app[PROTO_NAME_SIZE];
	double span_s;	 /* of the segments */
	uint64_t frames; /* in the span; what was warm-up is none of it */
	uint64_t frames_now;
	bool of_stages;	   /* the app marks no frames: an iteration of its main stage is one */
	bool warming_up;   /* the fast segments came right after slow first ones */
	double dropped;	   /* share of events that the app could not record */
	uint32_t crowded;  /* threads that a process can record, where as many do; else 0 */
	double unended;	   /* share of the frames that were dropped on their way */
	double event_rate; /* a second */

	struct fact frame_ms; /* from one frame to the next: 1000 / rate */
	struct fact busy_ms;  /* a frame: in outermost stages, whichever thread */
	struct fact latency_ms;
	double frame_p50_ms, frame_p95_ms, frame_p99_ms; /* of frame_ms now */
	double latency_p50_ms, latency_p95_ms, latency_p99_ms;
	double busy_p5_ms;  /* the least that it ever takes, now */
	double target_ms;   /* 1000 / target_fps; NAN = none */
	double deadline_ms; /* NAN = none */
	struct fact miss_percent;
	double in_flight; /* frames at work at one time */
	bool parallel;	  /* in the same stage: tasks, a pool of workers; not a pipeline */
	double silent_s;  /* since the end of the last frame of an app that runs */
	double since_s;	  /* seconds ago at which frames became slower for good; NAN */

	/* mean of a frame, as the library reports it; NAN: it does not */
	struct fact run_delay_ms, major_faults;
	/* slow frames of the span (above 1.5 × the median; by latency_ms where frames are parallel,
	 * which may end in any order or at once; without ids none is then): how many of all, and a
	 * slow frame's excess over the others, all in ms or counts of one frame */
	double slow_share, slow_excess_ms, slow_run_delay_ms, slow_major_faults, slow_minor_faults,
		slow_cpu_ms;
	double slow_period_frames; /* median distance of two; NAN below 4 */
	double slow_regularity;	   /* interquartile range of the distance / median */
	size_t slow_stages;	   /* stages that have at least a quarter of a slow frame's excess
				    * in at least a tenth of the slow frames; 1 where one has it in
				    * more of them than its time would have by chance */

	/* frames by what the hardware did at their end, over the span */
	double throttled_share;		     /* 0 … 1; NAN: not known */
	double throttled_ms, unthrottled_ms; /* median of frame_ms; NAN below 10 of a kind */
	struct fact_scatter throttled, unthrottled;
	double throttled_joules, unthrottled_joules; /* of one frame */

	size_t stages;
	struct fact_stage stage[FACTS_STAGES];
	struct fact_series metric[FACT_METRIC_COUNT];
	struct fact_process process[FACTS_PROCESSES]; /* the busiest first */
	struct fact_process largest;		      /* by resident memory */

	uint32_t cpus;
	bool virtual_machine;
	char governor[64], power_mode[48]; /* "" = unknown */
	double frequency_limit;	 /* scaling_max_freq / cpuinfo_max_freq; NAN = not known */
	double critical_celsius; /* first passive trip, else the alert's limit; NAN */
	int nice;		 /* of the app's main thread */
	char policy[16];	 /* "SCHED_OTHER"; "" = not known */
	double quota_percent;	 /* of one core, of its control group; NAN = none */
	double quota_throttled;	 /* share of the time now in which the quota held it back; NAN */
	double cpus_allowed;	 /* processors it may use; NAN */
};

/* Time / deadline of a stage that misses it more than now and then; else 0. */
double stage_lateness(const struct fact_stage *stage);
/* The role of a stage by its name: "capture", "cam_read", "preproc", "detect", "nms" … */
enum stage_role stage_role_of(const char *name);
