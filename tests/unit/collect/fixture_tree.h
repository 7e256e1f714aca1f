/* SPDX-License-Identifier: Apache-2.0 */
/* One collector over a made-up tree, without a scheduler: what the tests of collect/ stand on. */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/sched/collector.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/status/bystanders.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/timeline/timeline.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

/* One collector over a tree. */
struct bench {
	struct core core;
	struct counters counters;
	struct throttle_status throttle;
	struct processes processes;
	struct modes modes;
	struct bystanders bystanders;
	struct root root, real;
	struct source *source;
	struct source_options options;
	struct collector_context ctx;
	const struct collector_ops *ops;
	void *state;
	char reason[SOURCE_REASON_SIZE];
	uint64_t now_ns;
};

static inline void bench_make(struct bench *bench, const char *root, const char *collector)
{
	memset(bench, 0, sizeof(*bench));
	bench->now_ns = UINT64_C(1000000000000);
	ck_assert_int_eq(root_init(&bench->root, root), 0);
	ck_assert_int_eq(root_init(&bench->real, NULL), 0);
	ck_assert_int_eq(sources_create(&bench->core.sources), 0);
	ck_assert_int_eq(metrics_create(&bench->core.metrics), 0);
	ck_assert_int_eq(timeline_create(64, &bench->core.timeline), 0);
	bench->core.processes = &bench->processes;
	bench->core.counters = &bench->counters;
	bench->core.throttle = &bench->throttle;
	bench->core.modes = &bench->modes;
	bench->core.bystanders = &bench->bystanders;
	if (collector) {
		bench->ops = collector_find(collector);
		ck_assert_ptr_nonnull(bench->ops);
		ck_assert_int_eq(
			sources_add(bench->core.sources, collector, 1000000000, &bench->source), 0);
	}
	bench->options.enabled = true;
	bench->ctx = (struct collector_context){.root = &bench->root,
		.real_root = &bench->real,
		.core = &bench->core,
		.source = bench->source,
		.options = &bench->options,
		.reason = bench->reason};
}

static inline int bench_open(struct bench *bench)
{
	bench->reason[0] = '\0';
	/* As on a worker: whoever touches more than the roots there crashes here. */
	const struct collector_context roots = {.root = &bench->root,
		.real_root = &bench->real,
		.options = &bench->options,
		.reason = bench->reason};
	bench->state = collector_state(bench->ops);
	if (!bench->state) {
		return -ENOMEM;
	}
	int r = bench->ops->probe ? bench->ops->probe(&roots, bench->state) : 0;
	r = r < 0 ? r : bench->ops->open(&bench->ctx, bench->state);
	if (r < 0) {
		collector_free(bench->ops, bench->state);
		bench->state = NULL;
	}
	return r;
}

/* Samples one second later and commits. */
static inline int bench_sample(struct bench *bench)
{
	bench->now_ns += 1000000000;
	bench->reason[0] = '\0';
	/* As on a worker: whoever touches more than the roots there crashes here. */
	const struct collector_context roots = {.root = &bench->root, .real_root = &bench->real};
	int r = bench->ops->fetch ? bench->ops->fetch(&roots, bench->state) : 0;
	ck_assert_int_eq(r, 0);
	bench->ctx.now_ns = bench->now_ns;
	do {
		r = bench->ops->sample(&bench->ctx, bench->state);
	} while (r == -EINPROGRESS);
	metrics_commit(bench->core.metrics, bench->source, bench->now_ns);
	return r;
}

static inline void bench_close(struct bench *bench)
{
	if (bench->state) {
		collector_free(bench->ops, bench->state);
		bench->state = NULL;
		if (bench->ops->forget) {
			bench->ops->forget(&bench->ctx);
		}
	}
}

static inline void bench_finish(struct bench *bench)
{
	bench_close(bench);
	timeline_destroy(bench->core.timeline);
	metrics_destroy(bench->core.metrics);
	sources_destroy(bench->core.sources);
	root_finish(&bench->root);
	root_finish(&bench->real);
}

/* Refuses each allocation of the opening, one at a time: -ENOMEM, or, where may_open, a source that
 * lacks something. With all of them it opens, and its samples allocate nothing; it is left open. */
static inline void bench_check_memory(
	struct bench *bench, const char *root, const char *collector, bool may_open)
{
	for (size_t fail = 1;; fail++) {
		bench_make(bench, root, collector);
		alloc_faults_start(fail);
		int r = bench_open(bench);
		bool reached = alloc_calls >= fail;
		alloc_faults_stop();
		if (!reached) {
			ck_assert_int_eq(r, 0);
			break;
		}
		ck_assert(r == -ENOMEM || (may_open && r == 0));
		bench_finish(bench);
	}
	ck_assert_int_eq(bench_sample(bench), 0);
	alloc_faults_start(0);
	ck_assert_int_eq(bench_sample(bench), 0);
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
}

static inline const struct metric *bench_metric(struct bench *bench, const char *name)
{
	const struct metric *metric = metrics_find(bench->core.metrics, name);
	ck_assert_msg(metric != NULL, "no metric %s", name);
	return metric;
}

/* The value, or NAN when it is null. */
static inline double bench_value(struct bench *bench, const char *name)
{
	return bench_metric(bench, name)->value;
}

static inline void bench_expect(struct bench *bench, const char *name, double value)
{
	double is = bench_value(bench, name);
	ck_assert_msg(
		fabs(is - value) < 1e-6 * (1 + fabs(value)), "%s is %g, not %g", name, is, value);
}

static inline void bench_expect_null(struct bench *bench, const char *name, const char *reason)
{
	const struct metric *metric = bench_metric(bench, name);
	ck_assert_msg(isnan(metric->value), "%s is %g, not null", name, metric->value);
	ck_assert_msg(strcmp(metric->reason, reason) == 0, "%s: \"%s\", not \"%s\"", name,
		metric->reason, reason);
}
