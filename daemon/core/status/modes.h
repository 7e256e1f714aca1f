/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h: holds how the board is set; written by the modes collector. Zeroed = nothing known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum clocks_state {
	CLOCKS_UNKNOWN, /* or no Jetson */
	CLOCKS_FREE,
	CLOCKS_PINNED, /* jetson_clocks: the minimum is the maximum */
};

struct modes {
	bool have_power_mode;
	int power_mode;		  /* nvpmodel's number */
	char power_mode_name[48]; /* "" = unknown */
	char governor[64];	  /* of the cores, different ones with commas; "" = none */
	char gpu_governor[64];
	enum clocks_state clocks;
	/* The share of its highest clock that is allowed, of the core or GPU that is limited most.
	 * Kernels lower it to cool the device, too: it is of the last sample without throttling. */
	double frequency_limit, gpu_frequency_limit; /* 0 … 1; NAN, or 0 = not known */
	uint64_t limit_ns;			     /* when they were read; 0 = never */
};
