/* The way of a record into its app's log of events (events.h); shared by the files of the app
 * registry. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/apps_private.h"
#include "daemon/core/events.h"

/* The number of a declaration's name in the app's log. */
uint16_t app_event_name(struct app_process *process, uint32_t index);
/* Makes the app's log; false: no memory. */
bool app_event_open(struct apps *apps, struct app *app);

/* A record that was believable. */
static inline void app_event_keep(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	struct app *app = process->app;
	if (__builtin_expect(!app->log, 0) && !app_event_open(apps, app)) {
		return;
	}
	struct event event = {.record = *record,
		.pid = (uint32_t)process->pid,
		.process = process->tied.serial,
		.slot = (uint8_t)slot,
		.throttled = (uint8_t)THROTTLE_UNKNOWN};
	if (apps->throttle_times && record->kind == PROTO_KIND_COMPLETE) {
		event.throttled = (uint8_t)throttle_times_at(
			apps->throttle_times, record->start_ns + record->value);
	}
	uint16_t known = record->stage < PROTO_DECLARATIONS ? process->tied.name[record->stage] : 0;
	event.record.stage =
		known > 0 ? (uint16_t)(known - 1) : app_event_name(process, record->stage);
	if (record->kind == PROTO_KIND_ATTRIBUTE) {
		event.record.cpu_us = app_event_name(process, record->cpu_us);
	}
	events_add(app->log, &event);
}
