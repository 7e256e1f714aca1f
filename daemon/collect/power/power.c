/* Power of the board's rails and the total: power/<rail>, power/total in milliwatts, from the chips
 * that power_rails.c finds. The total is the rail that feeds all others where there is one, else a
 * sum of rails that do not contain each other; its origin says which. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/power/power_rails.h"
#include "daemon/collect/power/power_total.h"
#include "daemon/util/sysops.h"

struct power_state {
	struct power_rails rails;
	struct metric *total;		/* NULL: another source tells it, or there is none */
	const struct power_rail *whole; /* the rail that is the total; NULL = sum */
};

/* In this order: the supply of the carrier, of the module (shared/devices.md, part 3, 3). A rail
 * like VIN_SYS_5V0 only sounds like it. */
static const struct {
	const char *rail, *origin;
} wholes[] = {
	{"power/VIN", "rail VIN"},
	{"power/VDD_IN", "rail VDD_IN"},
	{"power/POM_5V_IN", "rail POM_5V_IN"},
};

/* Fed by another rail that is measured too: would count twice in a sum. */
#define INSIDE "VDDQ_VDD2_1V8AO"

static bool in_sum(const struct power_rail *rail)
{
	const char *name = rail->metric->name + strlen("power/");
	return rail->shunt && strncmp(name, INSIDE, strlen(INSIDE)) != 0;
}

static const char *choose_total(struct power_state *power)
{
	const struct power_rails *rails = &power->rails;
	size_t parts = 0, inside = 0;
	for (size_t w = 0; w < sizeof(wholes) / sizeof(wholes[0]); w++) {
		for (size_t i = 0; i < rails->count; i++) {
			if (strcmp(rails->rail[i].metric->name, wholes[w].rail) == 0) {
				power->whole = &rails->rail[i];
				return wholes[w].origin;
			}
		}
	}
	for (size_t i = 0; i < rails->count; i++) {
		parts += in_sum(&rails->rail[i]);
		inside += rails->rail[i].shunt && !in_sum(&rails->rail[i]);
	}
	if (parts == 0) {
		return NULL;
	}
	return inside > 0 ? "sum of the rails without " INSIDE : "sum of the rails";
}

static void power_close(void *state)
{
	struct power_state *power = state;
	if (power) {
		power_rails_close(&power->rails);
	}
	free(power);
}

static int add_total(struct power_state *power, struct naming *naming)
{
	const char *origin = choose_total(power);
	return origin ? power_total_add(naming, origin, false, &power->total) : 0;
}

static int power_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct power_state *power = mem_zalloc(sizeof(*power));
	if (!power) {
		return -ENOMEM;
	}
	int r = power_rails_probe(&power->rails, ctx->root);
	if (r == 0) {
		snprintf(reason, SOURCE_REASON_SIZE,
			"no power monitor in /sys/class/hwmon, /sys/bus/iio, /sys/bus/i2c");
		r = -ENOENT;
	}
	if (r < 0) {
		power_close(power);
		return r;
	}
	*state = power;
	return 0;
}

static int power_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct power_state *power = *state;
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = power_rails_name(&power->rails, &naming);
	r = r < 0 ? r : add_total(power, &naming);
	if (r == 0) {
		naming_retire_rest(&naming);
	}
	return r;
}

static void sample_total(struct power_state *power)
{
	const struct power_rails *rails = &power->rails;
	double sum = 0;
	for (size_t i = 0; i < rails->count; i++) {
		const struct power_rail *rail = &rails->rail[i];
		if (power->whole ? rail != power->whole : !in_sum(rail)) {
			continue;
		}
		if (rail->metric->reason) {
			metric_set_null(power->total,
				power->whole ? rail->metric->reason : "a rail of the sum is null");
			return;
		}
		sum += rail->metric->value;
	}
	metric_set(power->total, sum);
}

static int power_fetch(const struct collector_context *ctx, void *state)
{
	struct power_state *power = state;
	power_rails_fetch(&power->rails, ctx->root);
	return 0;
}

static int power_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)ctx;
	(void)now_ns;
	(void)reason;
	struct power_state *power = state;
	power_rails_sample(&power->rails);
	if (power->total) {
		sample_total(power);
	}
	return 0;
}

const struct collector_ops collector_power = {
	.name = "power",
	.probe = power_probe,
	.open = power_open,
	.fetch = power_fetch,
	.sample = power_sample,
	.close = power_close,
};
