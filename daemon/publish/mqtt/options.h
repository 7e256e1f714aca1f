/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: declares the settings of MQTT, what can be said about them before connecting, and how
 * a connection is authenticated and encrypted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/tls.h"

struct mosquitto;

struct mqtt_options {
	bool enabled, off;				/* off: explicitly */
	unsigned brokers;				/* 0: none */
	struct proto_address broker[PROTO_BROKERS_MAX]; /* tried in this order */
	int port; /* of those without one; 0: the one that belongs to the encryption */
	enum proto_tls_mode tls;
	char device_id[64];	      /* "" = host name; cleaned to [A-Za-z0-9_-] */
	char topic_prefix[64];	      /* "edgeprof" */
	uint64_t summary_interval_ns; /* 10 s */
	char username[128];
	char password_file[256]; /* refused when others may read it */
	char ca_file[256], cert_file[256], key_file[256];
	bool home_assistant;		/* its discovery; its birth is subscribed to then */
	char home_assistant_prefix[64]; /* "homeassistant" */
	size_t max_messages;		/* 512 */
	size_t max_bytes;		/* 768 KiB; with mqtt_memory_size() 1 MiB of memory */
	/* Pauses between attempts are random up to a limit that grows from min to max. 0 = 1 s and
	 * 60 s; no configuration key, tests shorten them. */
	uint64_t backoff_min_ns, backoff_max_ns;
	uint64_t discovery_pause_ns, birth_pause_ns; /* 0 = 60 s and 10 s; as above */
	uint64_t inherit_ns; /* retained alerts of the last process stay so long; 0 = 65 s; as above
			      */
};

/* 0, or -EINVAL with the reason: a setting is missing, or the password file cannot be used by this
 * process. The password is read and forgotten: the thread reads it for each connection. */
int mqtt_check(const struct mqtt_options *options, char *reason, size_t size);

/* One of the brokers with its port and what decides about encryption; it points into options. */
struct proto_broker mqtt_broker(const struct mqtt_options *options, unsigned index);

/* The host to which credentials would be sent in clear text; NULL: there is none. */
const char *mqtt_exposes(const struct mqtt_options *options);

/* Reads the file into buf, NUL-terminated, one trailing newline cut. 0; -EPERM when group or others
 * may access it
 * (a group may, below $CREDENTIALS_DIRECTORY); -EINVAL when it is not a plain file or holds a NUL;
 * -EFBIG when it does not fit; other -errno of open and read. On failure buf holds nothing of it.
 * Clear buf with explicit_bzero after use. Any thread. */
int secret_read(const char *path, char *buf, size_t size);

/* Before the connection: user name and password, as they are configured now. A code of
 * libmosquitto; reason is set when it is not 0. */
int mqtt_authenticate(
	struct mosquitto *mosq, const struct mqtt_options *options, char *reason, size_t size);

/* Before the connection, when it is encrypted: authorities, our certificate, and the host's name
 * that the broker's must hold. As above; nothing was sent then. */
int mqtt_encrypt(
	struct mosquitto *mosq, const struct proto_broker *broker, char *reason, size_t size);
