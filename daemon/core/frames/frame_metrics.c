/* Once an interval the statistics of a frame stream become metrics, as those of stages do. */
#include "daemon/core/apps/apps_private.h"

#include <stdio.h>

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

static const struct {
	const char *name;
	enum unit unit;
} frame_metrics[FRAME_METRICS] = {
	[FRAME_FPS] = {"fps", UNIT_FPS},
	[FRAME_TIME_P95] = {"frame_time_p95_ms", UNIT_MILLISECONDS},
	[FRAME_JITTER] = {"jitter_ms", UNIT_MILLISECONDS},
	[FRAME_MISSES] = {"misses", UNIT_COUNT},
	[FRAME_E2E] = {"end_to_end_p95_ms", UNIT_MILLISECONDS},
	[FRAME_ENERGY] = {"energy_mj", UNIT_MILLIJOULES},
	[FRAME_MISS_PERCENT] = {"miss_percent", UNIT_PERCENT},
	[FRAME_TARGET_PERCENT] = {"target_percent", UNIT_PERCENT},
};

_Static_assert(FRAME_METRICS <= sizeof(((struct frames *)0)->metric) / sizeof(void *), "frames");

void app_metrics_add_frames(struct apps *apps, const struct app *app)
{
	for (size_t i = 0; i < FRAME_METRICS; i++) {
		char name[PROTO_PATH_SIZE];
		struct metric *metric = NULL;
		int n = snprintf(
			name, sizeof(name), "frame/%s/%s", app->name, frame_metrics[i].name);
		if (n > 0 && (size_t)n < sizeof(name) &&
			metrics_add(apps->metrics, apps->source, name, frame_metrics[i].unit,
				&metric) == 0) {
			app->frames->metric[i] = metric;
			app_runs_hand_over(app, metric);
		} /* else the stream is still in GetFrames; metrics counts the refusal */
	}
	if (app->frames->metric[FRAME_ENERGY]) {
		app->frames->metric[FRAME_ENERGY]->origin = APP_ENERGY_ORIGIN;
	}
}

void app_metrics_retire_frames(struct apps *apps, struct frames *frames)
{
	for (size_t i = 0; frames && i < FRAME_METRICS; i++) {
		if (frames->metric[i]) {
			metrics_retire(apps->metrics, frames->metric[i]);
			frames->metric[i] = NULL;
		}
	}
}

static void set(struct metric *metric, double value, const char *reason)
{
	if (metric && isnan(value)) {
		metric_set_null(metric, reason);
	} else if (metric) {
		metric_set(metric, value);
	}
}

static void set_all_ended(struct frames *frames)
{
	for (size_t i = 0; i < FRAME_METRICS; i++) {
		if (frames->metric[i]) {
			metric_set_ended(frames->metric[i], "app ended");
		}
	}
}

static void set_all_null(struct frames *frames, const char *reason)
{
	for (size_t i = 0; i < FRAME_METRICS; i++) {
		set(frames->metric[i], NAN, reason);
	}
}

void app_metrics_wait_frames(struct frames *frames, bool running)
{
	if (running) {
		set_all_null(frames, "no frame in the interval");
	} else {
		set_all_ended(frames);
	}
}

static void set_idle(struct frames *frames, uint64_t now_ns)
{
	if (frames->metric[FRAME_FPS] && pulse_idle_ns(&frames->pulse, now_ns) > 0) {
		metric_set_idle(frames->metric[FRAME_FPS], pulse_last_ns(&frames->pulse));
	}
}

/* The frame rate in percent of what it should be. A rate is of frames that came: what has not come
 * for three frames' time cannot be faster than one in that time. fps NAN = none in the interval. */
static void set_target(struct frames *frames, double fps, uint64_t now_ns)
{
	const double target = frames->settings.target_fps;
	const double silent_s =
		now_ns > frames->last_tick_ns ? (double)(now_ns - frames->last_tick_ns) / 1e9 : 0;
	const char *reason = !(target > 0)   ? "no target_fps"
			     : frames->fresh ? "no frame since the start"
					     : NULL;
	if (reason) {
		set(frames->metric[FRAME_TARGET_PERCENT], NAN, reason);
		return;
	}
	if (silent_s * target > 3 && !(fps < 1 / silent_s)) {
		fps = 1 / silent_s;
	}
	set(frames->metric[FRAME_TARGET_PERCENT], fps * 100 / target, "no frame in the interval");
}

void app_metrics_sample_frames(struct apps *apps, struct app *app, uint64_t now_ns)
{
	struct frames *frames = app->frames;
	if (!frames) {
		return;
	}
	if (app->processes == 0 || frames->interval.count == 0) {
		if (app->processes == 0) {
			set_all_ended(frames);
		} else {
			set_all_null(frames, "no frame in the interval");
			set_idle(frames, now_ns);
			set_target(frames, NAN, now_ns);
		}
		frames_interval_reset(frames);
		return;
	}
	struct frames_stats stats;
	const char *reason = NULL;
	frames_stats(frames, apps->scratch, &stats);
	app_frames_note(app, &stats);
	set(frames->metric[FRAME_FPS], stats.fps, "fewer than two frames");
	set(frames->metric[FRAME_TIME_P95], stats.frame_time_p95_ms, "fewer than three frames");
	set(frames->metric[FRAME_JITTER], stats.jitter_ms, "fewer than three frames");
	set(frames->metric[FRAME_E2E], stats.end_to_end_p95_ms, "frames have no start");
	set(frames->metric[FRAME_MISSES],
		frames->deadline_ns ? (double)frames->interval.misses : (double)NAN, "no deadline");
	set(frames->metric[FRAME_MISS_PERCENT],
		frames->deadline_ns
			? (double)frames->interval.misses * 100 / (double)frames->interval.count
			: (double)NAN,
		"no deadline");
	set_target(frames, stats.fps, now_ns);
	double energy_mj = app_energy_frame_mj(app, &reason);
	set(frames->metric[FRAME_ENERGY], energy_mj, reason);
	frames_interval_reset(frames);
}
