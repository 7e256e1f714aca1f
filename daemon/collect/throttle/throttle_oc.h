/* Over-current and under-voltage events of a Jetson (hwmon soctherm_oc) as rates. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/core/metrics/throttle.h"

enum { THROTTLE_OC_MAX = 8 };

struct throttle_oc {
	size_t count;
	uint64_t t_ns; /* of the previous sample; 0 = none */
	struct {
		struct device_file file;
		struct metric *rate; /* NULL: no room for it */
		unsigned number;
		int result; /* of the last read, and what it gave */
		long long value;
		long long last; /* -1 = none */
	} event[THROTTLE_OC_MAX];
};

/* Looks for the counters; may hang. How many; -ENOMEM. Notes what was found in status->tried. */
int throttle_oc_probe(
	struct throttle_oc *oc, const struct root *root, struct throttle_status *status);

/* Adds throttle/oc<n>_rate; one for which there is no room is left out. 0, -ENOMEM. */
int throttle_oc_name(struct throttle_oc *oc, struct naming *naming);

/* Reads the counters; no more, as it runs on a worker. */
void throttle_oc_fetch(struct throttle_oc *oc, const struct root *root);

/* Sets the rates; joins under_voltage and over_current. */
void throttle_oc_sample(struct throttle_oc *oc, struct throttle_status *status, uint64_t now_ns);

void throttle_oc_close(struct throttle_oc *oc); /* zeroed storage is fine */
