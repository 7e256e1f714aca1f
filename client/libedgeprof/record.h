/*
 * Writing one record: what the hot path and all other events have in common.
 */
#pragma once

#include <string.h>
#include <time.h>

#include "client/libedgeprof/thread.h"

static inline uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t double_bits(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Room is there and nothing else wants to be done first. */
static inline bool is_ready(const struct thread *t, uint64_t now_ns)
{
	return t->next != t->end && now_ns < __atomic_load_n(&process.gate_ns, __ATOMIC_RELAXED);
}

/* Under thread_lock, with room. The reader sees the record once it sees head. */
static inline void publish(struct thread *t, struct proto_slot *slot, struct proto_record record)
{
	struct proto_record *r = t->next;
	*r = record;
	t->next = r + 1;
	__atomic_store_n(&slot->head, thread_position(t), __ATOMIC_RELEASE);
}

/* The same, finding room first, or counting what has none. Under thread_lock. */
static inline bool record_write(struct thread *t, uint64_t now_ns, struct proto_record record)
{
	if (!is_ready(t, now_ns) && !thread_prepare(t, now_ns)) {
		return false;
	}
	publish(t, t->slot, record);
	return true;
}
