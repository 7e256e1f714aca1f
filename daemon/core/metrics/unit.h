/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h: names the units of metrics, and the step to which history rounds values of each. */
#pragma once

#include <stdbool.h>

enum unit {
	UNIT_NONE, /* a bare number: load, ratio */
	UNIT_CELSIUS,
	UNIT_PERCENT,
	UNIT_HERTZ,
	UNIT_BYTES,
	UNIT_MILLIWATTS,
	UNIT_MILLIJOULES,
	UNIT_VOLTS,
	UNIT_RPM,
	UNIT_STATE,
	UNIT_BOOL,
	UNIT_COUNT,
	UNIT_PER_SECOND,
	UNIT_MILLISECONDS,
	UNIT_MICROSECONDS,
	UNIT_SECONDS,
	UNIT_FPS,
	UNIT_COUNT_OF_UNITS
};

/* "celsius", "percent", …; "" for UNIT_NONE. */
const char *unit_name(enum unit unit);

/* The quantum of history in this unit: never coarser than what sensors give. Counts of 10000 and
 * more are kept as whole numbers. */
double unit_quantum(enum unit unit);

/* 1 / quantum, a whole number; 0 when the quantum is 1 or more. */
double unit_quanta_per_one(enum unit unit);

/* True for times and rates, which no sensor gives in steps: beyond 2^14 quanta history keeps 14
 * binary digits of the value (an error of 0.006 % at most) instead of a resolution never measured.
 */
bool unit_rounded(enum unit unit);
