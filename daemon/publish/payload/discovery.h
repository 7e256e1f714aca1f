/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery.h: makes the payload of Home Assistant's MQTT device discovery (Home Assistant 2024.11
 * and later): one JSON object that names the device and, as components, sensors that read the keys
 * of the summary and of the stages' payloads. Abbreviated as its documentation has it (dev, o,
 * cmps, p, …).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/publish/payload/topics.h"

enum {
	DISCOVERY_COMPONENTS = 256,
	DISCOVERY_SIZE = 64 * 1024, /* of the payload */
	DISCOVERY_KNOWN = 1024,
};

/* The metrics and stages that had a value once, by a hash of the name: a sensor that has none for
 * a while stays announced. Zeroed = none. */
struct discovery_known {
	size_t count;
	uint64_t hash[DISCOVERY_KNOWN]; /* a table with open places; 0 = free */
};

/* Notes what has a value now; true when something is new. Beyond half of DISCOVERY_KNOWN
 * everything is dropped and noted again: apps come and go. */
bool discovery_note(struct discovery_known *known, const struct core *core);

/* Bytes to free(3), NULL when memory is short. expire_s: after so long without a message a sensor
 * has no value any more. Components without room are counted in *omitted. */
char *payload_discovery(const struct core *core, const struct topics *topics,
	const struct discovery_known *known, unsigned expire_s, size_t *omitted, size_t *length);
