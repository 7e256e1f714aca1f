/*
 * Names of metrics whose last part comes from the device (zone types, cooling devices): cleaned,
 * numbered .2, .3 when the device repeats them, and the same names again when a collector is opened
 * a second time. Lives on the stack of one open.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/metrics.h"

struct naming {
	struct metrics *metrics;
	struct source *source;
	const char *prefix; /* of the call in progress */
	uint64_t claimed[METRICS_MAX / 64];
};

void naming_init(struct naming *naming, struct metrics *metrics, struct source *source);

/* Adds prefix/<cleaned, numbered text>. 0, or -ENOSPC, -ENOMEM. */
int naming_add(struct naming *naming, const char *prefix, const char *text, size_t length,
	enum unit unit, struct metric **ret);

/* Adds the metric with exactly this path. 0, -EEXIST, -EINVAL, -ENOSPC, -ENOMEM. */
int naming_add_exact(struct naming *naming, const char *path, enum unit unit, struct metric **ret);

/* Retires the source's metrics that this open did not claim: devices that have gone. */
void naming_retire_rest(struct naming *naming);
