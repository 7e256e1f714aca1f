/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.c: records marks: a label, this process's memory at that moment, and values, as records with
 * one timestamp. Without room for the first record none of the others is written.
 */
#include "client/libedgeprof/private.h"

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

/* Under thread_lock. */
static void mark_write(
	struct thread *t, uint32_t label, const struct edgeprof_value *values, size_t count)
{
	struct memory memory = {0, 0};
	bool measured = memory_read(&memory) == 0;
	uint64_t peak = measured ? memory_peak() : 0;
	if (peak < memory.resident_bytes) {
		peak = memory.resident_bytes; /* the kernel updates its high water lazily */
	}
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
		int name = names_declare(values[i].name, NULL, NULL, 0);
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
	uint32_t state = process_state();
	if (state != STATE_RECORD) {
		if (state == STATE_IDLE) {
			edgeprof_idle_();
		}
		return;
	}
	if (t->busy) {
		thread_count_busy(t);
		return;
	}
	int index = names_declare_label(label);
	for (size_t i = 0; i < count; i++) {
		names_declare(values[i].name, NULL, NULL, 0);
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
