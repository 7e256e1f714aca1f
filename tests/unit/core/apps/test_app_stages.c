/* SPDX-License-Identifier: Apache-2.0 */
/* From records to stages: names and units, costs, settings, the throttle state. */
#include "tests/unit/core/apps/app_stages_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

/* covers G3.4 */
START_TEST(a_unit_comes_from_the_name)
{
	static const struct {
		const char *told, *declared, *name, *unit;
	} cases[] = {
		{"infer@gpu", "", "infer", "gpu"},
		{"detect@dla", "npu", "detect", "npu"},
		{"pose_coreml", "", "pose_coreml", "coreml"},
		{"seg_onnx_cpu", "", "seg_onnx_cpu", "cpu"},
		{"plain", "cpu", "plain", "cpu"},
		{"@gpu", "", "_gpu", ""},
		{"end@", "", "end_", ""},
		{"a@b@npu", "", "a_b", "npu"},
		{"_coreml", "", "_coreml", ""},
		{"track_npu", "npu", "track", "npu"}, /* as libraries clean track@npu */
		{"ocr_onnx_cpu", "cpu", "ocr_onnx_cpu", "cpu"},
		{"_gpu2", "gpu2", "_gpu2", "gpu2"},
		{"copy_npu", "", "copy_npu", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint16_t index = declare_as(cases[i].told, "", cases[i].declared);
		run_in(0, index, T0, MS);
		ck_assert_str_eq(app()->stage[i]->name, cases[i].name);
		ck_assert_str_eq(app()->stage[i]->unit, cases[i].unit);
	}
}
END_TEST

START_TEST(one_name_on_two_units_is_two_stages)
{
	uint16_t gpu = declare("infer@gpu"), cpu = declare("infer@cpu");
	run_in(0, gpu, T0, MS);
	run_in(0, cpu, T0, 2 * MS);
	ck_assert_str_eq(app()->stage[0]->name, "infer");
	ck_assert_str_eq(app()->stage[1]->name, "infer_cpu");
	/* and the same two in another process, whatever comes first there */
	ck_assert_int_eq(apps_attach(apps, "cam", 1, 11, 1, 65536, T0, &process), 0);
	cpu = declare("infer@cpu");
	run_in(0, cpu, T0, 2 * MS);
	ck_assert_uint_eq(app()->stages, 2);
	ck_assert_uint_eq(stage("infer_cpu")->count, 2);
}
END_TEST

/* covers G3.4 */
START_TEST(a_unit_keeps_its_runs_whoever_else_runs_the_stage)
{
	uint16_t gpu = declare_as("infer", "", "gpu");
	run_in(0, gpu, T0, MS);
	ck_assert_int_eq(apps_attach(apps, "cam", 1, 11, 1, 65536, T0, &process), 0);
	uint16_t cpu = declare_as("infer", "", "cpu");
	run_in(0, cpu, T0, 2 * MS);
	ck_assert_str_eq(app()->stage[0]->unit, "gpu");
	ck_assert_uint_eq(app()->stage[0]->count, 1);
	ck_assert_str_eq(stage("infer_cpu")->unit, "cpu");
	ck_assert_str_eq(app_expected_unit(app(), stage("infer_cpu")), "gpu");
}
END_TEST

/* covers G3.11 */
START_TEST(an_op_of_every_fifth_frame_costs_a_fifth_per_frame)
{
	uint16_t track = declare("track"), detect = declare("detect");
	for (uint64_t frame = 0; frame < 500; frame++) {
		uint64_t t = T0 + frame * 40 * MS;
		put(PROTO_KIND_COMPLETE, 0, track, t, 4 * MS, frame);
		if (frame % 5 == 0) {
			put(PROTO_KIND_COMPLETE, 0, detect, t + 5 * MS, 50 * MS, frame);
		}
		if (frame % 50 == 49) {
			apps_drained(apps, process);
		}
	}
	const struct window_query recent = {.lifetime = false};
	struct app_relations relations;
	app_relate(app(), &relations);
	double runs;
	double cost = app_per_frame_ms(app(), &relations, stage("detect"), &recent, &runs);
	ck_assert_double_eq_tol(runs, 0.2, 1e-9);
	ck_assert_double_eq_tol(cost, 10, 1e-9);
	ck_assert_double_eq_tol(app_frame_ms(app(), &relations, &recent), 14, 1e-6);
}
END_TEST

/* covers G1.1 G2.3 */
START_TEST(a_cost_belongs_to_the_run_behind_it)
{
	uint16_t load = declare("load"), other = declare("other");
	put(PROTO_KIND_COST, 0, load, T0, 30 * MS, 8192);
	run_in(0, load, T0, 10 * MS);
	run_in(0, load, T0, 10 * MS); /* the cost is spent */
	put(PROTO_KIND_COST, 0, load, T0, 99 * MS, 4096);
	run_in(0, other, T0, MS); /* another's */
	put(PROTO_KIND_COST, 0, load, T0 + 1, 99 * MS, 4096);
	run_in(0, load, T0, 10 * MS); /* another start */
	put(PROTO_KIND_COST, 0, load, T0, UINT64_MAX, (uint64_t)INT64_MIN);
	run_in(0, load, T0, 10 * MS); /* nothing measured */
	double scratch[1024];
	struct stage_answer answer;
	const struct window_query recent = {.lifetime = false};
	stage_ask(stage("load"), &recent, scratch, &answer);
	ck_assert_double_eq_tol(answer.process_cpu_ms, 30, 1e-9);
	ck_assert_double_eq_tol(answer.cpu_ratio, 3, 1e-9);
	ck_assert_uint_eq(stage("load")->rss_measured, 1);
	ck_assert_int_eq(stage("load")->rss_growth_max, 8192);
	ck_assert_uint_eq(stage("other")->rss_measured, 0);
	ck_assert_uint_eq(process->accounting.invalid, 0);
	put(PROTO_KIND_COST, 0, 99, T0, 0, 0);
	ck_assert_uint_eq(process->accounting.invalid, 1);
}
END_TEST

/* covers G2.3 */
START_TEST(a_run_that_grows_over_ten_mib_is_told_once)
{
	uint16_t load = declare("load");
	uint64_t before = timeline_last_serial(timeline);
	static const int64_t grown[] = {10 << 20, (25 << 20) / 2, 11 << 20, 0, 20 << 20};
	for (uint64_t i = 0; i < 5; i++) {
		read_ns = T0 + (i + 1) * S;
		put(PROTO_KIND_COST, 0, load, T0 + i * S, UINT64_MAX, (uint64_t)grown[i]);
		run_in(0, load, T0 + i * S, MS);
		ck_assert_uint_eq(timeline_last_serial(timeline), before + (i > 0));
	}
	read_ns = T0 + 70 * S;
	put(PROTO_KIND_COST, 0, load, T0 + 65 * S, UINT64_MAX, 30 << 20); /* it goes on */
	run_in(0, load, T0 + 65 * S, MS);
	ck_assert_str_eq(last_text(), "High memory usage in load: 12.5MB");
	ck_assert_int_eq(stage("load")->rss_growth_max, 30 << 20);
	for (uint64_t i = 0; i < 2; i++) { /* a minute later it may be told again */
		put(PROTO_KIND_COST, 0, load, T0 + 70 * S + i, UINT64_MAX, i ? 15 << 20 : 0);
		run_in(0, load, T0 + 70 * S + i, MS);
	}
	ck_assert_str_eq(last_text(), "High memory usage in load: 15.0MB");
}
END_TEST

/* What a stage needs is allocated in its first execution, and the category memory is there to be
 * measured: neither is a leak. */
START_TEST(the_first_execution_and_the_category_memory_may_grow)
{
	uint16_t load = declare("load"), scope = declare_as("scope", "memory", "");
	uint64_t before = timeline_last_serial(timeline);
	put(PROTO_KIND_COST, 0, load, T0, UINT64_MAX, 200 << 20);
	run_in(0, load, T0, MS);
	for (uint64_t i = 1; i < 5; i++) {
		put(PROTO_KIND_COST, 0, scope, T0 + i * S, UINT64_MAX, 200 << 20);
		run_in(0, scope, T0 + i * S, MS);
	}
	apps_sample(apps, T0 + 6 * S);
	ck_assert_double_eq(metrics_find(metrics, "stage/cam/load/growth_over_limit")->value, 0);
	ck_assert_double_eq(metrics_find(metrics, "stage/cam/scope/growth_over_limit")->value, 0);
	ck_assert_uint_eq(timeline_last_serial(timeline), before);
	ck_assert_int_eq(stage("load")->rss_growth_max, 200 << 20); /* it is counted all the same */
}
END_TEST

/* covers G2.3 */
START_TEST(growth_over_the_limit_is_a_metric_of_stages_that_measure)
{
	uint16_t load = declare("load");
	run_in(0, load, T0, MS);
	apps_sample(apps, T0 + S);
	ck_assert_ptr_null(metrics_find(metrics, "stage/cam/load/growth_over_limit"));
	stage("load")->warmup_left = 3; /* runs that load a model count here */
	static const int64_t grown[] = {
		48 << 20, 24 << 20, 11 << 20, 9 << 20}; /* the first loads */
	for (uint64_t i = 0; i < 4; i++) {
		put(PROTO_KIND_COST, 0, load, T0 + S + i, UINT64_MAX, (uint64_t)grown[i]);
		run_in(0, load, T0 + S + i, MS);
	}
	apps_sample(apps, T0 + 2 * S);
	struct metric *metric = metrics_find(metrics, "stage/cam/load/growth_over_limit");
	ck_assert_ptr_nonnull(metric);
	ck_assert_int_eq(metric->unit, UNIT_BYTES);
	ck_assert_double_eq(metric->value, 24 << 20);
	ck_assert_double_eq(metric->limit, 10 << 20);
	apps_sample(apps, T0 + 3 * S); /* no run, so none grew */
	ck_assert_double_eq(metric->value, 0);
	set_stage("cam/load", (struct stage_settings){.rss_growth_limit = 8 << 20});
	put(PROTO_KIND_COST, 0, load, T0 + 3 * S, UINT64_MAX, 9 << 20);
	run_in(0, load, T0 + 3 * S, MS);
	apps_sample(apps, T0 + 4 * S);
	ck_assert_double_eq(metric->value, 9 << 20);
}
END_TEST

START_TEST(events_have_the_state_at_their_end)
{
	static struct throttle_times times;
	throttle_times_sample(&times, T0, THROTTLE_NO);
	throttle_times_sample(&times, T0 + S, THROTTLE_YES);
	apps_set_throttle_times(apps, &times);
	uint16_t infer = declare("infer"), io = declare("io");
	run_in(0, infer, T0 + S - 2 * MS, MS); /* ends before */
	run_in(0, infer, T0 + S - MS, 2 * MS); /* ends after the edge */
	run_in(0, infer, T0 + 50 * S, MS);     /* nobody knows */
	put(PROTO_KIND_BEGIN, 0, io, T0 + S - MS, 7, PROTO_NO_FRAME);
	put(PROTO_KIND_END, 0, io, T0 + S, 7, PROTO_NO_FRAME);
	apps_drained(apps, process);
	ck_assert_uint_eq(stage("infer")->throttled->count, 1);
	ck_assert_uint_eq(stage("infer")->unknown_count, 1);
	ck_assert_uint_eq(stage("io")->throttled->count, 1);
}
END_TEST

/* covers G1.12 */
START_TEST(an_app_changes_a_deadline_while_it_runs)
{
	uint16_t infer = declare("infer");
	run_in(0, infer, T0, 20 * MS);
	put(PROTO_KIND_DEADLINE, 0, infer, T0, 10 * MS, 0);
	run_in(0, infer, T0, 20 * MS);
	put(PROTO_KIND_DEADLINE, 0, infer, T0, 0, 0);
	run_in(0, infer, T0, 20 * MS);
	ck_assert_uint_eq(stage("infer")->misses, 1);
	ck_assert_uint_eq(stage("infer")->judged, 1);
	ck_assert_uint_eq(stage("infer")->deadline_ns, 0);
}
END_TEST

START_TEST(settings_reach_stages_that_are_there_and_new_ones)
{
	uint16_t other = declare("other"), infer = declare("infer");
	run_in(0, other, T0, MS);
	set_stage("cam/infer", (struct stage_settings){.deadline_ns = 5 * MS, .warmup = 2});
	run_in(0, infer, T0, 9 * MS);
	run_in(0, infer, T0, 9 * MS);
	run_in(0, infer, T0, 9 * MS);
	ck_assert_uint_eq(stage("infer")->warmup_skipped, 2);
	ck_assert_uint_eq(stage("infer")->misses, 1);
	ck_assert_uint_eq(stage("other")->deadline_ns, 0);
	set_nothing();
	ck_assert_uint_eq(stage("infer")->deadline_ns, 0);
}
END_TEST

/* covers G3.4 */
START_TEST(a_configured_unit_is_the_expected_one_and_not_the_one_it_runs_on)
{
	static const struct {
		const char *told, *declared, *base, *unit, *expected;
		bool fallback;
	} cases[] = {
		{"infer_onnx_cpu", "", "infer", "cpu", "coreml", true},
		{"infer@coreml", "", "infer", "coreml", "coreml", false},
		{"infer", "gpu", "infer", "gpu", "coreml", false},
		{"infer", "CPU0", "infer", "CPU0", "coreml", true},
		{"MTL_onnx_cpu", "npu", "MTL", "npu", "npu", false},
		{"MTL_coreml", "", "MTL", "coreml", "npu", false},
		{"MTL_onnx_cpu@cpu", "", "MTL", "cpu", "npu", true},
		{"MTL_onnx_cpu@dla", "", "MTL", "dla", "npu", false},
		{"seg_onnx_cpu_coreml", "coreml", "seg", "coreml", "coreml", false},
	};
	set_stage("cam/infer", (struct stage_settings){.unit = "coreml"});
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_in(0, declare_as(cases[i].told, "", cases[i].declared), T0, MS);
		const struct stage *row = app()->stage[i];
		const char *expected = app_expected_unit(app(), row);
		ck_assert_str_eq(row->base, cases[i].base);
		ck_assert_str_eq(stage_unit(row), cases[i].unit);
		ck_assert_str_eq(expected, cases[i].expected);
		ck_assert(app_is_cpu_fallback(stage_unit(row), expected) == cases[i].fallback);
	}
}
END_TEST

/* covers G3.4 */
START_TEST(a_stage_that_declares_no_unit_has_the_configured_one_as_long_as_it_is_configured)
{
	run_in(0, declare("infer"), T0, MS);
	ck_assert_str_eq(stage_unit(stage("infer")), "");
	set_stage("cam/infer", (struct stage_settings){.unit = "coreml"});
	ck_assert_str_eq(stage_unit(stage("infer")), "coreml");
	/* what declares another is another row, here and in another process */
	run_in(0, declare("infer@gpu"), T0, MS);
	ck_assert_int_eq(apps_attach(apps, "cam", 1, 11, 1, 65536, T0, &process), 0);
	run_in(0, declare_as("infer", "", "cpu"), T0, MS);
	run_in(0, declare_as("infer", "", "cpu"), T0, MS);
	ck_assert_str_eq(stage_unit(stage("infer_gpu")), "gpu");
	ck_assert_str_eq(stage_unit(stage("infer_cpu")), "cpu");
	ck_assert_str_eq(stage("infer_cpu")->base, "infer");
	ck_assert_uint_eq(stage("infer")->count, 1);
	set_nothing();
	ck_assert_str_eq(stage_unit(stage("infer")), "");
}
END_TEST

/* Rows of one name and one unit keep names that tell them apart. */
START_TEST(no_two_rows_look_alike)
{
	static const char *const told[] = {"a b", "a_b", "pose@coreml", "pose_coreml"};
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		run_in(0, declare(told[i]), T0, MS);
		for (size_t k = 0; k < i; k++) {
			ck_assert_str_ne(app()->stage[k]->base, app()->stage[i]->base);
		}
	}
}
END_TEST

START_TEST(stages_share_a_budget_and_the_rest_goes_into_other)
{
	teardown();
	open_apps(3 * stage_bytes(1024));
	for (int i = 0; i < 5; i++) {
		char name[8];
		snprintf(name, sizeof(name), "s%d", i);
		uint16_t index = declare(name);
		run_in(0, index, T0, MS);
	}
	ck_assert_uint_eq(app()->stages, 4);
	ck_assert_uint_eq(stage(APP_STAGE_OTHER)->count, 2);
	ck_assert_uint_eq(apps_counts(apps)->stages_refused, 2);
	ck_assert_uint_eq(apps_counts(apps)->stage_budget.used, 4 * stage_bytes(1024));
	apps_detach(apps, process, PROCESS_ENDED, T0 + S);
	ck_assert_int_eq(apps_attach(apps, "cam", 1, 10, 1, 65536, T0 + S, &process), 0);
	uint16_t fresh = declare("fresh"); /* places of stages that nobody uses are given */
	run_in(0, fresh, T0 + S, MS);
	ck_assert_uint_eq(stage("fresh")->count, 1);
	ck_assert_uint_le(apps_counts(apps)->stage_budget.used, 3 * stage_bytes(1024));
}
END_TEST

/* Whatever the bits of a record are, and what is asked then. */
START_TEST(any_record_leaves_answers_that_can_be_given)
{
	static double scratch[1024];
	uint64_t seed = 42;
	for (int i = 0; i < PROTO_DECLARATIONS; i++) {
		char name[16];
		snprintf(name, sizeof(name), i % 3 ? "s%d" : "s%d@gpu", i);
		declare(name);
	}
	for (int i = 0; i < 200000; i++) {
		uint64_t word[4];
		for (int k = 0; k < 4; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			word[k] = seed ^ seed >> 29;
		}
		struct proto_record r;
		memcpy(&r, word, sizeof(r));
		r.stage %= PROTO_DECLARATIONS + 2;
		r.kind %= PROTO_KIND_COUNT + 1;
		if (i % 4) { /* believable times, so that it gets far */
			r.start_ns = T0 + r.start_ns % S;
			r.value %= i % 8 ? MS : 86400 * S;
		}
		apps_record(apps, process, (uint32_t)(word[0] >> 40) % 80, &r, read_ns);
		if (i % 1000 == 0) {
			apps_drained(apps, process);
		}
	}
	struct app_relations relations;
	app_relate(app(), &relations);
	for (int choice = 0; choice < 12; choice++) {
		const struct window_query query = {.lifetime = choice & 1,
			.nearest = choice & 2,
			.filter = (enum window_filter)(choice / 4)};
		for (size_t i = 0; i < app()->stages; i++) {
			struct stage_answer answer;
			stage_ask(app()->stage[i], &query, scratch, &answer);
			ck_assert(answer.summary.count <= app()->stage[i]->count);
			ck_assert(relations.parent[i] < (int)app()->stages);
		}
		ck_assert(app_frame_ms(app(), &relations, &query) >= 0);
	}
	ck_assert_uint_gt(process->accounting.invalid, 0);
	ck_assert_uint_gt(app()->stages, 100);
}
END_TEST
