/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c: answers GetFrames: the frame stream of each app, and on request single frames: when
 * each of their stages began, and what kept them from running.
 */
#include <math.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/runs/runs.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

/* Single frames in the cursor's choice: how many, and which. */
enum { SLOW = 1, COUNT_SHIFT = 1, DEFAULT_SLOW = 10 };

#define FIELD(name) JSON_FIELD(struct frames_stats, #name, name)
#define PART(name, member) JSON_FIELD(struct frames_stats, name, member)
static const struct json_field stats_fields[] = {FIELD(frame_time_ms), FIELD(fps_mean),
	FIELD(fps_min), FIELD(fps_max), FIELD(fps_p5), FIELD(fps_p95), FIELD(fps_1s_min),
	FIELD(fps_1s_max), PART("frame_time_mean_ms", times.mean),
	PART("frame_time_p50_ms", times.p50), PART("frame_time_p95_ms", times.p95),
	PART("frame_time_p99_ms", times.p99), PART("jitter_ms", times.std),
	PART("end_to_end_mean_ms", latencies.mean), PART("end_to_end_p50_ms", latencies.p50),
	PART("end_to_end_p95_ms", latencies.p95), PART("end_to_end_p99_ms", latencies.p99),
	PART("end_to_end_max_ms", latencies.max), FIELD(stage_sum_mean_ms), FIELD(in_flight)};
#undef PART
#undef FIELD

/* Of the recent frames it is a rate of now, or none. */
static void rate_fields(struct json *out, const struct list_cursor *cursor, const struct app *app,
	struct frames_stats *stats)
{
	struct app_rate_reason reason;
	bool recent = !cursor->query.lifetime;
	if (!recent) {
		json_number_opt(out, "fps", stats->fps);
		return;
	}
	row_rate(out, app, &app->frames->pulse, stats->fps, cursor->now_ns);
	if (!app_has_rate(app, &app->frames->pulse, cursor->now_ns, &reason)) {
		stats->fps = stats->frame_time_ms = (double)NAN;
	}
}

static void target_fields(
	struct json *out, const struct frames *frames, const struct frames_stats *stats)
{
	if (frames->settings.target_fps > 0) {
		json_number(out, "target_fps", frames->settings.target_fps);
		if (!isnan(stats->fps)) {
			json_bool(out, "on_target", stats->fps >= frames->settings.target_fps);
		}
	}
}

#define FIELD(name) JSON_FIELD(struct frames, #name, name)
static const struct json_field frames_fields[] = {JSON_FIELD(struct frames, "total_count", count),
	FIELD(warmup_skipped), FIELD(zero_deltas), FIELD(out_of_order), FIELD(skipped_ids),
	JSON_FIELD(struct frames, "id_sequences", ids.sequences)};
#undef FIELD

static void count_fields(struct json *out, const struct app *app, const struct frames *frames)
{
	const struct app_frames *tied = app->frame_state;
	JSON_FIELDS(out, frames_fields, frames);
	json_unsigned(out, "throttled_count",
		frames->times.throttled ? frames->times.throttled->count : 0);
	json_unsigned(out, "throttle_unknown_count", frames->times.unknown_count);
	json_unsigned(out, "late", tied && tied->table ? tied->table->late : 0);
	json_unsigned(out, "forced", tied && tied->table ? tied->table->forced : 0);
	json_unsigned(out, "unfinished", tied ? tied->unfinished : 0);
	json_unsigned(out, "slow_count", frames->slow_seen);
	uint64_t slow_ns = frames->deadline_ns ? frames->deadline_ns : tied ? tied->slow_ns : 0;
	if (slow_ns > 0) {
		json_number(out, "slow_over_ms", (double)slow_ns / 1e6);
	}
}

static void energy_fields(struct json *out, const struct app *app)
{
	const char *reason;
	double energy_mj = app_energy_frame_mj(app, &reason);
	if (isnan(energy_mj)) {
		json_string_opt(out, "energy_reason", reason);
	} else {
		json_number(out, "energy_mj_per_frame", energy_mj);
		json_string(out, "energy_origin", APP_ENERGY_ORIGIN ", estimate");
	}
}

static void frames_item(struct json *out, const struct list_cursor *cursor, const struct app *app)
{
	/* Never written; as a constant it would be 20 KiB of zeros in the program's file. */
	static struct frames none;
	const struct frames *frames = app->frames ? app->frames : &none;
	struct frames_stats stats = {.exact = !cursor->query.lifetime, .fps = (double)NAN};
	double *scratch = app->frames ? api_scratch(cursor->api, 2 * frames->window) : NULL;
	if (scratch) {
		frames_ask(frames, &cursor->query, scratch, &stats);
	}
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	run_fields(out, cursor->core, app, cursor->now_ns);
	json_string(out, "status", stats.sufficient ? "ok" : "insufficient data");
	span_fields(out, cursor->query, stats.exact, stats.reason);
	if (scratch) {
		rate_fields(out, cursor, app, &stats);
		JSON_FIELDS(out, stats_fields, &stats);
	}
	json_unsigned(out, "frame_count", stats.times.count);
	count_fields(out, app, frames);
	const struct row_deadline deadline = {frames->deadline_ns,
		frames->settings.deadline_ns != 0, frames->misses, frames->judged,
		frames->consecutive_misses, frames->longest_misses, frames->worst_ns};
	row_deadline(out, &deadline);
	target_fields(out, frames, &stats);
	energy_fields(out, app);
	if (frames->last_tick_ns != 0) {
		json_integer(out, "last_us", row_time_us(cursor->core, frames->last_tick_ns));
		json_number(out, "age_ms", row_age_ms(cursor->now_ns, frames->last_tick_ns));
	}
	json_close(out, '}');
}

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e6 : 0;
}

static void context_fields(struct json *out, const struct frame *frame)
{
#define FIELD(name) JSON_FIELD(struct frame, #name, name)
	static const struct json_field fields[] = {FIELD(voluntary_switches),
		FIELD(involuntary_switches), FIELD(minor_faults), FIELD(major_faults)};
#undef FIELD
	if (frame->has_context) {
		JSON_FIELDS(out, fields, frame);
		json_number(out, "run_delay_ms", (double)frame->run_delay_us / 1e3);
	}
}

/* The indices of its stages, in the order of their starts. How many. */
static size_t stages_order(const struct frame *frame, uint8_t order[FRAME_STAGES + 1])
{
	size_t count = 0;
	for (uint8_t slot = 0; slot <= FRAME_STAGES; slot++) {
		if (!(frame->parts >> slot & 1)) {
			continue;
		}
		size_t at = count++;
		while (at > 0 && frame->part[order[at - 1]].start_ns > frame->part[slot].start_ns) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = slot;
	}
	return count;
}

static void stage_items(struct json *out, const struct app *app, const struct frame *frame)
{
	uint8_t order[FRAME_STAGES + 1];
	size_t count = stages_order(frame, order);
	json_open(out, "stages", '[');
	for (size_t i = 0; i < count; i++) {
		const struct frame_part *part = &frame->part[order[i]];
		json_open(out, NULL, '{');
		json_string(out, "stage", frame_table_stage(app->frame_state->table, order[i]));
		json_number(out, "start_ms", ms_between(frame->start_ns, part->start_ns));
		json_number(out, "busy_ms", (double)frame_part_ns(part) / 1e6);
		json_unsigned(out, "runs", frame_part_runs(part));
		json_close(out, '}');
	}
	json_close(out, ']');
}

static void frame_item(
	struct json *out, const struct core *core, const struct app *app, const struct frame *frame)
{
	uint64_t latency_ns = frame_latency_ns(frame);
	uint64_t took_ns = latency_ns > 0 ? latency_ns : frame->delta_ns;
	uint64_t deadline_ns = app->frames->deadline_ns;
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_unsigned(out, "frame", frame->id);
	json_integer(out, "end_us", row_time_us(core, frame->end_ns));
	if (latency_ns > 0) {
		json_integer(out, "start_us", row_time_us(core, frame->start_ns));
		json_number(out, "end_to_end_ms", (double)latency_ns / 1e6);
	}
	if (frame->delta_ns > 0) {
		json_number(out, "frame_time_ms", (double)frame->delta_ns / 1e6);
	}
	if (frame->runs > 0) {
		json_number(out, "stage_sum_ms", (double)frame->sum_ns / 1e6);
	}
	if (deadline_ns > 0 && took_ns > 0) {
		json_bool(out, "missed", took_ns > deadline_ns);
	}
	if (frame->throttled != THROTTLE_UNKNOWN) {
		json_bool(out, "throttled", frame->throttled == THROTTLE_YES);
	}
	json_integer(out, "threads", __builtin_popcountll(frame->threads));
	json_unsigned(out, "late", frame->late);
	context_fields(out, frame);
	stage_items(out, app, frame);
	json_close(out, '}');
}

/* At most n frames of one run, as far as they fit; *left_out counts the others. How many both are.
 */
static size_t put_frames(struct json *out, const struct list_cursor *cursor, const struct app *run,
	bool slow, size_t n, size_t *left_out)
{
	const struct frame *frame[FRAME_TABLE_FRAMES];
	size_t count = app_frames_recent(run, slow, frame, n);
	for (size_t i = 0; i < count; i++) {
		size_t mark = json_mark(out);
		if (*left_out == 0) {
			frame_item(out, cursor->core, run, frame[i]);
		}
		if (*left_out > 0 || out->overflow || json_room(out) < JSON_SLACK) {
			json_rollback(out, mark);
			*left_out += count - i;
			break;
		}
	}
	return count;
}

/* The field "list": the newest frames, or slow ones, of each wanted app, at most n of each and as
 * many as fit; "list_left_out" when some did not. */
static void put_list(struct json *out, const struct list_cursor *cursor, bool slow, uint32_t n)
{
	const struct app *app;
	size_t left_out = 0;
	n = n < FRAME_TABLE_FRAMES ? n : FRAME_TABLE_FRAMES;
	json_open(out, "list", '[');
	for (size_t a = 0; list_app_at(cursor, a, &app); a++) {
		size_t more = n;
		int i = 0;
		/* all runs together have the frames of the latest, and the others have theirs */
		for (const struct app *run = app; run && more > 0;
			run = cursor->run.all ? app_run(app, --i) : NULL) {
			more -= put_frames(out, cursor, run, slow, more, &left_out);
		}
	}
	json_close(out, ']');
	if (left_out > 0) {
		json_unsigned(out, "list_left_out", left_out);
	}
}

/* Every app with a frame stream; one that was asked for by name in any case. */
static bool next_frames(struct list_cursor *cursor, struct json *out)
{
	const struct app *app;
	if (!list_app_at(cursor, cursor->first, &app)) {
		return false;
	}
	cursor->first++;
	if (app && (app->frames || cursor->pattern[0] != '\0')) {
		frames_item(out, cursor, app);
	}
	return true;
}

static void frames_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	uint32_t count = cursor->choice >> COUNT_SHIFT;
	if (last && count > 0) {
		put_list(out, cursor, cursor->choice & SLOW, count);
	}
}

static const struct list_ops frames_list = {
	.field = "frames", .item = next_frames, .tail = frames_tail};

enum api_result method_get_frames(struct api_call *call)
{
	const struct value *slow = &call->value[4], *recent = &call->value[5];
	if (recent->present && (recent->integer < 1 || recent->integer > FRAME_TABLE_FRAMES)) {
		return reply_invalid_parameter(call->out, "recent");
	}
	bool only_slow = slow->present && slow->boolean;
	uint32_t count = recent->present ? (uint32_t)recent->integer : only_slow ? DEFAULT_SLOW : 0;
	uint32_t choice = count << COUNT_SHIFT | (only_slow ? SLOW : 0u);
	return list_of_run(call, &frames_list, choice, &call->value[6]);
}
