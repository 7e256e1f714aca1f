/* The source `collector`: what sampling itself costs, collector/<source>/{duration_us,errors,age_s}
 * of every periodic source, as the scheduler wrote it into core/sources. Once a second, however
 * often the sources are read. No own keys. */
#include "daemon/collect/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/util/seam.h"

struct cost {
	struct metric *duration, *errors, *age;
};

struct costs_state {
	size_t count; /* sources seen so far: they are never removed */
	struct cost cost[SOURCES_MAX];
};

static void costs_close(void *state)
{
	free(state);
}

static int costs_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)ctx;
	(void)reason;
	struct costs_state *costs = mem_zalloc(sizeof(*costs));
	if (!costs) {
		return -ENOMEM;
	}
	*state = costs;
	return 0;
}

static int add(const struct collector_context *ctx, const struct source *source, const char *what,
	enum unit unit, struct metric **ret)
{
	char name[PROTO_PATH_SIZE];
	snprintf(name, sizeof(name), "collector/%s/%s", source->name, what);
	int r = metrics_add(ctx->core->metrics, ctx->source, name, unit, ret);
	if (r == 0) {
		(*ret)->full_rate = false;
	}
	return r;
}

static void add_source(
	const struct collector_context *ctx, const struct source *source, struct cost *cost)
{
	/* What is refused (limit of metrics) stays NULL and is left out. */
	if (add(ctx, source, "duration_us", UNIT_MICROSECONDS, &cost->duration) < 0) {
		cost->duration = NULL;
	}
	if (add(ctx, source, "errors", UNIT_COUNT, &cost->errors) < 0) {
		cost->errors = NULL;
	}
	if (add(ctx, source, "age_s", UNIT_SECONDS, &cost->age) < 0) {
		cost->age = NULL;
	}
}

static void set_cost(const struct source *source, struct cost *cost, uint64_t now_ns)
{
	if (cost->duration && source->ticks > 0) {
		metric_set(cost->duration, source->duration_us);
	} else if (cost->duration) {
		metric_set_null(cost->duration, "not sampled yet");
	}
	if (cost->errors) {
		metric_set(cost->errors, (double)source->errors);
	}
	if (cost->age && source->last_ok_ns > 0) {
		uint64_t age_ns = now_ns > source->last_ok_ns ? now_ns - source->last_ok_ns : 0;
		metric_set(cost->age, (double)age_ns / 1e9);
	} else if (cost->age) {
		metric_set_null(cost->age, "never read");
	}
}

static int costs_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct costs_state *costs = state;
	const struct source *source;
	for (size_t i = 0; (source = sources_at(ctx->core->sources, i)); i++) {
		if (source->interval_ns == 0) {
			continue; /* fed by others */
		}
		if (i >= costs->count) {
			costs->count = i + 1;
			add_source(ctx, source, &costs->cost[i]);
		}
		set_cost(source, &costs->cost[i], now_ns);
	}
	return 0;
}

const struct collector_ops collector_collector = {
	.name = "collector",
	.interval_ns = 1000000000,
	.internal = true,
	.open = costs_open,
	.sample = costs_sample,
	.close = costs_close,
};
