/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c: keeps the table. A bitmap in the header says which slots are used, so that a start
 * touches the pages of their records only, not those of the complete table. The process may be
 * killed between any two stores; a machine that loses power loses the run directory as well, so
 * nothing is ever synchronised. */
#include "daemon/util/slots.h"

#include <errno.h>
#include <string.h>

#include "daemon/util/runfile.h"
#include "proto/fnv.h"

enum { WORD_BITS = 64, WORDS = SLOTS_MAX / WORD_BITS };

#define SLOTS_MAGIC UINT64_C(0x327065656b7065) /* "epkeep2" */

struct slots_header {
	struct runhead head;
	uint64_t note;
	uint64_t used[WORDS];
};

struct slot {
	uint64_t serial;
	uint64_t hash; /* of serial, length and bytes */
	uint64_t length;
	unsigned char bytes[];
};

size_t slots_size(unsigned count, size_t slot_size)
{
	return sizeof(struct slots_header) + count * slot_size;
}

static uint64_t slot_hash(const struct slot *slot)
{
	uint64_t hash = fnv64(FNV64_BASIS, &slot->serial, sizeof(slot->serial));
	hash = fnv64(hash, &slot->length, sizeof(slot->length));
	return fnv64(hash, slot->bytes, (size_t)slot->length);
}

static struct slot *slot_at(const struct slots *slots, unsigned index)
{
	return (struct slot *)(void *)(slots->memory + index * slots->slot_size);
}

static bool is_used(const struct slots *slots, unsigned index)
{
	return slots->header->used[index / WORD_BITS] >> index % WORD_BITS & 1;
}

static void set_used(struct slots *slots, unsigned index, bool used)
{
	uint64_t *word = &slots->header->used[index / WORD_BITS];
	uint64_t bit = UINT64_C(1) << index % WORD_BITS;
	__atomic_store_n(word, used ? *word | bit : *word & ~bit, __ATOMIC_RELEASE);
}

static bool slot_valid(const struct slots *slots, const struct slot *slot)
{
	return slot->serial > 0 && slot->serial < UINT64_MAX &&
	       slot->length <= slots->slot_size - sizeof(*slot) && slot->hash == slot_hash(slot);
}

unsigned slots_init(struct slots *slots, void *memory, unsigned count, size_t slot_size)
{
	struct slots_header *header = memory;
	*slots = (struct slots){.header = header,
		.memory = (unsigned char *)memory + sizeof(*header),
		.slot_size = slot_size,
		.count = count,
		.next_serial = 1};
	static const uint8_t any_boot[16];
	const uint32_t shape[] = {(uint32_t)slot_size, count};
	const struct runhead wanted =
		runhead_of(SLOTS_MAGIC, 0, shape, 2, any_boot); /* one part of a file */
	const enum runhead_found found = runhead_look(memory, &wanted);
	if (found != RUNHEAD_OURS) {
		slots->damaged = found == RUNHEAD_DAMAGED;
		runhead_clear(memory);
		*header = (struct slots_header){.note = 0};
		runhead_write(memory, &wanted);
		return 0;
	}
	unsigned damaged = 0;
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		if (!is_used(slots, i)) {
			continue;
		}
		if (i >= count || !slot_valid(slots, slot_at(slots, i))) {
			set_used(slots, i, false);
			damaged++;
		} else if (slot_at(slots, i)->serial >= slots->next_serial) {
			slots->next_serial = slot_at(slots, i)->serial + 1;
		}
	}
	slots->damaged = damaged;
	return damaged;
}

static int free_slot(const struct slots *slots)
{
	for (unsigned i = 0; i < slots->count; i++) {
		if (!is_used(slots, i)) {
			return (int)i;
		}
	}
	return SLOT_NONE;
}

int slots_add(struct slots *slots, const struct slots_part *parts, size_t count)
{
	size_t length = 0;
	for (size_t i = 0; i < count; i++) {
		length += parts[i].length;
	}
	int index = slots->header ? free_slot(slots) : SLOT_NONE;
	if (index == SLOT_NONE || length > slots->slot_size - sizeof(struct slot)) {
		return -ENOSPC;
	}
	struct slot *slot = slot_at(slots, (unsigned)index);
	slot->serial = slots->next_serial++;
	slot->length = length;
	unsigned char *to = slot->bytes;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].length > 0) {
			memcpy(to, parts[i].bytes, parts[i].length);
			to += parts[i].length;
		}
	}
	slot->hash = slot_hash(slot);
	set_used(slots, (unsigned)index, true);
	return index;
}

void slots_remove(struct slots *slots, int slot)
{
	if (slot >= 0 && slots->header) {
		set_used(slots, (unsigned)slot, false);
	}
}

int slots_next(const struct slots *slots, uint64_t *serial)
{
	int next = SLOT_NONE;
	uint64_t lowest = UINT64_MAX;
	for (unsigned i = 0; slots->header && i < slots->count; i++) {
		if (!is_used(slots, i)) {
			continue;
		}
		uint64_t one = slot_at(slots, i)->serial;
		if (one > *serial && one < lowest) {
			lowest = one;
			next = (int)i;
		}
	}
	if (next != SLOT_NONE) {
		*serial = lowest;
	}
	return next;
}

const void *slots_bytes(const struct slots *slots, int slot, size_t *length)
{
	const struct slot *at = slot_at(slots, (unsigned)slot);
	*length = (size_t)at->length;
	return at->bytes;
}

uint64_t slots_note(const struct slots *slots)
{
	return slots->header ? slots->header->note : 0;
}

void slots_set_note(struct slots *slots, uint64_t note)
{
	if (slots->header) {
		slots->header->note = note;
	}
}
