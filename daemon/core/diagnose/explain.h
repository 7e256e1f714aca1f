/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h: explains why one frame took long: what differed from usual frames of the same time.
 * Two lists, each ranked by the part of the excess that it explains, and neither sums up to more
 * than the excess: where the time went (stages, waits between them), and why (run queue, faults,
 * clocks, sensors). Pure: no clock, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/diagnose/past_frames.h"
#include "daemon/core/history/history.h"

enum {
	EXPLAIN_FRAMES = 64, /* compared at most */
	EXPLAIN_FRAMES_MIN = 8,
	EXPLAIN_PLACES = 8, /* differences of each kind at most */
	EXPLAIN_CAUSES = 12,
};

/* A sensor's past around the frame, as history_read returns it with step_ns 0. A frame has the
 * value of the first sample after its end, because rates are those of the time before the sample.
 * Several clocks with the same first segment (cpu/0/frequency …) count as one, the fastest. */
struct explain_series {
	const char *path;
	enum unit unit;
	size_t count;
	const struct history_point *point; /* ascending */
};

enum difference_kind { DIFFERENCE_WHERE, DIFFERENCE_WHY };

struct difference {
	enum difference_kind kind;
	/* "stage infer", "between preprocess and infer", "outside of stages"; "run-queue wait",
	 * "involuntary switches", "major faults", "minor faults", "CPU time", "blocked",
	 * "throttle/active", or the path of a series */
	char what[PROTO_PATH_SIZE];
	enum unit unit;
	double value, usual; /* usual: median of the compared frames; NAN = not known */
	double explained_ms; /* NAN = not known */
	char text[256];	     /* "infer took 92.1 ms, usually 48.0" */
};

struct explanation {
	double took_ms;
	double usual_ms; /* NAN = not known */
	bool slow;	 /* at least a quarter and 0.5 ms above usual */
	size_t compared; /* frames */
	size_t differences;
	struct difference difference[EXPLAIN_PLACES + EXPLAIN_CAUSES]; /* where, then why */
	char summary[256];					       /* one line */
	char reason[128]; /* why nothing could be compared; "" = it could be */
};

enum explain_by { EXPLAIN_WORST, EXPLAIN_ID, EXPLAIN_TIME };

/* The index of the slowest frame (value is ignored), the newest with the id, or the one at the time
 * in ns, else the nearest within 1 s. SIZE_MAX = none. */
size_t explain_find(const struct past_frames *frames, enum explain_by by, uint64_t value);

/* index: below frames->count. Give it all frames there are: usual is the median of the nearest that
 * are not slow among all. */
void explain_frame(const struct past_frames *frames, size_t index,
	const struct explain_series *series, size_t series_count, struct explanation *ret);
