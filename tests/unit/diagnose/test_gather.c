/* SPDX-License-Identifier: Apache-2.0 */
/* What facts_measure() measures of simulated apps, of which everything is known. */
#include "daemon/core/diagnose/facts/gather.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/unit/diagnose/simulation.h"
#include "tests/unit/unit.h"

static struct simulation *simulation;
static struct facts facts;

static const struct simulation_model camera = {.camera_fps = 15,
	.stages = 4,
	.stage = {{.name = "capture", .mean_ms = 4, .sigma_ms = 0.3},
		{.name = "infer", .mean_ms = 40, .sigma_ms = 1, .cpu_share = 0.25},
		{.name = "resize", .mean_ms = 6, .sigma_ms = 0.3, .parent = 2},
		{.name = "publish", .mean_ms = 2, .sigma_ms = 0.2}},
	.context = {.run_delay_ms = 0.5, .voluntary = 4, .minor_faults = 2}};

static void begin(const struct simulation_options *options)
{
	simulation = simulation_open(options);
}

static void run(double seconds)
{
	simulation_run(simulation, seconds);
	simulation_gather(simulation, &facts);
}

static void teardown(void)
{
	simulation_close(simulation);
	simulation = NULL;
}

static void near(double value, double want, double tolerance, const char *what)
{
	ck_assert_msg(fabs(value - want) <= tolerance, "%s is %.9g, not %.9g", what, value, want);
}

#define NEAR(value, want, tolerance) near(value, want, tolerance, #value)
#define UNKNOWN(value) ck_assert_msg(isnan(value), #value " is %.9g", (double)(value))

static const struct fact_stage *stage(const char *name)
{
	size_t i = 0;
	while (i < facts.stages && strcmp(facts.stage[i].name, name) != 0) {
		i++;
	}
	ck_assert_msg(i < facts.stages, "no stage %s", name);
	return &facts.stage[i];
}

static const struct fact_series *series(enum fact_metric which)
{
	return &facts.metric[which];
}

/* The clock is limited from hot_s on. */
static double hot_s;

static void heats(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stage[1].mean_ms = t_s >= hot_s ? 92 : 40;
}

static void sensors(struct simulation *of, double t_s)
{
	bool hot = t_s >= hot_s;
	simulation_set(of, UNIT_CELSIUS, "temperature/cpu", hot ? 81 : 60, NULL);
	simulation_set(of, UNIT_CELSIUS, "temperature/max", hot ? 81 : 60, NULL);
	simulation_set(of, UNIT_CELSIUS, "headroom/cpu", hot ? -1 : 20, NULL);
	simulation_set(of, UNIT_CELSIUS, "headroom/gpu", 30, NULL);
	simulation_set(of, UNIT_BOOL, "throttle/active", hot, NULL);
	simulation_set(of, UNIT_MILLIWATTS, "power/total", hot ? 6000 : 9000, NULL);
	simulation_set(of, UNIT_PERCENT, "cpu/0/utilization", 30, NULL);
	simulation_set(of, UNIT_PERCENT, "cpu/1/utilization", 50, NULL);
	simulation_set(of, UNIT_PERCENT, "cpu/2/utilization", NAN, "offline");
	simulation_set(of, UNIT_BYTES, "process/cam/rss", 1e8 + 5e4 * t_s, NULL);
	simulation_set(
		of, UNIT_PERCENT, "gpu/utilization", t_s < 60 ? 42 : NAN, t_s < 60 ? NULL : "gone");
}

TEST_TIMEOUT(60);
FIXTURE(NULL, teardown);

START_TEST(a_healthy_app_is_as_usual)
{
	begin(&(struct simulation_options){.model = camera});
	run(120);
	NEAR(facts.frame_ms.now, 1000 / 15.0, 0.3);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.3);
	NEAR(facts.busy_ms.now, 52, 0.5);
	NEAR(facts.busy_ms.usual, 52, 0.5);
	NEAR(facts.latency_ms.now, 52, 0.5);
	NEAR(facts.span_s, 120, 0.2);
	ck_assert_uint_ge(facts.frames, 1790);
	ck_assert_uint_le(facts.frames, 1800);
	ck_assert(!facts.of_stages && !facts.warming_up);
	UNKNOWN(facts.since_s);
	UNKNOWN(facts.target_ms);
	UNKNOWN(facts.deadline_ms);
	UNKNOWN(facts.miss_percent.now);
	UNKNOWN(facts.throttled_share);
	NEAR(facts.frame_p50_ms, 1000 / 15.0, 0.5);
	NEAR(facts.busy_p5_ms, 50, 1);
	NEAR(facts.run_delay_ms.now, 0.5, 1e-6);
	NEAR(facts.slow_share, 0, 0.003);
	ck_assert_double_eq(facts.dropped, 0);
	NEAR(facts.event_rate, 15 * 5, 2);
	ck_assert_uint_eq(facts.cpus, 4);
	NEAR(facts.cpus_allowed, 4, 0);
	ck_assert_str_eq(facts.policy, "SCHED_OTHER");
	ck_assert_uint_eq(facts.stages, 4);
}
END_TEST

START_TEST(stages_have_their_own_time_and_that_of_executions)
{
	struct simulation_model model = camera;
	model.stage[1].unit = "cpu";
	model.stage[1].expected_unit = "gpu";
	begin(&(struct simulation_options){.model = model});
	run(120);
	const struct fact_stage *infer = stage("infer"), *resize = stage("resize");
	NEAR(infer->ms.now, 40, 0.3);
	NEAR(infer->ms.usual, 40, 0.3);
	NEAR(resize->ms.now, 6, 0.1);
	NEAR(infer->share, 40 / 52.0, 0.01);
	NEAR(infer->p99_ms, 42.4, 1);
	NEAR(infer->cpu_ratio, 0.25, 0.001);
	UNKNOWN(resize->cpu_ratio);
	UNKNOWN(infer->excess_ms);
	NEAR(infer->wait_ms, 0, 1e-3);
	UNKNOWN(stage("capture")->wait_ms);
	ck_assert_str_eq(infer->unit, "cpu");
	ck_assert_str_eq(infer->expected_unit, "gpu");
	ck_assert(infer->cpu_fallback && !resize->cpu_fallback);
}
END_TEST

/* Whenever it begins, unless nearly all of the time is slow. */
START_LOOP_TEST(a_drop_has_its_time_and_its_sensors, 1, 5)
{
	const struct simulation_model model = camera;
	hot_s = 25 * _i;
	begin(&(struct simulation_options){.model = model, .change = heats, .sense = sensors});
	run(125);
	double ago_s = 125 - hot_s;
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.7);
	NEAR(facts.frame_ms.now, 104, 0.6);
	NEAR(stage("infer")->ms.now, 92, 0.6);
	NEAR(stage("infer")->ms.usual, 40, 1);
	NEAR(facts.since_s, ago_s, 2);
	ck_assert(!facts.warming_up);
	NEAR(series(FACT_TEMPERATURE)->mean.now, 81, 1e-6);
	NEAR(series(FACT_TEMPERATURE)->mean.usual, 60, 1.5);
	NEAR(series(FACT_TEMPERATURE)->first_s, ago_s, 3);
	NEAR(series(FACT_THROTTLE_ACTIVE)->mean.now, 1, 1e-9);
	NEAR(series(FACT_THROTTLE_ACTIVE)->mean.usual, 0, 0.1);
	ck_assert_double_gt(series(FACT_TEMPERATURE)->frames_match, 0.6);
	NEAR(facts.throttled_ms, 104, 1);
	NEAR(facts.unthrottled_ms, 1000 / 15.0, 1);
	NEAR(facts.throttled_joules, 6 * 0.104, 0.02);
	NEAR(facts.unthrottled_joules, 9 / 15.0, 0.02);
	double frames = ago_s / 0.104 / (ago_s / 0.104 + hot_s * 15);
	NEAR(facts.throttled_share, frames, 0.03);
	NEAR(facts.critical_celsius, 80, 1e-6);
}
END_TEST

START_TEST(metrics_are_of_those_that_match)
{
	hot_s = 1000;
	begin(&(struct simulation_options){.model = camera, .sense = sensors});
	run(120);
	ck_assert_str_eq(series(FACT_CPU_BUSIEST)->path, "cpu/1/utilization");
	NEAR(series(FACT_CPU_BUSIEST)->mean.now, 50, 1e-6);
	ck_assert_str_eq(series(FACT_HEADROOM)->path, "headroom/cpu");
	ck_assert_str_eq(series(FACT_APP_RSS)->path, "process/cam/rss");
	NEAR(series(FACT_APP_RSS)->slope, 5e4, 500);
	ck_assert_double_gt(series(FACT_APP_RSS)->slope_low, 4.5e4);
	ck_assert_double_le(series(FACT_APP_RSS)->slope_low, series(FACT_APP_RSS)->slope);
	UNKNOWN(series(FACT_CPU_BUSIEST)->frames_match);
	ck_assert_str_eq(series(FACT_SWAP_USED)->path, "");
	UNKNOWN(series(FACT_SWAP_USED)->mean.now);
	/* what it was is not what it is */
	ck_assert_str_eq(series(FACT_GPU)->path, "gpu/utilization");
	UNKNOWN(series(FACT_GPU)->mean.now);
	UNKNOWN(series(FACT_GPU)->most);
	UNKNOWN(series(FACT_GPU)->first_s);
}
END_TEST

static void pauses(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stopped = t_s >= 40 && t_s < 70;
}

START_TEST(a_pause_is_no_slow_frame)
{
	begin(&(struct simulation_options){.model = camera, .change = pauses});
	run(120);
	NEAR(facts.frame_ms.now, 1000 / 15.0, 0.3);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.3);
	NEAR(facts.slow_share, 0, 0.003);
	UNKNOWN(facts.since_s);
	NEAR((double)facts.frames, 90 * 15, 10);
}
END_TEST

static void stops(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stopped = t_s >= 100;
}

START_TEST(an_app_that_stopped_has_no_frames_now)
{
	begin(&(struct simulation_options){.model = camera, .change = stops});
	run(120);
	ck_assert_uint_eq(facts.frames_now, 0);
	UNKNOWN(facts.frame_ms.now);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.3);
	NEAR(facts.since_s, 20, 2);
}
END_TEST

START_TEST(without_frames_nothing_is_known)
{
	struct simulation_model model = camera;
	model.stopped = true;
	begin(&(struct simulation_options){.model = model, .sense = sensors});
	run(30);
	ck_assert_uint_eq(facts.frames, 0);
	ck_assert_uint_eq(facts.frames_now, 0);
	UNKNOWN(facts.frame_ms.now);
	UNKNOWN(facts.frame_ms.usual);
	UNKNOWN(facts.since_s);
	UNKNOWN(facts.slow_share);
	NEAR(series(FACT_TEMPERATURE)->mean.now, hot_s > 30 ? 60 : 81, 1e-6);
	UNKNOWN(series(FACT_TEMPERATURE)->mean.usual);
}
END_TEST

static void three(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)t_s;
	model->stopped = of->next_id >= 3;
}

START_TEST(three_frames_are_three_frames)
{
	begin(&(struct simulation_options){.model = camera, .change = three});
	run(1);
	ck_assert_uint_eq(facts.frames, 3);
	ck_assert_uint_eq(facts.frames_now, 3);
	NEAR(facts.frame_ms.now, 1000 / 15.0, 5);
	UNKNOWN(facts.frame_ms.usual);
	UNKNOWN(facts.since_s);
	UNKNOWN(facts.slow_period_frames);
	UNKNOWN(series(FACT_TEMPERATURE)->mean.now);
}
END_TEST

START_TEST(a_pipeline_has_waits_and_frames_in_flight)
{
	struct simulation_model model = camera;
	model.stage[2] = (struct simulation_stage){.name = "post", .mean_ms = 70, .thread = 2};
	model.stage[1].thread = 1;
	model.stage[3].thread = 2;
	begin(&(struct simulation_options){.kind = SIMULATE_PIPELINE, .model = model});
	run(120);
	ck_assert(!facts.of_stages);
	NEAR(facts.frame_ms.now, 72, 1);
	NEAR(facts.busy_ms.now, 116, 1);
	ck_assert_double_gt(facts.in_flight, 3);
	ck_assert_double_gt(stage("post")->wait_ms, 100);
	NEAR(stage("infer")->ms.now, 40, 0.5);
}
END_TEST

/* A branch of a pipeline reports the frame, while another one is still at work on it. */
static void ends_early(struct simulation *of, double t_s, struct simulation_model *model)
{
	uint64_t start_ns = of->free_ns[0] + 5000000;
	(void)t_s;
	(void)model;
	of->record[of->pending++] = (struct simulation_pending){.slot = 1,
		.t_ns = start_ns + 1000000,
		.record = {.kind = PROTO_KIND_FRAME,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = start_ns,
			.value = 1000000,
			.frame = of->next_id}};
}

START_TEST(what_another_thread_ended_goes_on)
{
	struct simulation_model model = camera;
	model.camera_fps = 0;
	begin(&(struct simulation_options){
		.kind = SIMULATE_PIPELINE, .model = model, .change = ends_early});
	run(30);
	NEAR((double)facts.frames, 30 / 0.052, 10);
	NEAR(facts.frame_ms.now, 52, 0.5);
	NEAR(stage("infer")->ms.now, 40, 0.5);
}
END_TEST

/* As ahead of a queue that leaks. */
static void drops_each_second(struct simulation *of, double t_s, struct simulation_model *model)
{
	if (of->next_id % 2 == 0) {
		ends_early(of, t_s, model);
	}
}

START_TEST(what_was_dropped_on_its_way_is_no_frame)
{
	struct simulation_model model = camera;
	model.camera_fps = 0;
	begin(&(struct simulation_options){
		.kind = SIMULATE_PIPELINE, .model = model, .change = drops_each_second});
	run(30);
	NEAR((double)facts.frames, 30 / 0.104, 5);
	NEAR(facts.frame_ms.now, 104, 0.5);
	NEAR(facts.latency_ms.now, 52, 0.5);
	NEAR(facts.unended, 0.5, 0.05); /* the last ones are in flight */
	NEAR(stage("infer")->ms.now, 40, 0.5);
}
END_TEST

/* The stages of the second thread take 50 ms; its queue takes a frame or two. */
static void drops_at_a_full_queue(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)t_s;
	bool full = of->free_ns[1] > of->free_ns[0] + 80000000;
	model->stage[1].every = model->stage[2].every = full ? INT_MAX : 0;
}

static void begin_two_threads(
	void (*change)(struct simulation *of, double t_s, struct simulation_model *model))
{
	const struct simulation_model model = {.camera_fps = 30,
		.stages = 3,
		.stage = {{.name = "capture", .mean_ms = 4, .sigma_ms = 0.3},
			{.name = "infer", .mean_ms = 48, .sigma_ms = 1, .thread = 1},
			{.name = "publish", .mean_ms = 2, .thread = 1}}};
	begin(&(struct simulation_options){
		.kind = SIMULATE_PIPELINE, .model = model, .change = change});
}

START_TEST(what_a_full_queue_dropped_is_no_frame)
{
	begin_two_threads(drops_at_a_full_queue);
	run(60);
	NEAR((double)facts.frames, 60 / 0.05, 40);
	NEAR(facts.frame_ms.now, 50, 1);
	NEAR(facts.unended, 1 - 20 / 30.0, 0.02);
	NEAR(stage("infer")->ms.now, 48, 0.5);
	NEAR(facts.slow_share, 0, 0.01);
	run(1200); /* more than the records: usual frames are of the history */
	NEAR(facts.frame_ms.usual, 50, 1);
}
END_TEST

static void gives_each_third(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)t_s;
	model->stage[1].every = model->stage[2].every = of->next_id % 3 == 0 ? 0 : INT_MAX;
}

/* Where something moves, each third second: all that is given is done, and then it waits. */
static void gives_some(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stage[1].every = model->stage[2].every = fmod(t_s, 3) < 1 ? 0 : INT_MAX;
	model->stage[1].mean_ms = 20;
}

static void (*const skips[])(struct simulation *, double, struct simulation_model *) = {
	gives_each_third, gives_some};

START_LOOP_TEST(what_another_thread_is_to_skip_is_a_frame, 0, 2)
{
	begin_two_threads(skips[_i]);
	run(60);
	NEAR((double)facts.frames, 60 * 30, 10);
	ck_assert_double_eq(facts.unended, 0);
}
END_TEST

START_LOOP_TEST(without_ids_an_iteration_is_a_frame, SIMULATE_TICKS, SIMULATE_PIPELINE)
{
	const struct simulation_model model = camera;
	hot_s = 60;
	begin(&(struct simulation_options){.kind = (enum simulation_kind)_i,
		.model = model,
		.change = heats,
		.sense = sensors});
	run(120);
	ck_assert_int_eq(facts.of_stages, _i != SIMULATE_TICKS);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.3);
	NEAR(facts.frame_ms.now, 104, 0.6);
	NEAR(facts.since_s, 60, 2);
	NEAR(facts.busy_ms.now, 104, 1);
	NEAR(stage("publish")->ms.now, 2, 0.1);
	NEAR(stage("infer")->ms.now, 92, 0.6);
	UNKNOWN(facts.latency_ms.now);
	NEAR(facts.throttled_ms, 104, 1);
}
END_TEST

/* Ids that are used again are those of other frames, with FRAME records and without. */
START_LOOP_TEST(ids_may_repeat, 0, 8)
{
	static const uint64_t after[] = {100, 4, 2, 0};
	const struct simulation_model model = camera;
	hot_s = 60;
	begin(&(struct simulation_options){
		.model = model, .change = heats, .ids = after[_i / 2], .tags = _i % 2});
	run(120);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.3);
	NEAR(facts.frame_ms.now, 104, 0.6);
	NEAR(facts.busy_ms.now, 104, 0.6);
	NEAR(facts.latency_ms.now, 104, 0.6);
	NEAR(facts.since_s, 60, 2);
	NEAR((double)facts.frames, 60 * 15 + 60 / 0.104, 5);
	NEAR(stage("infer")->ms.now, 92, 0.6);
	if (_i % 2) {
		UNKNOWN(facts.run_delay_ms.now);
	}
}
END_TEST

START_TEST(stages_by_id_are_like_others)
{
	struct simulation_model model = camera;
	model.stage[2].parent = 0;
	model.stage[1].by_id = true;
	hot_s = 60;
	begin(&(struct simulation_options){.model = model, .change = heats});
	run(120);
	NEAR(stage("infer")->ms.now, 92, 0.6);
	NEAR(stage("infer")->ms.usual, 40, 0.6);
	NEAR(facts.busy_ms.now, 104, 0.6);
}
END_TEST

static void a_little_slower(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stage[1].mean_ms = t_s > 90 ? 44 : 36;
}

/* What is nested in the stage is part of what its deadline is about; the camera sets the pace. */
START_TEST(a_stage_is_compared_with_its_own_deadline)
{
	struct simulation_model model = camera;
	model.stage[1].deadline_ms = 45;
	begin(&(struct simulation_options){.model = model, .change = a_little_slower});
	run(120);
	NEAR(stage("infer")->deadline_ms, 45, 1e-9);
	NEAR(stage("infer")->took_ms.now, 50, 0.6);
	NEAR(stage("infer")->took_ms.usual, 42, 0.6);
	NEAR(stage("infer")->miss_percent, 99, 2);
	NEAR(facts.frame_ms.now, facts.frame_ms.usual, 0.5);
	NEAR(facts.since_s, 30, 3);
	UNKNOWN(stage("capture")->deadline_ms);
}
END_TEST

static void slow_machine(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stage[1].mean_ms = t_s > 200 ? 1500 : 900;
}

/* A frame a second: segments hold some frames each. */
START_TEST(few_frames_a_second_are_enough)
{
	begin(&(struct simulation_options){.model = camera, .change = slow_machine});
	run(300);
	NEAR(facts.frame_ms.now, 1512, 20);
	NEAR(facts.frame_ms.usual, 912, 20);
	NEAR(facts.since_s, 100, 12);
	ck_assert_uint_ge(facts.frames_now, 10);
}
END_TEST

/* Noise is no change: a loop without a limit, of which every 30th frame is slow. */
START_LOOP_TEST(noise_is_as_usual, 1, 21)
{
	struct simulation_model model = camera;
	model.camera_fps = 0;
	model.stage[1].sigma_ms = 10;
	model.slow_chance = 0.033;
	model.slow_ms = 60;
	begin(&(struct simulation_options){.model = model, .seed = (uint64_t)_i * 7919});
	run(120);
	UNKNOWN(facts.since_s);
	NEAR(facts.frame_ms.now, 54, 5);
	NEAR(facts.frame_ms.usual, facts.frame_ms.now, 6);
}
END_TEST

START_TEST(slow_frames_have_a_period_and_a_cause)
{
	struct simulation_model model = camera;
	model.slow_every = 20;
	model.slow_ms = 100;
	model.slow_stage = 1;
	model.slow_context = (struct simulation_context){
		.run_delay_ms = 60, .involuntary = 9, .major_faults = 3};
	model.deadline_ms = 70;
	model.target_fps = 20;
	begin(&(struct simulation_options){.model = model});
	run(120);
	NEAR(facts.slow_share, 0.05, 0.002);
	NEAR(facts.slow_period_frames, 20, 0.01);
	NEAR(facts.slow_regularity, 0, 0.01);
	NEAR(facts.slow_run_delay_ms, 60, 1);
	NEAR(facts.slow_major_faults, 3, 0.1);
	ck_assert_double_gt(facts.slow_excess_ms, 60);
	ck_assert_uint_eq(facts.slow_stages, 1);
	NEAR(stage("infer")->excess_ms, 100 / 20.0, 0.1);
	NEAR(facts.miss_percent.now, 5, 1.5);
	NEAR(facts.deadline_ms, 70, 1e-9);
	NEAR(facts.target_ms, 50, 1e-9);
}
END_TEST

START_TEST(slow_runs_explain_all_that_they_cost)
{
	struct simulation_model model = camera;
	model.camera_fps = 0;
	model.slow_every = 10;
	model.slow_ms = 35; /* less than twice the usual */
	model.slow_stage = 1;
	begin(&(struct simulation_options){.model = model});
	run(120);
	NEAR(facts.slow_share * facts.slow_excess_ms, 3.5, 0.1);
	NEAR(stage("infer")->excess_ms, 3.5, 0.1);
	NEAR(stage("resize")->excess_ms, 0, 0.1);
}
END_TEST

START_TEST(slow_frames_of_any_stage_are_of_several_stages)
{
	struct simulation_model model = camera;
	model.slow_chance = 0.03;
	model.slow_ms = 100;
	model.slow_stage = -1;
	begin(&(struct simulation_options){.model = model});
	run(120);
	ck_assert_uint_eq(facts.slow_stages, 4);
	ck_assert_double_gt(facts.slow_regularity, 0.5);
}
END_TEST

static void warms_up(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stage[1].mean_ms = t_s < 20 ? 120 : 40;
}

START_TEST(a_slow_start_is_warming_up)
{
	begin(&(struct simulation_options){.model = camera, .change = warms_up});
	run(120);
	ck_assert(facts.warming_up);
	UNKNOWN(facts.since_s);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.3);
}
END_TEST

static void recovers(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	model->stage[1].mean_ms = t_s < 100 ? 120 : 40;
}

START_TEST(the_fastest_time_is_its_own_usual)
{
	hot_s = 0;
	begin(&(struct simulation_options){.model = camera, .change = recovers, .sense = sensors});
	run(120);
	NEAR(facts.frame_ms.now, 1000 / 15.0, 0.5);
	NEAR(facts.frame_ms.usual, facts.frame_ms.now, 1e-9);
	NEAR(series(FACT_TEMPERATURE)->mean.usual, 81, 1e-6);
	UNKNOWN(series(FACT_TEMPERATURE)->first_s);
	UNKNOWN(facts.since_s);
}
END_TEST

/* Hot, and the frames come at the camera's rate all the same. */
START_TEST(sensors_have_a_usual_level_without_a_drop)
{
	hot_s = 80;
	begin(&(struct simulation_options){.model = camera, .sense = sensors});
	run(120);
	UNKNOWN(facts.since_s);
	NEAR(facts.frame_ms.usual, facts.frame_ms.now, 0.3);
	NEAR(series(FACT_TEMPERATURE)->mean.now, 81, 1e-6);
	ck_assert_double_lt(series(FACT_TEMPERATURE)->mean.usual, 75);
	ck_assert_double_lt(fabs(series(FACT_TEMPERATURE)->frames_match), 0.5);
}
END_TEST

START_TEST(frames_of_the_warm_up_are_not_counted)
{
	begin(&(struct simulation_options){.model = camera, .change = warms_up, .warmup = 170});
	run(60);
	ck_assert(!facts.warming_up);
	NEAR((double)facts.frames, 15 * 40 - 10, 15);
}
END_TEST

START_TEST(what_is_older_than_the_records_is_from_history)
{
	hot_s = 1200;
	begin(&(struct simulation_options){.model = camera, .change = heats, .sense = sensors});
	run(1800);
	NEAR(facts.span_s, 1800, 2);
	NEAR(facts.frame_ms.usual, 1000 / 15.0, 0.5);
	NEAR(facts.frame_ms.now, 104, 0.6);
	NEAR(stage("infer")->ms.usual, 40, 1);
	NEAR(stage("resize")->ms.usual, 6, 0.3);
	NEAR(facts.busy_ms.usual, 52, 1);
	NEAR(facts.since_s, 600, 80);
	NEAR(series(FACT_TEMPERATURE)->mean.usual, 60, 0.1);
	NEAR(series(FACT_TEMPERATURE)->first_s, 600, 80);
	NEAR((double)facts.frames, 1200 * 15 + 600 / 0.104, 300);
	ck_assert_double_gt(series(FACT_TEMPERATURE)->frames_match, 0.6);
}
END_TEST

START_TEST(an_app_that_ended_is_judged_by_its_last_frames)
{
	begin(&(struct simulation_options){.model = camera});
	simulation_run(simulation, 60);
	apps_detach(simulation->core.apps, simulation->process, PROCESS_ENDED, simulation->now_ns);
	simulation->now_ns += UINT64_C(3600000000000);
	simulation_gather(simulation, &facts);
	NEAR(facts.frame_ms.now, 1000 / 15.0, 0.3);
	NEAR(facts.span_s, 60, 1);
}
END_TEST

START_TEST(a_process_with_as_many_threads_as_can_record_is_crowded)
{
	begin(&(struct simulation_options){.model = camera});
	simulation_run(simulation, 60);
	simulation->process->threads = 15;
	simulation_gather(simulation, &facts);
	ck_assert_uint_eq(facts.crowded, 0);
	simulation->process->threads = 16; /* of a mapping of 64 KiB */
	simulation_gather(simulation, &facts);
	ck_assert_uint_eq(facts.crowded, 16);
}
END_TEST

static double cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Generous: sanitizers, and other work on the machine. */
START_TEST(two_minutes_are_simulated_at_once)
{
	double start_s = cpu_s();
	hot_s = 60;
	begin(&(struct simulation_options){.model = camera, .change = heats, .sense = sensors});
	simulation_run(simulation, 120);
	double ran_s = cpu_s() - start_s;
	simulation_gather(simulation, &facts);
	double gathered_s = cpu_s() - start_s - ran_s;
	printf("120 s in %.3f s, facts in %.2f ms\n", ran_s, gathered_s * 1e3);
	ck_assert_double_lt(ran_s, 0.5);
	ck_assert_double_lt(gathered_s, 0.1);
}
END_TEST
