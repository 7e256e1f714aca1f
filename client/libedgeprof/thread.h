/*
 * A thread's side of the mapping: its slot, its current chunk, its open stages. Positions are kept
 * in thread-private memory; the mapping's are only written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/libedgeprof/process.h"

struct thread {
	/* one cache line: all that an event touches */
	_Alignas(64) struct proto_slot *slot; /* NULL: none */
	struct proto_record *next, *end;      /* room in the current chunk; equal: none */
	uint64_t origin;     /* address of the slot's record 0, had it all its records in a row */
	uint64_t frame;	     /* that the next events carry */
	uint64_t idle;	     /* events without a daemon */
	uint64_t idle_limit; /* at this many, look for one */
	uint32_t depth;	     /* open stages that the slot holds */
	uint32_t busy;	     /* inside the library; a signal handler looks */
	/* seldom */
	_Alignas(64) uint64_t frame_start_ns; /* 0: no open frame; 1: begun without a daemon */
	uint64_t idle_checked_ns;
	struct thread *list_next, **list_prev; /* of process.threads; list_prev NULL: not in it */
	uint32_t idle_step;
	uint32_t slotless;  /* events to refuse before looking for a free slot again */
	uint32_t index;	    /* of slot */
	uint32_t deep;	    /* open stages beyond the slot's; counts only when those are full */
	uint32_t uncounted; /* records taken since the owned chunks were counted */
	bool keyed;	    /* the destructor is armed */
	bool forking;	    /* between fork's handlers, which hold process.lock */
	bool ended;	    /* the destructor ran: never take a slot again */
};

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* initial-exec: one load to find it, and no allocation behind our back in a dlopen()ed library. */
extern __thread struct thread thread_self __attribute__((tls_model("initial-exec")));

enum { THREAD_SLOTS = 64 }; /* of the largest mapping */

/* Records published in the slot: one word less to keep than a counter. */
static inline uint64_t thread_position(const struct thread *t)
{
	return ((uint64_t)(uintptr_t)t->next - t->origin) / sizeof(struct proto_record);
}

/* Begin of a section that a signal handler's events must not enter. */
static inline void thread_lock(struct thread *t)
{
	*(volatile uint32_t *)&t->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void thread_unlock(struct thread *t)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)&t->busy = 0;
}

/* Looks for the daemon when that is due, and takes a slot unless there is one. Counts nothing.
 * now_ns 0: reads the clock. The caller holds thread_lock. */
bool thread_take_slot(struct thread *t, uint64_t now_ns);

/* Makes room for one record in the slot that the thread has; counts nothing. */
bool thread_room(struct thread *t);

/* thread_take_slot, the deadlines that are due, and room for one record. False: the event has been
 * counted where it belongs. */
bool thread_prepare(struct thread *t, uint64_t now_ns);

/* Counts an event that no daemon will ever see, and plans the next look by the rate. Under
 * thread_lock. */
void thread_count_idle(struct thread *t, uint64_t now_ns);

/* Counts an event that a signal handler raised inside another. Safe without thread_lock. */
void thread_count_busy(struct thread *t);

/* An event that has no place: no declaration, no slot. */
void thread_count_lost(void);

/* Forgets slot, chunk and open stages: the mapping belongs to another process now. */
void thread_forget(struct thread *t);

/* The slots' private state is forgotten (fork). */
void thread_forget_slots(void);

/* For pthread_key_create: gives the slot back. */
void thread_end(void *t);

/* Arms the destructor and enters the list of threads, unless done. may_allocate: this is no event,
 * which a signal handler inside malloc may raise. Under thread_lock. */
void thread_register(struct thread *t, bool may_allocate);
