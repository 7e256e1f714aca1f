/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h: divides the time that a diagnosis looks at into segments, and decides which of them
 * are "now" and which are "usual" (facts.h). Pure.
 */
#pragma once

#include "daemon/core/diagnose/facts.h"
#include "daemon/core/diagnose/past_frames.h"

/* What is averaged over the frames of a segment; the last two are one for each stage. */
enum measure {
	MEASURE_FRAME_MS,
	MEASURE_FRAME_SQUARE, /* of frame_ms */
	MEASURE_BUSY_MS,
	MEASURE_LATENCY_MS,
	MEASURE_MISSED,	   /* 0 or 1 */
	MEASURE_THROTTLED, /* 0 or 1 */
	MEASURE_RUN_DELAY_MS,
	MEASURE_INVOLUNTARY,
	MEASURE_VOLUNTARY,
	MEASURE_MAJOR_FAULTS,
	MEASURE_MINOR_FAULTS,
	MEASURE_STAGE_MS,
	MEASURE_WAIT_MS = MEASURE_STAGE_MS + FACTS_STAGES,
	MEASURES = MEASURE_WAIT_MS + FACTS_STAGES
};

struct segment {
	uint64_t from_ns, to_ns;
	size_t first, count; /* of the frames that were read; older segments have none */
	double frames;
	struct {
		double sum, count;
	} of[MEASURES];
};

struct span {
	size_t count, older; /* the older ones come first: no frame of theirs could be read */
	uint64_t least_ns;   /* length of a segment, at least */
	size_t now;	     /* the first segment of now */
	bool is_usual[FACTS_SEGMENTS];
	bool has_usual, usual_is_now, warming_up;
	double slow_ms; /* a segment with longer frames is slow; NAN = not known */
	struct segment segment[FACTS_SEGMENTS];
};

/* The time since since_ns, as segments; frames are assigned to theirs, and now is known. */
void span_divide(struct span *span, const struct past_frames *past, uint64_t since_ns,
	uint64_t until_ns, double deadline_ms);
/* Adds to a measure: frames of them with this mean. Nothing when it is NAN. */
void segment_add(struct segment *segment, int measure, double mean, double frames);
/* NAN without any. measure: enum measure, plus the stage's index. */
double segment_mean(const struct segment *segment, int measure);

/* Decides what is usual, when older segments are filled in. */
void span_choose(struct span *span);
struct fact span_fact(const struct span *span, int measure);
/* Seconds ago at which the frames became slower for good; NAN = they did not. */
double span_slower_since(const struct span *span);
