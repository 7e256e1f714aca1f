/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c: tabulates names and quanta of units. Quanta: thermal zones give m°C; /proc/stat over 1 s
 * gives 1 %/core at 100 Hz, kept at 0.01; clocks come in kHz; /proc gives kB or pages; INA gives
 * mW; stage times are kept to 100 ns, the order of one clock read. States and counts are whole, but
 * their means over a bucket are shares: a miss now and then is not none. */
#include "daemon/core/metrics/unit.h"

#include <assert.h>

/* Quantum and quanta per one; 1.0 / 1000 is the double 0.001. */
#define PARTS(number) 1.0 / (number), number
#define UNITS(number) number, 0

static const struct {
	const char *name;
	double quantum;
	double per_one;
} units[UNIT_COUNT_OF_UNITS] = {
	[UNIT_NONE] = {"", PARTS(1000)},
	[UNIT_CELSIUS] = {"celsius", PARTS(1000)},
	[UNIT_PERCENT] = {"percent", PARTS(100)},
	[UNIT_HERTZ] = {"hertz", UNITS(1000)},
	[UNIT_BYTES] = {"bytes", UNITS(1024)},
	[UNIT_MILLIWATTS] = {"milliwatts", UNITS(1)},
	[UNIT_MILLIJOULES] = {"millijoules", UNITS(1)},
	[UNIT_VOLTS] = {"volts", PARTS(10000)},
	[UNIT_RPM] = {"rpm", UNITS(1)},
	[UNIT_STATE] = {"state", PARTS(100)},
	[UNIT_BOOL] = {"bool", PARTS(100)},
	[UNIT_COUNT] = {"count", PARTS(100)},
	[UNIT_PER_SECOND] = {"per_second", PARTS(1000)},
	[UNIT_MILLISECONDS] = {"milliseconds", PARTS(10000)},
	[UNIT_MICROSECONDS] = {"microseconds", PARTS(10)},
	[UNIT_SECONDS] = {"seconds", PARTS(1000)},
	[UNIT_FPS] = {"fps", PARTS(1000)},
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

double unit_quanta_per_one(enum unit unit)
{
	assert(unit < UNIT_COUNT_OF_UNITS);
	return units[unit].per_one;
}

bool unit_rounded(enum unit unit)
{
	return unit == UNIT_PER_SECOND || unit == UNIT_MILLISECONDS || unit == UNIT_MICROSECONDS ||
	       unit == UNIT_FPS;
}
