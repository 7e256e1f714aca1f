/* Cooling devices of sys/class/thermal: cooling/<type>, a state with its max beside it. */
#pragma once

#include <stddef.h>

#include "daemon/collect/lib/naming.h"
#include "daemon/collect/sched/collector.h"

struct cooling_device;

struct cooling {
	size_t count;
	struct cooling_device *device;
};

/* names: what the folder holds. Reads types and highest states; may hang. The number of devices, or
 * -ENOMEM. */
int cooling_probe(struct cooling *cooling, const struct root *root, const struct root_name *names,
	size_t count);

/* Adds the metrics; a device for which there is no room is left out. 0, -ENOMEM. */
int cooling_name(struct cooling *cooling, struct naming *naming);

/* One read a device, into the devices; may hang, sets no metric. */
void cooling_fetch(struct cooling *cooling, const struct root *root);

/* Sets what was read last; a device that could not be read is null alone. */
void cooling_sample(struct cooling *cooling);

/* Zeroed storage is fine. */
void cooling_close(struct cooling *cooling);
