/* SPDX-License-Identifier: Apache-2.0 */
/* session_requests.c: starts, stops and deletes sessions as clients ask for it, and starts
 * automatic ones. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/status/recordings.h"
#include "daemon/recorder/session_private.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/api.h"
#include "proto/text.h"
#include "proto/utf8.h"

#define AUTOMATIC_NS UINT64_C(30000000000) /* that an app runs before its session starts */

/* The app that a request without one is for: the only one that runs; "": the device alone.
 * -EINVAL with a reason. */
static int choose_app(const struct session_recorder *recorder, struct api_session *request,
	char ret[PROTO_NAME_SIZE])
{
	char list[256];
	struct text names = TEXT_IN(list);
	const struct app *app;
	size_t count = 0;
	for (size_t i = 0; (app = apps_at(recorder->core->apps, i)); i++) {
		if (app->processes > 0 && (request->privileged || app->uid == request->uid)) {
			text_join(&names, ", ", "%s", app->name);
			memcpy(ret, app->name, sizeof(app->name));
			count++;
		}
	}
	if (count == 1 || (count == 0 && request->privileged && isnan(request->frames))) {
		return 0;
	}
	snprintf(request->reason, sizeof(request->reason), "%s%s",
		count > 0 ? "several apps are running, name one of them: "
			  : "no app is running that may be meant, name one",
		list);
	return -EINVAL;
}

/* What is not known, or does not fit, is not there. */
static void note(struct session *row, const char *name, const char *value)
{
	char clean[SESSION_TAG_VALUE];
	snprintf(clean, sizeof(clean), "%s", value);
	proto_utf8_clean(clean);
	if (clean[0]) {
		session_tags_add(&row->environment, name, clean);
	}
}

/* The device and how it is set: what a session's numbers depend on. */
static void note_device(struct session *row, const struct core *core)
{
	const struct machine_facts *facts = core->facts;
	const struct modes *modes = core->modes;
	char number[16];
	note(row, "device", facts->model);
	note(row, "os", facts->os);
	note(row, "kernel", facts->kernel);
	note(row, "arch", facts->arch);
	note(row, "edgeprofd", facts->version);
	snprintf(number, sizeof(number), "%u", facts->cpus);
	note(row, "cpus", number);
	if (!modes) {
		return;
	}
	snprintf(number, sizeof(number), "%d", modes->power_mode);
	note(row, "power_mode",
		modes->power_mode_name[0] ? modes->power_mode_name
		: modes->have_power_mode  ? number
					  : "");
	note(row, "governor", modes->governor);
	note(row, "gpu_governor", modes->gpu_governor);
	note(row, "clocks",
		modes->clocks == CLOCKS_PINNED ? "pinned"
		: modes->clocks == CLOCKS_FREE ? "free"
					       : "");
}

/* The processors that it may use: Cpus_allowed_list of /proc/PID/status. */
void session_note_affinity(struct session *row, const struct app *app)
{
	static const char key[] = "\nCpus_allowed_list:\t";
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)app->last_pid);
	int fd = app->last_pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : sysops()->pread(fd, text, sizeof(text) - 1, 0);
	if (fd >= 0) {
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	char *at = strstr(text, key);
	if (at) {
		at += strlen(key);
		at[strcspn(at, "\n")] = '\0';
		note(row, "affinity", at);
	}
}

static int make_row(const struct session_recorder *recorder, const struct api_session *request,
	const char *app, struct session **ret)
{
	struct session *row = mem_zalloc(sizeof(*row));
	if (!row) {
		return -ENOMEM;
	}
	row->uid = request->uid;
	row->warmup = app[0] ? request->warmup : 0;
	row->frames = request->frames;
	row->seconds = request->seconds;
	row->automatic = request->automatic;
	row->measured_us = row->ended_us = row->left_s = (double)NAN;
	row->recent_mean_ms = row->progress_mean_ms = row->fps = (double)NAN;
	row->kept_share = 1;
	row->started_us = wallclock_us(recorder->core->wall, request->now_ns);
	snprintf(row->app, sizeof(row->app), "%s", app);
	int r = sessions_name(&recorder->sessions, request->name, row->name);
	if (request->tags) {
		row->tags = *request->tags;
		*request->tags = (struct session_tags){NULL, 0, 0, 0};
	}
	note_device(row, recorder->core);
	const struct app *running = app[0] ? apps_find(recorder->core->apps, app) : NULL;
	if (running && running->processes > 0) {
		session_note_affinity(row, running);
	}
	const char *at = request->environment ? request->environment->text : NULL;
	for (size_t i = 0; r == 0 && at && i < request->environment->count; i++) {
		const char *value = at + strlen(at) + 1;
		session_tags_add(&row->environment, at, value); /* what is there stays */
		at = value + strlen(value) + 1;
	}
	if (r < 0) {
		session_destroy(row);
		return r;
	}
	*ret = row;
	return 0;
}

/* Records of an app that runs already are those from now on. */
static void skip_records(struct session_run *run)
{
	const struct app *app = sessions_app(run);
	if (app && app->log) {
		struct trace_usage span;
		trace_log_span(app->log, &span);
		run->cursor.position = span.overwritten + span.count;
	}
}

static int start(struct session_recorder *recorder, struct api_session *request)
{
	char name[PROTO_NAME_SIZE] = "";
	struct session *row;
	const char *refusal = sessions_refusal(&recorder->sessions, request->uid,
		request->privileged, request->automatic, &request->limit);
	if (refusal || recorder->runs == RUNS_MAX) {
		snprintf(request->reason, sizeof(request->reason), "%s",
			refusal ? refusal : "active sessions");
		return -ENOSPC;
	}
	const struct app *app = request->app ? apps_find(recorder->core->apps, request->app) : NULL;
	if (app && app->processes > 0 && !request->privileged && app->uid != request->uid) {
		return -EPERM;
	}
	int r = 0;
	if (request->app) {
		snprintf(name, sizeof(name), "%s", request->app);
	} else {
		r = choose_app(recorder, request, name);
	}
	sessions_evict(recorder);
	r = r < 0 ? r : make_row(recorder, request, name, &row);
	if (r < 0) {
		return r;
	}
	r = sessions_append(&recorder->sessions, row);
	if (r == 0) {
		r = session_run_start(recorder, row, request->privileged, NULL, request->now_ns);
	}
	if (r < 0) {
		sessions_remove(&recorder->sessions, row);
		session_destroy(row);
		return r == -ENOSPC ? -EAGAIN : r;
	}
	struct session_run *run = recorder->run[recorder->runs - 1];
	skip_records(run);
	session_run_poll(run, request->now_ns, request->now_ns + SESSION_SLICE_NS);
	request->row = row;
	sessions_serve(recorder);
	return 0;
}

static int stop(struct session_recorder *recorder, struct api_session *request, struct session *row)
{
	struct session_run *run = session_is_active(row) ? sessions_run_of(recorder, row) : NULL;
	request->row = row;
	if (!run) {
		return 0;
	}
	session_run_catch_up(run, request->now_ns + 4 * SESSION_SLICE_NS);
	if (run->ending) { /* with the last of these records */
		return 0;
	}
	if (request->error) {
		snprintf(row->error, sizeof(row->error), "%s", request->error);
		for (char *at = row->error; (at = strchr(at, '"'));) {
			*at = '\'';
		}
		record_text_clean(row->error);
	}
	session_run_stop(run, request->now_ns, request->error ? SESSION_FAILED : SESSION_STOPPED);
	return 0;
}

int session_recorder_request(struct session_recorder *recorder, struct api_session *request)
{
	if (recorder->closing || !recorder->api) {
		snprintf(request->reason, sizeof(request->reason), "the daemon is stopping");
		return -ESHUTDOWN;
	}
	if (request->action == API_SESSION_START) {
		return start(recorder, request);
	}
	struct session *row = sessions_find(&recorder->sessions, request->name);
	if (!row || (!request->privileged && row->uid != request->uid)) {
		return -ENOENT;
	}
	if (request->action == API_SESSION_STOP) {
		return stop(recorder, request, row);
	}
	sessions_discard(recorder, row);
	sessions_evict(recorder);
	return 0;
}

void sessions_start_automatic(struct session_recorder *recorder, uint64_t now_ns)
{
	const struct app *app;
	for (size_t i = 0; (app = apps_at(recorder->core->apps, i)); i++) {
		bool has = app->processes == 0 || now_ns - app->since_ns < AUTOMATIC_NS;
		const int64_t since_us = wallclock_us(recorder->core->wall, app->since_ns);
		for (size_t k = 0; !has && k < recorder->sessions.count; k++) {
			const struct session *row = recorder->sessions.row[k];
			has = strcmp(row->app, app->name) == 0 &&
			      (session_is_active(row) ||
				      (row->automatic && row->started_us >= since_us));
		}
		char name[PROTO_NAME_SIZE + 8];
		snprintf(name, sizeof(name), "%.44s-run", app->name);
		struct api_session request = {.name = name,
			.uid = app->uid,
			.now_ns = now_ns,
			.app = app->name,
			.frames = (double)NAN,
			.seconds = (double)NAN,
			.automatic = true};
		if (!has) {
			start(recorder, &request);
		}
	}
}
