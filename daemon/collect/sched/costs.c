/* The source `collector`: what sampling itself costs and how it fares,
 * collector/<source>/{duration_us,errors,age_s,stale} of every periodic source, as the scheduler
 * wrote it into core/sources; of one that reads a program's lines also
 * {lines_cut,lines_unknown,tokens_unknown}. Once a second, however often the sources are read. No
 * own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

struct cost {
	struct metric *duration, *errors, *age, *stale;
	bool lines; /* it has or was refused: */
	struct metric *lines_cut, *lines_unknown, *tokens_unknown;
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

/* NULL when it is refused (limit of metrics): it is left out. */
static struct metric *add(const struct collector_context *ctx, const struct source *source,
	const char *what, enum unit unit)
{
	char name[PROTO_PATH_SIZE];
	struct metric *metric;
	snprintf(name, sizeof(name), "collector/%s/%s", source->name, what);
	if (metrics_add(ctx->core->metrics, ctx->source, name, unit, &metric) < 0) {
		return NULL;
	}
	metric->full_rate = false;
	return metric;
}

static void add_source(
	const struct collector_context *ctx, const struct source *source, struct cost *cost)
{
	cost->duration = add(ctx, source, "duration_us", UNIT_MICROSECONDS);
	cost->errors = add(ctx, source, "errors", UNIT_COUNT);
	cost->age = add(ctx, source, "age_s", UNIT_SECONDS);
	cost->stale = add(ctx, source, "stale", UNIT_BOOL);
}

static void add_lines(
	const struct collector_context *ctx, const struct source *source, struct cost *cost)
{
	cost->lines = true;
	cost->lines_cut = add(ctx, source, "lines_cut", UNIT_COUNT);
	cost->lines_unknown = add(ctx, source, "lines_unknown", UNIT_COUNT);
	cost->tokens_unknown = add(ctx, source, "tokens_unknown", UNIT_COUNT);
}

static void set_count(struct metric *metric, uint64_t count)
{
	if (metric) {
		metric_set(metric, (double)count);
	}
}

/* True for a source that gave readings and gives none now. One that this machine never had, and
 * one that was switched off, is not missed. */
static void set_stale(const struct source *source, struct metric *stale, uint64_t now_ns)
{
	if (!stale) {
		return;
	}
	if (source->last_ok_ns == 0) {
		metric_set_null(stale, "never read");
		return;
	}
	switch (source_state_at(source, now_ns)) {
	case SOURCE_OK:
		metric_set(stale, 0);
		return;
	case SOURCE_STALE:
	case SOURCE_ERROR:
		metric_set(stale, 1);
		return;
	case SOURCE_UNAVAILABLE:
		metric_set(stale, 0);
		return;
	case SOURCE_SUSPENDED:
		metric_set_null(stale, "switched off");
		return;
	}
}

static void set_cost(const struct source *source, struct cost *cost, uint64_t now_ns)
{
	if (cost->duration && source->ticks > 0) {
		metric_set(cost->duration, source->duration_us);
	} else if (cost->duration) {
		metric_set_null(cost->duration, "not sampled yet");
	}
	set_count(cost->errors, source->errors);
	set_count(cost->lines_cut, source->lines_cut);
	set_count(cost->lines_unknown, source->lines_unknown);
	set_count(cost->tokens_unknown, source->tokens_unknown);
	if (cost->age && source->last_ok_ns > 0) {
		uint64_t age_ns = now_ns > source->last_ok_ns ? now_ns - source->last_ok_ns : 0;
		metric_set(cost->age, (double)age_ns / 1e9);
	} else if (cost->age) {
		metric_set_null(cost->age, "never read");
	}
	set_stale(source, cost->stale, now_ns);
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
		if (source->reads_lines && !costs->cost[i].lines) {
			add_lines(ctx, source, &costs->cost[i]);
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
