/*
 * Blocking work on a thread of its own, its result on the loop. Unlike libuv's workers, which abort
 * the process when a thread is refused, a refusal is an error of the call; and a job can be left
 * behind when what it waits for never answers.
 */
#pragma once

#include <uv.h>

struct offload;

struct offload_ops {
	int (*work)(void *data); /* on the thread; data is its own meanwhile */
	void (*done)(
		void *ctx, int result, void *data); /* on the loop, once; data is the caller's */
	void (*release)(void *data);		    /* of a job that was left, on any thread */
};

/* -ENOMEM, -EAGAIN: no thread; data is the caller's again then. */
int offload_start(uv_loop_t *loop, const struct offload_ops *ops, void *data, void *ctx,
	struct offload **ret);

/* Before done: it will not be called, and data is released when the work has ended. */
void offload_leave(struct offload *job);
