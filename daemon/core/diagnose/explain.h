/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h: explains why one frame took long: what differed from usual frames of the same time.
 * Differences are of two kinds, and those of one never sum up to more than the excess: where the
 * time went (stages, waits between them), and why (run queue, faults, clocks, sensors).
 */
#pragma once

#include "daemon/core/diagnose/facts/past_frames.h"
#include "daemon/core/history/history.h"

enum { EXPLAIN_FRAMES = 64 /* compared at most */, EXPLAIN_FRAMES_MIN = 8, EXPLAIN_MAX = 24 };

/* A sensor's past around the frame, as history_read returns it with step_ns 0. A frame has the
 * value of the first sample after its end, because rates are those of the time before the sample.
 * Of cpu/…/frequency only the first that fell is listed. A series of throttle/active is not needed:
 * frames have it. */
struct explain_series {
	const char *path;
	enum unit unit;
	size_t count;
	const struct history_point *point; /* ascending */
};

enum difference_kind { DIFFERENCE_WHERE, DIFFERENCE_WHY };

struct difference {
	enum difference_kind kind;
	/* "stage infer", "between preprocess and infer", "before infer", "outside of stages";
	 * "run-queue wait", "involuntary switches", "major faults", "minor faults", "CPU time",
	 * "blocked", "throttle/active", or the path of a series */
	char what[PROTO_PATH_SIZE];
	enum unit unit;
	double value, usual; /* usual: median of the compared frames */
	double explained_ms; /* NAN = not known */
	double rank;
	const char *sensors; /* paths of what confirms it begin so; NULL = none */
	char text[256];	     /* "infer took 92.1 ms, usually 48.0" */
};

struct explanation {
	double took_ms;
	double usual_ms; /* NAN = not known */
	bool slow;	 /* at least a quarter above usual */
	size_t compared; /* frames */
	size_t differences;
	struct difference difference[EXPLAIN_MAX]; /* where, then why; the highest rank first */
	char summary[256];			   /* one line */
	char reason[128]; /* why nothing could be compared; "" = it could be */
};

enum explain_by { EXPLAIN_WORST, EXPLAIN_ID, EXPLAIN_TIME };

/* The index of the slowest frame (value is ignored), the newest with the id, or the slowest at the
 * time in ns, else the nearest within 1 s. SIZE_MAX = none. */
size_t explain_find(const struct past_frames *frames, enum explain_by by, uint64_t value);

/* index: below frames->count. frames: all there are, because usual frames are the nearest that are
 * not slow among all, or among those before changed_ns: when, before the frame, frames became
 * slower for good; 0 = they did not. Pure; needs 64 KiB of stack. */
void explain_frame(const struct past_frames *frames, size_t index, uint64_t changed_ns,
	const struct explain_series *series, size_t series_count, struct explanation *ret);
