/*
 * A COMPLETE record's way into its stage and its frame: nearly all records are of this kind, and
 * this is most of what one costs. app_records.c alone includes it.
 */
#pragma once

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/loop_run.h"
#include "daemon/core/stages/event.h"

/* The record is believable and its declaration is there. False: memory is short. */
static inline bool app_take_complete(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, enum throttle_value throttled)
{
	struct stage *stage = process->stages[record->stage];
	if (__builtin_expect(!stage, 0) && !(stage = app_stage_of(apps, process, record->stage))) {
		return false;
	}
	uint64_t end_ns = record->start_ns + record->value;
	struct stage_run run = stage_run_of(end_ns, record->value, record->frame);
	run.cpu_us = record->cpu_us;
	run.failed = record->flags & PROTO_RECORD_FAILED;
	run.throttled = throttled;
	if (__builtin_expect(process->slots != NULL, 0)) {
		uint64_t process_cpu_ns = run.process_cpu_ns;
		int64_t rss_growth = run.rss_growth;
		app_cost_of(process, slot, record, &process_cpu_ns, &rss_growth);
		run.process_cpu_ns = process_cpu_ns;
		run.rss_growth = rss_growth;
	}
	bool left_out = !stage_take(stage, &run);
	if (process->slots || record->flags >> PROTO_RECORD_DEPTH_SHIFT) {
		app_nest(process, slot, record, stage, left_out);
	}
	if (__builtin_expect(run.rss_growth != INT64_MIN, 0)) {
		app_tell_growth(apps, process, record->stage, end_ns, run.rss_growth);
	}
	if (record->frame != PROTO_NO_FRAME) {
		const struct app_frame_run in_frame = {.frame = record->frame,
			.start_ns = record->start_ns,
			.end_ns = end_ns,
			.slot = slot,
			.nested = record->flags & PROTO_RECORD_NESTED,
			.left_out = left_out};
		app_frame_run(apps, process, record->stage, &in_frame);
	} else if (__builtin_expect(!left_out, 1)) {
		app_loop_run(process->app, stage, &run, app_thread_bit(process, slot));
	} else {
		process->app->loop.spoilt = process->app->loop.begun;
	}
	return true;
}
