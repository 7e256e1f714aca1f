/* SPDX-License-Identifier: Apache-2.0 */
/* What an iteration costs, for loops of many shapes: the sum over the stages is the time that one
 * after the other takes, whatever happens around the loop. */
#include "tests/unit/core/apps/app_stages_fixture.h"
#include "tests/unit/unit.h"

static uint64_t now_ns; /* the loop's clock */
static uint16_t a, b, load;

static void loop_setup(void)
{
	setup();
	now_ns = T0 + S;
	a = b = load = UINT16_MAX;
}

static void send(uint32_t slot, enum proto_kind kind, uint16_t stage, uint64_t start_ns,
	uint64_t value, uint64_t frame)
{
	const struct proto_record r = {.stage = stage,
		.kind = (uint8_t)kind,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = value,
		.frame = frame};
	apps_record(apps, process, slot, &r, now_ns + MS);
}

static void named(uint16_t *stage, const char *name)
{
	if (*stage == UINT16_MAX) {
		*stage = declare(name);
	}
}

/* A run at the loop's clock. */
static void work(uint16_t *stage, const char *name, uint64_t duration_ns, uint64_t frame)
{
	named(stage, name);
	send(0, PROTO_KIND_COMPLETE, *stage, now_ns, duration_ns, frame);
	now_ns += duration_ns;
}

static void drain(void)
{
	process->frame_state.pass_ns = now_ns;
	apps_drained(apps, process);
}

static void drain_all(void)
{
	now_ns += 5 * S;
	drain();
}

static double frame_ms(void)
{
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	app_relate(app(), &relations);
	return app_frame_ms(app(), &relations, &recent);
}

static double runs_of(const char *name)
{
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	double runs;
	app_relate(app(), &relations);
	app_per_frame_ms(app(), &relations, stage(name), &recent, &runs);
	return runs;
}

static void costs(double ms)
{
	ck_assert_msg(fabs(frame_ms() - ms) < 1e-9 * ms, "%.9g ms, not %.9g", frame_ms(), ms);
}

enum style { SCOPES, TAGS, TICKS, NOTHING, STYLES };

static uint64_t frame_start_ns;

static uint64_t frame_begin(enum style style, uint64_t id)
{
	frame_start_ns = now_ns;
	return style == SCOPES || style == TAGS ? id : PROTO_NO_FRAME;
}

static void frame_end(enum style style, uint64_t id)
{
	if (style == SCOPES) {
		send(0, PROTO_KIND_FRAME, 0, frame_start_ns, now_ns - frame_start_ns, id);
	} else if (style == TICKS) {
		send(0, PROTO_KIND_FRAME, 0, now_ns, 0, PROTO_NO_FRAME);
	}
}

static void iterate(enum style style, uint64_t id)
{
	uint64_t frame = frame_begin(style, id);
	work(&a, "a", 2 * MS, frame);
	work(&b, "b", 4 * MS, frame);
	frame_end(style, id);
}

FIXTURE(loop_setup, teardown);

START_LOOP_TEST(a_stage_ahead_of_the_loop_is_of_no_iteration, 0, STYLES)
{
	work(&load, "load", S, PROTO_NO_FRAME);
	for (uint64_t i = 0; i < 120; i++) {
		iterate((enum style)_i, i);
		if (i % 7 == 6) {
			drain();
		}
		if (i == 12) {
			drain_all();
			costs(6);
		}
	}
	drain_all();
	costs(6);
	/* with ticks the first interval begins at the first tick */
	ck_assert_uint_eq(stage("load")->loop.outside.runs, 1);
	ck_assert_uint_eq(stage("a")->loop.outside.runs, _i == TICKS);
	ck_assert_double_eq(runs_of("load"), 0);
	ck_assert_double_eq(runs_of("a"), 1);
}
END_TEST

START_LOOP_TEST(a_stage_between_frames_is_outside_and_one_inside_counts_its_part, 0, STYLES)
{
	for (uint64_t i = 0; i < 100; i++) {
		iterate((enum style)_i, i);
		if (i == 50) {
			work(&load, "load", 300 * MS, PROTO_NO_FRAME);
		}
	}
	drain_all();
	bool framed = _i == SCOPES || _i == TAGS;
	ck_assert_uint_eq(stage("load")->loop.outside.runs, framed);
	costs(6 + (framed ? 0 : 300.0 / (_i == TICKS ? 99 : 100)));
}
END_TEST

START_LOOP_TEST(of_many_stages_in_frames_none_is_outside, SCOPES, TICKS)
{
	enum { MANY = 40 };
	uint16_t stages[MANY];
	char name[16];
	memset(stages, 0xff, sizeof(stages));
	for (uint64_t id = 0; id < 400; id++) {
		uint64_t frame = frame_begin((enum style)_i, id);
		for (int i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), "s%d", i);
			work(&stages[i], name, MS / 10, frame);
		}
		frame_end((enum style)_i, id);
		drain();
	}
	drain_all();
	for (size_t i = 0; i < app()->stages; i++) {
		ck_assert_uint_eq(app()->stage[i]->loop.outside.runs, 0);
	}
	ck_assert_double_eq_tol(frame_ms(), 4, 0.01);
}
END_TEST

START_LOOP_TEST(a_lazy_load_leaves_with_the_window, 0, STYLES)
{
	for (uint64_t i = 0; i < (_i == NOTHING ? 1040 : 310); i++) {
		uint64_t frame = frame_begin((enum style)_i, i);
		work(&a, "a", i == 1 ? S : 2 * MS, frame);
		work(&b, "b", 4 * MS, frame);
		frame_end((enum style)_i, i);
		drain();
		if (i == 20) {
			drain_all();
			ck_assert_double_gt(frame_ms(), 40);
		}
	}
	drain_all();
	costs(6);
}
END_TEST

START_LOOP_TEST(every_kth_iteration_costs_a_kth, 0, STYLES)
{
	static uint16_t detect;
	detect = UINT16_MAX;
	for (uint64_t i = 0; i < 251; i++) {
		uint64_t frame = frame_begin((enum style)_i, i);
		work(&a, "a", 2 * MS, frame);
		if (i % 5 == 4) {
			work(&detect, "detect", 50 * MS, frame);
		}
		frame_end((enum style)_i, i);
		if (i % 11 == 0) {
			drain();
		}
	}
	drain_all();
	ck_assert_double_eq_tol(runs_of("detect"), 0.2, 0.001);
	ck_assert_double_eq_tol(frame_ms(), 12, 0.05);
	ck_assert_double_eq(runs_of("a"), 1);
}
END_TEST

static uint64_t restarts(uint64_t i)
{
	return i % 100;
}

static uint64_t goes_backwards(uint64_t i)
{
	return 300 - i;
}

static uint64_t repeats(uint64_t i)
{
	return i / 3;
}

static uint64_t is_a_buffer(uint64_t i)
{
	return i % 4;
}

static uint64_t is_the_same(uint64_t i)
{
	return 7 + 0 * i;
}

static uint64_t is_a_time(uint64_t i)
{
	return i * 33333333;
}

/* Ids that are used again are those of other frames. */
START_LOOP_TEST(whatever_the_ids_are, 0, 12)
{
	static uint64_t (*const id_of[])(uint64_t i) = {
		restarts, goes_backwards, repeats, is_a_buffer, is_the_same, is_a_time};
	enum style style = _i % 2 ? TAGS : SCOPES;
	double scratch[600];
	struct frames_stats stats;
	for (uint64_t i = 0; i < 300; i++) {
		iterate(style, id_of[_i / 2](i));
		now_ns += MS;
		if (i % 40 == 39) {
			drain();
		}
	}
	drain_all();
	costs(6);
	ck_assert_double_eq(runs_of("a"), 1);
	ck_assert_double_eq(runs_of("b"), 1);
	ck_assert_uint_eq(app()->frames->count, 300);
	frames_stats(app()->frames, scratch, &stats);
	ck_assert_double_eq_tol(stats.latencies.max, 6, 1e-9);
	ck_assert_double_eq_tol(stats.fps, 1000 / 7.0, 1e-6);
}
END_TEST

/* A queue between two threads, each of them with frames of its own or only tags; read one thread
 * after the other. */
START_LOOP_TEST(a_pipeline_over_threads_is_joined_by_id, SCOPES, TAGS + 1)
{
	enum { AHEAD = 20 };
	a = declare("a");
	b = declare("b");
	for (uint64_t i = 0; i < 300; i += 30) {
		for (uint64_t k = i; k < i + 30; k++) {
			uint64_t t = T0 + S + k * 10 * MS, id = k % 100;
			now_ns = t + 8 * MS;
			send(0, PROTO_KIND_COMPLETE, a, t, 8 * MS, id);
			if (_i == SCOPES) {
				send(0, PROTO_KIND_FRAME, 0, t, 8 * MS, id);
			}
		}
		for (uint64_t k = i < AHEAD ? 0 : i - AHEAD; k < i + 30 - AHEAD; k++) {
			uint64_t t = T0 + S + (k + AHEAD) * 10 * MS, id = k % 100;
			send(1, PROTO_KIND_COMPLETE, b, t, 5 * MS, id);
			send(1, PROTO_KIND_COMPLETE, b, t + 5 * MS, 3 * MS, id);
			if (_i == SCOPES) {
				send(1, PROTO_KIND_FRAME, 0, t, 8 * MS, id);
			}
		}
		drain();
	}
	drain_all();
	ck_assert_uint_eq(app()->frames->count, 300);
	ck_assert_double_eq_tol(frame_ms(), 16, 16 * AHEAD / 300.0);
	ck_assert_double_le(runs_of("b"), 2);
	ck_assert(app_loop_is_parallel(app()));
}
END_TEST

START_LOOP_TEST(stages_on_another_thread_count_with_ticks_and_without, 0, 2)
{
	a = declare("a");
	b = declare("b");
	for (uint64_t i = 0; i < 400; i += 40) {
		for (uint64_t k = i; k < i + 40; k++) {
			send(0, PROTO_KIND_COMPLETE, a, now_ns + k * 10 * MS, 8 * MS,
				PROTO_NO_FRAME);
			if (_i) {
				send(0, PROTO_KIND_FRAME, 0, now_ns + (k + 1) * 10 * MS, 0,
					PROTO_NO_FRAME);
			}
		}
		for (uint64_t k = i; k < i + 40; k++) {
			send(1, PROTO_KIND_COMPLETE, b, now_ns + k * 10 * MS, 6 * MS,
				PROTO_NO_FRAME);
		}
		drain();
		ck_assert_double_eq_tol(frame_ms(), 14, i < 40 ? 0.5 : 0.1);
		ck_assert(app_loop_is_parallel(app()));
	}
}
END_TEST

START_LOOP_TEST(a_loop_that_changes_half_way, 0, STYLES *STYLES)
{
	enum style first = (enum style)(_i / STYLES), second = (enum style)(_i % STYLES);
	static uint16_t c, d;
	c = d = UINT16_MAX;
	for (uint64_t i = 0; i < 150; i++) {
		iterate(first, i);
		if (i % 20 == 19) {
			drain();
		}
	}
	for (uint64_t i = 0; i < 400; i++) {
		uint64_t frame = frame_begin(second, i);
		work(&c, "c", MS, frame);
		work(&d, "d", 2 * MS, frame);
		frame_end(second, i);
		if (i % 20 == 19) {
			drain();
		}
	}
	drain_all();
	/* what has frames or ticks keeps to them: later runs without any are outside of them */
	bool outside = second == NOTHING && first != NOTHING;
	ck_assert_double_eq_tol(frame_ms(), outside ? 6 : 3, 0.01);
}
END_TEST

/* That of a stage, then that of frames. */
START_LOOP_TEST(warm_up_is_left_out, 0, 2 * STYLES - 1)
{
	if (_i < STYLES) {
		set_stage("cam/a", (struct stage_settings){.warmup = 2});
	} else {
		struct app_section *section = NULL;
		ck_assert_int_eq(
			app_settings_section(&settings, SECTION_FRAME, "cam", &section), 0);
		section->frames.warmup = 2;
		apps_configure(apps, &(struct apps_config){.settings = &settings});
	}
	enum style style = (enum style)(_i % STYLES);
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t frame = frame_begin(style, i);
		work(&a, "a", i < 2 ? S : 2 * MS, frame);
		work(&b, "b", 4 * MS, frame);
		frame_end(style, i);
		drain();
	}
	drain_all();
	costs(6);
}
END_TEST

START_TEST(the_most_frequent_stage_is_the_iteration)
{
	static uint16_t crop;
	crop = UINT16_MAX;
	for (uint64_t i = 0; i < 50; i++) {
		work(&a, "a", 10 * MS, PROTO_NO_FRAME);
		for (int k = 0; k < 5; k++) {
			work(&crop, "crop", MS, PROTO_NO_FRAME);
		}
	}
	drain();
	ck_assert_double_eq_tol(frame_ms(), 3, 0.1);
	ck_assert_double_eq(runs_of("crop"), 1);
}
END_TEST

START_TEST(a_tick_within_a_frame_is_the_frame)
{
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t start_ns = now_ns, id = i % 20;
		work(&a, "a", 2 * MS, id);
		send(0, PROTO_KIND_FRAME, 0, now_ns, 0, id);
		work(&b, "b", 4 * MS, id);
		send(0, PROTO_KIND_FRAME, 0, start_ns, now_ns - start_ns, id);
		drain();
	}
	drain_all();
	costs(6);
	ck_assert_uint_eq(app()->frames->count, 60);
}
END_TEST

/* More stages than a frame has places for. */
START_TEST(sixty_stages_in_a_frame)
{
	uint16_t stages[60];
	memset(stages, 0xff, sizeof(stages));
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t start_ns = now_ns;
		for (int k = 0; k < 60; k++) {
			char name[8];
			snprintf(name, sizeof(name), "s%d", k);
			work(&stages[k], name, MS / 10, i);
		}
		send(0, PROTO_KIND_FRAME, 0, start_ns, now_ns - start_ns, i);
		drain();
	}
	drain_all();
	ck_assert_double_eq_tol(frame_ms(), 6, 0.1);
}
END_TEST
