/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of an app: whose statistics they are, which are kept, what goes on from one to the next. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/frames/settings.h"
#include "daemon/core/runs/runs.h"
#include "daemon/core/stages/stats.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

static double mean_ms(const struct app *app, const char *name, bool lifetime)
{
	double scratch[1024];
	const struct window_query query = {.lifetime = lifetime};
	for (size_t i = 0; i < app->stages; i++) {
		if (strcmp(app->stage[i]->name, name) == 0) {
			struct stage_answer answer;
			stage_ask(app->stage[i], &query, scratch, &answer);
			return answer.summary.mean;
		}
	}
	return NAN;
}

/* One process from start to end that runs `infer` count times and ticks as often. */
static struct app *one_run(uint64_t start_ns, int count, uint64_t duration_ns, enum process_end how)
{
	struct app_process *p = attach_as("cam", 1000, (pid_t)(start_ns / S), start_ns);
	struct app *app = p->app;
	declare(p, 0, "infer", "");
	drained_ns = start_ns + 20 * S;
	for (int i = 0; i < count; i++) {
		uint64_t at_ns = start_ns + (uint64_t)i * duration_ns;
		put_run(p, 0, at_ns, duration_ns);
		const struct proto_record tick = {.kind = PROTO_KIND_FRAME,
			.start_ns = at_ns + duration_ns,
			.frame = PROTO_NO_FRAME};
		put(p, &tick);
	}
	p->accounting = (struct app_accounting){
		.sent = 2 * (uint64_t)count, .received = 2 * (uint64_t)count};
	p->frame_state.pass_ns = drained_ns;
	apps_drained(apps, p);
	apps_sample(apps, start_ns + 20 * S);
	apps_detach(apps, p, how, start_ns + 20 * S);
	return app;
}

FIXTURE(setup, teardown);

START_TEST(each_run_has_its_own_statistics)
{
	struct app *app = one_run(T0, 100, 10 * MS, PROCESS_DIED);
	ck_assert_uint_eq(app->run, 1);
	one_run(T0 + 100 * S, 50, 2 * MS, PROCESS_ENDED);
	ck_assert_uint_eq(app->run, 2);
	ck_assert_uint_eq(app->stages, 1);
	ck_assert_double_eq_tol(mean_ms(app, "infer", false), 2, 1e-9);
	ck_assert_double_eq_tol(mean_ms(app, "infer", true), 2, 1e-9);
	ck_assert_uint_eq(app->since_ns, T0 + 100 * S);
	ck_assert_uint_eq(app->frames->count, 50);
	ck_assert_str_eq(app->last_words, "");
	struct app_accounting sums;
	app_accounting(app, &sums);
	ck_assert_uint_eq(sums.sent, 100);

	const struct app *before = app_run(app, -1);
	ck_assert_ptr_nonnull(before);
	ck_assert_uint_eq(before->run, 1);
	ck_assert_double_eq_tol(mean_ms(before, "infer", false), 10, 1e-9);
	ck_assert_uint_eq(before->stage[0]->window, 100); /* no more than it holds */
	ck_assert_uint_eq(before->frames->count, 100);
	ck_assert_str_eq(before->last_words, "died");
	ck_assert_int_eq(app_state(before, T0 + 200 * S), APP_DIED);
	ck_assert_uint_eq(before->since_ns, T0);
	ck_assert_uint_eq(before->last_seen_ns, T0 + 20 * S);
	app_accounting(before, &sums);
	ck_assert_uint_eq(sums.sent, 200);
	ck_assert_ptr_eq(app_run(app, 0), app);
	ck_assert_ptr_null(app_run(app, -2));
	ck_assert_ptr_null(app_run(app, 1));
}
END_TEST

START_TEST(all_runs_add_up)
{
	struct app *app = one_run(T0, 100, 10 * MS, PROCESS_ENDED);
	one_run(T0 + 100 * S, 300, 2 * MS, PROCESS_ENDED);
	struct app_process *p = attach_as("cam", 1000, 12, T0 + 200 * S);
	declare(p, 0, "other", "");
	drained_ns = T0 + 202 * S;
	put_run(p, 0, T0 + 201 * S, 5 * MS);
	const struct app *all = apps_all_runs(apps, app, T0 + 203 * S);
	ck_assert_ptr_nonnull(all);
	ck_assert_uint_eq(all->stages, 2);
	ck_assert_uint_eq(all->since_ns, T0);
	ck_assert_double_eq_tol(mean_ms(all, "infer", true), 4, 1e-9);
	ck_assert_double_eq_tol(mean_ms(all, "infer", false), 2, 1e-9); /* the latest that has it */
	ck_assert_double_eq_tol(mean_ms(all, "other", true), 5, 1e-9);
	ck_assert_uint_eq(all->stage[1]->count, 400);
	ck_assert_uint_eq(all->stage[1]->total_ns, 1600 * MS);
	ck_assert_uint_eq(all->frames->count, 400);
	struct frames_stats stats;
	double scratch[600];
	const struct window_query lifetime = {.lifetime = true};
	frames_ask(all->frames, &lifetime, scratch, &stats);
	ck_assert_uint_eq(stats.times.count, 398); /* no delta from run to run */
	ck_assert_double_eq_tol(stats.fps, 398 / (99 * 0.010 + 299 * 0.002), 1e-6);
	struct app_accounting sums;
	app_accounting(all, &sums);
	ck_assert_uint_eq(sums.sent, 800);
	/* asked again at the same time it is the same; a change makes another */
	for (int i = 0; i < STAGE_CAPACITY; i++) { /* the window grows */
		put_run(p, 0, T0 + 201 * S, 5 * MS);
	}
	ck_assert_ptr_eq(apps_all_runs(apps, app, T0 + 203 * S), all);
	ck_assert_ptr_eq(all->stage[0]->runs, app->stage[0]->runs);
	ck_assert_uint_eq(all->stage[0]->count, 1);
	ck_assert_double_eq_tol(mean_ms(all, "other", false), 5, 1e-9);
	all = apps_all_runs(apps, app, T0 + 204 * S);
	ck_assert_uint_eq(all->stage[0]->count, 1 + STAGE_CAPACITY);
}
END_TEST

/* One run of `load` that grew the process by so much. */
static struct app *grown(uint64_t start_ns, int64_t bytes)
{
	struct app_process *p = attach_as("cam", 1000, (pid_t)(start_ns / S), start_ns);
	struct app *app = p->app;
	declare(p, 0, "load", "");
	drained_ns = start_ns + S;
	const struct proto_record cost = {.kind = PROTO_KIND_COST,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = UINT64_MAX,
		.frame = (uint64_t)bytes};
	put(p, &cost);
	put_run(p, 0, start_ns, MS);
	apps_detach(apps, p, PROCESS_ENDED, start_ns + S);
	return app;
}

START_TEST(memory_of_all_runs_adds_up)
{
	struct app *app = grown(T0, 5 << 20);
	grown(T0 + 10 * S, -(1 << 20));
	grown(T0 + 20 * S, 2 << 20);
	const struct stage *all = apps_all_runs(apps, app, T0 + 30 * S)->stage[0];
	ck_assert_uint_eq(all->rss_measured, 3);
	ck_assert_int_eq(all->rss_growth_max, 5 << 20);
	ck_assert_int_eq(all->rss_growth_total, 6 << 20);
	/* nonsense of a peer is no overflow */
	grown(T0 + 40 * S, INT64_MAX);
	ck_assert_int_eq(
		apps_all_runs(apps, app, T0 + 50 * S)->stage[0]->rss_growth_max, INT64_MAX);
}
END_TEST

START_TEST(nesting_survives_the_sum_of_runs)
{
	for (unsigned run = 0; run < 2; run++) {
		uint64_t at_ns = T0 + run * 100 * S;
		struct app_process *p = attach_as("cam", 1000, 12 + (pid_t)run, at_ns);
		declare(p, run, "outer", "");
		declare(p, 1 - run, "inner", "");
		drained_ns = at_ns + 10 * S;
		for (uint64_t i = 0; i < 10; i++) {
			struct proto_record r = {.stage = (uint16_t)(1 - run),
				.kind = PROTO_KIND_COMPLETE,
				.flags = PROTO_RECORD_NESTED | 1 << PROTO_RECORD_DEPTH_SHIFT,
				.cpu_us = PROTO_CPU_NOT_MEASURED,
				.start_ns = at_ns + i * S + 1,
				.value = MS,
				.frame = PROTO_NO_FRAME};
			if (run == 1 && i > 0) { /* inner is only of the first run */
				continue;
			}
			if (run == 0) {
				put(p, &r);
			}
			r.stage = (uint16_t)run;
			r.flags = 0;
			r.value = 2 * MS;
			put(p, &r);
		}
		apps_detach(apps, p, PROCESS_ENDED, at_ns + 11 * S);
	}
	const struct app *all = apps_all_runs(apps, apps_find(apps, "cam"), T0 + 200 * S);
	ck_assert_uint_eq(all->stages, 2);
	ck_assert_str_eq(all->stage[1]->name, "inner");
	ck_assert_uint_eq(all->stage[1]->parent[0].serial, all->stage[0]->serial);
}
END_TEST

START_TEST(processes_that_overlap_are_one_run)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_process *q = attach_as("cam", 1000, 13, T0 + 5 * S);
	declare(p, 0, "infer", "");
	declare(q, 0, "infer", "");
	put_run(p, 0, T0, 10 * MS);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 10 * S);
	put_run(q, 0, T0 + 9 * S, 2 * MS);
	p = attach_as("cam", 1000, 14, T0 + 11 * S);
	const struct app *app = q->app;
	ck_assert_uint_eq(app->run, 1);
	ck_assert_uint_eq(app->runs, 0);
	ck_assert_uint_eq(app->stage[0]->count, 2);
	apps_detach(apps, q, PROCESS_ENDED, T0 + 12 * S);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 13 * S);
	attach_as("cam", 1000, 15, T0 + 14 * S);
	ck_assert_uint_eq(app->run, 2);
	ck_assert_uint_eq(app->runs, 1);
	ck_assert_uint_eq(app->stages, 0);
	ck_assert_uint_eq(apps_counts(apps)->stages, 0);
}
END_TEST

START_TEST(a_process_that_attaches_again_goes_on_with_its_run)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "infer", "");
	put_run(p, 0, T0, 10 * MS);
	const struct app *app = p->app;
	apps_detach(apps, p, PROCESS_ENDED, T0 + S); /* it called exec, or closed the library */
	p = attach_as("cam", 1000, 12, T0 + 2 * S);
	declare(p, 0, "infer", "");
	put_run(p, 0, T0 + 3 * S, 10 * MS);
	ck_assert_uint_eq(app->run, 1);
	ck_assert_uint_eq(app->since_ns, T0);
	ck_assert_uint_eq(app->stage[0]->count, 2);
	apps_detach(apps, p, PROCESS_RELEASED, T0 + 4 * S); /* the daemon let go */
	p = attach_as("cam", 1000, 12, T0 + 5 * S);
	ck_assert_uint_eq(app->run, 1);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 6 * S);
	p = NULL; /* the same pid in another life */
	ck_assert_int_eq(apps_attach(apps, "cam", 1000, 12, 2, 65536, T0 + 7 * S, &p), 0);
	ck_assert_uint_eq(app->run, 2);
}
END_TEST

START_TEST(ever_new_names_do_not_hold_the_metrics_of_old_ones)
{
	size_t before = metrics_count(metrics);
	for (uint32_t run = 0; run < 5; run++) {
		struct app_process *p = attach_as("cam", 1000, 12 + (pid_t)run, T0 + run * S);
		for (uint32_t i = 0; i < 100; i++) {
			char name[32];
			snprintf(name, sizeof(name), "s%u_%u", run, i);
			declare(p, i, name, "");
			put_run(p, (uint16_t)i, T0 + run * S, MS);
		}
		ck_assert_uint_le(metrics_count(metrics) - before, 100 * 10);
		apps_detach(apps, p, PROCESS_ENDED, T0 + run * S + MS);
	}
}
END_TEST

START_TEST(a_run_without_events_leaves_nothing_behind)
{
	struct app *app = one_run(T0, 10, MS, PROCESS_ENDED);
	apps_detach(apps, attach_as("cam", 1000, 12, T0 + 100 * S), PROCESS_ENDED, T0 + 101 * S);
	one_run(T0 + 200 * S, 10, 2 * MS, PROCESS_ENDED);
	ck_assert_uint_eq(app->run, 3);
	ck_assert_uint_eq(app->runs, 1);
	ck_assert_uint_eq(app_run(app, -1)->run, 1);
}
END_TEST

START_TEST(the_last_eight_before_the_latest_are_kept)
{
	struct app *app = NULL;
	for (uint64_t i = 1; i <= 11; i++) {
		app = one_run(T0 + i * 100 * S, 5, i * MS, PROCESS_ENDED);
	}
	ck_assert_uint_eq(app->runs, APP_RUNS_KEPT);
	for (int run = 0; run >= -APP_RUNS_KEPT; run--) {
		ck_assert_double_eq_tol(mean_ms(app_run(app, run), "infer", false), 11 + run, 1e-9);
	}
	ck_assert_ptr_null(app_run(app, -APP_RUNS_KEPT - 1));
	ck_assert_uint_eq(
		apps_counts(apps)->stages, 1); /* previous ones take no place of a stage */
}
END_TEST

START_TEST(metrics_go_on_with_the_stages_of_the_same_names)
{
	const struct metric *rate, *fps;
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "infer", "");
	declare(p, 1, "once", "");
	put_run(p, 0, T0, 10 * MS);
	put_run(p, 1, T0, 10 * MS);
	record(p, PROTO_KIND_FRAME, 0, T0, 10 * MS, PROTO_NO_FRAME);
	apps_sample(apps, T0 + S);
	rate = metric("stage/cam/infer/rate");
	fps = metric("frame/cam/fps");
	uint32_t serial = rate->serial;
	apps_detach(apps, p, PROCESS_ENDED, T0 + 2 * S);

	p = attach_as("cam", 1000, 13, T0 + 3 * S);
	apps_sample(apps, T0 + 4 * S); /* before its first event */
	null_because("stage/cam/infer/rate", "no event in the interval");
	declare(p, 0, "infer", "");
	drained_ns = T0 + 5 * S;
	put_run(p, 0, T0 + 4 * S, 2 * MS);
	apps_sample(apps, T0 + 5 * S);
	ck_assert_ptr_eq(metric("stage/cam/infer/rate"), rate);
	ck_assert_uint_eq(rate->serial, serial);
	is("stage/cam/infer/mean_ms", 2);
	null_because("stage/cam/once/rate", "no event in the interval");
	ck_assert_ptr_eq(metric("frame/cam/fps"), fps);
	apps_sample(apps, T0 + (3 + APP_RUN_METRICS_S) * S);
	null_because("stage/cam/once/rate", "no event in the interval");
	apps_sample(apps, T0 + (4 + APP_RUN_METRICS_S) * S);
	ck_assert_ptr_null(metrics_find(metrics, "stage/cam/once/rate"));
	ck_assert_ptr_null(metrics_find(metrics, "frame/cam/fps"));
	ck_assert_ptr_eq(metric("stage/cam/infer/rate"), rate);
}
END_TEST

/* Stages of current runs are worth more than all of those that are over. */
START_TEST(previous_runs_make_room_first)
{
	const struct apps_options options = {
		.stage_window = 1024, .frame_window = 300, .stage_memory = 40 * stage_bytes(1024)};
	apps_destroy(apps);
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
	struct app *app = NULL;
	for (uint64_t i = 1; i <= 6; i++) {
		app = one_run(T0 + i * 100 * S, 2000, MS, PROCESS_ENDED);
	}
	const struct stage_budget *budget = &apps_counts(apps)->stage_budget;
	ck_assert_uint_ge(app->runs, 1);
	ck_assert_uint_gt(budget->past, 0);
	ck_assert_uint_le(budget->used + budget->past, budget->limit);
	uint64_t oldest = app->previous[app->runs - 1]->run;
	struct app_process *p = attach_as("many", 1000, 20, T0 + 800 * S);
	drained_ns = T0 + 801 * S;
	for (uint32_t i = 0; i < 39; i++) {
		char name[16];
		snprintf(name, sizeof(name), "s%u", i);
		declare(p, i, name, "");
		put_run(p, (uint16_t)i, T0 + 800 * S, MS);
		ck_assert_uint_le(budget->used + budget->past, budget->limit);
		if (app->runs > 0) {
			ck_assert_uint_ge(app->previous[app->runs - 1]->run, oldest);
			oldest = app->previous[app->runs - 1]->run;
		}
	}
	ck_assert_uint_eq(p->app->stages, 39);
	ck_assert_uint_eq(apps_counts(apps)->stages_refused, 0);
	ck_assert_uint_eq(app->runs, 0);
	ck_assert_uint_eq(app->stages, 1); /* its latest run is still there */
	ck_assert_uint_eq(budget->past, 0);
}
END_TEST

START_TEST(the_oldest_run_of_who_holds_most_goes_first)
{
	const struct apps_options options = {
		.stage_window = 1024, .frame_window = 300, .stage_memory = 64 * stage_bytes(1024)};
	apps_destroy(apps);
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
	struct app_process *p = attach_as("small", 2000, 30, T0);
	declare(p, 0, "infer", "");
	put_run(p, 0, T0, MS);
	const struct app *small = p->app;
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	p = attach_as("small", 2000, 31, T0 + 2 * S);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 3 * S);
	ck_assert_uint_eq(small->runs, 1);
	struct app *app = NULL;
	for (uint64_t i = 1; i <= 4; i++) {
		app = one_run(T0 + i * 100 * S, 2000, MS, PROCESS_ENDED);
	}
	size_t runs = app->runs;
	ck_assert(apps_retire_run(apps));
	ck_assert_uint_eq(app->runs, runs - 1);
	ck_assert_uint_eq(small->runs, 1);
}
END_TEST

START_TEST(an_app_is_gone_when_it_did_not_come_back_in_time)
{
	one_run(T0, 10, MS, PROCESS_KILLED);
	apps_sample(apps, T0 + 49 * S);
	is("app/cam/died", 0);
	apps_sample(apps, T0 + 50 * S);
	is("app/cam/died", 1);
	struct app_process *p = attach_as("cam", 1000, 12, T0 + 60 * S);
	apps_sample(apps, T0 + 61 * S);
	is("app/cam/died", 0);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 62 * S);
	apps_sample(apps, T0 + 1000 * S);
	is("app/cam/died", 0);
}
END_TEST

static struct app_settings settings;

static void rule_cam(struct app_rules rules)
{
	struct app_section *of_cam = NULL;
	ck_assert_int_eq(app_settings_section(&settings, SECTION_APP, "cam", &of_cam), 0);
	of_cam->rules = rules;
	apps_configure(apps, &(struct apps_config){.settings = &settings});
}

START_TEST(the_operator_says_how_long_an_app_may_take)
{
	rule_cam((struct app_rules){.has_restart_within = true, .restart_within_ns = 5 * S});
	one_run(T0, 10, MS, PROCESS_DIED);
	apps_sample(apps, T0 + 24 * S);
	is("app/cam/died", 0);
	apps_sample(apps, T0 + 25 * S);
	is("app/cam/died", 1);
}
END_TEST

static struct app_process *held;

static void on_displace(void *ctx, const struct app *app)
{
	(void)ctx;
	if (held && held->app == app) {
		apps_detach(apps, held, PROCESS_ENDED, T0 + 50 * S);
		held = NULL;
	}
}

START_TEST(a_reserved_name_is_taken_by_its_user_only)
{
	struct app_process *p = NULL;
	rule_cam((struct app_rules){.reserved = false});
	ck_assert_int_eq(
		apps_observe(apps, &(struct apps_observer){.displace = on_displace, .ctx = &held}),
		0);
	held = attach_as("cam", 1000, 12, T0);
	declare(held, 0, "infer", "");
	put_run(held, 0, T0, MS);
	apps_sample(apps, T0 + S);
	rule_cam((struct app_rules){.reserved = true, .user = 2000});
	ck_assert_int_eq(apps_attach(apps, "cam", 1000, 13, 1, 65536, T0 + S, &p), -EPERM);
	ck_assert_int_eq(apps_attach(apps, "cam", 0, 13, 1, 65536, T0 + S, &p), -EPERM);
	ck_assert_ptr_nonnull(held); /* who is refused displaces nobody */
	p = attach_as("cam", 2000, 14, T0 + 2 * S);
	ck_assert_ptr_null(held);
	ck_assert_uint_eq(p->app->uid, 2000);
	ck_assert_uint_eq(p->app->run, 1);
	ck_assert_uint_eq(p->app->stages, 0);
	ck_assert_ptr_null(metrics_find(metrics, "stage/cam/infer/rate"));
	attach_as("other", 1000, 12, T0 + 2 * S);
}
END_TEST

START_TEST(root_takes_a_name_from_anybody)
{
	struct app_process *p = NULL;
	ck_assert_int_eq(
		apps_observe(apps, &(struct apps_observer){.displace = on_displace, .ctx = &held}),
		0);
	held = attach_as("cam", 1000, 12, T0);
	ck_assert_int_eq(apps_attach(apps, "cam", 1001, 13, 1, 65536, T0, &p), -EACCES);
	ck_assert_ptr_nonnull(held);
	p = attach_as("cam", 0, 14, T0 + S);
	ck_assert_ptr_null(held);
	ck_assert_uint_eq(p->app->uid, 0);
	bool told = false;
	for (uint64_t i = 1; i <= timeline_last_serial(timeline); i++) {
		told = told ||
		       strcmp(timeline_from(timeline, i)->text,
			       "detached the app of uid 1000: its name now belongs to uid 0") == 0;
	}
	ck_assert(told);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 2 * S);
	/* and it is root's for a minute */
	ck_assert_int_eq(apps_attach(apps, "cam", 1000, 12, 1, 65536, T0 + 3 * S, &p), -EACCES);
	held = attach_as("late", 1000, 15, T0 + 4 * S);
	apps_detach(apps, held, PROCESS_ENDED, T0 + 5 * S);
	held = NULL;
	attach_as("late", 0, 16, T0 + 6 * S); /* nobody holds it for an hour against root */
}
END_TEST
