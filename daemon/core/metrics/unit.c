/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c: tabulates names and quanta of units. Quanta: thermal zones give m°C; /proc/stat over 1 s
 * gives 1 %/core at 100 Hz, kept at 0.01; clocks come in kHz; /proc gives kB or pages; INA gives
 * mW; stage times are kept to 100 ns, the order of one clock read. */
#include "daemon/core/metrics/unit.h"

#include <assert.h>

static const struct {
	const char *name;
	double quantum;
} units[UNIT_COUNT_OF_UNITS] = {
	[UNIT_NONE] = {"", 0.001},
	[UNIT_CELSIUS] = {"celsius", 0.001},
	[UNIT_PERCENT] = {"percent", 0.01},
	[UNIT_HERTZ] = {"hertz", 1000},
	[UNIT_BYTES] = {"bytes", 1024},
	[UNIT_MILLIWATTS] = {"milliwatts", 1},
	[UNIT_MILLIJOULES] = {"millijoules", 1},
	[UNIT_VOLTS] = {"volts", 0.0001},
	[UNIT_RPM] = {"rpm", 1},
	[UNIT_STATE] = {"state", 1},
	[UNIT_BOOL] = {"bool", 1},
	[UNIT_COUNT] = {"count", 1},
	[UNIT_PER_SECOND] = {"per_second", 0.001},
	[UNIT_MILLISECONDS] = {"milliseconds", 0.0001},
	[UNIT_MICROSECONDS] = {"microseconds", 0.1},
	[UNIT_SECONDS] = {"seconds", 0.001},
	[UNIT_FPS] = {"fps", 0.001},
};

const char *unit_name(enum unit unit)
{
	assert(unit < UNIT_COUNT_OF_UNITS);
	return units[unit].name;
}

double unit_quantum(enum unit unit)
{
	assert(unit < UNIT_COUNT_OF_UNITS);
	return units[unit].quantum;
}

bool unit_rounded(enum unit unit)
{
	return unit == UNIT_PER_SECOND || unit == UNIT_MILLISECONDS || unit == UNIT_MICROSECONDS ||
	       unit == UNIT_FPS;
}
