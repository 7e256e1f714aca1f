/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: runs jobs on threads that may be abandoned. One mutex of the pool guards everything but
 * the data of a running job, which belongs to its thread; it passes through the mutex in both
 * directions. The last holder of a job (its owner, or the queue and the thread that runs it) and of
 * the pool (its owner, or a thread that returned late) frees it. One idle thread, the timekeeper,
 * waits for the start of what is queued for later: as it wakes itself, a tick costs the kernel one
 * switch of that thread and one of the loop. */
#include "daemon/util/offload/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "daemon/util/detached.h"
#include "daemon/util/sysops.h"

TAILQ_HEAD(job_queue, offload_job);

struct offload_pool {
	struct offload_pool_options options;
	pthread_mutex_t lock;
	pthread_cond_t work;  /* something is queued, or the pool is detached */
	pthread_cond_t rest;  /* a job has ended */
	pthread_cond_t alarm; /* the timekeeper is needed before its time */
	bool by_itself; /* the timekeeper does all that is awaited, and wakes the loop at its end */
	bool awaited;	/* a job whose end the loop waits for has ended since it was woken */
	struct job_queue queue, later;
	unsigned queued, running, idle, threads;
	bool timekeeper;    /* a thread, none of the idle ones, waits for start_ns */
	uint64_t start_ns;  /* of what is queued for later, on the caller's clock; 0 = none */
	uint64_t step_ns;   /* between two starts */
	uint64_t asked_ns;  /* the last start that was asked for */
	uint64_t offset_ns; /* of CLOCK_MONOTONIC to the caller's clock, modulo 2^64 */
	unsigned refs;	    /* of the owner and each thread */
};

struct offload_job {
	TAILQ_ENTRY(offload_job) next;
	struct offload_pool *pool;
	const struct offload_ops *ops;
	void *data;
	enum offload_phase phase;
	bool detached;
	bool skip_work; /* it is only queued to be released */
	bool later;	/* which queue it is in */
	unsigned refs;	/* of the owner, and of the queue or the thread that runs it */
	int result;
};

int offload_pool_create(const struct offload_pool_options *options, struct offload_pool **ret)
{
	struct offload_pool *pool = mem_zalloc(sizeof(*pool));
	pthread_condattr_t attributes;
	if (!pool) {
		return -ENOMEM;
	}
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, &attributes);
	pthread_cond_init(&pool->rest, &attributes);
	pthread_cond_init(&pool->alarm, &attributes);
	pthread_condattr_destroy(&attributes);
	TAILQ_INIT(&pool->queue);
	TAILQ_INIT(&pool->later);
	pool->options = *options;
	pool->refs = 1;
	*ret = pool;
	return 0;
}

/* Called with the lock held, which it releases. */
static void pool_unref(struct offload_pool *pool)
{
	bool last = --pool->refs == 0;
	pthread_mutex_unlock(&pool->lock);
	if (!last) {
		return;
	}
	if (pool->options.release) {
		pool->options.release(pool->options.ctx);
	}
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->rest);
	pthread_cond_destroy(&pool->alarm);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Called with the lock held. */
static void enqueue(struct offload_job *job, bool later)
{
	struct offload_pool *pool = job->pool;
	const bool unawaited = job->ops->unawaited;
	later = later && (!unawaited || (pool->step_ns > 0 && pool->step_ns <= 1000000000));
	struct offload_job *behind = later && !unawaited ? TAILQ_FIRST(&pool->later) : NULL;
	while (behind && !behind->ops->unawaited) {
		behind = TAILQ_NEXT(behind, next);
	}
	job->phase = OFFLOAD_QUEUED;
	job->later = later;
	job->refs++;
	if (behind) {
		TAILQ_INSERT_BEFORE(behind, job, next);
	} else if (later) {
		TAILQ_INSERT_TAIL(&pool->later, job, next);
	} else {
		TAILQ_INSERT_TAIL(&pool->queue, job, next);
		pool->queued++;
	}
}

/* Called with the lock held. The queue's reference becomes the caller's. */
static void dequeue(struct offload_job *job)
{
	struct offload_pool *pool = job->pool;
	if (job->later) {
		TAILQ_REMOVE(&pool->later, job, next);
	} else {
		TAILQ_REMOVE(&pool->queue, job, next);
		pool->queued--;
	}
}

/* Called with the lock held. */
static void job_unref(struct offload_job *job)
{
	if (--job->refs == 0) {
		free(job);
	}
}

/* Called with the lock held, which it releases while work and release run. */
static void run_job(struct offload_pool *pool, struct offload_job *job)
{
	bool skip_work = job->skip_work, unawaited = job->ops->unawaited;
	int result = 0;
	dequeue(job);
	job->phase = OFFLOAD_RUNNING;
	pool->running++;
	pthread_mutex_unlock(&pool->lock);
	if (!skip_work) {
		result = job->ops->work(job->data);
	}
	pthread_mutex_lock(&pool->lock);
	if (job->detached) { /* Released here, not on the loop: closing a file may hang, too. */
		pthread_mutex_unlock(&pool->lock);
		job->ops->release(job->data);
		pthread_mutex_lock(&pool->lock);
	}
	job->result = result;
	job->phase = job->detached ? OFFLOAD_GONE : OFFLOAD_DONE;
	job_unref(job);
	pool->running--;
	if (pool->running + pool->queued == 0) {
		pthread_cond_broadcast(&pool->rest);
	}
	const struct offload_job *next = TAILQ_FIRST(&pool->queue);
	pool->by_itself = pool->by_itself && next && !next->ops->unawaited;
	pool->awaited |= !unawaited;
	if (pool->options.wake && pool->awaited && !pool->by_itself) {
		pool->awaited = false;
		uv_async_send(pool->options.wake);
	}
}

/* Called with the lock held. False: nothing was queued for later. */
static bool start_later(struct offload_pool *pool)
{
	struct offload_job *job = TAILQ_FIRST(&pool->later);
	bool any = job != NULL;
	while ((job = TAILQ_FIRST(&pool->later))) {
		TAILQ_REMOVE(&pool->later, job, next);
		job->later = false;
		TAILQ_INSERT_TAIL(&pool->queue, job, next);
		pool->queued++;
	}
	pool->start_ns = 0;
	return any;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Called with the lock held, which it releases meanwhile. */
static void keep_time(struct offload_pool *pool)
{
	const uint64_t start_ns = pool->start_ns;
	const struct timespec until = timespec_of(start_ns + pool->offset_ns);
	pool->timekeeper = true;
	int r = pthread_cond_timedwait(&pool->alarm, &pool->lock, &until);
	pool->timekeeper = false;
	if (r == ETIMEDOUT && pool->start_ns == start_ns && start_later(pool)) {
		pool->by_itself = true;
		/* the next one, unless another is asked for: without it the loop would wake this
		 * thread only to say so */
		pool->start_ns = pool->step_ns > 0 ? start_ns + pool->step_ns : 0;
	}
}

static void *run_pool(void *ctx)
{
	struct offload_pool *pool = ctx;
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct offload_job *job = TAILQ_FIRST(&pool->queue);
		if (job) {
			run_job(pool, job);
		} else if (pool->options.wake && pool->start_ns > 0 && !pool->timekeeper) {
			keep_time(pool);
		} else if (pool->options.wake) {
			pool->idle++;
			pthread_cond_wait(&pool->work, &pool->lock);
			pool->idle--;
		} else {
			break;
		}
	}
	pool_unref(pool);
	return NULL;
}

void offload_pool_detach(struct offload_pool *pool)
{
	if (!pool) {
		return;
	}
	pthread_mutex_lock(&pool->lock);
	pool->options.wake = NULL;
	pthread_cond_broadcast(&pool->work);
	pthread_cond_signal(&pool->alarm);
	struct offload_job *job;
	while (pool->threads == 0 && (job = TAILQ_FIRST(&pool->queue))) {
		run_job(pool, job); /* There is nobody else who releases it. */
	}
	pool_unref(pool);
}

/* Called with the lock held, which it releases. max: threads. */
static int dispatch(struct offload_pool *pool, unsigned max)
{
	int r = 0;
	unsigned wanted = pool->queued < max ? pool->queued : max;
	unsigned sleepers = wanted < pool->idle ? wanted : pool->idle;
	bool timekeeper = wanted > sleepers && pool->timekeeper;
	for (unsigned have = sleepers + timekeeper;
		r == 0 && have < wanted && pool->threads < pool->options.threads_max; have++) {
		r = detached_start(pool->options.stack_bytes, run_pool, pool);
		pool->threads += r == 0;
		pool->refs += r == 0;
	}
	pool->by_itself = false;
	pthread_mutex_unlock(&pool->lock);
	/* Not with the lock held, on which a thread would stop again at once. */
	for (unsigned i = 0; i < sleepers; i++) {
		pthread_cond_signal(&pool->work);
	}
	if (timekeeper) {
		pthread_cond_signal(&pool->alarm);
	}
	return r;
}

int offload_pool_dispatch(struct offload_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	return dispatch(pool, pool->options.threads_max);
}

int offload_pool_dispatch_one(struct offload_pool *pool, bool later)
{
	pthread_mutex_lock(&pool->lock);
	if (later && !TAILQ_EMPTY(&pool->later)) { /* else the next start stays as it is */
		(void)start_later(pool);
	}
	return dispatch(pool, 1);
}

void offload_pool_start_at(struct offload_pool *pool, uint64_t at_ns, uint64_t now_ns)
{
	pthread_mutex_lock(&pool->lock);
	const bool earlier = pool->timekeeper && at_ns < pool->start_ns;
	if (at_ns != pool->asked_ns) {
		pool->step_ns =
			at_ns > pool->asked_ns && pool->asked_ns > 0 ? at_ns - pool->asked_ns : 0;
		pool->asked_ns = at_ns;
	}
	pool->start_ns = at_ns;
	pool->offset_ns = monotonic_ns() - now_ns;
	const bool nobody = !pool->timekeeper && pool->idle > 0;
	pthread_mutex_unlock(&pool->lock);
	if (earlier) {
		pthread_cond_signal(&pool->alarm);
	} else if (nobody) {
		pthread_cond_signal(&pool->work);
	}
}

void offload_pool_wait(struct offload_pool *pool, uint64_t limit_ns)
{
	const struct timespec until = timespec_of(monotonic_ns() + limit_ns);
	int r = 0;
	pthread_mutex_lock(&pool->lock);
	while (r == 0 && pool->running + pool->queued > 0) {
		r = pthread_cond_timedwait(&pool->rest, &pool->lock, &until);
	}
	pthread_mutex_unlock(&pool->lock);
}

unsigned offload_pool_threads(struct offload_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	unsigned threads = pool->threads;
	pthread_mutex_unlock(&pool->lock);
	return threads;
}

bool offload_pool_behind(struct offload_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	const struct offload_job *job = TAILQ_FIRST(&pool->queue);
	while (job && job->ops->unawaited) {
		job = TAILQ_NEXT(job, next);
	}
	bool behind = job && (pool->idle > 0 || pool->timekeeper ||
				     pool->threads < pool->options.threads_max);
	pthread_mutex_unlock(&pool->lock);
	return behind;
}

int offload_job_create(struct offload_pool *pool, const struct offload_ops *ops, void *data,
	struct offload_job **ret)
{
	struct offload_job *job = mem_zalloc(sizeof(*job));
	if (!job) {
		return -ENOMEM;
	}
	job->pool = pool;
	job->ops = ops;
	job->data = data;
	job->refs = 1;
	*ret = job;
	return 0;
}

void offload_job_queue(struct offload_job *job, bool later)
{
	pthread_mutex_lock(&job->pool->lock);
	enqueue(job, later);
	pthread_mutex_unlock(&job->pool->lock);
}

void offload_job_cancel(struct offload_job *job)
{
	pthread_mutex_lock(&job->pool->lock);
	if (job->phase == OFFLOAD_QUEUED) {
		dequeue(job);
		job->phase = OFFLOAD_IDLE;
		job_unref(job);
	}
	pthread_mutex_unlock(&job->pool->lock);
}

enum offload_phase offload_job_phase(struct offload_job *job)
{
	pthread_mutex_lock(&job->pool->lock);
	enum offload_phase phase = job->phase;
	pthread_mutex_unlock(&job->pool->lock);
	return phase;
}

int offload_job_accept(struct offload_job *job)
{
	pthread_mutex_lock(&job->pool->lock);
	int result = job->result;
	job->phase = OFFLOAD_IDLE;
	pthread_mutex_unlock(&job->pool->lock);
	return result;
}

bool offload_job_detach(struct offload_job *job, bool (*trivial)(const void *data))
{
	pthread_mutex_lock(&job->pool->lock);
	job->detached = true;
	job->skip_work = trivial || job->phase != OFFLOAD_QUEUED;
	bool gone = job->phase != OFFLOAD_RUNNING && trivial && trivial(job->data);
	if (gone) {
		if (job->phase == OFFLOAD_QUEUED) {
			dequeue(job);
			job->refs--; /* the caller has one, too */
		}
		job->phase = OFFLOAD_GONE;
	} else if (job->phase == OFFLOAD_QUEUED && job->later) {
		dequeue(job);
		job->refs--; /* the caller has one, too */
		enqueue(job, false);
	} else if (job->phase == OFFLOAD_IDLE || job->phase == OFFLOAD_DONE) {
		enqueue(job, false);
	}
	pthread_mutex_unlock(&job->pool->lock);
	if (gone) {
		job->ops->release(job->data);
	}
	return gone;
}

void offload_job_unref(struct offload_job *job)
{
	if (!job) {
		return;
	}
	struct offload_pool *pool = job->pool;
	pthread_mutex_lock(&pool->lock);
	job_unref(job);
	pthread_mutex_unlock(&pool->lock);
}
