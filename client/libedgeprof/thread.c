/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c: gives a thread its slot and its chunks, on the slow path. A thread comes here at its
 * first event, once in chunk_records events, once a second, and while nothing can be recorded.
 */
#include "client/libedgeprof/private.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* Without a daemon a look costs a clock read, ~25 ns: spread over 256 events it is 0.1 ns
	 * an event, and an app whose rate fell to 100 a second still looks every 3 s. */
	IDLE_STEP_MAX = 256,
	IDLE_STEP_NS = 250 * 1000 * 1000,
	SLOTLESS_STEP = 256,
	/* glibc keeps the values of the first 32 keys in the thread itself and allocates for others
	 * (nptl/pthread_setspecific.c). A thread's first event may come from a signal handler
	 * inside malloc, where that would wait for a lock that the thread itself holds. */
	KEYS_IN_THREAD = 32,
};

__thread struct thread thread_self = {.frame = EDGEPROF_NO_FRAME, .depth = THREAD_NO_SLOT};

/* What a slot's next owner continues with. Private: the mapping's copy is the reader's to see. */
static struct {
	struct cursor at;
	uint32_t chunk;	 /* PROTO_NO_CHUNK before the first */
	uint32_t silent; /* its thread has no destructor: nobody gives the slot back; atomic */
} slot_state[THREAD_SLOTS];

void thread_forget_slots(void)
{
	for (uint32_t i = 0; i < THREAD_SLOTS; i++) {
		context_end(i);
	}
	memset(slot_state, 0, sizeof(slot_state));
}

void thread_forget(struct thread *t)
{
	t->slot = NULL;
	t->at = (struct cursor){NULL, NULL, 0};
	t->depth = THREAD_NO_SLOT;
	t->slotless = 0;
	t->idle_limit = t->idle;
	t->idle_step = 0;
	t->idle_checked_ns = 0;
}

void thread_count_busy(struct thread *t)
{
	struct proto_slot *slot = t->slot;
	if (slot) {
		__atomic_fetch_add(&slot->dropped_busy, 1, __ATOMIC_RELAXED);
	} else {
		thread_count_lost();
	}
}

void thread_count_lost(void)
{
	struct proto_map_header *header = __atomic_load_n(&process.map, __ATOMIC_ACQUIRE);
	if (header && process_mode() == PROCESS_ACTIVE) {
		__atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED);
	} else if (process_mode() != PROCESS_OFF) {
		__atomic_fetch_add(&process.idle_ended, 1, __ATOMIC_RELAXED);
	}
}

void thread_register(struct thread *t, bool may_allocate)
{
	if (!t->keyed && (may_allocate || process.key < KEYS_IN_THREAD)) {
		t->keyed = pthread_setspecific(process.key, t) == 0;
		if (t->keyed && t->slot) {
			__atomic_store_n(&slot_state[t->index].silent, 0, __ATOMIC_RELAXED);
		}
	}
	/* an event never waits: the next slow path tries again */
	if (t->keyed && !t->list_prev && pthread_mutex_trylock(&process.lock) == 0) {
		t->list_next = process.threads;
		t->list_prev = &process.threads;
		if (t->list_next) {
			t->list_next->list_prev = &t->list_next;
		}
		process.threads = t;
		pthread_mutex_unlock(&process.lock);
	}
}

/* What the next owner continues with is in slot_state. */
static void slot_release(struct proto_slot *slot, uint32_t index)
{
	context_end(index);
	__atomic_store_n(&slot->depth, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->state, PROTO_SLOT_RELEASED, __ATOMIC_RELEASE);
}

void thread_end(void *arg)
{
	struct thread *t = arg;
	thread_lock(t);
	pthread_mutex_lock(&process.lock);
	if (t->list_prev) {
		*t->list_prev = t->list_next;
		if (t->list_next) {
			t->list_next->list_prev = t->list_prev;
		}
		t->list_prev = NULL;
	}
	__atomic_fetch_add(&process.idle_ended, t->idle, __ATOMIC_RELAXED);
	t->idle = 0;
	pthread_mutex_unlock(&process.lock);
	t->idle_limit = 0;
	t->ended = true;
	struct proto_slot *slot = t->slot;
	if (slot) {
		slot_state[t->index].at = t->at;
		thread_forget(t);
		slot_release(slot, t->index);
	}
	thread_unlock(t);
}

/* In a chunk whose first record is at that position of its slot. */
static struct cursor cursor_in(uint32_t chunk, uint64_t base, uint64_t used)
{
	struct proto_record *first = proto_map_records(process.map, &process.geometry, chunk);
	return (struct cursor){first + used, first + process.geometry.chunk_records,
		(uint64_t)(uintptr_t)first - base * sizeof(*first)};
}

static bool slot_take(struct thread *t, uint32_t index, uint32_t from)
{
	struct proto_slot *slot = &proto_map_slots(process.map, &process.geometry)[index];
	if (!__atomic_compare_exchange_n(&slot->state, &from, PROTO_SLOT_OWNED, false,
		    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		return false;
	}
	if (from == PROTO_SLOT_FREE) {
		slot_state[index].chunk = PROTO_NO_CHUNK;
	}
	__atomic_store_n(&slot->depth, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->tid, (uint32_t)gettid(), __ATOMIC_RELAXED);
	t->index = index;
	t->at = slot_state[index].at;
	t->depth = 0;
	__atomic_store_n(&slot_state[index].silent, !t->keyed, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->slot = slot;
	return true;
}

/* Whether a slot's thread is gone. The number of the calling one, which has no slot, was that of a
 * thread before it. */
static bool owner_gone(const struct proto_slot *slot)
{
	uint32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
	return tid == (uint32_t)gettid() ||
	       (syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH);
}

/* Gives back the slots of threads that ended without a destructor. Where such a thread was in its
 * chunk is known from the published head alone, which is bounded before it becomes an address. */
static void slots_reclaim(void)
{
	int saved = errno;
	const struct proto_geometry *g = &process.geometry;
	struct proto_slot *slots = proto_map_slots(process.map, g);
	for (uint32_t i = 0; i < g->slots; i++) {
		if (!__atomic_load_n(&slot_state[i].silent, __ATOMIC_ACQUIRE) ||
			!owner_gone(&slots[i]) ||
			!__atomic_exchange_n(&slot_state[i].silent, 0, __ATOMIC_ACQ_REL)) {
			continue;
		}
		uint32_t chunk = slot_state[i].chunk;
		if (chunk != PROTO_NO_CHUNK) {
			uint64_t base = proto_map_chunks(process.map, g)[chunk].base;
			uint64_t used = __atomic_load_n(&slots[i].head, __ATOMIC_ACQUIRE) - base;
			used = used < g->chunk_records ? used : g->chunk_records;
			slot_state[i].at = cursor_in(chunk, base, used);
		}
		slot_release(&slots[i], i);
	}
	errno = saved;
}

/* A slot left behind and read to its end is the best: it pins no second chunk, and none of its
 * records is taken for the new thread's. */
static bool slot_find(struct thread *t)
{
	struct proto_slot *slots = proto_map_slots(process.map, &process.geometry);
	for (int pass = 0; pass < 3; pass++) {
		uint32_t wanted = pass == 1 ? PROTO_SLOT_FREE : PROTO_SLOT_RELEASED;
		for (uint32_t i = 0; i < process.geometry.slots; i++) {
			if (__atomic_load_n(&slots[i].state, __ATOMIC_ACQUIRE) != wanted) {
				continue;
			}
			bool read =
				__atomic_load_n(&slots[i].tail, __ATOMIC_RELAXED) == slots[i].head;
			if ((read || pass > 0) && slot_take(t, i, wanted)) {
				return true;
			}
		}
	}
	return false;
}

/* Where a slot begins to look: spread by the golden ratio, so that threads keep to chunks of their
 * own, whose lines (records, struct proto_chunk) then stay with one core. Looking behind the last
 * chunk instead, four threads paid 1.4 x two clock reads a stage, this way 1.2 to 1.3 x. */
static uint32_t chunk_home(uint32_t slot)
{
	return (uint32_t)((uint64_t)(slot * 40503u & 0xffffu) * process.geometry.chunks >> 16);
}

/* The first free chunk from the slot's home. At every 16th of the ring, or when there is none, the
 * owned ones are counted for the wake-up. */
static uint32_t chunk_find(struct thread *t)
{
	const struct proto_geometry *g = &process.geometry;
	struct proto_chunk *chunks = proto_map_chunks(process.map, g);
	uint32_t chunk = chunk_home(t->index);
	uint32_t taken = PROTO_NO_CHUNK, owned = 0;
	t->uncounted += g->chunk_records;
	bool count = t->uncounted >= g->chunks * g->chunk_records / 16;
	for (uint32_t i = 0; i < g->chunks && (count || taken == PROTO_NO_CHUNK); i++) {
		uint32_t free = 0;
		if (__atomic_load_n(&chunks[chunk].owner, __ATOMIC_RELAXED) != 0) {
			owned++;
		} else if (taken == PROTO_NO_CHUNK &&
			   __atomic_compare_exchange_n(&chunks[chunk].owner, &free, t->index + 1,
				   false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			taken = chunk;
		}
		chunk = chunk + 1 < g->chunks ? chunk + 1 : 0;
	}
	if (count || owned > g->chunks / 2) {
		attach_count(t->uncounted, owned > g->chunks / 2);
		t->uncounted = 0;
	}
	return taken;
}

static bool chunk_take(struct thread *t)
{
	const struct proto_geometry *g = &process.geometry;
	uint32_t last = slot_state[t->index].chunk;
	uint64_t position = thread_position(t);
	uint32_t taken = chunk_find(t);
	if (taken == PROTO_NO_CHUNK) {
		return false;
	}
	struct proto_chunk *chunks = proto_map_chunks(process.map, g);
	chunks[taken].next = PROTO_NO_CHUNK;
	__atomic_store_n(&chunks[taken].base, position, __ATOMIC_RELEASE);
	if (last == PROTO_NO_CHUNK) {
		__atomic_store_n(&t->slot->first_chunk, taken, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&chunks[last].next, taken, __ATOMIC_RELEASE);
	}
	slot_state[t->index].chunk = taken;
	t->at = cursor_in(taken, position, 0);
	return true;
}

void thread_count_idle(struct thread *t, uint64_t now_ns)
{
	if (t->keyed) {
		__atomic_store_n(&t->idle, t->idle + 1, __ATOMIC_RELAXED);
	} else { /* nobody adds up this thread when it ends */
		__atomic_fetch_add(&process.idle_ended, 1, __ATOMIC_RELAXED);
	}
	if (process_mode() == PROCESS_OFF) {
		t->idle_limit = UINT64_MAX;
		return;
	}
	if (process_mode() == PROCESS_NEW || !t->list_prev) {
		t->idle_limit = t->idle + 1; /* somebody else is looking, or holds the list */
		return;
	}
	if (now_ns - t->idle_checked_ns >= IDLE_STEP_NS) {
		t->idle_step = 1;
	} else if (t->idle_step < IDLE_STEP_MAX) {
		t->idle_step *= 2;
	}
	t->idle_checked_ns = now_ns;
	t->idle_limit = t->idle + t->idle_step;
}

bool thread_take_slot(struct thread *t, uint64_t now_ns)
{
	if (process_mode() == PROCESS_OFF || t->ended || process.broken) {
		return false;
	}
	if (!t->list_prev) {
		thread_register(t, false);
	}
	attach_check(now_ns ? now_ns : edgeprof_now());
	if (process_mode() != PROCESS_ACTIVE) {
		return false;
	}
	if (t->slot) {
		return true;
	}
	if (t->slotless > 0) {
		t->slotless--;
		return false;
	}
	slots_reclaim();
	if (!slot_find(t)) {
		t->slotless = SLOTLESS_STEP;
		return false;
	}
	return true;
}

bool thread_room(struct thread *t)
{
	return t->at.next != t->at.end || chunk_take(t);
}

bool thread_prepare(struct thread *t, uint64_t now_ns)
{
	if (!thread_take_slot(t, now_ns)) {
		enum process_mode mode = process_mode();
		if (mode == PROCESS_ACTIVE || t->ended || process.broken) {
			thread_count_lost();
		} else if (mode != PROCESS_OFF) {
			thread_count_idle(t, now_ns);
		}
		return false;
	}
	deadline_flush(t, now_ns);
	if (!thread_room(t)) {
		__atomic_store_n(&t->slot->dropped, t->slot->dropped + 1, __ATOMIC_RELAXED);
		return false;
	}
	return true;
}
