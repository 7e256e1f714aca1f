/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edgeprof.c: records the events that are not stages, frames among them, and counts an event that
 * no daemon will read. Stages are in stage.c, marks in mark.c, deadlines in deadline.c.
 */
#include "client/libedgeprof/private.h"

#include <errno.h>

enum {
	FRAME_NONE = 0,
	FRAME_IDLE = 1, /* begun while there was no daemon */
};

uint64_t edgeprof_now(void)
{
	return clock_ns();
}

static __attribute__((noinline)) void idle_slow(struct thread *t)
{
	if (t->busy) {
		thread_count_busy(t);
		return;
	}
	thread_lock(t);
	if (process_mode() == PROCESS_OFF) {
		t->idle_limit = UINT64_MAX;
	} else if (t->ended) { /* a later destructor's: nobody adds up this thread any more */
		thread_count_lost();
	} else {
		uint64_t now_ns = clock_ns();
		thread_take_slot(t, now_ns);
		thread_count_idle(t, now_ns);
	}
	thread_unlock(t);
}

/* Counts an event without a daemon, and rarely looks for one. */
void edgeprof_idle_(void)
{
	struct thread *t = &thread_self;
	uint64_t count = t->idle + 1;
	if (UNLIKELY(count >= t->idle_limit)) {
		idle_slow(t);
		return;
	}
	__atomic_store_n(&t->idle, count, __ATOMIC_RELAXED);
}

/* May this event be recorded? Else it has been counted where it belongs; if so, the thread is
 * locked. */
static inline bool event_begin(struct thread *t)
{
	uint32_t state = process_state();
	if (state != STATE_RECORD) {
		if (state == STATE_IDLE) {
			edgeprof_idle_();
		}
		return false;
	}
	if (t->busy) {
		thread_count_busy(t);
		return false;
	}
	thread_lock(t);
	return true;
}

/* start_ns 0: now. */
static void emit(uint32_t stage, struct proto_record record)
{
	struct thread *t = &thread_self;
	if (!event_begin(t)) {
		return;
	}
	uint64_t now_ns = clock_ns();
	if (!is_declared(stage)) {
		thread_count_lost();
	} else {
		record.stage = (uint16_t)stage;
		record.start_ns = record.start_ns ? record.start_ns : now_ns;
		record_write(t, now_ns, record);
	}
	thread_unlock(t);
}

/* start_ns 0: a tick. */
static void emit_frame(uint64_t frame, uint64_t start_ns, bool context)
{
	struct thread *t = &thread_self;
	if (!event_begin(t)) {
		return;
	}
	uint64_t now_ns = clock_ns();
	struct proto_record record = {
		.kind = PROTO_KIND_FRAME,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns ? start_ns : now_ns,
		.value = start_ns && now_ns > start_ns ? now_ns - start_ns : 0,
		.frame = frame,
	};
	if (record_write(t, now_ns, record) && context) {
		context_frame(t, now_ns, frame);
	}
	thread_unlock(t);
}

int edgeprof_init(const char *app)
{
	struct thread *t = &thread_self;
	if (process.broken) {
		return -ENOMEM;
	}
	if (t->busy) {
		return 0;
	}
	thread_lock(t);
	thread_register(t, true);
	int error = attach_init(app);
	thread_unlock(t);
	return error;
}

int edgeprof_stage(const char *name)
{
	return names_declare(name, NULL, NULL, 0);
}

int edgeprof_stage_declare(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns)
{
	return names_declare_stage(name, category, unit, deadline_ns);
}

int edgeprof_gauge_declare(const char *name, const char *unit)
{
	return names_declare(name, NULL, unit, 0);
}

static void emit_id(int stage, enum proto_kind kind, uint64_t id)
{
	emit((uint32_t)stage, (struct proto_record){
				      .kind = (uint8_t)kind,
				      .cpu_us = PROTO_CPU_NOT_MEASURED,
				      .value = id,
				      .frame = thread_self.frame,
			      });
}

void edgeprof_begin_id(int stage, uint64_t id)
{
	emit_id(stage, PROTO_KIND_BEGIN, id);
}

void edgeprof_end_id(int stage, uint64_t id)
{
	emit_id(stage, PROTO_KIND_END, id);
}

void edgeprof_complete(int stage, uint64_t start_ns, uint64_t duration_ns, uint64_t frame)
{
	emit((uint32_t)stage, (struct proto_record){
				      .kind = PROTO_KIND_COMPLETE,
				      .cpu_us = PROTO_CPU_NOT_MEASURED,
				      .start_ns = start_ns,
				      .value = duration_ns,
				      .frame = frame,
			      });
}

static void emit_number(int name, enum proto_kind kind, uint32_t of, double value, uint64_t frame)
{
	emit((uint32_t)name, (struct proto_record){
				     .kind = (uint8_t)kind,
				     .cpu_us = of,
				     .value = double_bits(value),
				     .frame = frame,
			     });
}

void edgeprof_gauge(int name, double value)
{
	emit_number(name, PROTO_KIND_GAUGE, PROTO_CPU_NOT_MEASURED, value, PROTO_NO_FRAME);
}

void edgeprof_counter(int name, double increment)
{
	emit_number(name, PROTO_KIND_COUNTER, PROTO_CPU_NOT_MEASURED, increment, PROTO_NO_FRAME);
}

void edgeprof_attribute(int stage, int name, double value)
{
	/* of no stage: -1 makes it one that is lost and counted */
	emit_number(is_declared((uint32_t)stage) ? name : -1, PROTO_KIND_ATTRIBUTE, (uint32_t)stage,
		value, thread_self.frame);
}

void edgeprof_frame_begin(uint64_t frame)
{
	struct thread *t = &thread_self;
	t->frame = frame;
	t->frame_start_ns = process_state() != STATE_RECORD ? FRAME_IDLE : clock_ns();
}

void edgeprof_frame_end(void)
{
	struct thread *t = &thread_self;
	uint64_t start_ns = t->frame_start_ns, frame = t->frame;
	t->frame_start_ns = FRAME_NONE;
	t->frame = EDGEPROF_NO_FRAME;
	if (start_ns == FRAME_IDLE) {
		if (process_state() != STATE_OFF) {
			edgeprof_idle_();
		}
	} else if (start_ns != FRAME_NONE) {
		emit_frame(frame, start_ns, true);
	}
}

void edgeprof_frame(uint64_t frame, uint64_t start_ns)
{
	emit_frame(frame, start_ns, false);
}

void edgeprof_tick(void)
{
	emit_frame(thread_self.frame, 0, false);
}

void edgeprof_set_frame(uint64_t frame)
{
	thread_self.frame = frame;
}
