/* SPDX-License-Identifier: Apache-2.0 */
/* explain_private.h: declares what explain.c and explain_causes.c share: one frame and what is
 * usual. */
#pragma once

#include "daemon/core/diagnose/explain.h"

/* What is measured of a frame; DELTA: since the end of the frame before. Then the time of each
 * stage, then the wait before each. */
enum value {
	TOOK,
	DELTA,
	RUN_DELAY,
	INVOLUNTARY,
	MAJOR_FAULTS,
	MINOR_FAULTS,
	CPU,
	BLOCKED,
	THROTTLED,
	OUTSIDE,
	STAGE,
	WAIT = STAGE + FACTS_STAGES,
	VALUES = WAIT + FACTS_STAGES
};

static const double SCATTERS = 3;     /* median absolute deviations that are chance */
static const double SHARE_MIN = 0.02; /* of the excess: less is not listed */
static const double MS_MIN = 0.05;
static const double RANK_OWN = 1e3, RANK_KNOWN = 1e6, RANK_WHERE = 1e9;

struct slow_frame {
	const struct past_frames *frames;
	const struct past_frame *frame;
	const struct past_frame *compared[EXPLAIN_FRAMES];
	/* of the compared frames: median, median absolute deviation; NAN = not known */
	double value[VALUES], usual[VALUES], scatter[VALUES];
	double excess_ms;
	double cpu_ms, other_ms; /* of the excess, not explained yet */
	bool divided;		 /* CPU time is known; else other_ms is all of it */
	bool clocked[2];	 /* a clock that fell is listed: [true] of the CPU */
	const char *pressed;	 /* the highest of high pressures at its time; NULL = none */
	double pressed_percent;
	struct explanation *ret;
};

/* The median, not known unless half of the values are. Changes their order. */
double usual_of(double *values, size_t count, double *scatter);

/* How much more than usual, unless that is chance or less than min; else 0. */
double excess_of(const struct slow_frame *slow, size_t k, double min);

/* In the order of ranks; what is too much is what ranks lowest. */
void explanation_add(struct explanation *ret, const struct difference *difference);

/* Divides the excess among causes. */
void explain_causes(
	struct slow_frame *slow, const struct explain_series *series, size_t series_count);
