/* Temperatures and cooling from sys/class/thermal: zones (m°C) and cooling devices (state). Own
 * key: exclude = globs of zone types, separated by blanks, that are left out of temperature/max. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/thermal/cooling.h"
#include "daemon/collect/thermal/zones.h"
#include "daemon/util/sysops.h"

enum { ENTRIES_MAX = 2048 };

struct thermal_state {
	struct zones zones;
	struct cooling cooling;
};

static const char *const thermal_keys[] = {"exclude", NULL};

static void thermal_close(void *state)
{
	struct thermal_state *thermal = state;
	if (thermal) {
		zones_close(&thermal->zones);
		cooling_close(&thermal->cooling);
	}
	free(thermal);
}

static int thermal_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct thermal_state *thermal = mem_zalloc(sizeof(*thermal));
	struct root_name *names = mem_calloc(ENTRIES_MAX, sizeof(*names));
	int found = 0;
	int r = -ENOMEM;
	if (!thermal || !names) {
		goto error;
	}
	r = root_list(ctx->root, "sys/class/thermal", names, ENTRIES_MAX);
	if (r < 0 && r != -ENOENT) {
		snprintf(reason, SOURCE_REASON_SIZE, "/sys/class/thermal: %s", errno_reason(r));
		goto error;
	}
	size_t count = r < 0 ? 0 : (size_t)r;
	r = zones_probe(&thermal->zones, ctx->root, names, count);
	if (r < 0) {
		goto error;
	}
	found += r;
	r = cooling_probe(&thermal->cooling, ctx->root, names, count);
	if (r < 0) {
		goto error;
	}
	found += r;
	if (found == 0) {
		snprintf(reason, SOURCE_REASON_SIZE,
			"no thermal zone and no cooling device in /sys/class/thermal");
		r = -ENOENT;
		goto error;
	}
	free(names);
	*state = thermal;
	return 0;
error:
	free(names);
	thermal_close(thermal);
	return r;
}

static int thermal_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct thermal_state *thermal = *state;
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = zones_name(&thermal->zones, &naming, source_option(ctx->options, "exclude"));
	r = r < 0 ? r : cooling_name(&thermal->cooling, &naming);
	if (r == 0) {
		naming_retire_rest(&naming);
	}
	return r;
}

static int thermal_fetch(const struct collector_context *ctx, void *state)
{
	struct thermal_state *thermal = state;
	zones_fetch(&thermal->zones, ctx->root);
	cooling_fetch(&thermal->cooling, ctx->root);
	return 0;
}

static int thermal_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)ctx;
	(void)now_ns;
	(void)reason;
	struct thermal_state *thermal = state;
	zones_sample(&thermal->zones);
	cooling_sample(&thermal->cooling);
	return 0;
}

const struct collector_ops collector_thermal = {
	.name = "thermal",
	.config_keys = thermal_keys,
	.probe = thermal_probe,
	.open = thermal_open,
	.fetch = thermal_fetch,
	.sample = thermal_sample,
	.close = thermal_close,
};
