/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.c: writes a report when an app ends. Core makes the text, which waits on the loop until a
 * thread has written the one before (report_file.c); the timeline (journal, subscribers) names its
 * path.
 */
#include "daemon/recorder/reports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/report/report.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/recorder/report_file.h"
#include "daemon/util/offload.h"
#include "daemon/util/sysops.h"

enum { AGAIN_MS = 1000 };

struct report_job {
	const char *dir;
	TAILQ_ENTRY(report_job) link;
	char app[PROTO_NAME_SIZE];
	uid_t uid;
	char summary[APP_REPORT_SUMMARY];
	size_t length;
	char text[APP_REPORT_SIZE];
};

struct reports {
	uv_loop_t *loop;
	struct core *core;
	struct past_reports past;
	TAILQ_HEAD(, report_job) queue; /* the oldest first */
	size_t waiting;
	bool busy, closing;
	bool failed;	  /* logged already */
	uv_timer_t again; /* runs while the system refuses a thread */
};

/* Once, until it works again. */
static void report_failure(struct reports *reports, const char *path, int error)
{
	if (!reports->failed) {
		timeline_add(reports->core->timeline, sysops()->now_ns(), TIMELINE_DAEMON,
			TIMELINE_WARNING, "edgeprofd", "cannot write report %s: %s", path,
			strerror(-error));
	}
	reports->failed = true;
}

static void report_written(struct reports *reports, const struct report_job *job, int result)
{
	char path[REPORT_PATH_SIZE];
	uint64_t now_ns = sysops()->now_ns();
	snprintf(path, sizeof(path), "%s/reports/%s.txt", job->dir, job->app);
	if (result < 0) {
		report_failure(reports, path, result);
		return;
	}
	reports->failed = false;
	if (apps_may_log(reports->core->apps, job->uid, TIMELINE_INFO, now_ns)) {
		timeline_add(reports->core->timeline, now_ns, TIMELINE_APP, TIMELINE_INFO, job->app,
			"ended: report at %s: %s", path, job->summary);
	}
}

static int write_file(void *data)
{
	struct report_job *job = data;
	return report_file_write(job->dir, job->app, job->text, job->length);
}

static void start_next(struct reports *reports);

static void on_written(void *ctx, int result, void *data)
{
	struct reports *reports = ctx;
	reports->busy = false;
	report_written(reports, data, result);
	free(data);
	start_next(reports);
}

static void on_again(uv_timer_t *again)
{
	start_next(again->data);
}

/* The next job goes to a thread, later when the system refuses one; a closed queue ends. */
static void start_next(struct reports *reports)
{
	static const struct offload_ops ops = {
		.work = write_file, .done = on_written, .release = free};
	struct offload *started;
	for (struct report_job *job; !reports->busy && (job = TAILQ_FIRST(&reports->queue));) {
		int r = offload_start(reports->loop, &ops, job, reports, &started);
		if (r == -EAGAIN && !reports->closing) {
			uv_timer_start(&reports->again, on_again, AGAIN_MS, 0);
			return;
		}
		TAILQ_REMOVE(&reports->queue, job, link);
		reports->waiting--;
		reports->busy = r == 0;
		if (r < 0) {
			report_written(reports, job, r);
			free(job);
		}
	}
	if (!reports->busy && reports->closing && !uv_is_closing((uv_handle_t *)&reports->again)) {
		uv_close((uv_handle_t *)&reports->again, NULL);
	}
}

/* A text that waits for the same app is replaced. -ENOSPC: too many wait. */
static int queue(struct reports *reports, struct report_job *job)
{
	struct report_job *older;
	TAILQ_FOREACH(older, &reports->queue, link)
	{
		if (strcmp(older->app, job->app) == 0) {
			break;
		}
	}
	if (!older && reports->waiting == REPORT_QUEUE_MAX) {
		return -ENOSPC;
	}
	if (older) {
		TAILQ_INSERT_BEFORE(older, job, link);
		TAILQ_REMOVE(&reports->queue, older, link);
		free(older);
	} else {
		TAILQ_INSERT_TAIL(&reports->queue, job, link);
		reports->waiting++;
	}
	start_next(reports);
	return 0;
}

static void on_end(void *ctx, const struct app *app, enum process_end how, uint64_t now_ns)
{
	struct reports *reports = ctx;
	(void)how; /* the report says it in the app's last words */
	if (!app_report_worth(app)) {
		return;
	}
	struct report_job *job = mem_zalloc(sizeof(*job));
	int r = job ? app_report_write(reports->core, app, now_ns, job->text, sizeof(job->text))
		    : -ENOMEM;
	if (r > 0) {
		job->dir = reports->core->facts->run_dir;
		memcpy(job->app, app->name, sizeof(job->app));
		job->uid = app->uid;
		job->length = (size_t)r;
		app_report_summary(app, now_ns, job->summary);
		r = queue(reports, job);
	}
	if (r < 0) {
		report_failure(reports, app->name, r);
		free(job);
	}
}

static int read_past(void *ctx, const char *app, char *text, size_t size, struct past_report *ret)
{
	const struct reports *reports = ctx;
	int64_t time_us = 0;
	int r = report_file_read(
		reports->core->facts->run_dir, app, text, size, ret->app, &time_us);
	if (r > 0) {
		app_report_parse(text, time_us, ret);
	}
	return r;
}

int reports_open(uv_loop_t *loop, struct core *core, struct reports **ret)
{
	struct reports *reports = mem_zalloc(sizeof(*reports));
	int r = reports ? apps_observe(core->apps,
				  &(struct apps_observer){.ended = on_end, .ctx = reports})
			: -ENOMEM;
	if (r < 0) {
		free(reports);
		return r;
	}
	reports->loop = loop;
	reports->core = core;
	TAILQ_INIT(&reports->queue);
	uv_timer_init(loop, &reports->again);
	reports->again.data = reports;
	reports->past = (struct past_reports){read_past, reports};
	core->past_reports = &reports->past;
	*ret = reports;
	return 0;
}

void reports_close(struct reports *reports)
{
	if (reports) {
		reports->core->past_reports = NULL;
		apps_unobserve(reports->core->apps, reports);
		reports->closing = true;
		start_next(reports);
	}
}

void reports_destroy(struct reports *reports)
{
	free(reports);
}
