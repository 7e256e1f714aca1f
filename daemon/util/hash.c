/* hash.c: keys SipHash with what the kernel gives each program for its stack protector, so that no
 * system call is made. */
#include "daemon/util/hash.h"

#include <string.h>
#include <sys/auxv.h>

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
