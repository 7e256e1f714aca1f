/*
 * ticks.c: counts the ticks of an app in the order of time. A tick waits until everything up to
 * its time has been read: threads and processes are read one after the other. app_frames.c adds
 * and takes them.
 */
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/time_order.h"

enum { TICKS_NEAR = 48 };

static void tick_count(struct app_frames *frame_state, const struct app_tick *tick)
{
	struct frames *frames = frame_state->app->frames;
	enum throttle_value throttled = app_throttled_at(frame_state->apps, tick->t_ns);
	uint64_t delta_ns = frames_tick(frames, tick->t_ns, tick->id, throttled);
	struct frame *frame = NULL;
	if (tick->id == PROTO_NO_FRAME) {
		if (tick->took_ns > 0) {
			frames_latency(frames, tick->took_ns, 0, throttled);
		}
	} else {
		if (frame_state->table &&
			(frame = frame_table_find(frame_state->table, tick->id, tick->t_ns))) {
			frame->delta_ns = delta_ns;
		}
		if (tick->took_ns > 0 || (frame && frame_latency_ns(frame) > 0)) {
			return; /* judged when it is done */
		}
	}
	uint64_t took_ns = tick->took_ns > 0 ? tick->took_ns : delta_ns;
	if (took_ns > 0) {
		frames_judge(frames, took_ns);
		if (frame) {
			frame->judged = true;
		}
	}
}

void app_ticks_count(struct app_frames *frame_state, size_t n, uint64_t limit_ns)
{
	size_t taken = 0;
	if (frame_state->unordered) {
		struct app_tick spare[APP_TICKS_MAX];
		time_order(frame_state->tick, spare, frame_state->ticks, sizeof(spare[0]));
		frame_state->unordered = false;
	}
	while (taken < n && taken < frame_state->ticks &&
		frame_state->tick[taken].t_ns <= limit_ns) {
		tick_count(frame_state, &frame_state->tick[taken++]);
	}
	frame_state->ticks -= taken;
	memmove(&frame_state->tick[0], &frame_state->tick[taken],
		frame_state->ticks * sizeof(frame_state->tick[0]));
}

/* In order, when it is not far from the end; else they are sorted later. */
void app_tick_add(struct app_frames *frame_state, const struct app_tick *tick)
{
	if (frame_state->ticks == APP_TICKS_MAX) {
		app_ticks_count(frame_state, APP_TICKS_MAX / 2, UINT64_MAX);
	}
	size_t at = frame_state->ticks++;
	size_t least = at > TICKS_NEAR ? at - TICKS_NEAR : 0;
	uint64_t t_ns = tick->t_ns;
	if (least > 0 && frame_state->tick[least - 1].t_ns > t_ns) {
		frame_state->unordered = true;
	}
	if (frame_state->unordered) {
		least = at;
	}
	while (at > least && frame_state->tick[at - 1].t_ns > t_ns) {
		frame_state->tick[at] = frame_state->tick[at - 1];
		at--;
	}
	frame_state->tick[at] = *tick;
}
