/* SPDX-License-Identifier: Apache-2.0 */
/* mqtt.c: makes the messages of each interval on the main loop, puts them into the outbox, and
 * keeps core->broker current (alerts: alerts.c). Never waits for the broker's thread. */
#include "daemon/publish/mqtt/mqtt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/publish/mqtt/private.h"
#include "daemon/publish/payload/payload.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

/* alerts end what nobody took up; then we do */
#define INHERIT_MORE_NS UINT64_C(5000000000)

/* How long a stop waits for the thread: connected it says good-bye within 1.8 s; unconnected it has
 * nothing to say and answers at once unless it hangs in a call. */
enum { CLOSE_CONNECTED_MS = 2300, CLOSE_AWAY_MS = 250 };

/* Connections in a row that end within seconds, each of which is reported. */
enum { FLAPS_MAX = 3 };

static const enum broker_state broker_states[] = {
	[LINK_CONNECTING] = BROKER_CONNECTING,
	[LINK_CONNECTED] = BROKER_CONNECTED,
	[LINK_AWAY] = BROKER_AWAY,
};

static void update_counts(struct mqtt *mqtt)
{
	struct broker_status *broker = mqtt->core->broker;
	struct outbox_counts counts = outbox_count(mqtt->outbox);
	struct limit *queue = &mqtt->core->counters->limits[LIMIT_MQTT];
	queue->max = mqtt->outbox->max_messages;
	limit_use(queue, counts.messages);
	broker->queued = (uint32_t)counts.messages;
	broker->delivered = counts.delivered;
	broker->dropped = counts.dropped[OUTBOX_SUMMARY];
	broker->dropped_alerts = counts.dropped[OUTBOX_ALERT];
	broker->delivered_tag = counts.delivered_tag;
}

static void report(struct mqtt *mqtt, unsigned index, enum timeline_level level, const char *what,
	const char *reason)
{
	const struct proto_broker broker = mqtt_link_broker(mqtt->link, index);
	/* The journal observes the timeline, so this also writes the log line. */
	timeline_add(mqtt->core->timeline, sysops()->now_ns(), TIMELINE_DAEMON, level, "mqtt",
		"broker %.120s:%d %s%s%.100s", broker.host, broker.port, what,
		reason[0] ? ": " : "", reason);
}

static void show_broker(struct broker_status *broker, const struct proto_broker *from)
{
	snprintf(broker->host, sizeof(broker->host), "%s", from->host);
	broker->port = from->port;
}

static void update_status(struct mqtt *mqtt)
{
	struct broker_status *broker = mqtt->core->broker;
	struct mqtt_link_status status = mqtt_link_status(mqtt->link);
	struct mqtt_link_status before = mqtt->seen;
	mqtt->seen = status;
	enum broker_state state = broker_states[status.state];
	if (state != broker->state || status.connects != before.connects) {
		broker->since_ns = sysops()->now_ns();
	}
	broker->state = state;
	const struct proto_broker now = mqtt_link_broker(mqtt->link, status.broker);
	show_broker(broker, &now);
	broker->connects = status.connects;
	snprintf(broker->reason, sizeof(broker->reason), "%s", status.reason);
	update_counts(mqtt);
	if (mqtt->closing) {
		return;
	}
	if (status.taken != before.taken) {
		report(mqtt, status.broker, status.taken ? TIMELINE_WARNING : TIMELINE_INFO,
			status.taken ? "ended the connection"
				     : "no longer has another client with this id",
			status.reason);
	} else if (status.pushed) {
		/* logged once, not each time the two clients evict each other */
	} else if (status.losses != before.losses) {
		if (status.flaps <= FLAPS_MAX) {
			report(mqtt, status.lost, TIMELINE_WARNING, "connection lost",
				status.reason);
		} else if (before.flaps <= FLAPS_MAX) {
			report(mqtt, status.lost, TIMELINE_WARNING,
				"connections end within seconds; no more reports until one holds",
				status.reason);
		}
	} else if (status.state == LINK_AWAY && before.state == LINK_CONNECTING) {
		report(mqtt, status.broker, TIMELINE_WARNING, "is not reachable", status.reason);
	} else if (status.state == LINK_CONNECTED && status.failures != before.failures &&
		   status.failed != status.broker) { /* the next one answered at once */
		report(mqtt, status.failed, TIMELINE_WARNING, "is not reachable",
			status.failed_reason);
	}
	const bool quiet = status.pushed || status.flaps > FLAPS_MAX;
	if (status.refused && !before.refused && !quiet) {
		report(mqtt, status.broker, TIMELINE_WARNING, "is connected", status.reason);
	}
	if (status.state == LINK_CONNECTED && !quiet &&
		(status.connects != before.connects || before.flaps > FLAPS_MAX)) {
		report(mqtt, status.broker, TIMELINE_INFO, "connected", "");
	}
	if (status.connects != before.connects && status.state == LINK_CONNECTED) {
		mqtt_publish_retained(mqtt);
		update_counts(mqtt);
	}
	if (status.births != before.births) {
		mqtt_discovery_birth(mqtt);
	}
	mqtt_publish_missed(mqtt);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct mqtt *mqtt = handle->data;
	if (--mqtt->handles > 0) {
		return;
	}
	void (*done)(void *) = mqtt->done;
	void *ctx = mqtt->ctx;
	retained_finish(&mqtt->retained);
	stage_pass_finish(&mqtt->pass);
	free(mqtt);
	if (done) {
		done(ctx);
	}
}

static void close_handles(struct mqtt *mqtt)
{
	alerts_unobserve(mqtt->core->alerts, mqtt);
	uv_close((uv_handle_t *)&mqtt->async, on_handle_closed);
	uv_close((uv_handle_t *)&mqtt->interval, on_handle_closed);
	uv_close((uv_handle_t *)&mqtt->deadline, on_handle_closed);
	uv_close((uv_handle_t *)&mqtt->discovery.birth, on_handle_closed);
	uv_close((uv_handle_t *)&mqtt->idle, on_handle_closed);
}

static void end(struct mqtt *mqtt)
{
	mqtt->core->broker->state = BROKER_OFF;
	mqtt->core->broker->reason[0] = '\0';
	mqtt->core->broker->queued = 0;
	mqtt->core->counters->limits[LIMIT_MQTT].max = 0;
	mqtt->core->broker->since_ns = sysops()->now_ns();
	close_handles(mqtt);
}

static void on_async(uv_async_t *async)
{
	struct mqtt *mqtt = async->data;
	if (!mqtt->link) {
		return;
	}
	update_status(mqtt);
	if (mqtt->closing && mqtt->seen.finished) {
		mqtt_link_destroy(mqtt->link);
		mqtt->link = NULL;
		end(mqtt);
	}
}

static void on_deadline(uv_timer_t *timer)
{
	struct mqtt *mqtt = timer->data;
	if (mqtt->link) {
		log_warning("mqtt: abandoned a connection attempt that hangs in a network call");
		mqtt_link_abandon(mqtt->link);
		mqtt->link = NULL;
		end(mqtt);
	}
}

static void on_idle(uv_idle_t *idle)
{
	struct mqtt *mqtt = idle->data;
	const struct app *app;
	const struct stage *stage;
	struct outbox_entry entry = {.class = OUTBOX_SUMMARY};
	char *payload = stage_pass_next(&mqtt->pass, &app, &stage, &entry.payload_length);
	if (payload) {
		char topic[TOPIC_SIZE];
		topic_stage(&mqtt->topics, app->name, stage->name, topic);
		entry.topic = topic;
		mqtt_put_payload(mqtt, entry, payload);
	}
	if (!mqtt->pass.running) {
		uv_idle_stop(idle);
	}
}

static void on_interval(uv_timer_t *timer)
{
	struct mqtt *mqtt = timer->data;
	uint64_t now_ns = sysops()->now_ns();
	char topic[TOPIC_SIZE];
	topic_plain(&mqtt->topics, "summary", topic);
	struct outbox_entry entry = {.class = OUTBOX_SUMMARY, .topic = topic};
	char *payload = payload_summary(mqtt->core, now_ns, &entry.payload_length);
	mqtt_put_payload(mqtt, entry, payload);
	const bool inherited = mqtt->inherit_ns > 0 && now_ns >= mqtt->inherit_ns;
	if (mqtt->seen.state == LINK_CONNECTED &&
		(inherited || mqtt->clock != mqtt_clock(mqtt->core->wall))) {
		mqtt_publish_retained(mqtt);
	}
	mqtt_publish_missed(mqtt);
	mqtt_discovery_interval(mqtt, now_ns);
	update_counts(mqtt);
	stage_pass_begin(&mqtt->pass, now_ns);
	uv_idle_start(&mqtt->idle, on_idle);
}

static size_t messages_size(void)
{
	return slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE);
}

static size_t missed_at(void)
{
	return (messages_size() + slots_size(RETAINED_KEPT, RETAINED_KEPT_SIZE) + 7) / 8 * 8;
}

size_t mqtt_memory_size(void)
{
	return missed_at() + sizeof(struct missed);
}

static int start_link(struct mqtt *mqtt, const struct mqtt_options *options,
	struct mqtt_thread *thread, void *memory)
{
	char status_topic[TOPIC_SIZE], birth_topic[TOPIC_SIZE], client_id[80];
	topic_plain(&mqtt->topics, "status", status_topic);
	mqtt_discovery_birth_topic(mqtt, birth_topic);
	snprintf(client_id, sizeof(client_id), "edgeprof-%s", mqtt->topics.id);
	const struct mqtt_link_options link = {
		.mqtt = options,
		.client_id = client_id,
		.status_topic = status_topic,
		.birth_topic = birth_topic,
		.kept = memory,
		.missed = memory ? (void *)((unsigned char *)memory + missed_at()) : NULL,
		.thread = thread,
	};
	int r = mqtt_link_start(&link, &mqtt->async, &mqtt->link);
	if (r == 0) {
		mqtt->outbox = mqtt_link_outbox(mqtt->link);
	}
	return r;
}

int mqtt_open(uv_loop_t *loop, struct core *core, const struct mqtt_options *options,
	struct mqtt_thread *thread, void *memory, struct mqtt **ret)
{
	char reason[sizeof(core->broker->reason)];
	const struct proto_broker broker = mqtt_broker(options, 0);
	int r = mqtt_check(options, reason, sizeof(reason));
	if (r < 0) {
		log_error("mqtt: cannot start: %s", reason);
		*core->broker =
			(struct broker_status){.state = BROKER_OFF, .since_ns = sysops()->now_ns()};
		show_broker(core->broker, &broker);
		snprintf(core->broker->reason, sizeof(core->broker->reason), "%s", reason);
		return r;
	}
	struct mqtt *mqtt = mem_zalloc(sizeof(*mqtt));
	if (!mqtt) {
		return -ENOMEM;
	}
	r = uv_async_init(loop, &mqtt->async, on_async);
	if (r < 0) {
		free(mqtt);
		return r;
	}
	uv_timer_init(loop, &mqtt->interval);
	uv_timer_init(loop, &mqtt->deadline);
	uv_timer_init(loop, &mqtt->discovery.birth);
	uv_idle_init(loop, &mqtt->idle);
	mqtt->async.data = mqtt->interval.data = mqtt->deadline.data = mqtt->idle.data = mqtt;
	mqtt->discovery.birth.data = mqtt;
	mqtt->handles = 5;
	mqtt->core = core;
	topics_init(
		&mqtt->topics, options->topic_prefix, options->device_id, core->facts->hostname);
	mqtt_discovery_init(mqtt, options);
	stage_pass_init(&mqtt->pass, core, sysops()->now_ns());
	*core->broker =
		(struct broker_status){.state = BROKER_CONNECTING, .since_ns = sysops()->now_ns()};
	show_broker(core->broker, &broker);
	mqtt->kept = memory != NULL;
	if (memory &&
		retained_restore(&mqtt->retained, (unsigned char *)memory + messages_size()) > 0) {
		mqtt->inherit_ns = sysops()->now_ns() +
				   (options->inherit_ns ? options->inherit_ns
							: ALERT_ORPHAN_NS + INHERIT_MORE_NS);
	}
	r = start_link(mqtt, options, thread, memory);
	if (r == 0) {
		unsigned damaged = mqtt->retained.slots.damaged + mqtt->outbox->slots.damaged;
		if (damaged > 0 &&
			degraded_add(core->degraded, "mqtt",
				"its contents were damaged: %u records were discarded", damaged)) {
			log_warning("mqtt: discarded damaged records of the run directory: %u",
				damaged);
		}
		update_status(mqtt);
		r = alerts_observe(core->alerts, mqtt_on_transition, mqtt);
		mqtt_diagnosis_observe(mqtt, true);
	}
	if (r < 0) {
		goto error;
	}
	uint64_t interval_ms = options->summary_interval_ns / 1000000;
	uv_timer_start(&mqtt->interval, on_interval, interval_ms, interval_ms);
	*ret = mqtt;
	return 0;
error:
	if (mqtt->link) {
		mqtt_close(mqtt, NULL, NULL);
	} else {
		end(mqtt);
	}
	return r;
}

void mqtt_close(struct mqtt *mqtt, void (*done)(void *ctx), void *ctx)
{
	if (mqtt->closing) {
		return;
	}
	mqtt->closing = true;
	mqtt->done = done;
	mqtt->ctx = ctx;
	uv_timer_stop(&mqtt->interval);
	uv_timer_stop(&mqtt->discovery.birth);
	uv_idle_stop(&mqtt->idle);
	alerts_unobserve(mqtt->core->alerts, mqtt);
	mqtt_diagnosis_observe(mqtt, false);
	mqtt_diagnosis_all(mqtt, false);
	mqtt_link_stop(mqtt->link);
	bool connected = mqtt_link_status(mqtt->link).state == LINK_CONNECTED;
	uv_timer_start(
		&mqtt->deadline, on_deadline, connected ? CLOSE_CONNECTED_MS : CLOSE_AWAY_MS, 0);
}
