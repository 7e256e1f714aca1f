/* Cooling devices that take clock away: Jetson's alerts, and caps of CPU, GPU and memory. */
#pragma once

#include <stddef.h>

#include "daemon/core/metrics/throttle.h"
#include "daemon/util/root.h"

struct throttle_device;

struct throttle_cooling {
	size_t count;
	struct throttle_device *device;
};

/* Picks the devices by the class that their type tells; fans never. How many; -ENOMEM. Notes what
 * was found in status->tried. */
int throttle_cooling_open(
	struct throttle_cooling *cooling, const struct root *root, struct throttle_status *status);

/* Reads the states; no more, as it runs on a worker. */
void throttle_cooling_fetch(struct throttle_cooling *cooling, const struct root *root);

/* Joins throttled (alerts), freq_capped (caps) and active. */
void throttle_cooling_sample(
	const struct throttle_cooling *cooling, struct throttle_status *status);

void throttle_cooling_close(struct throttle_cooling *cooling); /* zeroed storage is fine */
