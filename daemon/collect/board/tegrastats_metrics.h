/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tegrastats_metrics.h: turns a line of tegrastats into metrics of the names that no other source
 * has. sysfs and /proc come first whatever starts first: names are added when a line holds them, a
 * name that another source owns is skipped, and the source yields (core/sources.h): who adds one of
 * its names later gets it. So no pointer to a metric is kept from line to line. At most 640 names:
 * past that, those that the last line did not hold are retired first, then new ones are refused and
 * counted in tokens_unknown.
 */
#pragma once

#include <stdbool.h>

#include "daemon/core/metrics/metrics.h"
#include "proto/tegrastats/tegrastats.h"

/* Sets the source's metrics for the coming commit. loads: the CPU percentages mean something (those
 * of a child's first line do not). Allocates only when a name is new. */
void tegrastats_metrics_set(
	struct metrics *metrics, struct source *source, const struct tegrastats *stats, bool loads);
