/*
 * Once an interval the statistics of stages (and frames: app_frame_metrics.c) become metrics, so
 * that history, alerts, MQTT and queries need no code of their own for them.
 */
#include "daemon/core/apps/apps_private.h"

#include <stdio.h>

#include "daemon/core/stages/select.h"

static const double RATE_INTERVAL_MIN_S = 0.5;

#define FIRST_INTERVAL "the first interval"

enum stage_metric {
	STAGE_RATE,
	STAGE_MEAN,
	STAGE_P50,
	STAGE_P95,
	STAGE_P99,
	STAGE_MAX,
	STAGE_MISSES,
	STAGE_CPU,
	STAGE_MISS_PERCENT,
	STAGE_GROWTH, /* only of stages whose memory is measured */
	STAGE_METRICS
};

struct description {
	const char *name;
	enum unit unit;
};

static const struct description stage_metrics[STAGE_METRICS] = {
	[STAGE_RATE] = {"rate", UNIT_PER_SECOND},
	[STAGE_MEAN] = {"mean_ms", UNIT_MILLISECONDS},
	[STAGE_P50] = {"p50_ms", UNIT_MILLISECONDS},
	[STAGE_P95] = {"p95_ms", UNIT_MILLISECONDS},
	[STAGE_P99] = {"p99_ms", UNIT_MILLISECONDS},
	[STAGE_MAX] = {"max_ms", UNIT_MILLISECONDS},
	[STAGE_MISSES] = {"misses", UNIT_COUNT},
	[STAGE_CPU] = {"cpu_ms", UNIT_MILLISECONDS},
	[STAGE_MISS_PERCENT] = {"miss_percent", UNIT_PERCENT},
	[STAGE_GROWTH] = {STAGE_GROWTH_METRIC, UNIT_BYTES},
};

_Static_assert(STAGE_METRICS == sizeof(((struct stage *)0)->metric) / sizeof(void *), "stage");

static struct metric *add(struct apps *apps, const struct app *app, const struct stage *stage,
	const struct description *what)
{
	char name[PROTO_PATH_SIZE];
	struct metric *metric = NULL;
	int n = snprintf(name, sizeof(name), "stage/%s/%s/%s", app->name, stage->name, what->name);
	if (n < 0 || (size_t)n >= sizeof(name) ||
		metrics_add(apps->metrics, apps->source, name, what->unit, &metric) < 0) {
		return NULL; /* the stage is still in ListStages; metrics counts the refusal */
	}
	app_runs_hand_over(app, metric);
	return metric;
}

void app_metrics_add_stage(struct apps *apps, const struct app *app, struct stage *stage)
{
	for (size_t i = 0; i < STAGE_GROWTH; i++) {
		stage->metric[i] = add(apps, app, stage, &stage_metrics[i]);
	}
}

static void retire(struct apps *apps, struct metric **metric, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (metric[i]) {
			metrics_retire(apps->metrics, metric[i]);
			metric[i] = NULL;
		}
	}
}

void app_metrics_retire_stage(struct apps *apps, struct stage *stage)
{
	retire(apps, stage->metric, STAGE_METRICS);
}

static void set(struct metric *metric, double value)
{
	if (metric) {
		metric_set(metric, value);
	}
}

static void set_null(struct metric *metric, const char *reason)
{
	if (metric) {
		metric_set_null(metric, reason);
	}
}

static void set_all_null(struct metric *const *metric, size_t count, const char *reason)
{
	for (size_t i = 0; i < count; i++) {
		set_null(metric[i], reason);
	}
}

static void set_all_ended(struct metric *const *metric, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (metric[i]) {
			metric_set_ended(metric[i], "app ended");
		}
	}
}

/* 0 also when there was no run: none grew. */
static void sample_growth(struct apps *apps, const struct app *app, struct stage *stage)
{
	if (stage->rss_seen && !stage->rss_offered) {
		stage->rss_offered = true;
		stage->metric[STAGE_GROWTH] = add(apps, app, stage, &stage_metrics[STAGE_GROWTH]);
	}
	if (stage->metric[STAGE_GROWTH]) {
		stage->metric[STAGE_GROWTH]->limit = (double)stage->settings.rss_growth_limit;
	}
	set(stage->metric[STAGE_GROWTH], (double)stage->rss_over_most);
	stage->rss_over_most = 0;
}

/* A stage that is executed seldom has a rate of 0 in most intervals; an idle one has none. */
static void sample_silent_stage(struct stage *stage, double interval_s, uint64_t now_ns)
{
	struct metric *rate = stage->metric[STAGE_RATE];
	set_all_null(stage->metric, STAGE_GROWTH, "no event in the interval");
	if (rate && pulse_idle_ns(&stage->pulse, now_ns) > 0) {
		metric_set_idle(rate, pulse_last_ns(&stage->pulse));
	} else if (interval_s > 0) {
		set(rate, 0);
	} else {
		set_null(rate, FIRST_INTERVAL);
	}
}

/* The time since the last sample. Of an app that attached since then it is the rest of an interval:
 * 0 when that is too short for a rate. */
static double interval_of(const struct apps *apps, const struct app *app, uint64_t now_ns)
{
	uint64_t attached_ns = UINT64_MAX;
	for (size_t i = 0; i < app->processes; i++) {
		uint64_t t_ns = app->process[i]->attached_ns;
		attached_ns = t_ns < attached_ns ? t_ns : attached_ns;
	}
	bool part = attached_ns > apps->sampled_ns;
	uint64_t from_ns = part ? attached_ns : apps->sampled_ns;
	double interval_s = now_ns > from_ns ? (double)(now_ns - from_ns) / 1e9 : 0;
	return part && interval_s < RATE_INTERVAL_MIN_S ? 0 : interval_s;
}

static void sample_stage(struct apps *apps, const struct app *app, struct stage *stage,
	double interval_s, uint64_t now_ns)
{
	bool looked = stage->looked;
	stage->looked = false;
	sample_growth(apps, app, stage);
	if (stage->interval.count == 0) {
		sample_silent_stage(stage, interval_s, now_ns);
		return;
	}
	if (!looked) {
		stage_select(stage, apps->select_scratch, &stage->looked_at);
	}
	set(stage->metric[STAGE_MEAN], stage->looked_at.mean);
	set(stage->metric[STAGE_P50], stage->looked_at.p50);
	set(stage->metric[STAGE_P95], stage->looked_at.p95);
	set(stage->metric[STAGE_P99], stage->looked_at.p99);
	set(stage->metric[STAGE_MAX], (double)stage->interval.max_ns / 1e6);
	if (interval_s > 0) {
		set(stage->metric[STAGE_RATE], (double)stage->interval.count / interval_s);
	} else {
		set_null(stage->metric[STAGE_RATE], FIRST_INTERVAL);
	}
	if (stage->deadline_ns) {
		double misses = (double)stage->interval.misses;
		set(stage->metric[STAGE_MISSES], misses);
		set(stage->metric[STAGE_MISS_PERCENT],
			misses * 100 / (double)stage->interval.count);
	} else {
		set_null(stage->metric[STAGE_MISSES], "no deadline");
		set_null(stage->metric[STAGE_MISS_PERCENT], "no deadline");
	}
	if (stage->interval.cpu_count) {
		set(stage->metric[STAGE_CPU],
			(double)stage->interval.cpu_us / 1e3 / (double)stage->interval.cpu_count);
	} else {
		set_null(stage->metric[STAGE_CPU], "CPU time is not measured");
	}
	stage_interval_reset(stage);
}

void app_metrics_wait(struct app *run, bool running)
{
	for (size_t i = 0; i < run->stages; i++) {
		if (running) {
			set_all_null(
				run->stage[i]->metric, STAGE_METRICS, "no event in the interval");
		} else {
			set_all_ended(run->stage[i]->metric, STAGE_METRICS);
		}
	}
	if (run->frames) {
		app_metrics_wait_frames(run->frames, running);
	}
}

static void sample_app(struct apps *apps, struct app *app, uint64_t now_ns)
{
	bool ended = app->processes == 0;
	double interval_s = interval_of(apps, app, now_ns);
	for (size_t i = 0; i < app->stages; i++) {
		if (ended) {
			set_all_ended(app->stage[i]->metric, STAGE_GROWTH);
			sample_growth(apps, app, app->stage[i]);
			stage_interval_reset(app->stage[i]);
			app->stage[i]->looked = false;
		} else {
			sample_stage(apps, app, app->stage[i], interval_s, now_ns);
		}
	}
	app_metrics_sample_frames(apps, app, now_ns);
	for (size_t i = 0; i < app->processes; i++) {
		app->process[i]->marks = 0;
	}
}

bool apps_sample_ahead(struct apps *apps, size_t n)
{
	for (size_t a = 0; a < apps->count; a++) {
		struct app *app = apps->app[a];
		for (size_t i = 0; app->processes > 0 && i < app->stages; i++) {
			struct stage *stage = app->stage[i];
			if (stage->looked || stage->interval.count == 0) {
				continue;
			}
			if (n-- == 0) {
				return true;
			}
			stage_select(stage, apps->select_scratch, &stage->looked_at);
			stage->looked = true;
		}
	}
	return false;
}

void apps_sample(struct apps *apps, uint64_t now_ns)
{
	bool attached = false;
	apps_forget_sum(apps);
	apps_energy_sample(apps, now_ns);
	for (size_t i = 0; i < apps->count; i++) {
		struct app *app = apps->app[i];
		sample_app(apps, app, now_ns);
		app_runs_sample(apps, app, now_ns);
		app_values_sample(apps, app, now_ns);
		app_hang_sample(apps, app, now_ns);
		attached = attached || app->processes > 0;
	}
	apps_advise(apps, now_ns);
	apps_tell_untold(apps, now_ns);
	apps->sampled_ns = now_ns;
	apps->source->ticks++;
	source_report(apps->source, attached ? SOURCE_OK : SOURCE_UNAVAILABLE,
		attached ? NULL : "no app attached");
	metrics_commit(apps->metrics, apps->source, now_ns);
}
