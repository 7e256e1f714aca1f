/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h: finds a slot of the owner's table by its key, in constant time: open addressing with
 * linear probes, at most half full, no tombstones. The owner keeps the keys; a hash only says where
 * to look and each hit is compared in full.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_cell {
	uint32_t hash, slot; /* slot INDEX_NONE: the cell is free */
};

/* Zeroed = empty, without memory. */
struct index {
	struct index_cell *cell;
	size_t size; /* a power of two, or 0 */
	size_t count;
};

/* Whether the slot's key is this one. */
typedef bool index_equal(const void *table, uint32_t slot, const void *key);

/* Reserves capacity: index_add() cannot fail up to count. -ENOMEM leaves it unchanged. */
int index_reserve(struct index *index, size_t count);
void index_finish(struct index *index);

/* The slot with this hash whose key equal() confirms; INDEX_NONE when there is none. */
uint32_t index_find(const struct index *index, uint32_t hash, index_equal *equal, const void *table,
	const void *key);
/* The caller has checked that the slot is not in it. -ENOMEM. */
int index_add(struct index *index, uint32_t hash, uint32_t slot);
/* Removes the slot; does nothing when it is not there. */
void index_remove(struct index *index, uint32_t hash, uint32_t slot);

/* SipHash-1-3 with a key of this process, for keys that a peer may choose: the same bytes have the
 * same hash within one process, and nobody outside can aim for a bucket. */
uint32_t hash_bytes(const void *bytes, size_t size);
uint32_t hash_text(const char *text);
