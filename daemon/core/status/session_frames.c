/* SPDX-License-Identifier: Apache-2.0 */
/* session_frames.c: counts the frames of a session. A frame without a FRAME record ends when the
 * next one begins: what belongs to it comes before. */
#include "daemon/core/status/session_frames.h"

#include <math.h>

enum { FAR_BACK = 1000 /* an id so much smaller begins a new sequence */ };

static void note(struct session_frames *frames, uint64_t took_ns)
{
	frames->took_ns[frames->next] = took_ns;
	frames->next = (frames->next + 1) % SESSION_RECENT;
	frames->filled += frames->filled < SESSION_RECENT;
}

void session_frames_upgrade(struct session_frames *frames, enum session_unit unit)
{
	if (unit > frames->unit) {
		frames->unit = unit;
		frames->begun = false;
		session_frames_forget(frames);
	}
}

static enum session_step on_frame(struct session_frames *frames, const struct proto_record *record)
{
	uint64_t before_ns = frames->begun ? frames->end_ns : 0;
	session_frames_upgrade(frames, SESSION_OF_FRAMES);
	frames->end_ns = record->start_ns + record->value;
	if (record->value > 0) {
		note(frames, record->value);
	} else if (before_ns > 0 && frames->end_ns > before_ns) {
		note(frames, frames->end_ns - before_ns);
	}
	frames->begun = true; /* a tick is the begin of the next frame */
	return SESSION_FRAME_ENDED;
}

/* A run that begins a frame: the one that went on has ended. */
static enum session_step begin(struct session_frames *frames, const struct proto_record *record)
{
	bool ended = frames->begun;
	if (ended && frames->seen_ns > frames->begin_ns) {
		note(frames, frames->seen_ns - frames->begin_ns);
	}
	frames->end_ns = frames->seen_ns;
	frames->begun = true;
	frames->begin_ns = record->start_ns;
	return ended ? SESSION_FRAME_BEFORE : SESSION_GOES_ON;
}

static bool is_new_id(const struct session_frames *frames, uint64_t id)
{
	return !frames->begun || id > frames->id || frames->id - id > FAR_BACK;
}

/* Whether the run is one more of the outermost stage that ran most often. */
static bool is_iteration(struct session_frames *frames, const struct proto_record *record)
{
	if (record->stage >= TRACE_NAMES_MAX || record->flags >> PROTO_RECORD_DEPTH_SHIFT ||
		record->flags & PROTO_RECORD_NESTED) {
		return false;
	}
	bool more = ++frames->votes[record->stage] > frames->most;
	frames->most += more;
	return more;
}

enum session_step session_frames_add(
	struct session_frames *frames, const struct proto_record *record)
{
	enum session_step step = SESSION_GOES_ON;
	if (record->kind == PROTO_KIND_FRAME) {
		return on_frame(frames, record);
	}
	if (record->kind != PROTO_KIND_COMPLETE || frames->unit == SESSION_OF_FRAMES) {
		return SESSION_GOES_ON;
	}
	if (record->frame != PROTO_NO_FRAME) {
		session_frames_upgrade(frames, SESSION_OF_IDS);
		if (is_new_id(frames, record->frame)) {
			step = begin(frames, record);
			frames->id = record->frame;
		}
	} else if (frames->unit == SESSION_OF_STAGES && is_iteration(frames, record)) {
		step = begin(frames, record);
	}
	frames->seen_ns = record->start_ns + record->value;
	return step;
}

bool session_frames_finish(struct session_frames *frames)
{
	bool ends = frames->begun && frames->unit != SESSION_OF_FRAMES;
	frames->begun = false;
	frames->end_ns = ends ? frames->seen_ns : frames->end_ns;
	return ends;
}

double session_frames_mean_ms(const struct session_frames *frames)
{
	double sum = 0;
	for (uint32_t i = 0; i < frames->filled; i++) {
		sum += (double)frames->took_ns[i];
	}
	return frames->filled > 0 ? sum / frames->filled / 1e6 : (double)NAN;
}

void session_frames_forget(struct session_frames *frames)
{
	frames->filled = frames->next = 0;
}
