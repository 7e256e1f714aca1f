/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose.h: declares the diagnosis of an app: findings in the order in which they matter, each
 * with its symptom, cause, evidence and the next thing to do. Rules are rows of a table with a pure
 * function over facts (facts.h); nothing here reads a clock or allocates.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/diagnose/facts/facts.h"

enum { FINDINGS_MAX = 6, FINDING_EVIDENCE = 5, DIAGNOSIS_FRAMES = 10 /* below: too few data */ };

/* In the order of the table in rules.c; the names are those of the API. */
#define CAUSES(X)                                       \
	X(THERMAL_THROTTLING, "thermal_throttling")     \
	X(UNDER_VOLTAGE, "under_voltage")               \
	X(OVER_CURRENT, "over_current")                 \
	X(CLOCK_LIMIT, "clock_limit")                   \
	X(CPU_FALLBACK, "cpu_fallback")                 \
	X(INFERENCE_BOUND, "inference_bound")           \
	X(PREPROCESSING_BOUND, "preprocessing_bound")   \
	X(STAGE_BOUND, "stage_bound")                   \
	X(CAPTURE_STALL, "capture_stall")               \
	X(CPU_CONTENTION, "cpu_contention")             \
	X(SCHEDULING, "scheduling")                     \
	X(PAUSES, "pauses")                             \
	X(MEMORY_LEAK, "memory_leak")                   \
	X(MEMORY_PRESSURE, "memory_pressure")           \
	X(IO_STALL, "io_stall")                         \
	X(GPU_BOUND, "gpu_bound")                       \
	X(MEMORY_BANDWIDTH, "memory_bandwidth")         \
	X(QUEUEING, "queueing")                         \
	X(DEADLINE_UNREACHABLE, "deadline_unreachable") \
	X(PROFILER_OVERHEAD, "profiler_overhead")       \
	X(STOPPED, "stopped")                           \
	X(UNEXPLAINED, "unexplained")

enum cause {
#define X(name, text) CAUSE_##name,
	CAUSES(X)
#undef X
		CAUSE_COUNT
};

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

struct finding {
	enum cause cause;
	double score; /* 0 … 1: what orders findings; >= 0.7 high, >= 0.4 medium, else low */
	double explained_ms; /* of a frame; NAN: it does not lengthen frames */
	char symptom[128];   /* "8.2 frames/s instead of 14.9, since 12:03 (4 min)" */
	char text[160]; /* one line: "the clock is capped at 81 °C: infer takes 92 ms, not 48" */
	size_t evidence_count;
	char evidence[FINDING_EVIDENCE][128]; /* "throttle/active 1 in 96 % of the last 30 s" */
	const char *advice[3];		      /* static texts, the best first; NULL = no more */
};

enum diagnosis_state {
	DIAGNOSIS_TOO_FEW, /* fewer than DIAGNOSIS_FRAMES frames */
	DIAGNOSIS_HEALTHY, /* no finding above low */
	DIAGNOSIS_FINDINGS
};

struct diagnosis {
	enum diagnosis_state state;
	uint64_t t_ns;
	char summary[160]; /* one line: the first finding's text, "nothing wrong: …", "not enough
			      data: …" */
	size_t findings;
	struct finding finding[FINDINGS_MAX]; /* those of low confidence, too */
};

const char *cause_name(enum cause cause); /* "thermal_throttling" */
const char *confidence_name(enum confidence confidence);
enum confidence finding_confidence(const struct finding *finding);

/* Judges the facts by all rules: pure. */
void diagnose(const struct facts *facts, struct diagnosis *ret);
