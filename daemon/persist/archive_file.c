/* SPDX-License-Identifier: Apache-2.0 */
/* archive_file.c: hands the archive's file to a thread for each job, and back. While a job is under
 * way, the disk is the thread's, except for the request to cancel. */
#include "daemon/persist/archive_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"

struct archive_file_job {
	struct archive_disk disk;
	enum archive_file_work { OPEN, WRITE, CLOSE } what;
	uint32_t page;
	uint8_t *bytes; /* what is to be written */
	size_t size;
	struct archive_index *index;
};

static int work(void *data)
{
	struct archive_file_job *job = data;
	switch (job->what) {
	case OPEN:
		return archive_disk_open(&job->disk, &job->index);
	case WRITE:
		return archive_disk_write(&job->disk, job->page, job->bytes, job->size);
	case CLOSE:
		break;
	}
	return 0;
}

static void release(void *data)
{
	struct archive_file_job *job = data;
	archive_disk_close(&job->disk);
	archive_index_destroy(job->index);
	free(job->bytes);
	free(job);
}

static void on_done(void *ctx, int result, void *data)
{
	struct archive_file *file = ctx;
	struct archive_file_job *job = data;
	struct archive_index *index = job->index;
	file->running = NULL;
	file->busy_ns = 0;
	file->descriptor = job->disk.fd;
	job->index = NULL;
	free(job->bytes);
	job->bytes = NULL;
	file->done(file->ctx, result, job->what == OPEN, index);
}

static int start(struct archive_file *file, enum archive_file_work what)
{
	static const struct offload_ops ops = {.work = work, .done = on_done, .release = release};
	file->job->what = what;
	int r = offload_start(file->loop, &ops, file->job, file, &file->running);
	file->busy_ns = r == 0 ? sysops()->now_ns() : 0;
	return r;
}

int archive_file_init(struct archive_file *file, uv_loop_t *loop, const struct archive_disk *disk,
	archive_file_done *done, void *ctx)
{
	*file = (struct archive_file){.loop = loop, .done = done, .ctx = ctx, .descriptor = -1};
	file->job = mem_zalloc(sizeof(*file->job));
	if (!file->job) {
		return -ENOMEM;
	}
	file->job->disk = *disk;
	return 0;
}

int archive_file_open(struct archive_file *file)
{
	assert(!file->running);
	file->descriptor = -1;
	return start(file, OPEN);
}

int archive_file_write(struct archive_file *file, uint32_t page, const uint8_t *bytes, size_t size)
{
	struct archive_file_job *job = file->job;
	assert(!file->running);
	job->bytes = mem_zalloc(size);
	if (!job->bytes) {
		return -ENOMEM;
	}
	memcpy(job->bytes, bytes, size);
	job->page = page;
	job->size = size;
	int r = start(file, WRITE);
	if (r < 0) {
		free(job->bytes);
		job->bytes = NULL;
	}
	return r;
}

const struct archive_disk *archive_file_disk(const struct archive_file *file)
{
	return &file->job->disk;
}

void archive_file_close(struct archive_file *file)
{
	struct archive_file_job *job = file->job;
	if (!job) {
		return;
	}
	__atomic_store_n(&job->disk.cancel, 1, __ATOMIC_RELAXED);
	if (file->running || start(file, CLOSE) == 0) {
		offload_detach(file->running);
	} else {
		release(job);
	}
	*file = (struct archive_file){.descriptor = -1};
}
