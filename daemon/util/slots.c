/* Which places are in use is told by a bitmap in the header, so that a start touches the pages of
 * records only, not the whole table. The process may be killed between any two stores; a machine
 * that loses power loses the run directory with it, so nothing is ever synchronised. */
#include "daemon/util/slots.h"

#include <errno.h>
#include <string.h>

#include "daemon/util/runhead.h"

enum { WORD_BITS = 64, WORDS = KEEP_PLACES_MAX / WORD_BITS };

#define KEEP_MAGIC UINT64_C(0x327065656b7065) /* "epkeep2" */

struct keep_header {
	struct runhead head;
	uint64_t note;
	uint64_t used[WORDS];
};

struct place {
	uint64_t serial;
	uint64_t hash; /* of serial, length and bytes */
	uint64_t length;
	unsigned char bytes[];
};

size_t keep_size(unsigned count, size_t place_size)
{
	return sizeof(struct keep_header) + count * place_size;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t length)
{
	const unsigned char *bytes = data;
	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211); /* FNV-1a */
	}
	return hash;
}

static uint64_t place_hash(const struct place *place)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	hash = hash_bytes(hash, &place->serial, sizeof(place->serial));
	hash = hash_bytes(hash, &place->length, sizeof(place->length));
	return hash_bytes(hash, place->bytes, (size_t)place->length);
}

static struct place *place_at(const struct keep *keep, unsigned index)
{
	return (struct place *)(void *)(keep->places + index * keep->place_size);
}

static bool is_used(const struct keep *keep, unsigned index)
{
	return keep->header->used[index / WORD_BITS] >> index % WORD_BITS & 1;
}

static void set_used(struct keep *keep, unsigned index, bool used)
{
	uint64_t *word = &keep->header->used[index / WORD_BITS];
	uint64_t bit = UINT64_C(1) << index % WORD_BITS;
	__atomic_store_n(word, used ? *word | bit : *word & ~bit, __ATOMIC_RELEASE);
}

static bool place_valid(const struct keep *keep, const struct place *place)
{
	return place->serial > 0 && place->serial < UINT64_MAX &&
	       place->length <= keep->place_size - sizeof(*place) &&
	       place->hash == place_hash(place);
}

unsigned keep_init(struct keep *keep, void *memory, unsigned count, size_t place_size)
{
	struct keep_header *header = memory;
	*keep = (struct keep){.header = header,
		.places = (unsigned char *)memory + sizeof(*header),
		.place_size = place_size,
		.count = count,
		.next_serial = 1};
	static const uint8_t any_boot[16];
	const uint32_t shape[] = {(uint32_t)place_size, count};
	const struct runhead wanted =
		runhead_of(KEEP_MAGIC, 0, shape, 2, any_boot); /* one part of a file */
	const enum runhead_found found = runhead_look(memory, &wanted);
	if (found != RUNHEAD_OURS) {
		keep->damaged = found == RUNHEAD_DAMAGED;
		runhead_clear(memory);
		*header = (struct keep_header){.note = 0};
		runhead_write(memory, &wanted);
		return 0;
	}
	unsigned damaged = 0;
	for (unsigned i = 0; i < KEEP_PLACES_MAX; i++) {
		if (!is_used(keep, i)) {
			continue;
		}
		if (i >= count || !place_valid(keep, place_at(keep, i))) {
			set_used(keep, i, false);
			damaged++;
		} else if (place_at(keep, i)->serial >= keep->next_serial) {
			keep->next_serial = place_at(keep, i)->serial + 1;
		}
	}
	keep->damaged = damaged;
	return damaged;
}

static int free_place(const struct keep *keep)
{
	for (unsigned i = 0; i < keep->count; i++) {
		if (!is_used(keep, i)) {
			return (int)i;
		}
	}
	return KEEP_NONE;
}

int keep_add(struct keep *keep, const struct keep_part *parts, size_t count)
{
	size_t length = 0;
	for (size_t i = 0; i < count; i++) {
		length += parts[i].length;
	}
	int index = keep->header ? free_place(keep) : KEEP_NONE;
	if (index == KEEP_NONE || length > keep->place_size - sizeof(struct place)) {
		return -ENOSPC;
	}
	struct place *place = place_at(keep, (unsigned)index);
	place->serial = keep->next_serial++;
	place->length = length;
	unsigned char *to = place->bytes;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].length > 0) {
			memcpy(to, parts[i].bytes, parts[i].length);
			to += parts[i].length;
		}
	}
	place->hash = place_hash(place);
	set_used(keep, (unsigned)index, true);
	return index;
}

void keep_free(struct keep *keep, int place)
{
	if (place >= 0 && keep->header) {
		set_used(keep, (unsigned)place, false);
	}
}

int keep_next(const struct keep *keep, uint64_t *serial)
{
	int next = KEEP_NONE;
	uint64_t lowest = UINT64_MAX;
	for (unsigned i = 0; keep->header && i < keep->count; i++) {
		if (!is_used(keep, i)) {
			continue;
		}
		uint64_t one = place_at(keep, i)->serial;
		if (one > *serial && one < lowest) {
			lowest = one;
			next = (int)i;
		}
	}
	if (next != KEEP_NONE) {
		*serial = lowest;
	}
	return next;
}

const void *keep_bytes(const struct keep *keep, int place, size_t *length)
{
	const struct place *at = place_at(keep, (unsigned)place);
	*length = (size_t)at->length;
	return at->bytes;
}

uint64_t keep_note(const struct keep *keep)
{
	return keep->header ? keep->header->note : 0;
}

void keep_set_note(struct keep *keep, uint64_t note)
{
	if (keep->header) {
		keep->header->note = note;
	}
}
