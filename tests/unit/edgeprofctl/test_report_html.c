/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_html.c: checks the HTML report: its size, that it is well-formed and refers to
 * nothing outside, hostile names, and what it says of slow frames. */
#include "client/edgeprofctl/report/report.h"
#include "client/edgeprofctl/report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* Of each stage; what is above would only take time. */
enum { EXECUTIONS_MAX = 50000 };

/* The pages are kept where this names a directory, to be looked at. */
#define KEEP "EDGEPROF_TEST_PAGES"

static const char hostile[] = "<script>alert(\"1\")</script>'&\033[2J\342\200\256\303";

TEST_TIMEOUT(120);

static struct data data;
static char *page;
static size_t page_size;
static uint64_t noise = 1;

/* Between 0 and 1. */
static double random_part(void)
{
	noise = noise * 6364136223846793005u + 1442695040888963407u;
	return (double)(noise >> 40) / (double)(1 << 24);
}

static struct proto_summary numbers_of(const double *values, size_t count)
{
	double *copy = calloc(count + 1, sizeof(*copy));
	ck_assert_ptr_nonnull(copy);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		copy[kept] = values[i];
		kept += isfinite(values[i]);
	}
	struct proto_summary numbers = data_numbers_of(copy, kept);
	free(copy);
	return numbers;
}

static void add_series(const char *name, const char *unit, size_t count, double base, double swing)
{
	struct data_series *series = &data.series[data.series_count++];
	*series = (struct data_series){.count = count,
		.at_s = calloc(count, sizeof(double)),
		.value = calloc(count, sizeof(double))};
	snprintf(series->name, sizeof(series->name), "%s", name);
	snprintf(series->unit, sizeof(series->unit), "%s", unit);
	for (size_t i = 0; i < count; i++) {
		series->at_s[i] = data.span_s * ((double)i + 0.5) / (double)count;
		series->value[i] =
			base + swing * ((double)i / (double)count) + swing * 0.1 * random_part();
	}
}

static void add_happening(double at_s, const char *kind, const char *text, const char *severity)
{
	struct data_happening *one = &data.happening[data.happening_count++];
	one->at_s = at_s;
	snprintf(one->kind, sizeof(one->kind), "%s", kind);
	snprintf(one->text, sizeof(one->text), "%s", text);
	snprintf(one->severity, sizeof(one->severity), "%s", severity);
}

static const struct {
	const char *name, *unit, *category;
	int parent;
	double ms;
} stages[] = {
	{"capture", "", "camera", -1, 4.1},
	{"preprocess", "cpu", "preprocessing", -1, 2.6},
	{"resize", "cpu", "preprocessing", 1, 1.7},
	{"infer", "gpu", "model", -1, 14.2},
	{"copy_in", "cpu", "memory", 3, 1.1},
	{"execute", "gpu", "model", 3, 11.8},
	{"postprocess", "cpu", "", -1, 3.3},
	{"nms", "cpu", "", 6, 1.9},
	{"publish", "", "", -1, 0.6},
};

/* Every 97th frame takes longer in execute; the last third of the run is throttled. */
static void measure(size_t count)
{
	size_t stage_count = sizeof(stages) / sizeof(stages[0]);
	data.frame = calloc(count, sizeof(*data.frame));
	data.stage = calloc(stage_count, sizeof(*data.stage));
	data.frame_count = data.whole = count;
	data.stage_count = stage_count;
	double *sums = calloc(count, sizeof(*sums)), *times = calloc(count, sizeof(*times));
	ck_assert(data.frame && data.stage && sums && times);
	for (size_t s = 0; s < stage_count; s++) {
		struct data_stage *stage = &data.stage[s];
		snprintf(stage->name, sizeof(stage->name), "%s", stages[s].name);
		memcpy(stage->shown, stage->name, sizeof(stage->shown));
		snprintf(stage->unit, sizeof(stage->unit), "%s", stages[s].unit);
		snprintf(stage->category, sizeof(stage->category), "%s", stages[s].category);
		stage->parent = stages[s].parent;
		stage->depth = stages[s].parent >= 0;
		stage->deadline_ms = s == 3 ? 20 : NAN;
		stage->count = count < EXECUTIONS_MAX ? count : EXECUTIONS_MAX;
		stage->execution = calloc(stage->count, sizeof(*stage->execution));
		double *values = calloc(stage->count, sizeof(*values));
		for (size_t i = 0; i < stage->count; i++) {
			bool slow = i % 97 == 40 && (s == 3 || s == 5);
			bool hot = i > count * 2 / 3 && s >= 3 && s <= 5;
			double ms = stages[s].ms * (0.9 + 0.15 * random_part()) * (hot ? 1.35 : 1) +
				    (slow ? 38 + (double)(i % 7) : 0);
			values[i] = ms;
			sums[i] += stages[s].parent < 0 ? ms : 0;
			stage->execution[i] = (struct data_execution){.ms = ms,
				.frame = i,
				.throttled = hot,
				.inside = stages[s].parent >= 0};
		}
		stage->ms = numbers_of(values, stage->count);
		stage->per_frame_ms = stage->ms.mean;
		free(values);
	}
	double at_s = 0;
	for (size_t i = 0; i < count; i++) {
		double time_ms = fmax(33.3 + 2 * random_part(), sums[i]);
		at_s += time_ms / 1000;
		times[i] = i > 0 ? time_ms : NAN;
		data.frame[i] = (struct data_frame){
			at_s, sums[i] + 0.4, times[i], i + 10, i > count * 2 / 3};
	}
	data.span_s = at_s;
	data.total_ms = numbers_of(sums, count);
	data.frame_time_ms = numbers_of(times, count);
	free(sums);
	free(times);
}

static void add_device(void)
{
	size_t count = (size_t)fmin(fmax(data.span_s, 4), 100000);
	data.series = calloc(200, sizeof(*data.series));
	data.happening = calloc(6000, sizeof(*data.happening));
	add_series("temperature/CPU", "celsius", count, 58, 24);
	add_series("temperature/GPU", "celsius", count, 55, 20);
	add_series("temperature/max", "celsius", count, 58, 24);
	add_series("power/total", "milliwatts", count, 7300, 2400);
	add_series("power/VDD_CPU_GPU_CV", "milliwatts", count, 3300, 1400);
	add_series("gpu/frequency", "hertz", count, 9.2e8, -3e8);
	add_series("cpu/0/frequency", "hertz", count, 1.5e9, -4e8);
	add_series("cpu/utilization", "percent", count, 43, 8);
	add_series("gpu/utilization", "percent", count, 71, 20);
	add_series("process/detector/rss", "bytes", count, 180e6, 22e6);
	add_series("memory/used", "bytes", count, 2.1e9, 0.1e9);
	add_series("fan/pwmfan", "rpm", count, 2100, 900);
	add_happening(data.span_s * 0.12, "mark", "model loaded", "");
	add_happening(data.span_s * 0.66, "alert", "temperature CPU 82.1 °C at or above 82 °C",
		"critical");
	add_happening(data.span_s * 0.667, "throttle", "throttling began", "warning");
	add_happening(data.span_s * 0.8, "app", "viewer started", "");
	data.about = cJSON_Parse("{\"tags\":[{\"name\":\"threads\",\"value\":\"4\"},"
				 "{\"name\":\"model\",\"value\":\"detector.tflite\"}],"
				 "\"environment\":[{\"name\":\"kernel\",\"value\":\"6.6\"}]}");
	data.frame_deadline_ms = 33.3;
	data.notes = cJSON_Parse("[\"a virtual machine\"]");
	data.device =
		cJSON_Parse("{\"model\":\"NVIDIA Jetson Orin Nano Developer Kit\","
			    "\"hostname\":\"orin\",\"os\":\"Ubuntu 22.04\",\"kernel\":\"5.15\"}");
}

static void setup(void)
{
	data = (struct data){.name = "night-run",
		.app = "detector",
		.frame_deadline_ms = NAN,
		.kept_share = 1,
		.begin_us = 1763790000000000,
		.warmup = 10};
}

static void render(const char *name)
{
	FILE *out = open_memstream(&page, &page_size);
	ck_assert_ptr_nonnull(out);
	cJSON *tree = report_tree(&data);
	report_html(&data, tree, out);
	cJSON_Delete(tree);
	ck_assert_int_eq(fclose(out), 0);
	if (getenv(KEEP)) {
		char path[512];
		snprintf(path, sizeof(path), "%s/%s.html", getenv(KEEP), name);
		FILE *file = fopen(path, "w");
		ck_assert_ptr_nonnull(file);
		fwrite(page, 1, page_size, file);
		fclose(file);
	}
}

static void teardown(void)
{
	data_finish(&data);
	free(page);
	page = NULL;
}

FIXTURE(setup, teardown);

/* Every tag that is opened is closed, in order; '<' and '>' occur nowhere else. */
static void check_balanced(void)
{
	static const char *const empty[] = {"meta", "!DOCTYPE"};
	char open[64][16];
	size_t depth = 0;
	const char *begin = strstr(page, "</style>");
	ck_assert_ptr_nonnull(begin);
	for (const char *at = strchr(begin + 8, '<'); at; at = strchr(at + 1, '<')) {
		const char *end = strchr(at, '>');
		ck_assert_ptr_nonnull(end);
		ck_assert_msg(!memchr(at + 1, '<', (size_t)(end - at - 1)), "%.60s", at);
		char name[16] = "";
		bool closes = at[1] == '/';
		ck_assert_int_eq(sscanf(at + 1 + closes, "%15[A-Za-z0-9!]", name), 1);
		if (end[-1] == '/' || strcmp(name, empty[0]) == 0 || strcmp(name, "head") == 0 ||
			strcmp(name, "html") == 0) {
			continue;
		}
		if (closes) {
			ck_assert_msg(depth > 0 && strcmp(open[depth - 1], name) == 0,
				"</%s> where %s is open: %.80s", name,
				depth ? open[depth - 1] : "none", at);
			depth--;
		} else {
			ck_assert_uint_lt(depth, 64);
			memcpy(open[depth++], name, sizeof(name));
		}
	}
	ck_assert_uint_eq(depth, 0);
}

static void check_page(void)
{
	static const char *const banned[] = {"http:", "https:", "src=", "url(", "<script", "nan",
		"NaN", "inf%", "-nan", "\033", "@import", "href="};
	ck_assert_uint_le(page_size, 500 * 1024);
	for (size_t i = 0; i < sizeof(banned) / sizeof(banned[0]); i++) {
		ck_assert_msg(
			!strstr(page, banned[i]), "%s: %.80s", banned[i], strstr(page, banned[i]));
	}
	check_balanced();
}

START_LOOP_TEST(the_page_is_complete_and_small, 0, 4)
{
	static const size_t frames[] = {30, 300, 5000, 1000000};
	static const char *const names[] = {"short", "normal", "long", "million"};
	static const char *const parts[] = {"Breakdown in ms", "Metrics", "Events", "Environment",
		"aria-label=\"Histogram\"", "aria-label=\"Mean time of each stage\"",
		"aria-label=\"End to end\"", "aria-label=\"Temperature\"",
		"<g class=\"throttled\"><rect", "class=\"event\""};
	measure(frames[_i]);
	add_device();
	render(names[_i]);
	check_page();
	for (int i = 0; i < COUNT(parts); i++) {
		ck_assert_msg(strstr(page, parts[i]), "%s", parts[i]);
	}
	ck_assert(_i == 0 || strstr(page, "Slow frames"));
}
END_TEST

/* The most that fits: every table and every legend is full, every text hostile and long. */
START_TEST(hostile_text_is_escaped_and_bounded)
{
	char text[4000] = "";
	for (size_t i = 0; i + 64 < sizeof(text); i += strlen(hostile)) {
		memcpy(text + i, hostile, sizeof(hostile));
	}
	measure(5000);
	add_device();
	data.stage = realloc(data.stage, 128 * sizeof(*data.stage));
	ck_assert_ptr_nonnull(data.stage);
	while (data.stage_count < 128) {
		struct data_stage *stage = &data.stage[data.stage_count++];
		*stage = data.stage[3];
		stage->execution = calloc(1, sizeof(*stage->execution));
		*stage->execution = (struct data_execution){.ms = 1, .frame = 7};
		stage->count = 1;
	}
	snprintf(data.name, sizeof(data.name), "%s", hostile);
	snprintf(data.app, sizeof(data.app), "%s", hostile);
	for (size_t i = 0; i < data.stage_count; i++) {
		snprintf(data.stage[i].name, sizeof(data.stage[i].name), "%s", hostile);
		memcpy(data.stage[i].shown, data.stage[i].name, sizeof(data.stage[i].shown));
		memcpy(data.stage[i].unit, hostile, sizeof(data.stage[i].unit) - 1);
		memcpy(data.stage[i].category, hostile, sizeof(data.stage[i].category) - 1);
	}
	for (size_t i = 0; i < 6; i++) {
		char name[256];
		snprintf(name, sizeof(name), "temperature/%s%zu", hostile, i);
		add_series(name, text, 400, 50, (double)i);
	}
	for (size_t i = data.series_count; i < 200; i++) {
		add_series(text, text, 3, 50, 1);
	}
	for (size_t i = 0; i < 5000; i++) {
		add_happening(data.span_s * (double)i / 5000, hostile, text, text);
	}
	cJSON_Delete(data.about);
	data.about = cJSON_CreateObject();
	cJSON *tags = cJSON_AddArrayToObject(data.about, "tags");
	for (int i = 0; i < 200; i++) {
		cJSON *tag = cJSON_CreateObject();
		cJSON_AddStringToObject(tag, "name", text);
		cJSON_AddStringToObject(tag, "value", text);
		cJSON_AddItemToArray(tags, tag);
	}
	cJSON_AddStringToObject(data.about, "error", text);
	cJSON_AddStringToObject(data.about, "cut", text);
	data.lost = 12345;
	data.kept_share = 0.5;
	data.incomplete = hostile;
	render("hostile");
	check_page();
	ck_assert_ptr_nonnull(
		strstr(page, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;"));
	ck_assert_ptr_nonnull(strstr(page, "12345 records were lost"));
	ck_assert_ptr_nonnull(strstr(page, "The first 64 of 128 stages."));
	ck_assert_ptr_nonnull(strstr(page, "50 % of the time"));
	ck_assert_ptr_null(strstr(page, "\342\200\256"));
}
END_TEST

START_TEST(without_data_the_page_says_so)
{
	data.frame_time_ms = data.total_ms = numbers_of(NULL, 0);
	render("empty");
	check_page();
	ck_assert_ptr_nonnull(strstr(page, "only 0 frames: percentiles want 100 or more"));
	ck_assert_ptr_null(strstr(page, "Slow frames"));
}
END_TEST

START_LOOP_TEST(numbers_that_are_none_are_dashes, 0, 5)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, -5};
	measure(50);
	add_device();
	for (size_t i = 10; i < 20; i++) {
		data.frame[i].total_ms = data.frame[i].time_ms = data.frame[i].at_s = odd[_i];
		data.stage[3].execution[i].ms = odd[_i];
		data.stage[3].execution[i].frame = DATA_NO_FRAME;
	}
	data.stage[0].per_frame_ms = data.stage[1].ms.p99 = odd[_i];
	data.total_ms.p99 = data.total_ms.mean = data.frame_time_ms.max = odd[_i];
	data.span_s = data.kept_share = odd[_i];
	for (size_t i = 0; i < data.series_count; i++) {
		data.series[i].value[0] = data.series[i].at_s[1] = odd[_i];
	}
	data.happening[0].at_s = odd[_i];
	render("odd");
	check_page();
}
END_TEST

START_TEST(slow_frames_name_the_innermost_stage)
{
	measure(300);
	add_device();
	data.frame[99].total_ms += 60;
	render("cause");
	static const char *const causes[][2] = {{">147</td>", "execute took "},
		{">109</td>", "waiting between stages took 60.40 instead of 0.40 ms"},
		{">244</td>", "the hardware throttled"}};
	ck_assert_ptr_nonnull(strstr(page, "4 frames took longer than 33.3 ms"));
	for (int i = 0; i < COUNT(causes); i++) {
		const char *row = strstr(page, causes[i][0]);
		ck_assert_msg(row, "%s", causes[i][0]);
		const char *cause = strstr(row, causes[i][1]);
		ck_assert_msg(cause && cause < strstr(row, "</tr>"), "%s", causes[i][1]);
	}
}
END_TEST

/* A detector in each fifth frame, say: where it runs it is what takes the time. */
START_TEST(a_stage_that_most_frames_do_without_is_a_cause)
{
	char cause[128];
	measure(300);
	for (size_t i = 0; i < 300; i++) {
		if (i == 99 || i == 150) {
			data.stage[0].execution[i].ms = 70;
			data.frame[i].total_ms += 70;
		} else {
			data.stage[0].execution[i].frame = DATA_NO_FRAME;
		}
	}
	render("rare");
	const char *row = strstr(page, ">109</td>");
	ck_assert_ptr_nonnull(row);
	snprintf(cause, sizeof(cause), "%s took 70.00 ms; most frames do without",
		data.stage[0].name);
	const char *found = strstr(row, cause);
	ck_assert_msg(found && found < strstr(row, "</tr>"), "%.400s", row);
}
END_TEST

/* Ticks, or the executions of a stage: the time between them is not that of the stages. */
START_TEST(frames_without_a_start_are_slow_by_their_own_times)
{
	measure(300);
	for (size_t i = 0; i < data.frame_count; i++) {
		data.frame[i].total_ms = NAN;
		data.frame[i].time_ms = i == 0 ? NAN : i == 7 ? 500 : 120;
	}
	render("ticks");
	ck_assert_ptr_nonnull(strstr(page, "<h3>Frame time</h3>"));
	ck_assert_ptr_nonnull(strstr(page, "1 frame took longer than 240.0 ms"));
}
END_TEST

START_TEST(the_app_s_own_memory_is_shown_before_that_of_others)
{
	static const char own[] = "process/detector/rss", more[] = "<span>2 more</span>";
	char name[PROTO_PATH_SIZE];
	measure(300);
	data.series = calloc(8, sizeof(*data.series));
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "process/other%d/rss", i);
		add_series(i == 6 ? own : name, "bytes", 9, 50e6, 1);
	}
	render("memory");
	const char *first = strstr(page, own), *other = strstr(page, "process/other0/rss");
	ck_assert(first && other && first < other && strstr(other, more));
}
END_TEST

START_TEST(one_frame_is_singular)
{
	measure(1);
	render("one");
	ck_assert_ptr_nonnull(strstr(page, "only 1 frame: percentiles want 100 or more"));
}
END_TEST

START_TEST(durations_of_less_than_a_tenth_of_a_millisecond_are_in_microseconds)
{
	measure(300);
	data.stage[8].per_frame_ms = 0.00041;
	render("short");
	ck_assert_ptr_nonnull(strstr(page, ">publish 0.41 µs</text>"));
}
END_TEST

/* One value among a million: it is in its column's minimum and maximum. */
START_TEST(a_spike_survives)
{
	struct line_columns *line = calloc(1, sizeof(*line));
	ck_assert_ptr_nonnull(line);
	for (size_t i = 0; i < 1000000; i++) {
		line_add(line, (double)i / 1e6, i == 777777 ? 90 : 10);
	}
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	line_write(out, line, 0, 0, 100);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(text, "L777,900V100"));
	free(text);
	free(line);
}
END_TEST
