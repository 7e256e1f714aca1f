/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_stages.c: makes the stages of a report and their sums. A stage's time counts once: shares
 * are of its own time, without the stages inside of it; what is a total itself is in no sum.
 */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_numbers(cJSON *to, const struct proto_summary *n)
{
	report_add_numbers(to, "", n);
	json_add_number(to, "median_ms", n->p50);
	json_add_number(to, "tail_ratio", n->p99 / n->mean);
	json_add_number(to, "max_fps", 1000 / n->mean);
	json_add_number(to, "throughput_fps", 1000 / n->mean);
}

/* The unit of the stage, else that of one around it. */
static const char *unit_of(const struct data *data, const struct data_stage *stage)
{
	int at = stage->parent;
	const char *unit = stage->unit;
	for (; unit[0] == '\0' && at >= 0; at = data->stage[at].parent) {
		unit = data->stage[at].unit;
	}
	return unit;
}

static const char *category_of(const struct data *data, const struct data_stage *stage)
{
	(void)data;
	return stage->category;
}

typedef const char *group_of(const struct data *data, const struct data_stage *stage);

/* The own time of the stages of a group; of all with group NULL. */
static double own_ms(const struct data *data, group_of *of, const char *group)
{
	double ms = 0;
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *stage = &data->stage[i];
		ms += !stage->left_out && (!group || strcmp(of(data, stage), group) == 0)
			      ? stage->self_ms
			      : 0;
	}
	return ms;
}

static void add_runs(cJSON *row, const struct data *data, const struct data_stage *stage)
{
	struct counts counts = {.deadline_ms = stage->deadline_ms, .worst_ms = NAN};
	size_t inside = 0, whole = 0;
	double outside_ms = 0;
	for (size_t i = 0; i < stage->count; i++) {
		const struct data_execution *run = &stage->execution[i];
		inside += run->frame != DATA_NO_FRAME;
		whole += run->frame < data->whole;
		outside_ms += run->frame == DATA_NO_FRAME ? run->ms : 0;
		report_count(&counts, run->ms, run->throttled);
	}
	double outside = (double)(stage->count - inside);
	report_add_counts(row, &counts);
	json_add_number(row, "runs_per_frame", (double)whole / (double)data->whole);
	json_add_number(row, "per_frame_ms", stage->per_frame_ms);
	if (outside > 0) {
		cJSON *object = cJSON_AddObjectToObject(row, "outside_frames");
		json_add_number(object, "count", outside);
		json_add_number(object, "mean_ms", outside_ms / outside);
		json_add_number(object, "total_ms", outside_ms);
	}
}

/* Where optimising pays: by the share of the total, whose last digits are those of a sum. */
static const char *priority_of(double percent)
{
	percent = round(percent * 1e6) / 1e6;
	return isnan(percent) ? NULL : percent > 20 ? "HIGH" : percent >= 5 ? "MEDIUM" : "LOW";
}

static void add_stage(cJSON *array, const struct data *data, const struct data_stage *stage)
{
	cJSON *row = report_add_row(array);
	double all_ms = own_ms(data, NULL, NULL),
	       total_ms = stage->ms.mean * (double)stage->ms.count;
	const struct data_stage *parent = stage->parent < 0 ? NULL : &data->stage[stage->parent];
	report_add_word(row, "app", data->app);
	report_add_word(row, "stage", stage->shown);
	report_add_word(row, "category", stage->category);
	report_add_word(row, "unit", stage->unit);
	if (stage->expected[0]) {
		report_add_word(row, "expected_unit", stage->expected);
		cJSON_AddTrueToObject(row, "cpu_fallback");
	}
	json_add_number(row, "depth", stage->depth);
	json_add_number(row, "count", (double)stage->count);
	json_add_number(row, "total_count", (double)stage->count);
	add_numbers(row, &stage->ms);
	json_add_number(row, "total_ms", total_ms);
	json_add_number(row, "self_ms", stage->self_ms);
	if (parent) {
		report_add_word(row, "parent", parent->shown);
		report_add_word(row, "parent_unit", parent->unit);
		json_add_number(row, "percent_of_parent",
			report_percent(total_ms, parent->ms.mean * (double)parent->ms.count));
	}
	if (!stage->left_out) {
		double percent = report_percent(stage->self_ms, all_ms);
		json_add_number(row, "percent_of_total", percent);
		ctl_add_text(row, "priority", priority_of(percent));
		json_add_number(row, "percent_inclusive", report_percent(total_ms, all_ms));
		json_add_number(row, "percent_of_category",
			report_percent(stage->self_ms, own_ms(data, category_of, stage->category)));
	}
	json_add_number(row, "failed", (double)stage->failed);
	add_runs(row, data, stage);
}

/* Rows of the groups, that with most time first; with percentiles of all their runs. */
static void add_group(
	cJSON *array, const struct data *data, group_of *of, const char *member, const char *group)
{
	size_t stages = 0, count = 0, most = 0;
	for (size_t i = 0; i < data->stage_count; i++) {
		most += data->stage[i].count;
	}
	double *values = calloc(most + 1, sizeof(*values));
	for (size_t i = 0; i < data->stage_count && values; i++) {
		const struct data_stage *stage = &data->stage[i];
		if (!stage->left_out && strcmp(of(data, stage), group) == 0) {
			stages++;
			for (size_t k = 0; k < stage->count; k++) {
				values[count++] = stage->execution[k].ms;
			}
		}
	}
	if (values && stages > 0) {
		struct proto_summary numbers = data_numbers_of(values, count);
		double ms = own_ms(data, of, group);
		cJSON *row = cJSON_CreateObject();
		report_add_word(row, "app", data->app);
		cJSON_AddStringToObject(row, member, group);
		json_add_number(row, "stages", (double)stages);
		json_add_number(row, "count", (double)count);
		json_add_number(row, "total_ms", ms);
		json_add_number(
			row, "percent_of_total", report_percent(ms, own_ms(data, NULL, NULL)));
		add_numbers(row, &numbers);
		report_insert(array, row, "total_ms");
	}
	free(values);
}

static void add_groups(
	cJSON *tree, const char *name, const struct data *data, group_of *of, const char *member)
{
	cJSON *array = cJSON_AddArrayToObject(tree, name);
	for (size_t i = 0; i < data->stage_count; i++) {
		const char *group = of(data, &data->stage[i]);
		size_t first = 0;
		while (strcmp(of(data, &data->stage[first]), group) != 0) {
			first++;
		}
		if (first == i) {
			add_group(array, data, of, member, group);
		}
	}
}

/* What a frame costs, by the outermost executions. */
static void add_total(cJSON *tree, const struct data *data)
{
	cJSON *row = report_add_row(cJSON_AddArrayToObject(tree, "totals"));
	double mean_ms = 0;
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *stage = &data->stage[i];
		for (size_t k = 0; k < stage->count; k++) {
			const struct data_execution *one = &stage->execution[k];
			bool counts = one->frame < data->whole && data_is_outermost(stage, one);
			mean_ms += counts ? one->ms / (double)data->whole : 0;
		}
	}
	report_add_word(row, "app", data->app);
	bool known = data->frame_count > 0 && data->stage_count > 0;
	json_add_number(row, "mean_ms", known ? mean_ms : (double)NAN);
	json_add_number(row, "max_fps", mean_ms > 0 ? 1000 / mean_ms : (double)NAN);
	json_add_number(row, "iterations", (double)data->whole);
	cJSON_AddBoolToObject(row, "total_is_sequential", data->overlaps);
	json_add_number(row, "total_ms", own_ms(data, NULL, NULL));
}

void report_add_stages(cJSON *tree, const struct data *data)
{
	cJSON *stages = cJSON_AddArrayToObject(tree, "stages");
	for (size_t i = 0; i < data->stage_count; i++) {
		add_stage(stages, data, &data->stage[i]);
	}
	add_total(tree, data);
	add_groups(tree, "units", data, unit_of, "unit");
	add_groups(tree, "categories", data, category_of, "category");
}
