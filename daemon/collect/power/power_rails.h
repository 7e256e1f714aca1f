/* Rails whose power the kernel tells: hwmon (INA3221, INA238, any powerN_input) and the ina3221x
 * driver of old Jetsons (iio). power/<label> in milliwatts. What a USB-PD supply has promised is
 * power_limit/<label>. */
#pragma once

#include <stddef.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/collect/sched/collector.h"

enum { POWER_RAILS_MAX = 64, POWER_LABEL_SIZE = 128 };

struct power_rail {
	struct device_file power;   /* the power itself, or the voltage in mV … */
	struct device_file current; /* … and the current in mA; path "" = power is direct */
	char label[POWER_LABEL_SIZE];
	const char *origin; /* of the metric */
	double scale;	    /* of what was read (or of the product) to milliwatts */
	int result;	    /* of the last read, and what it gave */
	long long power_read, current_read;
	struct metric *metric;
	bool shunt; /* of a shunt monitor on the board: counts in a sum */
	bool limit; /* what the supply promised (USB PD): power_limit/<label>, no measurement */
};

struct power_rails {
	size_t count;
	struct power_rail rail[POWER_RAILS_MAX];
};

/* Finds the rails: on a worker, for files may hang; unconnected channels (NC) and sums of shunt
 * voltages are no rails. The number, or -ENOMEM. */
int power_rails_probe(struct power_rails *rails, const struct root *root);

/* Adds their metrics; a rail for which there is no room is left out. 0, -ENOMEM. */
int power_rails_name(struct power_rails *rails, struct naming *naming);

/* Reads each rail once: on a worker, for an I2C bus may hang. */
void power_rails_fetch(struct power_rails *rails, const struct root *root);

/* Sets what was read. A rail that could not be read is null alone. */
void power_rails_sample(struct power_rails *rails);

/* Zeroed storage is fine. */
void power_rails_close(struct power_rails *rails);
