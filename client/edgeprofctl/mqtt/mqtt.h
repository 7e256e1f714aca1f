/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mqtt.h: declares what the files of `mqtt-latency` share: the broker to use (setup.c), a
 * subscription there (session.c), and the capture time of a payload (latency_stamp.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/edgeprofctl/ctl.h"
#include "proto/tls.h"

enum stamp {
	STAMP_FOUND,
	STAMP_NONE,	 /* a payload without such a time, or not a finite number */
	STAMP_MALFORMED, /* neither a JSON object nor a number */
	STAMP_TOO_LARGE,
};

enum { STAMP_PAYLOAD_MAX = 64 * 1024 };

/* By convention, the capture time is the member capture_us of a JSON object (whole µs since the
 * epoch), else capture_ts_ms, else ts_ms (as in edgeprofd's own payloads). With a key (not NULL;
 * dots lead into objects) only that member is used; its unit follows from its suffix _s, _ms, _us
 * or _ns, else from its magnitude. A payload that is a bare number is that time. Payloads are not
 * trusted. *us: since the epoch; *unsynchronised: the sender says that its clock is. */
enum stamp latency_stamp(
	const char *bytes, size_t length, const char *key, double *us, bool *unsynchronised);

struct mqtt_setup {
	struct proto_broker broker;			/* its texts are these */
	char host[PROTO_BROKERS_MAX * PROTO_HOST_SIZE]; /* as configured, then of the one */
	char username[128], password_file[256];
	char ca_file[256], cert_file[256], key_file[256];
};

/* --host and --port come first; the rest is that of [mqtt] in --config FILE, or in edgeprofd's own
 * configuration when neither --host nor --config is given; a host is asked of the daemon at last.
 * An exit status; errors are reported. The setup is zeroed, and never moves. */
int mqtt_setup_read(struct ctl *ctl, struct mqtt_setup *setup);

/* The password in the file, which only its owner may read. 0, -EPERM, -EFBIG, -EINVAL (a NUL in
 * it), -errno. */
int mqtt_setup_password(const struct mqtt_setup *setup, char *ret, size_t size);

struct mosquitto;

/* A clean session with a client id of its own. */
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

/* Connects and subscribes within --timeout; ctl, topic, on_message and ctx are set, the rest is
 * zeroed. sends: the topic must be one that can be published to. An exit status; errors are
 * reported. Never moves after that. */
int mqtt_session_open(struct mqtt_session *session, bool sends);

/* Waits at most wait_ms for messages, which on_message gets. */
int mqtt_session_turn(struct mqtt_session *session, int wait_ms);

/* To the topic, QoS 0. */
int mqtt_session_publish(struct mqtt_session *session, const char *payload);

void mqtt_session_close(struct mqtt_session *session);
