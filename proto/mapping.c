/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.c: computes the mapping's geometry: a fixed function of its size. */
#include "proto/mapping.h"

#include <errno.h>

_Static_assert(sizeof(struct proto_open_stage) == 24, "open stage");
_Static_assert(offsetof(struct proto_slot, open[1]) == 64, "a stage's cache line");
_Static_assert(offsetof(struct proto_slot, tail) == 448, "the reader's cache line");

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
	g.chunks_offset = g.slots_offset + g.slots * (uint32_t)sizeof(struct proto_slot);
	const uint32_t chunk_bytes = sizeof(struct proto_chunk) +
				     g.chunk_records * (uint32_t)sizeof(struct proto_record);
	/* 63: the records begin with a cache line */
	g.chunks = (size - g.chunks_offset - 63) / chunk_bytes;
	g.records_offset =
		(g.chunks_offset + g.chunks * (uint32_t)sizeof(struct proto_chunk) + 63) & ~63u;
	*ret = g;
	return 0;
}
