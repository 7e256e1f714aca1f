/* SPDX-License-Identifier: Apache-2.0 */
/* The quanta of history against what sensors resolve: the table of PRECISION in
 * edgeprof-metrics(7). */
#include "daemon/core/metrics/unit.h"

#include <math.h>

#include "tests/unit/unit.h"

/* The finest step in which a source of the unit moves, and where that is from. */
static const struct {
	enum unit unit;
	double step;
	const char *source;
} sensors[] = {
	{UNIT_CELSIUS, 0.001, "thermal_zone*/temp and hwmon temp*_input, millidegrees"},
	{UNIT_CELSIUS, 0.03125, "tegrastats, 1/32 degree"},
	{UNIT_PERCENT, 1, "/proc/stat, ticks of 10 ms in 1 s"},
	{UNIT_PERCENT, 0.01, "/proc/pressure, two decimals"},
	{UNIT_PERCENT, 0.1, "GPU load, per mille"},
	{UNIT_HERTZ, 1000, "scaling_cur_freq, kHz"},
	{UNIT_BYTES, 1024, "/proc/meminfo and /proc/PID/smaps_rollup, kB"},
	{UNIT_MILLIWATTS, 1.25, "INA226 with a current step of 50 uA"},
	{UNIT_VOLTS, 0.00125, "INA226 bus voltage"},
	{UNIT_VOLTS, 0.001, "hwmon in*_input, millivolts"},
	{UNIT_RPM, 1, "fan*_input"},
	{UNIT_STATE, 1, "cooling_device*/cur_state"},
	{UNIT_BOOL, 1, "flags"},
	{UNIT_COUNT, 1, "counters"},
	{UNIT_SECONDS, 0.01, "/proc/uptime"},
	{UNIT_NONE, 0.01, "/proc/loadavg"},
};

START_TEST(no_quantum_is_coarser_than_a_sensor)
{
	for (size_t i = 0; i < sizeof(sensors) / sizeof(sensors[0]); i++) {
		ck_assert_msg(unit_quantum(sensors[i].unit) <= sensors[i].step,
			"%s: quantum %g, step %g", sensors[i].source, unit_quantum(sensors[i].unit),
			sensors[i].step);
	}
}
END_TEST

START_TEST(every_unit_has_a_name_of_its_own_and_a_quantum)
{
	for (int a = 0; a < UNIT_COUNT_OF_UNITS; a++) {
		ck_assert(unit_quantum((enum unit)a) > 0 && isfinite(unit_quantum((enum unit)a)));
		const double per_one = unit_quanta_per_one((enum unit)a);
		ck_assert(unit_quantum((enum unit)a) < 1 ? 1 / per_one == unit_quantum((enum unit)a)
							 : per_one == 0);
		for (int b = 0; b < a; b++) {
			ck_assert_str_ne(unit_name((enum unit)a), unit_name((enum unit)b));
		}
	}
}
END_TEST
