/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_private.h: declares what link.c (from one connection to the next), session.c (one
 * connection) and birth.c (Home Assistant's birth message) share, all in the broker's thread.
 */
#pragma once

#include <pthread.h>

#include "daemon/publish/mqtt/collision.h"
#include "daemon/publish/mqtt/link.h"

struct mosquitto;
struct mosquitto_message;

struct mqtt_link {
	/* constant */
	struct mqtt_options options;
	char client_id[128], status_topic[512], birth_topic[128];
	int wake_fd;
	struct mqtt_thread *thread;
	struct outbox outbox;
	/* the thread's */
	struct collision collision;
	struct round round;
	unsigned attempt, short_lived; /* in a row: failures; connections that held for seconds */
	/* shared */
	pthread_mutex_t lock;
	unsigned references; /* the thread and the main loop */
	uv_async_t *async;   /* NULL: abandoned */
	struct mqtt_link_status status;
	uint64_t stop_ns; /* 0 = go on */
};

uint64_t mqtt_link_stop_ns(struct mqtt_link *link); /* 0 = go on */
/* The status, for changes; they end with mqtt_link_unlock(), which wakes the main loop. */
struct mqtt_link_status *mqtt_link_lock(struct mqtt_link *link);
void mqtt_link_unlock(struct mqtt_link *link);

struct session_end {
	enum session_how how;
	uint64_t up_ns; /* 0: never */
	char reason[160];
};

/* Blocks until the connection ended, failed, or was closed after a stop. Messages in flight stay
 * so: outbox_return them. */
void mqtt_session(struct mqtt_link *link, struct session_end *ret);

/* mosquitto_loop_read(), which ends the process in no case. A code of libmosquitto. */
int mqtt_read(struct mosquitto *mosq);

/* Home Assistant's birth message: the only topic subscribed to, and only if configured. */

/* mosquitto_connect(), with a limit on what the broker may send us where that exists (MQTT 5). */
int mqtt_birth_connect(
	struct mosquitto *mosq, const struct mqtt_link *link, bool version_5, int keepalive_s);
/* the broker is that of link->round */

/* Once connected. Without MQTT 5 nothing is subscribed to: libmosquitto would take a message of any
 * size, and the retained discovery is enough. A code of libmosquitto. */
int mqtt_birth_listen(struct mosquitto *mosq, const struct mqtt_link *link, bool version_5);

/* Whether it says that Home Assistant has come up just now. */
bool mqtt_birth_is(const struct mqtt_link *link, const struct mosquitto_message *message);
