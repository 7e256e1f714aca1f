/*
 * Ingest's frame: the events socket, the drain timer that runs while somebody is attached, and the
 * sample timer that turns statistics into metrics. Everything happens on the loop's thread.
 */
#include "daemon/ingest/ingest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ingest/ingest_private.h"
#include "daemon/util/log.h"
#include "daemon/util/closer.h"
#include "daemon/util/seam.h"

static const uint64_t DRAIN_NS = 100 * 1000000;
static const uint64_t SAMPLE_NS = 1000 * 1000000;
static const uint64_t TURN_NS = 1000000; /* of draining at a time; one process may take as long */

enum {
	MAX_CONNECTIONS = 64,
	MAX_MAPPING_BYTES = 16 * 1024 * 1024,
	STAGES_A_TURN = 48, /* that are sampled in one turn of the loop: 0.1 to 0.5 ms */
};

void ingest_handle_closed(struct ingest *ingest)
{
	if (--ingest->handles > 0 || !ingest->closing) {
		return;
	}
	void (*done)(void *ctx) = ingest->done;
	void *ctx = ingest->done_ctx;
	closer_destroy(ingest->closer);
	free(ingest);
	if (done) {
		done(ctx);
	}
}

void ingest_refuse(
	struct ingest *ingest, const struct peer *peer, const char *app, const char *reason)
{
	struct counters *counters = ingest->core->counters;
	uint64_t now_ns = seam()->now_ns();
	char name[PROTO_NAME_SIZE] = "";
	if (app) {
		proto_name_clean(app, strlen(app), name);
	}
	counters->attaches_refused++;
	snprintf(counters->attach_refused_reason, sizeof(counters->attach_refused_reason),
		"%s (pid %d, uid %u): %s", app ? name : "a process", (int)peer->pid,
		(unsigned)peer->uid, reason);
	/* Clients try again each second: only what is new is told. */
	if (refusals_add(&counters->refusals, name, peer->uid, peer->pid, reason, now_ns) &&
		apps_may_tell(ingest->core->apps, peer->uid, TIMELINE_WARNING, now_ns)) {
		timeline_add(ingest->core->timeline, now_ns, TIMELINE_APP, TIMELINE_WARNING, name,
			"refused (pid %d, uid %u): %s", (int)peer->pid, (unsigned)peer->uid,
			reason);
	}
}

bool ingest_trusts(const struct ingest *ingest, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == ingest->owner;
}

static uint64_t milliseconds(uint64_t ns)
{
	return ns < 1000000 ? 1 : ns / 1000000;
}

static void on_drain(uv_timer_t *timer);

void ingest_drain_timer(struct ingest *ingest)
{
	if (ingest->closing) {
		return;
	}
	uint64_t ms = milliseconds(ingest->options.drain_interval_ns);
	if (!ingest->attachments) {
		uv_timer_stop(&ingest->drain);
	} else if (!uv_is_active((uv_handle_t *)&ingest->drain)) {
		uv_timer_start(&ingest->drain, on_drain, ms, ms);
	}
}

bool ingest_turn(struct ingest *ingest, uint64_t now_ns)
{
	uint64_t turn_ms = uv_now(ingest->loop);
	if (turn_ms != ingest->turn_ms) {
		ingest->turn_ms = turn_ms;
		ingest->turn_ns = now_ns;
	}
	return now_ns - ingest->turn_ns < TURN_NS;
}

void ingest_drain_soon(struct ingest *ingest)
{
	if (!ingest->closing) {
		uv_timer_start(&ingest->drain, on_drain, 1,
			milliseconds(ingest->options.drain_interval_ns));
	}
}

static void end_overdue(struct ingest *ingest, uint64_t now_ns)
{
	struct attachment *next;
	for (struct attachment *a = ingest->attachments; a; a = next) {
		next = a->next;
		if (attachment_overdue(a, now_ns)) {
			attachment_gone(a);
		}
	}
}

/* Drains what it can in this turn; the rest in the next ones. */
static void drain_turn(struct ingest *ingest, uint64_t now_ns)
{
	bool more = false;
	end_overdue(ingest, now_ns);
	struct attachment *a = ingest->undrained ? ingest->undrained : ingest->attachments;
	for (; a && ingest_turn(ingest, now_ns); a = a->next) {
		more = attachment_drain(a, now_ns) || more;
		now_ns = seam()->now_ns();
	}
	ingest->undrained = a;
	for (struct connection *c = ingest->connections; c; c = c->next) {
		connection_resume(c);
	}
	if (more || a) {
		ingest_drain_soon(ingest);
	}
}

static void on_drain(uv_timer_t *timer)
{
	drain_turn(timer->data, seam()->now_ns());
}

void ingest_drain(struct ingest *ingest, uint64_t now_ns)
{
	const uint64_t *received = &ingest->core->counters->events_received, before = *received;
	bool more = false;
	struct attachment *a = ingest->undrained ? ingest->undrained : ingest->attachments;
	for (; a && *received - before < RING_BUDGET; a = a->next) {
		more = attachment_drain(a, now_ns) || more;
	}
	ingest->undrained = a;
	if (more || a) {
		ingest_drain_soon(ingest);
	}
}

static void on_accept(uv_poll_t *handle, int status, int events)
{
	(void)events;
	if (status == 0) {
		connection_accept(handle->data);
	}
}

static void on_sample(uv_timer_t *timer);

static void close_silent(struct ingest *ingest, uint64_t now_ns)
{
	struct connection *next;
	for (struct connection *c = ingest->connections; c; c = next) {
		next = c->next;
		if (!c->attachment && now_ns - c->accepted_ns > HELLO_TIMEOUT_S * 1000000000ull) {
			ingest_refuse(ingest, &c->peer, NULL, "no hello within 5 s");
			attachment_close_connection(c);
		}
	}
}

/* Many stages are sampled in several turns of the loop; the last one commits. True: not yet. */
static bool sample_goes_on(struct ingest *ingest)
{
	uint64_t every_ms = milliseconds(ingest->options.sample_interval_ns);
	bool more = apps_sample_ahead(ingest->core->apps, STAGES_A_TURN);
	if (more) {
		if (ingest->sample_ms == 0) {
			ingest->sample_ms = uv_now(ingest->loop);
		}
		uv_timer_start(&ingest->sample, on_sample, 1, every_ms);
	} else if (ingest->sample_ms > 0) { /* the next one comes as if this one had been short */
		uint64_t took_ms = uv_now(ingest->loop) - ingest->sample_ms;
		uint64_t left_ms = took_ms < every_ms ? every_ms - took_ms : 1;
		ingest->sample_ms = 0;
		uv_timer_start(&ingest->sample, on_sample, left_ms, every_ms);
	}
	return more;
}

static void on_sample(uv_timer_t *timer)
{
	struct ingest *ingest = timer->data;
	uint64_t now_ns = seam()->now_ns();
	if (sample_goes_on(ingest)) {
		return;
	}
	close_silent(ingest, now_ns);
	if (ingest->listen_paused) {
		ingest->listen_paused = false;
		uv_poll_start(&ingest->listen, UV_READABLE, on_accept);
	}
	drain_turn(ingest, now_ns);
	for (struct attachment *a = ingest->attachments; a; a = a->next) {
		attachment_sample(a, now_ns);
	}
	apps_sample(ingest->core->apps, now_ns);
	for (struct attachment *a = ingest->attachments; a; a = a->next) {
		attachment_advise(a, now_ns);
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
	ingest->options.path = ingest->options.group = NULL; /* the caller's; not needed again */
	if (ingest->options.drain_interval_ns == 0) {
		ingest->options.drain_interval_ns = DRAIN_NS;
	}
	if (ingest->options.sample_interval_ns == 0) {
		ingest->options.sample_interval_ns = SAMPLE_NS;
	}
	if (ingest->options.max_connections == 0) {
		ingest->options.max_connections = MAX_CONNECTIONS;
	}
	if (ingest->options.max_mapping_bytes == 0) {
		ingest->options.max_mapping_bytes = MAX_MAPPING_BYTES;
	}
	core->counters->capped[CAPPED_MAPPINGS].limit = ingest->options.max_mapping_bytes;
	ingest->listener.fd = -1;
	int r = closer_create(&ingest->closer);
	r = r < 0 ? r : apps_observe_displace(core->apps, attachments_displace, ingest);
	r = r < 0 ? r : listener_open(&ingest->listener, options->path, options->group);
	if (r < 0) {
		goto error;
	}
	ingest->owner = ingest->listener.owner;
	r = uv_poll_init(loop, &ingest->listen, ingest->listener.fd);
	if (r < 0) {
		goto error;
	}
	uv_timer_init(loop, &ingest->drain);
	uv_timer_init(loop, &ingest->sample);
	ingest->handles = 3;
	ingest->listen.data = ingest->drain.data = ingest->sample.data = ingest;
	uint64_t ms = milliseconds(ingest->options.sample_interval_ns);
	uv_timer_start(&ingest->sample, on_sample, ms, ms);
	r = uv_poll_start(&ingest->listen, UV_READABLE, on_accept);
	if (r < 0) {
		ingest_close(ingest, NULL, NULL);
		return r;
	}
	*ret = ingest;
	return 0;
error:
	apps_unobserve_displace(core->apps, ingest);
	listener_close(&ingest->listener);
	closer_destroy(ingest->closer);
	free(ingest);
	return r;
}

static void on_closed(uv_handle_t *handle)
{
	ingest_handle_closed(handle->data);
}

void ingest_close(struct ingest *ingest, void (*done)(void *ctx), void *ctx)
{
	if (ingest->closing) {
		return;
	}
	ingest->closing = true;
	apps_unobserve_displace(ingest->core->apps, ingest);
	ingest->done = done;
	ingest->done_ctx = ctx;
	while (ingest->attachments) {
		if (ingest->attachments->ended_ns > 0) {
			attachment_gone(ingest->attachments);
		} else {
			attachment_end(ingest->attachments, PROCESS_RELEASED);
		}
	}
	while (ingest->connections) {
		attachment_close_connection(ingest->connections);
	}
	uv_close((uv_handle_t *)&ingest->listen, on_closed);
	uv_close((uv_handle_t *)&ingest->drain, on_closed);
	uv_close((uv_handle_t *)&ingest->sample, on_closed);
	listener_close(&ingest->listener);
}
