/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_files.c: queues texts for report_file_write(); they wait on the loop, one at a time is
 * written. A request and its bytes are one allocation.
 */
#include "daemon/recorder/report_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/util/offload.h"
#include "daemon/util/sysops.h"

enum { AGAIN_MS = 1000 };

struct report_job {
	struct report_files *files;
	TAILQ_ENTRY(report_job) link;
	struct report_file file; /* app and text point to what follows */
	char app[PROTO_NAME_SIZE];
	char text[];
};

struct report_files {
	uv_loop_t *loop;
	report_files_on_written *written;
	void *ctx;
	TAILQ_HEAD(, report_job) queue; /* the oldest first */
	size_t waiting;
	bool busy, closing;
	uv_timer_t again; /* runs while the system refuses a thread */
	char dir[REPORT_PATH_SIZE - PROTO_NAME_SIZE - sizeof("/reports/.txt")];
};

int report_files_open(uv_loop_t *loop, const char *dir, report_files_on_written *written, void *ctx,
	struct report_files **ret)
{
	struct report_files *files = mem_zalloc(sizeof(*files));
	if (!files) {
		return -ENOMEM;
	}
	if (strlen(dir) >= sizeof(files->dir)) {
		free(files);
		return -ENAMETOOLONG;
	}
	memcpy(files->dir, dir, strlen(dir) + 1);
	TAILQ_INIT(&files->queue);
	files->loop = loop;
	uv_timer_init(loop, &files->again);
	files->again.data = files;
	files->written = written;
	files->ctx = ctx;
	*ret = files;
	return 0;
}

static int write_file(void *data)
{
	struct report_job *job = data;
	return report_file_write(job->files->dir, job->app, job->text, job->file.length);
}

static void report(struct report_files *files, const struct report_job *job, int result)
{
	char path[REPORT_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/reports/%s.txt", files->dir, job->app);
	files->written(files->ctx, &job->file, path, result);
}

static void start_next(struct report_files *files);

static void on_written(void *ctx, int result, void *data)
{
	struct report_job *job = data;
	struct report_files *files = ctx;
	files->busy = false;
	report(files, job, result);
	free(job);
	start_next(files);
}

static void on_again(uv_timer_t *again)
{
	start_next(again->data);
}

static void on_closed(uv_handle_t *again)
{
	free(again->data);
}

/* The next job goes to a thread, later when the system refuses one; a closed queue ends. */
static void start_next(struct report_files *files)
{
	static const struct offload_ops ops = {
		.work = write_file, .done = on_written, .release = free};
	struct offload *started;
	for (struct report_job *job; !files->busy && (job = TAILQ_FIRST(&files->queue));) {
		int r = offload_start(files->loop, &ops, job, files, &started);
		if (r == -EAGAIN && !files->closing) {
			uv_timer_start(&files->again, on_again, AGAIN_MS, 0);
			return;
		}
		TAILQ_REMOVE(&files->queue, job, link);
		files->waiting--;
		files->busy = r == 0;
		if (r < 0) {
			report(files, job, r);
			free(job);
		}
	}
	if (!files->busy && files->closing && !uv_is_closing((uv_handle_t *)&files->again)) {
		uv_close((uv_handle_t *)&files->again, on_closed);
	}
}

int report_files_write(struct report_files *files, const struct report_file *file)
{
	struct report_job *older;
	TAILQ_FOREACH(older, &files->queue, link)
	{
		if (strcmp(older->app, file->app) == 0) {
			break;
		}
	}
	if (file->length > REPORT_BYTES_MAX) {
		return -E2BIG;
	}
	if (!older && files->waiting == REPORT_QUEUE_MAX) {
		return -ENOSPC;
	}
	struct report_job *job = mem_zalloc(sizeof(*job) + file->length);
	if (!job) {
		return -ENOMEM;
	}
	job->files = files;
	job->file = *file;
	job->file.app = job->app;
	job->file.text = job->text;
	snprintf(job->app, sizeof(job->app), "%s", file->app);
	memcpy(job->text, file->text, file->length);
	if (older) { /* the text of the same app is replaced */
		TAILQ_INSERT_BEFORE(older, job, link);
		TAILQ_REMOVE(&files->queue, older, link);
		free(older);
	} else {
		TAILQ_INSERT_TAIL(&files->queue, job, link);
		files->waiting++;
	}
	start_next(files);
	return 0;
}

void report_files_close(struct report_files *files)
{
	if (files) {
		files->closing = true;
		start_next(files);
	}
}
