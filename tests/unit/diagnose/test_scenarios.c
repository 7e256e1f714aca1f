/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apps and boards of which the true cause is known, from the records of the app to the first
 * finding. An effect changes the app's model and the sensors by the same laws, so that a row only
 * names what happens, when and how strongly; rates, noise, sensors and distractors vary.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/diagnose/rules/diagnose.h"
#include "daemon/core/status/bystanders.h"
#include "tests/unit/diagnose/simulation.h"
#include "tests/unit/unit.h"

#include "tests/unit/diagnose/scenarios.h"
enum { SEEDS = 3, HEALTHY = CAUSE_COUNT };

struct row {
	const char *name;
	int want;
	uint32_t also; /* bits of causes that are as right */
	effect_function *effect;
	double strength, from_s, until_s; /* until_s 0 = for good */
	effect_function *distractor;
	double distractor_from_s, distractor_strength;
	const char *missing; /* prefixes of metrics, with spaces around each */
	bool null;	     /* missing ones are null; else they do not exist */
	enum simulation_kind kind;
	double camera_fps, scale, noise; /* 0 = 15, 1, 1; camera_fps < 0: a loop without one */
	bool sleeps;			 /* the loop waits for the camera outside of the stages */
	double target_fps, deadline_ms, seconds;
};

static struct simulation *simulation;
static struct facts facts;
static struct diagnosis diagnosis;

/* Cause, effect, its strength, when it begins, name; then what else there is. */
#define ROW(cause, what, by, from, ...)                                                \
	{                                                                              \
		.want = CAUSE_##cause, .effect = what, .strength = by, .from_s = from, \
		.name = __VA_ARGS__                                                    \
	}
#define FINE(...)                                    \
	{                                            \
		.want = HEALTHY, .name = __VA_ARGS__ \
	}

static const struct row rows[] = {
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling after a minute"),
	ROW(THERMAL_THROTTLING, throttles_pi, 1.5, 40, "throttling on a Pi, loop",
		.camera_fps = -1),
	ROW(THERMAL_THROTTLING, throttles, 2, 70, "throttling, stages only",
		.kind = SIMULATE_STAGES),
	ROW(UNDER_VOLTAGE, brown_out, 2.2, 50, "under-voltage"),
	ROW(OVER_CURRENT, over_current, 2, 50, "over-current"),
	ROW(CLOCK_LIMIT, power_save, 2.5, 0, "powersave from the start", .target_fps = 15),
	ROW(CLOCK_LIMIT, power_save, 2.5, 60, "powersave later"),
	ROW(INFERENCE_BOUND, heavy_model, 4, 0, "model too large", .target_fps = 15),
	ROW(CPU_CONTENTION, cpu_hog, 2, 60, "CPU hog"),
	FINE("camera-paced"),
	FINE("loop", .camera_fps = -1),
};

static bool is_missing(const struct row *row, const char *path)
{
	for (const char *word = row->missing; word && *word; word += strspn(word, " ")) {
		size_t length = strcspn(word, " ");
		if (strncmp(path, word, length) == 0) {
			return true;
		}
		word += length;
	}
	return false;
}

static void apply(const struct row *row, struct world *world, double t_s)
{
	if (row->effect && t_s >= row->from_s && !(row->until_s > 0 && t_s >= row->until_s)) {
		world->since_s = t_s - row->from_s;
		world->strength = row->strength;
		row->effect(world);
	}
	if (row->distractor && t_s >= row->distractor_from_s) {
		world->since_s = t_s - row->distractor_from_s;
		world->strength = row->distractor_strength;
		row->distractor(world);
	}
}

static void init_model(const struct row *row, struct simulation_model *model)
{
	double scale = row->scale > 0 ? row->scale : 1;
	*model = camera;
	model->camera_fps = row->camera_fps < 0 ? 0 : row->camera_fps > 0 ? row->camera_fps : 15;
	model->capture_blocks = !row->sleeps;
	model->target_fps = row->target_fps;
	model->deadline_ms = row->deadline_ms;
	for (size_t i = 0; i < STAGES; i++) {
		struct simulation_stage *stage = &model->stage[i];
		stage->mean_ms *= scale;
		stage->sigma_ms = 0.04 * stage->mean_ms * (row->noise > 0 ? row->noise : 1);
		stage->thread = row->kind == SIMULATE_PIPELINE ? stage->thread : 0;
	}
}

static void set(struct simulation *of, enum fact_metric metric, const char *path, double value)
{
	const struct row *row = of->options.ctx;
	double noise =
		sensor[metric].unit == UNIT_BOOL ? 0 : 0.015 * (row->noise > 0 ? row->noise : 1);
	bool missing = is_missing(row, path);
	if (!missing || row->null) {
		value = missing ? NAN : simulation_noise(of, value, noise * fabs(value));
		simulation_set(
			of, sensor[metric].unit, path, value, isnan(value) ? "not readable" : NULL);
	}
}

static void change(struct simulation *of, double t_s, struct simulation_model *model)
{
	double unused[FACT_METRIC_COUNT] = {0};
	init_model(of->options.ctx, model);
	apply(of->options.ctx, &(struct world){.simulation = of, .model = model, .metric = unused},
		t_s);
}

static void sense(struct simulation *of, double t_s)
{
	double value[FACT_METRIC_COUNT];
	struct simulation_model unused;
	for (size_t i = 0; i < FACT_METRIC_COUNT; i++) {
		value[i] = sensor[i].usual;
	}
	init_model(of->options.ctx, &unused);
	bystanders = (struct bystanders){.t_ns = of->now_ns};
	add_process("systemd", 1, 12 * MIB, 0);
	snprintf(of->modes.governor, sizeof(of->modes.governor), "schedutil");
	of->modes.frequency_limit = 1;
	of->modes.limit_ns = of->now_ns;
	apply(of->options.ctx, &(struct world){.simulation = of, .model = &unused, .metric = value},
		t_s);
	for (size_t i = 0; i < FACT_METRIC_COUNT; i++) {
		set(of, i, sensor[i].path, value[i]);
	}
	set(of, FACT_TEMPERATURE, "temperature/cpu", value[FACT_TEMPERATURE]);
}

static void run(const struct row *row, uint64_t seed)
{
	struct simulation_options options = {.kind = row->kind,
		.seed = seed,
		.change = change,
		.sense = sense,
		.ctx = (void *)(uintptr_t)row};
	init_model(row, &options.model);
	simulation = simulation_open(&options);
	simulation->core.bystanders = &bystanders;
	simulation_run(simulation, row->seconds > 0 ? row->seconds : 120);
	simulation_gather(simulation, &facts);
	diagnose(&facts, &diagnosis);
	simulation_close(simulation);
	simulation = NULL;
}

static bool is_right(const struct row *row)
{
	const struct finding *first = diagnosis.findings ? &diagnosis.finding[0] : NULL;
	if (row->want == HEALTHY) {
		return diagnosis.state != DIAGNOSIS_FINDINGS;
	}
	return diagnosis.state == DIAGNOSIS_FINDINGS &&
	       ((int)first->cause == row->want || (row->also >> first->cause & 1));
}

static void print(const struct row *row, int seed)
{
	printf("%s, seed %d: not %s but", row->name, seed,
		row->want == HEALTHY ? "healthy" : cause_name((enum cause)row->want));
	for (size_t i = 0; i < diagnosis.findings; i++) {
		const struct finding *finding = &diagnosis.finding[i];
		printf(" %s %.2f,", cause_name(finding->cause), finding->score);
	}
	printf(" %s\n  frame %.1f was %.1f, since %.0f, warming %d, slow %.3f\n", diagnosis.summary,
		facts.frame_ms.now, facts.frame_ms.usual, facts.since_s, facts.warming_up,
		facts.slow_share);
}

TEST_TIMEOUT(120);

START_TEST(the_true_cause_comes_first)
{
	int of[2] = {0}, right[2] = {0};
	for (int i = 0; i < COUNT(rows); i++) {
		bool healthy = rows[i].want == HEALTHY;
		for (int seed = 1; seed <= SEEDS; seed++) {
			run(&rows[i], (uint64_t)(i * SEEDS + seed) * 2654435761u);
			of[healthy]++;
			right[healthy] += is_right(&rows[i]);
			if (!is_right(&rows[i])) {
				print(&rows[i], seed);
			}
		}
	}
	printf("%d of %d true causes first, %d of %d healthy\n", right[0], of[0], right[1], of[1]);
	fflush(stdout);
	ck_assert_int_ge(right[0] * 100, of[0] * 95);
	ck_assert_int_eq(right[1], of[1]);
}
END_TEST
