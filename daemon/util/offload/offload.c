/* SPDX-License-Identifier: Apache-2.0 */
/* offload.c: gives each job a pool of one thread, which ends with it. */
#include "daemon/util/offload/offload.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"

#define STACK_BYTES ((size_t)128 * 1024)

struct offload {
	uv_async_t wake;
	struct offload_pool *pool;
	struct offload_job *job;
	const struct offload_ops *ops;
	void *data, *ctx;
};

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
	const struct offload_ops *ops = offload->ops;
	void *data = offload->data, *ctx = offload->ctx;
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
	offload->ops = ops;
	offload->data = data;
	offload->ctx = ctx;
	r = offload_pool_create(&options, &offload->pool);
	r = r < 0 ? r : offload_job_create(offload->pool, ops, data, &offload->job);
	if (r < 0) {
		goto error;
	}
	offload_job_queue(offload->job, false);
	r = offload_pool_dispatch(offload->pool);
	if (r == 0) {
		*ret = offload;
		return 0;
	}
	offload_job_cancel(offload->job); /* No thread has it: data stays the caller's. */
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
