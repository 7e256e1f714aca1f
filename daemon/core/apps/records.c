/*
 * From a record to a number: what a process declares and sends is judged here and handed to its
 * stages and frames. Records are private copies of hostile memory; nothing in them is believed.
 */
#include "daemon/core/apps/app_events.h"
#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/complete.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

static const uint64_t DAY_NS = 86400ull * 1000000000;
/* now_ns was read before the drain; the writer goes on meanwhile */
static const uint64_t FUTURE_NS = 1000000000;

void apps_declare(struct apps *apps, struct app_process *process, uint32_t index,
	const struct proto_declaration *copy)
{
	(void)apps;
	if (index >= PROTO_DECLARATIONS || process->declaration[index]) {
		return;
	}
	struct proto_declaration *own = mem_zalloc(sizeof(*own));
	if (!own) { /* its events count as invalid */
		return;
	}
	*own = *copy;
	own->name[PROTO_NAME_SIZE - 1] = '\0';
	process->declaration[index] = own;
	process->declared++;
}

void apps_allow_new(struct apps *apps, size_t count)
{
	apps->new_left = count;
}

size_t apps_new_left(const struct apps *apps)
{
	return apps->new_left;
}

bool apps_meet(struct apps *apps, struct app_process *process, uint32_t index)
{
	if (apps->new_left == 0) {
		return false;
	}
	apps->new_left -= apps->new_left < SIZE_MAX;
	process->met[index] = true;
	return true;
}

static bool believable_time(
	const struct app_process *process, uint64_t start_ns, uint64_t duration_ns, uint64_t now_ns)
{
	/* written so that no sum of a peer's numbers can wrap */
	if (duration_ns > DAY_NS || start_ns > now_ns + FUTURE_NS) {
		return false;
	}
	uint64_t end_ns = start_ns + duration_ns;
	return end_ns <= now_ns + FUTURE_NS && end_ns + DAY_NS >= process->attached_ns;
}

/* Any kind but COMPLETE. True when the record was of use. */
static bool record_take(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	bool declared =
		record->stage < PROTO_DECLARATIONS && process->declaration[record->stage] != NULL;
	switch ((enum proto_kind)record->kind) {
	case PROTO_KIND_BEGIN:
	case PROTO_KIND_END:
		return declared && believable_time(process, record->start_ns, 0, now_ns) &&
		       app_take_by_id(apps, process, slot, record, record->kind == PROTO_KIND_END);
	case PROTO_KIND_FRAME:
		return believable_time(process, record->start_ns, record->value, now_ns) &&
		       app_take_frame(apps, process, slot, record);
	case PROTO_KIND_MARK:
		return declared && believable_time(process, record->start_ns, 0, now_ns) &&
		       app_take_mark(apps, process, record);
	case PROTO_KIND_MARK_MEMORY:
		return declared && believable_time(process, record->start_ns, 0, now_ns) &&
		       app_take_mark_memory(apps, process, record);
	case PROTO_KIND_GAUGE:
	case PROTO_KIND_COUNTER:
		return declared && believable_time(process, record->start_ns, 0, now_ns) &&
		       app_take_value(
			       apps, process, record, record->kind == PROTO_KIND_COUNTER, now_ns);
	case PROTO_KIND_ATTRIBUTE:
		return declared && believable_time(process, record->start_ns, 0, now_ns) &&
		       app_take_attribute(apps, process, record);
	case PROTO_KIND_COST:
		return declared && app_take_cost(process, slot, record);
	case PROTO_KIND_CONTEXT:
		return believable_time(process, record->start_ns, 0, now_ns) &&
		       app_take_context(apps, process, slot, record);
	case PROTO_KIND_DEADLINE:
		if (record->flags & PROTO_RECORD_OF_FRAMES) {
			return app_take_frames_deadline(apps, process, record);
		}
		return declared && app_take_deadline(apps, process, record);
	case PROTO_KIND_COMPLETE: /* apps_record() */
	case PROTO_KIND_NONE:
	case PROTO_KIND_COUNT:
		return false;
	}
	return false;
}

void apps_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	process->tied.pass_ns = now_ns;
	/* a whole word: gcc keeps it in memory and loads what it did not store of a smaller one */
	uint64_t throttled = THROTTLE_UNKNOWN;
	bool taken;
	if (__builtin_expect(record->kind == PROTO_KIND_COMPLETE, 1)) {
		taken = record->stage < PROTO_DECLARATIONS && process->declaration[record->stage] &&
			believable_time(process, record->start_ns, record->value, now_ns);
		if (taken) {
			throttled = app_throttled_at(apps, record->start_ns + record->value);
			taken = app_take_complete(
				apps, process, slot, record, (enum throttle_value)throttled);
		}
	} else {
		taken = record_take(apps, process, slot, record, now_ns);
	}
	if (taken) {
		app_event_keep(apps, process, slot, record, (enum throttle_value)throttled);
	} else {
		process->accounting.invalid++;
	}
}

void apps_open_clear(struct app_process *process)
{
	process->open_count = 0;
}

void apps_open_add(struct app_process *process, const struct proto_open_stage *copy, uint32_t tid,
	uint32_t ns_tid)
{
	enum { MAX = sizeof(process->open) / sizeof(process->open[0]) };
	if (copy->stage >= PROTO_DECLARATIONS || !process->declaration[copy->stage]) {
		return;
	}
	if (process->open_count == MAX) {
		memmove(&process->open[0], &process->open[1], (MAX - 1) * sizeof(process->open[0]));
		process->open_count--;
	}
	struct app_open_stage *open = &process->open[process->open_count++];
	const char *name = process->declaration[copy->stage]->name;
	proto_name_clean(name, strnlen(name, PROTO_NAME_MAX), open->stage);
	open->frame = copy->frame;
	open->start_ns = copy->start_ns;
	open->tid = tid;
	open->ns_tid = ns_tid;
	open->index = (uint16_t)copy->stage;
}
