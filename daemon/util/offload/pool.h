/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h: runs jobs again and again on a few threads. Every job can be abandoned: when what it
 * waits for never answers, its thread is left behind with the job's data, which it releases when it
 * returns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct offload_ops {
	int (*work)(void *data);			 /* on the thread, which owns data */
	void (*done)(void *ctx, int result, void *data); /* offload_start(): on the loop, once */
	void (*release)(void *data);			 /* of an abandoned job, on any thread */
	bool unawaited; /* its end wakes nobody: whoever wants the result looks for it */
};

struct offload_pool;
struct offload_job;

enum offload_phase {
	OFFLOAD_IDLE,
	OFFLOAD_QUEUED,
	OFFLOAD_RUNNING,
	OFFLOAD_DONE, /* until it is accepted */
	OFFLOAD_GONE, /* abandoned, and released since */
};

struct offload_pool_options {
	uv_async_t *wake; /* sent to when a job is done; the caller's, until the pool is detached */
	unsigned threads_max; /* started when needed */
	size_t stack_bytes;
	void (*release)(void *ctx); /* after the last thread has ended; may be NULL */
	void *ctx;
};

/* Copies the options. -ENOMEM. */
int offload_pool_create(const struct offload_pool_options *options, struct offload_pool **ret);

/* Nothing is sent to wake afterwards. Threads end when the queue is empty; the last one that
 * returns frees the pool. Every job has been abandoned and unreferenced before. Accepts NULL. */
void offload_pool_detach(struct offload_pool *pool);

/* Wakes or starts threads for what is queued: once for all jobs of a tick, so that they do not stop
 * the loop at the lock while it still queues. 0, or -errno: no further thread could be started. */
int offload_pool_dispatch(struct offload_pool *pool);

/* The same, with one thread for all of it, and of what is queued for later as well where later is
 * set: each wake-up costs more than a quick job. */
int offload_pool_dispatch_one(struct offload_pool *pool, bool later);

/* A thread that has nothing else to do begins at at_ns, on a clock that shows now_ns, with what is
 * queued for later, does all of it, and sends one wake-up at the end. It wakes itself, and also for
 * the next start if that is as long after this one as this one is after the one before. While all
 * threads are busy nothing begins. */
void offload_pool_start_at(struct offload_pool *pool, uint64_t at_ns, uint64_t now_ns);

/* Waits until no job runs or is queued, at most limit_ns; not for what is queued for later. */
void offload_pool_wait(struct offload_pool *pool, uint64_t limit_ns);

/* The number of threads; fewer than threads_max while a job is queued: the system refuses more. */
unsigned offload_pool_threads(struct offload_pool *pool);

/* True when jobs are queued that are awaited and that a further thread could do. */
bool offload_pool_behind(struct offload_pool *pool);

/* An idle job of the pool. ops->done is not used. -ENOMEM. */
int offload_job_create(struct offload_pool *pool, const struct offload_ops *ops, void *data,
	struct offload_job **ret);

/* Queues an idle job. Nothing runs before offload_pool_dispatch(); what is queued for later, before
 * offload_pool_start_at(): what is unawaited last, and not for later where starts are rare.
 * Allocates nothing. */
void offload_job_queue(struct offload_job *job, bool later);

/* Makes a queued job idle that no thread has begun. */
void offload_job_cancel(struct offload_job *job);

enum offload_phase offload_job_phase(struct offload_job *job);

/* A done job becomes idle: its result; data is the caller's until it is queued again. */
int offload_job_accept(struct offload_job *job);

/* Abandons the job: ops->release(data) is called on a thread, after what runs has returned. trivial
 * says of a job that does not run that releasing it cannot block, so that it is released at once:
 * true. NULL: none is trivial, and queued work is still done before the release. */
bool offload_job_detach(struct offload_job *job, bool (*trivial)(const void *data));

/* Only after offload_job_detach(). Accepts NULL. */
void offload_job_unref(struct offload_job *job);
