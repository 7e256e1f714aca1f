/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a report: shares, groups, per-call and per-frame cost, the short profile, targets.
 */
#include "client/edgeprofctl/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/verb.h"
#include "tests/unit/unit.h"

static struct data data;
static struct data_stage stages[5];
static struct data_execution runs[5][100];
static struct data_frame frames[100];

static void setup(void)
{
	memset(stages, 0, sizeof(stages));
	data = (struct data){.app = "cam", .kept_share = 1, .frame = frames, .stage = stages};
	data.frame_deadline_ms = NAN;
}

FIXTURE(setup, NULL);

static struct data_stage *add(const char *name, const char *category, double ms, double self_ms)
{
	struct data_stage *stage = &stages[data.stage_count];
	double values[] = {ms};
	stage->execution = runs[data.stage_count++];
	stage->execution[0] = (struct data_execution){.ms = ms, .frame = DATA_NO_FRAME};
	snprintf(stage->name, sizeof(stage->name), "%s", name);
	memcpy(stage->shown, stage->name, sizeof(stage->shown));
	snprintf(stage->category, sizeof(stage->category), "%s", category);
	stage->count = 1;
	stage->parent = -1;
	stage->self_ms = self_ms;
	stage->per_frame_ms = stage->deadline_ms = NAN;
	stage->ms = data_numbers_of(values, 1);
	return stage;
}

static const cJSON *row(const cJSON *tree, const char *array, const char *member, const char *name)
{
	for (const cJSON *one = json_first(tree, array); one; one = one->next) {
		if (strcmp(json_word(one, member), name) == 0) {
			return one;
		}
	}
	ck_abort_msg("no %s %s", array, name);
	return NULL;
}

/* covers golden vector C, G3.2 G3.3 G3.8 */
START_TEST(shares_of_the_category_and_of_the_total_are_two_numbers)
{
	add("a", "model", 112345, 112345);
	add("b", "model", 48672, 48672);
	add("c", "model", 37217, 37217);
	add("d", "io", 37244, 37244);
	cJSON *tree = report_tree(&data);
	static const double of_category[] = {56.67, 24.55, 18.77},
			    of_total[] = {47.71, 20.67, 15.80};
	static const char *const priorities[] = {"HIGH", "HIGH", "MEDIUM"};
	for (int i = 0; i < 3; i++) {
		const cJSON *stage =
			row(tree, "stages", "stage", (const char[]){(char)('a' + i), '\0'});
		ck_assert_double_eq_tol(
			json_number(stage, "percent_of_category"), of_category[i], 0.005);
		ck_assert_double_eq_tol(json_number(stage, "percent_of_total"), of_total[i], 0.006);
		ck_assert_str_eq(json_word(stage, "priority"), priorities[i]);
	}
	const cJSON *model = row(tree, "categories", "category", "model");
	ck_assert_double_eq_tol(json_number(model, "percent_of_total"), 84.2, 0.05);
	ck_assert_double_eq_tol(json_number(model, "total_ms"), 198234, 1e-6);
	ck_assert_int_eq(json_integer(model, "count"), 3);
	ck_assert(json_first(tree, "categories") == model); /* most time first */
	ck_assert_double_eq_tol(json_number(json_first(tree, "totals"), "total_ms"), 235478, 1e-6);
	cJSON_Delete(tree);
}
END_TEST

/* covers G3.3 */
START_TEST(groups_are_in_order_of_their_time)
{
	static const char *const order[] = {"e", "c", "b", "d", "a"};
	add("1", "a", 1, 1);
	add("2", "e", 50, 50);
	add("3", "c", 30, 30);
	add("4", "b", 20, 20);
	add("5", "d", 10, 10);
	cJSON *tree = report_tree(&data);
	const cJSON *group = json_first(tree, "categories");
	for (int i = 0; i < 5; i++) {
		ck_assert_ptr_nonnull(group);
		ck_assert_str_eq(json_word(group, "category"), order[i]);
		group = group->next;
	}
	ck_assert_ptr_null(group);
	cJSON_Delete(tree);
}
END_TEST

/* covers G3.12 G4.5 */
START_TEST(nested_time_counts_once_and_units_are_inherited)
{
	struct data_stage *infer = add("infer", "", 100, 60);
	struct data_stage *post = add("nms", "", 40, 40);
	struct data_stage *total = add("total", "", 150, 50);
	snprintf(infer->unit, sizeof(infer->unit), "gpu");
	post->parent = 0;
	post->depth = 1;
	total->left_out = true;
	cJSON *tree = report_tree(&data);
	const cJSON *nested = row(tree, "stages", "stage", "nms");
	ck_assert_double_eq_tol(json_number(nested, "percent_of_parent"), 40, 1e-9);
	ck_assert_double_eq_tol(json_number(nested, "percent_of_total"), 40, 1e-9);
	ck_assert_double_eq_tol(
		json_number(row(tree, "stages", "stage", "infer"), "percent_inclusive"), 100, 1e-9);
	ck_assert_ptr_null(json_get(row(tree, "stages", "stage", "total"), "percent_of_total"));
	const cJSON *unit = row(tree, "units", "unit", "gpu");
	ck_assert_int_eq(json_integer(unit, "stages"), 2);
	ck_assert_double_eq_tol(json_number(unit, "mean_ms"), 70, 1e-9);
	ck_assert_double_eq_tol(json_number(unit, "p99_ms"), 99.4, 1e-9);
	ck_assert_int_eq(json_count(tree, "units"), 1);
	cJSON_Delete(tree);
}
END_TEST

/* 100 frames of 1 … 100 ms, 50 ms apart, in each a stage that takes as long. */
static struct data_stage *hundred(void)
{
	double values[100], apart[99];
	struct data_stage *stage = add("infer", "", 1, 5050);
	for (int i = 0; i < 100; i++) {
		values[i] = 1 + i;
		apart[i > 0 ? i - 1 : 0] = 50;
		frames[i] = (struct data_frame){.at_s = 0.05 * i,
			.total_ms = values[i],
			.time_ms = i > 0 ? 50 : NAN,
			.throttled = -1};
		stage->execution[i] = (struct data_execution){
			.ms = values[i], .frame = (size_t)i, .throttled = -1};
	}
	stage->count = data.frame_count = data.whole = 100;
	stage->per_frame_ms = 50.5;
	stage->ms = data_numbers_of(values, 100);
	data.total_ms = stage->ms;
	data.frame_time_ms = data_numbers_of(apart, 99);
	return stage;
}

/* covers G0.24 golden vector B */
START_TEST(the_profile_is_rounded_and_has_a_total)
{
	hundred();
	data.about = cJSON_Parse("{\"tags\":[{\"name\":\"model\",\"value\":\"m.tflite\"},"
				 "{\"name\":\"input_size\",\"value\":\"320x240\"}]}");
	cJSON *profile = report_profile(&data);
	char *text = cJSON_PrintUnformatted(profile);
	ck_assert_str_eq(text,
		"{\"infer\":{\"mean_ms\":50.5,\"median_ms\":50.5,\"p95_ms\":95.05,\"p99_ms\":99.01,"
		"\"min_ms\":1,\"max_ms\":100},\"total\":{\"mean_ms\":50.5,\"median_ms\":50.5,"
		"\"p95_ms\":95.05,\"p99_ms\":99.01,\"min_ms\":1,\"max_ms\":100},"
		"\"summary\":{\"frames_profiled\":100,\"mean_fps\":19.8,\"p95_fps\":10.5,"
		"\"model\":\"m.tflite\",\"input_size\":\"320x240\"}}");
	free(text);
	cJSON_Delete(profile);
	cJSON_Delete(data.about);
}
END_TEST

/* covers G0.24 */
START_TEST(without_frames_the_profile_has_nulls)
{
	data.total_ms = data_numbers_of(NULL, 0);
	cJSON *profile = report_profile(&data);
	char *text = cJSON_PrintUnformatted(profile);
	ck_assert_str_eq(text,
		"{\"total\":{\"mean_ms\":null,\"median_ms\":null,\"p95_ms\":null,\"p99_ms\":null,"
		"\"min_ms\":null,\"max_ms\":null},\"summary\":{\"frames_profiled\":0,"
		"\"mean_fps\":null,\"p95_fps\":null,\"model\":null,\"input_size\":null}}");
	free(text);
	cJSON_Delete(profile);
	cJSON *tree = report_tree(&data);
	ck_assert(!json_get(json_get(tree, "frames"), "fps"));
	ck_assert_str_eq(json_word(json_get(tree, "frames"), "status"), "insufficient data");
	cJSON_Delete(tree);
}
END_TEST

/* covers G1.3 G1.12 G3.13 */
START_TEST(frames_have_rates_of_full_seconds_and_misses_in_a_row)
{
	struct data_stage *stage = hundred();
	stage->deadline_ms = 90;
	data.frame_deadline_ms = 98.5;
	runs[0][95].ms = 1; /* between the misses */
	cJSON *tree = report_tree(&data);
	const cJSON *all = json_get(tree, "frames"), *infer = row(tree, "stages", "stage", "infer");
	ck_assert_double_eq_tol(json_number(all, "fps"), 20, 1e-9);
	ck_assert_double_eq_tol(json_number(all, "fps_1s_min"), 20, 1e-9);
	ck_assert_double_eq_tol(json_number(all, "fps_1s_max"), 20, 1e-9);
	ck_assert_double_eq_tol(json_number(all, "end_to_end_p95_ms"), 95.05, 1e-9);
	ck_assert_int_eq(json_integer(all, "misses"), 2);
	ck_assert_double_eq_tol(json_number(all, "miss_rate"), 0.02, 1e-9);
	ck_assert_int_eq(json_integer(all, "longest_consecutive_misses"), 2);
	ck_assert_int_eq(json_integer(infer, "misses"), 9);
	ck_assert_int_eq(json_integer(infer, "longest_consecutive_misses"), 5);
	ck_assert_double_eq_tol(json_number(infer, "worst_ms"), 100, 1e-9);
	ck_assert_double_eq_tol(json_number(infer, "tail_ratio"), 99.01 / 50.5, 1e-9);
	ck_assert_double_eq_tol(json_number(infer, "runs_per_frame"), 1, 1e-9);
	cJSON_Delete(tree);
}
END_TEST

START_TEST(a_pause_is_no_slow_second)
{
	static const double gaps_s[] = {5, 11, 3e10}, least[] = {0, 20, 20};
	for (int kind = 0; kind < 3; kind++) {
		hundred();
		for (int i = 50; i < 100; i++) {
			frames[i].at_s += gaps_s[kind];
		}
		cJSON *tree = report_tree(&data);
		ck_assert_double_eq_tol(
			json_number(json_get(tree, "frames"), "fps_1s_min"), least[kind], 1e-9);
		cJSON_Delete(tree);
	}
}
END_TEST

static char path[] = "/tmp/edgeprof-targets-XXXXXX";

static void remove_targets(void)
{
	unlink(path);
}

FIXTURE(setup, remove_targets);

static int with_targets(const char *text, struct ctl *ctl, cJSON **ret)
{
	unlink(path);
	snprintf(path, sizeof(path), "/tmp/edgeprof-targets-XXXXXX");
	FILE *file = fdopen(mkstemp(path), "w");
	fputs(text, file);
	fclose(file);
	*ctl = (struct ctl){.quiet = true, .options = {.config = path}};
	int status = targets_read(ctl, ret);
	if (ret && status != CTL_FINE) {
		ck_assert(strncmp(ctl->failure, path, strlen(path)) == 0);
		memmove(ctl->failure, ctl->failure + strlen(path), 100);
	}
	return status;
}

/* covers G0.25 */
START_TEST(targets_are_ranges_and_the_later_one_holds)
{
	struct ctl ctl;
	cJSON *targets;
	ck_assert_int_eq(
		with_targets("# a\n[rpi5/m]\nfps = 15-25\n\n[rpi5/m]\nfps=8 - 12.5\nlatency=80\n"
			     "note = 4 threads \x1b[31m\n",
			&ctl, &targets),
		CTL_FINE);
	ck_assert_int_eq(json_count(targets, "targets"), 1);
	const cJSON *one = json_first(targets, "targets");
	ck_assert_double_eq_tol(json_number(one, "fps_min"), 8, 1e-9);
	ck_assert_double_eq_tol(json_number(one, "fps_max"), 12.5, 1e-9);
	ck_assert_double_eq_tol(json_number(one, "latency_max_ms"), 80, 1e-9);
	ck_assert_str_eq(json_word(one, "note"), "4 threads ?[31m");
	cJSON_Delete(targets);
}
END_TEST

START_TEST(bad_targets_are_refused_by_line)
{
	static const char *const bad[][2] = {{"fps = 1-2\n", ":1: expected [DEVICE/MODEL] first"},
		{"[a/b]\nfps\n", ":2: expected KEY = VALUE"},
		{"\n[a b]\n", ":2: expected [DEVICE/MODEL]"},
		{"[a/b\n", ":1: expected [DEVICE/MODEL]"},
		{"[a/b]\nfps = 3-2\n", ":2: invalid range"},
		{"[a/b]\nfps = x\n", ":2: invalid range"},
		{"[a/b]\nfps = 1-2-3\n", ":2: invalid range"},
		{"[a/b]\nfps = -1-2\n", ":2: invalid range"},
		{"[a/b]\nfps = nan\n", ":2: invalid range"},
		{"[a/b]\nfps = 1e9\n", ":2: invalid range"},
		{"[]\n", ":1: expected [DEVICE/MODEL]"},
		{"[a/b]\nfps=1\nfps=2\n", ":3: the key is there twice"},
		{"[a/b]\nrate = 1\n", ":2: unknown key; expected fps, latency or note"}};
	for (int i = 0; i < COUNT(bad); i++) {
		struct ctl ctl;
		cJSON *targets;
		ck_assert_int_eq(with_targets(bad[i][0], &ctl, &targets), CTL_NO_INPUT);
		ck_assert_str_eq(ctl.failure, bad[i][1]);
	}
}
END_TEST

/* covers G0.25 */
START_TEST(a_report_is_inside_outside_or_better)
{
	static const struct {
		const char *target;
		int status;
		const char *verdicts[2];
	} cases[] = {{"fps = 15-25\nlatency = 40-65\n", CTL_FINE, {"inside", "inside"}},
		{"fps = 21-25\nlatency = 40-65\n", CTL_BAD_NEWS, {"outside", "inside"}},
		{"fps = 10-15\nlatency = 60-65\n", CTL_FINE, {"better than", "better than"}},
		{"fps = 10\nlatency = 40-50\n", CTL_BAD_NEWS, {"better than", "outside"}}};
	hundred();
	for (int i = 0; i < COUNT(cases); i++) {
		struct ctl ctl;
		cJSON *targets, *tree = report_tree(&data);
		char text[128];
		snprintf(text, sizeof(text), "[a/b]\n%s", cases[i].target);
		ck_assert_int_eq(with_targets(text, &ctl, &targets), CTL_FINE);
		ck_assert_int_eq(report_target(&ctl, "a/b", tree), cases[i].status);
		const cJSON *verdict = json_first(json_get(tree, "target"), "verdicts");
		ck_assert_str_eq(json_word(verdict, "verdict"), cases[i].verdicts[0]);
		ck_assert_str_eq(json_word(verdict->next, "verdict"), cases[i].verdicts[1]);
		ck_assert_int_eq(report_target(&ctl, "a/c", tree), CTL_NO_DATA);
		cJSON_Delete(targets);
		cJSON_Delete(tree);
	}
}
END_TEST

START_TEST(a_live_report_has_the_diagnosis_of_its_app)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	data.device = cJSON_Parse("{\"apps\":[3,{\"name\":\"mic\",\"diagnosis\":\"no\"},"
				  "{\"name\":\"cam\",\"diagnosis\":\"infer 82 % of <b>\"}]}");
	cJSON *tree = report_tree(&data);
	ck_assert_str_eq(json_word(tree, "diagnosis"), "infer 82 % of <b>");
	report_markdown(&data, tree, out);
	cJSON_Delete(tree);
	tree = report_tree(&data);
	report_html(&data, tree, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "- Diagnosis: infer 82 % of \\<b\\>\n"));
	ck_assert_ptr_nonnull(strstr(text, "<dt>Diagnosis</dt><dd>infer 82 % of &lt;b&gt;</dd>\n"));
	cJSON_Delete(tree);
	free(text);
	snprintf(data.name, sizeof(data.name), "a recording");
	tree = report_tree(&data);
	ck_assert_ptr_null(json_get(tree, "diagnosis"));
	cJSON_Delete(tree);
	cJSON_Delete(data.device);
}
END_TEST
