/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes or chunks: how should threads share the mapping's record space? A lane is a ring of a fixed
 * share a thread; chunks are handed out to whoever writes. Both in 208 KiB (what 256 KiB leaves for
 * records) for 64 threads, written without a clock so that only the ring is measured, drained
 * between rounds.
 *
 * Conclusion: chunks. A record costs 1.6-2.8 ns in chunks and 2.0 ns in lanes (a chunk's CAS and
 * scan come once in 64 records), beside 44 ns for the two clock reads of a stage. But one busy
 * thread fills a lane after 104 records, 0.1 ms at 1 M/s, while of the chunks it can have 6463 of
 * 6656.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/mapping.h"
#include "tests/bench/bench.h"

enum {
	SLOTS = 64,
	CHUNK = 64,
	CHUNKS = 104,
	RECORDS = CHUNKS * CHUNK,
	LANE = RECORDS / SLOTS,
	ROUNDS = 20000,
	BURST = 96, /* fits a lane: nothing is dropped while it is timed */
	THREADS_MAX = 4,
};

struct slot {
	_Alignas(64) uint64_t head;
	uint64_t dropped;
	uint32_t last; /* chunk */
	_Alignas(64) uint64_t tail;
};

struct ring {
	struct slot slots[SLOTS];
	_Alignas(64) uint32_t owner[CHUNKS];
	uint32_t next[CHUNKS];
	_Alignas(64) struct proto_record records[RECORDS];
};

struct worker {
	pthread_t thread;
	struct ring *ring;
	uint32_t index;
	double ns;
	uint64_t dropped;
};

typedef bool push_fn(struct ring *ring, struct slot *slot, uint32_t index, uint64_t *head);
typedef void drain_fn(struct ring *ring, struct slot *slot);

static inline void fill(struct proto_record *r, uint64_t value)
{
	r->stage = 1;
	r->kind = PROTO_KIND_COMPLETE;
	r->flags = 0;
	r->cpu_us = PROTO_CPU_NOT_MEASURED;
	r->start_ns = value;
	r->value = value;
	r->frame = PROTO_NO_FRAME;
}

static inline bool lane_push(struct ring *ring, struct slot *slot, uint32_t index, uint64_t *head)
{
	if (*head - __atomic_load_n(&slot->tail, __ATOMIC_ACQUIRE) == LANE) {
		slot->dropped++;
		return false;
	}
	fill(&ring->records[index * LANE + *head % LANE], *head);
	__atomic_store_n(&slot->head, ++*head, __ATOMIC_RELEASE);
	return true;
}

static void lane_drain(struct ring *ring, struct slot *slot)
{
	(void)ring;
	__atomic_store_n(&slot->tail, slot->head, __ATOMIC_RELEASE);
}

static bool chunk_take(struct ring *ring, struct slot *slot, uint32_t index)
{
	for (uint32_t i = 0; i < CHUNKS; i++) {
		uint32_t chunk = (slot->last + 1 + i) % CHUNKS, free = 0;
		if (__atomic_load_n(&ring->owner[chunk], __ATOMIC_RELAXED) == 0 &&
			__atomic_compare_exchange_n(&ring->owner[chunk], &free, index + 1, false,
				__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			__atomic_store_n(&ring->next[slot->last], chunk, __ATOMIC_RELEASE);
			slot->last = chunk;
			return true;
		}
	}
	return false;
}

static inline bool chunk_push(struct ring *ring, struct slot *slot, uint32_t index, uint64_t *head)
{
	if (*head % CHUNK == 0 && !chunk_take(ring, slot, index)) {
		slot->dropped++;
		return false;
	}
	fill(&ring->records[slot->last * CHUNK + *head % CHUNK], *head);
	__atomic_store_n(&slot->head, ++*head, __ATOMIC_RELEASE);
	return true;
}

/* Gives back all of the slot's chunks but the last. */
static void chunk_drain(struct ring *ring, struct slot *slot)
{
	uint32_t index = (uint32_t)(slot - ring->slots);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		if (i != slot->last && ring->owner[i] == index + 1) {
			__atomic_store_n(&ring->owner[i], 0, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&slot->tail, slot->head, __ATOMIC_RELEASE);
}

/* One function for both, inlined into each: the push is what differs, not its call. */
static inline __attribute__((always_inline)) void work(
	struct worker *w, push_fn *push, drain_fn *drain)
{
	double *rounds = calloc(ROUNDS, sizeof(*rounds));
	struct slot *slot = &w->ring->slots[w->index];
	uint64_t head = 0;
	for (int r = 0; rounds && r < ROUNDS; r++) {
		double start = now_ns();
		for (int i = 0; i < BURST; i++) {
			push(w->ring, slot, w->index, &head);
		}
		rounds[r] = (now_ns() - start) / BURST;
		drain(w->ring, slot);
	}
	if (rounds) {
		qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
		w->ns = rounds[ROUNDS / 2];
	}
	w->dropped = slot->dropped;
	free(rounds);
}

static void *lane_work(void *arg)
{
	work(arg, lane_push, lane_drain);
	return NULL;
}

static void *chunk_work(void *arg)
{
	work(arg, chunk_push, chunk_drain);
	return NULL;
}

/* Each slot has had an event; then one thread bursts until the first refusal. */
static unsigned capacity(struct ring *ring, push_fn *push)
{
	uint64_t heads[SLOTS] = {0};
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		push(ring, &ring->slots[i], i, &heads[i]);
	}
	unsigned records = 0;
	while (push(ring, &ring->slots[0], 0, &heads[0])) {
		records++;
	}
	return records;
}

static int measure(const char *name, void *(*fn)(void *), push_fn *push)
{
	struct ring *ring = aligned_alloc(64, sizeof(*ring));
	if (!ring) {
		return 1;
	}
	struct worker workers[THREADS_MAX];
	for (uint32_t threads = 1; threads <= THREADS_MAX; threads += THREADS_MAX - 1) {
		memset(ring, 0, sizeof(*ring));
		double sum = 0;
		uint64_t dropped = 0;
		for (uint32_t i = 0; i < threads; i++) {
			workers[i] = (struct worker){.ring = ring, .index = i};
			ring->slots[i].last = i;
			pthread_create(&workers[i].thread, NULL, fn, &workers[i]);
		}
		for (uint32_t i = 0; i < threads; i++) {
			pthread_join(workers[i].thread, NULL);
			sum += workers[i].ns;
			dropped += workers[i].dropped;
		}
		printf("%s, %u thread%s: %.2f ns a record, %llu dropped\n", name, threads,
			threads > 1 ? "s" : "", sum / threads, (unsigned long long)dropped);
	}
	memset(ring, 0, sizeof(*ring));
	printf("%s: a burst of one thread fits %u of %u records\n", name, capacity(ring, push),
		(unsigned)RECORDS);
	free(ring);
	return 0;
}

int main(void)
{
	return measure("lanes", lane_work, lane_push) | measure("chunks", chunk_work, chunk_push);
}
