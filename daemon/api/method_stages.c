/* ListStages: the statistics of each stage, and the totals of each app. */
#include <math.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/api/methods.h"
#include "daemon/api/rows.h"
#include "daemon/api/state.h"

static void stage_item(
	struct json *out, struct api *api, const struct app *app, const struct stage *stage)
{
	struct proto_summary summary = {.count = 0};
	double *scratch = api_scratch(api, stage->window);
	if (scratch) {
		stage_summary(stage, scratch, &summary);
	}
	bool any = summary.count > 0;
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_string(out, "stage", stage->name);
	json_string_opt(out, "category", stage->category);
	json_string_opt(out, "unit", stage->unit);
	json_unsigned(out, "count", summary.count);
	json_unsigned(out, "total_count", stage->count);
	if (any) {
		json_number_opt(out, "mean_ms", summary.mean);
		json_number_opt(out, "median_ms", summary.p50);
		json_number_opt(out, "p50_ms", summary.p50);
		json_number_opt(out, "p90_ms", summary.p90);
		json_number_opt(out, "p95_ms", summary.p95);
		json_number_opt(out, "p99_ms", summary.p99);
		json_number_opt(out, "min_ms", summary.min);
		json_number_opt(out, "max_ms", summary.max);
		json_number_opt(out, "std_ms", summary.std);
		json_number_opt(out, "std_sample_ms", summary.std_sample);
		json_number_opt(out, "tail_ratio",
			summary.mean > 0 ? summary.p99 / summary.mean : (double)NAN);
	}
	if (stage->deadline_ns != 0) {
		json_number(out, "deadline_ms", (double)stage->deadline_ns / 1e6);
	}
	json_unsigned(out, "misses", stage->misses);
	json_unsigned(out, "orphan_end", stage->orphan_ends);
	json_unsigned(out, "abandoned", stage->abandoned);
	if (stage->last_ns != 0) {
		json_integer(out, "last_us", row_time_us(api->core, stage->last_ns));
	}
	json_bool(out, "exact", true);
	json_close(out, '}');
}

/* first = app, second = its stage */
static bool next_stage(struct list_cursor *cursor, struct json *out)
{
	const struct app *app = apps_at(cursor->core->apps, cursor->first);
	if (!app) {
		return false;
	}
	if (!list_app_wanted(cursor, app) || cursor->second >= app->stages) {
		cursor->first++;
		cursor->second = 0;
		return true;
	}
	stage_item(out, cursor->api, app, app->stage[cursor->second++]);
	return true;
}

/* Mean of the window without sorting it; 0 with nothing in it. */
static double stage_mean_ms(const struct stage *stage)
{
	double sum_ns = 0;
	for (size_t i = 0; i < stage->filled; i++) {
		sum_ns += (double)stage->durations_ns[i];
	}
	return stage->filled > 0 ? sum_ns / (double)stage->filled / 1e6 : 0;
}

static void stages_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct app *app;
	json_open(out, "totals", '[');
	for (size_t i = 0; last && (app = apps_at(cursor->core->apps, i)); i++) {
		if (!list_app_wanted(cursor, app)) {
			continue;
		}
		double mean_ms = 0;
		for (size_t k = 0; k < app->stages; k++) {
			const struct stage *stage = app->stage[k];
			if (strcmp(stage->name, "total") != 0 &&
				strcmp(stage->category, "total") != 0) {
				mean_ms += stage_mean_ms(stage);
			}
		}
		double fps = mean_ms > 0 ? 1000.0 / mean_ms : 0;
		json_open(out, NULL, '{');
		json_string(out, "app", app->name);
		json_number(out, "mean_ms", mean_ms);
		json_number(out, "max_fps", fps);
		json_number(out, "throughput_fps", fps);
		json_close(out, '}');
	}
	json_close(out, ']');
}

static const struct list_ops stage_list = {
	.field = "stages", .item = next_stage, .tail = stages_tail};

enum api_result method_list_stages(struct api_call *call)
{
	return list_of_app(call, &stage_list);
}
