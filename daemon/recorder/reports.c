/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.c: writes a report when an app ends. Core makes the text, report_file.c the file, and the
 * timeline (journal, subscribers) names its path.
 */
#include "daemon/recorder/reports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/report/report.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/recorder/report_file.h"
#include "daemon/util/sysops.h"

struct reports {
	struct core *core;
	struct report_files *files;
	struct past_reports past;
	bool failed; /* logged already */
	char text[APP_REPORT_SIZE];
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

static void on_written(void *ctx, const struct report_file *file, const char *path, int result)
{
	struct reports *reports = ctx;
	uint64_t now_ns = sysops()->now_ns();
	if (result < 0) {
		report_failure(reports, path, result);
		return;
	}
	reports->failed = false;
	if (apps_may_log(reports->core->apps, file->uid, TIMELINE_INFO, now_ns)) {
		timeline_add(reports->core->timeline, now_ns, TIMELINE_APP, TIMELINE_INFO,
			file->app, "ended: report at %s: %s", path, file->note);
	}
}

static void on_end(void *ctx, const struct app *app, enum process_end how, uint64_t now_ns)
{
	struct reports *reports = ctx;
	(void)how; /* the report says it in the app's last words */
	if (!app_report_worth(app)) {
		return;
	}
	struct report_file file = {.app = app->name, .text = reports->text, .uid = app->uid};
	int r = app_report_write(reports->core, app, now_ns, reports->text, sizeof(reports->text));
	if (r > 0) {
		file.length = (size_t)r;
		app_report_summary(app, now_ns, file.note);
		r = report_files_write(reports->files, &file);
	}
	if (r < 0) {
		report_failure(reports, app->name, r);
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

int reports_open(uv_loop_t *loop, struct core *core, const char *dir, struct reports **ret)
{
	struct reports *reports = mem_zalloc(sizeof(*reports));
	if (!reports) {
		return -ENOMEM;
	}
	reports->core = core;
	int r = report_files_open(loop, dir, on_written, reports, &reports->files);
	r = r < 0 ? r
		  : apps_observe(
			    core->apps, &(struct apps_observer){.ended = on_end, .ctx = reports});
	if (r < 0) {
		report_files_close(reports->files);
		free(reports);
		return r;
	}
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
		report_files_close(reports->files);
		reports->files = NULL;
	}
}

void reports_destroy(struct reports *reports)
{
	free(reports);
}
