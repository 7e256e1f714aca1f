/* SPDX-License-Identifier: Apache-2.0 */
/* session.h: opens a subscription at a broker: a clean session with a client id of its own. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/mqtt/setup.h"

struct mosquitto;

struct mqtt_session {
	struct ctl *ctl;
	struct mqtt_setup setup;
	struct mosquitto *mosq; /* NULL: not open */
	const char *topic;
	bool subscribed;
	char reason[160]; /* why it can't be used; "" = it can */
	void (*on_message)(void *ctx, const char *bytes, size_t length, bool retained);
	void *ctx;
};

/* Connects and subscribes within --timeout; session is zeroed. sends: the topic must be one that
 * can be published to. An exit status; errors are reported. Never moves after that. */
int mqtt_session_open(struct mqtt_session *session, struct ctl *ctl, const char *topic, bool sends,
	void (*on_message)(void *ctx, const char *bytes, size_t length, bool retained), void *ctx);

/* Waits at most wait_ms for messages, which on_message gets. */
int mqtt_session_turn(struct mqtt_session *session, int wait_ms);

/* To the topic, QoS 0. */
int mqtt_session_publish(struct mqtt_session *session, const char *payload);

void mqtt_session_close(struct mqtt_session *session);
