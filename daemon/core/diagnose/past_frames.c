/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past_frames.c: puts the frames of an app together from its raw records. Frames with ids are
 * joined by id, whichever thread ran their stages. Without ids, the moments at which iterations
 * begin are collected first, and what ran is then assigned to them by time.
 */
#include "daemon/core/diagnose/past_frames.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/past_private.h"
#include "daemon/core/frames/trace_buffer.h"

enum {
	NEAR = 64, /* frames among which an id is looked up */
	UNLISTED = 0xff,
	IN_FLIGHT = 48, /* frames at the end that may be incomplete */
	SAMPLED = 8,	/* frames that show which stages a frame has */
};

struct reader {
	const struct app *app;
	struct past_frames *past;
	enum loop_kind kind;
	uint16_t marker;       /* name of the stage whose starts begin iterations */
	bool marking;	       /* iterations are being collected */
	bool shared;	       /* some frame is of several threads */
	bool complete;	       /* the records reach back to the start of the run */
	size_t hint;	       /* the iteration that was found last */
	size_t begun;	       /* frames; numbered from 1; the newest PAST_FRAMES are kept */
	uint64_t recent[NEAR]; /* their ids */
	uint8_t stage[TRACE_NAMES_MAX]; /* by name: index + 1; 0 = not seen yet */
	size_t in[PAST_THREADS];	/* the last frame that each thread took part in */
};

static size_t kept(const struct reader *reader)
{
	return reader->begun < PAST_FRAMES ? reader->begun : PAST_FRAMES;
}

static struct past_frame *frame_at(struct reader *reader, size_t number)
{
	return &reader->past->frame[(number - 1) % PAST_FRAMES];
}

static struct past_scratch *scratch_at(struct reader *reader, size_t number)
{
	return &reader->past->scratch[(number - 1) % PAST_FRAMES];
}

/* The newest frame of this id, of those that may be at work still; 0 = none. */
static size_t find(struct reader *reader, uint64_t id)
{
	size_t oldest = reader->begun > NEAR ? reader->begun - NEAR : 0, number = reader->begun;
	while (number > oldest && reader->recent[number % NEAR] != id) {
		number--;
	}
	return number > oldest ? number : 0;
}

static size_t begin(struct reader *reader, uint64_t id, uint64_t start_ns, uint16_t thread)
{
	size_t number = ++reader->begun;
	reader->recent[number % NEAR] = id;
	struct past_frame *frame = frame_at(reader, number);
	*frame = (struct past_frame){.id = id, .start_ns = start_ns, .cpu_ms = NAN};
	*scratch_at(reader, number) = (struct past_scratch){.thread = thread, .first = UNLISTED};
	for (size_t i = 0; i < FACTS_STAGES; i++) {
		frame->stage_ms[i] = frame->wait_ms[i] = NAN;
	}
	return number;
}

/* Whether the piece of this thread is of a later frame with the same id. */
static bool is_next(struct reader *reader, size_t number, const struct past_run *run, uint8_t stage)
{
	const struct past_frame *frame = frame_at(reader, number);
	const struct past_scratch *scratch = scratch_at(reader, number);
	bool own = scratch->thread == run->thread;
	bool closed = scratch->closed_ns > 0 && run->start_ns >= scratch->closed_ns;
	if (own && closed) {
		return true;
	}
	if (stage >= FACTS_STAGES || run->depth > 0 || isnan(frame->stage_ms[stage])) {
		return false;
	}
	bool left = own && reader->in[run->thread] != number;
	bool round = own && scratch->closed_ns == 0 && stage == scratch->first &&
		     frame->busy_ms > frame->stage_ms[stage];
	return closed || left || round;
}

/* The frame that a piece is of, begun where it is its first. */
static size_t frame_of(struct reader *reader, const struct past_run *run, uint8_t stage)
{
	size_t number = find(reader, run->frame);
	if (number == 0 || is_next(reader, number, run, stage)) {
		number = begin(reader, run->frame, run->start_ns, run->thread);
	}
	reader->in[run->thread] = number;
	if (scratch_at(reader, number)->thread != run->thread) {
		scratch_at(reader, number)->shared = reader->shared = true;
	}
	return number;
}

static float ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return (float)((double)(int64_t)(to_ns - from_ns) / 1e6);
}

/* Offsets of stages are from the frame's start. */
static void extend(struct reader *reader, size_t number, uint64_t start_ns, uint64_t end_ns)
{
	struct past_frame *frame = frame_at(reader, number);
	if (start_ns < frame->start_ns) {
		float shift_ms = ms_between(start_ns, frame->start_ns);
		for (size_t i = 0; i < reader->past->stages; i++) {
			frame->wait_ms[i] += shift_ms;
			scratch_at(reader, number)->ended_ms[i] += shift_ms;
		}
		frame->start_ns = start_ns;
	}
	frame->end_ns = end_ns > frame->end_ns ? end_ns : frame->end_ns;
}

/* Index of a stage; `total` and what exceeds the table are not listed. */
static uint8_t stage_of(struct reader *reader, uint16_t name)
{
	struct past_frames *past = reader->past;
	if (reader->stage[name] == 0) {
		const char *text = trace_log_name_of(reader->app->log, name);
		bool listed = past->stages < FACTS_STAGES && strcmp(text, "total") != 0;
		reader->stage[name] = (uint8_t)(listed ? past->stages + 1 : UNLISTED);
		if (listed) {
			memcpy(past->stage[past->stages++], text, strnlen(text, PROTO_NAME_MAX));
		}
	}
	return (uint8_t)(reader->stage[name] == UNLISTED ? UNLISTED : reader->stage[name] - 1);
}

static void add_run(struct reader *reader, size_t number, const struct past_run *run, uint8_t stage)
{
	struct past_frame *frame = frame_at(reader, number);
	struct past_scratch *scratch = scratch_at(reader, number);
	float self_ms = (float)((double)run->self_ns / 1e6);
	if (reader->kind != LOOP_OF_FRAMES || run->end_ns >= frame->end_ns) {
		frame->throttled = run->throttled;
	}
	if (reader->kind == LOOP_OF_FRAMES) {
		extend(reader, number, run->start_ns, run->end_ns);
	}
	if (run->depth == 0 && run->cpu_us != PROTO_CPU_NOT_MEASURED) {
		float cpu_ms = (float)run->cpu_us / 1e3f;
		frame->cpu_ms = isnan(frame->cpu_ms) ? cpu_ms : frame->cpu_ms + cpu_ms;
	}
	if (stage >= FACTS_STAGES) {
		return;
	}
	frame->busy_ms += self_ms;
	float began_ms = ms_between(frame->start_ns, run->start_ns);
	float ended_ms = ms_between(frame->start_ns, run->end_ns);
	if (isnan(frame->stage_ms[stage])) {
		frame->stage_ms[stage] = self_ms;
		frame->wait_ms[stage] = began_ms;
		scratch->ended_ms[stage] = ended_ms;
	} else {
		frame->stage_ms[stage] += self_ms;
		frame->wait_ms[stage] = fminf(frame->wait_ms[stage], began_ms);
		scratch->ended_ms[stage] = fmaxf(scratch->ended_ms[stage], ended_ms);
	}
	scratch->first = scratch->first == UNLISTED ? stage : scratch->first;
}

/* The iteration of this time, of those in order; 0 = none. Mostly it is the last one or the next.
 */
static size_t iteration_at(struct reader *reader, uint64_t t_ns)
{
	const struct past_frame *frame = reader->past->frame;
	size_t low = 0, high = reader->past->count, middle = reader->hint;
	while (low < high) {
		if (middle < low || middle >= high) {
			middle = (low + high) / 2;
		}
		if (frame[middle].start_ns > t_ns) {
			high = middle;
		} else {
			low = middle + 1;
			high = frame[middle].end_ns > t_ns ? low : high;
			middle = low;
		}
	}
	reader->hint = low > 0 ? low - 1 : 0;
	return low > 0 && t_ns <= frame[low - 1].end_ns ? low : 0;
}

static void on_run(void *ctx, const struct past_run *run)
{
	struct reader *reader = ctx;
	uint8_t stage = stage_of(reader, run->name);
	if (reader->kind == LOOP_OF_FRAMES) {
		if (run->frame != PROTO_NO_FRAME) {
			add_run(reader, frame_of(reader, run, stage), run, stage);
		}
	} else if (!reader->marking) {
		bool of_ticks = reader->kind == LOOP_OF_TICKS;
		size_t number = iteration_at(reader, of_ticks ? run->end_ns : run->start_ns);
		if (number > 0) {
			add_run(reader, number, run, stage);
		}
	} else if (reader->kind == LOOP_OF_STAGES && run->name == reader->marker) {
		begin(reader, PROTO_NO_FRAME, run->start_ns, run->thread);
	}
}

static void add_context(struct past_frame *frame, const struct proto_record *record)
{
	uint64_t counts = record->value;
	if (!frame->has_context || record->cpu_us == PROTO_CPU_NOT_MEASURED) {
		frame->run_delay_us = record->cpu_us;
	} else if (frame->run_delay_us != PROTO_CPU_NOT_MEASURED) {
		frame->run_delay_us += record->cpu_us;
	}
	frame->has_context = true;
	frame->voluntary += (uint16_t)counts;
	frame->involuntary += (uint16_t)(counts >> 16);
	frame->minor_faults += (uint16_t)(counts >> 32);
	frame->major_faults += (uint16_t)(counts >> 48);
}

/* A record of a frame, not of a stage. */
static void on_frame(struct reader *reader, const struct event *event)
{
	const struct proto_record *record = &event->record;
	struct past_run piece = {.thread = past_thread_of(event),
		.start_ns = record->start_ns,
		.end_ns = record->start_ns + record->value,
		.frame = record->frame};
	if (reader->kind != LOOP_OF_FRAMES) {
		if (reader->marking && reader->kind == LOOP_OF_TICKS) {
			begin(reader, PROTO_NO_FRAME, piece.end_ns, piece.thread);
		}
		return;
	}
	if (record->frame == PROTO_NO_FRAME) {
		return;
	}
	size_t number = frame_of(reader, &piece, UNLISTED);
	extend(reader, number, piece.start_ns, piece.end_ns);
	if (record->value > 0) {
		scratch_at(reader, number)->closed_ns = piece.end_ns;
	}
}

static void on_event(struct past_pairing *pairing, const struct event *event)
{
	struct reader *reader = pairing->ctx;
	const struct proto_record *record = &event->record;
	bool frames = reader->kind == LOOP_OF_FRAMES;
	if (record->kind == PROTO_KIND_CONTEXT && (frames || !reader->marking)) {
		size_t number = frames ? find(reader, record->frame)
				       : iteration_at(reader, record->start_ns - 1);
		if (number > 0) {
			add_context(frame_at(reader, number), record);
		}
	} else if (record->kind == PROTO_KIND_FRAME) {
		on_frame(reader, event);
	} else {
		past_pair(pairing, event);
	}
	if ((frames || reader->marking) && record->kind <= PROTO_KIND_FRAME) {
		reader->past->events++;
		if (reader->past->first_event_ns == 0) {
			reader->past->first_event_ns = record->start_ns;
		}
	}
}

static void read_all(struct reader *reader, bool marking)
{
	struct past_pairing pairing = {
		.to_ns = UINT64_MAX, .event = on_event, .visit = on_run, .ctx = reader};
	bool seeks = !marking && reader->past->count > 0;
	pairing.from_ns = seeks ? reader->past->frame[0].start_ns : 0;
	reader->marking = marking;
	reader->complete |= past_walk(reader->app, &pairing);
}

static size_t stages_in(struct reader *reader, size_t number)
{
	size_t count = 0;
	for (size_t i = 0; i < reader->past->stages; i++) {
		count += !isnan(frame_at(reader, number)->stage_ms[i]);
	}
	return count;
}

/* The newest frames, which other threads may be at work on, have fewer stages than most. */
static void trim(struct reader *reader)
{
	size_t oldest = reader->begun > PAST_FRAMES ? reader->begun - PAST_FRAMES : 0;
	size_t middle = (oldest + reader->begun) / 2 + 1, usual = FACTS_STAGES;
	for (size_t i = middle; i < middle + SAMPLED && i <= reader->begun; i++) {
		size_t stages = stages_in(reader, i);
		usual = stages < usual ? stages : usual;
	}
	for (size_t i = reader->begun; i > middle && i + IN_FLIGHT > reader->begun; i--) {
		const struct past_scratch *scratch = scratch_at(reader, i);
		if (scratch->closed_ns > 0 && !scratch->shared && !reader->shared) {
			break;
		}
		if (stages_in(reader, i) < usual) {
			frame_at(reader, i)->end_ns = UINT64_MAX;
		}
	}
}

static uint32_t warmup_of(const struct app *app)
{
	uint32_t warmup = app->frames ? app->frames->settings.warmup : 0;
	for (size_t i = 0; i < app->stages; i++) {
		uint32_t own = app->stage[i]->settings.warmup;
		warmup = own > warmup ? own : warmup;
	}
	return warmup;
}

static void read_iterations(struct reader *reader)
{
	struct past_frames *past = reader->past;
	read_all(reader, true);
	past_sort(past, kept(reader));
	for (size_t i = 0; i + 1 < past->count; i++) {
		past->frame[i].end_ns = past->frame[i + 1].start_ns;
	}
	past->count -= past->count > 0; /* the one that goes on */
	read_all(reader, false);
	past_finish_waits(past, past->count);
}

void past_frames_read(
	const struct app *app, uint64_t from_ns, uint64_t to_ns, struct past_frames *ret)
{
	struct reader reader = {
		.app = app, .past = ret, .kind = app->loop.kind, .marker = TRACE_NO_NAME};
	memset(ret, 0, offsetof(struct past_frames, frame));
	ret->of_stages = reader.kind == LOOP_OF_STAGES;
	if (!app->log) {
		return;
	}
	for (uint16_t i = 0; app->loop.marker && i < app->log->names; i++) {
		if (strcmp(trace_log_name_of(app->log, i), app->loop.marker->name) == 0) {
			reader.marker = i;
		}
	}
	if (reader.kind == LOOP_OF_FRAMES) {
		read_all(&reader, false);
		trim(&reader);
		past_finish_waits(ret, kept(&reader));
		past_sort(ret, kept(&reader));
	} else {
		read_iterations(&reader);
	}
	ret->whole = reader.complete && reader.begun <= PAST_FRAMES;
	past_select(ret, ret->whole ? warmup_of(app) : 0, from_ns, to_ns);
}
