/* Part of the process collector: one process as a row for api and as a part of its names' sums. */
#include "daemon/collect/process/process_row.h"

#include <math.h>
#include <string.h>

void process_row_add(struct processes *processes, const struct watch *watch,
	const struct track *track, const struct proc_stat *stat, double memory_total)
{
	if (processes->rows == PROCESS_ROWS_MAX) {
		processes->refused++;
		return;
	}
	const struct proc_status *status = &track->status;
	struct process_row *row = &processes->row[processes->rows++];
	*row = (struct process_row){
		.pid = track->owner.pid,
		.start_ticks = track->owner.start_ticks,
		.uid = status->uid,
		.state = stat->state,
		.cpu_percent = track->user + track->system,
		.user_percent = track->user,
		.system_percent = track->system,
		.guest_percent = track->guest,
		.iodelay_percent = track->iodelay,
		.minor_faults = track->minor,
		.major_faults = track->major,
		.rss_bytes = status->rss_bytes,
		.vms_bytes = status->vms_bytes,
		.peak_rss_bytes = status->peak_rss_bytes,
		.mem_percent = status->rss_bytes / memory_total * 100,
		.iodelay_ticks = stat->scheduling_known && !track->iodelay_reason
					 ? (double)stat->iodelay_ticks
					 : (double)NAN,
		.iodelay_reason = track->iodelay_reason,
		.memory_limit_bytes = watch->memory_limit_bytes,
		.threads = stat->threads < UINT32_MAX ? (uint32_t)stat->threads : UINT32_MAX,
		.scheduling_known = stat->scheduling_known,
		.last_core = stat->last_core,
		.priority = stat->priority,
		.nice = stat->nice,
		.rt_priority = stat->rt_priority,
		.policy = stat->policy,
		.extra = track->extra,
		.t_ns = track->t_ns,
	};
	row->extra.t_ns = track->extra_ns;
	row->extra.pss_ns = track->pss_ns;
	row->extra.group_ns = track->group_ns;
	memcpy(row->watch, watch->name, sizeof(row->watch));
	memcpy(row->comm, stat->comm, sizeof(row->comm) - 1);
	memcpy(row->cpus, status->cpus, sizeof(row->cpus));
}

void process_row_sum(struct group *group, const struct track *track, const struct proc_stat *stat,
	double memory_total)
{
	const struct process_extra *extra = &track->extra;
	const struct proc_status *status = &track->status;
	double value[PROCESS_VALUES] = {
		[PROCESS_RSS] = status->rss_bytes,
		[PROCESS_VMS] = status->vms_bytes,
		[PROCESS_PEAK_RSS] = status->peak_rss_bytes,
		[PROCESS_CPU] = track->user + track->system,
		[PROCESS_USER] = track->user,
		[PROCESS_SYSTEM] = track->system,
		[PROCESS_THREADS] = (double)stat->threads,
		[PROCESS_MEM_PERCENT] = status->rss_bytes / memory_total * 100,
		[PROCESS_MINOR_FAULTS] = track->minor,
		[PROCESS_MAJOR_FAULTS] = track->major,
		[PROCESS_PSS] = extra->pss_bytes,
		[PROCESS_FDS] = extra->fds,
		[PROCESS_VOLUNTARY] = extra->voluntary,
		[PROCESS_INVOLUNTARY] = extra->involuntary,
		[PROCESS_RUN_DELAY] = extra->wait_percent,
		[PROCESS_IODELAY] = track->iodelay,
		[PROCESS_READ] = extra->read_bytes,
		[PROCESS_WRITE] = extra->write_bytes,
	};
	const char *reason[PROCESS_VALUES] = {
		[PROCESS_PSS] = extra->pss_reason,
		[PROCESS_FDS] = extra->fds_reason,
		[PROCESS_VOLUNTARY] = extra->switches_reason,
		[PROCESS_INVOLUNTARY] = extra->switches_reason,
		[PROCESS_RUN_DELAY] = extra->wait_reason,
		[PROCESS_IODELAY] = track->iodelay_reason,
		[PROCESS_READ] = extra->io_reason,
		[PROCESS_WRITE] = extra->io_reason,
	};
	for (size_t i = 0; i <= PROCESS_MIGRATIONS; i++) {
		value[PROCESS_COUNTER_FIRST + i] = extra->counter[i];
		reason[PROCESS_COUNTER_FIRST + i] = extra->counter_reason[i];
	}
	group_add(group, value, reason);
	group_oldest(&group->pss_ns, track->pss_ns);
	group_oldest(&group->extra_ns, track->extra_ns);
}
