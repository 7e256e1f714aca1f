/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edgeprof.c: records the events that are not stages, frames and marks among them, and counts an
 * event that no daemon will read. Stages are in stage.c, deadlines in deadline.c.
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

/* Counts an event without a daemon, and rarely looks for one. Within one line of the processor's
 * cache, and at an address in a register: both are a cycle less. */
__attribute__((aligned(64))) void edgeprof_idle_(void)
{
	struct thread *t = &thread_self;
	__asm__("" : "+r"(t));
	uint64_t count = t->idle + 1;
	if (UNLIKELY(count >= t->idle_limit)) {
		idle_slow(t);
		return;
	}
	__atomic_store_n(&t->idle, count, __ATOMIC_RELAXED);
}

/* May this event be recorded? Else it has been counted where it belongs. */
static inline bool event_wanted(struct thread *t)
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
	return true;
}

bool edgeprof_write_(
	int name, uint32_t kind, uint32_t cpu_us, uint64_t start_ns, uint64_t value, uint64_t frame)
{
	struct thread *t = &thread_self;
	bool written = false;
	if (!event_wanted(t)) {
		return false;
	}
	thread_lock(t);
	uint64_t now_ns = clock_ns();
	if (!is_declared((uint32_t)name) && (uint8_t)kind != PROTO_KIND_FRAME) {
		thread_count_lost();
	} else {
		written = record_write(t, now_ns,
			(struct proto_record){
				.stage = (uint16_t)name,
				.kind = (uint8_t)kind,
				.flags = (uint8_t)(kind >> 8),
				.cpu_us = cpu_us,
				.start_ns = start_ns ? start_ns : now_ns,
				.value = value,
				.frame = frame,
			});
	}
	thread_unlock(t);
	return written;
}

static void emit(int name, enum proto_kind kind, uint32_t cpu_us, uint64_t start_ns, uint64_t value,
	uint64_t frame)
{
	edgeprof_write_(name, kind, cpu_us, start_ns, value, frame);
}

/* start_ns 0: a tick. */
static void emit_frame(uint64_t frame, uint64_t start_ns, bool context)
{
	struct thread *t = &thread_self;
	if (!event_wanted(t)) {
		return;
	}
	thread_lock(t);
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

void edgeprof_begin_id(int stage, uint64_t id)
{
	emit(stage, PROTO_KIND_BEGIN, PROTO_CPU_NOT_MEASURED, 0, id, thread_self.frame);
}

void edgeprof_end_id(int stage, uint64_t id)
{
	emit(stage, PROTO_KIND_END, PROTO_CPU_NOT_MEASURED, 0, id, thread_self.frame);
}

void edgeprof_complete(int stage, uint64_t start_ns, uint64_t duration_ns, uint64_t frame)
{
	emit(stage, PROTO_KIND_COMPLETE, PROTO_CPU_NOT_MEASURED, start_ns, duration_ns, frame);
}

void edgeprof_gauge(int name, double value)
{
	emit(name, PROTO_KIND_GAUGE, PROTO_CPU_NOT_MEASURED, 0, double_bits(value), PROTO_NO_FRAME);
}

void edgeprof_counter(int name, double increment)
{
	emit(name, PROTO_KIND_COUNTER, PROTO_CPU_NOT_MEASURED, 0, double_bits(increment),
		PROTO_NO_FRAME);
}

void edgeprof_attribute(int stage, int name, double value)
{
	/* of no stage: -1 makes it one that is lost and counted */
	emit(is_declared((uint32_t)stage) ? name : -1, PROTO_KIND_ATTRIBUTE, (uint32_t)stage, 0,
		double_bits(value), thread_self.frame);
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

/* A record that follows a mark. */
static void follow(struct thread *t, bool mark_written, struct proto_record record)
{
	if (mark_written) {
		record_write(t, record.start_ns, record);
	} else if (t->slot) {
		__atomic_store_n(&t->slot->dropped, t->slot->dropped + 1, __ATOMIC_RELAXED);
	} else {
		thread_count_lost();
	}
}

/* A label, this process's memory at that moment, and values, as records with one timestamp. Without
 * room for the first record none of the others is written. Under thread_lock. */
static void mark_write(
	struct thread *t, uint32_t label, const struct edgeprof_value *values, size_t count)
{
	struct memory memory = {0, 0};
	bool measured = memory_read(&memory) == 0;
	uint64_t peak = measured ? memory_peak(memory.resident_bytes) : 0;
	struct proto_record mark = {
		.stage = (uint16_t)label,
		.kind = PROTO_KIND_MARK,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = clock_ns(),
		.value = memory.resident_bytes,
		.frame = t->frame,
	};
	bool written = record_write(t, mark.start_ns, mark);
	if (!written && process_mode() != PROCESS_ACTIVE) {
		return; /* one call without a daemon, and counted as such */
	}
	if (measured) {
		struct proto_record sizes = mark;
		sizes.kind = PROTO_KIND_MARK_MEMORY;
		sizes.value = memory.virtual_bytes;
		sizes.frame = peak;
		follow(t, written, sizes);
	}
	for (size_t i = 0; i < count; i++) {
		/* declared before; inside thread_lock this only finds */
		int name = edgeprof_stage(values[i].name);
		if (name < 0) {
			thread_count_lost();
			continue;
		}
		struct proto_record value = mark;
		value.kind = PROTO_KIND_ATTRIBUTE;
		value.stage = (uint16_t)name;
		value.cpu_us = label;
		value.value = double_bits(values[i].value);
		follow(t, written, value);
	}
}

void edgeprof_mark_with(const char *label, const struct edgeprof_value *values, size_t count)
{
	struct thread *t = &thread_self;
	if (!event_wanted(t)) {
		return;
	}
	int index = edgeprof_label_(label);
	for (size_t i = 0; i < count; i++) {
		edgeprof_stage(values[i].name);
	}
	thread_lock(t);
	if (index < 0) {
		thread_count_lost();
	} else {
		mark_write(t, (uint32_t)index, values, count);
	}
	thread_unlock(t);
}

void edgeprof_mark(const char *label)
{
	edgeprof_mark_with(label, NULL, 0);
}
