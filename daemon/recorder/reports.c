/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reports.c: writes a report when an app ends. Core makes the text, which waits on the loop until a
 * thread has written the one before; the timeline (journal, subscribers) names its path. Files are
 * handled below a descriptor of the folder, and nothing that may lie there is followed or written
 * into: links and leftovers are replaced or removed by name.
 */
#include "daemon/recorder/reports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/report/report.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/accounts.h"
#include "daemon/util/file.h"
#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

/* ---- files: on a thread, nothing shared ---- */

enum { UNKNOWN = REPORT_FILES_MAX }; /* in place of an entry */

static int open_reports(const char *dir)
{
	char path[REPORT_PATH_SIZE];
	int n = snprintf(path, sizeof(path), "%s/reports", dir);
	return n < (int)sizeof(path) ? folder_open(path, 0755) : -ENAMETOOLONG;
}

struct scan {
	const char *but; /* the name to skip */
	const struct report_owners *owners;
	size_t files, bytes, unknown;
	size_t others; /* files that are unknown, which count as one user's */
	size_t most;   /* files of the user of the oldest */
	struct {
		char name[PROTO_NAME_SIZE + 8];
		struct timespec time;
	} oldest, newest;
};

static size_t entry_of(const struct report_owners *owners, const char *file)
{
	size_t i = owners ? 0 : UNKNOWN;
	while (i < UNKNOWN && strcmp(owners->owner[i].file, file) != 0) {
		i++;
	}
	return i;
}

/* How many files the user of an entry has. */
static size_t count_files(const struct scan *scan, size_t at)
{
	const struct report_owners *owners = scan->owners;
	size_t count = 0;
	for (size_t i = 0; at < UNKNOWN && i < UNKNOWN; i++) {
		count += owners->owner[i].file[0] && owners->owner[i].uid == owners->owner[at].uid;
	}
	return at < UNKNOWN ? count : scan->others;
}

/* Temporary files that a crash left are removed. */
static bool scan_report(void *ctx, int folder, const char *name)
{
	struct scan *scan = ctx;
	struct stat st;
	if (text_ends_with(name, ".new")) {
		unlinkat(folder, name, 0);
	} else if (text_ends_with(name, ".txt") && strcmp(name, scan->but) != 0 &&
		   strlen(name) < PROTO_NAME_SIZE + strlen(".txt") &&
		   fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		const size_t at = entry_of(scan->owners, name), count = count_files(scan, at);
		scan->bytes += (size_t)st.st_size;
		scan->files++;
		scan->unknown += at == UNKNOWN;
		if (count > scan->most ||
			(count == scan->most && file_precedes(st.st_mtim, scan->oldest.time))) {
			scan->most = count;
			memcpy(scan->oldest.name, name, strlen(name) + 1);
			scan->oldest.time = st.st_mtim;
		}
		if (!scan->newest.name[0] || !file_precedes(st.st_mtim, scan->newest.time)) {
			memcpy(scan->newest.name, name, strlen(name) + 1);
			scan->newest.time = st.st_mtim;
		}
	}
	return true;
}

static void note_owner(struct report_owners *owners, const char *name, uid_t uid)
{
	size_t at = entry_of(owners, name);
	at = at < UNKNOWN ? at : entry_of(owners, "");
	if (at < UNKNOWN) {
		memcpy(owners->owner[at].file, name, strlen(name) + 1);
		owners->owner[at].uid = uid;
	}
}

/* Of a report that a previous start wrote: its second line names the user. */
static bool recall_owner(void *ctx, int folder, const char *name)
{
	char head[PROTO_NAME_SIZE + 64] = "";
	unsigned uid;
	if (!text_ends_with(name, ".txt") || strlen(name) >= PROTO_NAME_SIZE + strlen(".txt") ||
		entry_of(ctx, name) != UNKNOWN) {
		return true;
	}
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && pread(fd, head, sizeof(head) - 1, 0) > 0 &&
		sscanf(head, "REPORT OF %*s User %u", &uid) == 1) {
		note_owner(ctx, name, uid);
	}
	if (fd >= 0) {
		close(fd);
	}
	return true;
}

/* Evicts the oldest of the user who has most, until there is room for one more. */
static void make_room(int folder, struct report_owners *owners, const char *but, size_t length)
{
	struct scan scan = {.unknown = 0};
	if (owners) {
		folder_list(folder, SIZE_MAX, recall_owner, owners);
	}
	for (;;) {
		scan = (struct scan){.but = but, .owners = owners, .others = scan.unknown};
		folder_list(folder, SIZE_MAX, scan_report, &scan);
		if (scan.files < REPORT_FILES_MAX && scan.bytes + length <= REPORT_BYTES_MAX) {
			return;
		}
		if (scan.others != scan.unknown) {
			continue; /* who has most was judged without it */
		}
		const size_t at = entry_of(owners, scan.oldest.name);
		if (!scan.oldest.name[0] || unlinkat(folder, scan.oldest.name, 0) < 0) {
			return;
		}
		if (at < UNKNOWN) {
			owners->owner[at].file[0] = '\0';
		}
	}
}

int report_file_write(const char *dir, struct report_owners *owners, const char *app, uid_t uid,
	const char *text, size_t length)
{
	char name[PROTO_NAME_SIZE + 8], temporary[PROTO_NAME_SIZE + 8];
	int folder = open_reports(dir);
	if (folder < 0) {
		return folder;
	}
	snprintf(name, sizeof(name), "%s.txt", app);
	snprintf(temporary, sizeof(temporary), "%s.new", app);
	make_room(folder, owners, name, length);
	int r = file_replace(folder, temporary, name, 0644, text, length);
	if (r == 0) {
		note_owner(owners, name, uid);
	}
	close(folder);
	return r;
}

static int read_report(int folder, const char *file, char *text, size_t size, int64_t *time_us)
{
	struct stat st;
	ssize_t length = file_read_own(folder, file, text, size - 1, &st);
	if (length <= 0) {
		return length < 0 ? (int)length : -ENOENT;
	}
	text[length] = '\0';
	*time_us = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
	return (int)length;
}

/* The file of the app, or the newest (app NULL), with a NUL; its app's name and when it was
 * written. The length; -ENOENT: there is none; -EFBIG: longer than size; -EPERM: not ours; other
 * -errno. */
static int report_file_read(const char *dir, const char *app, char *text, size_t size,
	char name[PROTO_NAME_SIZE], int64_t *time_us)
{
	struct scan scan = {.but = ""};
	int folder = open_reports(dir), r = -ENOENT;
	if (folder < 0) {
		return folder;
	}
	if (app) {
		snprintf(scan.newest.name, sizeof(scan.newest.name), "%s.txt", app);
	} else {
		folder_list(folder, SIZE_MAX, scan_report, &scan);
	}
	if (scan.newest.name[0]) {
		snprintf(name, PROTO_NAME_SIZE, "%.*s",
			(int)(strlen(scan.newest.name) - strlen(".txt")), scan.newest.name);
		r = read_report(folder, scan.newest.name, text, size, time_us);
	}
	close(folder);
	return r;
}

/* ---- the queue ---- */

enum { AGAIN_MS = 1000 };

struct report_job {
	const char *dir;
	struct report_owners *owners; /* of the only job that runs */
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
	struct report_owners owners;
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
	return report_file_write(job->dir, job->owners, job->app, job->uid, job->text, job->length);
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

/* A text that waits for the same app is replaced. -ENOSPC: too many of the user's wait. */
static int queue(struct reports *reports, struct report_job *job)
{
	struct report_job *older = NULL, *each;
	size_t all = 0, own = 0;
	TAILQ_FOREACH(each, &reports->queue, link)
	{
		if (strcmp(each->app, job->app) == 0) {
			older = each;
			continue;
		}
		all += each->length;
		own += each->uid == job->uid ? each->length : 0;
	}
	if (!accounts_fair(REPORT_BYTES_MAX, own, all, job->length)) {
		return -ENOSPC;
	}
	if (older) {
		TAILQ_INSERT_BEFORE(older, job, link);
		TAILQ_REMOVE(&reports->queue, older, link);
		free(older);
	} else {
		TAILQ_INSERT_TAIL(&reports->queue, job, link);
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
		job->owners = &reports->owners;
		memcpy(job->app, app->name, sizeof(job->app));
		job->uid = app->uid;
		job->length = (size_t)r;
		struct report_job *trimmed =
			realloc(job, offsetof(struct report_job, text) + (size_t)r + 1);
		job = trimmed ? trimmed : job;
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
