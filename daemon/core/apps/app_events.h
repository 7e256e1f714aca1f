/* The way of a record into its app's log of events (events.h); shared by the files of the app
 * registry. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/apps/trace_buffer.h"

/* The number of a declaration's name in the app's log. */
uint16_t app_event_name(struct app_process *process, uint32_t index);
/* Makes the app's log; false: no memory. */
bool app_event_open(struct apps *apps, struct app *app);

/* A record that was believable; throttled: when it ended. */
static inline void app_event_keep(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, enum throttle_value throttled)
{
	struct app *app = process->app;
	if (__builtin_expect(!app->log, 0) && !app_event_open(apps, app)) {
		return;
	}
	uint16_t known = record->stage < PROTO_DECLARATIONS ? process->tied.name[record->stage] : 0;
	uint16_t name = known > 0 ? (uint16_t)(known - 1) : app_event_name(process, record->stage);
	struct event *event = events_place(app->log);
	/* field by field: pairs of words that were just stored would not be found in the store
	 * buffer */
	event->record.stage = name;
	event->record.kind = record->kind;
	event->record.flags = record->flags;
	event->record.cpu_us = record->cpu_us;
	event->record.start_ns = record->start_ns;
	event->record.value = record->value;
	event->record.frame = record->frame;
	event->pid = (uint32_t)process->pid;
	event->process = process->tied.serial;
	event->slot = (uint8_t)slot;
	event->throttled = (uint8_t)throttled;
	if (record->kind == PROTO_KIND_ATTRIBUTE) {
		event->record.cpu_us = app_event_name(process, record->cpu_us);
	}
}

/* events_since() over all apps; 0 as well while nothing is kept. */
int apps_events_since(const struct apps *apps, size_t count, uint64_t *ret);
