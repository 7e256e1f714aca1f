/* The queue in front of the archive's file, for readers. A request owns its plan and a descriptor
 * of its own: the file may be closed or replaced meanwhile. */
#include "daemon/store/archive_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/util/seam.h"

struct archive_read {
	uv_work_t work;
	struct archive_readers *readers;
	struct archive_read *next;
	struct archive_plan *plan;
	archive_read_done *done; /* NULL: nobody waits any more */
	void *user;
	uint64_t started_ms; /* 0 = it waits */
	int fd, result;
};

struct archive_readers {
	uv_loop_t *loop;
	int (*descriptor)(void *ctx);
	void *ctx;
	struct archive_reader seam;
	struct archive_read *running[ARCHIVE_READS_MAX];
	struct archive_read *first; /* that waits, the oldest first */
	size_t waiting;
	bool closing;
};

static int read_pages(int fd, uint8_t *bytes, size_t size, uint64_t at)
{
	while (size > 0) {
		ssize_t n = pread(fd, bytes, size, (off_t)at);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return n < 0 ? -errno : -EIO;
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

static void on_work(uv_work_t *work)
{
	struct archive_read *read = work->data;
	read->result = archive_read_blocks(read->fd, read->plan);
	close(read->fd);
}

static void start_next(struct archive_readers *readers);

static void on_read(uv_work_t *work, int status)
{
	struct archive_read *read = work->data;
	struct archive_readers *readers = read->readers;
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		if (readers->running[i] == read) {
			readers->running[i] = NULL;
		}
	}
	if (read->done) {
		read->done(read->user, read->plan, status < 0 ? status : read->result);
	} else {
		archive_plan_destroy(read->plan);
	}
	free(read);
	start_next(readers);
}

/* 0 when it runs; else it has been freed, and its plan is left alone. */
static int start(struct archive_readers *readers, struct archive_read *read, size_t place)
{
	int fd = readers->descriptor(readers->ctx);
	read->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int r = fd < 0 ? -ENODATA : read->fd < 0 ? -errno : 0;
	if (r == 0) {
		read->work.data = read;
		r = uv_queue_work(readers->loop, &read->work, on_work, on_read);
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
	bool idle = true;
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
		idle = idle && !readers->running[i];
	}
	if (idle && readers->closing) {
		free(readers);
	}
}

/* Every place is taken by a read that should have ended long ago. */
static bool stuck(const struct archive_readers *readers)
{
	uint64_t now_ms = uv_now(readers->loop);
	for (size_t i = 0; i < ARCHIVE_READS_MAX; i++) {
		const struct archive_read *read = readers->running[i];
		if (!read || now_ms < read->started_ms + ARCHIVE_READ_STUCK_MS) {
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
	*read = (struct archive_read){
		.readers = readers, .plan = plan, .done = done, .user = user, .fd = -1};
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
		return; /* the worker has it */
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
	if (!readers) {
		return -ENOMEM;
	}
	readers->loop = loop;
	readers->descriptor = descriptor;
	readers->ctx = ctx;
	readers->seam = (struct archive_reader){reader_read, reader_cancel, readers};
	*ret = readers;
	return 0;
}

const struct archive_reader *archive_readers_seam(const struct archive_readers *readers)
{
	return &readers->seam;
}

void archive_readers_close(struct archive_readers *readers)
{
	if (!readers) {
		return;
	}
	readers->closing = true;
	while (readers->first) {
		struct archive_read *read = readers->first;
		readers->first = read->next;
		readers->waiting--;
		read->done(read->user, read->plan, -ECANCELED);
		free(read);
	}
	start_next(readers);
}
