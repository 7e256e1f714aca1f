/* SPDX-License-Identifier: Apache-2.0 */
/* past_runs.c: walks over an app's raw records and pairs begins by id with their ends. */
#include "daemon/core/diagnose/past_runs.h"

#include "daemon/core/apps/apps.h"
#include "daemon/core/frames/trace_buffer.h"

static const uint64_t ORDER_NS = 2000000000;

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

bool past_walk(const struct app *app, struct past_pairing *pairing)
{
	struct trace_usage usage;
	const struct event *event;
	trace_log_span(app->log, &usage);
	uint64_t skip = usage.count > PAST_EVENTS ? usage.count - PAST_EVENTS : 0;
	struct trace_cursor cursor = {.position = usage.overwritten + skip};
	bool complete = cursor.position == 0;
	seek(app->log, &cursor, pairing->from_ns);
	while ((event = trace_log_next(app->log, &cursor, NULL))) {
		if (event->record.start_ns < app->since_ns) {
			complete = true;
		} else {
			pairing->event(pairing, event);
		}
	}
	return complete;
}

uint16_t past_thread_of(const struct event *event)
{
	return (uint16_t)((event->slot + event->process * 7u) % PAST_THREADS);
}

/* The run's time without that of the runs right inside of it. */
static uint64_t self_ns(struct past_thread *thread, const struct past_run *run)
{
	uint64_t ns = run->end_ns - run->start_ns, inside_ns = 0;
	for (unsigned i = run->depth + 1u; i < PAST_DEPTHS && thread->inside_ns[i] > 0; i++) {
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

/* An execution; a begin by id waits for its end. */
void past_pair(struct past_pairing *pairing, const struct event *event)
{
	const struct proto_record *record = &event->record;
	struct past_run run = {.name = record->stage,
		.thread = past_thread_of(event),
		.depth = record->flags >> PROTO_RECORD_DEPTH_SHIFT,
		.throttled = event->throttled,
		.cpu_us = record->cpu_us,
		.start_ns = record->start_ns,
		.end_ns = end_of(event),
		.frame = record->frame};
	size_t at = (record->value * 31 + record->stage) %
		    (sizeof(pairing->open) / sizeof(pairing->open[0]));
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
	run.self_ns = self_ns(&pairing->thread[run.thread], &run);
	if (run.end_ns >= pairing->from_ns && run.end_ns <= pairing->to_ns &&
		run.name < TRACE_NAMES_MAX) {
		pairing->visit(pairing->ctx, &run);
	}
}

void past_runs_visit(const struct app *app, uint64_t from_ns, uint64_t to_ns,
	void (*visit)(void *ctx, const struct past_run *run), void *ctx)
{
	struct past_pairing pairing = {
		.from_ns = from_ns, .to_ns = to_ns, .event = past_pair, .visit = visit, .ctx = ctx};
	if (app->log) {
		past_walk(app, &pairing);
	}
}
