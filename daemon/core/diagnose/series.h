/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.h: reads metrics from history along the segments of a diagnosis, and says what they were
 * like in its usual segments and now, how they grow, and whether they go with the frames' time.
 */
#pragma once

#include "daemon/core/core.h"
#include "daemon/core/diagnose/facts.h"
#include "daemon/core/diagnose/segments.h"

/* Scratch. */
struct series {
	double mean[FACTS_SEGMENTS]; /* NAN = nothing is known of that segment */
	double least, most;	     /* from the first segment of now on */
	double slopes[FACTS_SEGMENTS * (FACTS_SEGMENTS - 1) / 2];
};

/* The means of a metric by segment, in [first, end). */
void series_read(const struct core *core, const char *path, const struct span *span, size_t first,
	size_t end, struct series *ret);

/* Theil–Sen slope a second over the segments, and the lower bound of its 95 % interval. */
void series_slope(struct series *series, const struct span *span, double *slope, double *slope_low);
/* Spearman's rank correlation with the frames' time; NAN below 8 segments, or when one of the two
 * never changes. */
double series_match(const struct series *series, const struct span *span);

/* All of FACT_METRICS. */
void series_gather(const struct core *core, const char *app, const struct span *span,
	struct series *scratch, struct facts *facts);
