/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnoses that are kept, of a simulated app that is slow for a time. */
#include "daemon/core/diagnose/diagnoses.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/status/bystanders.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/diagnose/simulation.h"
#include "tests/unit/unit.h"

static struct simulation *simulation;
static struct diagnoses *diagnoses;
static bool hot, stopped;

static struct {
	size_t calls;
	char app[PROTO_NAME_SIZE];
	bool ended;
	enum diagnosis_state state;
} seen;

static void on_change(void *ctx, const char *app, const struct diagnosis *diagnosis)
{
	ck_assert_ptr_eq(ctx, &seen);
	seen.calls++;
	seen.ended = !diagnosis;
	seen.state = diagnosis ? diagnosis->state : DIAGNOSIS_TOO_FEW;
	snprintf(seen.app, sizeof(seen.app), "%s", app);
}

static void heats(struct simulation *of, double t_s, struct simulation_model *model)
{
	(void)of;
	(void)t_s;
	model->stage[1].mean_ms = hot ? 100 : 40;
	model->stopped = stopped;
}

static void sensors(struct simulation *of, double t_s)
{
	(void)t_s;
	simulation_set(of, UNIT_CELSIUS, "temperature/max", hot ? 88 : 60, NULL);
	simulation_set(of, UNIT_BOOL, "throttle/active", hot, NULL);
	simulation_set(of, UNIT_PERCENT, "cpu/utilization", 30, NULL);
}

static void setup(void)
{
	hot = stopped = false;
	memset(&seen, 0, sizeof(seen));
	simulation = simulation_open(&(struct simulation_options){
		.model = {.camera_fps = 15,
			.target_fps = 15,
			.stages = 2,
			.stage = {{.name = "capture", .mean_ms = 4, .sigma_ms = 0.3},
				{.name = "infer", .mean_ms = 40, .sigma_ms = 1}}},
		.change = heats,
		.sense = sensors});
	ck_assert_int_eq(diagnoses_create(&simulation->core, &diagnoses), 0);
	simulation->core.diagnoses = diagnoses;
	diagnoses_observe(diagnoses, on_change, &seen);
}

static void teardown(void)
{
	diagnoses_destroy(diagnoses);
	simulation_close(simulation);
}

static void tick(void)
{
	while (diagnoses_tick(diagnoses, simulation->now_ns)) {
	}
}

static void run(int seconds)
{
	for (int i = 0; i < seconds; i++) {
		simulation_run(simulation, 1);
		tick();
	}
}

static const struct diagnosis *latest(void)
{
	return diagnoses_find(diagnoses, simulation_app(simulation), simulation->now_ns);
}

static const char *summary(void)
{
	return diagnoses_summary(diagnoses, simulation_app(simulation), simulation->now_ns);
}

FIXTURE(setup, teardown);

START_TEST(an_app_is_diagnosed_at_once_and_published_when_it_is_confirmed)
{
	ck_assert_ptr_null(latest());
	run(1);
	ck_assert_ptr_nonnull(latest());
	run(4);
	ck_assert_int_eq(latest()->state, DIAGNOSIS_HEALTHY);
	ck_assert_uint_eq(seen.calls, 0); /* once */
	run(1);
	ck_assert_uint_eq(seen.calls, 1);
	ck_assert_str_eq(seen.app, SIMULATION_APP);
	ck_assert_int_eq(seen.state, DIAGNOSIS_HEALTHY);
	ck_assert_ptr_null(summary());
	run(100);
	ck_assert_uint_eq(seen.calls, 1);
}
END_TEST

START_TEST(a_change_is_published_when_it_was_the_same_twice)
{
	const char *app;
	run(61);
	hot = true;
	run(40);
	ck_assert_int_eq(latest()->state, DIAGNOSIS_FINDINGS);
	ck_assert_int_eq(latest()->finding[0].cause, CAUSE_THERMAL_THROTTLING);
	ck_assert_uint_ge(seen.calls, 2);
	ck_assert_int_eq(seen.state, DIAGNOSIS_FINDINGS);
	ck_assert_str_eq(summary(), latest()->summary);
	ck_assert_int_eq(diagnoses_published(diagnoses, 0, &app)->finding[0].cause,
		CAUSE_THERMAL_THROTTLING);
	ck_assert_str_eq(app, SIMULATION_APP);
	ck_assert_ptr_null(diagnoses_published(diagnoses, 1, &app));
}
END_TEST

START_TEST(a_metric_of_the_app_has_its_summary)
{
	const uint64_t *now_ns = &simulation->now_ns;
	run(61);
	hot = true;
	run(40);
	ck_assert_str_eq(diagnoses_of_metric(diagnoses, "frame/cam/fps", *now_ns), summary());
	ck_assert_str_eq(
		diagnoses_of_metric(diagnoses, "stage/cam/infer/p95_ms", *now_ns), summary());
	ck_assert_ptr_null(diagnoses_of_metric(diagnoses, "frame/other/fps", *now_ns));
	ck_assert_ptr_null(diagnoses_of_metric(diagnoses, "temperature/cam", *now_ns));
	ck_assert_ptr_null(diagnoses_of_metric(diagnoses, "frame/", *now_ns));
}
END_TEST

START_TEST(what_was_published_is_withdrawn_when_the_app_ends)
{
	const char *app;
	run(30);
	ck_assert_uint_eq(seen.calls, 1);
	apps_detach(simulation->core.apps, simulation->process, PROCESS_ENDED, simulation->now_ns);
	ck_assert_ptr_nonnull(latest()); /* its report says it, too */
	tick();
	ck_assert_uint_eq(seen.calls, 2);
	ck_assert(seen.ended);
	ck_assert_ptr_null(diagnoses_published(diagnoses, 0, &app));
	simulation->now_ns += UINT64_C(40000000000);
	tick();
	ck_assert_uint_eq(seen.calls, 2);
	ck_assert_ptr_null(latest());
	const struct facts *facts;
	alloc_faults_start(1); /* its large memory went with the app */
	ck_assert_ptr_null(diagnoses_ask(
		diagnoses, simulation_app(simulation), simulation->now_ns, 0, &facts));
	alloc_faults_stop();
}
END_TEST

START_TEST(a_question_between_the_halves_of_a_turn_postpones_it)
{
	const struct facts *facts;
	simulation_run(simulation, 30);
	ck_assert(diagnoses_tick(diagnoses, simulation->now_ns));
	ck_assert_ptr_null(latest());
	ck_assert_ptr_nonnull(diagnoses_ask(
		diagnoses, simulation_app(simulation), simulation->now_ns, 0, &facts));
	ck_assert(!diagnoses_tick(diagnoses, simulation->now_ns));
	simulation_run(simulation, 1);
	ck_assert(diagnoses_tick(diagnoses, simulation->now_ns)); /* its turn is still due */
	ck_assert(!diagnoses_tick(diagnoses, simulation->now_ns));
	ck_assert_uint_eq(latest()->t_ns, simulation->now_ns);
	simulation_run(simulation, 1);
	ck_assert(!diagnoses_tick(diagnoses, simulation->now_ns));
}
END_TEST

START_TEST(a_silence_is_over_with_the_next_frame)
{
	run(30);
	stopped = true;
	run(20);
	ck_assert_int_eq(latest()->finding[0].cause, CAUSE_STOPPED);
	stopped = false;
	simulation_run(simulation, 1);
	ck_assert_ptr_null(latest());
	tick();
	ck_assert_int_ne(latest()->finding[0].cause, CAUSE_STOPPED);
}
END_TEST

START_TEST(an_app_that_ended_keeps_the_processes_of_its_time)
{
	static struct bystanders others;
	const struct facts *facts;
	others = (struct bystanders){.t_ns = SIMULATION_T0,
		.most[USE_CPU] = {{.pid = 20, .name = "then", .use = {60, NAN, NAN}}}};
	simulation->core.bystanders = &others;
	run(10);
	apps_detach(simulation->core.apps, simulation->process, PROCESS_ENDED, simulation->now_ns);
	memcpy(others.most[USE_CPU][0].name, "now", 4);
	const struct diagnosis *diagnosis =
		diagnoses_ask(diagnoses, simulation_app(simulation), simulation->now_ns, 0, &facts);
	ck_assert_uint_eq(diagnosis->t_ns, simulation->now_ns);
	ck_assert_str_eq(facts->process[0].name, "then");
}
END_TEST

START_TEST(one_that_is_asked_for_is_as_young_as_wanted)
{
	const struct facts *facts;
	const struct app *app = simulation_app(simulation);
	run(30);
	uint64_t made_ns = latest()->t_ns, now_ns = simulation->now_ns;
	ck_assert_uint_lt(made_ns, now_ns);
	const struct diagnosis *old =
		diagnoses_ask(diagnoses, app, now_ns, UINT64_C(60000000000), &facts);
	ck_assert_uint_eq(old->t_ns, made_ns);
	ck_assert_str_eq(facts->app, SIMULATION_APP);
	ck_assert_uint_gt(facts->frames, 100);
	ck_assert_uint_eq(diagnoses_ask(diagnoses, app, now_ns, 1000, &facts)->t_ns, now_ns);
}
END_TEST

START_TEST(without_an_observer_nothing_is_called)
{
	diagnoses_observe(diagnoses, NULL, &seen);
	run(30);
	ck_assert_uint_eq(seen.calls, 0);
}
END_TEST
