/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_rows.c: writes single frames: when each of their stages began, and what kept them from
 * running.
 */
#include "daemon/varlink/methods/apps/frame_rows.h"

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/rows.h"

static double ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e6 : 0;
}

static void context_fields(struct json *out, const struct frame *frame)
{
	if (frame->has_context) {
		json_unsigned(out, "voluntary_switches", frame->voluntary_switches);
		json_unsigned(out, "involuntary_switches", frame->involuntary_switches);
		json_unsigned(out, "minor_faults", frame->minor_faults);
		json_unsigned(out, "major_faults", frame->major_faults);
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

void frame_rows_write(struct json *out, const struct list_cursor *cursor, bool slow, uint32_t n)
{
	const struct frame *frame[FRAME_TABLE_FRAMES];
	const struct app *app;
	size_t left_out = 0;
	json_open(out, "list", '[');
	for (size_t a = 0; list_app_at(cursor, a, &app); a++) {
		size_t count = 0;
		if (app) {
			count = app_frames_recent(
				app, slow, frame, n < FRAME_TABLE_FRAMES ? n : FRAME_TABLE_FRAMES);
		}
		for (size_t i = 0; i < count; i++) {
			size_t mark = json_mark(out);
			if (left_out == 0) {
				frame_item(out, cursor->core, app, frame[i]);
			}
			if (left_out > 0 || out->overflow || json_room(out) < JSON_SLACK) {
				json_rollback(out, mark);
				left_out += count - i;
				break;
			}
		}
	}
	json_close(out, ']');
	if (left_out > 0) {
		json_unsigned(out, "list_left_out", left_out);
	}
}
