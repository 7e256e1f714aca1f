/* The inside of struct history, for history.c and history_read.c only. */
#pragma once

#include "daemon/core/history_group.h"

struct history {
	struct history_pool pool;
	struct history_group *groups[SOURCES_MAX];
	/* By slot of the metric: serial + 1 of the one that has a column or whose name did not fit;
	 * 0 = none. */
	uint64_t bound[METRICS_MAX];
	uint64_t refused[METRICS_MAX];
	uint64_t refused_count;
	uint64_t rows, samples;
};
