/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.h: runs what may block once, on a thread of its own, and delivers the result on the loop.
 * It can be abandoned, as the jobs of pool.h can.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/util/offload/pool.h"

struct offload;

/* -ENOMEM, -EAGAIN: no thread; data is the caller's again then. */
int offload_start(uv_loop_t *loop, const struct offload_ops *ops, void *data, void *ctx,
	struct offload **ret);

/* For the start of the process: waits that long for the end, off the loop. True: done was called
 * and the job is gone. */
bool offload_wait(struct offload *job, unsigned ms);

/* Abandons the job, before done: done is not called, data is released when the work has ended. */
void offload_detach(struct offload *job);
