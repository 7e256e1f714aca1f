/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c: turns the statistics of stages and frame streams into metrics, once per interval, so
 * that history, alerts, MQTT and queries need no code of their own for them. A table names each
 * metric, its unit and why it is null when the interval has no number for it.
 */
#include "daemon/core/apps/apps_private.h"

#include <math.h>
#include <stdio.h>

static const double RATE_INTERVAL_MIN_S = 0.5;

#define NO_EVENT "no event in the interval"
#define NO_FRAME "no frame in the interval"

struct description {
	const char *name;
	enum unit unit;
	const char *reason; /* why the value is NAN */
};

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

static const struct description stage_metrics[STAGE_METRICS] = {
	[STAGE_RATE] = {"rate", UNIT_PER_SECOND, "the first interval"},
	[STAGE_MEAN] = {"mean_ms", UNIT_MILLISECONDS, NO_EVENT},
	[STAGE_P50] = {"p50_ms", UNIT_MILLISECONDS, NO_EVENT},
	[STAGE_P95] = {"p95_ms", UNIT_MILLISECONDS, NO_EVENT},
	[STAGE_P99] = {"p99_ms", UNIT_MILLISECONDS, NO_EVENT},
	[STAGE_MAX] = {"max_ms", UNIT_MILLISECONDS, NO_EVENT},
	[STAGE_MISSES] = {"misses", UNIT_COUNT, "no deadline"},
	[STAGE_CPU] = {"cpu_ms", UNIT_MILLISECONDS, "CPU time is not measured"},
	[STAGE_MISS_PERCENT] = {"miss_percent", UNIT_PERCENT, "no deadline"},
	[STAGE_GROWTH] = {STAGE_GROWTH_METRIC, UNIT_BYTES, NO_EVENT},
};

enum frame_metric {
	FRAME_FPS,
	FRAME_TIME_P95,
	FRAME_JITTER,
	FRAME_MISSES,
	FRAME_E2E,
	FRAME_ENERGY,
	FRAME_MISS_PERCENT,
	FRAME_TARGET_PERCENT,
	FRAME_METRICS
};

static const struct description frame_metrics[FRAME_METRICS] = {
	[FRAME_FPS] = {"fps", UNIT_FPS, "fewer than two frames"},
	[FRAME_TIME_P95] = {"frame_time_p95_ms", UNIT_MILLISECONDS, "fewer than three frames"},
	[FRAME_JITTER] = {"jitter_ms", UNIT_MILLISECONDS, "fewer than three frames"},
	[FRAME_MISSES] = {"misses", UNIT_COUNT, "no deadline"},
	[FRAME_E2E] = {"end_to_end_p95_ms", UNIT_MILLISECONDS, "frames have no start"},
	[FRAME_ENERGY] = {"energy_mj", UNIT_MILLIJOULES, "no power sensor"},
	[FRAME_MISS_PERCENT] = {"miss_percent", UNIT_PERCENT, "no deadline"},
	[FRAME_TARGET_PERCENT] = {"target_percent", UNIT_PERCENT, NO_FRAME},
};

_Static_assert(STAGE_METRICS == sizeof(((struct stage *)0)->metric) / sizeof(void *), "stage");
_Static_assert(FRAME_METRICS == sizeof(((struct frames *)0)->metric) / sizeof(void *), "frames");

struct metric *app_metric_add(
	struct apps *apps, const struct app *app, const char *name, enum unit unit)
{
	struct metric *metric = NULL;
	if (metrics_add(apps->metrics, apps->source, name, unit, &metric) == 0) {
		metric->owner = app->uid == apps->options.owner ? 0 : app->uid;
	}
	return metric;
}

/* NULL: refused, and counted by metrics; the stage or stream is still in queries. */
static struct metric *add(
	struct apps *apps, const struct app *app, const char *stage, const struct description *what)
{
	char name[PROTO_PATH_SIZE];
	int n = snprintf(name, sizeof(name), "%s/%s/%s%s%s", stage ? "stage" : "frame", app->name,
		stage ? stage : "", stage ? "/" : "", what->name);
	const bool fits = n >= 0 && (size_t)n < sizeof(name);
	struct metric *metric = fits ? app_metric_add(apps, app, name, what->unit) : NULL;
	if (metric) {
		app_runs_hand_over(app, metric);
	}
	return metric;
}

void app_metrics_add_stage(struct apps *apps, const struct app *app, struct stage *stage)
{
	for (size_t i = 0; i < STAGE_GROWTH; i++) {
		stage->metric[i] = add(apps, app, stage->name, &stage_metrics[i]);
	}
}

void app_metrics_add_frames(struct apps *apps, const struct app *app)
{
	for (size_t i = 0; i < FRAME_METRICS; i++) {
		app->frames->metric[i] = add(apps, app, NULL, &frame_metrics[i]);
	}
	if (app->frames->metric[FRAME_ENERGY]) {
		app->frames->metric[FRAME_ENERGY]->origin = APP_ENERGY_ORIGIN;
	}
}

void app_metrics_retire(struct apps *apps, struct metric **metric, size_t count)
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
	app_metrics_retire(apps, stage->metric, STAGE_METRICS);
}

void app_metrics_retire_run(struct apps *apps, struct app *run)
{
	for (size_t i = 0; i < run->stages; i++) {
		app_metrics_retire_stage(apps, run->stage[i]);
	}
	if (run->frames) {
		app_metrics_retire(apps, run->frames->metric, FRAME_METRICS);
	}
}

/* Null for the reason when the value is NAN. */
static void set(struct metric *metric, double value, const char *reason)
{
	metric_set_or_null(metric, value, isnan(value) ? reason : NULL);
}

static void set_all(struct metric *const *metric, const struct description *what,
	const double *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		set(metric[i], value[i], what[i].reason);
	}
}

/* No number for any: the app ended, or else for the reason. */
static void set_all_null(
	struct metric *const *metric, size_t count, bool running, const char *reason)
{
	for (size_t i = 0; i < count; i++) {
		if (metric[i] && running) {
			metric_set_null(metric[i], reason);
		} else if (metric[i]) {
			metric_set_ended(metric[i], "app ended");
		}
	}
}

static void set_idle(struct metric *metric, const struct pulse *pulse, uint64_t now_ns)
{
	if (metric && pulse_idle_ns(pulse, now_ns) > 0) {
		metric_set_idle(metric, pulse_last_ns(pulse));
	}
}

/* 0 also when the stage did not run: nothing grew. */
static void sample_growth(struct apps *apps, const struct app *app, struct stage *stage)
{
	if (stage->rss_seen && !stage->rss_offered) {
		stage->rss_offered = true;
		stage->metric[STAGE_GROWTH] =
			add(apps, app, stage->name, &stage_metrics[STAGE_GROWTH]);
	}
	if (stage->metric[STAGE_GROWTH]) {
		stage->metric[STAGE_GROWTH]->limit = (double)stage->settings.rss_growth_limit;
	}
	set(stage->metric[STAGE_GROWTH], (double)stage->rss_over_max, NULL);
	stage->rss_over_max = 0;
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

static double ratio(bool known, double part, double of)
{
	return known ? part / of : (double)NAN;
}

static void sample_stage(struct apps *apps, const struct app *app, struct stage *stage,
	double interval_s, uint64_t now_ns)
{
	const double count = (double)stage->interval.count, misses = (double)stage->interval.misses;
	const double rate = ratio(interval_s > 0, count, interval_s);
	sample_growth(apps, app, stage);
	if (stage->interval.count == 0) {
		/* a stage that is seldom executed has a rate of 0 in most intervals */
		set_all_null(stage->metric, STAGE_GROWTH, true, NO_EVENT);
		set(stage->metric[STAGE_RATE], rate, stage_metrics[STAGE_RATE].reason);
		set_idle(stage->metric[STAGE_RATE], &stage->pulse, now_ns);
		return;
	}
	if (!stage->sampled_ahead) {
		stage_refresh(stage, apps->scratch);
	}
	const double value[] = {
		[STAGE_RATE] = rate,
		[STAGE_MEAN] = stage->recent.summary.mean,
		[STAGE_P50] = stage->recent.summary.p50,
		[STAGE_P95] = stage->recent.summary.p95,
		[STAGE_P99] = stage->recent.summary.p99,
		[STAGE_MAX] = (double)stage->interval.max_ns / 1e6,
		[STAGE_MISSES] = ratio(stage->deadline_ns > 0, misses, 1),
		[STAGE_CPU] = ratio(stage->interval.cpu_count > 0,
			(double)stage->interval.cpu_us / 1e3, (double)stage->interval.cpu_count),
		[STAGE_MISS_PERCENT] = ratio(stage->deadline_ns > 0, misses * 100, count),
	};
	set_all(stage->metric, stage_metrics, value, sizeof(value) / sizeof(value[0]));
	stage_interval_reset(stage);
}

/* A frame that no record ends is known only when its grace is over. */
static uint64_t last_frame_ns(const struct app *app)
{
	const struct app_frames *state = app->frame_state;
	return app->frames->last_tick_ns +
	       (state && state->table && !state->ticking ? state->table->stage_grace_ns : 0);
}

/* The frame rate in percent of what it should be. A rate is of frames that came: what has not come
 * for three frames' time cannot be faster than one in that time. fps NAN = none in the interval. */
static void sample_target(const struct app *app, double fps, uint64_t now_ns)
{
	const struct frames *frames = app->frames;
	const double target = frames->settings.target_fps;
	const uint64_t last_ns = last_frame_ns(app);
	const double silent_s = now_ns > last_ns ? (double)(now_ns - last_ns) / 1e9 : 0;
	const char *reason = !(target > 0)	 ? "no target_fps"
			     : frames->restarted ? "no frame since the start"
						 : NULL;
	if (!reason && silent_s * target > 3 && !(fps < 1 / silent_s)) {
		fps = 1 / silent_s;
	}
	set(frames->metric[FRAME_TARGET_PERCENT], reason ? (double)NAN : fps * 100 / target,
		reason ? reason : NO_FRAME);
}

static void sample_frames(struct apps *apps, struct app *app, uint64_t now_ns)
{
	struct frames *frames = app->frames;
	const bool running = app->processes > 0;
	if (!running || frames->interval.count == 0) {
		set_all_null(frames->metric, FRAME_METRICS, running, NO_FRAME);
		if (running) {
			set_idle(frames->metric[FRAME_FPS], &frames->pulse, now_ns);
			sample_target(app, NAN, now_ns);
		}
		frames_interval_reset(frames);
		return;
	}
	if (!frames->sampled_ahead) {
		frames_stats(frames, apps->scratch, &frames->sampled);
	}
	const struct frames_stats stats = frames->sampled;
	const char *reason = NULL;
	const double misses = (double)frames->interval.misses;
	app_frames_note(app, &stats);
	const double value[] = {
		[FRAME_FPS] = stats.fps,
		[FRAME_TIME_P95] = stats.times.p95,
		[FRAME_JITTER] = stats.times.std,
		[FRAME_MISSES] = ratio(frames->deadline_ns > 0, misses, 1),
		[FRAME_E2E] = stats.latencies.p95,
		[FRAME_ENERGY] = app_energy_frame_mj(app, &reason),
		[FRAME_MISS_PERCENT] = ratio(
			frames->deadline_ns > 0, misses * 100, (double)frames->interval.count),
	};
	set_all(frames->metric, frame_metrics, value, sizeof(value) / sizeof(value[0]));
	set(frames->metric[FRAME_ENERGY], value[FRAME_ENERGY], reason);
	sample_target(app, stats.fps, now_ns);
	frames_interval_reset(frames);
}

void app_metrics_wait(struct app *run, bool running)
{
	for (size_t i = 0; i < run->stages; i++) {
		set_all_null(run->stage[i]->metric, STAGE_METRICS, running, NO_EVENT);
	}
	if (run->frames) {
		set_all_null(run->frames->metric, FRAME_METRICS, running, NO_FRAME);
	}
}

static void sample_app(struct apps *apps, struct app *app, uint64_t now_ns)
{
	bool ended = app->processes == 0;
	double interval_s = interval_of(apps, app, now_ns);
	for (size_t i = 0; i < app->stages; i++) {
		if (ended) {
			set_all_null(app->stage[i]->metric, STAGE_GROWTH, false, NULL);
			sample_growth(apps, app, app->stage[i]);
			stage_interval_reset(app->stage[i]);
		} else {
			sample_stage(apps, app, app->stage[i], interval_s, now_ns);
		}
		app->stage[i]->sampled_ahead = false;
	}
	if (app->frames) {
		sample_frames(apps, app, now_ns);
		app->frames->sampled_ahead = false;
	}
	for (size_t i = 0; i < app->processes; i++) {
		app->process[i]->marks = 0;
	}
}

bool apps_sample_ahead(struct apps *apps, size_t n)
{
	for (size_t a = 0; a < apps->count; a++) {
		struct app *app = apps->app[a];
		struct frames *frames = app->frames;
		if (app->processes > 0 && frames && !frames->sampled_ahead &&
			frames->interval.count > 0) {
			if (n-- == 0) {
				return true;
			}
			frames_stats(frames, apps->scratch, &frames->sampled);
			frames->sampled_ahead = true;
		}
		for (size_t i = 0; app->processes > 0 && i < app->stages; i++) {
			struct stage *stage = app->stage[i];
			if (stage->sampled_ahead || stage->interval.count == 0) {
				continue;
			}
			if (n-- == 0) {
				return true;
			}
			stage_refresh(stage, apps->scratch);
			stage->sampled_ahead = true;
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
	apps_log_suppressed(apps, now_ns);
	apps->sampled_ns = now_ns;
	apps->source->ticks++;
	source_report(apps->source, attached ? SOURCE_OK : SOURCE_UNAVAILABLE,
		attached ? NULL : "no app attached");
	metrics_commit(apps->metrics, apps->source, now_ns);
}
