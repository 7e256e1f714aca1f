/* SPDX-License-Identifier: Apache-2.0 */
/* costs.c: exposes what sampling itself costs, as the source `collector`:
 * collector/<source>/{duration_us,errors,age_s,stale} of every periodic source, as the scheduler
 * wrote it into core/sources; for a source that reads a program's lines also
 * {lines_cut,lines_unknown,tokens_unknown}. Once a second, however often the sources are read. No
 * own keys. */
#include "daemon/collect/sched/registry.h"

#include <stdio.h>

#include "daemon/core/metrics/metrics.h"

enum { DURATION, ERRORS, AGE, STALE, LINES_CUT, LINES_UNKNOWN, TOKENS_UNKNOWN, COSTS };

static const struct {
	const char *name;
	enum unit unit;
} table[COSTS] = {
	[DURATION] = {"duration_us", UNIT_MICROSECONDS},
	[ERRORS] = {"errors", UNIT_COUNT},
	[AGE] = {"age_s", UNIT_SECONDS},
	[STALE] = {"stale", UNIT_BOOL},
	[LINES_CUT] = {"lines_cut", UNIT_COUNT},
	[LINES_UNKNOWN] = {"lines_unknown", UNIT_COUNT},
	[TOKENS_UNKNOWN] = {"tokens_unknown", UNIT_COUNT},
};

struct cost {
	bool lines;		      /* the metrics of lines were added, or refused */
	struct metric *metric[COSTS]; /* NULL: refused */
};

struct costs_state {
	size_t count; /* sources seen so far: they are never removed */
	struct cost cost[SOURCES_MAX];
};

static int costs_open(const struct collector_context *ctx, void *state)
{
	(void)ctx;
	(void)state;
	return 0;
}

/* Adds table[from..to); what is refused (limit of metrics) is skipped. */
static void add(const struct collector_context *ctx, const struct source *source, size_t from,
	size_t to, struct cost *cost)
{
	for (size_t i = from; i < to; i++) {
		char name[PROTO_PATH_SIZE];
		struct metric *metric;
		snprintf(name, sizeof(name), "collector/%s/%s", source->name, table[i].name);
		if (metrics_add(ctx->core->metrics, ctx->source, name, table[i].unit, &metric) >=
			0) {
			metric->full_rate = false;
			cost->metric[i] = metric;
		}
	}
}

/* Stale is a source that gave readings and gives none now. One that this machine never had, and
 * one that was switched off, is not missed. */
static void set_cost(const struct source *source, struct cost *cost, uint64_t now_ns)
{
	struct metric *const *metric = cost->metric;
	const char *unread = source->last_ok_ns == 0 ? "never read" : NULL;
	uint64_t age_ns = now_ns > source->last_ok_ns ? now_ns - source->last_ok_ns : 0;
	enum source_state state = source_state_at(source, now_ns);
	metric_set_or_null(metric[DURATION], source->duration_us,
		source->ticks > 0 ? NULL : "not sampled yet");
	metric_set_or_null(metric[ERRORS], (double)source->errors, NULL);
	metric_set_or_null(metric[LINES_CUT], (double)source->lines_cut, NULL);
	metric_set_or_null(metric[LINES_UNKNOWN], (double)source->lines_unknown, NULL);
	metric_set_or_null(metric[TOKENS_UNKNOWN], (double)source->tokens_unknown, NULL);
	metric_set_or_null(metric[AGE], (double)age_ns / 1e9, unread);
	metric_set_or_null(metric[STALE], state == SOURCE_STALE || state == SOURCE_ERROR,
		unread			    ? unread
		: state == SOURCE_SUSPENDED ? "switched off"
					    : NULL);
}

static int costs_sample(const struct collector_context *ctx, void *state)
{
	struct costs_state *costs = state;
	const struct source *source;
	for (size_t i = 0; (source = sources_at(ctx->core->sources, i)); i++) {
		if (source->interval_ns == 0) {
			continue; /* fed by others */
		}
		if (i >= costs->count) {
			costs->count = i + 1;
			add(ctx, source, DURATION, LINES_CUT, &costs->cost[i]);
		}
		if (source->reads_lines && !costs->cost[i].lines) {
			costs->cost[i].lines = true;
			add(ctx, source, LINES_CUT, COSTS, &costs->cost[i]);
		}
		set_cost(source, &costs->cost[i], ctx->now_ns);
	}
	return 0;
}

const struct collector_ops collector_collector = {
	.name = "collector",
	.interval_ns = 1000000000,
	.internal = true,
	.state_size = sizeof(struct costs_state),
	.open = costs_open,
	.sample = costs_sample,
};
