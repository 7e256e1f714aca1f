/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: declares the settings of MQTT, and what can be said about them before connecting. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/tls.h"

struct mqtt_options {
	bool enabled;
	char host[256];
	int port; /* 0: the one that belongs to the encryption */
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

/* What decides about encryption; it points into options. */
struct proto_broker mqtt_broker(const struct mqtt_options *options);

/* Whether credentials would leave this machine in clear text. */
bool mqtt_exposes(const struct mqtt_options *options);
