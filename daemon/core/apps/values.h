/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h: declares numbers that apps report in addition to their stages: gauges and counters
 * become metrics of their own, attributes stay with the stage (or mark) they describe. Filled by
 * records, read by api.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/unit.h"
#include "daemon/core/stages/stages.h"

/* Gauges and counters of one app. Those of all have no limit of their own but the metrics'. */
enum { APP_VALUES_MAX = 64 };

struct app_value {
	char name[PROTO_NAME_SIZE];
	bool counter;
	enum unit unit;
	double value;	  /* a gauge's last, a counter's total since the app's since_ns */
	uint64_t set_ns;  /* when it was set; 0 = not by a process that still runs */
	uint64_t used_ns; /* of the drain that brought the last one */
	struct metric *metric;
};

struct app_values {
	size_t count;
	uint64_t refused; /* records of names beyond the limits */
	uint64_t changes; /* records taken; with refused what save.c compares */
	struct app_value value[APP_VALUES_MAX];
};

#define GAUGE_EXPIRE_NS UINT64_C(600000000000) /* at first */

/* Mean over the app's life. */
static inline double app_attribute_mean(const struct app_attribute *attribute)
{
	return attribute->sum / (double)attribute->count;
}
