/* SPDX-License-Identifier: Apache-2.0 */
/* broker_status.h: holds the state of the MQTT connection; written by publish on the main thread.
 */
#pragma once

#include <stdint.h>

enum broker_state { BROKER_OFF, BROKER_CONNECTING, BROKER_CONNECTED, BROKER_AWAY };

struct broker_status {
	enum broker_state state;
	char host[256];
	int port;
	char reason[160];  /* why it is away, off although configured, or not connected for long */
	uint64_t since_ns; /* of the state */
	uint64_t connects;
	uint32_t queued;    /* messages that wait */
	uint64_t delivered; /* acknowledged by the broker: alerts and info, not summaries */
	uint64_t dropped;   /* summaries dropped because of the queue's limit */
	uint64_t dropped_alerts;
	uint64_t delivered_tag; /* of the test alert's last acknowledged transition */
};

static inline const char *broker_state_name(enum broker_state state)
{
	static const char *const names[] = {"off", "connecting", "connected", "away"};
	return names[state];
}
