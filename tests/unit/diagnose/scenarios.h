/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenarios.h: what happens to an app and its board in the scenarios of a diagnosis. An effect
 * changes the app's model and the sensors by the same laws, so that a scenario only names what
 * happens, when and how strongly.
 */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/diagnose/rules/diagnose.h"
#include "daemon/core/status/bystanders.h"
#include "tests/unit/diagnose/simulation.h"

#define MIB (1024.0 * 1024)

enum { CAPTURE = 0, PREPROCESS, INFER, PUBLISH, STAGES };

/* What an effect changes; both parts are as usual ahead of each call. */
struct world {
	struct simulation_model *model;
	double *metric; /* by enum fact_metric; NAN = null */
	struct bystanders *others;
	struct modes *modes;
	struct process_row *own;
	double since_s, strength;
	double waits, io_ms; /* for a processor, of the time of stages; for storage, of a frame */
};

typedef void effect_function(struct world *world);

static const struct simulation_model camera = {.stages = STAGES,
	.stage = {[CAPTURE] = {.name = "capture", .mean_ms = 4},
		[PREPROCESS] = {.name = "preprocess", .mean_ms = 6, .cpu_share = 0.95},
		[INFER] = {.name = "infer", .mean_ms = 30, .cpu_share = 0.3, .thread = 1},
		[PUBLISH] = {.name = "publish", .mean_ms = 3, .cpu_share = 0.5, .thread = 2}},
	.context = {.run_delay_ms = 0.3, .voluntary = 4, .involuntary = 0.2, .minor_faults = 2}};

static const struct {
	const char *path;
	enum unit unit;
	double usual;
} sensor[FACT_METRIC_COUNT] = {
	[FACT_TEMPERATURE] = {"temperature/max", UNIT_CELSIUS, 58},
	[FACT_HEADROOM] = {"headroom/cpu", UNIT_CELSIUS, 22},
	[FACT_THROTTLE_ACTIVE] = {"throttle/active", UNIT_BOOL, 0},
	[FACT_UNDER_VOLTAGE] = {"throttle/under_voltage", UNIT_BOOL, 0},
	[FACT_FREQ_CAPPED] = {"throttle/freq_capped", UNIT_BOOL, 0},
	[FACT_THROTTLED] = {"throttle/throttled", UNIT_BOOL, 0},
	[FACT_SOFT_TEMP_LIMIT] = {"throttle/soft_temp_limit", UNIT_BOOL, 0},
	[FACT_OVER_CURRENT] = {"throttle/over_current", UNIT_BOOL, 0},
	[FACT_OVER_CURRENT_RATE] = {"throttle/oc1_rate", UNIT_PER_SECOND, 0},
	[FACT_CPU] = {"cpu/utilization", UNIT_PERCENT, 25},
	[FACT_CPU_BUSIEST] = {"cpu/1/utilization", UNIT_PERCENT, 40},
	[FACT_CPU_FREQUENCY] = {"cpu/0/frequency", UNIT_HERTZ, 1.5e9},
	[FACT_CPU_IOWAIT] = {"cpu/iowait", UNIT_PERCENT, 0.3},
	[FACT_CPU_STEAL] = {"cpu/steal", UNIT_PERCENT, 0},
	[FACT_GPU] = {"gpu/utilization", UNIT_PERCENT, 45},
	[FACT_GPU_FREQUENCY] = {"gpu/frequency", UNIT_HERTZ, 9e8},
	[FACT_EMC] = {"emc/utilization", UNIT_PERCENT, 25},
	[FACT_ENGINE] = {"engine/nvdec/utilization", UNIT_PERCENT, 10},
	[FACT_MEMORY_PERCENT] = {"memory/used_percent", UNIT_PERCENT, 45},
	[FACT_MEMORY_AVAILABLE] = {"memory/available", UNIT_BYTES, 2200 * MIB},
	[FACT_SWAP_USED] = {"swap/used", UNIT_BYTES, 0},
	[FACT_PRESSURE_CPU] = {"pressure/cpu/some", UNIT_PERCENT, 2},
	[FACT_PRESSURE_MEMORY] = {"pressure/memory/some", UNIT_PERCENT, 0},
	[FACT_PRESSURE_IO] = {"pressure/io/some", UNIT_PERCENT, 0.3},
	[FACT_POWER] = {"power/total", UNIT_MILLIWATTS, 7000},
	[FACT_POWER_BUDGET] = {"budget/power", UNIT_PERCENT, 47},
	[FACT_APP_CPU] = {"process/cam/cpu", UNIT_PERCENT, 55},
	[FACT_APP_SYSTEM] = {"process/cam/system", UNIT_PERCENT, 6},
	[FACT_APP_RSS] = {"process/cam/rss", UNIT_BYTES, 200 * MIB},
	[FACT_APP_THREADS] = {"process/cam/threads", UNIT_COUNT, 6},
	[FACT_APP_STOPPED] = {"process/cam/stopped", UNIT_COUNT, 0},
	[FACT_APP_RUN_DELAY] = {"process/cam/run_delay", UNIT_PERCENT, 0.5},
	[FACT_APP_IODELAY] = {"process/cam/iodelay", UNIT_PERCENT, 0},
	[FACT_APP_INVOLUNTARY] = {"process/cam/involuntary_switches", UNIT_PER_SECOND, 4},
	[FACT_APP_MAJOR_FAULTS] = {"process/cam/major_faults", UNIT_PER_SECOND, 0},
	[FACT_APP_MINOR_FAULTS] = {"process/cam/minor_faults", UNIT_PER_SECOND, 40},
	[FACT_APP_READ] = {"process/cam/read_bytes", UNIT_PER_SECOND, 0},
	[FACT_APP_WRITE] = {"process/cam/write_bytes", UNIT_PER_SECOND, 2e4},
	[FACT_DAEMON_CPU] = {"process/edgeprofd/cpu", UNIT_PERCENT, 1},
};

/* Work on the processor and the GPU takes this many times longer. */
static void slower(struct world *world, double factor)
{
	for (size_t i = PREPROCESS; i < STAGES; i++) {
		world->model->stage[i].mean_ms *= factor;
	}
}

/* After all effects: waits of stages that take longer are longer, those for storage are not. */
static void finish(struct world *world)
{
	struct simulation_stage *stage = world->model->stage;
	double *delay_ms = &world->model->context.run_delay_ms;
	double frame_ms = world->model->camera_fps > 0 ? 1000 / world->model->camera_fps : 0;
	double busy_ms = world->io_ms;
	for (size_t i = PREPROCESS; i < STAGES; i++) {
		*delay_ms += world->waits * stage[i].mean_ms;
	}
	slower(world, 1 + world->waits);
	for (size_t i = 0; i < STAGES; i++) {
		busy_ms += stage[i].mean_ms;
	}
	frame_ms = fmax(frame_ms, busy_ms);
	if (world->waits > 0) {
		world->metric[FACT_APP_RUN_DELAY] = 100 * *delay_ms / frame_ms;
	}
	if (world->io_ms > 0) {
		stage[PUBLISH].mean_ms += world->io_ms;
		stage[PUBLISH].cpu_share = 0.03;
		world->metric[FACT_APP_IODELAY] = 100 * world->io_ms / frame_ms;
	}
}

static void add_process(struct world *world, const char *name, double cpu, double rss, double io)
{
	for (int use = 0; use < BYSTANDER_USES; use++) {
		struct bystander *most = world->others->most[use];
		memmove(&most[1], &most[0], (BYSTANDERS_MAX - 1) * sizeof(*most));
		most[0] = (struct bystander){.pid = 900, .use = {cpu, rss, io}};
		snprintf(most[0].name, sizeof(most[0].name), "%s", name);
	}
}

static void clocks(struct world *world, double factor)
{
	slower(world, 1 / factor);
	world->metric[FACT_CPU_FREQUENCY] *= factor;
	world->metric[FACT_GPU_FREQUENCY] *= factor;
	world->metric[FACT_POWER] *= 0.3 + 0.7 * factor;
}

static void heat(struct world *world, double celsius)
{
	celsius *= 1 - exp(-world->since_s / 8);
	world->metric[FACT_TEMPERATURE] += celsius;
	world->metric[FACT_HEADROOM] -= celsius;
}

static void throttles(struct world *world)
{
	heat(world, 24);
	clocks(world, 1 / world->strength);
	world->metric[FACT_THROTTLE_ACTIVE] = 1;
}

static void throttles_pi(struct world *world)
{
	throttles(world);
	world->metric[FACT_SOFT_TEMP_LIMIT] = world->metric[FACT_FREQ_CAPPED] = 1;
}

static void brown_out(struct world *world)
{
	clocks(world, 1 / world->strength);
	world->metric[FACT_THROTTLE_ACTIVE] = world->metric[FACT_UNDER_VOLTAGE] = 1;
	world->metric[FACT_FREQ_CAPPED] = world->metric[FACT_THROTTLED] = 1;
}

static void over_current(struct world *world)
{
	clocks(world, 1 / world->strength);
	world->metric[FACT_THROTTLE_ACTIVE] = world->metric[FACT_OVER_CURRENT] = 1;
	world->metric[FACT_OVER_CURRENT_RATE] = 12;
}

static void power_save(struct world *world)
{
	clocks(world, 1 / world->strength);
	world->modes->frequency_limit = 1 / world->strength;
	snprintf(world->modes->governor, sizeof(world->modes->governor), "powersave");
}

static void heavy_model(struct world *world)
{
	world->model->stage[INFER].mean_ms *= world->strength;
	world->metric[FACT_GPU] = 80;
}

static void cpu_hog(struct world *world)
{
	world->waits += world->strength - 1;
	add_process(world, "stress-ng", 385, 30 * MIB, 0);
	world->metric[FACT_CPU] = world->metric[FACT_CPU_BUSIEST] = 99;
	world->metric[FACT_PRESSURE_CPU] = 60;
	world->metric[FACT_APP_INVOLUNTARY] = 300;
	world->model->context.involuntary += 8;
}

static void hog_ramps(struct world *world)
{
	world->strength = 1 + (world->strength - 1) * fmin(world->since_s / 30, 1);
	cpu_hog(world);
}

/* Frames wait for a thread that a hog keeps off the processor, not for one themselves. */
static void inverts(struct world *world)
{
	world->model->slow_chance = 0.05;
	world->model->slow_ms = 70 * world->strength;
	world->model->slow_stage = INFER;
	world->model->stage[INFER].cpu_share = 0.1;
	world->own->nice = -5;
	add_process(world, "stress-ng", 99, 30 * MIB, 0);
	world->metric[FACT_PRESSURE_CPU] = 40;
	world->metric[FACT_APP_RUN_DELAY] = 60;
}

static void fallback(struct world *world)
{
	struct simulation_stage *infer = &world->model->stage[INFER];
	infer->mean_ms *= world->strength;
	infer->unit = "cpu";
	infer->expected_unit = "gpu";
	infer->cpu_share = 0.98;
	world->metric[FACT_GPU] = 2;
	world->metric[FACT_APP_CPU] = 280;
	world->metric[FACT_CPU] = 75;
	world->metric[FACT_CPU_BUSIEST] = 85;
}

static void heavy_preprocessing(struct world *world)
{
	world->model->stage[PREPROCESS].mean_ms *= world->strength;
	world->metric[FACT_APP_CPU] = world->metric[FACT_CPU_BUSIEST] = 93;
}

static void heavy_publishing(struct world *world)
{
	world->model->stage[PUBLISH].mean_ms *= world->strength;
}

static void slow_camera(struct world *world)
{
	world->model->camera_fps /= world->strength;
}

static void camera_stutters(struct world *world)
{
	world->model->slow_chance = 0.05;
	world->model->slow_ms = 60 * world->strength;
	world->model->slow_stage = CAPTURE;
}

/* Waits for a processor, and nobody else is to blame. */
static void gets_little(struct world *world)
{
	world->waits += world->strength - 1;
	world->metric[FACT_PRESSURE_CPU] = 40;
	world->metric[FACT_APP_INVOLUNTARY] = 250;
	world->model->context.involuntary += 6;
}

static void pinned(struct world *world)
{
	gets_little(world);
	snprintf(world->own->cpus, sizeof(world->own->cpus), "2");
	world->metric[FACT_CPU_BUSIEST] = 100;
	world->metric[FACT_CPU] = 30;
	world->metric[FACT_APP_CPU] = 98;
}

static void quota(struct world *world)
{
	gets_little(world);
	world->own->extra.group_ns = 1;
	world->own->extra.quota_percent = 60;
	world->own->extra.throttled_share = 1 - 1 / world->strength;
}

static void niced(struct world *world)
{
	gets_little(world);
	world->own->nice = 19;
	world->metric[FACT_CPU] = world->metric[FACT_CPU_BUSIEST] = 97;
}

/* Frames are dropped for a moment, again and again. */
static void camera_drops(struct world *world)
{
	if (fmod(world->since_s, 8) < 3) {
		slow_camera(world);
	}
}

static void collects_garbage(struct world *world)
{
	world->model->slow_every = 25;
	world->model->slow_ms = 40 * world->strength;
	world->model->slow_stage = -1;
}

static void allocates(struct world *world)
{
	world->model->slow_chance = 0.04;
	world->model->slow_ms = 40 * world->strength;
	world->model->slow_stage = -1;
	world->model->slow_context.minor_faults = 4000;
	world->metric[FACT_APP_SYSTEM] = 25;
	world->metric[FACT_APP_MINOR_FAULTS] = 2500;
}

static void uses(struct world *world, double bytes)
{
	world->metric[FACT_MEMORY_AVAILABLE] =
		fmax(world->metric[FACT_MEMORY_AVAILABLE] - bytes, 0);
	world->metric[FACT_MEMORY_PERCENT] += bytes / (40.96 * MIB);
}

/* strength: MiB a second */
static void leaks(struct world *world)
{
	world->metric[FACT_APP_RSS] += world->since_s * world->strength * MIB;
	uses(world, world->since_s * world->strength * MIB);
}

static void leaks_elsewhere(struct world *world)
{
	double bytes = world->since_s * world->strength * MIB;
	add_process(world, "telemetryd", 2, 150 * MIB + bytes, 0);
	uses(world, bytes);
}

static void fills_memory(struct world *world)
{
	slower(world, world->strength);
	add_process(world, "chromium", 20, 2300 * MIB, 4e6);
	uses(world, 2130 * MIB);
	world->metric[FACT_SWAP_USED] = 300 * MIB + world->since_s * 8 * MIB;
	world->metric[FACT_PRESSURE_MEMORY] = 20 * world->strength;
	world->metric[FACT_PRESSURE_IO] = 15;
	world->metric[FACT_APP_MAJOR_FAULTS] = 350;
	world->metric[FACT_APP_IODELAY] = 15;
	world->model->context.major_faults += 20;
}

static void memory_hog(struct world *world)
{
	double bytes = fmin(world->since_s * 150, 2150) * MIB;
	uses(world, bytes);
	if (bytes >= 2150 * MIB) {
		world->metric[FACT_MEMORY_PERCENT] = 45;
		fills_memory(world);
	}
	add_process(world, "stress-ng-vm", 60, bytes, 0);
}

static void disk_is_slow(struct world *world)
{
	world->io_ms += 30 * world->strength;
	world->metric[FACT_PRESSURE_IO] = 45;
	world->metric[FACT_CPU_IOWAIT] = 25;
}

static void others_write(struct world *world)
{
	disk_is_slow(world);
	add_process(world, "rsync", 25, 20 * MIB, 8e7);
}

static void disk_stutters(struct world *world)
{
	world->model->slow_chance = 0.06;
	world->model->slow_ms = 80 * world->strength;
	world->model->slow_stage = PUBLISH;
	world->model->stage[PUBLISH].cpu_share = 0.03;
	world->metric[FACT_PRESSURE_IO] = 14;
	world->metric[FACT_APP_IODELAY] = 13;
	world->metric[FACT_APP_WRITE] = 6e6;
}

static void gpu_is_shared(struct world *world)
{
	world->model->stage[INFER].mean_ms *= world->strength;
	world->metric[FACT_GPU] = 99;
}

static void emc_is_full(struct world *world)
{
	world->model->stage[PREPROCESS].mean_ms *= world->strength;
	world->model->stage[INFER].mean_ms *= world->strength;
	world->metric[FACT_EMC] = 97;
	world->metric[FACT_GPU] = 70;
}

static void balanced(struct world *world)
{
	for (size_t i = 0; i < STAGES; i++) {
		world->model->stage[i].mean_ms = 12 * world->strength;
	}
}

static void stops(struct world *world)
{
	world->model->stopped = true;
	world->metric[FACT_APP_STOPPED] = 1;
}

/* Now and then, while it waits for the camera. */
static void is_suspended(struct world *world)
{
	double at_s = fmod(world->since_s, 5.3);
	world->model->slow_chance = at_s < 0.066;
	world->model->slow_ms = 500 * world->strength;
	world->model->slow_stage = CAPTURE;
	world->metric[FACT_APP_STOPPED] = at_s < 0.5 * world->strength;
}

/* Other processes compute for a while, again and again. */
static void backups(struct world *world)
{
	double at_s = fmod(world->since_s, 17), pressure = fmin(at_s, fmax(8 - at_s, 0)) * 15;
	world->metric[FACT_PRESSURE_CPU] += pressure;
	if (at_s < 4) {
		world->model->slow_chance = 0.3;
		world->model->slow_ms = 40 * world->strength;
		world->model->slow_stage = -1;
		world->model->slow_context.run_delay_ms = 38 * world->strength;
		world->metric[FACT_APP_RUN_DELAY] = 18 * world->strength;
		world->metric[FACT_CPU] = world->metric[FACT_CPU_BUSIEST] = 99;
	}
	add_process(world, "backup", 95, 30 * MIB, 0);
}

static void profiled_much(struct world *world)
{
	world->metric[FACT_DAEMON_CPU] = 85;
	world->metric[FACT_CPU] = world->metric[FACT_CPU_BUSIEST] = 95;
	world->waits += world->strength - 1;
}

/* In turns, as boards do that cool down. */
static void throttles_in_turns(struct world *world)
{
	if (fmod(world->since_s, 24) < 12) {
		throttles(world);
	}
}

/* On two of four cores: it costs a little. */
static void busy_neighbour(struct world *world)
{
	cpu_hog(world);
	world->others->most[USE_CPU][0].use[USE_CPU] = 190;
	world->metric[FACT_CPU] = 74;
	world->metric[FACT_PRESSURE_CPU] = 25;
}

static void logs(struct world *world)
{
	others_write(world);
	world->metric[FACT_CPU_IOWAIT] = NAN;
	world->metric[FACT_APP_MAJOR_FAULTS] = 3;
}

/* Each fourth run of infer waits; others take the processor now and then, whichever stage runs. */
static void waits_now_and_then(struct world *world)
{
	bool late = fmod(world->since_s * 137.31, 1) < 0.12;
	world->model->slow_every = 4;
	world->model->slow_ms = 30 * world->strength;
	world->model->slow_stage = INFER;
	world->model->stage[PREPROCESS].mean_ms += late ? 20 * world->strength : 0;
	for (size_t i = 0; i < STAGES; i++) {
		world->model->stage[i].cpu_share = 0;
	}
	if (fmod(world->since_s, 40) > 20) {
		world->model->stage[PUBLISH].mean_ms += 4;
		world->metric[FACT_APP_CPU] -= 15;
	}
	world->metric[FACT_CPU] = world->metric[FACT_CPU_BUSIEST] = 99;
}

/* What may be and is not the cause. */
static void hot(struct world *world)
{
	heat(world, 21);
}

static void throttled(struct world *world)
{
	heat(world, 24);
	world->metric[FACT_THROTTLE_ACTIVE] = 1;
	world->metric[FACT_CPU_FREQUENCY] *= 0.8;
}

static void emc_always(struct world *world)
{
	world->metric[FACT_EMC] = 90;
}

static void gpu_always(struct world *world)
{
	world->metric[FACT_GPU] = 97;
}

static void neighbour(struct world *world)
{
	add_process(world, "python3", 85, 120 * MIB, 0);
	world->metric[FACT_CPU] += 21;
	world->metric[FACT_CPU_BUSIEST] = 90;
	world->metric[FACT_PRESSURE_CPU] += 4;
}

static void swapped_once(struct world *world)
{
	world->metric[FACT_SWAP_USED] = 180 * MIB;
	world->metric[FACT_MEMORY_PERCENT] = 70;
}

static void settles(struct world *world)
{
	world->metric[FACT_APP_RSS] += 80 * MIB * (1 - exp(-world->since_s / 12));
}

/* A heap that grows until it is collected. */
static void saw_tooth(struct world *world)
{
	world->metric[FACT_APP_RSS] += 1.5 * MIB * fmod(world->since_s, 23);
}

static void copies_files(struct world *world)
{
	add_process(world, "rsync", 25, 20 * MIB, 6e7);
	world->metric[FACT_PRESSURE_IO] = 20;
	world->metric[FACT_CPU_IOWAIT] = 12;
}

static void governor_low(struct world *world)
{
	world->modes->frequency_limit = 0.6;
	world->metric[FACT_CPU_FREQUENCY] *= 0.6;
	snprintf(world->modes->governor, sizeof(world->modes->governor), "powersave");
}

static void warms_up(struct world *world)
{
	slower(world, 1 + 3 * exp(-world->since_s / 5));
}

static void bursts(struct world *world)
{
	world->model->stopped = fmod(world->since_s, 20) > 9;
}

static void varies(struct world *world)
{
	slower(world, 1 + 0.12 * sin(world->since_s / 9));
}
