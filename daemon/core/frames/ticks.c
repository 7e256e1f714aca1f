/*
 * Ticks of an app wait here until everything up to their time has been read, and count in the order
 * of time: threads and processes are read one after the other. app_frames.c adds and takes them.
 */
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/time_order.h"

enum { TICKS_NEAR = 48 };

static void tick_count(struct app_frames *tied, const struct app_tick *tick)
{
	struct frames *frames = tied->app->frames;
	enum throttle_value throttled = app_throttled_at(tied->apps, tick->t_ns);
	uint64_t delta_ns = frames_tick(frames, tick->t_ns, tick->id, throttled);
	struct frame *frame = NULL;
	if (tick->id == PROTO_NO_FRAME) {
		if (tick->took_ns > 0) {
			frames_latency(frames, tick->took_ns, 0, throttled);
		}
	} else {
		if (tied->table && (frame = frame_table_find(tied->table, tick->id, tick->t_ns))) {
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

void app_ticks_take(struct app_frames *tied, size_t n, uint64_t limit_ns)
{
	size_t taken = 0;
	if (tied->unordered) {
		struct app_tick spare[APP_TICKS_MAX];
		time_order(tied->tick, spare, tied->ticks, sizeof(spare[0]));
		tied->unordered = false;
	}
	while (taken < n && taken < tied->ticks && tied->tick[taken].t_ns <= limit_ns) {
		tick_count(tied, &tied->tick[taken++]);
	}
	tied->ticks -= taken;
	memmove(&tied->tick[0], &tied->tick[taken], tied->ticks * sizeof(tied->tick[0]));
}

/* In order, when it is not far from the end; else they are sorted later. */
void app_tick_add(struct app_frames *tied, const struct app_tick *tick)
{
	if (tied->ticks == APP_TICKS_MAX) {
		app_ticks_take(tied, APP_TICKS_MAX / 2, UINT64_MAX);
	}
	size_t at = tied->ticks++;
	size_t least = at > TICKS_NEAR ? at - TICKS_NEAR : 0;
	uint64_t t_ns = tick->t_ns;
	if (least > 0 && tied->tick[least - 1].t_ns > t_ns) {
		tied->unordered = true;
	}
	if (tied->unordered) {
		least = at;
	}
	while (at > least && tied->tick[at - 1].t_ns > t_ns) {
		tied->tick[at] = tied->tick[at - 1];
		at--;
	}
	tied->tick[at] = *tick;
}
