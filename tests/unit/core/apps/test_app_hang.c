/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs: when one is told, when not, and what is told when it ends. */
#include "daemon/core/apps/state.h"

#include <stdlib.h>

#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

/* A stage with 40 runs of this duration. */
static struct app_process *started(const char *name, uint64_t duration_ns)
{
	struct app_process *p = attach_as(name, 1000, 12, T0);
	declare(p, 0, "total", "");
	declare(p, 1, "infer", "");
	for (uint64_t i = 0; i < 40; i++) {
		put_run(p, 0, T0, 2 * duration_ns);
		put_run(p, 1, T0, duration_ns);
	}
	apps_sample(apps, T0 + 10 * S);
	return p;
}

static void open_stage(
	struct app_process *p, uint32_t index, uint64_t start_ns, uint64_t frame, uint32_t tid)
{
	const struct proto_open_stage open = {.start_ns = start_ns, .frame = frame, .stage = index};
	apps_open_add(p, &open, tid, tid);
}

FIXTURE(setup, teardown);

START_TEST(a_stage_open_for_ten_times_its_p99_hangs)
{
	struct app_process *p = started("cam", 20 * MS);
	uint64_t t = T0 + 20 * S;
	open_stage(p, 1, t, 8841, 7);
	uint64_t told = timeline_last_serial(timeline);
	apps_sample(apps, t + 999 * MS); /* over ten times, but not a second */
	ck_assert_uint_eq(timeline_last_serial(timeline), told);
	ck_assert_double_eq(metric("app/cam/hung")->value, 0);
	apps_sample(apps, t + 3200 * MS);
	ck_assert_str_eq(last_text(), "hangs in `infer` for 3.2 s, frame 8841");
	const struct timeline_entry *e = timeline_from(timeline, told + 1);
	ck_assert_str_eq(e->subject, "cam");
	ck_assert_int_eq(e->level, TIMELINE_WARNING);
	is("app/cam/hung", 1);
	is("app/cam/processes", 1);
	ck_assert_uint_eq(p->app->hangs.total, 1);
	for (uint64_t i = 4; i < 100; i++) { /* told once */
		apps_sample(apps, t + i * S);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 1);
	apps_open_clear(p);
	apps_sample(apps, t + 100 * S);
	ck_assert_str_eq(last_text(), "went on in `infer` after 1 min 40 s, frame 8841");
	ck_assert_double_eq(metric("app/cam/hung")->value, 0);
	apps_sample(apps, t + 101 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 2);
}
END_TEST

START_TEST(a_slow_stage_and_a_new_one_do_not_hang)
{
	struct app_process *p = started("cam", 400 * MS); /* p99 400 ms: 4 s is its bar */
	declare(p, 2, "rare", "");
	for (uint64_t i = 0; i < HANG_MIN_RUNS - 1; i++) {
		put_run(p, 2, T0, MS);
	}
	uint64_t t = T0 + 20 * S, told = timeline_last_serial(timeline);
	open_stage(p, 1, t, PROTO_NO_FRAME, 7);
	open_stage(p, 2, t, PROTO_NO_FRAME, 8);
	apps_sample(apps, t + 3900 * MS);
	ck_assert_uint_eq(timeline_last_serial(timeline), told);
	apps_sample(apps, t + 4100 * MS);
	ck_assert_str_eq(last_text(), "hangs in `infer` for 4.1 s");
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 1);
	put_run(p, 2, T0, MS);
	apps_sample(apps, t + 4200 * MS);
	ck_assert_str_eq(last_text(), "hangs in `rare` for 4.2 s");
}
END_TEST

/* The daemon was started again: how long this stage takes is not known, so it may hang or not. */
START_TEST(what_was_open_before_the_daemon_came_is_not_known_to_hang)
{
	struct app_process *p = started("cam", 20 * MS);
	declare(p, 2, "new", "");
	apps_sample(apps, T0 + 20 * S);
	ck_assert_double_eq(metric("app/cam/hung")->value, 0);
	open_stage(p, 2, T0 - 5 * S, PROTO_NO_FRAME, 7);
	open_stage(p, 1, T0 + 19 * S + 900 * MS, PROTO_NO_FRAME, 8); /* another thread works */
	apps_sample(apps, T0 + 20 * S + 1 * MS);
	null_because("app/cam/hung", "open since before the daemon started");
	open_stage(p, 1, T0 + 20 * S, PROTO_NO_FRAME, 7); /* inside of it something goes on */
	apps_sample(apps, T0 + 20 * S + 2 * MS);
	ck_assert_double_eq(metric("app/cam/hung")->value, 0);
}
END_TEST

START_TEST(only_the_innermost_stage_is_told)
{
	struct app_process *p = started("cam", 20 * MS);
	uint64_t t = T0 + 20 * S, told = timeline_last_serial(timeline);
	open_stage(p, 0, t, 5, 7);
	open_stage(p, 1, t + MS, 5, 7);
	apps_sample(apps, t + 2 * S);
	ck_assert_str_eq(last_text(), "hangs in `infer` for 2.0 s, frame 5");
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 1);
	apps_open_clear(p); /* the inner one went on, the outer one is late for that reason */
	open_stage(p, 0, t, 5, 7);
	apps_sample(apps, t + 3 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 2);
	ck_assert_uint_eq(p->app->hangs.count, 1);
	apps_open_clear(p);
	apps_sample(apps, t + 4 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 2);
	ck_assert_uint_eq(p->app->hangs.total, 1);
}
END_TEST

START_TEST(two_threads_hang_each_for_itself)
{
	struct app_process *p = started("cam", 20 * MS);
	uint64_t t = T0 + 20 * S, told = timeline_last_serial(timeline);
	open_stage(p, 1, t, 5, 7);
	open_stage(p, 1, t, 6, 8);
	apps_sample(apps, t + 2 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told + 2);
	ck_assert_uint_eq(p->app->hangs.total, 2);
}
END_TEST

START_TEST(a_begin_by_id_hangs_too)
{
	struct app_process *p = started("cam", 20 * MS);
	const struct proto_record begin = {.stage = 1,
		.kind = PROTO_KIND_BEGIN,
		.start_ns = T0 + 20 * S,
		.value = 99,
		.frame = 4};
	put(p, &begin);
	apps_drained(apps, p);
	apps_sample(apps, T0 + 23 * S);
	ck_assert_str_eq(last_text(), "hangs in `infer` for 3.0 s, frame 4");
	struct proto_record end = begin;
	end.kind = PROTO_KIND_END;
	end.start_ns += 4 * S;
	end.cpu_us = PROTO_CPU_NOT_MEASURED;
	put(p, &end);
	apps_drained(apps, p);
	apps_sample(apps, T0 + 25 * S);
	ck_assert_str_eq(last_text(), "went on in `infer` after 5.0 s, frame 4");
}
END_TEST

START_TEST(a_begin_by_id_whose_end_was_dropped_does_not_hang)
{
	struct app_process *p = started("cam", 20 * MS);
	const struct proto_record begin = {
		.stage = 1, .kind = PROTO_KIND_BEGIN, .start_ns = T0 + 20 * S, .value = 99};
	put(p, &begin);
	apps_drained(apps, p);
	p->accounting.dropped = 1;
	apps_sample(apps, T0 + 21 * S);
	apps_sample(apps, T0 + 24 * S);
	ck_assert_ptr_null(strstr(last_text(), "hangs"));
	ck_assert_uint_eq(p->app->hangs.count, 0);
}
END_TEST

START_TEST(who_dies_in_a_hang_does_not_go_on)
{
	struct app_process *p = started("cam", 20 * MS);
	uint64_t t = T0 + 20 * S;
	open_stage(p, 1, t, 5, 7);
	apps_sample(apps, t + 2 * S);
	ck_assert_str_eq(last_text(), "hangs in `infer` for 2.0 s, frame 5");
	struct app *app = p->app;
	apps_detach(apps, p, PROCESS_DIED, t + 3 * S);
	ck_assert_str_eq(last_text(), "died in `infer`, frame 5");
	uint64_t told = timeline_last_serial(timeline);
	apps_sample(apps, t + 4 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told);
	null_because("app/cam/hung", "app ended");
	ck_assert_double_eq(metric("app/cam/processes")->value, 0);
	ck_assert_uint_eq(app->hangs.count, 0);
}
END_TEST

START_TEST(more_hangs_than_places_are_told_as_places_get_free)
{
	struct app_process *p[3];
	p[0] = started("cam", 20 * MS);
	for (pid_t i = 1; i < 3; i++) {
		p[i] = attach_as("cam", 1000, 20 + i, T0);
		declare(p[i], 1, "infer", "");
		put_run(p[i], 1, T0, 20 * MS);
	}
	uint64_t t = T0 + 20 * S;
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t tid = 1; tid <= 16; tid++) {
			open_stage(p[i], 1, t, 5, tid);
		}
	}
	apps_sample(apps, t + 2 * S);
	ck_assert_uint_eq(p[0]->app->hangs.count, APP_HANGS_MAX);
	for (uint32_t i = 0; i < 3; i++) {
		apps_open_clear(p[i]);
	}
	apps_sample(apps, t + 3 * S);
	ck_assert_uint_eq(p[0]->app->hangs.count, 0);
}
END_TEST
