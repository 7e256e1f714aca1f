/* SPDX-License-Identifier: Apache-2.0 */
/* What the records of instrumented apps become: statistics, metrics, counts. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

START_TEST(a_sample_in_parts_is_committed_at_once)
{
	struct app_process *cam = attach_as("cam", 1000, 12, T0),
			   *eye = attach_as("eye", 1000, 13, T0);
	declare(cam, 0, "infer", "");
	declare(cam, 1, "quiet", "");
	declare(eye, 0, "infer", "");
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

START_TEST(frames_are_sampled_ahead_as_stages_are)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint64_t i = 1; i <= 5; i++) {
		record(p, PROTO_KIND_FRAME, 0, T0 + i * 20 * MS, 0, PROTO_NO_FRAME);
	}
	apps_drained(apps, p);
	ck_assert(apps_sample_ahead(apps, 0));
	ck_assert(!apps_sample_ahead(apps, 1));
	record(p, PROTO_KIND_FRAME, 0, T0 + 200 * MS, 0, PROTO_NO_FRAME); /* meanwhile */
	apps_drained(apps, p);
	apps_sample(apps, T0 + S);
	near("frame/cam/fps", 50);
	record(p, PROTO_KIND_FRAME, 0, T0 + 220 * MS, 0, PROTO_NO_FRAME);
	apps_drained(apps, p);
	apps_sample(apps, T0 + 2 * S);
	near("frame/cam/fps", 30);
}
END_TEST

START_TEST(stage_statistics_become_metrics)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	ck_assert_str_eq(last_text(), "started (pid 12)");
	const struct proto_declaration declaration = {.name = "infer", .deadline_ns = 50 * MS};
	apps_declare(apps, p, 0, &declaration);
	declare(p, 1, "a label", "");
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
	null_because("stage/cam/infer/rate", "no event");
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
	declare(p, 0, "infer", "");
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
	declare(p, 0, "io", "");
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
	declare(p, 0, "io", "");
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
	declare(p, 0, "io", "");
	declare(q, 0, "io", "");
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
	declare(p, 0, "io", "");
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

/* Begins and ends in any order of time come out as if they had been read in order. */
START_TEST(begins_and_ends_read_backwards_meet)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "io", "");
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
	struct sysops table = *sysops();
	table.calloc = failing_calloc;
	for (unsigned n = 0; n < 40; n++) {
		teardown();
		setup();
		allocations_left = n;
		sysops_replace(&table);
		struct app_process *p = NULL;
		int r = apps_attach(apps, "cam", 1000, 12, 1, 65536, T0, &p);
		if (r < 0) {
			ck_assert_int_eq(r, -ENOMEM);
		} else {
			declare(p, 0, "infer", "");
			record(p, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
			record(p, PROTO_KIND_FRAME, 0, T0, MS, 1);
			record(p, PROTO_KIND_BEGIN, 0, T0, 1, 1);
			apps_drained(apps, p);
			apps_sample(apps, T0 + S);
			apps_detach(apps, p, PROCESS_ENDED, T0 + S);
		}
		sysops_replace(NULL);
	}
}
END_TEST
