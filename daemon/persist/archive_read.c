/* The queue in front of the archive's file, for readers. A request owns its plan and a descriptor
 * of its own: the file may be closed or replaced meanwhile. Each runs on a thread of its own, which
 * a stop leaves behind when the medium does not answer: what is left is the thread's to free. */
#include "daemon/persist/archive_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/util/offload.h"
#include "daemon/util/sysops.h"

#define STACK_BYTES ((size_t)256 * 1024)

struct shared {
	pthread_mutex_t lock;
	uv_async_t *wake; /* NULL = left */
	size_t threads;
};

struct archive_read {
	struct shared *shared;
	struct archive_readers *readers; /* the loop's, as long as it is not left */
	struct archive_read *next;
	struct archive_plan *plan;
	archive_read_done *done; /* NULL: nobody waits any more */
	void *user;
	uint64_t started_ms; /* 0 = it waits */
	int fd, result;
	bool over; /* the thread is through; under the lock */
};

struct archive_readers {
	uv_loop_t *loop;
	uv_async_t wake;
	struct shared *shared;
	int (*descriptor)(void *ctx);
	void *ctx;
	struct archive_reader ops;
	struct archive_read *running[ARCHIVE_READS_MAX];
	struct archive_read *first; /* that waits, the oldest first */
	size_t waiting;
	uint64_t failed;
	int error;
};

static int read_pages(int fd, uint8_t *bytes, size_t size, uint64_t at)
{
	while (size > 0) {
		ssize_t n = sysops()->pread(fd, bytes, size, (off_t)at);
		if (n <= 0) {
			return n < 0 ? (int)n : -EIO;
		}
		bytes += n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

int archive_read_blocks(int fd, struct archive_plan *plan)
{
	uint8_t *bytes = mem_zalloc(ARCHIVE_BLOCK_MAX);
	if (!bytes) {
		return -ENOMEM;
	}
	int result = 0;
	for (size_t i = 0; i < archive_plan_blocks(plan); i++) {
		uint32_t page, pages;
		archive_plan_block(plan, i, &page, &pages);
		size_t size = (size_t)pages * ARCHIVE_PAGE;
		int r = size <= ARCHIVE_BLOCK_MAX
				? read_pages(fd, bytes, size, (uint64_t)page * ARCHIVE_PAGE)
				: -EIO;
		/* one bad block does not hide the others */
		r = r < 0 ? r : archive_plan_read(plan, i, bytes);
		result = result < 0 ? result : r;
	}
	archive_plan_finish(plan);
	free(bytes);
	return result;
}

/* With the lock held, which it gives back. */
static void let_go(struct shared *shared)
{
	bool last = shared->threads == 0 && !shared->wake;
	pthread_mutex_unlock(&shared->lock);
	if (last) {
		pthread_mutex_destroy(&shared->lock);
		free(shared);
	}
}

static void *work(void *ctx)
{
	struct archive_read *read = ctx;
	struct shared *shared = read->shared;
	int result = archive_read_blocks(read->fd, read->plan);
	close(read->fd);
	pthread_mutex_lock(&shared->lock);
	shared->threads--;
	if (shared->wake) {
		read->result = result;
		read->over = true;
		uv_async_send(shared->wake);
	} else {
		archive_plan_destroy(read->plan);
		free(read);
	}
	let_go(shared);
	return NULL;
}

static void start_next(struct archive_readers *readers);

static void tell(struct archive_read *read)
{
	if (read->done) {
		read->done(read->user, read->plan, read->result);
	} else {
		archive_plan_destroy(read->plan);
	}
	free(read);
}

static void on_wake(uv_async_t *wake)
{
	struct archive_readers *readers = wake->data;
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		struct archive_read *read = readers->running[i];
		pthread_mutex_lock(&readers->shared->lock);
		bool over = read && read->over;
		pthread_mutex_unlock(&readers->shared->lock);
		if (over) {
			readers->running[i] = NULL;
			readers->error = read->result;
			readers->failed += read->result < 0;
			tell(read);
		}
	}
	start_next(readers);
}

/* The lock keeps a thread that is quick from ending before it is counted. */
static int start_thread(struct archive_read *read)
{
	struct shared *shared = read->shared;
	pthread_mutex_lock(&shared->lock);
	int r = detached_start(STACK_BYTES, work, read);
	shared->threads += r == 0;
	pthread_mutex_unlock(&shared->lock);
	return r;
}

/* 0 when it runs; else it has been freed, and its plan is left alone. */
static int start(struct archive_readers *readers, struct archive_read *read, size_t place)
{
	int fd = readers->descriptor(readers->ctx);
	read->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int r = fd < 0 ? -ENODATA : read->fd < 0 ? -errno : 0;
	if (r == 0) {
		r = start_thread(read);
		if (r < 0) {
			close(read->fd);
		}
	}
	if (r < 0) {
		free(read);
		return r;
	}
	read->started_ms = uv_now(readers->loop) + 1;
	readers->running[place] = read;
	return 0;
}

static void start_next(struct archive_readers *readers)
{
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		while (!readers->running[i] && readers->first) {
			struct archive_read *read = readers->first;
			struct archive_plan *plan = read->plan;
			archive_read_done *done = read->done;
			void *user = read->user;
			readers->first = read->next;
			readers->waiting--;
			int r = start(readers, read, i);
			if (r < 0) {
				done(user, plan, r);
			}
		}
	}
}

static bool is_stuck(const struct archive_readers *readers, const struct archive_read *read)
{
	return read && uv_now(readers->loop) >= read->started_ms + ARCHIVE_READ_STUCK_MS;
}

void archive_readers_look(const struct archive_readers *readers, struct archive_reads *ret)
{
	*ret = (struct archive_reads){.failed = readers->failed, .error = readers->error};
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		ret->stuck = ret->stuck || is_stuck(readers, readers->running[i]);
	}
}

/* Every place is taken by a read that should have ended long ago. */
static bool stuck(const struct archive_readers *readers)
{
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		if (!is_stuck(readers, readers->running[i])) {
			return false;
		}
	}
	return true;
}

static int reader_read(void *ctx, struct archive_plan *plan, archive_read_done *done, void *user,
	struct archive_read **ret)
{
	struct archive_readers *readers = ctx;
	if (readers->waiting == ARCHIVE_READS_QUEUED) {
		return -ENOSPC;
	}
	if (stuck(readers)) {
		return -ETIMEDOUT;
	}
	struct archive_read *read = mem_zalloc(sizeof(*read));
	if (!read) {
		return -ENOMEM;
	}
	*read = (struct archive_read){.shared = readers->shared,
		.readers = readers,
		.plan = plan,
		.done = done,
		.user = user,
		.fd = -1};
	for (size_t i = 0; i < ARCHIVE_READS_MAX && !readers->first; i++) {
		if (!readers->running[i]) {
			int r = start(readers, read, i);
			if (r == 0) {
				*ret = read;
			}
			return r;
		}
	}
	struct archive_read **at = &readers->first;
	while (*at) {
		at = &(*at)->next;
	}
	*at = read;
	readers->waiting++;
	*ret = read;
	return 0;
}

static void reader_cancel(struct archive_read *read)
{
	struct archive_readers *readers = read->readers;
	read->done = NULL;
	if (read->started_ms != 0) {
		return; /* the thread has it */
	}
	struct archive_read **at = &readers->first;
	while (*at != read) {
		at = &(*at)->next;
	}
	*at = read->next;
	readers->waiting--;
	archive_plan_destroy(read->plan);
	free(read);
}

int archive_readers_open(
	uv_loop_t *loop, int (*descriptor)(void *ctx), void *ctx, struct archive_readers **ret)
{
	struct archive_readers *readers = mem_zalloc(sizeof(*readers));
	struct shared *shared = mem_zalloc(sizeof(*shared));
	int r = readers && shared ? uv_async_init(loop, &readers->wake, on_wake) : -ENOMEM;
	if (r < 0) {
		free(shared);
		free(readers);
		return r;
	}
	pthread_mutex_init(&shared->lock, NULL);
	shared->wake = &readers->wake;
	readers->wake.data = readers;
	readers->shared = shared;
	readers->loop = loop;
	readers->descriptor = descriptor;
	readers->ctx = ctx;
	readers->ops = (struct archive_reader){reader_read, reader_cancel, readers};
	*ret = readers;
	return 0;
}

const struct archive_reader *archive_readers_ops(const struct archive_readers *readers)
{
	return &readers->ops;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Reads whose threads run are left to them; those that have ended are told. */
static void leave(struct archive_readers *readers)
{
	struct archive_read *ended[ARCHIVE_READS_MAX] = {NULL};
	struct archive_read left[ARCHIVE_READS_MAX] = {0}; /* who waits; the thread may free it */
	pthread_mutex_lock(&readers->shared->lock);
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		struct archive_read *read = readers->running[i];
		if (read && read->over) {
			ended[i] = read;
		} else if (read) {
			left[i].done = read->done;
			left[i].user = read->user;
		}
	}
	readers->shared->wake = NULL;
	let_go(readers->shared);
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		if (ended[i]) {
			tell(ended[i]);
		} else if (left[i].done) {
			left[i].done(left[i].user, NULL, -ECANCELED);
		}
	}
}

void archive_readers_close(struct archive_readers *readers)
{
	if (!readers) {
		return;
	}
	while (readers->first) {
		struct archive_read *read = readers->first;
		readers->first = read->next;
		readers->waiting--;
		read->done(read->user, read->plan, -ECANCELED);
		free(read);
	}
	leave(readers);
	uv_close((uv_handle_t *)&readers->wake, on_closed);
}
