/* SPDX-License-Identifier: Apache-2.0 */
/* tls_mode.h: decides whether a connection to a broker is encrypted, and whether that protects its
 * credentials: one rule for the daemon and edgeprofctl. */
#pragma once

#include <stdbool.h>

enum proto_tls_mode { PROTO_TLS_AUTO, PROTO_TLS_YES, PROTO_TLS_NO };

enum { PROTO_MQTT_PORT = 1883, PROTO_MQTTS_PORT = 8883 };

/* "" and 0: not given. */
struct proto_broker {
	enum proto_tls_mode tls;
	const char *host;
	int port;
	const char *ca_file, *cert_file;
};

/* yes, no, auto. 0 or -EINVAL. */
int proto_tls_mode_parse(const char *text, enum proto_tls_mode *ret);

/* auto: with the port of MQTT over TLS, a CA or a certificate of ours. */
bool proto_broker_encrypted(const struct proto_broker *broker);

/* The given one, else the one that belongs to the encryption. */
int proto_broker_port(const struct proto_broker *broker);

/* A user name or password would leave this machine as clear text, without tls = no.
 * This machine is 127.0.0.0/8, ::1 and localhost. */
bool proto_broker_exposes(const struct proto_broker *broker);
