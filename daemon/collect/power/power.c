/* SPDX-License-Identifier: Apache-2.0 */
/* power.c: reads the power of the board's rails, power/<rail> in milliwatts (rails.c finds them),
 * and exposes the total as power/total: the rail that feeds all others where there is one, else a
 * sum of rails that do not contain each other; its origin says which. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <string.h>

#include "daemon/collect/power/rails.h"
#include "proto/text.h"

struct power {
	struct gauges rails;
	struct metric *total;	    /* NULL: another source exposes it, or there is none */
	const struct gauge *supply; /* the rail that is the total; NULL = sum */
};

/* In this order: the supply of the carrier, of the module. A rail like VIN_SYS_5V0 only sounds like
 * it. */
static const struct {
	const char *rail, *origin;
} supplies[] = {
	{"power/VIN", "rail VIN"},
	{"power/VDD_IN", "rail VDD_IN"},
	{"power/POM_5V_IN", "rail POM_5V_IN"},
};

/* Fed by another rail that is measured too: would count twice in a sum. */
#define INSIDE "VDDQ_VDD2_1V8AO"

static bool is_in_sum(const struct gauge *rail)
{
	return rail->counts && !text_starts_with(rail->metric->name, "power/" INSIDE);
}

/* The origin of the total; NULL = there is none. */
static const char *choose_total(struct power *power)
{
	const struct gauges *rails = &power->rails;
	size_t parts = 0, inside = 0;
	for (size_t s = 0; s < sizeof(supplies) / sizeof(supplies[0]); s++) {
		for (size_t i = 0; i < rails->count; i++) {
			const struct gauge *rail = gauges_at(rails, i);
			if (strcmp(rail->metric->name, supplies[s].rail) == 0) {
				power->supply = rail;
				return supplies[s].origin;
			}
		}
	}
	for (size_t i = 0; i < rails->count; i++) {
		const struct gauge *rail = gauges_at(rails, i);
		parts += is_in_sum(rail);
		inside += rail->counts && !is_in_sum(rail);
	}
	if (parts == 0) {
		return NULL;
	}
	return inside > 0 ? "sum of the rails without " INSIDE : "sum of the rails";
}

static int power_probe(const struct collector_context *ctx, void *state)
{
	struct gauges *rails = state;
	gauges_init(rails, ctx->root, sizeof(struct gauge), RAILS_MAX);
	return gauges_found(ctx, rails, rails_find(rails),
		"no power monitor in /sys/class/hwmon, /sys/bus/iio, /sys/bus/i2c");
}

static int power_open(const struct collector_context *ctx, void *state)
{
	struct power *power = state;
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = gauges_name(&power->rails, &naming);
	const char *origin = r == 0 ? choose_total(power) : NULL;
	if (origin) {
		r = naming_add_shared(
			&naming, "power/total", UNIT_MILLIWATTS, false, &power->total);
	}
	if (power->total) {
		power->total->origin = origin;
	}
	return naming_finish(&naming, r);
}

static void sample_total(const struct power *power)
{
	double sum = 0;
	for (size_t i = 0; i < power->rails.count; i++) {
		const struct gauge *rail = gauges_at(&power->rails, i);
		if (power->supply ? rail != power->supply : !is_in_sum(rail)) {
			continue;
		}
		if (rail->metric->reason) {
			metric_set_null(power->total,
				power->supply ? rail->metric->reason : "a rail of the sum is null");
			return;
		}
		sum += rail->metric->value;
	}
	metric_set(power->total, sum);
}

static int power_sample(const struct collector_context *ctx, void *state)
{
	struct power *power = state;
	int r = gauges_sample(ctx, state);
	if (power->total) {
		sample_total(power);
	}
	return r;
}

const struct collector_ops collector_power = {
	.name = "power",
	.state_size = sizeof(struct power),
	.probe = power_probe,
	.open = power_open,
	.fetch = gauges_fetch,
	.sample = power_sample,
	.close = gauges_close,
};
