/* SPDX-License-Identifier: Apache-2.0 */
/* walks.h: makes series as boards have them: a temperature in half degrees, the load of a CPU,
 * memory in use, a latency. */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "daemon/core/metrics/metrics.h"

static inline double walk_uniform(void)
{
	return (double)rand() / RAND_MAX * 2 - 1;
}

static const struct walk {
	const char *name;
	enum unit unit;
	double start;
} kinds[] = {
	{"temperature", UNIT_CELSIUS, 55},
	{"cpu", UNIT_PERCENT, 40},
	{"memory", UNIT_BYTES, 3e9},
	{"latency", UNIT_MILLISECONDS, 18},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static inline double walk_next(const struct walk *kind, double value)
{
	switch (kind->unit) {
	case UNIT_CELSIUS:
		return value + 0.5 * round(walk_uniform() * 0.8) +
		       round((kind->start - value) / 20) / 2;
	case UNIT_PERCENT:
		return fmin(100, fmax(0, value + 4 * walk_uniform() + (kind->start - value) / 10));
	case UNIT_BYTES:
		return value + 4096 * round(100 * walk_uniform()) + (kind->start - value) / 50;
	default:
		return kind->start * exp(0.1 * walk_uniform());
	}
}
