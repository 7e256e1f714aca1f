/* The key is what the kernel gives each program for its stack protector: no system call is made. */
#include "daemon/util/hash.h"

#include <string.h>
#include <sys/auxv.h>

struct state {
	uint64_t a, b, c, d;
};

static uint64_t turned(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void stir(struct state *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = turned(s->b, 13) ^ s->a;
	s->d = turned(s->d, 16) ^ s->c;
	s->a = turned(s->a, 32);
	s->c += s->b;
	s->a += s->d;
	s->b = turned(s->b, 17) ^ s->c;
	s->d = turned(s->d, 21) ^ s->a;
	s->c = turned(s->c, 32);
}

static void take(struct state *s, uint64_t word)
{
	s->d ^= word;
	stir(s);
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
		take(&s, word);
	}
	uint64_t last = 0;
	memcpy(&last, at, left);
	take(&s, last | (uint64_t)size << 56);
	s.c ^= 0xff;
	stir(&s);
	stir(&s);
	stir(&s);
	uint64_t sum = s.a ^ s.b ^ s.c ^ s.d;
	return (uint32_t)(sum ^ sum >> 32);
}

uint32_t hash_text(const char *text)
{
	return hash_bytes(text, strlen(text));
}
