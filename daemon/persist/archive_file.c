/* Between the loop and the archive's file: one mutex guards the job. The part that both use is
 * freed by who lets go last: the loop's side, or a thread that came back late. */
#include "daemon/persist/archive_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/offload.h"
#include "daemon/util/sysops.h"

#define STACK_BYTES ((size_t)256 * 1024)

enum phase { IDLE, WAITING, RUNNING, DONE, LEFT };

struct shared {
	pthread_mutex_t lock;
	pthread_cond_t work;
	uv_async_t *wake; /* NULL = left */
	bool thread, loop;
	enum phase phase;
	struct archive_disk disk; /* the thread's while it runs, but for cancel */
	uint32_t page;
	uint8_t *bytes; /* what is to be written */
	size_t size;
	struct archive_file_result result;
};

struct archive_file {
	struct shared *shared;
	uv_async_t wake;
	uint64_t busy_ns;
	int descriptor;
	archive_file_told *told;
	void (*closed)(void *ctx);
	void *ctx;
};

/* With the lock held, which it gives back. */
static void let_go(struct shared *shared, bool *side)
{
	*side = false;
	bool last = !shared->thread && !shared->loop;
	pthread_mutex_unlock(&shared->lock);
	if (last) {
		archive_index_destroy(shared->result.index);
		free(shared->bytes);
		pthread_cond_destroy(&shared->work);
		pthread_mutex_destroy(&shared->lock);
		free(shared);
	}
}

/* Without the lock. */
static void run(struct shared *shared, struct archive_file_result *result)
{
	struct archive_disk *disk = &shared->disk;
	if (result->job == ARCHIVE_JOB_OPEN) {
		result->result = archive_disk_open(disk, &result->index);
		result->overhead = disk->overhead;
		result->unit = disk->unit;
		result->fresh = disk->fresh;
		memcpy(result->aside, disk->aside, sizeof(result->aside));
	} else {
		result->result =
			archive_disk_write(disk, shared->page, shared->bytes, shared->size);
	}
	if (result->result < 0) {
		memcpy(result->why, disk->why, sizeof(result->why));
	}
}

static void *work(void *ctx)
{
	struct shared *shared = ctx;
	pthread_mutex_lock(&shared->lock);
	while (shared->phase != LEFT) {
		if (shared->phase != WAITING) {
			pthread_cond_wait(&shared->work, &shared->lock);
			continue;
		}
		shared->phase = RUNNING;
		struct archive_file_result *result = &shared->result;
		pthread_mutex_unlock(&shared->lock);
		run(shared, result);
		pthread_mutex_lock(&shared->lock);
		if (shared->phase != LEFT) {
			shared->phase = DONE;
			uv_async_send(shared->wake);
		}
	}
	pthread_mutex_unlock(&shared->lock);
	archive_disk_close(&shared->disk);
	pthread_mutex_lock(&shared->lock);
	let_go(shared, &shared->thread);
	return NULL;
}

static void on_wake(uv_async_t *wake)
{
	struct archive_file *file = wake->data;
	struct shared *shared = file->shared;
	struct archive_file_result result;
	pthread_mutex_lock(&shared->lock);
	bool done = shared->phase == DONE;
	if (done) {
		result = shared->result;
		shared->result.index = NULL;
		shared->phase = IDLE;
		free(shared->bytes);
		shared->bytes = NULL;
	}
	int fd = shared->phase == IDLE ? shared->disk.fd : -1;
	pthread_mutex_unlock(&shared->lock);
	if (done) {
		file->busy_ns = 0;
		file->descriptor = result.job == ARCHIVE_JOB_OPEN ? fd : file->descriptor;
		file->told(file->ctx, &result);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct archive_file *file = handle->data;
	if (file->closed) {
		file->closed(file->ctx);
	}
	free(file);
}

int archive_file_create(uv_loop_t *loop, const struct archive_disk *disk, archive_file_told *told,
	void *ctx, struct archive_file **ret)
{
	struct archive_file *file = mem_zalloc(sizeof(*file));
	struct shared *shared = mem_zalloc(sizeof(*shared));
	int r = file && shared ? uv_async_init(loop, &file->wake, on_wake) : -ENOMEM;
	if (r < 0) {
		free(shared);
		free(file);
		return r;
	}
	pthread_mutex_init(&shared->lock, NULL);
	pthread_cond_init(&shared->work, NULL);
	shared->disk = *disk;
	shared->loop = true;
	shared->wake = &file->wake;
	file->wake.data = file;
	file->shared = shared;
	file->told = told;
	file->ctx = ctx;
	file->descriptor = -1;
	shared->thread = true;
	r = detached_start(STACK_BYTES, work, shared);
	if (r < 0) {
		shared->thread = false;
		archive_file_close(file, NULL, NULL);
		return r;
	}
	*ret = file;
	return 0;
}

/* 0 when the job is the thread's; bytes go with it. */
static int start(
	struct archive_file *file, enum archive_job job, uint32_t page, uint8_t *bytes, size_t size)
{
	struct shared *shared = file->shared;
	pthread_mutex_lock(&shared->lock);
	bool idle = shared->phase == IDLE;
	if (idle) {
		shared->result = (struct archive_file_result){.job = job};
		shared->page = page;
		shared->bytes = bytes;
		shared->size = size;
		shared->phase = WAITING;
		file->busy_ns = sysops()->now_ns();
		pthread_cond_signal(&shared->work);
	}
	pthread_mutex_unlock(&shared->lock);
	return idle ? 0 : -EBUSY;
}

int archive_file_open(struct archive_file *file)
{
	int r = start(file, ARCHIVE_JOB_OPEN, 0, NULL, 0);
	file->descriptor = r == 0 ? -1 : file->descriptor;
	return r;
}

int archive_file_write(struct archive_file *file, uint32_t page, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = mem_zalloc(size);
	if (!copy) {
		return -ENOMEM;
	}
	memcpy(copy, bytes, size);
	int r = start(file, ARCHIVE_JOB_WRITE, page, copy, size);
	if (r < 0) {
		free(copy);
	}
	return r;
}

uint64_t archive_file_busy_ns(const struct archive_file *file)
{
	return file->busy_ns;
}

int archive_file_descriptor(const struct archive_file *file)
{
	return file->descriptor;
}

void archive_file_close(struct archive_file *file, void (*closed)(void *ctx), void *ctx)
{
	struct shared *shared = file->shared;
	__atomic_store_n(&shared->disk.cancel, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&shared->lock);
	shared->phase = LEFT;
	shared->wake = NULL;
	pthread_cond_signal(&shared->work);
	let_go(shared, &shared->loop);
	file->closed = closed;
	file->ctx = ctx;
	uv_close((uv_handle_t *)&file->wake, on_closed);
}
