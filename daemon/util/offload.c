/* What loop and thread share is freed by the last of the two. */
#include "daemon/util/offload.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/util/detached.h"
#include "daemon/util/sysops.h"

#define STACK_BYTES ((size_t)128 * 1024)

struct shared {
	pthread_mutex_t lock;
	struct offload *job; /* NULL: left */
	const struct offload_ops *ops;
	void *data;
	bool running;
	int result;
};

struct offload {
	uv_async_t wake;
	struct shared *shared;
	void *ctx;
};

static void shared_free(struct shared *shared)
{
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

static void *work(void *arg)
{
	struct shared *shared = arg;
	int result = shared->ops->work(shared->data);
	pthread_mutex_lock(&shared->lock);
	shared->result = result;
	shared->running = false;
	bool left = !shared->job;
	if (!left) {
		uv_async_send(&shared->job->wake);
	}
	pthread_mutex_unlock(&shared->lock);
	if (left) {
		shared->ops->release(shared->data);
		shared_free(shared);
	}
	return NULL;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_wake(uv_async_t *wake)
{
	struct offload *job = wake->data;
	struct shared *shared = job->shared;
	pthread_mutex_lock(&shared->lock);
	bool running = shared->running;
	pthread_mutex_unlock(&shared->lock);
	if (running) {
		return;
	}
	uv_close((uv_handle_t *)wake, on_closed);
	const struct offload_ops *ops = shared->ops;
	int result = shared->result;
	void *data = shared->data, *ctx = job->ctx;
	shared_free(shared);
	ops->done(ctx, result, data);
}

int offload_start(
	uv_loop_t *loop, const struct offload_ops *ops, void *data, void *ctx, struct offload **ret)
{
	struct offload *job = mem_zalloc(sizeof(*job));
	struct shared *shared = mem_zalloc(sizeof(*shared));
	int r = job && shared ? uv_async_init(loop, &job->wake, on_wake) : -ENOMEM;
	if (r < 0) {
		free(job);
		free(shared);
		return r;
	}
	pthread_mutex_init(&shared->lock, NULL);
	shared->job = job;
	shared->ops = ops;
	shared->data = data;
	shared->running = true;
	job->wake.data = job;
	job->shared = shared;
	job->ctx = ctx;
	r = detached_start(STACK_BYTES, work, shared);
	if (r < 0) {
		uv_close((uv_handle_t *)&job->wake, on_closed);
		shared_free(shared);
		return r;
	}
	*ret = job;
	return 0;
}

void offload_leave(struct offload *job)
{
	struct shared *shared = job->shared;
	pthread_mutex_lock(&shared->lock);
	bool running = shared->running;
	shared->job = NULL;
	pthread_mutex_unlock(&shared->lock);
	if (!running) {
		shared->ops->release(shared->data);
		shared_free(shared);
	}
	uv_close((uv_handle_t *)&job->wake, on_closed);
}
