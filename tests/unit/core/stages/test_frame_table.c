/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that are tied together by their id, first as a table, then through an app's records. */
#include "daemon/core/frames/frame_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/frames/settings.h"
#include "daemon/core/frames/trace_buffer.h"
#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"

static const uint64_t MS = 1000000, S = 1000000000;
static const uint64_t T0 = 100000ull * 1000000000;

/* the table alone */

static struct frame_table *table;
static struct frame done[1000];
static size_t done_count;

static void note_done(void *ctx, struct frame *frame)
{
	(void)ctx;
	if (done_count < 1000) {
		done[done_count] = *frame;
	}
	done_count++;
}

static void table_setup(void)
{
	done_count = 0;
	ck_assert_int_eq(frame_table_create(note_done, NULL, &table), 0);
}

static void table_teardown(void)
{
	frame_table_destroy(table);
}

static void run(uint64_t id, uint64_t from_ms, uint64_t to_ms, uint8_t place, uint64_t thread)
{
	const struct frame_piece piece = {.id = id,
		.start_ns = T0 + from_ms * MS,
		.end_ns = T0 + to_ms * MS,
		.thread = thread};
	frame_table_run(table, &piece, place, false);
}

static void frame_record(uint64_t id, uint64_t from_ms, uint64_t to_ms)
{
	const struct frame_piece piece = {
		.id = id, .start_ns = T0 + from_ms * MS, .end_ns = T0 + to_ms * MS};
	bool known;
	frame_table_frame(table, &piece, &known);
}

TEST_TIMEOUT(60);
FIXTURE(table_setup, table_teardown);

START_TEST(a_frame_goes_from_its_first_start_to_its_last_end)
{
	uint8_t capture = frame_table_stage_index(table, "capture", false);
	uint8_t infer = frame_table_stage_index(table, "infer", false);
	uint8_t total = frame_table_stage_index(table, "total", true);
	ck_assert_uint_eq(frame_table_stage_index(table, "infer", false), infer);
	run(7, 20, 50, infer, 2); /* threads are read one after the other */
	run(7, 10, 15, capture, 1);
	run(7, 52, 60, infer, 2);
	run(7, 10, 60, total, 3);
	frame_record(7, 12, 55);
	frame_table_finish_until(table, T0 + 59 * MS);
	ck_assert_uint_eq(done_count, 0);
	frame_table_finish_until(table, T0 + 60 * MS);
	ck_assert_uint_eq(done_count, 1);
	const struct frame *frame = &done[0];
	ck_assert_uint_eq(frame->id, 7);
	ck_assert_uint_eq(frame_latency_ns(frame), 50 * MS);
	ck_assert_uint_eq(frame->sum_ns, (5 + 30 + 8) * MS); /* without total */
	ck_assert_uint_eq(frame->runs, 4);
	ck_assert_int_eq(__builtin_popcountll(frame->threads), 4);
	ck_assert_uint_eq(frame_part_ns(&frame->part[infer]), 38 * MS);
	ck_assert_uint_eq(frame_part_runs(&frame->part[infer]), 2);
	ck_assert_uint_eq(frame->part[infer].start_ns, T0 + 20 * MS);
	ck_assert(frame->has_frame && !frame->has_context);
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, 1); /* once each */
}
END_TEST

START_TEST(nested_stages_are_told_but_not_added_up)
{
	const struct frame_piece outer = {.id = 1, .start_ns = T0, .end_ns = T0 + 10 * MS};
	const struct frame_piece inner = {.id = 1, .start_ns = T0, .end_ns = T0 + 9 * MS};
	frame_table_run(table, &inner, frame_table_stage_index(table, "b", false), true);
	frame_table_run(table, &outer, frame_table_stage_index(table, "a", false), false);
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done[0].sum_ns, 10 * MS);
	ck_assert_uint_eq(done[0].parts, 3);
}
END_TEST

START_TEST(runs_without_a_call_are_the_same)
{
	struct frame_table *other;
	uint64_t state = 1;
	unsigned without = 0;
	ck_assert_int_eq(frame_table_create(note_done, NULL, &other), 0);
	for (uint8_t idx = 0; idx < 8; idx++) {
		char name[8];
		snprintf(name, sizeof(name), "s%u", idx);
		frame_table_stage_index(table, name, idx == 7);
		frame_table_stage_index(other, name, idx == 7);
	}
	for (uint64_t i = 0; i < 4000; i++) {
		state = state * UINT64_C(6364136223846793005) + 1;
		uint64_t draw = state >> 32, start_ns = T0 + i * MS - draw % 5 * MS;
		const struct frame_piece piece = {.id = i / 7,
			.start_ns = start_ns,
			.end_ns = start_ns + draw % 3000,
			.thread = draw >> 8 & 15 ? 1 : 2};
		uint8_t idx = draw >> 12 & 3 ? i % 8 : draw >> 14 & 7;
		bool nested = draw >> 20 & 1, next = frame_table_next(other, &piece, idx, nested);
		frame_table_run(table, &piece, idx, nested);
		if (!next) {
			frame_table_run(other, &piece, idx, nested);
		}
		without += next;
		ck_assert_int_eq(other->hot - other->frame, table->hot - table->frame);
		ck_assert_mem_eq(other->hot, table->hot, sizeof(*table->hot));
	}
	ck_assert_uint_gt(without, 2000);
	ck_assert_mem_eq(other->frame, table->frame, sizeof(table->frame));
	frame_table_destroy(other);
}
END_TEST

START_TEST(stages_beyond_the_table_share_a_place)
{
	char name[8];
	for (unsigned i = 0; i < FRAME_STAGES + 14; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		run(1, i, i + 1, frame_table_stage_index(table, name, false), 0);
	}
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(frame_part_runs(&done[0].part[FRAME_STAGES]), 14);
	ck_assert_uint_eq(frame_part_ns(&done[0].part[FRAME_STAGES]), 14 * MS);
	ck_assert_uint_eq(done[0].sum_ns, (FRAME_STAGES + 14) * MS);
	ck_assert_str_eq(frame_table_stage(table, 3), "s3");
	ck_assert_str_eq(frame_table_stage(table, FRAME_STAGES), "(other)");
}
END_TEST

START_TEST(without_a_record_a_frame_is_done_after_the_grace)
{
	run(1, 0, 10, 0, 0);
	run(2, 10, 20, 0, 1); /* of several threads */
	frame_table_finish_until(table, T0 + 10 * MS + FRAME_TABLE_GRACE_NS - 1);
	ck_assert_uint_eq(done_count, 0);
	frame_table_finish_until(table, T0 + 10 * MS + FRAME_TABLE_GRACE_NS);
	ck_assert_uint_eq(done_count, 1);
	run(1, 500, 510, 1, 0); /* it waited long between two stages */
	ck_assert_uint_eq(table->late, 1);
	frame_table_finish_until(table, T0 + 20 * MS + FRAME_TABLE_GRACE_NS);
	ck_assert_uint_eq(done_count, 1); /* the next ones are waited for */
	frame_table_finish_until(table, T0 + 20 * MS + 750 * MS);
	ck_assert_uint_eq(done_count, 2);
}
END_TEST

START_TEST(a_frame_of_the_only_thread_is_done_when_it_goes_on)
{
	run(1, 0, 10, 0, 0);
	run(1, 10, 15, 1, 0);
	run(2, 15, 20, 0, 0);
	ck_assert_ptr_eq(frame_table_current(table), frame_table_find(table, 2, T0));
	frame_table_finish_until(table, T0 + 20 * MS);
	ck_assert_uint_eq(done_count, 1);
	ck_assert_uint_eq(frame_latency_ns(&done[0]), 15 * MS);
	frame_table_finish_until(table, T0 + 20 * MS + FRAME_TABLE_GRACE_NS);
	ck_assert_uint_eq(done_count, 2);
}
END_TEST

START_TEST(an_id_that_comes_again_is_another_frame)
{
	run(5, 0, 10, 0, 0);
	frame_record(5, 0, 12);
	frame_record(5, 3, 14); /* a second camera */
	frame_table_finish_until(table, T0 + 20 * MS);
	ck_assert_uint_eq(done_count, 2);
	ck_assert_uint_eq(frame_latency_ns(&done[0]), 12 * MS);
	ck_assert_uint_eq(frame_latency_ns(&done[1]), 11 * MS);
	const struct frame_piece reborn = {.id = 5,
		.start_ns = T0 + 1000 * MS,
		.end_ns = T0 + 1030 * MS,
		.born_ns = T0 + 900 * MS};
	frame_table_run(table, &reborn, 0, false); /* of a process that came later */
	run(6, 0, 1, 0, 0);
	frame_table_finish_until(table, UINT64_MAX);
	run(6, 5000, 5010, 0, 0); /* a short film that starts again */
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, 5);
	ck_assert_uint_eq(table->late, 0);
}
END_TEST

START_TEST(loops_that_count_alike_have_frames_of_their_own)
{
	for (uint64_t i = 0; i < 50; i++) {
		for (uint64_t camera = 0; camera < 3; camera++) { /* each a ms behind the other */
			uint64_t t = i * 20 + camera;
			run(i, t, t + 5, 0, camera);
			run(i, t + 5, t + 15, 1, camera);
		}
		for (uint64_t camera = 0; camera < 3; camera++) {
			const struct frame_piece piece = {.id = i,
				.start_ns = T0 + (i * 20 + camera) * MS,
				.end_ns = T0 + (i * 20 + camera + 15) * MS,
				.thread = camera};
			bool known;
			frame_table_frame(table, &piece, &known);
			ck_assert(!known);
		}
		frame_table_finish_until(table, T0 + (i * 20 + 18) * MS);
	}
	ck_assert_uint_eq(done_count, 150);
	for (size_t i = 9; i < done_count; i++) { /* each two show it in one frame */
		ck_assert_uint_eq(frame_latency_ns(&done[i]), 15 * MS);
		ck_assert_uint_eq(done[i].runs, 2);
	}
}
END_TEST

/* Ids 0 to 7 in three threads that are read one after the other, three times round at once. */
START_TEST(ids_that_wrap_are_joined_by_time_in_whatever_order_threads_are_read)
{
	static const uint8_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
	for (size_t order = 0; order < 3; order++) {
		for (uint64_t i = 0; i < 24; i++) {
			run(i % 8, order * 60000 + i, order * 60000 + i + 1, 3,
				3); /* spends slots */
		}
		frame_table_finish_until(table, UINT64_MAX);
		size_t before = done_count;
		const uint64_t t_ms = order * 60000 + 30000;
		for (size_t turn = 0; turn < 3; turn++) {
			uint8_t stage = orders[order][turn];
			for (uint64_t i = 0; i < 24; i++) {
				uint64_t from_ms = t_ms + i * 10 + stage * 12;
				run(i % 8, from_ms, from_ms + 9, stage, stage);
			}
		}
		frame_table_finish_until(table, UINT64_MAX);
		ck_assert_uint_eq(done_count - before, 24);
		for (size_t i = before; i < done_count; i++) {
			ck_assert_uint_eq(frame_latency_ns(&done[i]), 33 * MS);
		}
	}
}
END_TEST

/* Eight buffers: capture takes 5 ms and runs ahead until all are full, infer takes 10. The thread
 * that captures is read ahead of the other by up to `lead` frames. */
static void circulate(uint64_t lead, bool ticks)
{
	enum { BUFFERS = 8, FRAMES = 64 };
	uint64_t start[FRAMES], end[FRAMES], inferred = 0;
	for (uint64_t i = 0; i < FRAMES; i++) {
		uint64_t free_ms = i < BUFFERS ? 0 : end[i - BUFFERS] + 1;
		uint64_t idle_ms = i == 0 ? 0 : start[i - 1] + 5;
		start[i] = free_ms > idle_ms ? free_ms : idle_ms;
		uint64_t ready_ms = start[i] + 6;
		end[i] = (i > 0 && end[i - 1] > ready_ms ? end[i - 1] : ready_ms) + 10;
		run(i % BUFFERS, start[i], start[i] + 5, 0, 1);
		for (; inferred <= i && (inferred + lead < i || i + 1 == FRAMES); inferred++) {
			run(inferred % BUFFERS, end[inferred] - 10, end[inferred], 1, 2);
			if (ticks) { /* right behind the stage */
				const struct frame_piece piece = {.id = inferred % BUFFERS,
					.start_ns = T0 + end[inferred] * MS + 1000,
					.end_ns = T0 + end[inferred] * MS + 1000,
					.thread = 2};
				bool known;
				frame_table_frame(table, &piece, &known);
			}
		}
	}
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, FRAMES);
	for (size_t i = 0; i < FRAMES; i++) {
		ck_assert_uint_eq(done[i].id, i % BUFFERS);
		ck_assert_uint_eq(done[i].start_ns, T0 + start[i] * MS);
		ck_assert_uint_eq(done[i].end_ns, T0 + end[i] * MS + (ticks ? 1000 : 0));
		ck_assert_uint_eq(done[i].runs, 2);
		ck_assert_int_eq(done[i].has_frame, ticks);
	}
}

START_TEST(buffers_that_circulate_are_a_frame_from_capture_to_the_end)
{
	for (uint64_t lead = 0; lead <= 24; lead += 4) {
		for (int ticks = 0; ticks < 2; ticks++) {
			table_teardown();
			table_setup();
			circulate(lead, ticks);
		}
	}
}
END_TEST

/* A pool of two threads numbers each batch from 0; a number comes to the one or the other. One
 * thread is read ahead of the other by three batches. */
START_TEST(a_pool_that_numbers_each_batch_has_frames_of_one_thread_each)
{
	enum { BATCHES = 24, SIZE = 4 };
	for (uint64_t first = 0; first < BATCHES; first += 3) {
		for (uint64_t thread = 1; thread <= 2; thread++) {
			for (uint64_t i = first * SIZE; i < (first + 3) * SIZE; i++) {
				uint64_t from_ms = i / 2 * 10 + thread;
				const struct frame_piece piece = {.id = i % SIZE,
					.start_ns = T0 + from_ms * MS,
					.end_ns = T0 + (from_ms + 8) * MS,
					.thread = thread};
				bool known;
				if ((i + i / SIZE) % 2 == thread % 2) {
					run(i % SIZE, from_ms, from_ms + 8, 0, thread);
					frame_table_frame(table, &piece, &known);
				}
			}
		}
		frame_table_finish_until(table, T0 + (first + 3) * SIZE * 5 * MS);
	}
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, BATCHES * SIZE);
	for (size_t i = 0; i < done_count; i++) {
		ck_assert_uint_eq(frame_latency_ns(&done[i]), 8 * MS);
		ck_assert_uint_eq(done[i].runs, 1);
	}
}
END_TEST

START_TEST(a_process_that_came_later_goes_on_with_what_is_queued)
{
	for (uint64_t i = 0; i < 20; i++) {
		run(i, i * 10, i * 10 + 5, 0, 0);
	}
	frame_table_finish_until(table, T0 + 300 * MS);
	ck_assert_uint_gt(done_count, 10);
	for (uint64_t i = 0; i < 20; i++) {
		const struct frame_piece piece = {.id = i,
			.start_ns = T0 + (310 + i) * MS,
			.end_ns = T0 + (311 + i) * MS,
			.born_ns = T0 + 305 * MS,
			.thread = 1};
		frame_table_run(table, &piece, 1, false);
	}
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, 20);
}
END_TEST

START_TEST(a_hundred_frames_are_in_work_at_once)
{
	for (uint64_t base = 1; base < UINT64_MAX / 1000; base *= 977) {
		for (uint64_t stage = 0; stage < 3; stage++) {
			for (uint64_t i = 0; i < 96; i++) {
				run(base + i, i * 10 + stage * 100, i * 10 + stage * 100 + 90,
					(uint8_t)stage, stage);
			}
		}
		ck_assert_uint_eq(table->forced, 0);
		ck_assert_uint_eq(table->late, 0);
		size_t before = done_count;
		frame_table_finish_until(table, UINT64_MAX);
		ck_assert_uint_eq(done_count - before, 96);
		for (size_t i = before; i < done_count && i < 1000; i++) {
			ck_assert_uint_eq(frame_latency_ns(&done[i]), 290 * MS);
			ck_assert_uint_eq(done[i].id, base + i - before); /* in order of end */
		}
		if (base > 1000000) {
			break;
		}
		table_teardown(); /* other ids at the same times would be the same film again */
		table_setup();
	}
	const struct frame *recent[20];
	ck_assert_uint_eq(frame_table_recent(table, recent, 20), 20);
	for (size_t i = 1; i < 20; i++) {
		ck_assert_uint_eq(recent[i]->serial, recent[i - 1]->serial - 1);
	}
}
END_TEST

/* As datagrams that are read together. */
START_TEST(frames_that_end_at_the_same_time_are_done_in_the_order_of_their_begins)
{
	for (uint64_t i = 0; i < 60; i++) {
		run(i + 1, 0, 5, 0, 1);
		run(i + 1, 2, 5, 1, 2);
	}
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, 60);
	for (size_t i = 0; i < done_count; i++) {
		ck_assert_uint_eq(done[i].id, i + 1);
	}
}
END_TEST

START_TEST(what_a_full_table_forces_is_done_in_order)
{
	for (uint64_t i = 0; i < 900; i++) {
		run(i, i * 10, i * 10 + 5, 0, 1);
		run(i, i * 10 + 5, i * 10 + 9, 1, 2);
	}
	ck_assert_uint_ge(done_count, 900 - FRAME_TABLE_FRAMES);
	ck_assert_uint_eq(table->forced, done_count);
	for (size_t i = 0; i < done_count; i++) {
		ck_assert_uint_eq(done[i].id, i);
	}
}
END_TEST

START_TEST(hostile_ids_are_bounded)
{
	uint64_t id = 1;
	const uint64_t count = (uint64_t)campaign(1000000, 10000000);
	for (uint64_t i = 0; i < count; i++) {
		id = id * 6364136223846793005u + 1442695040888963407u;
		run(id, i % 1000, i % 1000 + 5, (uint8_t)(id >> 60), id);
	}
	frame_table_finish_until(table, UINT64_MAX);
	ck_assert_uint_eq(done_count, count);
	ck_assert_uint_ge(table->forced, count - FRAME_TABLE_FRAMES);
	const struct frame_piece huge = {.id = 3, .start_ns = 0, .end_ns = UINT64_MAX / 2};
	for (unsigned i = 0; i < 100000; i++) {
		frame_table_run(table, &huge, 0, true);
	}
	const struct frame *frame = frame_table_find(table, 3, 0);
	ck_assert_uint_eq(frame_part_ns(&frame->part[0]), FRAME_BUSY_MAX);
	ck_assert_uint_eq(frame_part_runs(&frame->part[0]), UINT16_MAX);
	for (unsigned i = 0; i < 100000; i++) {
		frame_table_context(table, &huge, UINT64_MAX, 0xfffffff0);
	}
	ck_assert_uint_eq(frame->run_delay_us, UINT32_MAX);
	ck_assert_uint_eq(frame->major_faults, UINT32_MAX);
}
END_TEST

/* through an app's records */

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
	const struct apps_options options = {
		.stage_window = 64, .frame_window = 300, .events_memory = 1 << 16};
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
}

static void teardown(void)
{
	apps_destroy(apps);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static struct app_process *attach(const char *app)
{
	static const char *const names[] = {"capture", "infer", "publish"};
	struct app_process *process = NULL;
	ck_assert_int_eq(apps_attach(apps, app, 1000, 12, 1, 65536, T0, &process), 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct proto_declaration d = {.deadline_ns = 0};
		snprintf(d.name, sizeof(d.name), "%s", names[i]);
		apps_declare(apps, process, i, &d);
	}
	return process;
}

static void send(struct app_process *process, uint32_t slot, enum proto_kind kind, uint16_t stage,
	uint64_t from_ms, uint64_t to_ms, uint64_t frame)
{
	const struct proto_record record = {.kind = (uint8_t)kind,
		.stage = stage,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = T0 + from_ms * MS,
		.value = (to_ms - from_ms) * MS,
		.frame = frame};
	apps_record(apps, process, slot, &record, T0 + to_ms * MS);
}

/* All processes have been read up to this time, one after the other. */
static void drained(struct app *app, uint64_t ms)
{
	for (size_t i = 0; i < app->processes; i++) {
		app->process[i]->frame_state.pass_ns = T0 + ms * MS;
		apps_drained(apps, app->process[i]);
	}
}

static struct frames_stats stats_of(const struct app *app)
{
	static double scratch[600];
	struct frames_stats stats;
	frames_stats(app->frames, scratch, &stats);
	return stats;
}

FIXTURE(setup, teardown);

/* Two processes: the second one's stages of frame k overlap the first one's of k + 1. */
START_TEST(pipelined_frames_come_out_right)
{
	struct app_process *p = attach("cam"), *q = attach("cam");
	struct app *app = p->app;
	for (uint64_t second = 0; second < 10; second++) {
		for (uint64_t i = second * 50; i < second * 50 + 50; i++) {
			send(p, 0, PROTO_KIND_COMPLETE, 0, i * 20, i * 20 + 15, i);
			send(p, 1, PROTO_KIND_COMPLETE, 1, i * 20 + 16, i * 20 + 34, i);
		}
		for (uint64_t i = second * 50; i < second * 50 + 50; i++) {
			send(q, 0, PROTO_KIND_COMPLETE, 2, i * 20 + 36, i * 20 + 46, i);
		}
		drained(app, second * 1000 + 1100);
	}
	drained(app, 20000);
	struct frames_stats stats = stats_of(app);
	ck_assert_uint_eq(app->frames->count, 500);
	ck_assert_uint_eq(app->frames->out_of_order, 0);
	ck_assert_uint_eq(app->frames->skipped_ids, 0);
	ck_assert_double_eq_tol(stats.fps, 50, 1e-6);
	ck_assert_double_eq_tol(stats.fps_mean, 50, 1e-6);
	ck_assert_double_eq_tol(stats.latencies.mean, 46, 1e-6);
	ck_assert_double_eq_tol(stats.latencies.max, 46, 1e-6);
	ck_assert_double_eq_tol(stats.stage_sum_mean_ms, 43, 1e-6);
	ck_assert_double_eq_tol(stats.in_flight, 2.3, 1e-6);
	ck_assert_uint_eq(app->frame_state->table->late, 0);
	const struct frame *recent[3];
	ck_assert_uint_eq(app_frames_recent(app, false, recent, 3), 3);
	ck_assert_uint_eq(recent[0]->id, 499);
	ck_assert_int_eq(__builtin_popcountll(recent[0]->threads), 3);
}
END_TEST

START_TEST(a_frame_record_ends_frames_of_several_threads)
{
	struct app_process *p = attach("cam");
	for (uint64_t i = 0; i < 100; i++) {
		send(p, 0, PROTO_KIND_COMPLETE, 0, i * 40 + 5, i * 40 + 15, i);
		send(p, 1, PROTO_KIND_COMPLETE, 1, i * 40 + 16, i * 40 + 30, i);
		send(p, 0, PROTO_KIND_FRAME, 0, i * 40, i * 40 + 32, i);
		drained(p->app, i * 40 + 32);
	}
	struct frames_stats stats = stats_of(p->app);
	ck_assert_uint_eq(p->app->frames->count, 100);
	ck_assert_double_eq_tol(stats.fps, 25, 1e-6);
	ck_assert_double_eq_tol(stats.latencies.mean, 32, 1e-6);
	ck_assert_uint_eq(stats.latencies.count, 100);
	send(p, 0, PROTO_KIND_COMPLETE, 0, 4000, 4010, 100); /* never ended */
	apps_detach(apps, p, PROCESS_DIED, T0 + 5 * S);
	const struct app *app = apps_find(apps, "cam");
	ck_assert_uint_eq(app->frame_state->unfinished, 1);
	ck_assert_uint_eq(app->frames->count, 100);
}
END_TEST

START_TEST(waiting_is_in_the_latency_of_a_frame_and_not_in_its_stages)
{
	struct app_process *p = attach("cam");
	const struct proto_declaration queue = {.name = "queue", .category = "wait"};
	apps_declare(apps, p, 3, &queue);
	for (uint64_t i = 0; i < 50; i++) {
		send(p, 0, PROTO_KIND_COMPLETE, 0, i * 40, i * 40 + 5, i);
		send(p, 1, PROTO_KIND_COMPLETE, 3, i * 40 + 5, i * 40 + 25, i);
		send(p, 1, PROTO_KIND_FRAME, 0, i * 40 + 25, i * 40 + 30, i);
	}
	drained(p->app, 3000);
	struct frames_stats stats = stats_of(p->app);
	ck_assert_uint_eq(stats.latencies.count, 50);
	ck_assert_double_eq_tol(stats.latencies.mean, 30, 1e-6);
	ck_assert_double_eq_tol(stats.stage_sum_mean_ms, 5, 1e-6);
}
END_TEST

/* A rate converter or a leaky queue lets one in 30 through. */
START_TEST(frames_that_are_dropped_on_the_way_do_not_tick)
{
	struct app_process *p = attach("cam");
	for (uint64_t i = 0; i < 900; i++) {
		send(p, 0, PROTO_KIND_COMPLETE, 0, i * 33, i * 33 + 5, i);
		if (i % 30 == 0) {
			send(p, 0, PROTO_KIND_FRAME, 0, i * 33 + 5, i * 33 + 10, i);
		}
		drained(p->app, i * 33 + 32);
	}
	ck_assert_uint_eq(p->app->frames->count, 30);
	ck_assert_double_eq_tol(stats_of(p->app).fps, 1000.0 / 990, 1e-6);
	/* the records come to an end, the frames do not: they tick again */
	for (uint64_t i = 900; i < 1500; i++) {
		send(p, 0, PROTO_KIND_COMPLETE, 0, i * 33, i * 33 + 5, i);
		drained(p->app, i * 33 + 32);
	}
	ck_assert_uint_gt(p->app->frames->count, 100);
}
END_TEST

START_TEST(ticks_of_two_processes_are_merged_in_the_order_of_time)
{
	struct app_process *p = attach("cam"), *q = attach("cam");
	for (uint64_t pass = 0; pass < 20; pass++) {
		for (uint64_t i = pass * 10; i < pass * 10 + 10; i++) {
			send(p, 0, PROTO_KIND_FRAME, 0, i * 20, i * 20 + 5, 2 * i);
		}
		for (uint64_t i = pass * 10; i < pass * 10 + 10; i++) {
			send(q, 0, PROTO_KIND_FRAME, 0, i * 20 + 10, i * 20 + 15, 2 * i + 1);
		}
		drained(p->app, pass * 200 + 200);
	}
	ck_assert_uint_eq(p->app->frames->count, 400);
	ck_assert_uint_eq(p->app->frames->out_of_order, 0);
	ck_assert_uint_eq(p->app->frames->skipped_ids, 0);
	ck_assert_double_eq_tol(stats_of(p->app).fps, 100, 1e-6);
	/* one that is not read any more holds the others up for a second, not for ever */
	send(p, 0, PROTO_KIND_FRAME, 0, 4000, 4005, 400);
	apps_drained(apps, p);
	ck_assert_uint_eq(p->app->frames->count, 400);
	p->frame_state.pass_ns = T0 + 5006 * MS;
	apps_drained(apps, p);
	ck_assert_uint_eq(p->app->frames->count, 401);
}
END_TEST

/* covers G1.12 */
START_TEST(slow_frames_are_kept_with_their_context)
{
	struct app_process *p = attach("cam");
	struct proto_record deadline = {
		.kind = PROTO_KIND_DEADLINE, .flags = PROTO_RECORD_OF_FRAMES, .value = 33 * MS};
	apps_record(apps, p, 0, &deadline, T0);
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t took = i % 50 == 49 ? 80 : 30;
		send(p, 0, PROTO_KIND_COMPLETE, 1, i * 100, i * 100 + took, i);
		const struct proto_record context = {.kind = PROTO_KIND_CONTEXT,
			.cpu_us = took == 80 ? 45000 : 10,
			.start_ns = T0 + (i * 100 + took) * MS,
			.value = proto_context(1, took == 80 ? 9 : 0, 2, 3),
			.frame = i};
		apps_record(apps, p, 0, &context, context.start_ns);
		send(p, 0, PROTO_KIND_FRAME, 0, i * 100, i * 100 + took, i);
		drained(p->app, i * 100 + took);
	}
	const struct frame *slow[64];
	ck_assert_uint_eq(app_frames_recent(p->app, true, slow, 64), 4);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(slow[i]->id, 199 - 50 * i);
		ck_assert_uint_eq(slow[i]->involuntary_switches, 9);
		ck_assert_uint_eq(slow[i]->voluntary_switches, 1);
		ck_assert_uint_eq(slow[i]->minor_faults, 2);
		ck_assert_uint_eq(slow[i]->major_faults, 3);
		ck_assert_uint_eq(slow[i]->run_delay_us, 45000);
		ck_assert_uint_eq(frame_latency_ns(slow[i]), 80 * MS);
	}
	ck_assert_uint_eq(p->app->frames->misses, 4);
	ck_assert_uint_eq(p->app->frames->judged, 200);
	ck_assert_uint_eq(p->app->frames->worst_ns, 80 * MS);
}
END_TEST

START_TEST(without_a_deadline_slow_is_twice_the_median)
{
	struct app_process *p = attach("cam");
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t took = i == 250 || i == 290 ? 70 : i % 7 == 0 ? 40 : 30;
		send(p, 0, PROTO_KIND_FRAME, 0, i * 100, i * 100 + took, i);
		drained(p->app, i * 100 + 99);
		if (i % 10 == 0) {
			apps_sample(apps, T0 + i * 100 * MS);
		}
	}
	const struct frame *slow[64];
	ck_assert_uint_eq(app_frames_recent(p->app, true, slow, 64), 2);
	ck_assert_uint_eq(slow[0]->id, 290);
	ck_assert_uint_eq(slow[1]->id, 250);
}
END_TEST

START_TEST(settings_reach_streams_that_are_there_and_that_come)
{
	static struct app_settings settings;
	struct app_section *of_cam = NULL;
	ck_assert_int_eq(app_settings_section(&settings, SECTION_FRAME, "cam", &of_cam), 0);
	of_cam->frames = (struct frames_settings){.deadline_ns = 10 * MS, .warmup = 2};
	apps_configure(apps, &(struct apps_config){.settings = &settings});
	struct app_process *p = attach("cam"), *other = attach("mic");
	for (uint64_t i = 0; i < 10; i++) {
		send(p, 0, PROTO_KIND_FRAME, 0, i * 40, i * 40 + 20, i);
		send(other, 0, PROTO_KIND_FRAME, 0, i * 40, i * 40 + 20, i);
		drained(p->app, i * 40 + 20);
		drained(other->app, i * 40 + 20);
	}
	ck_assert_uint_eq(p->app->frames->count, 8);
	ck_assert_uint_eq(p->app->frames->warmup_skipped, 2);
	ck_assert_uint_ge(p->app->frames->misses, 8);
	ck_assert_uint_eq(other->app->frames->misses, 0);
	ck_assert_uint_eq(stats_of(p->app).latencies.count, 8);
	of_cam->frames.deadline_ns = 50 * MS;
	apps_configure(apps, &(struct apps_config){.settings = &settings});
	ck_assert_uint_eq(p->app->frames->deadline_ns, 50 * MS);
	apps_configure(apps, &(struct apps_config){.settings = NULL});
	ck_assert_uint_eq(p->app->frames->deadline_ns, 0);
}
END_TEST

/* By id, from another thread: part of the frame that it began with. */
START_TEST(begin_and_end_by_id_belong_to_the_frame_of_the_begin)
{
	struct app_process *p = attach("cam");
	send(p, 0, PROTO_KIND_BEGIN, 1, 10, 10, 3);
	const struct proto_record end = {
		.kind = PROTO_KIND_END, .stage = 1, .start_ns = T0 + 30 * MS, .frame = 99};
	apps_record(apps, p, 1, &end, T0 + 30 * MS);
	send(p, 0, PROTO_KIND_FRAME, 0, 8, 12, 3);
	drained(p->app, 100);
	const struct frame *recent[4];
	ck_assert_uint_eq(app_frames_recent(p->app, false, recent, 4), 1);
	ck_assert_uint_eq(frame_latency_ns(recent[0]), 22 * MS);
	ck_assert_uint_eq(recent[0]->sum_ns, 20 * MS);
}
END_TEST

START_TEST(raw_records_outlive_their_process)
{
	struct app_process *p = attach("cam");
	send(p, 3, PROTO_KIND_COMPLETE, 1, 10, 20, 3);
	send(p, 3, PROTO_KIND_FRAME, 0, 10, 21, 3);
	send(p, 3, PROTO_KIND_COMPLETE, 77, 10, 20, 3); /* not believable: not kept */
	const struct proto_record attribute = {.kind = PROTO_KIND_ATTRIBUTE,
		.stage = 2,
		.cpu_us = 1,
		.start_ns = T0 + 20 * MS,
		.frame = 3};
	apps_record(apps, p, 3, &attribute, T0 + 20 * MS);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	const struct trace_log *log = apps_find(apps, "cam")->log;
	struct trace_cursor cursor = {0};
	const struct event *event = trace_log_next(log, &cursor, NULL);
	ck_assert_str_eq(trace_log_name_of(log, event->record.stage), "infer");
	ck_assert_uint_eq(event->record.value, 10 * MS);
	ck_assert_uint_eq(event->pid, 12);
	ck_assert_uint_eq(event->slot, 3);
	event = trace_log_next(log, &cursor, NULL);
	ck_assert_uint_eq(event->record.kind, PROTO_KIND_FRAME);
	event = trace_log_next(log, &cursor, NULL);
	ck_assert_str_eq(trace_log_name_of(log, event->record.stage), "publish");
	ck_assert_str_eq(trace_log_name_of(log, (uint16_t)event->record.cpu_us), "infer");
	ck_assert_ptr_null(trace_log_next(log, &cursor, NULL));
	struct trace_usage usage;
	apps_trace_usage(apps, &usage);
	ck_assert_uint_eq(usage.count, 3);
	ck_assert_uint_eq(usage.oldest_ns, T0 + 10 * MS);
	ck_assert_uint_gt(usage.bytes, 60000);
	ck_assert_uint_le(usage.bytes, 1 << 16);
}
END_TEST

/* 5 W for a second and 25 frames: 200 mJ each; infer works 60 % of the time. */
START_TEST(energy_is_shared_out_to_frames_and_stages)
{
	struct source *board;
	struct metric *energy;
	const char *reason = NULL;
	struct app_process *p = attach("cam");
	ck_assert_int_eq(sources_add(sources, "energy", S, &board), 0);
	apps_sample(apps, T0);
	ck_assert(isnan(app_energy_frame_mj(p->app, &reason)));
	ck_assert_str_eq(reason, "no power sensor");
	ck_assert_int_eq(metrics_add(metrics, board, "energy/total", UNIT_MILLIJOULES, &energy), 0);
	for (uint64_t second = 0; second < 4; second++) {
		for (uint64_t i = second * 25; i < second * 25 + 25; i++) {
			send(p, 0, PROTO_KIND_COMPLETE, 1, i * 40, i * 40 + 24, i);
			send(p, 0, PROTO_KIND_FRAME, 0, i * 40, i * 40 + 30, i);
		}
		drained(p->app, second * 1000 + 1000);
		/* each second of it is one of the power's, whenever it is told */
		const uint64_t late_ns = second % 2 * 100 * MS;
		metric_set_at(
			energy, 1000 + (double)second * 5000, T0 + (second + 1) * S - 200 * MS);
		metrics_commit(metrics, board, T0 + (second + 1) * S - late_ns);
		apps_sample(apps, T0 + (second + 1) * S);
		apps_sample(apps, T0 + (second + 1) * S + 1); /* no new reading: nothing changes */
	}
	ck_assert_double_eq_tol(app_energy_frame_mj(p->app, &reason), 200, 1e-9);
	ck_assert_ptr_null(reason);
	ck_assert_double_eq_tol(app_energy_stage_mj(p->app, p->app->stage[0]), 120, 1e-9);
	apps_sample(apps, T0 + 5 * S);
	metric_set(energy, 30000);
	metrics_commit(metrics, board, T0 + 5 * S);
	apps_sample(apps, T0 + 5 * S);
	ck_assert(isnan(app_energy_frame_mj(p->app, &reason)));
	ck_assert_str_eq(reason, "no frame in the interval");
	metric_set_null(energy, "Input/output error");
	metrics_commit(metrics, board, T0 + 6 * S);
	apps_sample(apps, T0 + 6 * S);
	ck_assert(isnan(app_energy_frame_mj(p->app, &reason)));
	ck_assert_str_eq(reason, "no power sensor");
}
END_TEST

static void *no_memory(size_t count, size_t size)
{
	(void)count;
	(void)size;
	return NULL;
}

FIXTURE(table_setup, table_teardown);

START_TEST(short_memory_is_enomem)
{
	struct sysops short_of = *sysops();
	short_of.calloc = no_memory;
	sysops_replace(&short_of);
	struct frame_table *none = NULL;
	ck_assert_int_eq(frame_table_create(note_done, NULL, &none), -ENOMEM);
	ck_assert_ptr_null(none);
	sysops_replace(NULL);
	frame_table_destroy(NULL);
	app_frames_destroy(NULL);
}
END_TEST
