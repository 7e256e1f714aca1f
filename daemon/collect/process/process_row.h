/* What was read of one process, as others get it. */
#pragma once

#include "daemon/collect/process/group.h"
#include "daemon/collect/process/proc_track.h"
#include "daemon/collect/process/procfs.h"
#include "daemon/core/metrics/processes.h"

/* The next row of the table; counted as refused when that is full. */
void process_row_add(struct processes *processes, const struct watch *watch,
	const struct track *track, const struct proc_stat *stat, double memory_total);

/* Its part of the sums of a name. */
void process_row_sum(struct group *group, const struct track *track, const struct proc_stat *stat,
	double memory_total);
