/* SPDX-License-Identifier: Apache-2.0 */
/* past_runs.c: pairs begins by id with their ends, and takes nested time out of what is around. */
#include "daemon/core/diagnose/facts/past_runs.h"

#include "daemon/core/frames/trace_buffer.h"

uint16_t past_thread_of(const struct event *event)
{
	return (uint16_t)((event->slot + event->process * 7u) % PAST_THREADS);
}

/* The run's time without that of the runs right inside of it. */
static uint64_t self_ns(struct past_nested nested[PAST_DEPTHS], const struct past_run *run)
{
	uint64_t ns = run->end_ns - run->start_ns, inside_ns = 0;
	for (unsigned i = run->depth + 1u; i < PAST_DEPTHS && nested[i].ns > 0; i++) {
		inside_ns += nested[i].since_ns >= run->start_ns ? nested[i].ns : 0;
		nested[i].ns = 0;
	}
	if (run->depth > 0) {
		struct past_nested *own = &nested[run->depth];
		own->since_ns = own->ns > 0 ? own->since_ns : run->start_ns;
		own->ns += ns;
	}
	return inside_ns < ns ? ns - inside_ns : 0;
}

bool past_pair(struct past_pairing *pairing, const struct event *event, struct past_run *ret)
{
	const struct proto_record *record = &event->record;
	bool complete = record->kind == PROTO_KIND_COMPLETE;
	*ret = (struct past_run){.name = record->stage,
		.thread = past_thread_of(event),
		.depth = record->flags >> PROTO_RECORD_DEPTH_SHIFT,
		.throttled = event->throttled,
		.cpu_us = record->cpu_us,
		.start_ns = record->start_ns,
		.end_ns = record->start_ns + (complete ? record->value : 0),
		.frame = record->frame};
	size_t at = (record->value * 31 + record->stage) %
		    (sizeof(pairing->open) / sizeof(pairing->open[0]));
	struct past_run *open = &pairing->open[at].run;
	if (record->kind == PROTO_KIND_BEGIN) {
		*open = *ret;
		pairing->open[at].id = record->value;
		return false;
	}
	if (record->kind == PROTO_KIND_END) {
		if (open->start_ns == 0 || open->start_ns > ret->end_ns ||
			pairing->open[at].id != record->value || open->name != ret->name) {
			return false;
		}
		ret->start_ns = open->start_ns;
		ret->frame = open->frame;
		open->start_ns = 0;
	} else if (!complete) {
		return false;
	}
	ret->self_ns = self_ns(pairing->nested[ret->thread], ret);
	return ret->name < TRACE_NAMES_MAX;
}
