/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past_frames.c: puts the frames of an app together from its raw records. Frames with ids are
 * joined by id, whichever thread ran their stages. Without ids, the moments at which iterations
 * begin are collected first, and what ran is then assigned to them by time.
 */
#include "daemon/core/diagnose/facts/past_frames.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/facts/past_runs.h"
#include "daemon/core/frames/trace_buffer.h"

enum {
	IDS = 256, /* a frame is found by its id until another id has the same hash */
	UNLISTED = 0xff,
	IN_FLIGHT = 48, /* frames at the end that may be incomplete */
	SAMPLED = 8,	/* frames that show which stages a frame has */
	REGULAR = 50,	/* frames, of which one may come at another distance */
};

static const double BUSY = 0.8;
static const double CPU_DECAY = 0.98; /* the last 50 executions count most */
static const uint64_t PAUSE_NS = FRAMES_PAUSE_S * UINT64_C(1000000000);

/* Frames are numbered from 1 by their place; 0 = none. */
struct reader {
	const struct app *app;
	struct past_frames *past;
	enum loop_kind kind;
	uint16_t marker; /* name of the stage whose starts begin iterations */
	bool marking;	 /* iterations are being collected */
	bool shared;	 /* some frame is of several threads */
	bool parallel;	 /* and of two at one time */
	bool complete;	 /* the records reach back to the start of the run */
	size_t hint;	 /* place of the iteration that was found last */
	/* the last frame that each thread took part in, then that of each id */
	uint16_t last[PAST_THREADS + IDS];
	uint8_t stage[TRACE_NAMES_MAX]; /* by name: index + 1; 0 = not seen yet */
	struct past_pairing pairing;
};

static uint16_t *slot_of(struct reader *reader, uint64_t id)
{
	return &reader->last[PAST_THREADS + (id * UINT64_C(0x9e3779b97f4a7c15) >> 56)];
}

static size_t find(struct reader *reader, uint64_t id)
{
	size_t number = *slot_of(reader, id);
	return number > 0 && reader->past->frame[number - 1].id == id ? number : 0;
}

static size_t begin(struct reader *reader, uint64_t id, uint64_t start_ns, uint16_t thread)
{
	struct past_frames *past = reader->past;
	if (past->count == PAST_FRAMES) { /* the older half is forgotten */
		size_t half = PAST_FRAMES / 2;
		memcpy(past->frame, &past->frame[half], half * sizeof(past->frame[0]));
		memcpy(past->scratch, &past->scratch[half], half * sizeof(past->scratch[0]));
		for (size_t i = 0; i < PAST_THREADS + IDS; i++) {
			uint16_t *last = &reader->last[i];
			*last = (uint16_t)(*last > half ? *last - half : 0);
		}
		past->count = half;
	}
	struct past_frame *frame = &past->frame[past->count];
	struct past_scratch *scratch = &past->scratch[past->count];
	*scratch = (struct past_scratch){.begun_ns = start_ns, .thread = thread};
	*frame = (struct past_frame){.id = id, .start_ns = start_ns, .cpu_ms = NAN};
	for (size_t i = 0; i < FACTS_STAGES; i++) {
		frame->stage_ms[i] = frame->wait_ms[i] = scratch->ended_ms[i] = NAN;
	}
	past->begun++;
	*slot_of(reader, id) = (uint16_t)++past->count;
	return past->count;
}

/* The frame that a piece is of, begun where it is its first: also when its id was used before. */
static size_t frame_of(struct reader *reader, const struct past_run *run, uint8_t stage)
{
	size_t number = find(reader, run->frame);
	if (number > 0) {
		const struct past_scratch *scratch = &reader->past->scratch[number - 1];
		bool own = scratch->thread == run->thread;
		bool closed = scratch->closed_ns > 0 && run->start_ns >= scratch->closed_ns;
		bool left = own && reader->last[run->thread] != number;
		bool again = stage < FACTS_STAGES && run->depth == 0 &&
			     !isnan(reader->past->frame[number - 1].stage_ms[stage]);
		bool ended = closed && scratch->closer == run->thread;
		number = ended || (again && (closed || left)) ? 0 : number;
	}
	if (number == 0) {
		number = begin(reader, run->frame, run->start_ns, run->thread);
	}
	reader->last[run->thread] = (uint16_t)number;
	const struct past_frame *frame = &reader->past->frame[number - 1];
	struct past_scratch *scratch = &reader->past->scratch[number - 1];
	if (scratch->thread != run->thread && scratch->handed_ns == 0) {
		scratch->handed_ns = run->start_ns;
		reader->shared = true;
		reader->parallel |= run->start_ns < frame->end_ns && run->end_ns > frame->start_ns;
	}
	return number;
}

static void extend(struct past_frame *frame, uint64_t start_ns, uint64_t end_ns)
{
	frame->start_ns = start_ns < frame->start_ns ? start_ns : frame->start_ns;
	frame->end_ns = end_ns > frame->end_ns ? end_ns : frame->end_ns;
}

/* Is the time of a stage part of what a frame costs? */
static bool is_work(const struct app *app, const char *name)
{
	const struct stage *stage = app_stage_find(app, name);
	return stage ? stage_is_work(stage) : strcmp(name, "total") != 0;
}

/* Index of a stage; those that are not work, or exceed the table, are not listed. */
static uint8_t stage_of(struct reader *reader, uint16_t name)
{
	struct past_frames *past = reader->past;
	if (reader->stage[name] == 0) {
		const char *text = trace_log_name_of(reader->app->log, name);
		bool listed = past->stages < FACTS_STAGES && is_work(reader->app, text);
		reader->stage[name] = (uint8_t)(listed ? past->stages + 1 : UNLISTED);
		if (listed) {
			memcpy(past->stage[past->stages++], text, strnlen(text, PROTO_NAME_MAX));
		}
	}
	return (uint8_t)(reader->stage[name] == UNLISTED ? UNLISTED : reader->stage[name] - 1);
}

static void add_cpu(
	struct reader *reader, struct past_frame *frame, const struct past_run *run, uint8_t stage)
{
	float cpu_ms = (float)run->cpu_us / 1e3f;
	if (run->cpu_us == PROTO_CPU_NOT_MEASURED) {
		return;
	}
	if (run->depth == 0) {
		frame->cpu_ms = fmaxf(frame->cpu_ms, 0) + cpu_ms;
	}
	if (stage < FACTS_STAGES) {
		double *sum_ms = &reader->past->runs[stage].cpu_ms;
		double *of_ms = &reader->past->runs[stage].cpu_of_ms;
		*sum_ms = *sum_ms * CPU_DECAY + run->cpu_us / 1e3;
		*of_ms = *of_ms * CPU_DECAY + (double)(run->end_ns - run->start_ns) / 1e6;
	}
}

static float ms_between(uint64_t from_ns, uint64_t to_ns)
{
	return (float)((double)(int64_t)(to_ns - from_ns) / 1e6);
}

static void add_run(struct reader *reader, size_t number, const struct past_run *run, uint8_t stage)
{
	struct past_frame *frame = &reader->past->frame[number - 1];
	struct past_scratch *scratch = &reader->past->scratch[number - 1];
	float self_ms = (float)((double)run->self_ns / 1e6);
	if (reader->kind != LOOP_OF_FRAMES || run->end_ns >= frame->end_ns) {
		frame->throttled = run->throttled;
	}
	if (reader->kind == LOOP_OF_FRAMES) {
		extend(frame, run->start_ns, run->end_ns);
	}
	add_cpu(reader, frame, run, stage);
	if (stage >= FACTS_STAGES) {
		return;
	}
	reader->past->runs[stage].count++;
	if (run->depth == 0) {
		reader->past->runs[stage].overlaps +=
			(run->frame == PROTO_NO_FRAME ||
				run->frame != reader->past->runs[stage].frame) &&
			run->start_ns < reader->past->runs[stage].end_ns;
		reader->past->runs[stage].end_ns = run->end_ns;
		reader->past->runs[stage].frame = run->frame;
	}
	frame->busy_ms += self_ms;
	/* of a NAN and a number, fmaxf() is the number */
	frame->stage_ms[stage] = fmaxf(frame->stage_ms[stage], 0) + self_ms;
	frame->wait_ms[stage] =
		fminf(frame->wait_ms[stage], ms_between(scratch->begun_ns, run->start_ns));
	scratch->ended_ms[stage] =
		fmaxf(scratch->ended_ms[stage], ms_between(scratch->begun_ns, run->end_ns));
}

/* The iteration of this time, of those in order. Mostly it is the last one or the next. */
static size_t iteration_at(struct reader *reader, uint64_t t_ns)
{
	const struct past_frame *frame = reader->past->frame;
	size_t count = reader->past->count, at = reader->hint, end = at + 2;
	if (end > count || t_ns < frame[at].start_ns ||
		(end < count && t_ns >= frame[end].start_ns)) {
		at = 0;
		end = count;
	}
	while (end - at > 1) {
		size_t middle = at + (end - at) / 2;
		bool later = frame[middle].start_ns > t_ns;
		at = later ? at : middle;
		end = later ? middle : end;
	}
	reader->hint = at;
	bool inside = at < count && frame[at].start_ns <= t_ns && t_ns <= frame[at].end_ns;
	return inside ? at + 1 : 0;
}

static void on_run(struct reader *reader, const struct past_run *run)
{
	uint8_t stage = stage_of(reader, run->name);
	if (reader->kind == LOOP_OF_FRAMES) {
		if (run->frame != PROTO_NO_FRAME) {
			add_run(reader, frame_of(reader, run, stage), run, stage);
		}
	} else if (!reader->marking) {
		bool of_ticks = reader->kind == LOOP_OF_TICKS;
		size_t number = iteration_at(reader, of_ticks ? run->end_ns - 1 : run->start_ns);
		if (number > 0) {
			add_run(reader, number, run, stage);
		}
	} else if (reader->kind == LOOP_OF_STAGES && run->name == reader->marker) {
		begin(reader, PROTO_NO_FRAME, run->start_ns, run->thread);
	}
}

static void on_context(struct reader *reader, const struct proto_record *record)
{
	bool frames = reader->kind == LOOP_OF_FRAMES;
	size_t number = frames		  ? find(reader, record->frame)
			: reader->marking ? 0
					  : iteration_at(reader, record->start_ns - 1);
	if (number == 0) {
		return;
	}
	struct past_frame *frame = &reader->past->frame[number - 1];
	if (!frame->has_context || record->cpu_us == PROTO_CPU_NOT_MEASURED) {
		frame->run_delay_us = record->cpu_us;
	} else if (frame->run_delay_us != PROTO_CPU_NOT_MEASURED) {
		frame->run_delay_us += record->cpu_us;
	}
	frame->has_context = true;
	frame->voluntary += (uint16_t)record->value;
	frame->involuntary += (uint16_t)(record->value >> 16);
	frame->minor_faults += (uint16_t)(record->value >> 32);
	frame->major_faults += (uint16_t)(record->value >> 48);
}

/* A record of a frame, not of a stage. */
static void on_frame(struct reader *reader, const struct event *event)
{
	const struct proto_record *record = &event->record;
	const struct past_run piece = {.thread = past_thread_of(event),
		.start_ns = record->start_ns,
		.end_ns = record->start_ns + record->value,
		.frame = record->frame};
	if (reader->marking && reader->kind == LOOP_OF_TICKS) {
		begin(reader, PROTO_NO_FRAME, piece.end_ns, piece.thread);
	}
	if (reader->kind != LOOP_OF_FRAMES || record->frame == PROTO_NO_FRAME) {
		return;
	}
	size_t at = frame_of(reader, &piece, UNLISTED) - 1;
	extend(&reader->past->frame[at], piece.start_ns, piece.end_ns);
	if (record->value > 0) {
		reader->past->scratch[at].closed_ns = piece.end_ns;
		reader->past->scratch[at].closer = piece.thread;
	}
}

static void read_all(struct reader *reader, bool marking)
{
	struct past_frames *past = reader->past;
	const struct event *event;
	struct past_run run;
	struct trace_usage usage;
	trace_log_span(reader->app->log, &usage);
	uint64_t skip = usage.count > PAST_EVENTS ? usage.count - PAST_EVENTS : 0;
	struct trace_cursor cursor = {.position = usage.overwritten + skip};
	reader->complete = cursor.position == 0;
	reader->marking = marking;
	past->events = past->first_event_ns = 0;
	memset(&reader->pairing, 0, sizeof(reader->pairing));
	while ((event = trace_log_next(reader->app->log, &cursor, NULL))) {
		if (event->record.start_ns < reader->app->since_ns) {
			reader->complete = true;
			continue;
		}
		if (past->events == 0) {
			past->first_event_ns = event->record.start_ns;
		}
		past->events += event->record.kind <= PROTO_KIND_FRAME;
		if (event->record.kind == PROTO_KIND_CONTEXT) {
			on_context(reader, &event->record);
		} else if (event->record.kind == PROTO_KIND_FRAME) {
			on_frame(reader, event);
		} else if (past_pair(&reader->pairing, event, &run)) {
			on_run(reader, &run);
		}
	}
}

static size_t stages_in(const struct past_frames *past, size_t at)
{
	size_t count = 0;
	for (size_t i = 0; i < past->stages; i++) {
		count += !isnan(past->frame[at].stage_ms[i]);
	}
	return count;
}

/* The newest frames, which other threads may be at work on, have fewer stages than most. */
static void trim(const struct reader *reader)
{
	struct past_frames *past = reader->past;
	size_t middle = past->count / 2, usual = FACTS_STAGES;
	for (size_t i = middle; i < middle + SAMPLED && i < past->count; i++) {
		size_t stages = stages_in(past, i);
		usual = stages < usual ? stages : usual;
	}
	for (size_t i = past->count; i > middle + 1 && i + IN_FLIGHT > past->count; i--) {
		if (past->scratch[i - 1].closed_ns > 0 && !reader->shared) {
			break;
		}
		if (stages_in(past, i - 1) < usual) {
			past->frame[i - 1].end_ns = UINT64_MAX;
		}
	}
}

/* In an app that reports the end of frames, one without it was dropped on its way, or goes on. In
 * one without ends, what one thread hands to another ends there, and what it does not is dropped
 * where the others are busy nearly all the time; but a thread that gets each n-th frame gets all
 * that it should. */
static void drop_unended(struct reader *reader)
{
	struct past_frames *past = reader->past;
	size_t ended = 0, handed = 0, distance = 0, changes = 0, last = 0;
	double busy_ns = 0;
	bool behind = false; /* others ended */
	for (size_t i = 0; i < past->count; i++) {
		ended += past->scratch[i].closed_ns > 0;
		if (past->scratch[i].handed_ns > 0) {
			const uint64_t end_ns = past->frame[i].end_ns; /* UINT64_MAX: trimmed */
			handed++;
			busy_ns += end_ns < UINT64_MAX
					   ? (double)(end_ns - past->scratch[i].handed_ns)
					   : 0;
			changes += i - last != distance;
			distance = i - last;
			last = i;
		}
	}
	double span_ns = (double)past->scratch[last].handed_ns - (double)past->frame[0].start_ns;
	bool by_hand = ended == 0 && !reader->parallel && changes > 2 + handed / REGULAR &&
		       busy_ns > BUSY * span_ns;
	uint64_t most = 0, dropped[FACTS_STAGES] = {0};
	for (size_t i = past->count; (ended > 0 || by_hand) && i-- > 0;) {
		if (by_hand ? past->scratch[i].handed_ns > 0 : past->scratch[i].closed_ns > 0) {
			behind = true;
			continue;
		}
		past->frame[i].end_ns = UINT64_MAX;
		past->begun--;
		past->unended += behind;
		for (size_t k = 0; k < past->stages; k++) {
			dropped[k] += !isnan(past->frame[i].stage_ms[k]);
			past->runs[k].count -= !isnan(past->frame[i].stage_ms[k]);
		}
	}
	for (size_t k = 0; by_hand && k < past->stages; k++) {
		if (dropped[k] == 0 && past->runs[k].count > most) {
			most = past->runs[k].count;
			past->pace = k + 1;
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

/* Leaves those that ended in [from_ns, to_ns], without the first, and sets their deltas. */
static void select_frames(struct past_frames *past, size_t first, uint64_t from_ns, uint64_t to_ns)
{
	size_t count = 0;
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
		memmove(past->frame, &past->frame[first], count * sizeof(past->frame[0]));
	}
	past->count = count;
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
	if (reader.kind == LOOP_OF_FRAMES) {
		read_all(&reader, false);
		trim(&reader);
	} else {
		for (uint16_t i = 0; app->loop.marker && i < app->log->names; i++) {
			if (strcmp(trace_log_name_of(app->log, i), app->loop.marker->name) == 0) {
				reader.marker = i;
			}
		}
		read_all(&reader, true);
		past_sort(ret);
		for (size_t i = 0; i + 1 < ret->count; i++) {
			ret->frame[i].end_ns = ret->frame[i + 1].start_ns;
		}
		ret->count -= ret->count > 0; /* the one that goes on */
		read_all(&reader, false);
	}
	past_finish_waits(ret);
	ret->whole = reader.complete && ret->begun <= PAST_FRAMES;
	drop_unended(&reader);
	past_sort(ret);
	select_frames(ret, ret->whole ? warmup_of(app) : 0, from_ns, to_ns);
}
