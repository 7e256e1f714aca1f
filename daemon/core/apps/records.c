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

/* Before the first record of a declaration. False: no more new names are accepted for now. */
static bool meet(struct apps *apps, struct app_process *process, uint32_t index)
{
	if (apps->new_left == 0) {
		return false;
	}
	apps->new_left -= apps->new_left < SIZE_MAX;
	process->met[index] = true;
	return true;
}

/* What is the same for all records of a call. */
struct pass {
	struct apps *apps;
	struct app_process *process;
	uint32_t slot;
	uint64_t thread;	     /* app_thread() */
	uint64_t born_ns, latest_ns; /* of the ends that are believable */
	/* of ends that are believable and have the newest throttle state: first, how many more */
	uint64_t plain_from_ns, plain_ns;
	enum throttle_value throttled; /* that state */
};

static struct pass pass_of(
	struct apps *apps, struct app_process *process, uint32_t slot, uint64_t now_ns)
{
	struct throttle_span span = {.until_ns = UINT64_MAX};
	if (apps->throttle_times) {
		span = throttle_times_newest(apps->throttle_times);
	}
	struct pass pass = {.apps = apps,
		.process = process,
		.slot = slot,
		.thread = app_thread(process, slot),
		.born_ns = process->attached_ns > DAY_NS ? process->attached_ns - DAY_NS : 0,
		.latest_ns = now_ns + FUTURE_NS,
		.throttled = span.value};
	uint64_t from_ns = span.from_ns > pass.born_ns ? span.from_ns : pass.born_ns;
	uint64_t until_ns = span.until_ns < pass.latest_ns ? span.until_ns : pass.latest_ns;
	pass.plain_from_ns = from_ns;
	pass.plain_ns = until_ns > from_ns ? until_ns - from_ns : 0;
	return pass;
}

static inline bool believable_time(const struct pass *pass, uint64_t start_ns, uint64_t duration_ns)
{
	/* written so that no sum of a peer's numbers can wrap */
	if (duration_ns > DAY_NS || start_ns > pass->latest_ns) {
		return false;
	}
	uint64_t end_ns = start_ns + duration_ns;
	return end_ns <= pass->latest_ns && end_ns >= pass->born_ns;
}

void apps_fold_stages(struct apps *apps)
{
	for (size_t i = 0; i < apps->noted_count; i++) {
		apps->noted[i]->listed = false;
		stage_fold(apps->noted[i]);
	}
	apps->noted_count = 0;
}

static inline void list_noted(struct apps *apps, struct stage *stage)
{
	if (!stage->listed) {
		if (apps->noted_count == APPS_NOTED) {
			apps_fold_stages(apps);
		}
		stage->listed = true;
		apps->noted[apps->noted_count++] = stage;
	}
}

/* A run's way into its frame, by its times alone. */
static inline void on_plain_frame(
	const struct pass *pass, uint32_t index, const struct app_frame_run *run)
{
	const struct app_process_frames *own = &pass->process->frame_state;
	uint8_t idx = (uint8_t)(own->idx[index] - 1);
	const struct frame_piece piece = {.id = run->frame,
		.start_ns = run->start_ns,
		.end_ns = run->end_ns,
		.thread = run->thread};
	if (__builtin_expect(
		    idx >= FRAME_STAGES || !frame_table_next(own->table, &piece, idx, run->nested),
		    0)) {
		/* part by part: the run itself stays in registers, and no load waits for stores */
		const struct app_frame_run copy = {.frame = run->frame,
			.start_ns = run->start_ns,
			.end_ns = run->end_ns,
			.thread = run->thread,
			.nested = run->nested};
		app_frame_run(pass->apps, pass->process, index, &copy);
	}
}

/* A COMPLETE record's way into its stage and its frame, by its times alone: nearly all records are
 * such, and this is most of what one costs. False: it is not that simple; nothing was done. */
static inline bool on_plain(const struct pass *pass, const struct proto_record *record)
{
	struct app_process *process = pass->process;
	uint32_t index = record->stage;
	struct stage *stage = process->stages[index];
	uint64_t duration_ns = record->value;
	const struct app_frame_run run = {.frame = record->frame,
		.start_ns = record->start_ns,
		.end_ns = record->start_ns + duration_ns,
		.thread = pass->thread,
		.nested = record->flags & PROTO_RECORD_NESTED};
	/* one comparison for both ends of the span; start and duration can't make it wrap */
	if (__builtin_expect(!stage || process->slots || run.start_ns > pass->latest_ns ||
				     duration_ns > DAY_NS ||
				     run.end_ns - pass->plain_from_ns > pass->plain_ns ||
				     !stage_is_plain(stage, run.end_ns),
		    0)) {
		return false;
	}
	list_noted(pass->apps, stage);
	stage_note_plain(stage, run.end_ns, duration_ns, pass->throttled, run.frame);
	if (run.frame != PROTO_NO_FRAME) {
		on_plain_frame(pass, index, &run);
	} else {
		const struct stage_run alone =
			stage_run_of(run.end_ns, duration_ns, PROTO_NO_FRAME);
		app_loop_run(process->app, stage, &alone, UINT64_C(1) << pass->thread % 64);
	}
	return true;
}

/* The same for any believable one whose declaration is there. False: memory is short. */
static bool on_complete(
	const struct pass *pass, const struct proto_record *record, enum throttle_value throttled)
{
	struct apps *apps = pass->apps;
	struct app_process *process = pass->process;
	uint32_t slot = pass->slot;
	struct stage *stage = app_stage_of(apps, process, record->stage);
	if (!stage) {
		return false;
	}
	struct stage_run run =
		stage_run_of(record->start_ns + record->value, record->value, record->frame);
	run.cpu_us = record->cpu_us;
	run.failed = record->flags & PROTO_RECORD_FAILED;
	run.throttled = throttled;
	app_cost_of(process, slot, record, &run.process_cpu_ns, &run.rss_growth);
	list_noted(apps, stage);
	bool skipped = !stage_note(stage, &run);
	if (process->slots || record->flags >> PROTO_RECORD_DEPTH_SHIFT) {
		app_nest(process, slot, record, stage, skipped);
	}
	if (run.rss_growth != INT64_MIN) {
		app_log_growth(apps, process, record->stage, run.end_ns, run.rss_growth);
	}
	if (record->frame != PROTO_NO_FRAME) {
		const struct app_frame_run in_frame = {.frame = record->frame,
			.start_ns = record->start_ns,
			.end_ns = run.end_ns,
			.thread = pass->thread,
			.nested = record->flags & PROTO_RECORD_NESTED,
			.by_id = record->flags & PROTO_RECORD_OF_TASK,
			.skipped = skipped};
		app_frame_run(apps, process, record->stage, &in_frame);
	} else if (!skipped) {
		app_loop_run(process->app, stage, &run, UINT64_C(1) << pass->thread % 64);
	} else {
		process->app->loop.spoilt = process->app->loop.begun;
	}
	return true;
}

/* Any kind but COMPLETE. True when the record was of use. */
static bool on_record(const struct pass *pass, const struct proto_record *record)
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
	struct apps *apps = pass->apps;
	struct app_process *process = pass->process;
	uint32_t slot = pass->slot;
	if (record->kind == PROTO_KIND_DEADLINE && record->flags & PROTO_RECORD_OF_FRAMES) {
		return app_on_frames_deadline(apps, process, slot, record);
	}
	uint64_t took_ns = record->kind == PROTO_KIND_FRAME ? record->value : 0;
	return record->kind < PROTO_KIND_COUNT && kinds[record->kind].on &&
	       (!kinds[record->kind].declared || (record->stage < PROTO_DECLARATIONS &&
							 process->declaration[record->stage])) &&
	       (!kinds[record->kind].timed || believable_time(pass, record->start_ns, took_ns)) &&
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

/* Nothing but times were measured, and no stage was open around it. */
static inline bool is_plain(const struct proto_record *record)
{
	return record->kind == PROTO_KIND_COMPLETE && record->stage < PROTO_DECLARATIONS &&
	       (record->flags & ~PROTO_RECORD_NESTED) == 0 &&
	       record->cpu_us == PROTO_CPU_NOT_MEASURED;
}

/* Any record. True when it was of use; *throttled: the hardware's state when it ended. */
static bool on_any(
	const struct pass *pass, const struct proto_record *record, enum throttle_value *throttled)
{
	uint32_t index = record->stage;
	*throttled = THROTTLE_UNKNOWN;
	if (record->kind != PROTO_KIND_COMPLETE) {
		return on_record(pass, record);
	}
	*throttled = app_throttled_at(pass->apps, record->start_ns + record->value);
	return index < PROTO_DECLARATIONS && pass->process->declaration[index] &&
	       believable_time(pass, record->start_ns, record->value) &&
	       on_complete(pass, record, *throttled);
}

/* Keeps a valid one. The slots of those that follow are in no cache yet. */
static inline void trace_record(
	const struct pass *pass, const struct proto_record *record, enum throttle_value throttled)
{
	enum { AHEAD = 16 };
	struct app_process *process = pass->process;
	struct app *app = process->app;
	if (__builtin_expect(!app->log && !open_log(pass->apps, app), 0)) {
		return;
	}
	uint32_t index = record->stage;
	uint16_t known = index < PROTO_DECLARATIONS ? process->frame_state.name[index] : 0;
	uint16_t name = known > 0 ? (uint16_t)(known - 1) : trace_name_of(process, index);
	struct event *event = trace_log_slot(app->log);
	__builtin_prefetch(event + AHEAD, 1);
	event->record = *record;
	event->record.stage = name;
	event->pid = (uint32_t)process->pid;
	event->process = process->frame_state.serial;
	event->slot = (uint8_t)pass->slot;
	event->throttled = (uint8_t)throttled;
	if (record->kind == PROTO_KIND_ATTRIBUTE) {
		event->record.cpu_us = trace_name_of(process, record->cpu_us);
	}
}

size_t apps_records(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *records, size_t n, uint64_t now_ns)
{
	const struct pass pass = pass_of(apps, process, slot, now_ns);
	process->frame_state.pass_ns = now_ns;
	for (size_t i = 0; i < n; i++) {
		const struct proto_record *record = &records[i];
		uint32_t index = record->stage;
		enum throttle_value throttled = pass.throttled;
		if (__builtin_expect(!is_plain(record) || !on_plain(&pass, record), 0)) {
			if (index < PROTO_DECLARATIONS && !process->met[index] &&
				!meet(apps, process, index)) {
				return i;
			}
			if (!on_any(&pass, record, &throttled)) {
				process->accounting.invalid++;
				continue;
			}
		}
		trace_record(&pass, record, throttled);
	}
	return n;
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
