/* Instrumented apps: who is there, what they say, what becomes of it. */
#include "daemon/core/apps.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/app_told.h"
#include "daemon/util/seam.h"

static const uint64_t S = 1000000000, MS = 1000000;
static const uint64_t T0 = 100000ull * 1000000000; /* long after boot */

static struct sources *sources;
static struct source *source;
static struct metrics *metrics;
static struct timeline *timeline;
static struct apps *apps;

static void setup(void)
{
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "apps", 0, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(256, &timeline), 0);
	const struct apps_options options = {.stage_window = 1024, .frame_window = 300};
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
}

static void teardown(void)
{
	apps_destroy(apps);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static struct app_process *attach_as(const char *name, uid_t uid, pid_t pid, uint64_t now_ns)
{
	struct app_process *process = NULL;
	ck_assert_int_eq(apps_attach(apps, name, uid, pid, 1, 65536, now_ns, &process), 0);
	return process;
}

static void declare(
	struct app_process *process, uint32_t index, const char *name, uint64_t deadline)
{
	struct proto_declaration d = {.deadline_ns = deadline};
	snprintf(d.name, sizeof(d.name), "%s", name);
	apps_declare(apps, process, index, &d);
}

static void record(struct app_process *process, enum proto_kind kind, uint16_t stage,
	uint64_t start_ns, uint64_t value, uint64_t frame)
{
	const struct proto_record r = {.stage = stage,
		.kind = (uint8_t)kind,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = value,
		.frame = frame};
	apps_record(apps, process, 0, &r, T0 + 10 * S);
}

static const struct metric *metric(const char *name)
{
	const struct metric *m = metrics_find(metrics, name);
	ck_assert_msg(m != NULL, "%s", name);
	return m;
}

static void near(const char *name, double want)
{
	double value = metric(name)->value;
	ck_assert_msg(fabs(value - want) <= 1e-7 * fabs(want), "%s is %.10g", name, value);
}

static void null_because(const char *name, const char *reason)
{
	ck_assert_msg(isnan(metric(name)->value), "%s", name);
	ck_assert_str_eq(metric(name)->reason, reason);
}

static const char *last_text(void)
{
	return timeline_from(timeline, timeline_last_serial(timeline))->text;
}

START_TEST(a_sample_in_parts_is_committed_at_once)
{
	struct app_process *cam = attach_as("cam", 1000, 12, T0),
			   *eye = attach_as("eye", 1000, 13, T0);
	declare(cam, 0, "infer", 0);
	declare(cam, 1, "quiet", 0);
	declare(eye, 0, "infer", 0);
	ck_assert(!apps_sample_ahead(apps, 1));
	record(cam, PROTO_KIND_COMPLETE, 1, T0, 3 * MS, 1);
	apps_sample(apps, T0 + S);
	record(cam, PROTO_KIND_COMPLETE, 0, T0, 20 * MS, 1);
	record(eye, PROTO_KIND_COMPLETE, 0, T0, 40 * MS, 1);
	ck_assert(apps_sample_ahead(apps, 1)); /* the other one is left */
	ck_assert(!apps_sample_ahead(apps, 1));
	ck_assert(!apps_sample_ahead(apps, 1));
	ck_assert(isnan(metric("stage/cam/infer/p50_ms")->value));
	record(cam, PROTO_KIND_COMPLETE, 0, T0, 90 * MS, 2); /* meanwhile */
	apps_detach(apps, eye, PROCESS_ENDED, T0 + S);
	apps_sample(apps, T0 + 2 * S);
	near("stage/cam/infer/p50_ms", 20);
	near("stage/cam/infer/rate", 2);
	near("stage/cam/infer/max_ms", 90);
	null_because("stage/cam/quiet/p50_ms", "no event in the interval");
	null_because("stage/eye/infer/p50_ms", "app ended");
	ck_assert_uint_eq(metric("stage/cam/infer/p50_ms")->t_ns, T0 + 2 * S);
	record(cam, PROTO_KIND_COMPLETE, 0, T0, 90 * MS, 3);
	apps_sample(apps, T0 + 3 * S); /* looks at it anew */
	near("stage/cam/infer/p50_ms", 90);
	attach_as("eye", 1000, 14, T0 + 3 * S);
	ck_assert(!apps_sample_ahead(apps, 1));
	apps_sample(apps, T0 + 4 * S);
	null_because("stage/eye/infer/p50_ms", "no event in the interval");
}
END_TEST

START_TEST(stage_statistics_become_metrics)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	ck_assert_str_eq(last_text(), "started (pid 12)");
	declare(p, 0, "infer", 50 * MS);
	declare(p, 1, "a label", 0);
	for (uint64_t i = 1; i <= 100; i++) {
		record(p, PROTO_KIND_COMPLETE, 0, T0, i * MS, i);
	}
	apps_sample(apps, T0 + 2 * S);
	near("stage/cam/infer/rate", 50);
	near("stage/cam/infer/mean_ms", 50.5);
	near("stage/cam/infer/p50_ms", 50.5);
	near("stage/cam/infer/p95_ms", 95.05);
	near("stage/cam/infer/p99_ms", 99.01);
	near("stage/cam/infer/max_ms", 100);
	near("stage/cam/infer/misses", 50);
	null_because("stage/cam/infer/cpu_ms", "CPU time is not measured");
	ck_assert_uint_eq(apps_find(apps, "cam")->stages, 1); /* a label is no stage */
	ck_assert_int_eq(source->state, SOURCE_OK);

	record(p, PROTO_KIND_COMPLETE, 0, T0, 7 * MS, 101);
	apps_sample(apps, T0 + 3 * S);
	near("stage/cam/infer/rate", 1);
	near("stage/cam/infer/max_ms", 7); /* of the interval; percentiles of the window */
	near("stage/cam/infer/p50_ms", 50);

	apps_sample(apps, T0 + 4 * S);
	ck_assert_double_eq(metric("stage/cam/infer/rate")->value, 0);
	null_because("stage/cam/infer/p95_ms", "no event in the interval");
	null_because("stage/cam/infer/misses", "no event in the interval");
}
END_TEST

/* covers G0.2 */
START_TEST(frames_become_metrics)
{
	static const unsigned deltas_ms[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33};
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	uint64_t t = T0;
	record(p, PROTO_KIND_FRAME, 0, t, 0, 0);
	for (size_t i = 0; i < 10; i++) {
		t += deltas_ms[i] * MS;
		record(p, PROTO_KIND_FRAME, 0, t - 20 * MS, 20 * MS, i + 1);
	}
	apps_drained(apps, p);
	apps_sample(apps, T0 + S);
	near("frame/cam/fps", 23.9234450);
	near("frame/cam/frame_time_p95_ms", 77.5);
	near("frame/cam/jitter_ms", 20.0239856);
	near("frame/cam/end_to_end_p95_ms", 20);
	null_because("frame/cam/misses", "no deadline");
	apps_sample(apps, T0 + 2 * S);
	null_because("frame/cam/fps", "no frame in the interval");
	struct frames_stats s;
	double scratch[600];
	frames_stats(apps_find(apps, "cam")->frames, scratch, &s);
	ck_assert_double_eq_tol(s.fps_mean, 26.8910109, 1e-6);
}
END_TEST

START_TEST(frames_of_two_threads_are_counted_in_the_order_of_time)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint32_t slot = 0; slot < 2; slot++) {
		for (uint64_t i = 0; i < 10; i++) { /* one slot is read after the other */
			const struct proto_record r = {.kind = PROTO_KIND_FRAME,
				.start_ns = T0 + (2 * i + slot) * 10 * MS,
				.value = 5 * MS,
				.frame = PROTO_NO_FRAME};
			apps_record(apps, p, slot, &r, T0 + 10 * S);
		}
	}
	apps_drained(apps, p);
	/* only the pass that showed the second thread was applied as read */
	uint64_t late = p->app->frames->out_of_order;
	for (uint32_t slot = 0; slot < 2; slot++) {
		for (uint64_t i = 10; i < 60; i++) {
			const struct proto_record r = {.kind = PROTO_KIND_FRAME,
				.start_ns = T0 + (2 * i + slot) * 10 * MS,
				.value = 5 * MS,
				.frame = PROTO_NO_FRAME};
			apps_record(apps, p, slot, &r, T0 + 10 * S);
		}
	}
	apps_drained(apps, p);
	const struct frames *frames = p->app->frames;
	ck_assert_uint_eq(frames->count, 120);
	ck_assert_uint_eq(frames->out_of_order, late);
	apps_sample(apps, T0 + S);
	near("frame/cam/fps", 100);
}
END_TEST

START_TEST(what_is_not_believable_is_counted_and_changes_nothing)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "infer", 0);
	const uint64_t now = T0 + 10 * S, day = 86400 * S;
	static const struct proto_record good = {.kind = PROTO_KIND_COMPLETE, .value = 5};
	struct proto_record bad[14];
	for (size_t i = 0; i < 14; i++) {
		bad[i] = good;
		bad[i].start_ns = T0;
	}
	bad[0].stage = 1;
	bad[1].stage = PROTO_DECLARATIONS;
	bad[2].stage = UINT16_MAX;
	bad[3].kind = PROTO_KIND_NONE;
	bad[4].kind = PROTO_KIND_COUNT;
	bad[5].kind = 255;
	bad[6].start_ns = now + 2 * S;
	bad[7].start_ns = UINT64_MAX;
	bad[8].value = day + 1;
	bad[9].value = UINT64_MAX - T0 + 10; /* the sum wraps */
	bad[10].start_ns = T0 - day - 6;
	bad[11].value = 12 * S; /* ends in the future */
	bad[12].kind = PROTO_KIND_FRAME;
	bad[12].value = UINT64_MAX;
	bad[13].kind = PROTO_KIND_MARK;
	bad[13].stage = 7;
	for (size_t i = 0; i < 14; i++) {
		apps_record(apps, p, 0, &bad[i], now);
		ck_assert_uint_eq(p->accounting.invalid, i + 1);
	}
	ck_assert_uint_eq(p->app->stages, 0);
	ck_assert_ptr_null(p->app->frames);
	record(p, PROTO_KIND_COMPLETE, 0, T0, 5, 1);
	ck_assert_uint_eq(p->accounting.invalid, 14);
	ck_assert_uint_eq(p->app->stage[0]->count, 1);
}
END_TEST

/* covers G0.3 */
START_TEST(orphans_and_abandoned_begins_are_told_after_a_full_pass)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "io", 0);
	record(p, PROTO_KIND_END, 0, T0 + 5, 1, 0);
	apps_drained(apps, p);
	struct stage *io = p->app->stage[0];
	ck_assert_uint_eq(io->orphan_ends, 0);
	apps_drained(apps, p);
	ck_assert_uint_eq(io->orphan_ends, 1);

	record(p, PROTO_KIND_BEGIN, 0, T0 + 10, 2, 0);
	record(p, PROTO_KIND_BEGIN, 0, T0 + 20, 2, 0);
	record(p, PROTO_KIND_END, 0, T0 + 50, 2, 0);
	apps_drained(apps, p);
	ck_assert_uint_eq(io->count, 0);
	apps_drained(apps, p);
	ck_assert_uint_eq(io->abandoned, 1);
	ck_assert_uint_eq(io->count, 1);
	ck_assert_uint_eq(io->max_ns, 30);
}
END_TEST

/* covers G4.11 */
START_TEST(begin_and_end_meet_whatever_slot_is_read_first)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "io", 0);
	record(p, PROTO_KIND_END, 0, T0 + 50, 1, 0); /* its slot was read first */
	record(p, PROTO_KIND_BEGIN, 0, T0 + 10, 1, 9);
	apps_drained(apps, p);
	struct stage *io = p->app->stage[0];
	ck_assert_uint_eq(io->count, 1);
	ck_assert_uint_eq(io->max_ns, 40);

	record(p, PROTO_KIND_END, 0, T0 + 200, 1, 0); /* the begin comes a pass later */
	apps_drained(apps, p);
	record(p, PROTO_KIND_BEGIN, 0, T0 + 100, 1, 0);
	apps_drained(apps, p);
	ck_assert_uint_eq(io->count, 2);
	ck_assert_uint_eq(io->max_ns, 100);

	/* the id is used again before the first end was seen */
	record(p, PROTO_KIND_BEGIN, 0, T0 + 300, 1, 0);
	record(p, PROTO_KIND_BEGIN, 0, T0 + 320, 1, 0);
	apps_drained(apps, p);
	record(p, PROTO_KIND_END, 0, T0 + 310, 1, 0);
	record(p, PROTO_KIND_END, 0, T0 + 325, 1, 0);
	apps_drained(apps, p);
	ck_assert_uint_eq(io->count, 4);
	ck_assert_uint_eq(io->min_ns, 5);
	ck_assert_uint_eq(io->orphan_ends + io->abandoned, 0);
}
END_TEST

START_TEST(equal_ids_of_two_processes_stay_apart)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_process *q = attach_as("cam", 1000, 13, T0);
	declare(p, 0, "io", 0);
	declare(q, 0, "io", 0);
	record(p, PROTO_KIND_BEGIN, 0, T0 + 10, 1, 0);
	record(q, PROTO_KIND_BEGIN, 0, T0 + 20, 1, 0);
	apps_drained(apps, p);
	apps_drained(apps, q);
	record(p, PROTO_KIND_END, 0, T0 + 110, 1, 0);
	record(q, PROTO_KIND_END, 0, T0 + 220, 1, 0);
	apps_drained(apps, p);
	apps_drained(apps, q);
	struct app *app = p->app;
	ck_assert_uint_eq(app->stages, 1);
	ck_assert_uint_eq(app->restarts, 1);
	ck_assert_uint_eq(app->stage[0]->count, 2);
	ck_assert_uint_eq(app->stage[0]->min_ns, 100);
	ck_assert_uint_eq(app->stage[0]->abandoned, 0);
}
END_TEST

START_TEST(a_flood_of_open_ids_is_bounded)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "io", 0);
	for (uint64_t i = 0; i < 5000; i++) {
		record(p, i % 2 ? PROTO_KIND_END : PROTO_KIND_BEGIN, 0, T0 + i, i, 0);
	}
	apps_drained(apps, p);
	apps_drained(apps, p);
	const struct stage *io = p->app->stage[0];
	ck_assert_uint_eq(io->orphan_ends, 2500);
	ck_assert_uint_eq(io->abandoned, 2500 - STAGE_OPEN_IDS);
}
END_TEST

START_TEST(the_last_words_name_the_innermost_open_stage)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "total", 0);
	declare(p, 1, "infer", 0);
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
	ck_assert_uint_eq(a.sent, 5);
}
END_TEST

START_TEST(a_name_belongs_to_its_uid_until_a_minute_after)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0), *q = NULL;
	declare(p, 0, "infer", 0);
	record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	ck_assert_int_eq(apps_attach(apps, "cam", 1001, 13, 1, 65536, T0, &q), -EACCES);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	ck_assert_int_eq(apps_attach(apps, "cam", 1001, 13, 1, 65536, T0 + 60 * S, &q), -EACCES);
	ck_assert_ptr_null(q);
	q = attach_as("cam", 1001, 13, T0 + 61 * S);
	ck_assert_uint_eq(q->app->uid, 1001);
	ck_assert_uint_eq(q->app->stages, 0);
	ck_assert_ptr_null(metrics_find(metrics, "stage/cam/infer/rate"));
	ck_assert_uint_eq(apps_stages(apps), 0);
}
END_TEST

START_TEST(names_are_cleaned_and_collisions_numbered)
{
	struct app_process *p = attach_as("my/cam\x1b[1m", 1000, 12, T0);
	ck_assert_str_eq(p->app->name, "my_cam__1m");
	declare(p, 0, "a/b", 0);
	declare(p, 1, "a+b", 0);
	record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	record(p, PROTO_KIND_COMPLETE, 1, T0, MS, 1);
	ck_assert_str_eq(p->app->stage[0]->name, "a_b");
	ck_assert_str_eq(p->app->stage[1]->name, "a_b.2");
}
END_TEST

START_TEST(limits_refuse_and_the_rest_goes_into_other)
{
	struct app_process *p[4];
	for (pid_t i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", (int)i);
		p[i] = attach_as(name, 1000, 100 + i, T0);
		for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
			snprintf(name, sizeof(name), "s%u", d);
			declare(p[i], d, name, 0);
			record(p[i], PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		}
	}
	/* 127 of its own and __other__; two apps fill the table */
	ck_assert_uint_eq(p[0]->app->stages, APP_STAGES_MAX);
	ck_assert_str_eq(p[0]->app->stage[127]->name, APP_STAGE_OTHER);
	ck_assert_uint_eq(p[3]->app->stages, 1);
	ck_assert_str_eq(p[3]->app->stage[0]->name, APP_STAGE_OTHER);
	ck_assert_uint_eq(p[3]->app->stage[0]->count, PROTO_DECLARATIONS);
	ck_assert_uint_gt(apps_stages_refused(apps), 2 * PROTO_DECLARATIONS);
	/* what no process uses any more makes room */
	apps_detach(apps, p[0], PROCESS_ENDED, T0 + S);
	struct app_process *q = attach_as("late", 1000, 200, T0 + S);
	declare(q, 0, "infer", 0);
	record(q, PROTO_KIND_COMPLETE, 0, T0 + S, MS, 1);
	ck_assert_str_eq(q->app->stage[0]->name, "infer");
	apps_sample(apps, T0 + 2 * S);
}
END_TEST

/* Each is full and needs __other__, which is over no limit: the table must not grow with them. */
START_TEST(apps_under_ever_new_names_keep_the_limit_of_stages)
{
	for (pid_t i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", (int)i);
		struct app_process *p = attach_as(name, 1000, 100 + i, T0);
		for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
			snprintf(name, sizeof(name), "s%d_%u", (int)i, d);
			declare(p, d, name, 0);
			record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		}
		apps_detach(apps, p, PROCESS_ENDED, T0 + S);
		ck_assert_uint_le(apps_stages(apps), STAGES_MAX + 1);
	}
}
END_TEST

START_TEST(apps_and_processes_have_limits)
{
	struct app_process *p = NULL;
	for (pid_t i = 0; i < APP_PROCESSES_MAX; i++) {
		attach_as("many", 1000, 1 + i, T0);
	}
	ck_assert_int_eq(apps_attach(apps, "many", 1000, 999, 1, 65536, T0, &p), -ENOSPC);
	for (int i = 1; i < APPS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", i);
		p = attach_as(name, 1000, 1000 + i, T0);
	}
	struct app_process *refused = NULL;
	ck_assert_int_eq(apps_attach(apps, "late", 1000, 5, 1, 65536, T0, &refused), -ENOSPC);
	ck_assert_ptr_null(refused);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	attach_as("late", 1000, 5, T0 + S); /* the gone one makes room */
	ck_assert_ptr_null(apps_find(apps, "app63"));
	ck_assert_ptr_null(apps_at(apps, APPS_MAX));
	ck_assert_ptr_nonnull(apps_at(apps, APPS_MAX - 1));
}
END_TEST

START_TEST(marks_go_on_the_timeline_and_a_flood_does_not)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "before model load", 0);
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

/* Processes that come one after the other, each with names that were never there before. */
START_TEST(ever_new_names_neither_grow_nor_touch_another_app)
{
	const char *text = getenv("EDGEPROF_NAMES");
	uint64_t names = text ? strtoull(text, NULL, 10) : 50000;
	struct app_process *good = attach_as("good", 1001, 7, T0);
	declare(good, 0, "infer", 0);
	size_t metrics_before = 0;
	for (uint64_t n = 0; n < names; n += PROTO_DECLARATIONS) {
		struct app_process *p = attach_as("evil", 1000, 12, T0);
		for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
			char name[32];
			snprintf(name, sizeof(name), "n%llu", (unsigned long long)(n + d));
			declare(p, d, name, 0);
			record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
			record(p, PROTO_KIND_GAUGE, (uint16_t)d, T0, 0, 1);
		}
		record(good, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
		apps_detach(apps, p, PROCESS_ENDED, T0);
		metrics_before = metrics_before ? metrics_before : metrics_count(metrics);
		ck_assert_uint_le(apps_stages(apps), APP_STAGES_MAX + 1);
		ck_assert_uint_le(metrics_count(metrics), metrics_before + 8);
	}
	ck_assert_uint_eq(good->app->stages, 1);
	ck_assert_uint_eq(
		good->app->stage[0]->count, (names + PROTO_DECLARATIONS - 1) / PROTO_DECLARATIONS);
}
END_TEST

/* One user's ever new apps and stages push out his own, not what another's app has left. */
START_TEST(who_has_most_gives_first)
{
	struct app_process *p = attach_as("good", 1001, 7, T0);
	declare(p, 0, "infer", 0);
	record(p, PROTO_KIND_COMPLETE, 0, T0 - S, MS, 1);
	apps_detach(apps, p, PROCESS_DIED, T0); /* gone before all others, used before all others */
	for (pid_t i = 0; i < 300; i++) {
		char name[32];
		snprintf(name, sizeof(name), "evil%d", (int)i);
		p = attach_as(name, 1000, 100 + i, T0 + 1);
		for (uint32_t d = 0; d < 20; d++) {
			snprintf(name, sizeof(name), "s%d_%u", (int)i, d);
			declare(p, d, name, 0);
			record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		}
		apps_detach(apps, p, PROCESS_ENDED, T0 + 2);
	}
	ck_assert_ptr_nonnull(apps_find(apps, "good"));
	ck_assert_uint_eq(apps_find(apps, "good")->stage[0]->count, 1);
	ck_assert_ptr_nonnull(apps_find(apps, "evil299"));
	ck_assert_ptr_null(apps_find(apps, "evil0"));
}
END_TEST

START_TEST(a_storm_of_processes_leaves_room_on_the_timeline)
{
	struct app_process *p;
	for (pid_t i = 0; i < 1000; i++) {
		p = attach_as("storm", 1000, 1 + i, T0 + (uint64_t)i);
		apps_detach(apps, p, i % 2 ? PROCESS_DIED : PROCESS_ENDED, T0 + (uint64_t)i);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 2 * TOLD_BURST);
	ck_assert_uint_eq(apps_untold(apps), 2000 - 2 * TOLD_BURST);
	p = attach_as("cam", 1001, 1, T0); /* another user is told as ever */
	ck_assert_str_eq(last_text(), "started (pid 1)");
	apps_sample(apps, T0 + 100 * S);
	ck_assert_str_eq(last_text(), "1872 more entries about apps of uid 1000 were left out");
	uint64_t told = timeline_last_serial(timeline);
	apps_sample(apps, T0 + 200 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told); /* nothing new */
	attach_as("storm", 1000, 7, T0 + 200 * S);		 /* and the user is heard again */
	ck_assert_str_eq(last_text(), "started (pid 7)");
	apps_detach(apps, p, PROCESS_ENDED, T0 + 300 * S);
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
	ck_assert_int_eq(apps_observe_end(apps, on_end, &ended), 0);
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_process *q = attach_as("cam", 1000, 13, T0);
	declare(p, 0, "infer", 0);
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
	apps_unobserve_end(apps, &ended);
	p = attach_as("cam", 1000, 15, T0 + 1003 * S);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 1004 * S);
	ck_assert_uint_eq(ended.calls, 1);
	int other[APPS_OBSERVERS];
	for (int i = 0; i < APPS_OBSERVERS; i++) {
		ck_assert_int_eq(apps_observe_end(apps, on_end, &other[i]), 0);
	}
	ck_assert_int_eq(apps_observe_end(apps, on_end, &ended), -ENOSPC);
	for (int i = 0; i < APPS_OBSERVERS; i++) {
		apps_unobserve_end(apps, &other[i]);
	}
}
END_TEST

START_TEST(stages_without_a_place_are_named)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
		char name[16];
		snprintf(name, sizeof(name), "s%u", d);
		declare(p, d, name, 0);
		record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
	}
	ck_assert_uint_eq(apps_stages_refused(apps), 1);
	ck_assert_str_eq(apps_other_name(apps, 0), "cam/s127");
	ck_assert_ptr_null(apps_other_name(apps, 1));
	for (uint32_t i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "q%u", i);
		struct app_process *q = attach_as("cam", 1000, 13, T0);
		declare(q, 0, name, 0);
		record(q, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	}
	ck_assert_str_eq(apps_other_name(apps, 0), "cam/q19");
	ck_assert_str_eq(apps_other_name(apps, APP_OTHER_NAMES - 1), "cam/q12");
	ck_assert_ptr_null(apps_other_name(apps, APP_OTHER_NAMES));
}
END_TEST

/* Begins and ends in any order of time come out as if they had been read in order. */
START_TEST(begins_and_ends_read_backwards_meet)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "io", 0);
	for (uint64_t i = 100; i-- > 0;) {
		record(p, PROTO_KIND_END, 0, T0 + 10 * i + 7, i % 3, 0);
		record(p, PROTO_KIND_BEGIN, 0, T0 + 10 * i, i % 3, 0);
	}
	apps_drained(apps, p);
	const struct stage *io = p->app->stage[0];
	ck_assert_uint_eq(io->count, 100);
	ck_assert_uint_eq(io->min_ns, 7);
	ck_assert_uint_eq(io->max_ns, 7);
	ck_assert_uint_eq(io->orphan_ends + io->abandoned, 0);
}
END_TEST

static unsigned allocations_left;

static void *failing_calloc(size_t count, size_t size)
{
	if (allocations_left == 0) {
		return NULL;
	}
	allocations_left--;
	return calloc(count, size);
}

START_TEST(short_memory_loses_numbers_but_nothing_else)
{
	struct seam table = *seam();
	table.calloc = failing_calloc;
	for (unsigned n = 0; n < 40; n++) {
		teardown();
		setup();
		allocations_left = n;
		seam_replace(&table);
		struct app_process *p = NULL;
		int r = apps_attach(apps, "cam", 1000, 12, 1, 65536, T0, &p);
		if (r < 0) {
			ck_assert_int_eq(r, -ENOMEM);
		} else {
			declare(p, 0, "infer", 0);
			record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
			record(p, PROTO_KIND_FRAME, 0, T0, MS, 1);
			record(p, PROTO_KIND_BEGIN, 0, T0, 1, 1);
			apps_drained(apps, p);
			apps_sample(apps, T0 + S);
			apps_detach(apps, p, PROCESS_ENDED, T0 + S);
		}
		seam_replace(NULL);
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("apps");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 600); /* for the long form */
	tcase_add_test(tc, stage_statistics_become_metrics);
	tcase_add_test(tc, frames_become_metrics);
	tcase_add_test(tc, frames_of_two_threads_are_counted_in_the_order_of_time);
	tcase_add_test(tc, what_is_not_believable_is_counted_and_changes_nothing);
	tcase_add_test(tc, orphans_and_abandoned_begins_are_told_after_a_full_pass);
	tcase_add_test(tc, begin_and_end_meet_whatever_slot_is_read_first);
	tcase_add_test(tc, equal_ids_of_two_processes_stay_apart);
	tcase_add_test(tc, a_flood_of_open_ids_is_bounded);
	tcase_add_test(tc, the_last_words_name_the_innermost_open_stage);
	tcase_add_test(tc, a_name_belongs_to_its_uid_until_a_minute_after);
	tcase_add_test(tc, names_are_cleaned_and_collisions_numbered);
	tcase_add_test(tc, limits_refuse_and_the_rest_goes_into_other);
	tcase_add_test(tc, apps_under_ever_new_names_keep_the_limit_of_stages);
	tcase_add_test(tc, apps_and_processes_have_limits);
	tcase_add_test(tc, marks_go_on_the_timeline_and_a_flood_does_not);
	tcase_add_test(tc, ever_new_names_neither_grow_nor_touch_another_app);
	tcase_add_test(tc, who_has_most_gives_first);
	tcase_add_test(tc, a_storm_of_processes_leaves_room_on_the_timeline);
	tcase_add_test(tc, the_end_of_an_app_is_told_with_its_statistics);
	tcase_add_test(tc, a_sample_in_parts_is_committed_at_once);
	tcase_add_test(tc, stages_without_a_place_are_named);
	tcase_add_test(tc, begins_and_ends_read_backwards_meet);
	tcase_add_test(tc, short_memory_loses_numbers_but_nothing_else);
	Suite *suite = suite_create("apps");
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
