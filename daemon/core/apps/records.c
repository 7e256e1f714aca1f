/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c: judges what a process declares and sends, and passes it on to its stages, frames and
 * trace log. Records are private copies of hostile memory; nothing in them is believed.
 */
#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/trace_buffer.h"

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

/* A COMPLETE record's way into its stage and its frame: nearly all records are of this kind, and
 * this is most of what one costs. The record is believable and its declaration is there. False:
 * memory is short. */
static inline bool on_complete(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, enum throttle_value throttled)
{
	struct stage *stage = process->stages[record->stage];
	if (__builtin_expect(!stage, 0) && !(stage = app_stage_of(apps, process, record->stage))) {
		return false;
	}
	uint64_t end_ns = record->start_ns + record->value;
	struct stage_run run = stage_run_of(end_ns, record->value, record->frame);
	run.cpu_us = record->cpu_us;
	run.failed = record->flags & PROTO_RECORD_FAILED;
	run.throttled = throttled;
	if (__builtin_expect(process->slots != NULL, 0)) {
		uint64_t process_cpu_ns = run.process_cpu_ns;
		int64_t rss_growth = run.rss_growth;
		app_cost_of(process, slot, record, &process_cpu_ns, &rss_growth);
		run.process_cpu_ns = process_cpu_ns;
		run.rss_growth = rss_growth;
	}
	bool skipped = !stage_append(stage, &run);
	if (process->slots || record->flags >> PROTO_RECORD_DEPTH_SHIFT) {
		app_nest(process, slot, record, stage, skipped);
	}
	if (__builtin_expect(run.rss_growth != INT64_MIN, 0)) {
		app_log_growth(apps, process, record->stage, end_ns, run.rss_growth);
	}
	if (record->frame != PROTO_NO_FRAME) {
		const struct app_frame_run in_frame = {.frame = record->frame,
			.start_ns = record->start_ns,
			.end_ns = end_ns,
			.slot = slot,
			.nested = record->flags & PROTO_RECORD_NESTED,
			.skipped = skipped};
		app_frame_run(apps, process, record->stage, &in_frame);
	} else if (__builtin_expect(!skipped, 1)) {
		app_loop_run(process->app, stage, &run, app_thread_bit(process, slot));
	} else {
		process->app->loop.spoilt = process->app->loop.begun;
	}
	return true;
}

/* Any kind but COMPLETE. True when the record was of use. */
static bool on_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	static const struct {
		app_on_record *on;
		bool declared, timed; /* it has a declaration; a time */
	} kinds[PROTO_KIND_COUNT] = {
		[PROTO_KIND_BEGIN] = {app_on_by_id, true, true},
		[PROTO_KIND_END] = {app_on_by_id, true, true},
		[PROTO_KIND_FRAME] = {app_on_frame, false, true},
		[PROTO_KIND_MARK] = {app_on_mark, true, true},
		[PROTO_KIND_MARK_MEMORY] = {app_on_mark_memory, true, true},
		[PROTO_KIND_GAUGE] = {app_on_value, true, true},
		[PROTO_KIND_COUNTER] = {app_on_value, true, true},
		[PROTO_KIND_ATTRIBUTE] = {app_on_attribute, true, true},
		[PROTO_KIND_COST] = {app_on_cost, true, false},
		[PROTO_KIND_CONTEXT] = {app_on_context, false, true},
		[PROTO_KIND_DEADLINE] = {app_on_deadline, true, false},
	};
	if (record->kind == PROTO_KIND_DEADLINE && record->flags & PROTO_RECORD_OF_FRAMES) {
		return app_on_frames_deadline(apps, process, slot, record);
	}
	uint64_t took_ns = record->kind == PROTO_KIND_FRAME ? record->value : 0;
	return record->kind < PROTO_KIND_COUNT && kinds[record->kind].on &&
	       (!kinds[record->kind].declared || (record->stage < PROTO_DECLARATIONS &&
							 process->declaration[record->stage])) &&
	       (!kinds[record->kind].timed ||
		       believable_time(process, record->start_ns, took_ns, now_ns)) &&
	       kinds[record->kind].on(apps, process, slot, record);
}

/* The number of a declaration in its app's trace log: a number lasts longer than the process. */
static uint16_t trace_name_of(struct app_process *process, uint32_t index)
{
	if (index >= PROTO_DECLARATIONS || !process->declaration[index]) {
		return TRACE_NO_NAME;
	}
	uint16_t known = process->frame_state.name[index];
	if (known > 0) {
		return (uint16_t)(known - 1);
	}
	char name[PROTO_NAME_SIZE];
	const struct proto_declaration *declaration = process->declaration[index];
	const char *text = name;
	if (process->stages[index] && !process->other[index]) {
		text = process->stages[index]->name;
	} else {
		proto_name_clean(
			declaration->name, strnlen(declaration->name, PROTO_NAME_MAX), name);
	}
	uint16_t number = trace_log_name(process->app->log, text);
	process->frame_state.name[index] = (uint16_t)(number + 1); /* also that it has none */
	return number;
}

static bool open_log(struct apps *apps, struct app *app)
{
	if (!apps->trace) {
		size_t memory = apps->options.events_memory;
		trace_buffer_create(memory > 0 ? memory : TRACE_DEFAULT, &apps->trace);
	}
	return apps->trace && trace_log_open(apps->trace, &app->log) == 0;
}

/* A record that was believable; throttled: when it ended. */
static inline void trace_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, enum throttle_value throttled)
{
	struct app *app = process->app;
	if (__builtin_expect(!app->log, 0) && !open_log(apps, app)) {
		return;
	}
	uint16_t known =
		record->stage < PROTO_DECLARATIONS ? process->frame_state.name[record->stage] : 0;
	uint16_t name = known > 0 ? (uint16_t)(known - 1) : trace_name_of(process, record->stage);
	struct event *event = trace_log_slot(app->log);
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
	event->process = process->frame_state.serial;
	event->slot = (uint8_t)slot;
	event->throttled = (uint8_t)throttled;
	if (record->kind == PROTO_KIND_ATTRIBUTE) {
		event->record.cpu_us = trace_name_of(process, record->cpu_us);
	}
}

void apps_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	process->frame_state.pass_ns = now_ns;
	/* a full word: gcc keeps it in memory and loads what it did not store of a smaller one */
	uint64_t throttled = THROTTLE_UNKNOWN;
	bool valid;
	if (__builtin_expect(record->kind == PROTO_KIND_COMPLETE, 1)) {
		valid = record->stage < PROTO_DECLARATIONS && process->declaration[record->stage] &&
			believable_time(process, record->start_ns, record->value, now_ns);
		if (valid) {
			throttled = app_throttled_at(apps, record->start_ns + record->value);
			valid = on_complete(
				apps, process, slot, record, (enum throttle_value)throttled);
		}
	} else {
		valid = on_record(apps, process, slot, record, now_ns);
	}
	if (valid) {
		trace_record(apps, process, slot, record, (enum throttle_value)throttled);
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

void apps_trace_usage(const struct apps *apps, struct trace_usage *ret)
{
	if (apps->trace) {
		trace_buffer_usage(apps->trace, ret);
		return;
	}
	size_t memory = apps->options.events_memory;
	*ret = (struct trace_usage){.bytes = memory > 0 ? memory : TRACE_DEFAULT};
}

int apps_trace_since(const struct apps *apps, size_t count, uint64_t *ret)
{
	*ret = 0;
	return apps->trace ? trace_buffer_since(apps->trace, count, ret) : 0;
}
