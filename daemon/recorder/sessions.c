/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c: keeps the sessions: those of a previous start of the daemon, which have to go, and a
 * timer that serves what is active, in slices.
 */
#include "daemon/recorder/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/recorder/session_private.h"
#include "daemon/util/log.h"
#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/api.h"

enum { TICK_MS = 200, SOON_MS = 1 };

struct session_run *sessions_run_of(
	const struct session_recorder *recorder, const struct session *row)
{
	for (size_t i = 0; i < recorder->runs; i++) {
		if (recorder->run[i]->row == row) {
			return recorder->run[i];
		}
	}
	return NULL;
}

const struct app *sessions_app(const struct session_run *run)
{
	const struct app *app =
		run->row->app[0] ? apps_find(run->owner->core->apps, run->row->app) : NULL;
	return app && (run->privileged || app->uid == run->row->uid) ? app : NULL;
}

/* ---- removal ---- */

bool sessions_is_removing(const struct session_recorder *recorder, const char *name)
{
	for (size_t i = 0; i < recorder->removals; i++) {
		if (strcmp(recorder->removal[i], name) == 0) {
			return true;
		}
	}
	for (size_t i = 0; i < recorder->runs; i++) { /* as soon as its last write is done */
		if (recorder->run[i]->removed && strcmp(recorder->run[i]->row->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static int remove_first(void *data)
{
	const struct session_recorder *recorder = data;
	return session_folder_remove(recorder->sessions.dir, recorder->removal[0]);
}

static void remove_next(struct session_recorder *recorder);

static void on_removed(void *ctx, int result, void *data)
{
	struct session_recorder *recorder = data;
	(void)ctx;
	if (result < 0 && result != -ENOENT) {
		log_warning("%s/%s.jsonl: cannot be deleted: %s", recorder->sessions.dir,
			recorder->removal[0], strerror(-result));
	}
	recorder->remover = NULL;
	memmove(recorder->removal[0], recorder->removal[1],
		--recorder->removals * sizeof(recorder->removal[0]));
	remove_next(recorder);
}

/* One after the other: there may be as many as there are rows. */
static void remove_next(struct session_recorder *recorder)
{
	static const struct offload_ops ops = {.work = remove_first, .done = on_removed};
	if (recorder->removals > 0 && !recorder->remover &&
		offload_start(recorder->loop, &ops, recorder, NULL, &recorder->remover) < 0) {
		on_removed(NULL, remove_first(recorder), recorder);
	}
}

static void remove_named(struct session_recorder *recorder, const char *name)
{
	if (recorder->removals == REMOVALS_MAX) {
		session_folder_remove(recorder->sessions.dir, name);
		return;
	}
	memcpy(recorder->removal[recorder->removals++], name, PROTO_NAME_SIZE);
	remove_next(recorder);
}

void sessions_discard(struct session_recorder *recorder, struct session *row)
{
	struct session_run *run = sessions_run_of(recorder, row);
	sessions_remove(&recorder->sessions, row);
	if (run) {
		run->removed = true;
		session_run_abandon(run);
	} else {
		remove_named(recorder, row->name);
		session_destroy(row);
	}
}

void sessions_on_closed(struct session_run *run)
{
	struct session_recorder *recorder = run->owner;
	size_t at = 0;
	while (recorder->run[at] != run) {
		at++;
	}
	recorder->run[at] = recorder->run[--recorder->runs];
	run->row->writing = false;
	if (run->removed) {
		remove_named(recorder, run->row->name);
		session_destroy(run->row);
	} else {
		sessions_on_end(&recorder->sessions, run->row);
	}
	free(run);
	if (!recorder->closing) {
		sessions_evict(recorder);
	}
}

void sessions_evict(struct session_recorder *recorder)
{
	struct sessions *sessions = &recorder->sessions;
	const int64_t now_us = wallclock_us(recorder->core->wall, sysops()->now_ns());
	struct session *row;
	bool expired;
	for (size_t i = 0; i < sessions->count; i++) {
		row = sessions->row[i];
		/* the clock may have been synchronised since */
		const int64_t moved_us =
			row->ended_ns > 0 ? wallclock_us(recorder->core->wall, row->ended_ns) -
						    (int64_t)row->ended_us
					  : 0;
		row->started_us += moved_us;
		row->measured_us += (double)moved_us;
		row->ended_us += (double)moved_us;
	}
	while ((row = sessions_victim(sessions, &recorder->limits, now_us, &expired))) {
		*(expired ? &sessions->expired : &sessions->evictions) += 1;
		sessions_discard(recorder, row);
	}
	sessions->bytes = 0;
	for (size_t i = 0; i < sessions->count; i++) {
		sessions->bytes += sessions->row[i]->bytes;
	}
}

/* ---- the timer ---- */

/* Serves the next runs until the slice is over. True: each of them has been, and none is behind. */
static bool serve(struct session_recorder *recorder, uint64_t now_ns)
{
	const uint64_t until_ns = now_ns + SESSION_SLICE_NS;
	while (recorder->served < recorder->runs) {
		struct session_run *run = recorder->run[recorder->served++];
		recorder->behind |= !session_run_poll(run, now_ns, until_ns);
		if (sysops()->now_ns() >= until_ns) {
			break;
		}
	}
	if (recorder->served < recorder->runs) {
		return false;
	}
	const bool done = !recorder->behind;
	recorder->served = 0;
	recorder->behind = false;
	return done;
}

static void on_timer(uv_timer_t *timer)
{
	struct session_recorder *recorder = timer->data;
	const struct api_options *options = &recorder->api->options;
	if (recorder->served == 0 && recorder->runs > 0 && options->refresh) {
		options->refresh(options->ctx, sysops()->now_ns());
	}
	const bool done = serve(recorder, sysops()->now_ns());
	if (done && recorder->options.automatic) {
		sessions_evict(recorder);
		sessions_start_automatic(recorder, sysops()->now_ns());
	}
	if (recorder->runs > 0 || recorder->options.automatic) {
		uv_timer_start(timer, on_timer, done ? TICK_MS : SOON_MS, 0);
	}
}

void sessions_serve(struct session_recorder *recorder)
{
	uv_timer_start(&recorder->timer, on_timer, TICK_MS, 0);
}

/* ---- start and end ---- */

static void finish_interrupted(
	struct session_recorder *recorder, const struct session_found *found, struct session *row)
{
	const struct session_point *last = &found->last;
	const bool same_boot = strcmp(found->boot_id, recorder->core->facts->boot_id) == 0;
	row->state = SESSION_INTERRUPTED;
	session_point_apply(last, row);
	row->ended_us = (double)row->started_us;
	if (last->mono_us > found->begin_mono_us) {
		row->ended_us += (double)(last->mono_us - found->begin_mono_us);
	}
	if (last->measured_mono_us > 0) {
		row->elapsed_s = (double)(last->mono_us - last->measured_mono_us) / 1e6;
	}
	snprintf(row->cut, sizeof(row->cut), "%s",
		same_boot ? "edgeprofd was killed" : "the device was restarted");
	if (session_folder_end(recorder->sessions.dir, row) < 0) {
		log_warning("%s/%s.jsonl: cannot be completed", recorder->sessions.dir, row->name);
	}
}

static void on_found(void *ctx, struct session_found *found)
{
	struct session_recorder *recorder = ctx;
	struct session *row = mem_zalloc(sizeof(*row));
	if (row) {
		*row = found->row;
	}
	if (!row || sessions_append(&recorder->sessions, row) < 0) {
		session_tags_clear(&found->row.tags);
		session_tags_clear(&found->row.environment);
		free(row);
		return;
	}
	const bool goes_on =
		!found->ended && strcmp(found->boot_id, recorder->core->facts->boot_id) == 0 &&
		found->last.mono_us > 0 &&
		session_run_start(recorder, row, found->privileged, found, sysops()->now_ns()) == 0;
	if (!found->ended && !goes_on) {
		finish_interrupted(recorder, found, row);
	}
}

void session_recorder_set_api(struct session_recorder *recorder, struct api *api)
{
	recorder->api = api;
	session_folder_scan(recorder->sessions.dir, on_found, recorder);
	sessions_evict(recorder);
	sessions_serve(recorder);
}

void session_recorder_configure(
	struct session_recorder *recorder, const struct session_options *options)
{
	struct session_limits *limits = &recorder->limits;
	recorder->options = *options;
	*limits = (struct session_limits){.max_size = options->max_size,
		.total_size = options->total_size,
		.ttl_us = (int64_t)(options->ttl_ns / 1000),
		.own = geteuid()};
	if (recorder->in_memory && limits->total_size > SESSIONS_RUN_BYTES) {
		limits->total_size = SESSIONS_RUN_BYTES;
	}
	recorder->sessions.limit_bytes = limits->total_size;
	memcpy(recorder->sessions.baseline, options->baseline, sizeof(options->baseline));
	memcpy(recorder->sessions.targets, options->targets, sizeof(options->targets));
	if (recorder->api) {
		sessions_evict(recorder);
		sessions_serve(recorder);
	}
}

int session_recorder_open(uv_loop_t *loop, struct core *core, const char *dir,
	const struct session_options *options, struct session_recorder **ret)
{
	struct session_recorder *recorder = mem_zalloc(sizeof(*recorder));
	if (!recorder) {
		return -ENOMEM;
	}
	recorder->loop = loop;
	recorder->core = core;
	recorder->in_memory = strcmp(dir, core->facts->run_dir) == 0;
	snprintf(recorder->sessions.dir, sizeof(recorder->sessions.dir), "%s/sessions", dir);
	session_recorder_configure(recorder, options);
	int r = uv_timer_init(loop, &recorder->timer);
	recorder->timer.data = recorder;
	if (r < 0) {
		free(recorder);
		return r;
	}
	core->sessions = &recorder->sessions;
	*ret = recorder;
	return 0;
}

void session_recorder_close(struct session_recorder *recorder)
{
	if (!recorder || recorder->closing) {
		return;
	}
	uv_close((uv_handle_t *)&recorder->timer, NULL);
	for (size_t i = 0; i < recorder->runs; i++) {
		session_run_catch_up(recorder->run[i], sysops()->now_ns() + SESSION_SLICE_NS);
	}
	recorder->closing = true; /* from here on a run may be gone after a write */
	for (size_t i = recorder->runs; i-- > 0;) { /* the last one may take its place */
		session_run_suspend(recorder->run[i]);
	}
}

void session_recorder_destroy(struct session_recorder *recorder)
{
	if (!recorder) {
		return;
	}
	while (recorder->sessions.count > 0) {
		struct session *row = recorder->sessions.row[0];
		sessions_remove(&recorder->sessions, row);
		session_destroy(row);
	}
	recorder->core->sessions = NULL;
	free(recorder);
}
