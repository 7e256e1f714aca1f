/* SPDX-License-Identifier: Apache-2.0 */
/* adaptive.c: turns the metrics cpu/utilization and temperature/max into the scheduler's rate.
 * Three levels around the configured rate instead of repeated doubling: a machine that is neither
 * busy nor calm is always read at the configured one. */
#include "daemon/collect/sched/adaptive.h"

#include <math.h>

void adaptive_defaults(struct adaptive_options *options)
{
	*options = (struct adaptive_options){
		.min_interval_ns = 100000000u,
		.max_interval_ns = 10000000000u,
		.busy_cpu_percent = 80,
		.busy_celsius = 75,
		.calm_cpu_percent = 20,
		.calm_celsius = 50,
		.busy_factor = 2,
		.calm_factor = 0.5,
	};
}

/* Comparisons with NAN are false: no temperature is neither too hot to be calm nor busy. */
static enum adaptive_level asked_for(const struct adaptive *adaptive,
	const struct adaptive_options *options, double cpu, double celsius)
{
	bool busy = adaptive->level == ADAPTIVE_BUSY;
	bool calm = adaptive->level == ADAPTIVE_CALM;
	double busy_cpu = options->busy_cpu_percent - (busy ? ADAPTIVE_BAND_PERCENT : 0);
	double busy_celsius = options->busy_celsius - (busy ? ADAPTIVE_BAND_CELSIUS : 0);
	double calm_cpu = options->calm_cpu_percent + (calm ? ADAPTIVE_BAND_PERCENT : 0);
	double calm_celsius = options->calm_celsius + (calm ? ADAPTIVE_BAND_CELSIUS : 0);
	if (cpu > busy_cpu || celsius > busy_celsius) {
		return ADAPTIVE_BUSY;
	}
	return cpu < calm_cpu && !(celsius >= calm_celsius) ? ADAPTIVE_CALM : ADAPTIVE_NORMAL;
}

static double factor_of(enum adaptive_level level, const struct adaptive_options *options)
{
	const double factor[] = {[ADAPTIVE_NORMAL] = 1,
		[ADAPTIVE_CALM] = options->calm_factor,
		[ADAPTIVE_BUSY] = options->busy_factor};
	return factor[level];
}

bool adaptive_observe(struct adaptive *adaptive, const struct adaptive_options *options,
	double cpu_percent, double celsius, uint64_t now_ns)
{
	if (!options->enabled || isnan(cpu_percent)) {
		bool changed = !options->enabled && adaptive->level != ADAPTIVE_NORMAL;
		adaptive->level = options->enabled ? adaptive->level : ADAPTIVE_NORMAL;
		adaptive->next = adaptive->level;
		return changed;
	}
	enum adaptive_level next = asked_for(adaptive, options, cpu_percent, celsius);
	if (next != adaptive->next) {
		adaptive->next = next;
		adaptive->since_ns = now_ns;
	}
	bool faster = factor_of(next, options) > factor_of(adaptive->level, options);
	uint64_t hold_ns = faster ? ADAPTIVE_FASTER_HOLD_NS : ADAPTIVE_SLOWER_HOLD_NS;
	if (next == adaptive->level || now_ns - adaptive->since_ns < hold_ns) {
		return false;
	}
	adaptive->level = next;
	return true;
}

uint64_t adaptive_interval(
	const struct adaptive *adaptive, const struct adaptive_options *options, uint64_t base_ns)
{
	double interval_ns = (double)base_ns / factor_of(adaptive->level, options);
	uint64_t least_ns = options->min_interval_ns < base_ns ? options->min_interval_ns : base_ns;
	uint64_t most_ns = options->max_interval_ns > base_ns ? options->max_interval_ns : base_ns;
	if (!(interval_ns > (double)least_ns)) {
		return least_ns;
	}
	return interval_ns < (double)most_ns ? (uint64_t)interval_ns : most_ns;
}

const char *adaptive_level_name(enum adaptive_level level)
{
	static const char *const names[] = {
		[ADAPTIVE_NORMAL] = "normal", [ADAPTIVE_CALM] = "calm", [ADAPTIVE_BUSY] = "busy"};
	return names[level];
}
