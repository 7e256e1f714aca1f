/* SPDX-License-Identifier: Apache-2.0 */
/* Who an app is, what it says of itself, and what is told when it has gone. */
#include <errno.h>

#include "daemon/core/runs/runs.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

START_TEST(the_last_words_name_the_innermost_open_stage)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "total", "");
	declare(p, 1, "infer", "");
	record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	const struct proto_open_stage open[] = {
		{.start_ns = T0, .stage = 0, .frame = 8841},
		{.start_ns = T0 + 1, .stage = 1, .frame = 8841},
		{.start_ns = T0 + 2, .stage = 99},
	};
	apps_open_clear(p);
	for (size_t i = 0; i < 3; i++) {
		apps_open_add(p, &open[i], 7, 7);
	}
	ck_assert_uint_eq(p->open_count, 2);
	p->accounting = (struct app_accounting){.sent = 5, .received = 4, .dropped = 1};
	apps_detach(apps, p, PROCESS_DIED, T0 + S);
	ck_assert_str_eq(last_text(), "died in `infer`, frame 8841");
	ck_assert_int_eq(
		timeline_from(timeline, timeline_last_serial(timeline))->level, TIMELINE_WARNING);
	struct app *app = apps_find(apps, "cam");
	ck_assert_str_eq(app->last_words, "died in `infer`, frame 8841");
	struct app_accounting a;
	app_accounting(app, &a);
	ck_assert_uint_eq(a.sent, 5);

	apps_sample(apps, T0 + 2 * S);
	null_because("stage/cam/total/rate", "app ended");
	null_because("stage/cam/total/p50_ms", "app ended");
	ck_assert_int_eq(source->state, SOURCE_UNAVAILABLE);

	p = attach_as("cam", 1000, 13, T0 + 3 * S);
	ck_assert_uint_eq(app->restarts, 1);
	apps_detach(apps, p, PROCESS_DIED, T0 + 4 * S);
	ck_assert_str_eq(last_text(), "died");
	p = attach_as("cam", 1000, 14, T0 + 5 * S);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 6 * S);
	ck_assert_str_eq(last_text(), "ended");
	uint64_t serial = timeline_last_serial(timeline);
	p = attach_as("cam", 1000, 15, T0 + 7 * S);
	p->accounting.sent = 9;
	apps_detach(apps, p, PROCESS_RELEASED, T0 + 8 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), serial + 1); /* only "started" */
	app_accounting(app, &a);
	ck_assert_uint_eq(a.sent, 0); /* of this run; its mapping comes back with what it sent */
	ck_assert_uint_eq(app_run(app, -1)->past.sent, 5);
}
END_TEST

/* The daemon is started again, the timeline is the same: who went on did not start. */
START_TEST(a_process_that_outlived_the_daemon_does_not_start)
{
	struct app_process *p = NULL;
	const uint64_t ticks = T0 / 10000000;
	const struct apps_options options = {.stage_window = 64, .frame_window = 32};
	ck_assert_int_eq(apps_attach(apps, "cam", 1000, 12, ticks, 65536, T0 + S, &p), 0);
	ck_assert_str_eq(last_text(), "started (pid 12)");
	apps_destroy(apps);
	const uint64_t serial = timeline_last_serial(timeline);
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
	ck_assert_int_eq(apps_attach(apps, "cam", 1000, 12, ticks, 65536, T0 + 9 * S, &p), 0);
	ck_assert_uint_eq(timeline_last_serial(timeline), serial);
	/* another one of that pid, and one of another name */
	apps_detach(apps, p, PROCESS_DIED, T0 + 10 * S);
	ck_assert_int_eq(
		apps_attach(apps, "cam", 1000, 12, ticks + 1000, 65536, T0 + 11 * S, &p), 0);
	ck_assert_str_eq(last_text(), "started (pid 12)");
	ck_assert_uint_eq(timeline_last_serial(timeline), serial + 2);
	ck_assert_int_eq(apps_attach(apps, "eye", 1000, 12, ticks, 65536, T0 + 12 * S, &p), 0);
	ck_assert_uint_eq(timeline_last_serial(timeline), serial + 3);
}
END_TEST

START_TEST(a_name_belongs_to_its_uid_until_a_minute_after)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0), *q = NULL;
	declare(p, 0, "infer", "");
	record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	ck_assert_int_eq(apps_attach(apps, "cam", 1001, 13, 1, 65536, T0, &q), -EACCES);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	ck_assert_int_eq(apps_attach(apps, "cam", 1001, 13, 1, 65536, T0 + 60 * S, &q), -EACCES);
	ck_assert_ptr_null(q);
	q = attach_as("cam", 1001, 13, T0 + 61 * S);
	ck_assert_uint_eq(q->app->uid, 1001);
	ck_assert_uint_eq(q->app->stages, 0);
	ck_assert_ptr_null(metrics_find(metrics, "stage/cam/infer/rate"));
	ck_assert_uint_eq(apps_counts(apps)->stages, 0);
}
END_TEST

START_TEST(names_are_cleaned_and_collisions_numbered)
{
	struct app_process *p = attach_as("my/cam\x1b[1m", 1000, 12, T0);
	ck_assert_str_eq(p->app->name, "my_cam__1m");
	declare(p, 0, "a/b", "");
	declare(p, 1, "a+b", "");
	record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	record(p, PROTO_KIND_COMPLETE, 1, T0, MS, 1);
	ck_assert_str_eq(p->app->stage[0]->name, "a_b");
	ck_assert_str_eq(p->app->stage[1]->name, "a_b.2");
}
END_TEST

START_TEST(marks_go_on_the_timeline_and_a_flood_does_not)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "before model load", "");
	record(p, PROTO_KIND_MARK, 0, T0, 0, PROTO_NO_FRAME);
	ck_assert_str_eq(last_text(), "before model load");
	uint64_t serial = timeline_last_serial(timeline);
	for (int i = 0; i < 1000; i++) {
		record(p, PROTO_KIND_MARK, 0, T0, 0, PROTO_NO_FRAME);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), serial + APP_MARKS_MAX - 1);
	ck_assert_uint_eq(p->marks_refused, 1000 - APP_MARKS_MAX + 1);
	apps_sample(apps, T0 + S);
	record(p, PROTO_KIND_MARK, 0, T0, 0, PROTO_NO_FRAME);
	ck_assert_uint_eq(timeline_last_serial(timeline), serial + APP_MARKS_MAX);
}
END_TEST

static struct {
	unsigned calls;
	char words[160];
	uint64_t count;
	enum process_end how;
} ended;

static void on_end(void *ctx, const struct app *app, enum process_end how, uint64_t now_ns)
{
	ck_assert_ptr_eq(ctx, &ended);
	ck_assert_uint_eq(app->processes, 0);
	ck_assert_uint_eq(app->last_seen_ns, now_ns);
	ended.calls++;
	ended.how = how;
	ended.count = app->stages ? app->stage[0]->count : 0;
	snprintf(ended.words, sizeof(ended.words), "%s", app->last_words);
}

/* covers G3.1 */
START_TEST(the_end_of_an_app_is_told_with_its_statistics)
{
	memset(&ended, 0, sizeof(ended));
	ck_assert_int_eq(
		apps_observe(apps, &(struct apps_observer){.ended = on_end, .ctx = &ended}), 0);
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_process *q = attach_as("cam", 1000, 13, T0);
	declare(p, 0, "infer", "");
	record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	ck_assert_uint_eq(ended.calls, 0); /* another process lives */
	apps_detach(apps, q, PROCESS_DIED, T0 + 2 * S);
	ck_assert_uint_eq(ended.calls, 1);
	ck_assert_int_eq(ended.how, PROCESS_DIED);
	ck_assert_str_eq(ended.words, "died");
	ck_assert_uint_eq(ended.count, 1);
	/* its statistics are there until its place is needed */
	apps_sample(apps, T0 + 1000 * S);
	ck_assert_uint_eq(apps_find(apps, "cam")->stage[0]->count, 1);
	p = attach_as("cam", 1000, 14, T0 + 1001 * S);
	apps_detach(apps, p, PROCESS_RELEASED, T0 + 1002 * S); /* the daemon goes, not the app */
	ck_assert_uint_eq(ended.calls, 1);
	apps_unobserve(apps, &ended);
	p = attach_as("cam", 1000, 15, T0 + 1003 * S);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 1004 * S);
	ck_assert_uint_eq(ended.calls, 1);
	int other[APPS_OBSERVERS];
	for (int i = 0; i < APPS_OBSERVERS; i++) {
		ck_assert_int_eq(apps_observe(apps, &(struct apps_observer){.ended = on_end,
							    .ctx = &other[i]}),
			0);
	}
	ck_assert_int_eq(
		apps_observe(apps, &(struct apps_observer){.ended = on_end, .ctx = &ended}),
		-ENOSPC);
	for (int i = 0; i < APPS_OBSERVERS; i++) {
		apps_unobserve(apps, &other[i]);
	}
}
END_TEST
