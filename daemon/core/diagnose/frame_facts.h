/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_facts.h: computes what a diagnosis needs to know of single frames and executions: their
 * percentiles, what slow ones have in common, what throttled ones take. Pure.
 */
#pragma once

#include "daemon/core/diagnose/facts.h"
#include "daemon/core/diagnose/segments.h"
#include "daemon/core/diagnose/series.h"

enum { EXECUTIONS = 512 /* of a stage whose percentiles are exact: the newest */ };

/* Executions of stages now. */
struct executions {
	const struct past_frames *past;
	const struct app *app;
	double frames;	    /* in the same time */
	uint8_t stage[256]; /* by name: index + 1; 0 = not looked up, FACTS_STAGES + 1 = none */
	struct {
		size_t count;
		double sum_ms, cpu_ms, cpu_of_ms; /* cpu_of_ms: of those that measured it */
		double ms[EXECUTIONS];
	} of[FACTS_STAGES];
};

void executions_read(struct executions *executions, const struct app *app,
	const struct past_frames *past, const struct span *span, uint64_t until_ns);

/* values: scratch of PAST_FRAMES. */
void facts_add_percentiles(struct facts *facts, const struct span *span,
	const struct past_frames *past, double *values);
void facts_add_slow(struct facts *facts, const struct span *span, const struct past_frames *past,
	double *values);
/* power: the means of power/total, mW. */
void facts_add_throttled(struct facts *facts, const struct span *span,
	const struct past_frames *past, const struct series *power, double *values);
