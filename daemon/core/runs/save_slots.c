/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save_slots.c: writes and reads the slots of the memory that outlives the daemon. A copy is a
 * header and packed words: runs of zeros, of which histograms and young windows mostly consist,
 * take one word. Memory is believed when its checksum is right; a machine that loses power loses
 * it altogether, so nothing is synchronised.
 */
#include "daemon/core/runs/save_private.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/crc32c.h"
#include "daemon/util/runfile.h"

enum { FIRST_PAGE = 4096, PAGE = 4096 };

static const uint64_t MAGIC = UINT64_C(0x31736e7572706565);

struct save_area {
	struct runhead head;
	uint8_t used[SAVE_SLOTS]; /* bit n: copy n has pages */
};

_Static_assert(sizeof(struct save_area) <= FIRST_PAGE, "the first page holds it");

struct copy {
	uint64_t sequence, run;
	uint32_t kind, words;
	uint32_t crc; /* of the words and of what stands before it */
	uint32_t unused;
	uint64_t word[];
};

enum { COPY_WORDS = (SAVE_COPY - sizeof(struct copy)) / sizeof(uint64_t) };

size_t apps_save_size(void)
{
	return FIRST_PAGE + (size_t)SAVE_SLOTS * 2 * SAVE_COPY;
}

static size_t offset_of(size_t index, unsigned which)
{
	return FIRST_PAGE + (2 * index + which) * SAVE_COPY;
}

static struct copy *copy_of(const struct save_slots *slots, size_t index, unsigned which)
{
	char *data = slots->memory.data;
	return (struct copy *)(void *)(data + offset_of(index, which));
}

static uint32_t copy_crc(const struct copy *copy)
{
	uint32_t crc = crc32c(0, copy, offsetof(struct copy, crc));
	return crc32c(crc, copy->word, copy->words * sizeof(uint64_t));
}

static bool copy_valid(const struct copy *copy)
{
	return copy->sequence > 0 && copy->crc == copy_crc(copy);
}

static bool reserve(struct save_slots *slots, struct save_slot *slot, unsigned which, size_t length)
{
	size_t index = (size_t)(slot - slots->slot);
	length = (length + PAGE - 1) & ~(size_t)(PAGE - 1);
	if (length > slot->reserved[which]) {
		if (!slots->memory.reserve(slots->memory.ctx, offset_of(index, which), length)) {
			return false;
		}
		slot->reserved[which] = length;
		slots->area->used[index] |= (uint8_t)(1u << which);
	}
	return true;
}

static void look_at(struct save_slots *slots, size_t index)
{
	struct save_slot *slot = &slots->slot[index];
	for (unsigned which = 0; which < 2; which++) {
		if (!(slots->area->used[index] >> which & 1)) {
			continue;
		}
		const struct copy *copy = copy_of(slots, index, which);
		if (!reserve(slots, slot, which, sizeof(*copy)) || copy->words > COPY_WORDS ||
			!reserve(slots, slot, which,
				sizeof(*copy) + copy->words * sizeof(copy->word[0]))) {
			continue;
		}
		if (copy_valid(copy) && copy->sequence % 2 == which &&
			copy->sequence > slot->sequence) {
			slot->sequence = copy->sequence;
			slot->run = copy->run;
			slot->kind = (enum save_kind)copy->kind;
		}
	}
}

int save_slots_init(
	struct save_slots *slots, const struct app_save_memory *memory, const uint8_t boot_id[16])
{
	/* another build has other structures: their sizes, and the hash of the headers */
	const uint32_t shape[] = {sizeof(struct stage), sizeof(struct frames),
		sizeof(struct proto_histogram), sizeof(struct saved_app), sizeof(struct stage_cpu),
		(uint32_t)sizeof(struct app_attributes) ^ saved_layout};
	const struct runhead head = runhead_of(MAGIC, memory->size, shape, RUNHEAD_SHAPES, boot_id);
	if (memory->size < apps_save_size()) {
		return -EINVAL;
	}
	if (!memory->reserve(memory->ctx, 0, FIRST_PAGE)) {
		return -ENOSPC;
	}
	slots->memory = *memory;
	slots->area = memory->data;
	if (runhead_look(slots->area, &head) != RUNHEAD_OURS) {
		runhead_clear(slots->area);
		memset(slots->area->used, 0, sizeof(slots->area->used));
		runhead_write(slots->area, &head);
		return 0;
	}
	for (size_t i = 0; i < SAVE_SLOTS; i++) {
		look_at(slots, i);
	}
	return 0;
}

struct save_slot *save_slot_of(struct save_slots *slots, const void *owner, enum save_kind kind)
{
	struct save_slot *vacant = NULL;
	for (size_t i = 0; i < SAVE_SLOTS; i++) {
		struct save_slot *slot = &slots->slot[i];
		if (slot->owner == owner) {
			return slot;
		}
		if (!slot->owner &&
			(!vacant || (slot->kind == SAVE_NOTHING && vacant->kind != SAVE_NOTHING))) {
			vacant = slot; /* one that nobody claimed yet only when no other is free */
		}
	}
	if (vacant) {
		vacant->owner = owner;
		vacant->kind = kind;
		vacant->mark = UINT64_MAX;
	}
	return vacant;
}

void save_slot_free(struct save_slots *slots, struct save_slot *slot)
{
	size_t index = (size_t)(slot - slots->slot);
	for (unsigned which = 0; which < 2; which++) {
		if (slot->reserved[which] > 0) {
			copy_of(slots, index, which)->sequence = 0;
		}
	}
	slot->owner = NULL;
	slot->kind = SAVE_NOTHING;
}

/* Appends the packed words: a word of counts (zeros above, literals below), then the literals.
 * Where it ends; NULL: out of space. */
static uint64_t *pack(uint64_t *to, const uint64_t *end, const struct save_segment *segment)
{
	const uint64_t *from = segment->data;
	const uint64_t *last = from + segment->bytes / sizeof(*from);
	while (from < last) {
		const uint64_t *zeros = from;
		while (from < last && *from == 0) {
			from++;
		}
		const uint64_t *literals = from;
		while (from < last && *from != 0) {
			from++;
		}
		size_t count = (size_t)(from - literals);
		if ((size_t)(end - to) < count + 1) {
			return NULL;
		}
		*to++ = (uint64_t)(literals - zeros) << 32 | count;
		memcpy(to, literals, count * sizeof(*to));
		to += count;
	}
	return to;
}

bool save_slot_write(
	struct save_slots *slots, struct save_slot *slot, const struct save_object *object)
{
	uint64_t *const scratch = slots->scratch, *to = scratch;
	for (size_t i = 0; to && i < object->count; i++) {
		to = pack(to, scratch + COPY_WORDS, &object->segment[i]);
	}
	unsigned which = (slot->sequence + 1) % 2;
	size_t words = to ? (size_t)(to - scratch) : 0;
	if (!to || !reserve(slots, slot, which, sizeof(struct copy) + words * sizeof(*to))) {
		return false;
	}
	struct copy *copy = copy_of(slots, (size_t)(slot - slots->slot), which);
	struct copy head = {.sequence = slot->sequence + 1,
		.run = slot->run,
		.kind = slot->kind,
		.words = (uint32_t)words};
	uint32_t crc = crc32c(0, &head, offsetof(struct copy, crc));
	head.crc = crc32c(crc, scratch, words * sizeof(*to));
	head.sequence = 0; /* until all of it is there */
	*copy = head;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(copy->word, scratch, words * sizeof(*to));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	copy->sequence = ++slot->sequence;
	return true;
}

void save_slot_read(
	const struct save_slots *slots, const struct save_slot *slot, struct save_reader *ret)
{
	const struct copy *copy = copy_of(slots, (size_t)(slot - slots->slot), slot->sequence % 2);
	*ret = (struct save_reader){copy->word, copy->word + copy->words};
}

bool save_read(struct save_reader *reader, void *data, size_t bytes)
{
	uint64_t *to = data;
	size_t left = bytes / sizeof(*to);
	memset(data, 0, bytes);
	while (left > 0) {
		if (reader->at == reader->end) {
			return false;
		}
		size_t zeros = (size_t)(*reader->at >> 32), count = (uint32_t)*reader->at;
		reader->at++;
		if (zeros > left || count > left - zeros ||
			count > (size_t)(reader->end - reader->at)) {
			return false;
		}
		memcpy(to + zeros, reader->at, count * sizeof(*to));
		reader->at += count;
		to += zeros + count;
		left -= zeros + count;
	}
	return true;
}
