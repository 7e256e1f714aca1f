/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c: sets the process up and takes it down: a constructor, so that no event needs a
 * pthread_once, a destructor that detaches, the handlers of fork, and the counts.
 */
#include "client/libedgeprof/private.h"

#include <string.h>
#include <sys/mman.h>

_Alignas(64) struct hot edgeprof_state_ = {.clock = clock_gettime};
uint8_t stage_state[PROTO_DECLARATIONS];
struct process process = {.clock = clock_gettime, .lock = PTHREAD_MUTEX_INITIALIZER};

void process_set_gate(uint64_t due_ns)
{
	__atomic_store_n(&edgeprof_state_.gate_ns, process.print ? 0 : due_ns, __ATOMIC_RELAXED);
	if (process_mode() == PROCESS_OFF) {
		__atomic_store_n(&edgeprof_state_.gate_ns, 0, __ATOMIC_RELAXED);
	}
}

void process_set_stage(uint32_t stage, enum stage_state state)
{
	uint32_t *plain = &edgeprof_state_.plain[stage / 32], bit = UINT32_C(1) << stage % 32;
	uint32_t *all_plain = &edgeprof_state_.all_plain, all = stage;
	if (state == STAGE_PLAIN) {
		/* a new one, unless an earlier one is not plain; before it can get options */
		__atomic_compare_exchange_n(
			all_plain, &all, stage + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		__atomic_fetch_or(plain, bit, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_and(plain, ~bit, __ATOMIC_RELAXED);
		all = __atomic_load_n(all_plain, __ATOMIC_RELAXED);
		while (all > stage && !__atomic_compare_exchange_n(all_plain, &all, stage, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		}
	}
	__atomic_store_n(&stage_state[stage], state, __ATOMIC_RELEASE);
}

void process_set_mode(enum process_mode mode)
{
	uint32_t state = mode == PROCESS_OFF			  ? STATE_OFF
			 : mode == PROCESS_IDLE && !process.print ? STATE_IDLE
								  : STATE_RECORD;
	__atomic_store_n(&process.mode, mode, __ATOMIC_RELEASE);
	__atomic_store_n(&edgeprof_state_.state, state, __ATOMIC_RELAXED);
}

/* fork: the lock is taken around it, so that the child gets a table and a list that are whole. A
 * signal handler that forks inside an event may interrupt the holder: it must not wait. A handler's
 * events during the fork are counted, not written: in the child they would go into the parent's
 * slot. */
static void fork_prepare(void)
{
	struct thread *t = &thread_self;
	if (!t->busy) {
		thread_lock(t);
		pthread_mutex_lock(&process.lock);
		t->forking = true;
	}
}

static void fork_parent(void)
{
	struct thread *t = &thread_self;
	if (t->forking) {
		t->forking = false;
		pthread_mutex_unlock(&process.lock);
		thread_unlock(t);
	}
}

/* Private memory in place of the parent's mapping. It asks for no commitment, so it replaces what
 * is there even where memory is short. Should the kernel refuse all the same, the one event that is
 * half written may still end in the parent's slot, where the daemon judges it as it does any other;
 * the pages go with the child. */
static void cover(void *map)
{
	const int flags = MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
	size_t size = process.geometry.size;
	if (mmap(map, size, PROT_READ | PROT_WRITE, flags | MAP_PRIVATE, -1, 0) == MAP_FAILED &&
		mmap(map, size, PROT_READ | PROT_WRITE, flags | MAP_SHARED, -1, 0) == MAP_FAILED) {
		process.broken = true;
	}
}

/* The mapping is the parent's: the child forgets it and attaches as itself. */
static void fork_child(void)
{
	struct thread *t = &thread_self;
	void *map = process.map;
	process.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	process.threads = NULL;
	t->list_prev = NULL;
	if (!t->forking) {
		/* The handler returns into an event that is half written: let it end in memory
		 * that nobody reads, and record nothing in this child. */
		if (map) {
			cover(map);
		}
		process_set_mode(PROCESS_OFF);
	} else if (process_mode() != PROCESS_OFF) {
		process_set_mode(PROCESS_NEW);
	}
	process_set_gate(0);
	attach_forget();
	session_forget();
	clock_forget();
	thread_forget_slots();
	if (!t->forking) {
		return;
	}
	process.map = NULL;
	if (map) {
		munmap(map, process.geometry.size);
	}
	thread_forget(t);
	t->idle = 0;
	t->idle_limit = 0;
	t->frame_start_ns = 0;
	process.idle_ended = 0;
	process.due_ns = 0;
	t->forking = false;
	thread_unlock(t);
}

__attribute__((constructor)) static void process_begin(void)
{
	process.clock = clock_find();
	attach_read_environment();
	process.broken = pthread_key_create(&process.key, thread_end) != 0 ||
			 pthread_atfork(fork_prepare, fork_parent, fork_child) != 0;
}

__attribute__((destructor)) static void process_end(void)
{
	edgeprof_shutdown();
}

void edgeprof_shutdown(void)
{
	struct thread *t = &thread_self;
	uint32_t was_busy = t->busy;
	thread_lock(t);
	process_set_mode(PROCESS_OFF);
	process_set_gate(0);
	struct proto_map_header *header = __atomic_load_n(&process.map, __ATOMIC_ACQUIRE);
	if (header) {
		__atomic_fetch_or(&header->flags, PROTO_MAP_BYE, __ATOMIC_RELEASE);
	}
	attach_close();
	if (!was_busy) {
		thread_unlock(t);
	}
}

static uint64_t idle_sum(void)
{
	struct thread *t = &thread_self;
	uint32_t was_busy = t->busy;
	uint64_t sum = 0;
	if (was_busy) {
		return 0; /* a handler that asks inside an event: the lock may be ours */
	}
	thread_lock(t);
	pthread_mutex_lock(&process.lock);
	sum = __atomic_load_n(&process.idle_ended, __ATOMIC_RELAXED);
	for (struct thread *it = process.threads; it; it = it->list_next) {
		sum += __atomic_load_n(&it->idle, __ATOMIC_RELAXED);
	}
	if (!t->list_prev && !t->ended) {
		sum += t->idle;
	}
	pthread_mutex_unlock(&process.lock);
	thread_unlock(t);
	return sum;
}

void edgeprof_counts(struct edgeprof_counts *ret)
{
	memset(ret, 0, sizeof(*ret));
	struct proto_map_header *header = __atomic_load_n(&process.map, __ATOMIC_ACQUIRE);
	if (!header && process_mode() == PROCESS_OFF) {
		return;
	}
	ret->unattached = idle_sum();
	if (!header) {
		return;
	}
	struct proto_slot *slots = proto_map_slots(header, &process.geometry);
	for (uint32_t i = 0; i < process.geometry.slots; i++) {
		/* tail first: it never passes a head that is read later */
		uint64_t tail = __atomic_load_n(&slots[i].tail, __ATOMIC_ACQUIRE);
		uint64_t head = __atomic_load_n(&slots[i].head, __ATOMIC_ACQUIRE);
		ret->received += tail;
		ret->in_ring += head - tail;
		ret->dropped += __atomic_load_n(&slots[i].dropped, __ATOMIC_RELAXED) +
				__atomic_load_n(&slots[i].dropped_busy, __ATOMIC_RELAXED);
	}
	ret->dropped += __atomic_load_n(&header->lost, __ATOMIC_RELAXED);
	ret->sent = ret->received + ret->in_ring + ret->dropped;
	ret->attached = attach_connected();
}
