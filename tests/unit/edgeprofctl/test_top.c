/* SPDX-License-Identifier: Apache-2.0 */
/* What edgeprofctl top is made of: graphs, bars, boxes, the last minute of metrics, alerts of the
 * past. */
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/live/model.h"
#include "client/edgeprofctl/live/past.h"
#include "client/edgeprofctl/term/plot.h"
#include "client/edgeprofctl/top/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

enum { SECOND = 1000000 };

START_TEST(a_cell_is_braille_blocks_or_ascii)
{
	static const struct {
		enum plot_style style;
		unsigned left, right;
		const char *want;
	} cases[] = {
		{PLOT_BRAILLE, 0, 0, " "},
		{PLOT_BRAILLE, 4, 4, "⣿"},
		{PLOT_BRAILLE, 1, 0, "⡀"},
		{PLOT_BRAILLE, 0, 1, "⢀"},
		{PLOT_BRAILLE, 2, 3, "⣴"},
		{PLOT_BRAILLE, 4, 0, "⡇"},
		{PLOT_BLOCKS, 4, 1, "█"},
		{PLOT_BLOCKS, 0, 2, "▄"},
		{PLOT_ASCII, 4, 0, "#"},
		{PLOT_ASCII, 0, 1, "."},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char cell[PLOT_CELL];
		ck_assert_str_eq(plot_cell(cases[i].style, cases[i].left, cases[i].right, cell),
			cases[i].want);
	}
}
END_TEST

START_TEST(rows_of_a_graph_fill_from_below)
{
	static const struct {
		double value;
		unsigned row, rows, want;
	} cases[] = {
		{0, 0, 1, 1},
		{0, 1, 2, 0},
		{50, 0, 2, 4},
		{50, 1, 2, 0},
		{75, 1, 2, 2},
		{100, 1, 2, 4},
		{250, 1, 2, 4},
		{-5, 0, 2, 1},
		{NAN, 0, 2, 0},
		{INFINITY, 0, 2, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_uint_eq(plot_fill(cases[i].value, 0, 100, cases[i].row, cases[i].rows),
			cases[i].want);
	}
	ck_assert_uint_eq(plot_fill(7, 7, 7, 0, 1), 1);
}
END_TEST

START_TEST(parts_of_a_bar_never_exceed_it)
{
	static const struct {
		double parts[4], full;
		unsigned width, want[4], used;
	} cases[] = {
		{{10, 20, 10, 0}, 40, 40, {10, 20, 10, 0}, 40},
		{{0.1, 30, 0.1, 0}, 33, 10, {1, 8, 0, 0}, 9},
		{{50, 50, 50, 50}, 100, 10, {5, 5, 0, 0}, 10},
		{{NAN, -3, 10, 0}, 20, 10, {0, 0, 5, 0}, 5},
		{{1, 1, 1, 1}, 0, 2, {1, 1, 0, 0}, 2},
		{{1, 1, 1, 1}, 4, 0, {0, 0, 0, 0}, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned columns[4], used;
		used = plot_divide(cases[i].parts, 4, cases[i].full, cases[i].width, columns);
		ck_assert_uint_le(used, cases[i].width);
		ck_assert_uint_eq(columns[0] + columns[1] + columns[2] + columns[3], used);
		if (i != 1) {
			ck_assert_mem_eq(columns, cases[i].want, sizeof(columns));
			ck_assert_uint_eq(used, cases[i].used);
		} else {
			ck_assert_uint_ge(columns[0], 1);
			ck_assert_uint_ge(columns[1], 8);
		}
	}
}
END_TEST

static bool overlap(const struct box *a, const struct box *b)
{
	return a->y < b->y + b->height && b->y < a->y + a->height && a->x < b->x + b->width &&
	       b->x < a->x + a->width;
}

static int area_of(const struct box *box)
{
	return box->height * box->width;
}

/* Every size that the screen supports, with few and many lines. */
START_TEST(panels_fill_the_screen_and_do_not_overlap)
{
	static const struct wants wants[] = {{{6, 1, 4, 1, 3}, 1}, {{30, 6, 12, 1, 200}, 6},
		{{30, 190, 60, 40, 200}, 0}, {{1, 1, 1, 0, 0}, 0}};
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		for (int width = SCREEN_WIDTH_MIN; width <= 250; width += 5) {
			for (int height = SCREEN_HEIGHT_MIN - 3; height <= 80; height++) {
				struct box area = {2, 0, height, width}, boxes[PANELS + 1];
				struct layout layout;
				int sum = 0;
				layout_overview(area, &wants[i], &layout);
				memcpy(boxes, layout.panels, sizeof(layout.panels));
				boxes[PANELS] = layout.tiles;
				for (int a = 0; a <= PANELS; a++) {
					ck_assert(boxes[a].y >= 2 && boxes[a].x >= 0);
					ck_assert(area_of(&boxes[a]) == 0 ||
						  (boxes[a].height >= 3 &&
							  boxes[a].y + boxes[a].height <=
								  height + 2 &&
							  boxes[a].x + boxes[a].width <= width));
					sum += area_of(&boxes[a]);
					for (int b = 0; b < a; b++) {
						ck_assert(area_of(&boxes[a]) == 0 ||
							  !overlap(&boxes[a], &boxes[b]));
					}
				}
				ck_assert_int_gt(layout.panels[PANEL_SENSORS].height, 0);
				ck_assert_int_gt(layout.panels[PANEL_APPS].height, 0);
				ck_assert(
					wants[i].lines[PANEL_ALERTS] == 0 || sum == height * width);
			}
		}
	}
}
END_TEST

static cJSON *parse(const char *text)
{
	cJSON *json = cJSON_Parse(text);
	ck_assert_ptr_nonnull(json);
	return json;
}

static void add_metric(struct model *model, const char *name, const char *value, int64_t time_us)
{
	char text[256];
	snprintf(text, sizeof(text),
		"{\"metrics\":[{\"name\":\"%s\",\"value\":%s,\"time_us\":%lld}]}", name, value,
		(long long)time_us);
	model->now_us = time_us;
	model_store(model, PART_METRICS, parse(text));
}

START_TEST(rings_keep_the_last_minute)
{
	struct model model = {0};
	static const char *const names[] = {"power/b", "cpu/2", "power/a", "cpu/10"};
	for (size_t i = 0; i < 4; i++) {
		add_metric(&model, names[i], "1", SECOND);
	}
	ck_assert_uint_eq(model.ring_count, 4);
	ck_assert_str_eq(model_ring(&model, "power/a")->name, "power/a");
	ck_assert_ptr_null(model_ring(&model, "power"));
	for (int i = 2; i <= 200; i++) {
		char value[16];
		snprintf(value, sizeof(value), "%d", i);
		add_metric(&model, "cpu/2", value, (int64_t)i * SECOND);
	}
	const struct ring *ring = model_ring(&model, "cpu/2");
	ck_assert_double_eq(ring_value(ring), 200);
	ck_assert_double_eq(ring_at(ring, INT64_C(170500000)), 170);
	ck_assert_double_eq(ring_at(ring, INT64_C(140000000)), 140);
	ck_assert_double_nan(ring_at(ring, 20 * SECOND));
	ck_assert_double_nan(ring_at(ring, INT64_C(209000000)));
	model_store(&model, PART_STATUS, parse("{\"time_us\":200000000}"));
	ck_assert_uint_eq(model.ring_count, 1);
	model_finish(&model);
}
END_TEST

START_TEST(a_gap_in_a_ring_is_not_a_value)
{
	struct model model = {0};
	add_metric(&model, "a/b", "5", SECOND);
	add_metric(&model, "a/b", "null", 2 * SECOND);
	const struct ring *ring = model_ring(&model, "a/b");
	ck_assert(ring_has_value(ring));
	ck_assert_double_nan(ring_value(ring));
	ck_assert_double_nan(ring_at(ring, 2500000));
	ck_assert_double_eq(ring_at(ring, 1500000), 5);
	add_metric(&model, "a/c", "null", SECOND);
	ck_assert(!ring_has_value(model_ring(&model, "a/c")));
	model_finish(&model);
}
END_TEST

START_TEST(limits_are_those_of_the_rules)
{
	struct model model = {0};
	model_store(&model, PART_RULES,
		parse("{\"rules\":[{\"metric\":\"temperature/"
		      "max\",\"condition\":\"above\",\"threshold\":75,"
		      "\"critical\":82,\"severity\":\"warning\",\"state\":\"ok\"},"
		      "{\"metric\":\"temperature/max\",\"condition\":\"above\",\"threshold\":80,"
		      "\"severity\":\"critical\",\"state\":\"ok\"},"
		      "{\"metric\":\"cpu/"
		      "*\",\"condition\":\"above\",\"threshold\":90,\"state\":\"disabled\"},"
		      "{\"metric\":\"frame/*/"
		      "target_percent\",\"condition\":\"below\",\"threshold\":90}]}"));
	struct limits limits = model_limits(&model, "temperature/cpu-thermal");
	ck_assert_double_eq(limits.warning, 75);
	ck_assert_double_eq(limits.critical, 80);
	ck_assert_double_nan(model_limits(&model, "cpu/utilization").warning);
	ck_assert_double_nan(model_limits(&model, "frame/cam/target_percent").warning);
	model_finish(&model);
}
END_TEST

START_TEST(events_are_appended_until_another_daemon_counts_anew)
{
	struct model model = {0};
	model_store(&model, PART_EVENTS,
		parse("{\"events\":[{\"serial\":7},{\"serial\":8}],\"last_serial\":9}"));
	ck_assert_int_eq(model.next_serial, 9);
	model_store(&model, PART_EVENTS, parse("{\"events\":[{\"serial\":9}],\"last_serial\":9}"));
	ck_assert_int_eq(json_count(model.parts[PART_EVENTS], "events"), 3);
	ck_assert_int_eq(model.next_serial, 10);
	model_store(&model, PART_EVENTS, parse("{\"events\":[{\"serial\":1}],\"last_serial\":1}"));
	ck_assert_int_eq(json_count(model.parts[PART_EVENTS], "events"), 1);
	model_store(&model, PART_EVENTS, parse("{}"));
	ck_assert_ptr_null(model_first(&model, PART_EVENTS));
	model_finish(&model);
}
END_TEST

/* A moment between two transitions: what was firing then, from what came before or after it. */
START_TEST(the_past_has_the_stages_and_alerts_of_its_moment)
{
	struct model live = {0}, past = {.now_us = 100 * (int64_t)SECOND};
	model_store(&live, PART_APPS,
		parse("{\"apps\":[{\"name\":\"cam\",\"rows\":[{\"stage\":\"pre\"},{\"stage\":"
		      "\"infer\","
		      "\"deadline_ms\":33,\"depth\":0},{\"stage\":\"detect\","
		      "\"runs_per_frame\":0.2}]}]}"));
	model_store(&live, PART_PROCESSES,
		parse("{\"processes\":[{\"name\":\"cam\",\"pid\":811,\"threads\":4}]}"));
	model_store(&live, PART_STATUS,
		parse("{\"time_us\":160000000,\"hostname\":\"pi5\",\"governor\":"
		      "\"performance\",\"uptime_s\":90,\"sources_bad\":[{\"name\":\"cpu\"}]}"));
	model_store(&past, PART_SERIES,
		parse("{\"series\":[{\"name\":\"stage/cam/infer/"
		      "mean_ms\",\"unit\":\"milliseconds\",\"step_ms\":0,"
		      "\"time_us\":[99000000,101000000],\"mean\":[18.5,99]},"
		      "{\"name\":\"stage/cam/detect/"
		      "mean_ms\",\"unit\":\"milliseconds\",\"time_us\":[99000000],\"mean\":[50]},"
		      "{\"name\":\"process/cam/"
		      "rss\",\"unit\":\"bytes\",\"time_us\":[99500000],\"mean\":[4096]},"
		      "{\"name\":\"frame/cam/"
		      "fps\",\"unit\":\"fps\",\"time_us\":[99500000],\"mean\":[29.5]}]}"));
	model_store(&past, PART_ALERTS,
		parse("{\"transitions\":["
		      "{\"rule\":\"old\",\"instance\":\"_\",\"time_us\":50000000,\"from\":\"ok\","
		      "\"to\":\"firing\"},"
		      "{\"rule\":\"over\",\"instance\":\"_\",\"time_us\":60000000,\"from\":"
		      "\"firing\",\"to\":\"ok\"},"
		      "{\"rule\":\"old\",\"instance\":\"_\",\"time_us\":150000000,\"from\":"
		      "\"firing\",\"to\":\"ok\"},"
		      "{\"rule\":\"later\",\"instance\":\"_\",\"time_us\":160000000,\"from\":"
		      "\"firing\",\"to\":\"ok\"},"
		      "{\"rule\":\"new\",\"instance\":\"_\",\"time_us\":170000000,\"from\":\"ok\","
		      "\"to\":\"firing\"}]}"));
	past_complete(&past, &live);
	const cJSON *app = model_first(&past, PART_APPS);
	ck_assert_str_eq(json_word(app, "name"), "cam");
	ck_assert_double_eq(json_number(json_get(app, "frame"), "fps"), 29.5);
	const cJSON *stage = json_first(app, "rows")->next;
	ck_assert_str_eq(json_word(stage, "stage"), "infer");
	ck_assert_double_eq(json_number(stage, "per_frame_ms"), 18.5);
	ck_assert_double_eq(json_number(stage, "deadline_ms"), 33);
	ck_assert_double_eq(json_number(stage->next, "mean_ms"), 50);
	ck_assert_double_eq_tol(json_number(stage->next, "per_frame_ms"), 10, 1e-9);
	ck_assert_double_eq(json_number(model_first(&past, PART_PROCESSES), "rss_bytes"), 4096);
	ck_assert_ptr_null(json_get(model_first(&past, PART_PROCESSES), "pid"));
	ck_assert_str_eq(json_word(past.parts[PART_STATUS], "hostname"), "pi5");
	ck_assert_double_eq(json_number(past.parts[PART_STATUS], "uptime_s"), 30);
	ck_assert_ptr_null(json_get(past.parts[PART_STATUS], "governor"));
	ck_assert_int_eq(json_count(past.parts[PART_STATUS], "sources_bad"), 0);
	ck_assert_int_eq(json_count(past.parts[PART_ALERTS], "alerts"), 2);
	ck_assert_ptr_nonnull(model_row(&past, PART_ALERTS, "rule", "old"));
	ck_assert_ptr_nonnull(model_row(&past, PART_ALERTS, "rule", "later"));
	model_finish(&past);
	model_finish(&live);
}
END_TEST
