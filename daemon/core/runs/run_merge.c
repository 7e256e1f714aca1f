/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_merge.c: merges all runs of an app into one, which queries with all_runs read. Counts and
 * histograms are sums; what is of a moment (windows, labels, deadlines, nesting) is that of the
 * latest run that has the stage. Costs per frame are those of the latest run.
 */
#include "daemon/core/runs/runs.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/sysops.h"

struct app_run_sum {
	const struct app *of;
	uint64_t now_ns;
	struct app app;
	struct stage stage[APP_STAGES_MAX];	    /* windows and attributes are the runs' */
	const struct stage *latest[APP_STAGES_MAX]; /* whose they are */
	struct frames frames;			    /* likewise */
};

/* The numbers (uint64_t) of all runs together: their sum, or the largest. */
#define STAGE(member) offsetof(struct stage, member)
static const size_t stage_sums[] = {STAGE(rss_measured), STAGE(count), STAGE(misses), STAGE(judged),
	STAGE(orphan_ends), STAGE(abandoned), STAGE(failed), STAGE(total_ns), STAGE(unknown_count),
	STAGE(warmup_skipped), STAGE(nested_count), STAGE(nested_ns), STAGE(children_ns),
	STAGE(loop.outside.runs), STAGE(loop.outside.ns)};
static const size_t stage_max[] = {
	STAGE(max_ns), STAGE(worst_ns), STAGE(longest_misses), STAGE(last_ns)};
#undef STAGE
#define FRAMES(member) offsetof(struct frames, member)
static const size_t frames_sums[] = {FRAMES(count), FRAMES(misses), FRAMES(judged),
	FRAMES(slow_seen), FRAMES(zero_deltas), FRAMES(out_of_order), FRAMES(skipped_ids),
	FRAMES(ids.sequences), FRAMES(warmup_skipped), FRAMES(times.unknown_count),
	FRAMES(latencies.unknown_count)};
static const size_t frames_max[] = {FRAMES(worst_ns), FRAMES(longest_misses)};
#undef FRAMES

enum { SUM, MAX };

static void merge(int how, void *into, const void *from, const size_t *offset, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t *sum = (uint64_t *)(void *)((char *)into + offset[i]);
		uint64_t own = *(const uint64_t *)(const void *)((const char *)from + offset[i]);
		*sum = how == SUM ? *sum + own : own > *sum ? own : *sum;
	}
}

#define MERGE(how, into, from, offsets) \
	merge(how, into, from, offsets, sizeof(offsets) / sizeof((offsets)[0]))

static void add(struct proto_histogram *into, const struct proto_histogram *from, bool *failed)
{
	*failed = !proto_histogram_add_all(into, from) || *failed;
}

/* A copy of one's own; *failed without memory. */
static struct proto_histogram *copy_of(const struct proto_histogram *histogram, bool *failed)
{
	struct proto_histogram *copy = histogram ? mem_zalloc(sizeof(*copy)) : NULL;
	if (copy) {
		proto_histogram_init(copy, mem_calloc);
		add(copy, histogram, failed);
	}
	*failed = *failed || (histogram && !copy);
	return copy;
}

/* Of those that exist only when something was throttled. */
static void add_seldom(
	struct proto_histogram **into, const struct proto_histogram *from, bool *failed)
{
	if (!*into) {
		*into = copy_of(from, failed);
	} else if (from) {
		add(*into, from, failed);
	}
}

static void stage_add_run(struct stage *into, const struct stage *from, bool *failed)
{
	add(into->all, from->all, failed);
	add_seldom(&into->throttled, from->throttled, failed);
	into->throttled_refused = into->throttled_refused || from->throttled_refused;
	into->rss_growth_max =
		into->rss_measured == 0 || (from->rss_measured > 0 &&
						   from->rss_growth_max > into->rss_growth_max)
			? from->rss_growth_max
			: into->rss_growth_max;
	if (__builtin_add_overflow(
		    into->rss_growth_total, from->rss_growth_total, &into->rss_growth_total)) {
		into->rss_growth_total = from->rss_growth_total; /* a peer's nonsense */
	}
	MERGE(SUM, into, from, stage_sums);
	MERGE(MAX, into, from, stage_max);
	into->min_ns = from->min_ns < into->min_ns ? from->min_ns : into->min_ns;
	into->own_runs += from->own_runs;
}

static struct stage *find(const struct app *app, const struct stage *like)
{
	for (size_t i = 0; i < app->stages; i++) {
		struct stage *stage = app->stage[i];
		if (strcmp(stage->name, like->name) == 0 && strcmp(stage->unit, like->unit) == 0) {
			return stage;
		}
	}
	return NULL;
}

/* Parents are named by serials of their own run. */
static void translate_parents(const struct app *sum, const struct app *run, struct stage *stage)
{
	for (size_t i = 0; i < stage->parents && i < STAGE_PARENTS; i++) {
		for (size_t k = 0; k < run->stages; k++) {
			const struct stage *in_sum = find(sum, run->stage[k]);
			if (run->stage[k]->serial == stage->parent[i].serial && in_sum) {
				stage->parent[i].serial = in_sum->serial;
				break;
			}
		}
	}
}

static void stages_add_run(struct app_run_sum *sum, const struct app *run, bool *failed)
{
	size_t known = sum->app.stages;
	for (size_t i = 0; i < run->stages && !*failed; i++) {
		const struct stage *from = run->stage[i];
		struct stage *into = find(&sum->app, from);
		if (into) {
			stage_add_run(into, from, failed);
		} else if (sum->app.stages < APP_STAGES_MAX) {
			into = &sum->stage[sum->app.stages];
			sum->latest[sum->app.stages] = from;
			*into = *from;
			into->open = NULL;
			if (run != sum->of) { /* iterations are those of the latest run */
				into->loop = (struct stage_loop){.outside = from->loop.outside};
			}
			into->all = copy_of(from->all, failed);
			into->throttled = copy_of(from->throttled, failed);
			sum->app.stage[sum->app.stages++] = into;
		}
	}
	for (size_t i = known; run != sum->of && i < sum->app.stages; i++) {
		translate_parents(&sum->app, run, sum->app.stage[i]);
	}
}

static uint64_t elapsed_ns(const struct frames *frames)
{
	return frames->last_tick_ns - frames->first_tick_ns - frames->paused_ns;
}

static void series_copy(struct frames_series *into, const struct frames_series *from, bool *failed)
{
	proto_histogram_init(&into->all, mem_calloc);
	add(&into->all, &from->all, failed);
	into->throttled = copy_of(from->throttled, failed);
}

static void frames_add_run(struct app_run_sum *sum, const struct frames *from, bool *failed)
{
	struct frames *into = &sum->frames;
	if (!from) {
		return;
	}
	if (!sum->app.frames) {
		*into = *from;
		series_copy(&into->times, &from->times, failed);
		series_copy(&into->latencies, &from->latencies, failed);
		sum->app.frames = into;
		return;
	}
	add(&into->times.all, &from->times.all, failed);
	add(&into->latencies.all, &from->latencies.all, failed);
	add_seldom(&into->times.throttled, from->times.throttled, failed);
	add_seldom(&into->latencies.throttled, from->latencies.throttled, failed);
	MERGE(SUM, into, from, frames_sums);
	MERGE(MAX, into, from, frames_max);
	if (into->last_tick_ns == 0) {
		into->first_tick_ns = from->first_tick_ns;
		into->last_tick_ns = from->last_tick_ns;
		into->paused_ns = from->paused_ns;
	} else {
		uint64_t before_ns = elapsed_ns(from);
		into->first_tick_ns -=
			before_ns < into->first_tick_ns ? before_ns : into->first_tick_ns;
	}
	if (from->second.min < into->second.min) {
		into->second.min = from->second.min;
	}
	if (from->second.max > into->second.max) {
		into->second.max = from->second.max;
	}
}

static void release(struct proto_histogram *histogram)
{
	proto_histogram_finish(histogram);
	free(histogram);
}

void apps_forget_sum(struct apps *apps)
{
	struct app_run_sum *sum = apps->run_sum;
	for (size_t i = 0; sum && i < sum->app.stages; i++) {
		release(sum->stage[i].all);
		release(sum->stage[i].throttled);
	}
	if (sum && sum->app.frames) {
		proto_histogram_finish(&sum->frames.times.all);
		release(sum->frames.times.throttled);
		proto_histogram_finish(&sum->frames.latencies.all);
		release(sum->frames.latencies.throttled);
	}
	free(sum);
	apps->run_sum = NULL;
}

const struct app *apps_all_runs(struct apps *apps, const struct app *app, uint64_t now_ns)
{
	struct app_run_sum *sum = apps->run_sum;
	bool failed = false;
	if (sum && sum->of == app && sum->now_ns == now_ns) {
		for (size_t i = 0; i < sum->app.stages; i++) { /* a window moves when it grows */
			sum->stage[i].runs = sum->latest[i]->runs;
			sum->stage[i].cpu = sum->latest[i]->cpu;
		}
		return &sum->app;
	}
	apps_forget_sum(apps);
	sum = apps->run_sum = mem_zalloc(sizeof(*sum));
	if (!sum) {
		return NULL;
	}
	sum->of = app;
	sum->now_ns = now_ns;
	sum->app = *app;
	sum->app.stages = 0;
	sum->app.frames = NULL;
	for (int i = 0; - i <= (int)app->runs && !failed; i--) {
		const struct app *run = app_run(app, i);
		stages_add_run(sum, run, &failed);
		frames_add_run(sum, run->frames, &failed);
		if (i < 0) {
			app_accounting_add(&sum->app.past, &run->past);
			sum->app.starts += run->starts;
		}
		sum->app.since_ns = run->since_ns;
	}
	if (failed) {
		apps_forget_sum(apps);
		return NULL;
	}
	return &sum->app;
}
