/*
 * Begin and end by id may come from two threads, hence from two slots that are read one after the
 * other. They are gathered during a pass and applied in the order of time when it ends.
 */
#include "daemon/core/apps_private.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/util/seam.h"

/* Stable, and linear for the usual case of one thread. */
static void sort_by_time(struct app_by_id *queue)
{
	for (size_t i = 1; i < queue->count; i++) {
		struct app_by_id_event event = queue->event[i];
		size_t at = i;
		while (at > 0 && queue->event[at - 1].t_ns > event.t_ns) {
			queue->event[at] = queue->event[at - 1];
			at--;
		}
		queue->event[at] = event;
	}
}

static bool same_id_waits(
	const struct app_by_id *queue, size_t waiting, const struct app_by_id_event *event)
{
	for (size_t i = 0; i < waiting; i++) {
		if (queue->event[i].id == event->id && queue->event[i].stage == event->stage) {
			return true;
		}
	}
	return false;
}

void app_by_id_apply(struct apps *apps, struct app_process *process, bool force)
{
	struct app_by_id *queue = process->by_id;
	if (!queue || queue->count == 0) {
		return;
	}
	sort_by_time(queue);
	size_t waiting = 0;
	for (size_t i = 0; i < queue->count; i++) {
		struct app_by_id_event event = queue->event[i];
		struct stage *stage = app_stage_of(apps, process, event.stage);
		if (!stage) {
			continue;
		}
		/* what waits keeps its place: later events of the same id wait behind it */
		bool behind = same_id_waits(queue, waiting, &event);
		bool fits = stage_is_open(stage, event.id) == event.end;
		if (!force && (behind || (!fits && !event.waited))) {
			event.waited = event.waited || !behind;
			queue->event[waiting++] = event;
		} else if (event.end) {
			stage_end(stage, event.id, event.t_ns, event.cpu_us);
		} else {
			stage_begin(stage, event.id, event.t_ns, event.frame);
		}
	}
	queue->count = waiting;
}

int app_by_id_add(
	struct apps *apps, struct app_process *process, const struct app_by_id_event *event)
{
	if (!process->by_id) {
		process->by_id = mem_zalloc(sizeof(*process->by_id));
		if (!process->by_id) {
			return -ENOMEM;
		}
	}
	struct app_by_id *queue = process->by_id;
	if (queue->count == APP_BY_ID_MAX) {
		app_by_id_apply(apps, process, false);
	}
	if (queue->count == APP_BY_ID_MAX) {
		app_by_id_apply(apps, process, true);
	}
	queue->event[queue->count++] = *event;
	return 0;
}

void apps_drained(struct apps *apps, struct app_process *process)
{
	app_ticks_apply(process);
	app_by_id_apply(apps, process, false);
}

bool app_take_by_id(
	struct apps *apps, struct app_process *process, const struct proto_record *record, bool end)
{
	const struct app_by_id_event event = {
		.id = record->value + process->id_key,
		.t_ns = record->start_ns,
		.frame = record->frame,
		.cpu_us = record->cpu_us,
		.stage = record->stage,
		.end = end,
	};
	return app_stage_of(apps, process, record->stage) &&
	       app_by_id_add(apps, process, &event) == 0;
}
