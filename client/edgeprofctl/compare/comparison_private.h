/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_private.h: declares the rows of a comparison, and what its parts share. */
#pragma once

#include "client/edgeprofctl/compare/comparison.h"
#include "client/edgeprofctl/compare/statistics.h"

struct row {
	char name[MEASURED_NAME_SIZE + 16];
	bool decides, higher_is_better;
	const char *worse, *better;
	struct estimate baseline, current;
	size_t baseline_count, current_count; /* values */
	struct difference difference;
	double adjusted_p;
};

struct comparison {
	const struct side *side[2];
	const struct comparison_options *options;
	size_t rows;
	struct row *row;
	size_t kept[2], all[2]; /* values of frames that match */
	bool out_of_memory;
};

/* Of three runs and more, the first is skipped. */
size_t comparison_first_run(const struct side *side);
/* The first run that failed; NULL: none. */
const struct measured *comparison_failed_run(const struct side *side);

/* The rows with their verdicts. */
cJSON *comparison_tree(const struct comparison *comparison);
