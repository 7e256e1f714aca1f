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
	struct simulation *simulation;
	struct simulation_model *model;
	double *metric; /* by enum fact_metric; NAN = null */
	double since_s, strength;
};

typedef void effect_function(struct world *world);

static struct bystanders bystanders;

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
	[FACT_POWER_BUDGET] = {"budget/power", UNIT_MILLIWATTS, 15000},
	[FACT_APP_CPU] = {"process/cam/cpu", UNIT_PERCENT, 55},
	[FACT_APP_SYSTEM] = {"process/cam/system", UNIT_PERCENT, 6},
	[FACT_APP_RSS] = {"process/cam/rss", UNIT_BYTES, 200 * MIB},
	[FACT_APP_THREADS] = {"process/cam/threads", UNIT_COUNT, 6},
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

static void add_process(const char *name, double cpu, double rss, double io)
{
	for (int use = 0; use < BYSTANDER_USES; use++) {
		struct bystander *most = bystanders.most[use];
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
	world->simulation->modes.frequency_limit = 1 / world->strength;
	snprintf(world->simulation->modes.governor, sizeof(world->simulation->modes.governor),
		"powersave");
}

static void heavy_model(struct world *world)
{
	world->model->stage[INFER].mean_ms *= world->strength;
	world->metric[FACT_GPU] = 80;
}

static void cpu_hog(struct world *world)
{
	slower(world, world->strength);
	add_process("stress-ng", 385, 30 * MIB, 0);
	world->metric[FACT_CPU] = world->metric[FACT_CPU_BUSIEST] = 99;
	world->metric[FACT_PRESSURE_CPU] = 60;
	world->metric[FACT_APP_RUN_DELAY] = 100 * (1 - 1 / world->strength);
	world->metric[FACT_APP_INVOLUNTARY] = 300;
	world->model->context.run_delay_ms += (world->strength - 1) * 36;
	world->model->context.involuntary += 8;
}
