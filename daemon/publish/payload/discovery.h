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

#include "daemon/core/core.h"
#include "daemon/publish/payload/payload.h"
#include "daemon/publish/payload/topics.h"

enum {
	DISCOVERY_COMPONENTS = 256,
	DISCOVERY_SIZE = 64 * 1024, /* of the payload */
};

/* Notes the metrics and stages that have a value now; true when something is new: a sensor that has
 * none for a while stays announced. Beyond half of NAME_SET_SIZE everything is dropped and noted
 * again: apps come and go. */
bool discovery_note(struct name_set *known, const struct core *core);

/* Bytes to free(3), NULL when memory is short. expire_s: after so long without a message a sensor
 * has no value any more. Components without room are counted in *omitted. */
char *payload_discovery(const struct core *core, const struct topics *topics,
	const struct name_set *known, unsigned expire_s, size_t *omitted, size_t *length);
