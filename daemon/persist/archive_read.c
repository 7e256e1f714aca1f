/* SPDX-License-Identifier: Apache-2.0 */
/* archive_read.c: is the queue in front of the archive's file, for readers. A read owns its plan
 * and a descriptor of its own: the file may be closed or replaced meanwhile. Each runs on a thread
 * of its own, which a stop leaves behind when the medium does not answer. */
#include "daemon/persist/archive_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"

/* The thread has plan and fd while it runs; the rest is the loop's. */
struct archive_read {
	TAILQ_ENTRY(archive_read) entry; /* of those that wait, or that run */
	struct archive_readers *readers;
	struct archive_plan *plan;
	archive_read_done *done; /* NULL: nobody waits any more */
	void *user;
	uint64_t started_ms;
	int fd;
	struct offload *job; /* NULL: it waits */
};

TAILQ_HEAD(read_list, archive_read);

struct archive_readers {
	uv_loop_t *loop;
	int (*descriptor)(void *ctx);
	void *ctx;
	struct archive_reader reader;
	struct read_list running, waiting;
	size_t run, wait; /* how many */
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

/* What a thread does: reads the plan's blocks one after the other. 0, or -errno of the first that
 * could not be read; a file that is shorter than it was is -EIO. */
static int archive_read_blocks(int fd, struct archive_plan *plan)
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

static int work(void *data)
{
	struct archive_read *read = data;
	return archive_read_blocks(read->fd, read->plan);
}

static void release(void *data)
{
	struct archive_read *read = data;
	if (read->fd >= 0) {
		close(read->fd);
	}
	archive_plan_destroy(read->plan);
	free(read);
}

/* Hands the plan over to who waits for it. */
static void finish(struct archive_read *read, int result)
{
	if (read->done) {
		read->done(read->user, read->plan, result);
		read->plan = NULL;
	}
	release(read);
}

static void start_next(struct archive_readers *readers);

static void on_done(void *ctx, int result, void *data)
{
	struct archive_readers *readers = ctx;
	struct archive_read *read = data;
	TAILQ_REMOVE(&readers->running, read, entry);
	readers->run--;
	readers->error = result;
	readers->failed += result < 0;
	finish(read, result);
	start_next(readers);
}

static int start(struct archive_readers *readers, struct archive_read *read)
{
	static const struct offload_ops ops = {.work = work, .done = on_done, .release = release};
	int fd = readers->descriptor(readers->ctx);
	if (fd < 0) {
		return -ENODATA;
	}
	read->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int r = read->fd < 0 ? -errno : 0;
	r = r < 0 ? r : offload_start(readers->loop, &ops, read, readers, &read->job);
	if (r == 0) {
		read->started_ms = uv_now(readers->loop);
		TAILQ_INSERT_TAIL(&readers->running, read, entry);
		readers->run++;
	}
	return r;
}

static struct archive_read *take_waiting(struct archive_readers *readers, struct archive_read *read)
{
	TAILQ_REMOVE(&readers->waiting, read, entry);
	readers->wait--;
	return read;
}

static void start_next(struct archive_readers *readers)
{
	while (readers->run < ARCHIVE_READS_MAX && readers->wait > 0) {
		struct archive_read *read = take_waiting(readers, TAILQ_FIRST(&readers->waiting));
		int r = start(readers, read);
		if (r < 0) {
			finish(read, r);
		}
	}
}

/* How many that run should have ended long ago. */
static size_t count_stuck(const struct archive_readers *readers)
{
	const struct archive_read *read;
	size_t count = 0;
	TAILQ_FOREACH(read, &readers->running, entry)
	{
		count += uv_now(readers->loop) > read->started_ms + ARCHIVE_READ_STUCK_MS;
	}
	return count;
}

void archive_readers_look(const struct archive_readers *readers, struct archive_reads *ret)
{
	*ret = (struct archive_reads){.failed = readers->failed,
		.error = readers->error,
		.stuck = count_stuck(readers) > 0};
}

static int reader_read(void *ctx, struct archive_plan *plan, archive_read_done *done, void *user,
	struct archive_read **ret)
{
	struct archive_readers *readers = ctx;
	if (readers->wait == ARCHIVE_READS_QUEUED) {
		return -ENOSPC;
	}
	if (count_stuck(readers) == ARCHIVE_READS_MAX) {
		return -ETIMEDOUT;
	}
	struct archive_read *read = mem_zalloc(sizeof(*read));
	if (!read) {
		return -ENOMEM;
	}
	*read = (struct archive_read){
		.readers = readers, .plan = plan, .done = done, .user = user, .fd = -1};
	if (readers->run < ARCHIVE_READS_MAX && readers->wait == 0) {
		int r = start(readers, read);
		if (r < 0) {
			read->plan = NULL; /* stays the caller's */
			release(read);
			return r;
		}
	} else {
		TAILQ_INSERT_TAIL(&readers->waiting, read, entry);
		readers->wait++;
	}
	*ret = read;
	return 0;
}

static void reader_cancel(struct archive_read *read)
{
	read->done = NULL;
	if (!read->job) {
		release(take_waiting(read->readers, read));
	}
}

int archive_readers_open(
	uv_loop_t *loop, int (*descriptor)(void *ctx), void *ctx, struct archive_readers **ret)
{
	struct archive_readers *readers = mem_zalloc(sizeof(*readers));
	if (!readers) {
		return -ENOMEM;
	}
	TAILQ_INIT(&readers->running);
	TAILQ_INIT(&readers->waiting);
	readers->loop = loop;
	readers->descriptor = descriptor;
	readers->ctx = ctx;
	readers->reader = (struct archive_reader){reader_read, reader_cancel, readers};
	*ret = readers;
	return 0;
}

const struct archive_reader *archive_readers_ops(const struct archive_readers *readers)
{
	return &readers->reader;
}

void archive_readers_close(struct archive_readers *readers)
{
	if (!readers) {
		return;
	}
	while (readers->wait > 0) {
		finish(take_waiting(readers, TAILQ_FIRST(&readers->waiting)), -ECANCELED);
	}
	while (readers->run > 0) {
		struct archive_read *read = TAILQ_FIRST(&readers->running);
		archive_read_done *done = read->done;
		void *user = read->user;
		TAILQ_REMOVE(&readers->running, read, entry);
		readers->run--;
		offload_detach(read->job); /* the thread may free it from now on */
		if (done) {
			done(user, NULL, -ECANCELED);
		}
	}
	free(readers);
}
