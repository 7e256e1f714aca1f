/* SPDX-License-Identifier: Apache-2.0 */
/* rails.h: finds the rails whose power the kernel reports: hwmon (INA3221, INA238, any
 * powerN_input) and the ina3221x driver of old Jetsons (iio), as gauges power/<label> in
 * milliwatts. What a USB-PD supply has promised is power_limit/<label>. */
#pragma once

#include "daemon/collect/lib/gauge.h"

enum { RAILS_MAX = 64 };

/* Adds a gauge for each rail; `counts` is set for those of a shunt monitor on the board. Runs on a
 * worker, for files may hang; unconnected channels (NC) and sums of shunt voltages are no rails. 0
 * or -ENOMEM. */
int rails_find(struct gauges *rails);
