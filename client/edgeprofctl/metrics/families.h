/* SPDX-License-Identifier: Apache-2.0 */
/* families.h: maps metrics of the daemon to families of Prometheus, by a table. */
#pragma once

#include <cjson/cJSON.h>

#include "client/edgeprofctl/metrics/exposition.h"

/* Adds a metric of ListMetrics in base units; nothing when it has no current value, or is part of a
 * family that is made of another reply. */
void families_add_metric(struct exposition *exposition, const cJSON *metric);
