/*
 * The archive's file and the thread that works on it, one job at a time: the loop never waits for
 * the medium. One that hangs makes the job hang and nothing else; at a stop it is left behind.
 */
#pragma once

#include <uv.h>

#include "daemon/persist/archive_disk.h"

enum archive_job { ARCHIVE_JOB_NONE, ARCHIVE_JOB_OPEN, ARCHIVE_JOB_WRITE };

struct archive_file_result {
	enum archive_job job;
	int result;		     /* 0 or -errno, see archive_disk.h */
	struct archive_index *index; /* of an opening that succeeded: the callee's */
	uint32_t overhead, unit;     /* of an opening, see archive_disk.h */
	bool fresh;
	char why[ARCHIVE_WHY_SIZE];   /* of a failure */
	char aside[ARCHIVE_WHY_SIZE]; /* what an opening set aside, also when it failed then */
};

/* A job ended; on the loop. Another one may be started from within. */
typedef void archive_file_told(void *ctx, const struct archive_file_result *result);

struct archive_file;

/* Starts the thread. disk: initialised, not opened. -ENOMEM, -EAGAIN: no thread. */
int archive_file_create(uv_loop_t *loop, const struct archive_disk *disk, archive_file_told *told,
	void *ctx, struct archive_file **ret);

/* Opens, or opens anew. -EBUSY: a job is under way. */
int archive_file_open(struct archive_file *file);

/* Takes a copy. -EBUSY, -ENOMEM. */
int archive_file_write(struct archive_file *file, uint32_t page, const uint8_t *bytes, size_t size);

/* Since when a job is under way; 0 = none. */
uint64_t archive_file_busy_ns(const struct archive_file *file);

/* For readers, who make duplicates; -1: not open. */
int archive_file_descriptor(const struct archive_file *file);

/* Nothing is told afterwards. The file is closed by the thread, after its job has ended: this does
 * not wait for it. closed is called on the loop; file is gone then. */
void archive_file_close(struct archive_file *file, void (*closed)(void *ctx), void *ctx);
