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
#include "daemon/core/frames/trace_buffer.h"
#include "proto/percentile.h"

enum {
	THREADS = 64,
	DEPTHS = 16,
	OPEN = 256, /* begins by id that wait for their end */
	NEAR = 64,  /* frames among which an id is looked up */
	UNLISTED = 0xff,
	IN_FLIGHT = 48, /* frames at the end that may be incomplete */
	SAMPLED = 8,	/* frames that show which stages a frame has */
};

static const uint64_t US_MAX = UINT64_C(1) << 41;
static const uint64_t ORDER_NS = 2000000000;
static const uint64_t PAUSE_NS = FRAMES_PAUSE_S * UINT64_C(1000000000);

struct thread {
	size_t frame;				      /* the last one it took part in */
	uint64_t inside_ns[DEPTHS], since_ns[DEPTHS]; /* runs that wait for the one around them */
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
	struct thread thread[THREADS];
};

static uint64_t end_of(const struct event *event)
{
	bool lasts = event->record.kind == PROTO_KIND_COMPLETE;
	return event->record.start_ns + (lasts ? event->record.value : 0);
}

/* Skips most of what ended before from_ns: records are about a tenth of a second out of order. */
static void seek(const struct trace_log *log, struct trace_cursor *cursor, uint64_t from_ns)
{
	const struct event *event;
	struct trace_cursor next = *cursor;
	do {
		*cursor = next;
		next.position += TRACE_CHUNK;
		event = trace_log_next(log, &next, NULL);
	} while (event && end_of(event) + ORDER_NS < from_ns);
}

/* Each record of the run, oldest first as read, of the newest PAST_EVENTS; true when these are all
 * of the run. */
static bool walk(const struct app *app, uint64_t from_ns,
	void (*visit)(void *ctx, const struct event *event), void *ctx)
{
	struct trace_usage usage;
	const struct event *event;
	trace_log_span(app->log, &usage);
	uint64_t skip = usage.count > PAST_EVENTS ? usage.count - PAST_EVENTS : 0;
	struct trace_cursor cursor = {.position = usage.overwritten + skip};
	bool complete = cursor.position == 0;
	seek(app->log, &cursor, from_ns);
	while ((event = trace_log_next(app->log, &cursor, NULL))) {
		if (event->record.start_ns < app->since_ns) {
			complete = true;
		} else {
			visit(ctx, event);
		}
	}
	return complete;
}

static uint16_t thread_of(const struct event *event)
{
	return (uint16_t)((event->slot + event->process * 7u) % THREADS);
}

struct pairing {
	uint64_t from_ns, to_ns;
	void (*visit)(void *ctx, const struct past_run *run);
	void *ctx;
	struct {
		uint64_t id;
		struct past_run run; /* start_ns 0 = none */
	} open[OPEN];
};

/* An execution; a begin by id waits for its end. */
static void pair(void *ctx, const struct event *event)
{
	struct pairing *pairing = ctx;
	const struct proto_record *record = &event->record;
	struct past_run run = {.name = record->stage,
		.thread = thread_of(event),
		.depth = record->flags >> PROTO_RECORD_DEPTH_SHIFT,
		.throttled = event->throttled,
		.cpu_us = record->cpu_us,
		.start_ns = record->start_ns,
		.end_ns = end_of(event),
		.frame = record->frame};
	size_t at = (record->value * 31 + record->stage) % OPEN;
	struct past_run *open = &pairing->open[at].run;
	if (record->kind == PROTO_KIND_BEGIN) {
		*open = run;
		pairing->open[at].id = record->value;
		return;
	}
	if (record->kind == PROTO_KIND_END) {
		if (open->start_ns == 0 || open->start_ns > run.end_ns ||
			pairing->open[at].id != record->value || open->name != run.name) {
			return;
		}
		run.start_ns = open->start_ns;
		run.frame = open->frame;
		open->start_ns = 0;
	} else if (record->kind != PROTO_KIND_COMPLETE) {
		return;
	}
	if (run.end_ns >= pairing->from_ns && run.end_ns <= pairing->to_ns &&
		run.name < TRACE_NAMES_MAX) {
		pairing->visit(pairing->ctx, &run);
	}
}

void past_runs_visit(const struct app *app, uint64_t from_ns, uint64_t to_ns,
	void (*visit)(void *ctx, const struct past_run *run), void *ctx)
{
	struct pairing pairing = {.from_ns = from_ns, .to_ns = to_ns, .visit = visit, .ctx = ctx};
	if (app->log) {
		walk(app, from_ns, pair, &pairing);
	}
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
	bool left = own && reader->thread[run->thread].frame != number;
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
	reader->thread[run->thread].frame = number;
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

/* The run's time without that of the runs right inside of it. */
static uint64_t self_ns(struct thread *thread, const struct past_run *run)
{
	uint64_t ns = run->end_ns - run->start_ns, inside_ns = 0;
	for (unsigned i = run->depth + 1u; i < DEPTHS && thread->inside_ns[i] > 0; i++) {
		inside_ns += thread->since_ns[i] >= run->start_ns ? thread->inside_ns[i] : 0;
		thread->inside_ns[i] = 0;
	}
	if (run->depth > 0) {
		uint64_t *sum_ns = &thread->inside_ns[run->depth];
		thread->since_ns[run->depth] =
			*sum_ns > 0 ? thread->since_ns[run->depth] : run->start_ns;
		*sum_ns += ns;
	}
	return inside_ns < ns ? ns - inside_ns : 0;
}

static void add_run(struct reader *reader, size_t number, const struct past_run *run, uint8_t stage)
{
	struct past_frame *frame = frame_at(reader, number);
	struct past_scratch *scratch = scratch_at(reader, number);
	float self_ms = (float)((double)self_ns(&reader->thread[run->thread], run) / 1e6);
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
	struct past_run piece = {.thread = thread_of(event),
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

static void on_event(void *ctx, const struct event *event)
{
	struct pairing *pairing = ctx;
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
		pair(pairing, event);
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
	struct pairing pairing = {.to_ns = UINT64_MAX, .visit = on_run, .ctx = reader};
	bool seeks = !marking && reader->past->count > 0;
	uint64_t from_ns = seeks ? reader->past->frame[0].start_ns : 0;
	reader->marking = marking;
	reader->complete |= walk(reader->app, from_ns, on_event, &pairing);
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

/* Offsets of stages become waits. */
static void finish_waits(struct reader *reader)
{
	struct past_frames *past = reader->past;
	for (size_t n = 0; n < PAST_FRAMES && n < reader->begun; n++) {
		float began_ms[FACTS_STAGES];
		memcpy(began_ms, past->frame[n].wait_ms, sizeof(began_ms));
		for (size_t i = 0; i < past->stages; i++) {
			float before_ms = -1;
			for (size_t k = 0; k < past->stages; k++) {
				float ended_ms = past->scratch[n].ended_ms[k];
				bool before = began_ms[k] < began_ms[i] && ended_ms > before_ms;
				before_ms = before ? ended_ms : before_ms;
			}
			float wait_ms = began_ms[i] > before_ms ? began_ms[i] - before_ms : 0;
			past->frame[n].wait_ms[i] =
				before_ms < 0 || isnan(began_ms[i]) ? NAN : wait_ms;
		}
	}
}

/* Ascending by end, or where it is not known yet by start; in place. */
static void sort(struct reader *reader)
{
	struct past_frames *past = reader->past;
	double key[PAST_FRAMES];
	uint64_t base_ns = past->first_event_ns;
	past->count = reader->begun < PAST_FRAMES ? reader->begun : PAST_FRAMES;
	for (size_t i = 0; i < past->count; i++) {
		const struct past_frame *frame = &past->frame[i];
		uint64_t t_ns = frame->end_ns > 0 ? frame->end_ns : frame->start_ns;
		uint64_t us = t_ns > base_ns ? (t_ns - base_ns) / 1000 : 0;
		us = us < US_MAX ? us : US_MAX;
		key[i] = (double)(us * PAST_FRAMES + i); /* exact for 25 days */
	}
	proto_sort(key, past->count);
	uint16_t from[PAST_FRAMES];
	for (size_t i = 0; i < past->count; i++) {
		from[i] = (uint16_t)((uint64_t)key[i] % PAST_FRAMES);
	}
	for (size_t i = 0; i < past->count; i++) { /* cycle by cycle */
		if (from[i] == i) {
			continue;
		}
		const struct past_frame first = past->frame[i];
		size_t at = i;
		while (from[at] != i) {
			size_t next = from[at];
			past->frame[at] = past->frame[next];
			from[at] = (uint16_t)at;
			at = next;
		}
		past->frame[at] = first;
		from[at] = (uint16_t)at;
	}
	while (past->count > 0 && past->frame[past->count - 1].end_ns == UINT64_MAX) {
		past->count--; /* trimmed */
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

/* Leaves those that were asked for, with the time since the one before. */
static void select_frames(struct reader *reader, uint64_t from_ns, uint64_t to_ns)
{
	struct past_frames *past = reader->past;
	past->whole = reader->complete && reader->begun <= PAST_FRAMES;
	size_t first = past->whole ? warmup_of(reader->app) : 0, count = 0;
	for (size_t i = 0; i < past->count; i++) {
		struct past_frame *frame = &past->frame[i];
		uint64_t before_ns = i > 0	       ? frame[-1].end_ns
				     : past->of_stages ? frame->start_ns
						       : frame->end_ns;
		uint64_t delta_ns = frame->end_ns - before_ns;
		frame->delta_ns = delta_ns < PAUSE_NS ? delta_ns : 0;
	}
	while (first < past->count && past->frame[first].end_ns < from_ns) {
		first++;
	}
	while (first + count < past->count && past->frame[first + count].end_ns <= to_ns) {
		count++;
	}
	if (first > 0) {
		memmove(&past->frame[0], &past->frame[first], count * sizeof(past->frame[0]));
	}
	past->count = count;
}

static void read_iterations(struct reader *reader)
{
	struct past_frames *past = reader->past;
	read_all(reader, true);
	sort(reader);
	for (size_t i = 0; i + 1 < past->count; i++) {
		past->frame[i].end_ns = past->frame[i + 1].start_ns;
	}
	past->count -= past->count > 0; /* the one that goes on */
	read_all(reader, false);
	finish_waits(reader);
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
		finish_waits(&reader);
		sort(&reader);
	} else {
		read_iterations(&reader);
	}
	select_frames(&reader, from_ns, to_ns);
}
