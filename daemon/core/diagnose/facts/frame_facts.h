/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_facts.h: measures frames, and folds what was measured into facts: means of now and of what
 * is usual, percentiles, what slow frames have in common, what throttled ones take. Pure.
 */
#pragma once

#include "daemon/core/diagnose/facts/facts.h"
#include "daemon/core/diagnose/facts/segments.h"

/* Those of stages are one for each. */
enum measure {
	FRAME_MS,
	FRAME_SQUARE, /* of frame_ms */
	BUSY_MS,
	LATENCY_MS,
	MISSED, /* 0 or 100 */
	RUN_DELAY_MS,
	MAJOR_FAULTS,
	MINOR_FAULTS,
	CPU_MS,
	STAGE_MS,
	WAIT_MS = STAGE_MS + FACTS_STAGES,
	TOOK_MS = WAIT_MS + FACTS_STAGES, /* an execution of the stage that is looked at */
	MEASURES
};

struct measures {
	float of[MEASURES][PAST_FRAMES]; /* a frame's; NAN = not known */
	column mean[MEASURES];		 /* a segment's */
	enum measure slow_by;
	bool slow[PAST_FRAMES];
	size_t around[FACTS_STAGES]; /* of stages: the measure that its time is a part of */
	double values[PAST_FRAMES];  /* scratch */
};

/* Fills of, and mean but for older segments. */
void measures_read(struct measures *measures, const struct past_frames *past,
	const struct span *span, double deadline_ms);
void facts_add_frames(struct facts *facts, struct measures *measures,
	const struct past_frames *past, const struct span *span);
/* Fills all numbers of the stage; its names are the caller's. */
void facts_add_stage(struct facts *facts, struct measures *measures, const struct past_frames *past,
	const struct span *span, size_t index);
/* Fills what the stage's deadline is compared with, and the measure TOOK_MS. */
void facts_add_deadline(struct facts *facts, struct measures *measures,
	const struct past_frames *past, const struct span *span, size_t index);
/* power: the means of power/total, mW. */
void facts_add_throttled(struct facts *facts, struct measures *measures,
	const struct past_frames *past, const struct span *span, const column power);
