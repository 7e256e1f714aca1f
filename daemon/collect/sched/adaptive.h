/* SPDX-License-Identifier: Apache-2.0 */
/* adaptive.h: decides the adaptive rate: sources are read more often while the machine is busy or
 * hot, and less often while it is idle. A pure decision on two numbers; the scheduler asks for the
 * interval. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What keeps the rate from swinging: a condition must hold this long, and a limit is left only
 * beyond it by this much. */
#define ADAPTIVE_FASTER_HOLD_NS UINT64_C(2000000000)
#define ADAPTIVE_SLOWER_HOLD_NS UINT64_C(30000000000)
#define ADAPTIVE_BAND_PERCENT 10.0
#define ADAPTIVE_BAND_CELSIUS 5.0

struct adaptive_options {
	bool enabled;
	uint64_t min_interval_ns, max_interval_ns;
	double busy_cpu_percent, busy_celsius; /* above one of them: busy */
	double calm_cpu_percent, calm_celsius; /* below both: calm */
	double busy_factor, calm_factor;       /* of the rate: >= 1, and > 0 to 1 */
};

enum adaptive_level { ADAPTIVE_NORMAL, ADAPTIVE_CALM, ADAPTIVE_BUSY };

/* Zeroed: normal. */
struct adaptive {
	enum adaptive_level level;
	enum adaptive_level next; /* what the numbers ask for */
	uint64_t since_ns;	  /* … since when; valid only while next differs from level */
};

/* The factors and limits of the design: 80 % or 75 °C twice the rate, 20 % and 50 °C half of it,
 * between 100 ms and 10 s; not enabled. */
void adaptive_defaults(struct adaptive_options *options);

/* NAN: a machine without a temperature is not hot; without a CPU number nothing changes. True when
 * the level changed. */
bool adaptive_observe(struct adaptive *adaptive, const struct adaptive_options *options,
	double cpu_percent, double celsius, uint64_t now_ns);

/* The interval at the present level of what is read every base_ns otherwise. The bounds never turn
 * faster into slower than base_ns, nor the other way round. */
uint64_t adaptive_interval(
	const struct adaptive *adaptive, const struct adaptive_options *options, uint64_t base_ns);

const char *adaptive_level_name(enum adaptive_level level);
