/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c: computes CRC-32C, four bytes a step, with tables of the reflected polynomial
 * 0x82f63b78. Bytes are joined by shifts, so that host byte order does not matter. */
#include "daemon/util/crc32c.h"

/* table[n] has the remainders of each byte, followed by n bytes of zero. */
static uint32_t table[4][256];

/* Before main(), with one thread; the file would have 4 KiB of it. */
static __attribute__((constructor)) void make_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t remainder = byte;
		for (int bit = 0; bit < 8; bit++) {
			remainder = remainder >> 1 ^ (remainder & 1 ? UINT32_C(0x82f63b78) : 0);
		}
		table[0][byte] = remainder;
	}
	for (int zeros = 1; zeros < 4; zeros++) {
		for (int byte = 0; byte < 256; byte++) {
			uint32_t before = table[zeros - 1][byte];
			table[zeros][byte] = before >> 8 ^ table[0][before & 0xff];
		}
	}
}

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
