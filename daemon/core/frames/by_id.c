/*
 * by_id.c: matches begins and ends by id. They may come from two threads, hence from two slots
 * that are read one after the other. They are gathered during a pass and applied in the order of
 * time when it ends.
 */
#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/loop_run.h"
#include "daemon/core/frames/time_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

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
	struct app_by_id *queue, size_t place, const struct app_by_id_event *event, bool behind)
{
	queue->event[place] = *event;
	if (!behind) {
		uint16_t *bucket = bucket_of(queue, event);
		queue->before[place] = *bucket;
		*bucket = (uint16_t)(place + 1);
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
	if (ended.frame != PROTO_NO_FRAME) {
		const struct app_frame_run run = {.frame = ended.frame,
			.start_ns = ended.end_ns - ended.duration_ns,
			.end_ns = ended.end_ns,
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
	if (queue && queue->size > APP_BY_ID_FIRST) {
		*queue->grown -= bytes_of(queue->size);
	}
	free(queue);
}

/* False: it is as large as it may be. What it holds is kept. */
static bool grow(struct app_by_id **queue)
{
	struct app_by_id *old = *queue;
	size_t size = 2 * old->size;
	if (size > APP_BY_ID_MAX || *old->grown + bytes_of(size) > APP_BY_ID_BYTES) {
		return false;
	}
	struct app_by_id *larger = create(size, old->grown);
	if (!larger) {
		return false;
	}
	*larger->grown += bytes_of(size);
	memcpy(larger->event, old->event, old->count * sizeof(*old->event));
	larger->count = old->count;
	app_by_id_destroy(old);
	*queue = larger;
	return true;
}

int app_by_id_add(
	struct apps *apps, struct app_process *process, const struct app_by_id_event *event)
{
	if (!process->by_id) {
		process->by_id = create(APP_BY_ID_FIRST, &apps->by_id_grown);
		if (!process->by_id) {
			return -ENOMEM;
		}
	}
	struct app_by_id *queue = process->by_id;
	if (queue->count == queue->size && grow(&process->by_id)) {
		queue = process->by_id;
	}
	if (queue->count == queue->size) {
		app_by_id_apply(apps, process, false);
	}
	if (queue->count == queue->size) {
		app_by_id_apply(apps, process, true);
	}
	queue->event[queue->count++] = *event;
	return 0;
}

void apps_drained(struct apps *apps, struct app_process *process)
{
	app_by_id_apply(apps, process, false);
	app_frames_drained(apps, process);
	app_loop_passed(process->app);
}

bool app_on_by_id(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, bool end)
{
	const struct app_by_id_event event = {
		.id = record->value + process->id_key,
		.t_ns = record->start_ns,
		.frame = record->frame,
		.cpu_us = record->cpu_us,
		.stage = record->stage,
		.end = end,
	};
	process->app->loop.threads |= app_thread_bit(process, slot);
	return app_stage_of(apps, process, record->stage) &&
	       app_by_id_add(apps, process, &event) == 0;
}
