/*
 * Threads for files whose reading may hang: at most WORKERS_MAX of them, started when needed, one
 * job a source. Whatever a job hangs on, the loop and the other sources do not wait for it: a hung
 * thread is left behind, with the memory that it uses, until its read returns.
 */
#pragma once

#include <uv.h>

#include "daemon/collect/collector.h"

enum { WORKERS_MAX = 4 };

struct workers;
struct worker_job;

enum worker_phase {
	WORKER_IDLE,
	WORKER_QUEUED,
	WORKER_RUNNING,
	WORKER_DONE, /* to be taken */
	WORKER_GONE, /* left while it ran, and over since */
};

struct worker_result {
	int result;	      /* of fetch */
	uint64_t finished_ns; /* CLOCK_MONOTONIC */
	uint64_t spent_ns;
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

/* A job for ops->fetch of state. -ENOMEM. */
int worker_job_create(struct workers *workers, const struct collector_ops *ops, void *state,
	struct worker_job **ret);

/* Queues the job, only when idle; nothing runs before workers_go. Allocates nothing. */
void worker_job_start(struct worker_job *job);

/* Threads for what is queued: once for all jobs of a tick, so that they do not stop the loop at the
 * lock while it still queues. */
void workers_go(struct workers *workers);

enum worker_phase worker_job_phase(struct worker_job *job);

/* Done becomes idle: the state is the caller's again. */
void worker_job_take(struct worker_job *job, struct worker_result *ret);

/* Gives the state away: ops->close is called now, or, when fetch is at it, by its thread once it
 * returns. True when it is closed already. */
bool worker_job_leave(struct worker_job *job);

/* Only after worker_job_leave. Accepts NULL. */
void worker_job_release(struct worker_job *job);
