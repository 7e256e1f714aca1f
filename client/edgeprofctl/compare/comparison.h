/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h: compares two sides, each of one or several runs, row by row, and several sides in a
 * table. The results are JSON objects, which all formats show.
 */
#pragma once

#include "client/edgeprofctl/compare/measured.h"

struct comparison_options {
	double threshold_percent;
	const char *metric; /* glob of the rows to compare; NULL: the usual ones */
	bool thermal;	    /* only values of temperatures and clocks that both sides have */
};

/* {"baseline", "current", "verdict", "rows", "environment", …}; NULL: no memory. */
cJSON *compare_sides(const struct side *baseline, const struct side *current,
	const struct comparison_options *options);

/* {"name", "mean_ms", "p95_ms", "max_fps", "size_mb", "accuracy", "error"}; NULL: no memory. */
cJSON *describe_side(const struct side *side);
