/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c: computes CRC-32C, four bytes a step, with tables of the reflected polynomial
 * 0x82f63b78: table[0] holds the remainder of one byte, table[k] that of a byte followed by k zero
 * bytes. A remainder is linear in the bits of its byte, so the compiler makes 256 entries of 8
 * constants. Bytes are joined by shifts, so that host byte order does not matter. */
#include "daemon/util/crc32c.h"

#define BIT(i, b, remainder) ((i) >> (b)&1 ? UINT32_C(remainder) : 0)
#define ENTRY0(i)                                                                       \
	(BIT(i, 0, 0xf26b8303) ^ BIT(i, 1, 0xe13b70f7) ^ BIT(i, 2, 0xc79a971f) ^        \
		BIT(i, 3, 0x8ad958cf) ^ BIT(i, 4, 0x105ec76f) ^ BIT(i, 5, 0x20bd8ede) ^ \
		BIT(i, 6, 0x417b1dbc) ^ BIT(i, 7, 0x82f63b78))
#define ENTRY1(i)                                                                       \
	(BIT(i, 0, 0x13a29877) ^ BIT(i, 1, 0x274530ee) ^ BIT(i, 2, 0x4e8a61dc) ^        \
		BIT(i, 3, 0x9d14c3b8) ^ BIT(i, 4, 0x3fc5f181) ^ BIT(i, 5, 0x7f8be302) ^ \
		BIT(i, 6, 0xff17c604) ^ BIT(i, 7, 0xfbc3faf9))
#define ENTRY2(i)                                                                       \
	(BIT(i, 0, 0xa541927e) ^ BIT(i, 1, 0x4f6f520d) ^ BIT(i, 2, 0x9edea41a) ^        \
		BIT(i, 3, 0x38513ec5) ^ BIT(i, 4, 0x70a27d8a) ^ BIT(i, 5, 0xe144fb14) ^ \
		BIT(i, 6, 0xc76580d9) ^ BIT(i, 7, 0x8b277743))
#define ENTRY3(i)                                                                       \
	(BIT(i, 0, 0xdd45aab8) ^ BIT(i, 1, 0xbf672381) ^ BIT(i, 2, 0x7b2231f3) ^        \
		BIT(i, 3, 0xf64463e6) ^ BIT(i, 4, 0xe964b13d) ^ BIT(i, 5, 0xd725148b) ^ \
		BIT(i, 6, 0xaba65fe7) ^ BIT(i, 7, 0x52a0c93f))
#define FOUR(entry, i) entry(i), entry((i) + 1), entry((i) + 2), entry((i) + 3)
#define SIXTEEN(entry, i) \
	FOUR(entry, i), FOUR(entry, (i) + 4), FOUR(entry, (i) + 8), FOUR(entry, (i) + 12)
#define SIXTY_FOUR(entry, i)                                                   \
	SIXTEEN(entry, i), SIXTEEN(entry, (i) + 16), SIXTEEN(entry, (i) + 32), \
		SIXTEEN(entry, (i) + 48)
#define TABLE(entry)                                                                 \
	{                                                                            \
		SIXTY_FOUR(entry, 0), SIXTY_FOUR(entry, 64), SIXTY_FOUR(entry, 128), \
			SIXTY_FOUR(entry, 192)                                       \
	}

static const uint32_t table[4][256] = {TABLE(ENTRY0), TABLE(ENTRY1), TABLE(ENTRY2), TABLE(ENTRY3)};

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	crc = ~crc;
	for (; size >= 4; size -= 4, at += 4) {
		crc ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
		       (uint32_t)at[3] << 24;
		crc = table[3][crc & 0xff] ^ table[2][crc >> 8 & 0xff] ^
		      table[1][crc >> 16 & 0xff] ^ table[0][crc >> 24];
	}
	for (; size > 0; size--, at++) {
		crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
	}
	return ~crc;
}
