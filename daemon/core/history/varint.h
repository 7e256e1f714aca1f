/* SPDX-License-Identifier: Apache-2.0 */
/* varint.h: writes and reads numbers of 64 bits as LEB128, the bytes of history and archive. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { VARINT_MAX = 10 };

/* Differences, in two's complement: small ones of either sign become small numbers. */
static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static inline uint64_t unzigzag(uint64_t code)
{
	return code >> 1 ^ (code & 1 ? UINT64_MAX : 0);
}

static inline size_t varint_size(uint64_t value)
{
	size_t size = 1;
	for (; value >= 0x80; value >>= 7) {
		size++;
	}
	return size;
}

static inline uint8_t *varint_put(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7) {
		*at++ = (uint8_t)(value | 0x80);
	}
	*at++ = (uint8_t)value;
	return at;
}

/* What follows it; NULL when the varint is cut off or has more than 64 bits. */
static inline const uint8_t *varint_get(const uint8_t *at, const uint8_t *end, uint64_t *ret)
{
	if (at < end && *at < 0x80) { /* most are */
		*ret = *at;
		return at + 1;
	}
	uint64_t value = 0;
	for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
		uint8_t byte = *at++;
		if (shift == 63 && byte > 1) {
			return NULL;
		}
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return at;
		}
	}
	return NULL;
}
