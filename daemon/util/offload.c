/* SPDX-License-Identifier: Apache-2.0 */
/* offload.c: runs jobs on threads that may be abandoned. One mutex of the pool guards everything
 * but the data of a running job, which belongs to its thread; it passes through the mutex in both
 * directions. The last holder of a job (its owner, or the queue and the thread that runs it) and of
 * the pool (its owner, or a thread that returned late) frees it. */
#include "daemon/util/offload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "daemon/util/sysops.h"

#define STACK_BYTES ((size_t)128 * 1024)

struct offload_pool {
	struct offload_pool_options options;
	pthread_mutex_t lock;
	pthread_cond_t work,
		rest; /* something is queued, or the pool is detached; a job has ended */
	bool corked;
	TAILQ_HEAD(, offload_job) queue;
	unsigned queued, running, idle, threads;
	unsigned refs; /* of the owner and each thread */
};

struct offload_job {
	TAILQ_ENTRY(offload_job) next;
	struct offload_pool *pool;
	const struct offload_ops *ops;
	void *data;
	enum offload_phase phase;
	bool detached;
	bool skip_work; /* it is only queued to be released */
	unsigned refs;	/* of the owner, and of the queue or the thread that runs it */
	int result;
};

struct offload {
	uv_async_t wake;
	struct offload_pool *pool;
	struct offload_job *job;
	void *ctx;
};

int detached_start(size_t stack_bytes, void *(*work)(void *ctx), void *ctx)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0) {
		return -ENOMEM;
	}
	pthread_attr_setstacksize(&attributes, stack_bytes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* Signals are the main thread's. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&thread, &attributes, work, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}

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
	pthread_condattr_destroy(&attributes);
	TAILQ_INIT(&pool->queue);
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
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Called with the lock held. */
static void enqueue(struct offload_job *job)
{
	job->phase = OFFLOAD_QUEUED;
	job->refs++;
	TAILQ_INSERT_TAIL(&job->pool->queue, job, next);
	job->pool->queued++;
}

/* Called with the lock held. The queue's reference becomes the caller's. */
static void dequeue(struct offload_job *job)
{
	TAILQ_REMOVE(&job->pool->queue, job, next);
	job->pool->queued--;
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
	bool skip_work = job->skip_work;
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
	pthread_cond_broadcast(&pool->rest);
	if (pool->options.wake && !pool->corked) {
		uv_async_send(pool->options.wake);
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
	struct offload_job *job;
	while (pool->threads == 0 && (job = TAILQ_FIRST(&pool->queue))) {
		run_job(pool, job); /* There is nobody else who releases it. */
	}
	pool_unref(pool);
}

void offload_pool_cork(struct offload_pool *pool, bool corked)
{
	pthread_mutex_lock(&pool->lock);
	pool->corked = corked;
	pthread_mutex_unlock(&pool->lock);
}

int offload_pool_dispatch(struct offload_pool *pool)
{
	int r = 0;
	pthread_mutex_lock(&pool->lock);
	unsigned sleepers = pool->queued < pool->idle ? pool->queued : pool->idle;
	for (unsigned have = pool->idle;
		r == 0 && have < pool->queued && pool->threads < pool->options.threads_max;
		have++) {
		r = detached_start(pool->options.stack_bytes, run_pool, pool);
		pool->threads += r == 0;
		pool->refs += r == 0;
	}
	pthread_mutex_unlock(&pool->lock);
	/* Not with the lock held, on which a thread would stop again at once. */
	for (unsigned i = 0; i < sleepers; i++) {
		pthread_cond_signal(&pool->work);
	}
	return r;
}

void offload_pool_wait(struct offload_pool *pool, uint64_t limit_ns)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	limit_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(limit_ns / 1000000000);
	until.tv_nsec = (long)(limit_ns % 1000000000);
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

void offload_job_queue(struct offload_job *job)
{
	pthread_mutex_lock(&job->pool->lock);
	enqueue(job);
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
			job_unref(job);
		}
		job->phase = OFFLOAD_GONE;
	} else if (job->phase == OFFLOAD_IDLE || job->phase == OFFLOAD_DONE) {
		enqueue(job);
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

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void offload_close(struct offload *offload)
{
	offload_job_unref(offload->job);
	offload_pool_detach(offload->pool);
	uv_close((uv_handle_t *)&offload->wake, on_closed);
}

static void deliver(struct offload *offload)
{
	const struct offload_ops *ops = offload->job->ops;
	void *data = offload->job->data, *ctx = offload->ctx;
	int result = offload_job_accept(offload->job);
	offload_close(offload);
	ops->done(ctx, result, data);
}

static void on_wake(uv_async_t *wake)
{
	struct offload *offload = wake->data;
	if (offload_job_phase(offload->job) == OFFLOAD_DONE) {
		deliver(offload);
	}
}

bool offload_wait(struct offload *offload, unsigned ms)
{
	offload_pool_wait(offload->pool, ms * UINT64_C(1000000));
	bool done = offload_job_phase(offload->job) == OFFLOAD_DONE;
	if (done) {
		deliver(offload);
	}
	return done;
}

int offload_start(
	uv_loop_t *loop, const struct offload_ops *ops, void *data, void *ctx, struct offload **ret)
{
	struct offload *offload = mem_zalloc(sizeof(*offload));
	int r = offload ? uv_async_init(loop, &offload->wake, on_wake) : -ENOMEM;
	if (r < 0) {
		free(offload);
		return r;
	}
	const struct offload_pool_options options = {
		.wake = &offload->wake, .threads_max = 1, .stack_bytes = STACK_BYTES};
	offload->wake.data = offload;
	offload->ctx = ctx;
	r = offload_pool_create(&options, &offload->pool);
	r = r < 0 ? r : offload_job_create(offload->pool, ops, data, &offload->job);
	if (r < 0) {
		goto error;
	}
	offload_job_queue(offload->job);
	r = offload_pool_dispatch(offload->pool);
	if (r == 0) {
		*ret = offload;
		return 0;
	}
	dequeue(offload->job); /* No thread has it: data stays the caller's. */
	job_unref(offload->job);
error:
	offload_close(offload);
	return r;
}

void offload_detach(struct offload *offload)
{
	(void)offload_job_detach(offload->job, NULL);
	(void)offload_pool_dispatch(offload->pool);
	offload_close(offload);
}
