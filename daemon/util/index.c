/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: implements the daemon's one hash table, and its hash. Hashes are stored next to the
 * slots, so that growing and removing do not need the owner. SipHash is keyed with what the kernel
 * gives each program for its stack protector, so that no system call is made. */
#include "daemon/util/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "daemon/util/sysops.h"

enum { FIRST_SIZE = 16 };

struct state {
	uint64_t a, b, c, d;
};

static uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(struct state *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = rotate_left(s->b, 13) ^ s->a;
	s->d = rotate_left(s->d, 16) ^ s->c;
	s->a = rotate_left(s->a, 32);
	s->c += s->b;
	s->a += s->d;
	s->b = rotate_left(s->b, 17) ^ s->c;
	s->d = rotate_left(s->d, 21) ^ s->a;
	s->c = rotate_left(s->c, 32);
}

static void absorb(struct state *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

uint32_t hash_bytes(const void *bytes, size_t size)
{
	uint64_t key[2] = {0, 0};
	const void *random = (const void *)getauxval(AT_RANDOM);
	if (random) {
		memcpy(key, random, sizeof(key));
	}
	struct state s = {key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d), key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573)};
	const unsigned char *at = bytes;
	size_t left = size;
	for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, at, sizeof(word));
		absorb(&s, word);
	}
	uint64_t last = 0;
	memcpy(&last, at, left);
	absorb(&s, last | (uint64_t)size << 56);
	s.c ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	uint64_t sum = s.a ^ s.b ^ s.c ^ s.d;
	return (uint32_t)(sum ^ sum >> 32);
}

uint32_t hash_text(const char *text)
{
	return hash_bytes(text, strlen(text));
}

static size_t home_of(const struct index *index, uint32_t hash)
{
	return hash & (index->size - 1);
}

static size_t after(const struct index *index, size_t at)
{
	return (at + 1) & (index->size - 1);
}

static void put(struct index *index, struct index_cell cell)
{
	size_t at = home_of(index, cell.hash);
	while (index->cell[at].slot != INDEX_NONE) {
		at = after(index, at);
	}
	index->cell[at] = cell;
}

int index_reserve(struct index *index, size_t count)
{
	size_t size = index->size > 0 ? index->size : FIRST_SIZE;
	while (size < 2 * count) {
		size *= 2;
	}
	if (size == index->size) {
		return 0;
	}
	struct index wider = {.size = size, .count = index->count};
	wider.cell = mem_calloc(size, sizeof(*wider.cell));
	if (!wider.cell) {
		return -ENOMEM;
	}
	memset(wider.cell, 0xff, size * sizeof(*wider.cell));
	for (size_t i = 0; i < index->size; i++) {
		if (index->cell[i].slot != INDEX_NONE) {
			put(&wider, index->cell[i]);
		}
	}
	free(index->cell);
	*index = wider;
	return 0;
}

void index_finish(struct index *index)
{
	free(index->cell);
	*index = (struct index){0};
}

uint32_t index_find(const struct index *index, uint32_t hash, index_equal *equal, const void *table,
	const void *key)
{
	if (index->count == 0) {
		return INDEX_NONE;
	}
	size_t at = home_of(index, hash);
	for (; index->cell[at].slot != INDEX_NONE; at = after(index, at)) {
		const struct index_cell *cell = &index->cell[at];
		if (cell->hash == hash && equal(table, cell->slot, key)) {
			return cell->slot;
		}
	}
	return INDEX_NONE;
}

int index_add(struct index *index, uint32_t hash, uint32_t slot)
{
	int r = index_reserve(index, index->count + 1);
	if (r < 0) {
		return r;
	}
	put(index, (struct index_cell){hash, slot});
	index->count++;
	return 0;
}

/* What was pushed past the hole moves back into it, so that no probe ends too early. */
static void close_hole(struct index *index, size_t hole)
{
	size_t mask = index->size - 1;
	for (size_t at = after(index, hole); index->cell[at].slot != INDEX_NONE;
		at = after(index, at)) {
		size_t home = home_of(index, index->cell[at].hash);
		if (((at - home) & mask) >= ((at - hole) & mask)) {
			index->cell[hole] = index->cell[at];
			hole = at;
		}
	}
	index->cell[hole].slot = INDEX_NONE;
}

void index_remove(struct index *index, uint32_t hash, uint32_t slot)
{
	if (index->count == 0) {
		return;
	}
	size_t at = home_of(index, hash);
	while (index->cell[at].slot != INDEX_NONE && index->cell[at].slot != slot) {
		at = after(index, at);
	}
	if (index->cell[at].slot == slot) {
		close_hole(index, at);
		index->count--;
	}
}
