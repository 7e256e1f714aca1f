/* SPDX-License-Identifier: Apache-2.0 */
/* Which stage runs within which, and what that makes of totals and shares. */
#include "tests/unit/core/apps/app_stages_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

/* covers G3.12 */
START_TEST(children_come_before_their_parent)
{
	uint16_t infer = declare("infer"), pre = declare("pre"), conv = declare("conv"),
		 nms = declare("nms");
	for (uint64_t i = 0; i < 3; i++) {
		run_in(2, conv, T0, 3 * MS);
		run_in(2, conv, T0, 3 * MS);
		run_in(1, pre, T0, 8 * MS);
		run_in(1, nms, T0, 2 * MS);
		run_in(0, infer, T0, 10 * MS);
	}
	ck_assert_str_eq(parent("conv"), "pre");
	ck_assert_str_eq(parent("pre"), "infer");
	ck_assert_str_eq(parent("nms"), "infer");
	ck_assert_str_eq(parent("infer"), "");
	ck_assert_uint_eq(stage("conv")->depth, 2);
	ck_assert_uint_eq(stage("conv")->parents, 1);
	ck_assert(counts("infer") && !counts("pre") && !counts("conv") && !counts("nms"));
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_uint_eq(relations.total_ns, 30 * MS);
}
END_TEST

/* covers mistake 12: what is in `total` counts, `total` does not */
START_TEST(stages_inside_total_count_and_total_does_not)
{
	uint16_t total = declare("total"), capture = declare("capture"), infer = declare("infer"),
		 conv = declare("conv");
	run_in(1, capture, T0, 4 * MS);
	run_in(2, conv, T0, 5 * MS);
	run_in(1, infer, T0, 6 * MS);
	run_in(0, total, T0, 11 * MS);
	ck_assert_str_eq(parent("capture"), "total");
	ck_assert(counts("capture") && counts("infer") && !counts("conv") && !counts("total"));
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_double_eq_tol(app_frame_ms(app(), &relations, &recent), 10, 1e-9);
	ck_assert_double_eq_tol(
		app_per_frame_ms(app(), &relations, stage("infer"), &recent, NULL), 6, 1e-9);
	ck_assert_double_eq_tol(
		app_per_frame_ms(app(), &relations, stage("conv"), &recent, NULL), 5, 1e-9);
}
END_TEST

START_TEST(waiting_is_in_no_sum)
{
	uint16_t queue = declare_as("queue", "wait", ""), infer = declare_as("infer", "model", "");
	run_in(0, queue, T0, 100 * MS);
	run_in(0, infer, T0 + 100 * MS, 6 * MS);
	ck_assert(counts("infer") && !counts("queue"));
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_uint_eq(relations.total_ns, 6 * MS);
	ck_assert_double_eq_tol(app_frame_ms(app(), &relations, &recent), 6, 1e-9);
}
END_TEST

START_TEST(recursion_counts_once)
{
	uint16_t walk = declare("walk"), post = declare("post");
	for (unsigned i = 0; i < 10; i++) {
		for (unsigned depth = 4; depth-- > 0;) {
			run_in(depth, walk, T0, (4 - depth) * MS);
		}
		run_in(0, post, T0 + 4 * MS, MS);
	}
	ck_assert_str_eq(parent("walk"), "");
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_uint_eq(relations.total_ns, 50 * MS);
	double walk_ms = stage_mean_ms(stage("walk"), &recent);
	ck_assert_double_eq_tol(4 * walk_ms * relations.counts[index_of("walk")], 4, 1e-9);
}
END_TEST

START_TEST(the_parent_seen_most_often_wins_and_others_are_flagged)
{
	uint16_t a = declare("a"), b = declare("b"), child = declare("child");
	for (int i = 0; i < 5; i++) {
		run_in(1, child, T0, MS);
		run_in(0, i == 0 ? a : b, T0, 2 * MS);
	}
	ck_assert_str_eq(parent("child"), "b");
	ck_assert_uint_eq(stage("child")->parents, 2);
	for (int i = 0; i < 6; i++) { /* it mostly runs on its own by now */
		run_in(0, child, T0, MS);
	}
	ck_assert_str_eq(parent("child"), "");
	ck_assert(counts("child"));
}
END_TEST

START_TEST(of_a_stage_inside_and_on_its_own_the_latter_counts)
{
	uint16_t pre = declare("pre"), copy = declare("copy"), infer = declare("infer");
	for (int i = 0; i < 40; i++) {
		run_in(1, copy, T0, 1 * MS);
		run_in(1, copy, T0, 1 * MS);
		run_in(1, copy, T0, 1 * MS);
		run_in(0, pre, T0, 4 * MS);
		run_in(0, infer, T0, 5 * MS);
		run_in(0, copy, T0, 9 * MS);
	}
	ck_assert_str_eq(parent("copy"), "pre");
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_double_eq_tol(relations.counts[0], 0.75, 1e-9);
	double copy_ms = app_per_frame_ms(app(), &relations, stage("copy"), &recent, NULL);
	double frame_ms = app_frame_ms(app(), &relations, &recent);
	ck_assert_double_eq_tol(
		app_per_frame_ms(app(), &relations, stage("pre"), &recent, NULL) +
			app_per_frame_ms(app(), &relations, stage("infer"), &recent, NULL) +
			0.75 * copy_ms,
		frame_ms, 1e-9);
}
END_TEST

START_TEST(a_in_b_in_a_has_a_root)
{
	uint16_t a = declare("a"), b = declare("b");
	run_in(2, a, T0, MS);
	run_in(1, b, T0, 2 * MS);
	run_in(2, b, T0, 2 * MS);
	run_in(1, a, T0, MS);
	run_in(2, b, T0, 2 * MS);
	run_in(1, a, T0, MS);
	ck_assert(parent("a")[0] == '\0' || parent("b")[0] == '\0');
	ck_assert(counts("a") != counts("b"));
}
END_TEST

/* frame { step { copy; longjmp }, copy }: step never ends, but copy ran in the frame. */
START_TEST(children_of_one_that_never_ended_are_those_of_the_next_around_it)
{
	uint16_t copy = declare("copy"), frame = declare("frame"), other = declare("other");
	for (uint64_t i = 0; i < 10; i++) {
		run_in(2, copy, T0 + i * S + MS, MS);
		run_in(2, copy, T0 + i * S + 2 * MS, MS);
		run_in(0, frame, T0 + i * S, 5 * MS);
		run_in(1, other, T0 + i * S + 5 * MS, MS);
		run_in(0, other, T0 + i * S + 5 * MS, 2 * MS);
	}
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_str_eq(parent("copy"), "frame");
	ck_assert_uint_eq(stage("copy")->parents, 1);
	ck_assert_uint_eq(stage("copy")->parent[0].runs, 10);
	ck_assert_uint_eq(relations.self_ns[index_of("frame")], 10 * 3 * MS);
}
END_TEST

START_TEST(what_a_thread_leaves_open_is_not_around_the_next_one_s_stages)
{
	uint16_t left = declare("left"), infer = declare("infer"), conv = declare("conv");
	for (uint64_t i = 0; i < 10; i++) {
		run_in(1, left, T0 + i * S, MS); /* the thread ends inside of the stage around it */
		apps_slot_taken(process, 0);
		run_in(1, conv, T0 + i * S + 5 * MS, MS);
		run_in(0, infer, T0 + i * S + 4 * MS, 3 * MS);
		apps_slot_taken(process, 0);
	}
	struct app_relations relations;
	app_relate(app(), &relations);
	ck_assert_str_eq(parent("left"), "");
	ck_assert_uint_eq(stage("left")->parents, 0);
	ck_assert_str_eq(parent("conv"), "infer");
	ck_assert_uint_eq(relations.self_ns[index_of("infer")], 10 * 2 * MS);
	apps_slot_taken(process, 4711);
}
END_TEST

START_TEST(more_children_and_parents_than_fit_are_left_out)
{
	uint16_t many[40], top = declare("top");
	for (int i = 0; i < 40; i++) {
		char name[8];
		snprintf(name, sizeof(name), "c%d", i);
		many[i] = declare(name);
		run_in(1, many[i], T0, MS);
	}
	run_in(0, top, T0, 50 * MS);
	ck_assert_str_eq(parent("c15"), "top");
	ck_assert_str_eq(parent("c16"), "");
	for (int i = 1; i < 40; i++) { /* one child in 39 parents */
		run_in(1, many[0], T0, MS);
		run_in(0, many[i], T0, MS);
	}
	ck_assert_uint_eq(stage("c0")->parents, STAGE_PARENTS + 1);
	/* deeper than is told, and a slot that no mapping has */
	run_in(15, many[0], T0, MS);
	const struct proto_record r = {.stage = top,
		.kind = PROTO_KIND_COMPLETE,
		.flags = 3 << PROTO_RECORD_DEPTH_SHIFT,
		.start_ns = T0,
		.value = MS,
		.frame = PROTO_NO_FRAME};
	apps_record(apps, process, 4711, &r, T0 + S);
	ck_assert_uint_eq(process->accounting.invalid, 0);
}
END_TEST

/* covers G3.3: golden vector C */
START_TEST(golden_vector_c_shares_of_category_and_total)
{
	static const struct {
		const char *name, *category;
		uint64_t ms;
		double of_category, of_total;
	} ops[] = {{"op1", "inference", 112345, 56.67, 47.71},
		{"op2", "inference", 48672, 24.55, 20.67},
		{"op3", "inference", 37217, 18.77, 15.80},
		{"rest", "other", 235478 - 198234, 100, 15.82}};
	for (size_t i = 0; i < 4; i++) {
		uint16_t op = declare_as(ops[i].name, ops[i].category, "");
		run_in(0, op, T0, ops[i].ms * MS / 2);
		run_in(0, op, T0, ops[i].ms * MS / 2);
	}
	struct app_relations r;
	app_relate(app(), &r);
	ck_assert_uint_eq(r.total_ns, 235478 * MS);
	for (size_t i = 0; i < 4; i++) {
		double ns = (double)app()->stage[i]->total_ns;
		double category_ns = (double)r.category_ns[r.category[i]];
		ck_assert_double_eq_tol(100 * ns / category_ns, ops[i].of_category, 0.005);
		ck_assert_double_eq_tol(100 * ns / (double)r.total_ns, ops[i].of_total, 0.005);
	}
	ck_assert_double_eq_tol(100 * (double)r.category_ns[0] / (double)r.total_ns, 84.2, 0.05);
}
END_TEST

START_TEST(a_nested_stage_counts_in_its_own_category_only)
{
	uint16_t infer = declare_as("infer", "nn", "gpu"), conv = declare_as("conv", "nn", "gpu"),
		 copy = declare_as("copy", "memory", "gpu");
	run_in(1, conv, T0, 6 * MS);
	run_in(1, copy, T0, 1 * MS);
	run_in(0, infer, T0, 10 * MS);
	struct app_relations r;
	app_relate(app(), &r);
	ck_assert_uint_eq(r.category_ns[r.category[index_of("infer")]], 9 * MS);
	ck_assert_uint_eq(r.category_ns[r.category[index_of("copy")]], 1 * MS);
	ck_assert_uint_eq(r.unit_ns[r.unit[index_of("copy")]], 10 * MS);
	ck_assert_uint_eq(r.self_ns[index_of("infer")], 3 * MS);
}
END_TEST

/* A child of two parents, one that mostly runs alone, a run whose parent got lost. */
/* covers G3.4 */
START_TEST(a_stage_inside_another_has_its_unit_when_it_declares_none)
{
	struct app_relations relations;
	uint16_t infer = declare("infer@gpu"), conv = declare("conv"), op = declare("op");
	uint16_t copy = declare("copy@cpu"), publish = declare("publish");
	run_in(2, op, T0, MS);
	run_in(1, conv, T0, 2 * MS);
	run_in(1, copy, T0 + 2 * MS, MS);
	run_in(0, infer, T0, 4 * MS);
	run_in(0, publish, T0 + 4 * MS, 5 * MS);
	app_relate(app(), &relations);
	ck_assert_str_eq(relations.unit_name[index_of("op")], "gpu");
	ck_assert_str_eq(relations.unit_name[index_of("conv")], "gpu");
	ck_assert_str_eq(relations.unit_name[index_of("copy")], "cpu");
	ck_assert_str_eq(relations.unit_name[index_of("publish")], "");
	ck_assert_uint_eq(relations.unit_ns[relations.unit[index_of("infer")]], 3 * MS);
	ck_assert_str_eq(stage("conv")->unit, "");
}
END_TEST

START_TEST(shares_add_up_whatever_runs_inside_what)
{
	static const char *const categories[] = {"x", "y", ""};
	uint16_t stages[6];
	for (int i = 0; i < 6; i++) {
		char name[8];
		snprintf(name, sizeof(name), "s%d", i);
		stages[i] = declare_as(name, categories[i % 3], i % 2 ? "gpu" : "cpu");
	}
	uint64_t t = T0, whole = 0;
	for (int i = 0; i < 50; i++, t += 100 * MS) {
		run_in(2, stages[0], t + MS, 2 * MS);
		run_in(1, stages[1], t, 5 * MS);
		run_in(1, stages[2], t + 5 * MS, 5 * MS);
		run_in(0, stages[i % 2 ? 3 : 4], t, 12 * MS);
		run_in(0, stages[0], t + 20 * MS, 7 * MS);
		run_in(1, stages[2], t + 30 * MS, MS); /* its parent is lost */
		run_in(0, stages[5], t + 40 * MS, 3 * MS);
		whole += (12 + 7 + 1 + 3) * MS;
	}
	struct app_relations r;
	app_relate(app(), &r);
	uint64_t self = 0, category = 0, unit = 0;
	for (size_t i = 0; i < app()->stages; i++) {
		self += r.self_ns[i];
		category += r.category_ns[i];
		unit += r.unit_ns[i];
	}
	ck_assert_uint_eq(r.total_ns, whole);
	ck_assert(self == whole && category == whole && unit == whole);
	uint8_t order[APP_STAGES_MAX], depth[APP_STAGES_MAX];
	app_tree(app(), &r, order, depth);
	for (size_t i = 0; i < app()->stages; i++) {
		int16_t parent = r.parent[order[i]];
		ck_assert_int_eq(depth[i] == 0, parent == APP_NO_STAGE);
		ck_assert(depth[i] == 0 || depth[i - 1] >= depth[i] - 1);
	}
}
END_TEST
