/* Thermal zones of sys/class/thermal: temperature/<type>, temperature/max, headroom/<type>. */
#pragma once

#include <stddef.h>

#include "daemon/collect/lib/naming.h"
#include "daemon/collect/sched/collector.h"

struct zone;

struct zones {
	size_t count;
	struct zone *zone;
	struct metric *max; /* NULL without zones */
};

/* names: what the folder holds. Reads types and trip points; may hang. The number of zones, or
 * -ENOMEM. */
int zones_probe(
	struct zones *zones, const struct root *root, const struct root_name *names, size_t count);

/* Adds the metrics; exclude: globs of types, separated by blanks, that stay out of temperature/max
 * ("" = none). A zone for which there is no room is left out. 0 or -errno of temperature/max. */
int zones_name(struct zones *zones, struct naming *naming, const char *exclude);

/* One read a zone, into the zones; may hang, sets no metric. */
void zones_fetch(struct zones *zones, const struct root *root);

/* Sets what was read last. A zone that could not be read is null alone. */
void zones_sample(struct zones *zones);

/* Zeroed storage is fine. */
void zones_close(struct zones *zones);
