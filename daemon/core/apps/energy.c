/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy.c: computes energy of frames and stages. The energy collector and the sample tick run at
 * their own times, so an interval here is one between two values of energy/total, as long as the
 * readings of the power that they end with are apart, and frames count with the interval in which
 * they were sampled.
 */
#include "daemon/core/apps/energy.h"

#include <math.h>

#include "daemon/core/apps/apps_private.h"

static const uint64_t SECOND_NS = 1000000000;

/* Energy (mJ) and time since the last interval. False: it goes on, or nothing is known. */
static bool interval_of(struct apps *apps, uint64_t now_ns, double *millijoules, uint64_t *time_ns)
{
	struct app_energy_meter *meter = &apps->energy;
	const struct metric *energy = metrics_find(apps->metrics, "energy/total");
	const struct metric *power = metrics_find(apps->metrics, "power/total");
	struct app_energy_meter now = {.begun = true};
	if (energy && !isnan(energy->value)) {
		now.millijoules = energy->value;
		now.t_ns = metric_time_ns(energy);
	} else if (power && !isnan(power->value)) {
		now.of_power = true;
		now.t_ns = now_ns;
	} else {
		*meter = (struct app_energy_meter){
			.reason = power ? "power is not known now" : "no power sensor"};
		return false;
	}
	if (meter->begun && now.t_ns <= meter->t_ns && now.of_power == meter->of_power) {
		return false;
	}
	struct app_energy_meter before = *meter;
	*meter = now;
	if (!before.begun || before.of_power != now.of_power ||
		now.millijoules < before.millijoules) {
		meter->reason = "the first interval";
		return false;
	}
	*time_ns = now.t_ns - before.t_ns;
	*millijoules = now.of_power ? power->value * (double)*time_ns / 1e9
				    : now.millijoules - before.millijoules;
	return true;
}

/* Runs of it are no part of another stage's. */
static bool is_outermost(const struct stage *stage)
{
	return !stage_is_nested(stage) && stage_is_work(stage);
}

static void stages_sample(struct app *app, uint64_t time_ns)
{
	double busy_ns = 0;
	for (size_t i = 0; i < app->stages; i++) {
		struct stage *stage = app->stage[i];
		uint64_t ns = stage->total_ns - stage->energy.total_ns;
		stage->energy.total_ns = stage->total_ns;
		stage->energy.share = (double)ns;
		busy_ns += is_outermost(stage) ? (double)ns : 0;
	}
	/* a pipeline's stages overlap: together they are never more than all of it */
	double wall_ns = busy_ns > (double)time_ns ? busy_ns : (double)time_ns;
	for (size_t i = 0; i < app->stages; i++) {
		struct app_energy_share *energy = &app->stage[i]->energy;
		energy->share = wall_ns > 0 ? fmin(energy->share / wall_ns, 1) : 0;
	}
}

/* The energy is known at its own times and the frames up to the last drain. What is between two
 * frames is theirs, at the mean power of the interval: by the interval alone a second's number was
 * 35 % off at a steady 50 fps. 0: there is no frame before them, or a pause. */
static uint64_t time_of_frames(const struct app_energy *before, const struct app_energy *now)
{
	uint64_t span_ns = now->tick_ns > before->tick_ns ? now->tick_ns - before->tick_ns : 0;
	return before->tick_ns > 0 && span_ns <= FRAMES_PAUSE_S * SECOND_NS ? span_ns : 0;
}

static void app_sample(struct app *app, double millijoules, uint64_t time_ns)
{
	const struct app_energy before = app->energy;
	uint64_t count = app->frames ? app->frames->count + app->frames->warmup_skipped : 0;
	uint64_t frames = count - before.frames;
	app->energy = (struct app_energy){.begun = true,
		.frames = count,
		.tick_ns = frames > 0 ? app->frames->last_tick_ns : before.tick_ns};
	uint64_t span_ns = time_of_frames(&before, &app->energy);
	stages_sample(app, span_ns ? span_ns : time_ns);
	if (frames == 0 && before.begun) {
		app->energy.reason = "no frame in the interval";
	} else if (!before.begun || span_ns == 0) {
		app->energy.reason = "the first interval";
	} else if (!(millijoules > 0)) {
		app->energy.reason = "no reading of power in the interval";
	} else {
		app->energy.frame_mj =
			millijoules / (double)time_ns * (double)span_ns / (double)frames;
	}
}

void apps_energy_sample(struct apps *apps, uint64_t now_ns)
{
	double millijoules = 0;
	uint64_t time_ns = 0;
	if (interval_of(apps, now_ns, &millijoules, &time_ns)) {
		for (size_t i = 0; i < apps->count; i++) {
			app_sample(apps->app[i], millijoules, time_ns);
		}
	} else if (!apps->energy.begun) {
		for (size_t i = 0; i < apps->count; i++) {
			apps->app[i]->energy = (struct app_energy){.reason = apps->energy.reason};
		}
	}
}

double app_energy_frame_mj(const struct app *app, const char **reason)
{
	*reason = app->energy.reason;
	if (!app->energy.begun && !*reason) {
		*reason = "the first interval";
	}
	return *reason ? (double)NAN : app->energy.frame_mj;
}

double app_energy_stage_mj(const struct app *app, const struct stage *stage)
{
	const char *reason;
	return app_energy_frame_mj(app, &reason) * stage->energy.share;
}
