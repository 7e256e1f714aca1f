/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscribe.c: answers Subscribe: the current state, then changes. A subscription has no queue of
 * its own: for metrics the server notes the serial of the last commit of each and the subscription
 * the serial that it has sent, so commits in between are coalesced; for events it has a position in
 * the timeline, and entries that it falls too far behind are counted as lost. Both cost nothing
 * while a peer does not read.
 */
#include "daemon/varlink/methods/methods.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/advice.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/rows.h"

enum { ARG_GLOB, ARG_METRICS, ARG_EVENTS, ARG_INTERVAL, ARG_ADVICE };
enum { EVENTS_QUEUE = 256, ITEM_ROOM = 4096 /* bytes that any one item fits into */ };

#define INTERVAL_USUAL_MS 1000.0

struct subscription {
	struct api_stream base;
	char query[PROTO_QUERY_SIZE]; /* "" = all */
	bool metrics, events, advice;
	bool started;	  /* the complete current state has been sent */
	bool alerts_done; /* of the current state */
	bool pushing;	  /* metrics up to push_serial are being sent, from slot `cursor` */
	bool due;	  /* the interval has passed and something was committed */
	uint64_t interval_ms;
	uint64_t next_ms; /* uv_now() of the next push of metrics */
	uint64_t seen;	  /* commits up to here have been sent */
	uint64_t push_serial;
	uint32_t cursor, alert;
	uint64_t next_event;
	uint64_t lost;
	uint64_t advised; /* changes of advice up to here have been sent */
};

static const struct api_stream_ops subscription_ops;

static struct subscription *subscription_of(struct api_connection *connection)
{
	struct api_stream *stream = connection->stream;
	return stream && stream->ops == &subscription_ops ? (struct subscription *)stream : NULL;
}

static void on_tick(uv_timer_t *timer)
{
	struct api_connection *connection = timer->data;
	struct subscription *subscription = subscription_of(connection);
	if (subscription) {
		subscription->due = true;
		connection_wake(connection);
	}
}

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct api *api = ctx;
	const struct metric *metric;
	struct api_connection *c;
	(void)t_ns;
	if (api->subscriptions == 0) {
		return;
	}
	api->commit_serial++;
	for (size_t i = 0; (metric = metrics_of(api->core->metrics, source, i)); i++) {
		api->metric_serial[metric->id] = api->commit_serial;
	}
	LIST_FOREACH(c, &api->list, link)
	{
		struct subscription *subscription = subscription_of(c);
		if (subscription && subscription->advice &&
			apps_counts(api->core->apps)->advice_serial > subscription->advised) {
			connection_wake(c);
		}
		if (!subscription || !subscription->metrics || !subscription->started ||
			subscription->due || uv_is_active((uv_handle_t *)&c->tick)) {
			continue;
		}
		uint64_t now = uv_now(api->loop);
		uint64_t wait = subscription->next_ms > now ? subscription->next_ms - now : 0;
		uv_timer_start(&c->tick, on_tick, wait, 0);
	}
}

static void on_event(void *ctx, const struct timeline_entry *entry)
{
	struct api *api = ctx;
	struct api_connection *c;
	(void)entry;
	LIST_FOREACH(c, &api->list, link)
	{
		struct subscription *subscription = subscription_of(c);
		if (subscription && subscription->events) {
			connection_wake(c);
		}
	}
}

int subscribe_open(struct api *api)
{
	struct metrics_observer observer = {.commit = on_commit, .ctx = api};
	int r = metrics_observe(api->core->metrics, observer);
	if (r < 0) {
		return r;
	}
	return timeline_observe(api->core->timeline, on_event, api);
}

void subscribe_close(struct api *api)
{
	metrics_unobserve(api->core->metrics, api);
	timeline_unobserve(api->core->timeline, api);
}

/* Writes what changed since the last push and fits. True when all of it did. */
static bool put_metrics(struct subscription *subscription, struct json *out, uint64_t now_ns)
{
	struct api *api = subscription->base.connection->api;
	const struct metric *metric;
	bool whole = true;
	json_open(out, "metrics", '[');
	while (whole && (metric = metrics_next(api->core->metrics, &subscription->cursor))) {
		if (subscription->started && api->metric_serial[metric->id] <= subscription->seen) {
			continue;
		}
		if (subscription->query[0] != '\0' &&
			!proto_query_match(subscription->query, metric->name)) {
			continue;
		}
		row_metric(out, api->core, metric, now_ns);
		whole = json_room(out) >= ITEM_ROOM;
	}
	json_close(out, ']');
	return whole;
}

static bool put_alerts(struct subscription *subscription, struct json *out)
{
	struct api *api = subscription->base.connection->api;
	const struct alert *alert;
	bool whole = true;
	json_open(out, "alerts", '[');
	while (whole && (alert = alerts_at(api->core->alerts, subscription->alert))) {
		subscription->alert++;
		if (alert->phase == ALERT_FIRING) {
			row_alert(out, api->core, alert);
			whole = json_room(out) >= ITEM_ROOM;
		}
	}
	json_close(out, ']');
	return whole;
}

/* Events in order; what fell more than the queue's length behind is counted, not sent. */
static bool put_events(struct subscription *subscription, struct json *out)
{
	const struct core *core = subscription->base.connection->api->core;
	uint64_t last = timeline_last_serial(core->timeline);
	const struct timeline_entry *entry;
	bool whole = true;
	if (last >= subscription->next_event + EVENTS_QUEUE) {
		uint64_t from = last - EVENTS_QUEUE + 1;
		subscription->lost += from - subscription->next_event;
		subscription->next_event = from;
	}
	json_open(out, "events", '[');
	while (whole && (entry = timeline_from(core->timeline, subscription->next_event))) {
		subscription->lost += entry->serial - subscription->next_event;
		row_event(out, core, entry);
		subscription->next_event = entry->serial + 1;
		whole = json_room(out) >= ITEM_ROOM;
	}
	json_close(out, ']');
	if (subscription->lost > 0) {
		json_unsigned(out, "lost", subscription->lost);
		subscription->lost = 0;
	}
	return whole;
}

/* The app whose advice changed first after `serial`; NULL when none did. */
static const struct app *next_advised(const struct core *core, uint64_t serial)
{
	const struct app *found = NULL, *app;
	for (size_t i = 0; (app = apps_at(core->apps, i)); i++) {
		if (app->advice.serial > serial &&
			(!found || app->advice.serial < found->advice.serial)) {
			found = app;
		}
	}
	return found;
}

/* In the order of the changes; of an app only the last. True when all was written. */
static bool put_advice(struct subscription *subscription, struct json *out)
{
	const struct core *core = subscription->base.connection->api->core;
	const struct app *app;
	bool whole = true;
	json_open(out, "advice", '[');
	while (whole && (app = next_advised(core, subscription->advised))) {
		row_advice(out, core, app, NULL);
		subscription->advised = app->advice.serial;
		whole = json_room(out) >= ITEM_ROOM;
	}
	json_close(out, ']');
	if (whole) { /* of apps that are gone, too */
		subscription->advised = apps_counts(core->apps)->advice_serial;
	}
	return whole;
}

static void begin_push(struct subscription *subscription)
{
	struct api *api = subscription->base.connection->api;
	subscription->pushing = true;
	subscription->due = false;
	subscription->cursor = 0;
	subscription->push_serial = api->commit_serial;
	subscription->next_ms = uv_now(api->loop) + subscription->interval_ms;
}

static void end_push(struct subscription *subscription)
{
	struct api_connection *connection = subscription->base.connection;
	subscription->pushing = false;
	subscription->seen = subscription->push_serial;
	if (connection->api->commit_serial > subscription->seen && !subscription->due) {
		/* committed while this push went out in pieces */
		uv_timer_start(&connection->tick, on_tick, subscription->interval_ms, 0);
	}
}

/* The current state: metrics, then the alerts that fire, in as many replies as it takes. */
static enum api_result put_state(struct subscription *subscription, struct json *out)
{
	uint64_t now_ns = sysops()->now_ns();
	bool whole = true;
	if (subscription->pushing) {
		whole = put_metrics(subscription, out, now_ns);
		if (whole) {
			end_push(subscription);
		}
	}
	if (whole && subscription->events && !subscription->alerts_done) {
		subscription->alerts_done = whole = put_alerts(subscription, out);
	}
	if (whole && subscription->advice) {
		whole = put_advice(subscription, out);
	}
	subscription->started = whole;
	return API_CHUNK;
}

static enum api_result subscription_next(struct api_stream *stream, struct json *out)
{
	struct subscription *subscription = (struct subscription *)stream;
	struct api *api = stream->connection->api;
	if (!subscription->started) {
		return put_state(subscription, out);
	}
	bool wrote = false;
	if (subscription->events &&
		timeline_last_serial(api->core->timeline) >= subscription->next_event) {
		wrote = true;
		if (!put_events(subscription, out)) {
			return API_CHUNK;
		}
	}
	if (subscription->advice &&
		apps_counts(api->core->apps)->advice_serial > subscription->advised) {
		wrote = true;
		if (json_room(out) < ITEM_ROOM || !put_advice(subscription, out)) {
			return API_CHUNK;
		}
	}
	if (subscription->due && !subscription->pushing) {
		begin_push(subscription);
	}
	if (subscription->pushing && json_room(out) >= 2 * (size_t)ITEM_ROOM) {
		size_t mark = json_mark(out);
		bool whole = put_metrics(subscription, out, sysops()->now_ns());
		if (whole) {
			end_push(subscription);
		}
		/* "metrics":[] says nothing */
		if (json_mark(out) - mark <= sizeof("\"metrics\":[],") - 1) {
			json_rollback(out, mark);
		} else {
			wrote = true;
		}
	}
	return wrote ? API_CHUNK : API_WAIT;
}

static void subscription_end(struct api_stream *stream)
{
	stream->connection->api->subscriptions--;
	uv_timer_stop(&stream->connection->tick);
	free(stream);
}

static const struct api_stream_ops subscription_ops = {
	.next = subscription_next,
	.destroy = subscription_end,
	.endless = true,
};

enum api_result method_subscribe(struct api_call *call)
{
	const struct value *value = call->value;
	const char *glob = value[ARG_GLOB].present ? value[ARG_GLOB].string : "";
	double interval_ms =
		value[ARG_INTERVAL].present ? value[ARG_INTERVAL].number : INTERVAL_USUAL_MS;
	if (value[ARG_GLOB].present &&
		(strlen(glob) >= PROTO_PATH_SIZE || proto_glob_check(glob) < 0)) {
		return reply_invalid_parameter(call->out, "glob");
	}
	struct subscription *subscription =
		stream_create(call, &subscription_ops, sizeof(*subscription), 0);
	if (!subscription) {
		return API_LAST;
	}
	snprintf(subscription->query, sizeof(subscription->query), "%s%s",
		metrics_find(call->core->metrics, glob) ? "=" : "", glob);
	subscription->metrics = !value[ARG_METRICS].present || value[ARG_METRICS].boolean;
	subscription->events = !value[ARG_EVENTS].present || value[ARG_EVENTS].boolean;
	subscription->advice = value[ARG_ADVICE].present && value[ARG_ADVICE].boolean;
	subscription->interval_ms = (uint64_t)interval_ms;
	subscription->next_event = timeline_last_serial(call->core->timeline) + 1;
	call->api->subscriptions++;
	connection_set_stream(call->connection, &subscription->base);
	if (subscription->metrics) {
		begin_push(subscription);
	}
	return API_YIELD;
}
