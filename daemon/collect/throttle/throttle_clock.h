/* The last resort: the clock that the hardware runs at against the one that was set. */
#pragma once

#include <stddef.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/core/metrics/throttle.h"

enum {
	THROTTLE_CLOCK_MAX = 16,    /* policies */
	THROTTLE_CLOCK_SAMPLES = 3, /* in a row: a clock that is just being changed differs too */
};

struct throttle_clock {
	size_t count;
	bool low_only; /* a clock as it was set proves nothing: the firmware has other means */
	struct throttle_policy {
		struct device_file is, set;
		int result; /* of the last reads, and what they gave */
		long long is_khz, set_khz;
		unsigned low; /* samples in a row */
	} policy[THROTTLE_CLOCK_MAX];
};

/* Policies that tell both clocks. How many; -ENOMEM. Notes it in status->tried. */
int throttle_clock_open(
	struct throttle_clock *clock, const struct root *root, struct throttle_status *status);
/* Reads the clocks; no more, as it runs on a worker. */
void throttle_clock_fetch(struct throttle_clock *clock, const struct root *root);
/* Joins freq_capped and active. */
void throttle_clock_sample(struct throttle_clock *clock, struct throttle_status *status);
void throttle_clock_close(struct throttle_clock *clock); /* zeroed storage is fine */
