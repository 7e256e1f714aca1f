/* ListApps, ListStages, GetFrames: what instrumented programs do. */
#include <math.h>
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/api/methods.h"
#include "daemon/api/rows.h"
#include "daemon/api/state.h"

static bool app_item(struct list_cursor *cursor, struct json *out)
{
	const struct app *app = apps_at(cursor->core->apps, cursor->first);
	if (!app) {
		return false;
	}
	cursor->first++;
	bool own = cursor->permitted || app->uid == cursor->uid;
	row_app(out, cursor->api, app, own, cursor->now_ns);
	return true;
}

static void refused_item(struct json *out, const struct core *core, const struct refusal *refusal)
{
	json_open(out, NULL, '{');
	json_string_opt(out, "app", refusal->app);
	json_unsigned(out, "uid", refusal->uid);
	if (refusal->pid > 0) {
		json_integer(out, "pid", refusal->pid);
	}
	json_string(out, "reason", refusal->reason);
	json_unsigned(out, "count", refusal->count);
	json_integer(out, "last_us", row_time_us(core, refusal->last_ns));
	json_close(out, '}');
}

static void apps_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct refusals *refusals = &cursor->core->counters->refusals;
	json_open(out, "refused", '[');
	for (size_t i = 0; last && i < refusals->count; i++) {
		const struct refusal *refusal = &refusals->entry[i];
		if (cursor->permitted || refusal->uid == cursor->uid) {
			refused_item(out, cursor->core, refusal);
		}
	}
	json_close(out, ']');
}

static const struct list_ops app_list = {.field = "apps", .item = app_item, .tail = apps_tail};

enum api_result method_list_apps(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	return list_start(call, &app_list, &cursor);
}

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

static bool app_wanted(const struct list_cursor *cursor, const struct app *app)
{
	return cursor->pattern[0] == '\0' || strcmp(cursor->pattern, app->name) == 0;
}

/* first = app, second = its stage */
static bool next_stage(struct list_cursor *cursor, struct json *out)
{
	const struct app *app = apps_at(cursor->core->apps, cursor->first);
	if (!app) {
		return false;
	}
	if (!app_wanted(cursor, app) || cursor->second >= app->stages) {
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
		if (!app_wanted(cursor, app)) {
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

static void frames_item(struct json *out, struct api *api, const struct app *app)
{
	static const struct frames none;
	const struct frames *frames = app->frames ? app->frames : &none;
	struct frames_stats stats = {.sufficient = false};
	double *scratch = app->frames ? api_scratch(api, 2 * frames->window) : NULL;
	if (scratch) {
		frames_stats(frames, scratch, &stats);
	}
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_string(out, "status", stats.sufficient ? "ok" : "insufficient data");
	if (scratch) {
		json_number_opt(out, "fps", stats.fps);
		json_number_opt(out, "frame_time_ms", stats.frame_time_ms);
		json_number_opt(out, "fps_mean", stats.fps_mean);
		json_number_opt(out, "fps_min", stats.fps_min);
		json_number_opt(out, "fps_max", stats.fps_max);
		json_number_opt(out, "fps_p5", stats.fps_p5);
		json_number_opt(out, "fps_p95", stats.fps_p95);
		json_number_opt(out, "frame_time_mean_ms", stats.frame_time_mean_ms);
		json_number_opt(out, "frame_time_p95_ms", stats.frame_time_p95_ms);
		json_number_opt(out, "frame_time_p99_ms", stats.frame_time_p99_ms);
		json_number_opt(out, "jitter_ms", stats.jitter_ms);
		json_number_opt(out, "end_to_end_mean_ms", stats.end_to_end_mean_ms);
		json_number_opt(out, "end_to_end_p95_ms", stats.end_to_end_p95_ms);
	}
	json_unsigned(out, "frame_count", stats.frame_count);
	json_unsigned(out, "total_count", frames->count);
	json_unsigned(out, "misses", frames->misses);
	json_unsigned(out, "zero_deltas", frames->zero_deltas);
	json_unsigned(out, "out_of_order", frames->out_of_order);
	json_unsigned(out, "skipped_ids", frames->skipped_ids);
	if (frames->last_tick_ns != 0) {
		json_integer(out, "last_us", row_time_us(api->core, frames->last_tick_ns));
	}
	json_close(out, '}');
}

/* Every app with a frame stream; one that was asked for by name in any case. */
static bool next_frames(struct list_cursor *cursor, struct json *out)
{
	const struct app *app = apps_at(cursor->core->apps, cursor->first);
	if (!app) {
		return false;
	}
	cursor->first++;
	if (app_wanted(cursor, app) && (app->frames || cursor->pattern[0] != '\0')) {
		frames_item(out, cursor->api, app);
	}
	return true;
}

static const struct list_ops frames_list = {.field = "frames", .item = next_frames};

static enum api_result list_of_app(struct api_call *call, const struct list_ops *ops)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	const char *name = call->value[0].string;
	if (call->value[0].present) {
		if (!proto_name_valid(name) || !apps_find(call->core->apps, name)) {
			return reply_not_found(call->out, "app", name);
		}
		memcpy(cursor.pattern, name, strlen(name) + 1);
	}
	return list_start(call, ops, &cursor);
}

enum api_result method_list_stages(struct api_call *call)
{
	return list_of_app(call, &stage_list);
}

enum api_result method_get_frames(struct api_call *call)
{
	return list_of_app(call, &frames_list);
}
