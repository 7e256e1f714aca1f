/*
 * The MQTT side: libmosquitto in its own thread, fed by a bounded queue of ready payloads. The main
 * loop makes payloads (payload.c) and never waits; the thread never touches core or cJSON; results
 * come back by uv_async_send. See design §9 for what was tried.
 */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/publish/mqtt/thread.h"
#include "proto/tls_mode.h"

struct mqtt;
struct recording;

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

/* The memory where alerts wait for the broker, and where the retained topics are remembered, while
 * there is no process. */
size_t mqtt_memory_size(void);

/* Gives the thread its connection; registers as alert observer. -EINVAL for unusable options
 * (reason logged and in core->broker, which is off then), -ENOMEM, -ENOSPC (no observer's place),
 * -EMFILE. A broker that is absent is not an error. core->broker is kept up to date. memory:
 * mqtt_memory_size() bytes, aligned to 8, that survive the process (zeroed when new; what is
 * damaged in it is left out); NULL: there is none. It must stay until done(). */
int mqtt_open(uv_loop_t *loop, struct core *core, const struct mqtt_options *options,
	struct mqtt_thread *thread, void *memory, struct mqtt **ret);

/* Announces a recording: <prefix>/<id>/event/recording, QoS 1, kept while there is room. */
void mqtt_recording(struct mqtt *mqtt, const struct recording *recording);

/* When connected: sends what waits (at most 1 s), publishes offline, disconnects.
 * A connection that hangs in name resolution or in connect is left behind, with the thread. Then
 * done(ctx): always within 2.5 s. A second call is ignored. */
void mqtt_close(struct mqtt *mqtt, void (*done)(void *ctx), void *ctx);
