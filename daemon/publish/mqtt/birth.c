/* SPDX-License-Identifier: Apache-2.0 */
/*
 * birth.c: recognises the birth message of Home Assistant. Any client of the broker can write to
 * this topic: the broker limits the size (MQTT 5), retained messages are not sent to us, and of the
 * rest one word is understood. They are counted for the main loop, which limits how often it
 * answers (discovery.c).
 */
#include "daemon/publish/mqtt/link_private.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <string.h>

enum { LARGEST_PACKET = 4096 };

int mqtt_birth_connect(
	struct mosquitto *mosq, const struct mqtt_link *link, bool version_5, int keepalive_s)
{
	const struct proto_broker broker = mqtt_broker(&link->options, round_broker(&link->round));
	if (!version_5 || link->birth_topic[0] == '\0') {
		return mosquitto_connect(mosq, broker.host, broker.port, keepalive_s);
	}
	mosquitto_property *properties = NULL;
	int code = mosquitto_property_add_int32(
		&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, LARGEST_PACKET);
	if (!code) {
		code = mosquitto_connect_bind_v5(
			mosq, broker.host, broker.port, keepalive_s, NULL, properties);
	}
	mosquitto_property_free_all(&properties);
	return code;
}

int mqtt_birth_listen(struct mosquitto *mosq, const struct mqtt_link *link, bool version_5)
{
	if (!version_5 || link->birth_topic[0] == '\0') {
		return MOSQ_ERR_SUCCESS;
	}
	return mosquitto_subscribe_v5(
		mosq, NULL, link->birth_topic, 0, MQTT_SUB_OPT_SEND_RETAIN_NEVER, NULL);
}

bool mqtt_birth_is(const struct mqtt_link *link, const struct mosquitto_message *message)
{
	static const char online[] = "online";
	return strcmp(message->topic, link->birth_topic) == 0 &&
	       message->payloadlen == (int)strlen(online) &&
	       memcmp(message->payload, online, strlen(online)) == 0;
}
