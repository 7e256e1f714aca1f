/* GetFrames: the frame stream of each app. */
#include "daemon/api/list.h"
#include "daemon/api/methods.h"
#include "daemon/api/rows.h"
#include "daemon/api/state.h"

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
	if (list_app_wanted(cursor, app) && (app->frames || cursor->pattern[0] != '\0')) {
		frames_item(out, cursor->api, app);
	}
	return true;
}

static const struct list_ops frames_list = {.field = "frames", .item = next_frames};

enum api_result method_get_frames(struct api_call *call)
{
	return list_of_app(call, &frames_list);
}
