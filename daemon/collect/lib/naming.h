/* SPDX-License-Identifier: Apache-2.0 */
/* naming.h: makes names of metrics whose last part comes from the device (zone types, cooling
 * devices): cleaned, numbered .2, .3 when the device repeats them, and the same names again when a
 * collector is opened a second time. Lives on the stack of one open. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/sched/collector.h"
#include "daemon/core/metrics/metrics.h"

/* Metrics whose names are fixed: adds all of a table, which an enum numbers. 0 or -errno as of
 * metrics_add. */
struct metric_row {
	const char *name;
	enum unit unit;
};
int metric_rows_add(const struct collector_context *ctx, const struct metric_row *row, size_t count,
	struct metric **ret);

struct naming {
	struct metrics *metrics;
	struct source *source;
	const char *prefix; /* of the call in progress */
	uint64_t claimed[METRICS_MAX / 64];
};

void naming_init(struct naming *naming, struct metrics *metrics, struct source *source);

/* Adds prefix/<cleaned, numbered text>. 0, or -ENOSPC, -ENOMEM. */
int naming_add(struct naming *naming, const char *prefix, const char *text, enum unit unit,
	struct metric **ret);

/* Adds the metric with exactly this path. 0, -EEXIST, -EINVAL, -ENOSPC, -ENOMEM. */
int naming_add_exact(struct naming *naming, const char *path, enum unit unit, struct metric **ret);

/* The same for a name that several sources know: 0 and *ret = NULL where another source exposes it
 * or there is no capacity; or -EINVAL, -ENOMEM. yields: a better source may come and own it, which
 * retires the metric: ask again before each use. So power/total has one source at a time and
 * nothing counts twice: power (what measures the supply or the board's rails) before pi (what the
 * PMIC feeds) before tegrastats, whichever opens first. */
int naming_add_shared(
	struct naming *naming, const char *path, enum unit unit, bool yields, struct metric **ret);

/* The end of an open whose result is r, which is returned. After a good one the source's metrics
 * that it did not claim are retired: devices that have gone. */
int naming_finish(struct naming *naming, int r);
