/* The metrics process/<name>/… of one watched name: sums over its processes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/metrics.h"
#include "proto/name.h"

enum process_value {
	PROCESS_RSS,
	PROCESS_VMS,
	PROCESS_PEAK_RSS,
	PROCESS_CPU,
	PROCESS_USER,
	PROCESS_SYSTEM,
	PROCESS_THREADS,
	PROCESS_MEM_PERCENT,
	PROCESS_MINOR_FAULTS,
	PROCESS_MAJOR_FAULTS,
	PROCESS_VALUES
};

struct group {
	char name[PROTO_NAME_SIZE];
	bool wanted; /* by a watch */
	struct metric *metric[PROCESS_VALUES];
	struct metric *count_metric;
	double sum[PROCESS_VALUES]; /* NAN = of no process */
	uint32_t count;
};

/* Adds the metrics; one that is refused (limit, another owner) is left out. 0 or -ENOMEM. */
int group_open(struct group *group, struct metrics *metrics, struct source *source);
void group_retire(struct group *group, struct metrics *metrics);

void group_reset(struct group *group);
/* value[i] NAN = not known of this process. */
void group_add(struct group *group, const double value[PROCESS_VALUES]);
void group_commit(struct group *group);
