/* Units of metrics: the word in answers and the step to which history keeps values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* The quantum of history in this unit: never coarser than what sensors give. */
double unit_quantum(enum unit unit);

/* Of times and rates, which no sensor gives in steps: beyond 2^14 quanta history keeps 14 binary
 * digits of the value (0.006 % off at most) instead of quanta that are finer than anybody measured.
 */
bool unit_rounded(enum unit unit);
