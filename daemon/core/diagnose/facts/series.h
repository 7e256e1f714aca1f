/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.h: reads metrics from history along the segments of a diagnosis, and says what they were
 * like in its usual segments and now, how they grow, and whether they go with the frames' time.
 */
#pragma once

#include "daemon/core/core.h"
#include "daemon/core/diagnose/facts/facts.h"
#include "daemon/core/diagnose/facts/segments.h"

/* Scratch. */
struct series {
	column mean;	    /* NAN = nothing is known of that segment */
	double least, most; /* from the first segment of now on */
};

/* A metric by segment, up to the segment end. */
void series_read(const struct core *core, const char *path, const struct span *span, size_t end,
	struct series *ret);

/* All of FACT_METRICS. */
void series_gather(const struct core *core, const char *app, const struct span *span,
	struct series *scratch, struct facts *facts);
