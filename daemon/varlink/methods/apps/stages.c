/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c: answers ListStages: the statistics of each stage, and of groups of them
 * (stage_groups.c). */
#include <math.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/runs/relations.h"
#include "daemon/varlink/methods/apps/stage_groups.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

static struct window_query query_of(const struct list_cursor *cursor)
{
	return (struct window_query){
		.lifetime = cursor->span.lifetime,
		.nearest = cursor->span.nearest,
		.filter = (enum window_filter)cursor->span.filter,
	};
}

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
	const char *expected = app_expected_unit(app, stage);
	json_string(out, "stage", stage->base);
	json_unsigned(out, "run", app->run);
	json_string_opt(out, "category", stage->category);
	json_string_opt(out, "unit", unit);
	if (unit[0] && expected[0] && strcmp(expected, unit) != 0) {
		json_string(out, "expected_unit", expected);
		json_bool(out, "cpu_fallback", app_is_cpu_fallback(unit, expected));
	}
}

static void stage_item(
	struct json *out, const struct list_cursor *cursor, const struct app *app, size_t index)
{
	const struct stage *stage = app->stage[index];
	const struct window_query query = query_of(cursor);
	struct stage_answer answer = {.reason = "no memory"};
	struct app_relations relations;
	app_relate(app, &relations);
	double *scratch = api_scratch(cursor->api, stage->window);
	if (scratch) {
		stage_ask(stage, &query, scratch, &answer);
	}
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	name_fields(out, app, stage, relations.unit_name[index]);
	span_fields(out, cursor->span, answer.exact, answer.reason);
	json_unsigned(out, "count", answer.summary.count);
	json_unsigned(out, "total_count", stage->count);
	json_unsigned(out, "throttled_count", answer.throttled);
	json_unsigned(out, "throttle_unknown_count", answer.unknown);
	summary_fields(out, &answer.summary);
	relation_fields(out, app, &relations, index, &query);
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

static void stages_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct window_query query = query_of(cursor);
	stage_groups_write(out, cursor, &query, last);
}

static const struct list_ops stage_list = {
	.field = "stages", .item = next_stage, .tail = stages_tail};

enum api_result method_list_stages(struct api_call *call)
{
	return list_of_run(call, &stage_list, 0, &call->value[4]);
}
