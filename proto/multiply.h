/* SPDX-License-Identifier: Apache-2.0 */
/* multiply.h: multiplies two words into two. */
#pragma once

#include <stdint.h>

/* The low word. In 32-bit halves: __int128 is neither C11 nor there on 32-bit ARM. */
static inline uint64_t proto_multiply(uint64_t a, uint64_t b, uint64_t *ret_high)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t low = a0 * b0;
	uint64_t mid = a0 * b1 + (low >> 32);
	uint64_t cross = a1 * b0 + (uint32_t)mid;
	*ret_high = a1 * b1 + (mid >> 32) + (cross >> 32);
	return cross << 32 | (uint32_t)low;
}
