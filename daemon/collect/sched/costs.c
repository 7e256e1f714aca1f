/* SPDX-License-Identifier: Apache-2.0 */
/* costs.c: exposes what sampling itself costs, as the source `collector`:
 * collector/<source>/{duration_us,errors,age_s,stale} of every periodic source, as the scheduler
 * wrote it into core/sources; for a source that reads a program's lines also
 * {lines_cut,lines_unknown,tokens_unknown}. Once a second, however often the sources are read. No
 * own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

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
	case SOURCE_UNAVAILABLE:
		metric_set(stale, 0);
		return;
	case SOURCE_STALE:
	case SOURCE_ERROR:
		metric_set(stale, 1);
		return;
	case SOURCE_SUSPENDED:
		metric_set_null(stale, "switched off");
		return;
	}
}

static void set_cost(const struct source *source, struct cost *cost, uint64_t now_ns)
{
	struct metric *duration = cost->metric[DURATION], *age = cost->metric[AGE];
	if (duration && source->ticks > 0) {
		metric_set(duration, source->duration_us);
	} else if (duration) {
		metric_set_null(duration, "not sampled yet");
	}
	set_count(cost->metric[ERRORS], source->errors);
	set_count(cost->metric[LINES_CUT], source->lines_cut);
	set_count(cost->metric[LINES_UNKNOWN], source->lines_unknown);
	set_count(cost->metric[TOKENS_UNKNOWN], source->tokens_unknown);
	if (age && source->last_ok_ns > 0) {
		uint64_t age_ns = now_ns > source->last_ok_ns ? now_ns - source->last_ok_ns : 0;
		metric_set(age, (double)age_ns / 1e9);
	} else if (age) {
		metric_set_null(age, "never read");
	}
	set_stale(source, cost->metric[STALE], now_ns);
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
			add(ctx, source, DURATION, LINES_CUT, &costs->cost[i]);
		}
		if (source->reads_lines && !costs->cost[i].lines) {
			costs->cost[i].lines = true;
			add(ctx, source, LINES_CUT, COSTS, &costs->cost[i]);
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
