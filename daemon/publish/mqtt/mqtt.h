/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mqtt.h: publishes over MQTT. libmosquitto runs in a thread of its own, fed by a bounded queue of
 * finished payloads. The main loop makes payloads (payload.c) and never waits; the thread never
 * touches core or cJSON; results come back by uv_async_send.
 */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/publish/mqtt/options.h"
#include "daemon/publish/mqtt/thread.h"

struct mqtt;
struct recording;

/* The memory where alerts wait for the broker, and where the retained topics are remembered, while
 * there is no process. */
size_t mqtt_memory_size(void);

/* Gives the thread its connection; registers as alert observer. -EINVAL for unusable options
 * (reason logged and in core->broker, which is off then), -ENOMEM, -ENOSPC (no observer's place),
 * -EMFILE. A broker that is absent is not an error. core->broker is kept up to date. memory:
 * mqtt_memory_size() bytes, aligned to 8, that survive the process (zeroed when new; what is
 * damaged in it is discarded); NULL: there is none. It must stay until done(). */
int mqtt_open(uv_loop_t *loop, struct core *core, const struct mqtt_options *options,
	struct mqtt_thread *thread, void *memory, struct mqtt **ret);

/* The description of the device has changed: PREFIX/ID/info. */
void mqtt_publish_info(struct mqtt *mqtt);

/* Announces a recording: <prefix>/<id>/event/recording, QoS 1, kept while there is room. */
void mqtt_recording(struct mqtt *mqtt, const struct recording *recording);

/* When connected: sends what waits (at most 1 s), publishes offline, disconnects.
 * A connection that hangs in name resolution or in connect is abandoned, with the thread. Then
 * done(ctx): always within 2.5 s. A second call is ignored. */
void mqtt_close(struct mqtt *mqtt, void (*done)(void *ctx), void *ctx);
