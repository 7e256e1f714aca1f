/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_order.c: puts what several threads sent into the order of time: ticks, and begins and ends by
 * id. Threads are read in turns, processes one after the other, so a tick waits until all up to
 * its time has been read, and a begin or an end until its pass ends. records.c and app_frames.c add
 * them.
 */
#include "daemon/core/apps/apps_private.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { TICKS_NEAR = 48 };

struct app_by_id_event {
	uint64_t t_ns; /* first: time_order() */
	uint64_t id, frame;
	uint32_t cpu_us;
	uint16_t stage; /* declaration index */
	bool end;
	bool waited; /* has seen the end of a pass */
};

/* One allocation. It doubles from FIRST_SIZE to APP_BY_ID_MAX, while what all processes have
 * beyond their first stays below GROWN_MAX. */
enum { FIRST_SIZE = 256, GROWN_MAX = 2 << 20 };

struct app_by_id {
	size_t count, size;
	size_t *grown;			       /* bytes; of apps */
	struct app_by_id_event *event, *spare; /* spare: for sorting */
	/* of those that wait on, by id: index + 1 of the newest, and of the one before it */
	uint16_t *bucket, *before; /* 2 * size, size */
};

static uint64_t time_at(const char *items, size_t index, size_t size)
{
	uint64_t t_ns;
	memcpy(&t_ns, items + index * size, sizeof(t_ns));
	return t_ns;
}

static bool is_sorted(const char *items, size_t count, size_t size)
{
	for (size_t i = 1; i < count; i++) {
		if (time_at(items, i - 1, size) > time_at(items, i, size)) {
			return false;
		}
	}
	return true;
}

/* Merges width sorted items from start on with the width behind them. */
static void merge(const char *from, char *to, size_t start, size_t width, size_t count, size_t size)
{
	size_t middle = start + width < count ? start + width : count;
	size_t end = middle + width < count ? middle + width : count;
	size_t left = start, right = middle;
	for (size_t at = start; at < end; at++) {
		bool of_left =
			right == end ||
			(left < middle && time_at(from, left, size) <= time_at(from, right, size));
		memcpy(to + at * size, from + (of_left ? left++ : right++) * size, size);
	}
}

/* Sorts items of this size that begin with their time: a stable merge sort from the bottom up,
 * which needs no more memory than the caller's spare array of the same size. */
static void time_order(void *items, void *spare, size_t count, size_t size)
{
	char *from = items, *to = spare;
	if (is_sorted(items, count, size)) {
		return;
	}
	for (size_t width = 1; width < count; width *= 2) {
		for (size_t start = 0; start < count; start += 2 * width) {
			merge(from, to, start, width, count, size);
		}
		char *merged = to;
		to = from;
		from = merged;
	}
	if (from != items) {
		memcpy(items, from, count * size);
	}
}

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
	size_t counted = 0;
	if (frame_state->unordered) {
		struct app_tick spare[APP_TICKS_MAX];
		time_order(frame_state->tick, spare, frame_state->ticks, sizeof(spare[0]));
		frame_state->unordered = false;
	}
	while (counted < n && counted < frame_state->ticks &&
		frame_state->tick[counted].t_ns <= limit_ns) {
		tick_count(frame_state, &frame_state->tick[counted++]);
	}
	frame_state->ticks -= counted;
	memmove(&frame_state->tick[0], &frame_state->tick[counted],
		frame_state->ticks * sizeof(frame_state->tick[0]));
}

/* In order, when it is not far from the end; else they are sorted later. */
void app_tick_add(struct app_frames *frame_state, const struct app_tick *tick)
{
	if (frame_state->ticks == APP_TICKS_MAX) {
		app_ticks_count(frame_state, APP_TICKS_MAX / 2, UINT64_MAX);
	}
	size_t at = frame_state->ticks++;
	size_t min = at > TICKS_NEAR ? at - TICKS_NEAR : 0;
	uint64_t t_ns = tick->t_ns;
	if (min > 0 && frame_state->tick[min - 1].t_ns > t_ns) {
		frame_state->unordered = true;
	}
	if (frame_state->unordered) {
		min = at;
	}
	while (at > min && frame_state->tick[at - 1].t_ns > t_ns) {
		frame_state->tick[at] = frame_state->tick[at - 1];
		at--;
	}
	frame_state->tick[at] = *tick;
}

static uint16_t *bucket_of(struct app_by_id *queue, const struct app_by_id_event *event)
{
	uint64_t hash = (event->id ^ (uint64_t)event->stage << 48) * 0x9e3779b97f4a7c15u;
	return &queue->bucket[hash >> 32 & (2 * queue->size - 1)];
}

static bool same_id_waits(struct app_by_id *queue, const struct app_by_id_event *event)
{
	for (uint16_t at = *bucket_of(queue, event); at > 0; at = queue->before[at - 1]) {
		const struct app_by_id_event *waiting = &queue->event[at - 1];
		if (waiting->id == event->id && waiting->stage == event->stage) {
			return true;
		}
	}
	return false;
}

/* Keeps it at this place. One of each id in the table is enough. */
static void wait_on(
	struct app_by_id *queue, size_t slot, const struct app_by_id_event *event, bool behind)
{
	queue->event[slot] = *event;
	if (!behind) {
		uint16_t *bucket = bucket_of(queue, event);
		queue->before[slot] = *bucket;
		*bucket = (uint16_t)(slot + 1);
	}
}

/* Its end in this order says nothing about where a thread is. */
static void end_run(struct apps *apps, struct app_process *process,
	const struct app_by_id_event *event, struct stage *stage)
{
	struct stage_run ended = stage_run_of(event->t_ns, 0, PROTO_NO_FRAME);
	bool skipped = stage->warmup_left > 0;
	ended.cpu_us = event->cpu_us;
	ended.throttled = app_throttled_at(apps, event->t_ns);
	if (!stage_end_run(stage, event->id, &ended)) {
		return;
	}
	struct app_loop *loop = &process->app->loop;
	if (stage_is_work(stage)) {
		bool overlaps = ended.end_ns - ended.duration_ns < loop->by_id_ns;
		loop->threads |= overlaps ? 3 : 0; /* as on two threads */
		loop->by_id_ns = ended.end_ns;
	}
	if (ended.frame != PROTO_NO_FRAME) {
		const struct app_frame_run run = {.frame = ended.frame,
			.start_ns = ended.end_ns - ended.duration_ns,
			.end_ns = ended.end_ns,
			.thread = app_thread(process, 0),
			.by_id = true,
			.skipped = skipped};
		app_frame_run(apps, process, event->stage, &run);
	} else if (!skipped) {
		app_loop_run(process->app, stage, &ended, 0);
	}
}

void app_by_id_apply(struct apps *apps, struct app_process *process, bool force)
{
	struct app_by_id *queue = process->by_id;
	if (!queue || queue->count == 0) {
		return;
	}
	time_order(queue->event, queue->spare, queue->count, sizeof(*queue->event));
	memset(queue->bucket, 0, 2 * queue->size * sizeof(*queue->bucket));
	size_t waiting = 0;
	for (size_t i = 0; i < queue->count; i++) {
		struct app_by_id_event event = queue->event[i];
		struct stage *stage = app_stage_of(apps, process, event.stage);
		if (!stage) {
			continue;
		}
		/* what waits keeps its place: later events of the same id wait behind it */
		bool behind = same_id_waits(queue, &event);
		bool fits = stage_is_open(stage, event.id) == event.end;
		if (!force && (behind || (!fits && !event.waited))) {
			event.waited = event.waited || !behind;
			wait_on(queue, waiting++, &event, behind);
		} else if (event.end) {
			end_run(apps, process, &event, stage);
		} else {
			stage_begin(stage, event.id, event.t_ns, event.frame);
		}
	}
	queue->count = waiting;
}

static size_t bytes_of(size_t size)
{
	const size_t each = 2 * sizeof(struct app_by_id_event) + 3 * sizeof(uint16_t);
	return sizeof(struct app_by_id) + size * each;
}

static struct app_by_id *create(size_t size, size_t *grown)
{
	struct app_by_id *queue = mem_zalloc(bytes_of(size));
	if (!queue) {
		return NULL;
	}
	queue->size = size;
	queue->grown = grown;
	queue->event = (struct app_by_id_event *)(queue + 1);
	queue->spare = queue->event + size;
	queue->bucket = (uint16_t *)(queue->spare + size);
	queue->before = queue->bucket + 2 * size;
	return queue;
}

void app_by_id_destroy(struct app_by_id *queue)
{
	if (queue && queue->size > FIRST_SIZE) {
		*queue->grown -= bytes_of(queue->size);
	}
	free(queue);
}

/* Doubles it, unless it is as large as it may be. What it holds is kept. */
static void grow(struct app_by_id **queue)
{
	struct app_by_id *old = *queue;
	size_t size = 2 * old->size;
	bool fits = size <= APP_BY_ID_MAX && *old->grown + bytes_of(size) <= GROWN_MAX;
	struct app_by_id *larger = fits ? create(size, old->grown) : NULL;
	if (larger) {
		*larger->grown += bytes_of(size);
		memcpy(larger->event, old->event, old->count * sizeof(*old->event));
		larger->count = old->count;
		app_by_id_destroy(old);
		*queue = larger;
	}
}

/* Queues it. False: no memory for the queue. */
static bool add_event(
	struct apps *apps, struct app_process *process, const struct app_by_id_event *event)
{
	if (!process->by_id && !(process->by_id = create(FIRST_SIZE, &apps->by_id_grown))) {
		return false;
	}
	if (process->by_id->count == process->by_id->size) {
		grow(&process->by_id);
	}
	struct app_by_id *queue = process->by_id;
	for (int force = 0; force < 2 && queue->count == queue->size; force++) {
		app_by_id_apply(apps, process, force > 0);
	}
	queue->event[queue->count++] = *event;
	return true;
}

void apps_drained(struct apps *apps, struct app_process *process)
{
	app_by_id_apply(apps, process, false);
	app_frames_drained(process);
	app_loop_passed(process->app);
}

bool app_on_by_id(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	const struct app_by_id_event event = {
		.id = record->value + process->id_key,
		.t_ns = record->start_ns,
		.frame = record->frame,
		.cpu_us = record->cpu_us,
		.stage = record->stage,
		.end = record->kind == PROTO_KIND_END,
	};
	process->app->loop.threads |= app_thread_bit(process, slot);
	return app_stage_of(apps, process, record->stage) && add_event(apps, process, &event);
}
