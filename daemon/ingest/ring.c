/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c: reads records out of one mapping and returns its chunks. Called on the drain timer, on a
 * wake-up byte and once more when the process is dead.
 */
#include "daemon/ingest/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { SLOTS_MAX = 64 };

#define NO_POSITION UINT64_MAX

struct reader { /* of one slot; nothing here is ever read back from the mapping */
	uint64_t tail;
	uint64_t head;	/* as seen at the start of the pass and found plausible */
	uint32_t chunk; /* that holds position tail, or ends there; PROTO_NO_CHUNK before the first
			 */
	uint64_t awaited; /* position of a record that was not there yet; NO_POSITION: none */
	uint32_t tid;	  /* of the thread whose records were read last */
	bool damaged;
};

struct ring {
	struct proto_map_header *header;
	struct proto_declaration *declarations;
	struct proto_slot *slots;
	struct proto_chunk *chunks;
	void *map;
	struct proto_geometry g;
	uint32_t declared;
	uint64_t skipped;
	uint64_t waiting_ns; /* end of the oldest record that the last call left; 0: it left none */
	bool refused;	     /* the sink accepts no more in this call */
	struct reader reader[SLOTS_MAX];
};

#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

static uint64_t capacity(const struct ring *ring)
{
	return (uint64_t)ring->g.chunks * ring->g.chunk_records;
}

/* The chunk belongs to the slot and starts at this position. */
static bool chunk_is(const struct ring *ring, uint32_t slot, uint32_t chunk, uint64_t base)
{
	return chunk < ring->g.chunks && LOAD_ACQUIRE(&ring->chunks[chunk].owner) == slot + 1 &&
	       LOAD(&ring->chunks[chunk].base) == base;
}

/* By the tables instead of the links; PROTO_NO_CHUNK when there is none. */
static uint32_t chunk_search(const struct ring *ring, uint32_t slot, uint64_t base)
{
	for (uint32_t chunk = 0; chunk < ring->g.chunks; chunk++) {
		if (chunk_is(ring, slot, chunk, base)) {
			return chunk;
		}
	}
	return PROTO_NO_CHUNK;
}

/* Position p lies in the chunk, or is its end. */
static bool chunk_reaches(const struct ring *ring, uint32_t slot, uint32_t chunk, uint64_t p)
{
	if (chunk >= ring->g.chunks || LOAD_ACQUIRE(&ring->chunks[chunk].owner) != slot + 1) {
		return false;
	}
	uint64_t base = LOAD(&ring->chunks[chunk].base);
	return base != PROTO_NO_BASE && base % ring->g.chunk_records == 0 && base <= p &&
	       p - base <= ring->g.chunk_records;
}

/* Three steps, so that after a kill between them sweep() can tell it from a chunk just claimed. */
static void chunk_free(struct ring *ring, uint32_t chunk)
{
	STORE_RELEASE(&ring->chunks[chunk].owner, PROTO_CHUNK_FREEING);
	STORE_RELEASE(&ring->chunks[chunk].base, PROTO_NO_BASE);
	STORE_RELEASE(&ring->chunks[chunk].owner, 0);
}

static void checkpoint(struct ring *ring, uint32_t slot)
{
	STORE_RELEASE(&ring->slots[slot].tail, ring->reader[slot].tail);
}

/* Resumes a slot at the previous reader's checkpoint. */
static void resume(struct ring *ring, uint32_t index)
{
	struct reader *reader = &ring->reader[index];
	struct proto_slot *slot = &ring->slots[index];
	uint64_t head = LOAD_ACQUIRE(&slot->head);
	uint64_t tail = LOAD(&slot->tail);
	uint32_t chunk = LOAD(&slot->tail_chunk);
	*reader = (struct reader){
		.tail = tail, .head = head, .chunk = PROTO_NO_CHUNK, .awaited = NO_POSITION};
	/* a zeroed mapping has tail_chunk 0: at position 0 first_chunk or the tables decide */
	if (tail == 0 && head <= capacity(ring)) {
		return;
	}
	if (tail <= head && head - tail <= capacity(ring) && tail > 0) {
		if (chunk_reaches(ring, index, chunk, tail)) {
			reader->chunk = chunk;
			return;
		}
		uint64_t start = tail - tail % ring->g.chunk_records;
		reader->chunk = chunk_search(ring, index, start);
		if (reader->chunk == PROTO_NO_CHUNK && start == tail) {
			reader->chunk = chunk_search(ring, index, tail - ring->g.chunk_records);
		}
		if (reader->chunk != PROTO_NO_CHUNK) {
			__atomic_store_n(&slot->tail_chunk, reader->chunk, __ATOMIC_RELAXED);
			return;
		}
	}
	/* not plausible: only records from now on are read */
	ring->skipped += head > tail ? head - tail : 0;
	reader->tail = head;
	uint64_t start = head - head % ring->g.chunk_records;
	reader->chunk = chunk_search(ring, index, start);
	if (reader->chunk == PROTO_NO_CHUNK && start == head && head > 0) {
		reader->chunk = chunk_search(ring, index, head - ring->g.chunk_records);
	}
	__atomic_store_n(&slot->tail_chunk, reader->chunk, __ATOMIC_RELAXED);
	checkpoint(ring, index);
}

/* Frees what a killed reader left between its checkpoint and the hand-back. */
static void sweep(struct ring *ring)
{
	for (uint32_t chunk = 0; chunk < ring->g.chunks; chunk++) {
		uint32_t owner = LOAD_ACQUIRE(&ring->chunks[chunk].owner);
		uint64_t base = LOAD(&ring->chunks[chunk].base);
		if (owner == PROTO_CHUNK_FREEING) {
			chunk_free(ring, chunk);
			continue;
		}
		if (owner == 0 || owner > ring->g.slots || base == PROTO_NO_BASE) {
			continue;
		}
		const struct reader *reader = &ring->reader[owner - 1];
		if (chunk != reader->chunk && reader->tail >= ring->g.chunk_records &&
			base <= reader->tail - ring->g.chunk_records) {
			chunk_free(ring, chunk);
		}
	}
}

int ring_create(void *map, uint32_t size, struct ring **ret)
{
	struct proto_geometry g;
	int r = proto_geometry(size, &g);
	if (r < 0) {
		return r;
	}
	struct proto_map_header *header = map;
	if (LOAD(&header->magic) != PROTO_MAP_MAGIC || LOAD(&header->size) != size) {
		return -EBADMSG;
	}
	if (LOAD(&header->major) != PROTO_MAP_MAJOR) {
		return -EPROTONOSUPPORT;
	}
	struct ring *ring = mem_zalloc(sizeof(*ring));
	if (!ring) {
		return -ENOMEM;
	}
	ring->header = header;
	ring->declarations = proto_map_declarations(map);
	ring->slots = proto_map_slots(map, &g);
	ring->chunks = proto_map_chunks(map, &g);
	ring->map = map;
	ring->g = g;
	for (uint32_t i = 0; i < g.slots; i++) {
		resume(ring, i);
	}
	sweep(ring);
	*ret = ring;
	return 0;
}

void ring_destroy(struct ring *ring)
{
	free(ring);
}

/* After the load of head: whatever a record names was published before it. */
static void read_declarations(struct ring *ring, const struct ring_sink *sink)
{
	uint32_t published = LOAD_ACQUIRE(&ring->header->declarations);
	if (published > PROTO_DECLARATIONS) {
		published = PROTO_DECLARATIONS;
	}
	while (ring->declared < published) {
		struct proto_declaration copy;
		memcpy(&copy, &ring->declarations[ring->declared], sizeof(copy));
		copy.name[sizeof(copy.name) - 1] = '\0';
		copy.category[sizeof(copy.category) - 1] = '\0';
		copy.unit[sizeof(copy.unit) - 1] = '\0';
		sink->declare(sink->ctx, ring->declared++, &copy);
	}
}

/* At the end of a chunk with records after it: goes to the next one, returns the old one. */
static bool next_chunk(struct ring *ring, uint32_t slot)
{
	struct reader *reader = &ring->reader[slot];
	uint32_t old = reader->chunk;
	uint32_t chunk = old == PROTO_NO_CHUNK ? LOAD_ACQUIRE(&ring->slots[slot].first_chunk)
					       : LOAD_ACQUIRE(&ring->chunks[old].next);
	if (!chunk_is(ring, slot, chunk, reader->tail)) {
		chunk = chunk_search(ring, slot, reader->tail);
		if (chunk == PROTO_NO_CHUNK) {
			return false;
		}
	}
	/* both states of this pair are a good checkpoint: tail ends the old one, starts the new */
	checkpoint(ring, slot);
	STORE_RELEASE(&ring->slots[slot].tail_chunk, chunk);
	reader->chunk = chunk;
	if (old != PROTO_NO_CHUNK && LOAD(&ring->chunks[old].owner) == slot + 1) {
		chunk_free(ring, old);
	}
	return true;
}

/* One load of each word: the copy can't change behind the checks. */
static void record_copy(struct proto_record *ret, const struct proto_record *from)
{
	const uint64_t *words = (const uint64_t *)from;
	uint64_t first = __atomic_load_n(words, __ATOMIC_RELAXED);
	ret->start_ns = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
	ret->value = __atomic_load_n(words + 2, __ATOMIC_RELAXED);
	ret->frame = __atomic_load_n(words + 3, __ATOMIC_RELAXED);
	memcpy(ret, &first, sizeof(first));
}

/* They are in the cache of the writer's processor. */
static void prefetch(const struct proto_record *from, uint64_t n)
{
	enum { LINE = 64 / sizeof(*from) };
	for (uint64_t i = 0; i < n; i += LINE) {
		__builtin_prefetch(from + i);
	}
}

/* A record of a slot whose writer has no release store: head may be seen before it. False: not
 * there yet. If it was not there in the last pass either, it is damaged and becomes a kind that no
 * sink knows. */
static bool record_ready(struct reader *reader, uint64_t position, struct proto_record *copy)
{
	if ((uint8_t)(copy->stage >> 8) == proto_record_check(copy, position)) {
		copy->stage &= 0xff;
		return true;
	}
	if (reader->awaited != position) {
		reader->awaited = position;
		return false;
	}
	*copy = (struct proto_record){.kind = PROTO_KIND_NONE};
	return true;
}

/* Copies n records from the reader's tail on; fewer when one is not there yet. */
static size_t read_batch(struct reader *reader, bool checked, const struct proto_record *from,
	size_t n, struct proto_record *ret)
{
	for (size_t i = 0; i < n; i++) {
		record_copy(&ret[i], from + i);
		if (checked && !record_ready(reader, reader->tail + i, &ret[i])) {
			return i;
		}
	}
	return n;
}

/* Passes n records from here on to the sink; fewer when one is not there yet, or is refused. */
static uint64_t deliver_records(struct ring *ring, uint32_t slot, const struct proto_record *from,
	uint64_t n, const struct ring_sink *sink)
{
	struct reader *reader = &ring->reader[slot];
	bool checked = LOAD(&ring->slots[slot].flags) & PROTO_SLOT_CHECKED;
	uint64_t done = 0;
	while (done < n) {
		struct proto_record batch[RING_BATCH];
		size_t wanted = n - done < RING_BATCH ? (size_t)(n - done) : RING_BATCH;
		size_t got = read_batch(reader, checked, from + done, wanted, batch);
		uint64_t left = n - done - got;
		prefetch(from + done + got, left < RING_BATCH ? left : RING_BATCH);
		size_t taken = got > 0 ? sink->records(sink->ctx, slot, batch, got) : 0;
		reader->tail += taken;
		done += taken;
		ring->refused = taken < got;
		if (taken < wanted) {
			break;
		}
	}
	return done;
}

/* The records of a slot that come next, in one chunk. */
struct turn {
	const struct proto_record *from;
	uint64_t n;
	uint64_t end_ns; /* of the first */
	uint32_t slot;
};

/* By one load of each word; whatever they say, it is only a matter of order. */
static uint64_t end_of(const struct proto_record *record)
{
	uint64_t first = LOAD((const uint64_t *)record), start_ns = LOAD(&record->start_ns);
	struct proto_record head;
	memcpy(&head, &first, sizeof(first));
	bool lasts = head.kind == PROTO_KIND_COMPLETE || head.kind == PROTO_KIND_FRAME;
	return lasts ? start_ns + LOAD(&record->value) : start_ns;
}

/* False: the slot has none, of those that it had when the pass began. */
static bool find_next(struct ring *ring, uint32_t slot, struct turn *ret)
{
	struct reader *reader = &ring->reader[slot];
	uint64_t offset = reader->tail % ring->g.chunk_records, left = reader->head - reader->tail;
	if (left == 0 || reader->damaged) {
		return false;
	}
	/* a chunk whose first record was waited for is there already */
	if ((offset == 0 && !chunk_is(ring, slot, reader->chunk, reader->tail) &&
		    !next_chunk(ring, slot)) ||
		reader->chunk == PROTO_NO_CHUNK) { /* resumed in the middle of nowhere */
		reader->damaged = true;
		return false;
	}
	uint64_t n = ring->g.chunk_records - offset;
	*ret = (struct turn){.from = proto_map_records(ring->map, &ring->g, reader->chunk) + offset,
		.n = n < left ? n : left,
		.slot = slot};
	ret->end_ns = end_of(ret->from);
	return true;
}

/* Notes how far each slot will be read in this pass. The number that have something. */
static size_t begin_pass(struct ring *ring, const struct ring_sink *sink, struct turn *ret)
{
	size_t count = 0;
	bool any = false;
	for (uint32_t i = 0; i < ring->g.slots; i++) {
		struct reader *reader = &ring->reader[i];
		uint64_t head = LOAD_ACQUIRE(&ring->slots[i].head);
		/* one that wrapped below tail is a huge difference too */
		reader->damaged |= head - reader->tail > capacity(ring);
		reader->head = reader->damaged ? reader->tail : head;
		any |= reader->head != reader->tail;
		uint32_t tid = LOAD(&ring->slots[i].tid); /* was there before its first record */
		if (tid != reader->tid && reader->head != reader->tail) {
			reader->tid = tid;
			if (sink->taken) {
				sink->taken(sink->ctx, i);
			}
		}
	}
	if (any) {
		read_declarations(ring, sink);
	}
	for (uint32_t i = 0; any && i < ring->g.slots; i++) {
		count += find_next(ring, i, &ret[count]);
	}
	return count;
}

static struct turn *oldest(struct turn *turns, size_t count)
{
	struct turn *ret = turns;
	for (size_t i = 1; i < count; i++) {
		ret = turns[i].end_ns < ret->end_ns ? &turns[i] : ret;
	}
	return ret;
}

size_t ring_drain(struct ring *ring, const struct ring_sink *sink, size_t budget, bool *more)
{
	/* first: who fills up from now on may wake us again */
	__atomic_exchange_n(&ring->header->wake, 0, __ATOMIC_ACQ_REL);
	struct turn turns[SLOTS_MAX];
	size_t done = 0, count = begin_pass(ring, sink, turns);
	ring->refused = false;
	while (count > 0 && done < budget && !ring->refused) {
		struct turn *turn = oldest(turns, count);
		size_t limit = count > 1 && budget - done > RING_TURN ? RING_TURN : budget - done;
		uint64_t n = turn->n < limit ? turn->n : limit;
		uint64_t delivered = deliver_records(ring, turn->slot, turn->from, n, sink);
		done += delivered;
		checkpoint(ring, turn->slot);
		if (delivered < n || !find_next(ring, turn->slot, turn)) {
			*turn = turns[--count];
		}
	}
	ring->waiting_ns = count > 0 ? oldest(turns, count)->end_ns : 0;
	*more = done >= budget || ring->refused;
	if (!*more) {
		read_declarations(ring, sink);
	}
	return done;
}

uint64_t ring_waiting_ns(const struct ring *ring)
{
	return ring->waiting_ns;
}

void ring_counts(const struct ring *ring, struct ring_counts *ret)
{
	*ret = (struct ring_counts){.skipped = ring->skipped};
	uint64_t dropped = LOAD(&ring->header->lost);
	for (uint32_t i = 0; i < ring->g.slots; i++) {
		const struct reader *reader = &ring->reader[i];
		struct proto_slot *slot = &ring->slots[i];
		uint64_t head = LOAD_ACQUIRE(&slot->head);
		bool plausible = !reader->damaged && head - reader->tail <= capacity(ring);
		ret->received += reader->tail;
		ret->in_ring += plausible ? head - reader->tail : 0;
		dropped += LOAD(&slot->dropped) + LOAD(&slot->dropped_busy);
		ret->threads += LOAD(&slot->state) == PROTO_SLOT_OWNED;
		ret->damaged += reader->damaged;
	}
	ret->dropped = dropped;
	ret->sent = ret->received + ret->in_ring + dropped;
}

size_t ring_open_stages(const struct ring *ring, struct ring_open *ret, size_t max)
{
	size_t count = 0;
	for (uint32_t i = 0; i < ring->g.slots; i++) {
		struct proto_slot *slot = &ring->slots[i];
		if (LOAD(&slot->state) != PROTO_SLOT_OWNED) {
			continue;
		}
		uint32_t depth = LOAD_ACQUIRE(&slot->depth);
		depth = depth < PROTO_OPEN_STAGES ? depth : PROTO_OPEN_STAGES;
		for (uint32_t d = 0; d < depth; d++) {
			struct ring_open open = {.tid = LOAD(&slot->tid)};
			open.stage.start_ns = LOAD(&slot->open[d].start_ns);
			open.stage.frame = LOAD(&slot->open[d].frame);
			open.stage.stage = LOAD(&slot->open[d].stage);
			if (open.stage.stage >= ring->declared) {
				continue;
			}
			size_t at = count;
			while (at > 0 && ret[at - 1].stage.start_ns > open.stage.start_ns) {
				at--;
			}
			if (count < max) {
				memmove(&ret[at + 1], &ret[at], (count - at) * sizeof(*ret));
				ret[at] = open;
				count++;
			} else if (at > 0) { /* full: drop the oldest */
				memmove(&ret[0], &ret[1], (at - 1) * sizeof(*ret));
				ret[at - 1] = open;
			}
		}
	}
	return count;
}

uint32_t ring_flags(const struct ring *ring)
{
	return LOAD_ACQUIRE(&ring->header->flags);
}
