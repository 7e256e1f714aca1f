/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted writer of a mapping for tests: the rules of proto/mapping.h in their plainest form,
 * written without a look at the library so that it can be an oracle. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/mapping.h"

struct writer {
	void *map;
	struct proto_geometry g;
	struct proto_map_header *header;
	struct proto_slot *slots;
	uint64_t head[64];
	uint32_t chunk[64];
};

static inline void writer_init(struct writer *w, void *map, uint32_t size)
{
	memset(w, 0, sizeof(*w));
	w->map = map;
	if (proto_geometry(size, &w->g) < 0) {
		abort();
	}
	w->header = map;
	w->header->magic = PROTO_MAP_MAGIC;
	w->header->major = PROTO_MAP_MAJOR;
	w->header->size = size;
	w->slots = proto_map_slots(map, &w->g);
	for (uint32_t i = 0; i < w->g.slots; i++) {
		w->slots[i].first_chunk = w->slots[i].tail_chunk = PROTO_NO_CHUNK;
		w->chunk[i] = PROTO_NO_CHUNK;
	}
	for (uint32_t i = 0; i < w->g.chunks; i++) {
		proto_map_chunks(map, &w->g)[i].base = PROTO_NO_BASE;
		proto_map_chunks(map, &w->g)[i].next = PROTO_NO_CHUNK;
	}
}

static inline void writer_declare(struct writer *w, const char *name, uint64_t deadline_ns)
{
	struct proto_declaration *d = &proto_map_declarations(w->map)[w->header->declarations];
	strncpy(d->name, name, sizeof(d->name) - 1);
	d->deadline_ns = deadline_ns;
	__atomic_store_n(&w->header->declarations, w->header->declarations + 1, __ATOMIC_RELEASE);
}

/* False: no free chunk, counted in dropped. */
static inline bool writer_put(struct writer *w, uint32_t slot, const struct proto_record *record)
{
	struct proto_chunk *chunks = proto_map_chunks(w->map, &w->g);
	struct proto_slot *s = &w->slots[slot];
	s->state = PROTO_SLOT_OWNED;
	uint64_t offset = w->head[slot] % w->g.chunk_records;
	if (offset == 0) {
		uint32_t taken = PROTO_NO_CHUNK;
		for (uint32_t i = 0; i < w->g.chunks && taken == PROTO_NO_CHUNK; i++) {
			uint32_t none = 0;
			if (__atomic_compare_exchange_n(&chunks[i].owner, &none, slot + 1, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
				taken = i;
			}
		}
		if (taken == PROTO_NO_CHUNK) {
			__atomic_store_n(&s->dropped, s->dropped + 1, __ATOMIC_RELAXED);
			return false;
		}
		chunks[taken].next = PROTO_NO_CHUNK;
		__atomic_store_n(&chunks[taken].base, w->head[slot], __ATOMIC_RELEASE);
		uint32_t *link = w->chunk[slot] == PROTO_NO_CHUNK ? &s->first_chunk
								  : &chunks[w->chunk[slot]].next;
		__atomic_store_n(link, taken, __ATOMIC_RELEASE);
		w->chunk[slot] = taken;
	}
	proto_map_records(w->map, &w->g, w->chunk[slot])[offset] = *record;
	__atomic_store_n(&s->head, ++w->head[slot], __ATOMIC_RELEASE);
	return true;
}
