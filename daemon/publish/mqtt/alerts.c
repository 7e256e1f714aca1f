/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: publishes alerts over MQTT: an event for each transition that notifies people, and a
 * retained state for each firing alert. The broker must drop that state when the alert stops
 * firing, also when a previous process of the daemon set it. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/publish/mqtt/private.h"
#include "daemon/publish/payload/payload.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

static int put(struct mqtt *mqtt, const struct outbox_entry *entry)
{
	int r = outbox_put(mqtt->outbox, entry);
	mqtt_link_wake(mqtt->link);
	return r;
}

int mqtt_put_payload(struct mqtt *mqtt, struct outbox_entry entry, char *payload)
{
	if (!payload) {
		log_debug("mqtt: message to %s dropped: out of memory", entry.topic);
		return -ENOMEM;
	}
	entry.payload = payload;
	entry.t_ns = entry.t_ns ? entry.t_ns : sysops()->now_ns();
	int r = put(mqtt, &entry);
	free(payload);
	return r;
}

void mqtt_put_retained(struct mqtt *mqtt, const char *topic, char *payload, size_t payload_length)
{
	struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.retain = true,
		.replace = true,
		.topic = topic,
		.subject = topic,
		.payload_length = payload_length};
	if (retained_add(&mqtt->retained, topic) < 0) {
		log_warning(
			"mqtt: too many retained topics: clear %s at the broker by hand", topic);
	}
	mqtt_put_payload(mqtt, entry, payload);
}

static void publish_state(struct mqtt *mqtt, const struct alert *alert)
{
	char topic[TOPIC_SIZE];
	size_t length = 0;
	topic_alert(&mqtt->topics, alert->rule->name, alert->instance, topic);
	char *payload = payload_alert(mqtt->core, alert, &length);
	mqtt_put_retained(mqtt, topic, payload, length);
}

/* The topic stays recorded until the message can't be lost with the process; until then it is
 * cleared again at the next connection. */
int mqtt_clear_retained(struct mqtt *mqtt, const char *topic)
{
	struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.retain = true,
		.replace = true,
		.keep = true,
		.topic = topic,
		.subject = topic};
	int r = put(mqtt, &entry);
	if (r == 1 || (r == 0 && !mqtt->kept)) {
		retained_remove(&mqtt->retained, topic);
	} else {
		retained_expire(&mqtt->retained, topic);
	}
	return r;
}

/* Publishes a transition, unless it is quiet: then nobody is notified. */
static void publish_event(struct mqtt *mqtt, const struct alert_transition *transition)
{
	char topic[TOPIC_SIZE], subject[TOPIC_SIZE];
	const struct alert *alert = transition->alert;
	struct alert_test *test = transition->test;
	topic_plain(&mqtt->topics, "event/alert", topic);
	topic_alert(&mqtt->topics, alert->rule->name, alert->instance, subject);
	struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.keep = true,
		.t_ns = transition->t_ns,
		.tag = test ? test->serial : 0,
		.topic = topic,
		.subject = subject};
	char *payload = payload_alert_event(mqtt->core, transition, &entry.payload_length);
	int r = mqtt_put_payload(mqtt, entry, payload); /* after it: the entry is copied */
	if (test) {
		test->mqtt = r < 0 ? ALERT_LINK_FAILED : ALERT_LINK_WAITS;
	}
}

void mqtt_on_transition(void *ctx, const struct alert_transition *transition)
{
	struct mqtt *mqtt = ctx;
	const struct alert *alert = transition->alert;
	if (!transition->quiet) {
		publish_event(mqtt, transition);
	}
	if (transition->to == ALERT_FIRING) {
		publish_state(mqtt, alert);
	} else {
		char topic[TOPIC_SIZE];
		topic_alert(&mqtt->topics, alert->rule->name, alert->instance, topic);
		mqtt_clear_retained(mqtt, topic);
	}
}

void mqtt_publish_info(struct mqtt *mqtt)
{
	char topic[TOPIC_SIZE];
	topic_plain(&mqtt->topics, "info", topic);
	struct outbox_entry entry = {
		.class = OUTBOX_ALERT, .qos = 1, .retain = true, .replace = true, .topic = topic};
	char *payload = payload_info(mqtt->core, &entry.payload_length);
	mqtt_put_payload(mqtt, entry, payload);
}

uint64_t mqtt_clock(const struct wallclock *wall)
{
	return 2 * wall->steps + wallclock_synced(wall);
}

void mqtt_publish_retained(struct mqtt *mqtt)
{
	mqtt->clock = mqtt_clock(mqtt->core->wall);
	mqtt_publish_info(mqtt);
	retained_unmark(&mqtt->retained);
	const struct alert *alert;
	for (size_t i = 0; (alert = alerts_at(mqtt->core->alerts, i)); i++) {
		if (alert->phase == ALERT_FIRING) {
			publish_state(mqtt, alert);
		}
	}
	mqtt_diagnosis_all(mqtt, true);
	mqtt_discovery_connected(mqtt);
	/* Alerts of the last process are still taken up again; its diagnoses are made again. */
	bool inherits = sysops()->now_ns() < mqtt->inherit_ns;
	mqtt->inherit_ns = inherits ? mqtt->inherit_ns : 0;
	/* From the end: removing moves the last one forward. */
	int r = 0;
	for (size_t i = mqtt->retained.count; i-- > 0 && r >= 0;) {
		const char *old = mqtt->retained.entry[i].topic;
		if (!mqtt->retained.entry[i].current &&
			(!inherits || mqtt_diagnosis_is(mqtt, old))) {
			r = mqtt_clear_retained(mqtt, old);
		}
	}
}

/* A queue that is half empty has a place for it, so that it cannot be given up itself. */
void mqtt_publish_missed(struct mqtt *mqtt)
{
	char topic[TOPIC_SIZE];
	struct missed missed;
	struct outbox_counts counts = outbox_count(mqtt->outbox);
	if (mqtt->seen.state != LINK_CONNECTED ||
		counts.messages >= mqtt->outbox->max_messages / 2 ||
		counts.bytes >= mqtt->outbox->max_bytes / 2 ||
		!outbox_take_missed(mqtt->outbox, &missed)) {
		return;
	}
	topic_plain(&mqtt->topics, "missed", topic);
	struct outbox_entry entry = {.class = OUTBOX_ALERT, .qos = 1, .keep = true, .topic = topic};
	char *payload = payload_missed(mqtt->core, &missed, &entry.payload_length);
	mqtt_put_payload(mqtt, entry, payload);
}

void mqtt_recording(struct mqtt *mqtt, const struct recording *recording)
{
	char topic[TOPIC_SIZE];
	topic_plain(&mqtt->topics, "event/recording", topic);
	struct outbox_entry entry = {.class = OUTBOX_ALERT, .qos = 1, .keep = true, .topic = topic};
	char *payload = payload_recording(mqtt->core, recording, &entry.payload_length);
	mqtt_put_payload(mqtt, entry, payload);
}
