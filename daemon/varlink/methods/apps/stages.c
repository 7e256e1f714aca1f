/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c: answers ListStages: the statistics of each stage, and of groups of them. Categories and
 * units are about the lifetime, because their shares are; a unit's percentiles come from the sum of
 * its stages' histograms.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/runs/relations.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100 * (double)part / (double)whole : (double)NAN;
}

static void summary_fields(struct json *out, const struct proto_summary *summary)
{
#define FIELD(name, member) JSON_FIELD(struct proto_summary, #name, member)
	static const struct json_field fields[] = {FIELD(mean_ms, mean), FIELD(median_ms, p50),
		FIELD(p50_ms, p50), FIELD(p90_ms, p90), FIELD(p95_ms, p95), FIELD(p99_ms, p99),
		FIELD(min_ms, min), FIELD(max_ms, max), FIELD(std_ms, std),
		FIELD(std_sample_ms, std_sample)};
#undef FIELD
	if (summary->count == 0) {
		return;
	}
	double fps = summary->mean > 0 ? 1000 / summary->mean : (double)NAN;
	JSON_FIELDS(out, fields, summary);
	json_number_opt(
		out, "tail_ratio", summary->mean > 0 ? summary->p99 / summary->mean : (double)NAN);
	json_number_opt(out, "max_fps", fps);
	json_number_opt(out, "throughput_fps", fps);
}

/* How the stage relates to the others. */
static void relation_fields(struct json *out, const struct app *app,
	const struct app_relations *relations, size_t index, const struct window_query *query)
{
	const struct stage *stage = app->stage[index];
	double runs;
	int16_t parent = relations->parent[index];
	if (parent != APP_NO_STAGE) {
		json_string(out, "parent", app->stage[parent]->base);
		json_string_opt(out, "parent_unit", relations->unit_name[parent]);
		json_unsigned(out, "parents", stage->parents);
		json_number_opt(out, "percent_of_parent",
			percent(stage->total_ns, app->stage[parent]->total_ns));
	}
	json_unsigned(out, "depth", parent != APP_NO_STAGE ? stage->depth : 0);
	json_number(out, "total_ms", (double)stage->total_ns / 1e6);
	if (!relations->is_total[index]) {
		uint64_t category_ns = relations->category_ns[relations->category[index]];
		uint64_t self_ns = relations->self_ns[index];
		json_number(out, "self_ms", (double)self_ns / 1e6);
		json_number_opt(out, "percent_of_category", percent(self_ns, category_ns));
		json_number_opt(out, "percent_of_total", percent(self_ns, relations->total_ns));
		json_number_opt(
			out, "percent_inclusive", percent(stage->total_ns, relations->total_ns));
	}
	double per_frame_ms = app_per_frame_ms(app, relations, stage, query, &runs);
	if (!isnan(runs)) {
		json_number(out, "runs_per_frame", runs);
		json_number_opt(out, "per_frame_ms", per_frame_ms);
	}
	const struct loop_sum *outside = &stage->loop.outside;
	if (outside->runs > 0) {
		json_open(out, "outside_frames", '{');
		json_unsigned(out, "count", outside->runs);
		json_number(out, "mean_ms", (double)outside->ns / (double)outside->runs / 1e6);
		json_number(out, "total_ms", (double)outside->ns / 1e6);
		json_close(out, '}');
	}
}

static void cost_fields(
	struct json *out, const struct stage *stage, const struct stage_answer *answer)
{
	if (!isnan(answer->cpu_ratio)) {
		json_number_opt(out, "wall_ms", answer->wall_ms);
		json_number_opt(out, "cpu_ms", answer->cpu_ms);
		json_number_opt(out, "process_cpu_ms", answer->process_cpu_ms);
		json_number(out, "cpu_ratio", answer->cpu_ratio);
	}
	if (stage->rss_measured > 0) {
		json_integer(out, "rss_growth_max_bytes", stage->rss_growth_max);
		json_integer(out, "rss_growth_total_bytes", stage->rss_growth_total);
	}
}

/* Its name and compute unit, and the unit that was expected when that is another. */
static void name_fields(
	struct json *out, const struct app *app, const struct stage *stage, const char *unit)
{
	const char *expected = unit[0] ? app_expected_unit(app, stage) : "";
	json_string(out, "stage", stage->base);
	json_unsigned(out, "run", app->run);
	json_string_opt(out, "category", stage->category);
	json_string_opt(out, "unit", unit);
	if (expected[0] && strcmp(expected, unit) != 0) {
		json_string(out, "expected_unit", expected);
		json_bool(out, "cpu_fallback", app_is_cpu_fallback(unit, expected));
	}
}

/* How the stages of an app are related; index is the app's, as in list_app_at(). */
static const struct app_relations *relations_of(
	const struct list_cursor *cursor, size_t index, const struct app *app)
{
	const size_t slot = index % LIST_RELATED;
	struct app_relations *relations = &cursor->turn->related[slot].relations;
	if (cursor->turn->related[slot].of != index) {
		app_relate(app, relations);
		cursor->turn->related[slot].of = index;
	}
	return relations;
}

static void stage_item(
	struct json *out, const struct list_cursor *cursor, const struct app *app, size_t index)
{
	struct stage *stage = app->stage[index];
	struct stage_answer answer = {.reason = "no memory"};
	const struct app_relations *relations = relations_of(cursor, cursor->first, app);
	double *scratch = api_scratch(cursor->api, stage->window);
	if (scratch) {
		if (window_is_usual(&cursor->query)) {
			stage_refresh(stage, scratch);
		}
		stage_ask(stage, &cursor->query, scratch, &answer);
	}
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	name_fields(out, app, stage, relations->unit_name[index]);
	span_fields(out, cursor->query, answer.exact, answer.reason);
	json_unsigned(out, "count", answer.summary.count);
	json_unsigned(out, "total_count", stage->count);
	json_unsigned(out, "throttled_count", answer.throttled);
	json_unsigned(out, "throttle_unknown_count", answer.unknown);
	summary_fields(out, &answer.summary);
	relation_fields(out, app, relations, index, &cursor->query);
	const struct row_deadline deadline = {stage->deadline_ns, stage->settings.deadline_ns != 0,
		stage->misses, stage->judged, stage->consecutive_misses, stage->longest_misses,
		stage->worst_ns};
	row_deadline(out, &deadline);
	cost_fields(out, stage, &answer);
	json_number_opt(out, "energy_mj", app_energy_stage_mj(app, stage));
	json_unsigned(out, "failed", stage->failed);
	json_unsigned(out, "warmup_skipped", stage->warmup_skipped);
	json_unsigned(out, "orphan_end", stage->orphan_ends);
	json_unsigned(out, "abandoned", stage->abandoned);
	if (stage->last_ns != 0) {
		json_integer(out, "last_us", row_time_us(cursor->core, stage->last_ns));
		json_number(out, "age_ms", row_age_ms(cursor->now_ns, stage->last_ns));
	}
	row_attributes(out, stage);
	json_close(out, '}');
}

/* first = app, second = its stage */
static bool next_stage(struct list_cursor *cursor, struct json *out)
{
	const struct app *app;
	if (!list_app_at(cursor, cursor->first, &app)) {
		return false;
	}
	if (!app || cursor->second >= app->stages) {
		cursor->first++;
		cursor->second = 0;
		return true;
	}
	stage_item(out, cursor, app, cursor->second++);
	return true;
}

/* Bytes of a row without its names: of any stage, and more of one with runs. */
enum { ROW_LEAST = 270, ROW_LEAST_RUNS = 120 };

/* Of merged runs nothing: merging them is most of the answer's work. */
static size_t stages_least(const struct list_cursor *cursor)
{
	const bool all = cursor->query.filter == WINDOW_ALL;
	const struct app *app;
	size_t bytes = 0;
	for (size_t i = 0; !cursor->run.all && list_app_at(cursor, i, &app); i++) {
		for (size_t k = 0; app && k < app->stages; k++) {
			const struct stage *stage = app->stage[k];
			bytes += ROW_LEAST + strlen(app->name) + strlen(stage->base);
			bytes += all && stage->filled > 0 ? ROW_LEAST_RUNS : 0;
		}
	}
	return bytes;
}

/* Rows of each list in one reply, so that it fits in a frame whatever the names are. */
enum { GROUPS_MAX = 64 };

struct groups {
	struct json *out;
	size_t rows;	 /* of the list that is being written */
	size_t left_out; /* of both lists */
};

static void total_row(struct json *out, const struct list_cursor *cursor, const struct app *app,
	const struct app_relations *relations)
{
	static const char *const iterations[] = {
		[LOOP_OF_STAGES] = "stage", [LOOP_OF_TICKS] = "tick", [LOOP_OF_FRAMES] = "frame"};
	double mean_ms = app_frame_ms(app, relations, &cursor->query);
	double fps = mean_ms > 0 ? 1000.0 / mean_ms : 0;
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	run_fields(out, cursor->core, app, cursor->now_ns);
	json_number(out, "mean_ms", mean_ms);
	json_number(out, "max_fps", fps);
	json_number(out, "throughput_fps", fps);
	json_string(out, "iteration", iterations[app->loop.kind]);
	json_unsigned(out, "iterations", relations->window.iterations);
	json_bool(out, "total_is_sequential", app_loop_is_parallel(app));
	json_number(out, "total_ms", (double)relations->total_ns / 1e6);
	json_close(out, '}');
}

/* Without memory for their sum there are none. */
static void unit_percentiles(struct json *out, const struct app *app,
	const struct app_relations *relations, size_t first)
{
	struct proto_summary summary;
	struct proto_histogram sum;
	bool complete = true;
	proto_histogram_init(&sum, mem_calloc);
	for (size_t i = first; i < app->stages; i++) {
		if (relations->unit[i] == first && !relations->is_total[i]) {
			complete = proto_histogram_add_all(&sum, app->stage[i]->all) && complete;
		}
	}
	if (complete) {
		proto_histogram_summary(&sum, &summary);
		json_number_opt(out, "p50_ms", summary.p50);
		json_number_opt(out, "p95_ms", summary.p95);
		json_number_opt(out, "p99_ms", summary.p99);
	}
	proto_histogram_finish(&sum);
}

/* One row: the stages whose group is `first`. group_of is relations->category or ->unit. */
static void group_row(struct groups *groups, const struct app *app,
	const struct app_relations *relations, const uint8_t *group_of, size_t first,
	uint64_t group_ns)
{
	struct json *out = groups->out;
	uint64_t count = 0, sum_ns = 0;
	unsigned stages = 0;
	bool units = group_of == relations->unit;
	for (size_t i = first; i < app->stages; i++) {
		if (group_of[i] != first || relations->is_total[i]) {
			continue;
		}
		stages++;
		count += app->stage[i]->count;
		sum_ns += app->stage[i]->total_ns;
	}
	if (stages == 0) {
		return;
	}
	if (groups->rows++ >= GROUPS_MAX) {
		groups->left_out++;
		return;
	}
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_string(out, units ? "unit" : "category",
		units ? relations->unit_name[first] : app->stage[first]->category);
	json_unsigned(out, "stages", stages);
	json_unsigned(out, "count", count);
	json_number(out, "total_ms", (double)group_ns / 1e6);
	json_number_opt(
		out, "mean_ms", count > 0 ? (double)sum_ns / (double)count / 1e6 : (double)NAN);
	if (units && count > 0) {
		unit_percentiles(out, app, relations, first);
	}
	json_number_opt(out, "percent_of_total", percent(group_ns, relations->total_ns));
	json_close(out, '}');
}

static void group_rows(struct groups *groups, const struct app *app,
	const struct app_relations *relations, bool units)
{
	const uint8_t *group_of = units ? relations->unit : relations->category;
	const uint64_t *group_ns = units ? relations->unit_ns : relations->category_ns;
	for (size_t i = 0; i < app->stages; i++) {
		if (group_of[i] == i) {
			group_row(groups, app, relations, group_of, i, group_ns[i]);
		}
	}
}

/* Totals, categories and compute units of all apps that the cursor wants; empty lists when the
 * reply is not the last. */
static void stages_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	struct groups groups = {.out = out};
	const struct app *app;
	json_open(out, "totals", '[');
	for (size_t i = 0; last && list_app_at(cursor, i, &app); i++) {
		if (app) {
			total_row(out, cursor, app, relations_of(cursor, i, app));
		}
	}
	json_close(out, ']');
	for (int units = 0; units < 2; units++) {
		groups.rows = 0;
		json_open(out, units ? "units" : "categories", '[');
		for (size_t i = 0; last && list_app_at(cursor, i, &app); i++) {
			if (app) {
				group_rows(&groups, app, relations_of(cursor, i, app), units);
			}
		}
		json_close(out, ']');
	}
	if (groups.left_out > 0) {
		json_unsigned(out, "groups_left_out", groups.left_out);
	}
}

static const struct list_ops stage_list = {
	.field = "stages", .item = next_stage, .tail = stages_tail, .least = stages_least};

enum api_result method_list_stages(struct api_call *call)
{
	return list_of_run(call, &stage_list, 0, &call->value[4]);
}
