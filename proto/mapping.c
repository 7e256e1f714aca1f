/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.c: computes the mapping's geometry: a fixed function of its size. */
#include "proto/mapping.h"

#include <errno.h>

_Static_assert(sizeof(struct proto_open_stage) == 24, "open stage");
_Static_assert(offsetof(struct proto_slot, tail) == 64, "the reader's cache line");
_Static_assert(offsetof(struct proto_slot, open) == 128, "open stages");

enum { SLOTS_MAX = 64 };

int proto_geometry(uint32_t size, struct proto_geometry *ret)
{
	if (size < PROTO_MAP_MIN_SIZE || size > PROTO_MAP_MAX_SIZE || (size & (size - 1)) != 0) {
		return -EINVAL;
	}
	const uint32_t pages = size / 4096;
	struct proto_geometry g = {
		.size = size,
		.slots = pages < SLOTS_MAX ? pages : SLOTS_MAX,
		.chunk_records = pages,
	};
	g.slots_offset = (uint32_t)PROTO_MAP_DECLARATIONS +
			 PROTO_DECLARATIONS * (uint32_t)sizeof(struct proto_declaration);
	uint32_t tables = g.slots_offset + g.slots * (uint32_t)sizeof(struct proto_slot);
	uint32_t chunk_bytes = g.chunk_records * (uint32_t)sizeof(struct proto_record);
	/* a chunk costs its records and 16 bytes of tables; 192 pads three tables to cache lines */
	g.chunks = (size - tables - 192) / (chunk_bytes + 16);
	g.owner_offset = tables;
	g.next_offset = (g.owner_offset + 4 * g.chunks + 63) & ~63u;
	g.base_offset = (g.next_offset + 4 * g.chunks + 63) & ~63u;
	g.records_offset = (g.base_offset + 8 * g.chunks + 63) & ~63u;
	*ret = g;
	return 0;
}
