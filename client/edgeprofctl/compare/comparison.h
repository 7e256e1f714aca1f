/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h: compares two sides, each of one or several runs, row by row, and describes sides.
 * The results are JSON objects, which all formats show.
 */
#pragma once

#include "client/edgeprofctl/compare/measured.h"

/* Runs that are compared as one. */
struct side {
	char label[MEASURED_NAME_SIZE];
	size_t count;
	const struct measured *run[MEASURED_RUNS_MAX];
	const struct measured *failed; /* the first run that did; NULL: none */
};

/* {"baseline", "current", "verdict", "rows", "environment", …}, by --threshold, --metric and
 * --thermal. */
cJSON *compare_sides(
	const struct options *options, const struct side *baseline, const struct side *current);

/* {"name", "mean_ms", "p95_ms", "max_fps", "size_mb", "accuracy", "error", …}, with the difference
 * of the mean and of the accuracy to the first side, which is NULL for that one. */
cJSON *describe_side(const struct side *side, const cJSON *first);

/* The result {"verdict", "comparisons", "variants"} in a format. */
void comparison_text(struct ctl *ctl, const cJSON *result);
void comparison_table(struct ctl *ctl, const cJSON *result);
void comparison_markdown(struct ctl *ctl, const cJSON *result);
void comparison_junit(struct ctl *ctl, const cJSON *result);
