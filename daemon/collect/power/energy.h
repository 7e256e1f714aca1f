/* SPDX-License-Identifier: Apache-2.0 */
/* energy.h: integrates power: trapezoids over the real times of the samples. Pure; time is an
 * argument. Shown for its test; the rest of energy.c is a collector. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zeroed = nothing seen yet. */
struct integral {
	double millijoules;
	uint64_t gap_ns; /* between samples that were not integrated */
	uint64_t last_ns;
	double last_milliwatts;
	bool have;  /* the last sample had a value */
	bool seen;  /* there was a sample */
	bool known; /* one had a value */
};

/* One sample; NAN = null. Samples further apart than longest_ns are not joined: what was in between
 * is not known. A time that is not after the last is ignored. */
void integral_add(struct integral *integral, uint64_t t_ns, double milliwatts, uint64_t longest_ns);
