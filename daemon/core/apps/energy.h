/* SPDX-License-Identifier: Apache-2.0 */
/*
 * energy.h: declares what a frame costs in energy, where the board reports its power: mJ of a
 * frame = energy of the interval / frames of the interval (as the mean power of the interval *
 * time from its first to its last frame / frames, for the two are not known at the same moments);
 * mJ of a stage in a frame = that * the stage's share of the interval's wall time. The energy is
 * that of the whole board: with several apps each is shown all of it. All of it is an estimate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct app;
struct apps;
struct stage;

#define APP_ENERGY_ORIGIN "energy of the whole board / frames"

/* Of the machine: where the last interval ended. Zeroed = never seen. */
struct app_energy_meter {
	bool begun;
	bool of_power; /* power/total: there was no energy/total */
	double millijoules;
	uint64_t t_ns;
	const char *reason; /* why nothing is known; static text */
};

/* Of an app. Zeroed = nothing known. */
struct app_energy {
	bool begun;
	uint64_t frames;  /* at the interval's start */
	uint64_t tick_ns; /* of the last one before it; 0 = there was none in the interval before */
	double frame_mj;  /* of the last interval; meaningful without a reason */
	const char *reason;
};

/* Each interval, before frames become metrics. */
void apps_energy_sample(struct apps *apps, uint64_t now_ns);

/* NAN with a reason (static text) when it is not known. */
double app_energy_frame_mj(const struct app *app, const char **reason);
/* Of the stage in one frame; NAN when it is not known. */
double app_energy_stage_mj(const struct app *app, const struct stage *stage);
