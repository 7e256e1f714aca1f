/*
 * Threads for files that may hang, when they are opened, read or closed: at most WORKERS_MAX of
 * them, started when needed, one job a source. Whatever a job hangs on, the loop and the other
 * sources do not wait for it: a hung thread is left behind, with the memory that it uses, until the
 * file lets it go.
 */
#pragma once

#include <uv.h>

#include "daemon/collect/sched/collector.h"

enum { WORKERS_MAX = 4 };

struct workers;
struct worker_job;

enum worker_phase {
	WORKER_IDLE,
	WORKER_QUEUED,
	WORKER_RUNNING,
	WORKER_DONE, /* to be taken */
	WORKER_GONE, /* left, and closed since */
};

struct worker_result {
	int result;	      /* of probe or fetch */
	uint64_t finished_ns; /* CLOCK_MONOTONIC */
	uint64_t spent_ns;
	char reason[SOURCE_REASON_SIZE]; /* of probe */
};

/* wake: sent to when a job is done; the caller's, until workers_leave. The roots are duplicated for
 * the jobs. -ENOMEM, or the -errno of dup. */
int workers_create(uv_async_t *wake, const struct root *root, const struct root *real_root,
	struct workers **ret);

/* Nothing is sent to wake afterwards. Idle threads end; the last one that is busy frees what is
 * left. Accepts NULL. */
void workers_leave(struct workers *workers);

/* While hushed nothing is sent: the caller looks for answers itself afterwards. Saves the wake-up
 * for those that are quick. */
void workers_hush(struct workers *workers, bool hushed);

/* Waits until no job runs or is queued, at most limit_ns. */
void workers_wait(struct workers *workers, uint64_t limit_ns);

/* A job for ops->probe, with a copy of the options (may be NULL), then for ops->fetch. state: NULL,
 * or what was opened without a probe. -ENOMEM. */
int worker_job_create(struct workers *workers, const struct collector_ops *ops,
	const struct source_options *options, void *state, struct worker_job **ret);

/* Queues fetch, or probe while there is no state; only when idle. Nothing runs before workers_go.
 * Allocates nothing. */
void worker_job_start(struct worker_job *job);

/* What probe opened, as long as it is idle. */
void *worker_job_state(const struct worker_job *job);

/* Threads for what is queued: once for all jobs of a tick, so that they do not stop the loop at the
 * lock while it still queues. */
void workers_go(struct workers *workers);

/* How many there are; fewer than WORKERS_MAX while a job waits: the system refuses more. */
unsigned workers_threads(struct workers *workers);

enum worker_phase worker_job_phase(struct worker_job *job);

/* Done becomes idle: the state is the caller's again. */
void worker_job_take(struct worker_job *job, struct worker_result *ret);

/* Gives the state away: ops->close is called by a thread, after what runs has returned. True when
 * there is nothing to close. */
bool worker_job_leave(struct worker_job *job);

/* Only after worker_job_leave. Accepts NULL. */
void worker_job_release(struct worker_job *job);
