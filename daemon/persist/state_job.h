/*
 * One small file of the state directory (state_file.h), read or written once on a thread of its
 * own: the loop does not wait for the medium, and one that hangs holds that thread alone, which is
 * left behind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum state_job_kind {
	STATE_JOB_READ,
	STATE_JOB_WRITE,
	STATE_JOB_REPLACE, /* writes only where there is one; else 0 and nothing is made */
};

struct state_job;

/* On the loop, once. result: as state_file_read or state_file_write say. bytes are the job's. */
typedef void state_job_done(void *ctx, int result, const uint8_t *bytes);

/* bytes (to be written, or room for what is read) are the job's from now on, from the heap; the
 * caller's again when this fails. -ENOMEM, -ENAMETOOLONG, -EAGAIN: no thread. */
int state_job_start(uv_loop_t *loop, enum state_job_kind kind, const char *dir, const char *name,
	uint8_t *bytes, size_t size, state_job_done *done, void *ctx, struct state_job **ret);

/* For the start of the process only: waits that long for the end. True: done has been called, the
 * job is gone. */
bool state_job_wait(struct state_job *job, unsigned ms);

/* For the start of the process only: whether the directory answers within that time, with whatever
 * it has to say. */
bool state_job_answers(uv_loop_t *loop, const char *dir, unsigned ms);

/* Nobody waits for it any more: done is not called. */
void state_job_leave(struct state_job *job);
