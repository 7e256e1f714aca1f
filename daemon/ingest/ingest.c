/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.c: opens and closes ingest and runs its drain timer while processes are attached; the
 * sample timer is in sample.c. Work is bounded in each iteration of the loop and shared fairly
 * between users. Everything happens on the loop's thread.
 */
#include "daemon/ingest/ingest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/runs/save.h"
#include "daemon/core/status/counters.h"
#include "daemon/ingest/ingest_private.h"
#include "daemon/util/sysops.h"

static const uint64_t DRAIN_NS = 100 * 1000000;
static const uint64_t END_WAIT_NS = 1000 * 1000000;
static const uint64_t ITERATION_NS = 1000000; /* into an iteration the timer drains */
static const uint64_t TURN_NS = 750000;	      /* of draining and saving in an iteration */

enum {
	BACKLOG = 64,
	DRAIN_RECORDS = 1024,	 /* of one attachment before the next one is drained */
	DRAIN_SHARED = 64,	 /* likewise, of one of several processes of an app with frames */
	DRAIN_NAMES = 4,	 /* new names, likewise */
	SAVES_PER_ITERATION = 8, /* statistics that one of them saves: 0.2 ms */
	ENDS_AT_START = 8,	 /* runs, with their reports */
};

void ingest_handle_closed(struct ingest *ingest)
{
	if (--ingest->handles == 0 && ingest->closing) {
		free(ingest);
	}
}

void ingest_refuse(
	struct ingest *ingest, const struct peer *peer, const char *app, const char *reason)
{
	struct counters *counters = ingest->core->counters;
	uint64_t now_ns = sysops()->now_ns();
	char name[PROTO_NAME_SIZE] = "";
	if (app) {
		proto_name_clean(app, strlen(app), name);
	}
	counters->attaches_refused++;
	snprintf(counters->attach_refused_reason, sizeof(counters->attach_refused_reason),
		"%s (pid %d, uid %u): %s", app ? name : "a process", (int)peer->pid,
		(unsigned)peer->uid, reason);
	/* Clients try again each second: only new refusals are logged. */
	if (rejected_attaches_add(
		    &counters->rejected_attaches, name, peer->uid, peer->pid, reason, now_ns) &&
		apps_may_log(ingest->core->apps, peer->uid, TIMELINE_WARNING, now_ns)) {
		timeline_add(ingest->core->timeline, now_ns, TIMELINE_APP, TIMELINE_WARNING, name,
			"refused (pid %d, uid %u): %s", (int)peer->pid, (unsigned)peer->uid,
			reason);
	}
}

bool ingest_trusts(const struct ingest *ingest, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == ingest->options.owner;
}

static void on_drain(uv_timer_t *timer);

void ingest_drain_timer(struct ingest *ingest)
{
	if (ingest->closing) {
		return;
	}
	uint64_t ms = ingest_ms(ingest->options.drain_interval_ns);
	if (LIST_EMPTY(&ingest->attachments)) {
		uv_timer_stop(&ingest->drain);
	} else if (!uv_is_active((uv_handle_t *)&ingest->drain)) {
		uv_timer_start(&ingest->drain, on_drain, ms, ms);
	}
}

static void drain_soon(struct ingest *ingest)
{
	if (!ingest->closing) {
		uv_timer_start(
			&ingest->drain, on_drain, 1, ingest_ms(ingest->options.drain_interval_ns));
	}
}

static void end_overdue(struct ingest *ingest, uint64_t now_ns)
{
	struct attachment *next;
	for (struct attachment *a = LIST_FIRST(&ingest->attachments); a; a = next) {
		next = LIST_NEXT(a, link);
		if (attachment_overdue(a, now_ns)) {
			attachment_exited(a);
		}
	}
}

/* Frames may have parts in several processes of an app: the one that is farthest behind is next. */
static struct attachment *oldest_of_app(const struct ingest *ingest, struct attachment *a)
{
	struct attachment *oldest = a, *b;
	LIST_FOREACH(b, &ingest->attachments, link)
	{
		if (b->due && b->process->app == a->process->app &&
			ring_waiting_ns(b->ring) < ring_waiting_ns(oldest->ring)) {
			oldest = b;
		}
	}
	return oldest;
}

/* Of the user who was served least lately, the attachment that waited longest. */
static struct attachment *next_due(const struct ingest *ingest)
{
	struct attachment *next = NULL;
	uint64_t min_ns = 0;
	struct attachment *a;
	LIST_FOREACH(a, &ingest->attachments, link)
	{
		uint64_t served_ns = accounts_served(a->account, uv_now(ingest->loop));
		if (a->due && (!next || served_ns < min_ns ||
				      (served_ns == min_ns && a->last_drain < next->last_drain))) {
			next = a;
			min_ns = served_ns;
		}
	}
	return next;
}

/* True when that was its end. */
static bool drain_one(struct ingest *ingest, struct attachment *a)
{
	struct account *account = a->account;
	const struct app *app = a->process->app;
	bool framed = app->frames || app->stages == 0; /* nothing was read of it yet */
	bool shared = app->processes > 1 && framed && !a->ending;
	size_t records = shared ? DRAIN_SHARED : DRAIN_RECORDS;
	const uint64_t from_ns = sysops()->now_ns();
	attachment_drain(a, from_ns, records, DRAIN_NAMES);
	a->last_drain = ++ingest->drains;
	const bool over = attachment_end_drained(a);
	const uint64_t took_ns = sysops()->now_ns() - from_ns;
	ingest->iteration.used += took_ns;
	accounts_charge(account, uv_now(ingest->loop), took_ns);
	return over;
}

static void update_iteration(struct ingest *ingest)
{
	iteration_update(
		&ingest->iteration, ingest->core->counters->iterations, uv_now(ingest->loop));
}

/* False when some are left. */
static bool drain_due(struct ingest *ingest, uint64_t end_ns)
{
	update_iteration(ingest);
	struct attachment *a = next_due(ingest);
	bool over = false;
	while (a && !over && ingest->iteration.used < TURN_NS) {
		struct attachment *oldest = oldest_of_app(ingest, a);
		a->last_drain = ingest->drains + 1; /* this is its turn: other apps are next */
		drain_one(ingest, oldest);
		a = next_due(ingest);
		over = end_ns < UINT64_MAX && sysops()->now_ns() > end_ns;
	}
	if (a) {
		drain_soon(ingest);
	}
	return !a;
}

bool ingest_drain_due(struct ingest *ingest)
{
	return drain_due(ingest, UINT64_MAX);
}

void ingest_drain_ending(struct ingest *ingest, struct attachment *attachment)
{
	bool over = false;
	update_iteration(ingest);
	for (int i = 0; i < 2 && !over && ingest->iteration.used < TURN_NS; i++) {
		over = drain_one(ingest, attachment);
	}
	if (!over) {
		drain_soon(ingest);
	}
}

/* The attachments of an app; NULL = all. */
static void mark_due(struct ingest *ingest, const struct app *app)
{
	const uint64_t now_ns = sysops()->now_ns();
	struct attachment *a;
	LIST_FOREACH(a, &ingest->attachments, link)
	{
		a->due |= (!app || a->process->app == app) && !attachment_is_held(a, now_ns);
	}
}

bool ingest_drain_app(struct ingest *ingest, const struct app *app)
{
	mark_due(ingest, app);
	return ingest_drain_due(ingest);
}

void ingest_resume_connections(struct ingest *ingest)
{
	struct connection *c;
	LIST_FOREACH(c, &ingest->connections, link)
	{
		connection_resume(c);
	}
}

static void on_drain(uv_timer_t *timer)
{
	struct ingest *ingest = timer->data;
	uint64_t now_ms = uv_now(ingest->loop);
	/* between its ticks the timer runs for what an iteration left */
	if (now_ms - ingest->drained_ms >= ingest_ms(ingest->options.drain_interval_ns)) {
		ingest->drained_ms = now_ms;
		mark_due(ingest, NULL);
	}
	const uint64_t from_ns = sysops()->now_ns();
	end_overdue(ingest, from_ns);
	if (ingest->saves > 0) {
		ingest->saves--;
		apps_save_some(ingest->core->apps, SAVES_PER_ITERATION);
		update_iteration(ingest);
		ingest->iteration.used += sysops()->now_ns() - from_ns;
	}
	drain_due(ingest, ingest->waited_ns + ITERATION_NS);
	ingest_resume_connections(ingest);
}

bool ingest_drain(struct ingest *ingest)
{
	return ingest_drain_app(ingest, NULL);
}

static void on_accept(uv_poll_t *handle, int status, int events)
{
	(void)events;
	if (status == 0) {
		connection_accept(handle->data);
	}
}

int ingest_listen(struct ingest *ingest)
{
	ingest->listen_paused = false;
	return uv_poll_start(&ingest->listen, UV_READABLE, on_accept);
}

static bool is_gone(pid_t pid, uint64_t start_ticks)
{
	uint64_t now = peer_start_ticks(pid);
	return now > 0 ? now != start_ticks : kill(pid, 0) < 0 && errno == ESRCH;
}

void ingest_end_saved(struct ingest *ingest, size_t n, uint64_t now_ns)
{
	apps_end_saved(ingest->core->apps, n, is_gone, now_ns);
}

static void on_waited(uv_check_t *handle)
{
	struct ingest *ingest = handle->data;
	uint64_t now_ns = sysops()->now_ns();
	ingest->waited_ns = now_ns;
	if (now_ns >= ingest->sample_ns && !ingest->closing) {
		ingest_sample_now(ingest);
	}
}

int ingest_open(uv_loop_t *loop, struct core *core, const struct ingest_options *options,
	struct ingest **ret)
{
	struct ingest *ingest = mem_zalloc(sizeof(*ingest));
	if (!ingest) {
		return -ENOMEM;
	}
	ingest->loop = loop;
	ingest->core = core;
	ingest->options = *options;
	ingest->opened_ns = sysops()->now_ns();
	if (ingest->options.drain_interval_ns == 0) {
		ingest->options.drain_interval_ns = DRAIN_NS;
	}
	if (ingest->options.end_wait_ns == 0) {
		ingest->options.end_wait_ns = END_WAIT_NS;
	}
	core->counters->limits[LIMIT_MAPPINGS].max = ingest->options.max_mapping_bytes;
	core->counters->limits[LIMIT_EVENT_CONNECTIONS].max = ingest->options.max_connections;
	int r = apps_observe(core->apps,
		&(struct apps_observer){.displace = attachments_displace, .ctx = ingest});
	r = r == 0 && listen(options->fd, BACKLOG) < 0 ? -errno : r;
	r = r < 0 ? r : uv_poll_init(loop, &ingest->listen, options->fd);
	if (r < 0) {
		apps_unobserve(core->apps, ingest);
		free(ingest);
		return r;
	}
	uv_timer_init(loop, &ingest->drain);
	uv_timer_init(loop, &ingest->sample);
	uv_check_init(loop, &ingest->after_wait);
	ingest->handles = 4;
	ingest->listen.data = ingest->drain.data = ingest->sample.data = ingest;
	ingest->after_wait.data = ingest;
	ingest->waited_ns = sysops()->now_ns();
	/* before one of them is started again */
	ingest_end_saved(ingest, ENDS_AT_START, ingest->waited_ns);
	uv_check_start(&ingest->after_wait, on_waited);
	ingest_await_sample(ingest, ingest->waited_ns);
	r = ingest_listen(ingest);
	if (r < 0) {
		ingest_close(ingest);
		return r;
	}
	*ret = ingest;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	ingest_handle_closed(handle->data);
}

void ingest_close(struct ingest *ingest)
{
	if (!ingest || ingest->closing) {
		return;
	}
	ingest->closing = true;
	apps_unobserve(ingest->core->apps, ingest);
	struct attachment *a;
	LIST_FOREACH(a, &ingest->attachments, link)
	{
		attachment_drain_all(a);
	}
	apps_save_all(ingest->core->apps); /* later records stay in the mappings */
	while (!LIST_EMPTY(&ingest->attachments)) {
		attachment_finish(LIST_FIRST(&ingest->attachments));
	}
	while (!LIST_EMPTY(&ingest->connections)) {
		ingest_disconnect(LIST_FIRST(&ingest->connections));
	}
	uv_close((uv_handle_t *)&ingest->listen, on_closed);
	uv_close((uv_handle_t *)&ingest->drain, on_closed);
	uv_close((uv_handle_t *)&ingest->sample, on_closed);
	uv_close((uv_handle_t *)&ingest->after_wait, on_closed);
}
