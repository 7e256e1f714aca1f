/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h: decides how a connection to a broker is protected, and makes its TLS context: one rule for
 * the daemon and edgeprofctl. libmosquitto 2.0 also checks the subject's common name when no
 * alternative name is a DNS name: a certificate for 10.0.0.2 whose common name says 10.0.0.1 passes
 * for 10.0.0.1. RFC 9525 and browsers ignore the common name, and so does this. libmosquitto's own
 * defaults cannot be kept in addition: with a context that is not its own, its callback refuses
 * every certificate (tried: 2.0.11).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum proto_tls_mode { PROTO_TLS_AUTO, PROTO_TLS_YES, PROTO_TLS_NO };

enum { PROTO_MQTT_PORT = 1883, PROTO_MQTTS_PORT = 8883 };

/* "" and 0: not given. */
struct proto_broker {
	enum proto_tls_mode tls;
	const char *host; /* a name or an address that the certificate must hold */
	int port;
	const char *ca_file; /* not given: the system's authorities */
	const char *cert_file, *key_file;
};

enum { PROTO_BROKERS_MAX = 8, PROTO_HOST_SIZE = 256 };

struct proto_address {
	char host[PROTO_HOST_SIZE];
	int port; /* 0: not given */
};

/* Reads the list in the key `host`: NAME[:PORT], separated by commas; an IPv6 address with a port
 * is in brackets, without one it need not be. How many there are, in their order. -EINVAL with what
 * is wrong in error, which names the entry; ret is unspecified then. */
int proto_brokers_parse(
	const char *text, struct proto_address ret[PROTO_BROKERS_MAX], char *error, size_t size);

struct ssl_ctx_st; /* SSL_CTX */

/* yes, no, auto. 0 or -EINVAL. */
int proto_tls_mode_parse(const char *text, enum proto_tls_mode *ret);

/* auto: with the port of MQTT over TLS, a CA or a certificate of ours. */
bool proto_broker_encrypted(const struct proto_broker *broker);

/* The given one, else the one that belongs to the encryption. */
int proto_broker_port(const struct proto_broker *broker);

/* A user name or password would leave this machine as clear text, without tls = no.
 * This machine is 127.0.0.0/8, ::1 and localhost. */
bool proto_broker_exposes(const struct proto_broker *broker);

/* A context for MOSQ_OPT_SSL_CTX without MOSQ_OPT_SSL_CTX_WITH_DEFAULTS: at least TLS 1.2, the peer
 * is verified. The caller frees it with SSL_CTX_free. -EINVAL: host is not a valid name, -ENOENT: a
 * file cannot be used, -ENOMEM. */
int proto_broker_context(const struct proto_broker *broker, struct ssl_ctx_st **ret);
