/* The inside of struct history, for history.c, history_bucket.c and history_read.c only. */
#pragma once

#include "daemon/core/history/group.h"

struct history {
	struct history_pool pool;
	struct history_list groups[HISTORY_TIERS][SOURCES_MAX];
	/* By slot of the metric: serial + 1 of the one that has a column or whose name did not fit;
	 * 0 = none. */
	uint64_t bound[METRICS_MAX];
	uint64_t refused[METRICS_MAX];
	/* the same of one that had a value once: a name that guests make up has a column from its
	 * second on */
	uint64_t seen[METRICS_MAX];
	uint64_t refused_count;
	uint64_t rows, samples;
};

/* history_read from the samples only: a coarser tier is made of it. */
size_t history_read_full(struct history *history, struct history_cursor *cursor,
	struct history_point *points, size_t max, bool *done);
