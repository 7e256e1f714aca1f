/* Home Assistant's birth message: the only thing we subscribe to, and only when told to. In the
 * thread of mqtt_link.c. */
#pragma once

#include <stdbool.h>

struct mosquitto;
struct mosquitto_message;
struct mqtt_link;

/* Whether the next session should speak MQTT 5 for it. */
bool mqtt_birth_asks(const struct mqtt_link *link);

/* mosquitto_connect(), with a limit on what the broker may send us where that exists (MQTT 5). */
int mqtt_birth_connect(
	struct mosquitto *mosq, const struct mqtt_link *link, bool version_5, int keepalive_s);

/* Once connected. Without MQTT 5 nothing is subscribed to: libmosquitto would take a message of any
 * size, and the retained discovery is enough. A code of libmosquitto. */
int mqtt_birth_listen(struct mosquitto *mosq, const struct mqtt_link *link, bool version_5);

/* Whether it says that Home Assistant has come up just now. */
bool mqtt_birth_is(const struct mqtt_link *link, const struct mosquitto_message *message);
