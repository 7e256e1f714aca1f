/*
 * Once an interval the statistics of stages and frames become metrics, so that history, alerts,
 * MQTT and queries need no code of their own for them.
 */
#include "daemon/core/apps_private.h"

#include <stdio.h>

enum stage_metric {
	STAGE_RATE,
	STAGE_MEAN,
	STAGE_P50,
	STAGE_P95,
	STAGE_P99,
	STAGE_MAX,
	STAGE_MISSES,
	STAGE_CPU,
	STAGE_METRICS
};

enum frame_metric {
	FRAME_FPS,
	FRAME_TIME_P95,
	FRAME_JITTER,
	FRAME_MISSES,
	FRAME_E2E,
	FRAME_METRICS
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
};

static const struct description frame_metrics[FRAME_METRICS] = {
	[FRAME_FPS] = {"fps", UNIT_FPS},
	[FRAME_TIME_P95] = {"frame_time_p95_ms", UNIT_MILLISECONDS},
	[FRAME_JITTER] = {"jitter_ms", UNIT_MILLISECONDS},
	[FRAME_MISSES] = {"misses", UNIT_COUNT},
	[FRAME_E2E] = {"end_to_end_p95_ms", UNIT_MILLISECONDS},
};

_Static_assert(STAGE_METRICS == sizeof(((struct stage *)0)->metric) / sizeof(void *), "stage");
_Static_assert(FRAME_METRICS == sizeof(((struct frames *)0)->metric) / sizeof(void *), "frames");

static struct metric *add(struct apps *apps, const char *prefix, const struct description *what)
{
	char name[PROTO_PATH_SIZE];
	struct metric *metric = NULL;
	int n = snprintf(name, sizeof(name), "%s/%s", prefix, what->name);
	if (n < 0 || (size_t)n >= sizeof(name) ||
		metrics_add(apps->metrics, apps->source, name, what->unit, &metric) < 0) {
		return NULL; /* the stage is still in ListStages; metrics counts the refusal */
	}
	return metric;
}

void app_metrics_add_stage(struct apps *apps, const struct app *app, struct stage *stage)
{
	char prefix[2 * PROTO_NAME_SIZE + 8];
	snprintf(prefix, sizeof(prefix), "stage/%s/%s", app->name, stage->name);
	for (size_t i = 0; i < STAGE_METRICS; i++) {
		stage->metric[i] = add(apps, prefix, &stage_metrics[i]);
	}
}

void app_metrics_add_frames(struct apps *apps, const struct app *app)
{
	char prefix[PROTO_NAME_SIZE + 8];
	snprintf(prefix, sizeof(prefix), "frame/%s", app->name);
	for (size_t i = 0; i < FRAME_METRICS; i++) {
		app->frames->metric[i] = add(apps, prefix, &frame_metrics[i]);
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

void app_metrics_retire_frames(struct apps *apps, struct frames *frames)
{
	if (frames) {
		retire(apps, frames->metric, FRAME_METRICS);
	}
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

static void sample_stage(struct apps *apps, struct stage *stage, double interval_s)
{
	if (stage->interval.count == 0) {
		set_all_null(stage->metric, STAGE_METRICS, "no event in the interval");
		set(stage->metric[STAGE_RATE], 0);
		return;
	}
	struct proto_summary summary;
	stage_summary(stage, apps->scratch, &summary);
	set(stage->metric[STAGE_MEAN], summary.mean);
	set(stage->metric[STAGE_P50], summary.p50);
	set(stage->metric[STAGE_P95], summary.p95);
	set(stage->metric[STAGE_P99], summary.p99);
	set(stage->metric[STAGE_MAX], (double)stage->interval.max_ns / 1e6);
	if (interval_s > 0) {
		set(stage->metric[STAGE_RATE], (double)stage->interval.count / interval_s);
	} else {
		set_null(stage->metric[STAGE_RATE], "the interval has no length");
	}
	if (stage->deadline_ns) {
		set(stage->metric[STAGE_MISSES], (double)stage->interval.misses);
	} else {
		set_null(stage->metric[STAGE_MISSES], "no deadline");
	}
	if (stage->interval.cpu_count) {
		set(stage->metric[STAGE_CPU],
			(double)stage->interval.cpu_us / 1e3 / (double)stage->interval.cpu_count);
	} else {
		set_null(stage->metric[STAGE_CPU], "CPU time is not measured");
	}
	stage_interval_reset(stage);
}

static void set_or_null(struct metric *metric, double value, const char *reason)
{
	if (isnan(value)) {
		set_null(metric, reason);
	} else {
		set(metric, value);
	}
}

static void sample_frames(struct apps *apps, struct frames *frames)
{
	if (frames->interval.count == 0) {
		set_all_null(frames->metric, FRAME_METRICS, "no frame in the interval");
		return;
	}
	struct frames_stats stats;
	frames_stats(frames, apps->scratch, &stats);
	set_or_null(frames->metric[FRAME_FPS], stats.fps, "fewer than two frames");
	set_or_null(
		frames->metric[FRAME_TIME_P95], stats.frame_time_p95_ms, "fewer than three frames");
	set_or_null(frames->metric[FRAME_JITTER], stats.jitter_ms, "fewer than three frames");
	set_or_null(frames->metric[FRAME_E2E], stats.end_to_end_p95_ms, "frames have no start");
	if (frames->deadline_ns) {
		set(frames->metric[FRAME_MISSES], (double)frames->interval.misses);
	} else {
		set_null(frames->metric[FRAME_MISSES], "no deadline");
	}
	frames_interval_reset(frames);
}

static void sample_app(struct apps *apps, struct app *app, double interval_s)
{
	bool ended = app->processes == 0;
	for (size_t i = 0; i < app->stages; i++) {
		if (ended) {
			set_all_null(app->stage[i]->metric, STAGE_METRICS, "app ended");
			stage_interval_reset(app->stage[i]);
		} else {
			sample_stage(apps, app->stage[i], interval_s);
		}
	}
	if (app->frames && ended) {
		set_all_null(app->frames->metric, FRAME_METRICS, "app ended");
		frames_interval_reset(app->frames);
	} else if (app->frames) {
		sample_frames(apps, app->frames);
	}
	for (size_t i = 0; i < app->processes; i++) {
		app->process[i]->marks = 0;
	}
}

void apps_sample(struct apps *apps, uint64_t now_ns)
{
	bool attached = false;
	for (size_t i = 0; i < apps->count; i++) {
		struct app *app = apps->app[i];
		uint64_t from_ns =
			apps->sampled_ns > app->since_ns ? apps->sampled_ns : app->since_ns;
		double interval_s = now_ns > from_ns ? (double)(now_ns - from_ns) / 1e9 : 0;
		sample_app(apps, app, interval_s);
		app_values_sample(apps, app);
		app_hang_sample(apps, app, now_ns);
		attached = attached || app->processes > 0;
	}
	apps_tell_untold(apps, now_ns);
	apps->sampled_ns = now_ns;
	apps->source->ticks++;
	source_report(apps->source, attached ? SOURCE_OK : SOURCE_UNAVAILABLE,
		attached ? NULL : "no app attached");
	metrics_commit(apps->metrics, apps->source, now_ns);
}
