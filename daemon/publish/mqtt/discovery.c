/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery.c: decides when to announce the sensors to Home Assistant (payload/discovery.c):
 * retained, at each connection, when there are new ones, and when Home Assistant reports that it
 * came up. The broker stores the announcement, so none of this is urgent, and all of it is bounded
 * in time: new sensors are collected for a minute, and births, which anybody may send, are answered
 * after a random pause (a fleet receives them at the same moment), once however many came. When
 * discovery is switched off, the announcement is cleared.
 */
#include <stdio.h>

#include "daemon/publish/mqtt/private.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

#define NS_PER_S UINT64_C(1000000000)

enum { EXPIRE_INTERVALS = 3 };

static void topic_discovery(const struct mqtt *mqtt, char ret[TOPIC_SIZE])
{
	snprintf(ret, TOPIC_SIZE, "%s/device/edgeprof_%s/config", mqtt->discovery.prefix,
		mqtt->topics.id);
}

void mqtt_discovery_init(struct mqtt *mqtt, const struct mqtt_options *options)
{
	struct mqtt_discovery *discovery = &mqtt->discovery;
	discovery->on = options->home_assistant;
	snprintf(discovery->prefix, sizeof(discovery->prefix), "%s",
		options->home_assistant_prefix[0] ? options->home_assistant_prefix
						  : "homeassistant");
	discovery->pause_ns =
		options->discovery_pause_ns ? options->discovery_pause_ns : 60 * NS_PER_S;
	discovery->birth_ns = options->birth_pause_ns ? options->birth_pause_ns : 10 * NS_PER_S;
	uint64_t expire_ns = EXPIRE_INTERVALS * options->summary_interval_ns;
	discovery->expire_s = (unsigned)((expire_ns + NS_PER_S - 1) / NS_PER_S);
}

void mqtt_discovery_birth_topic(const struct mqtt *mqtt, char ret[TOPIC_SIZE])
{
	ret[0] = '\0';
	if (mqtt->discovery.on) {
		snprintf(ret, TOPIC_SIZE, "%s/status", mqtt->discovery.prefix);
	}
}

static void publish(struct mqtt *mqtt, uint64_t now_ns)
{
	struct mqtt_discovery *discovery = &mqtt->discovery;
	char topic[TOPIC_SIZE];
	size_t omitted = 0;
	topic_discovery(mqtt, topic);
	struct outbox_entry entry = {
		.class = OUTBOX_ALERT, .qos = 1, .retain = true, .replace = true, .topic = topic};
	char *payload = payload_discovery(mqtt->core, &mqtt->topics, &discovery->known,
		discovery->expire_s, &omitted, &entry.payload_length);
	discovery->published_ns = now_ns;
	discovery->outdated = mqtt_put_payload(mqtt, entry, payload) < 0;
	if (omitted > 0 && discovery->omitted == 0) {
		log_warning(
			"mqtt: %zu metrics are not announced to Home Assistant: the limit is %d "
			"metrics and %d KiB",
			omitted, DISCOVERY_COMPONENTS, DISCOVERY_SIZE / 1024);
	}
	discovery->omitted = omitted;
}

void mqtt_discovery_connected(struct mqtt *mqtt)
{
	char topic[TOPIC_SIZE];
	topic_discovery(mqtt, topic);
	if (!mqtt->discovery.on) {
		if (retained_has(&mqtt->retained, topic)) {
			mqtt_clear_retained(mqtt, topic);
		}
		return;
	}
	if (retained_add(&mqtt->retained, topic) < 0) {
		log_warning(
			"mqtt: too many retained topics: clear %s at the broker by hand", topic);
	}
	if (mqtt->discovery.known.count > 0) {
		publish(mqtt, sysops()->now_ns());
	}
}

void mqtt_discovery_interval(struct mqtt *mqtt, uint64_t now_ns)
{
	struct mqtt_discovery *discovery = &mqtt->discovery;
	if (!discovery->on) {
		return;
	}
	discovery->outdated = discovery_note(&discovery->known, mqtt->core) || discovery->outdated;
	bool due = discovery->published_ns == 0 ||
		   now_ns - discovery->published_ns >= discovery->pause_ns;
	if (discovery->outdated && due && mqtt->seen.state == LINK_CONNECTED) {
		publish(mqtt, now_ns);
	}
}

static void on_birth_pause(uv_timer_t *timer)
{
	struct mqtt *mqtt = timer->data;
	if (mqtt->seen.state == LINK_CONNECTED && mqtt->discovery.known.count > 0) {
		publish(mqtt, sysops()->now_ns());
	}
}

void mqtt_discovery_birth(struct mqtt *mqtt)
{
	uv_timer_t *timer = &mqtt->discovery.birth;
	if (mqtt->discovery.on && !uv_is_active((uv_handle_t *)timer)) {
		uint64_t pause_ns =
			mqtt_link_backoff_ns(mqtt->discovery.birth_ns, mqtt->discovery.birth_ns, 0);
		uv_timer_start(timer, on_birth_pause, pause_ns / 1000000, 0);
	}
}
