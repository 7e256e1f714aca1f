/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_text.h: reads the small texts that the kernel writes: numbers, "Key: N kB" lines, lists of
 * CPUs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Skips blanks and reads one unsigned number; *cursor moves behind it. False when there is none or
 * it does not fit (nothing moves). */
bool kernel_u64(const char **cursor, uint64_t *ret);

/* Where the first line that starts with key goes on behind it; NULL when there is none. */
const char *kernel_line(const char *text, const char *key);

/* "  123 kB" in bytes. 0 or -EBADMSG. */
int kernel_kib(const char *p, double *ret);

/* "Key:   123 kB" in bytes. 0; -ENODATA without such a line, -EBADMSG for another value. */
int kernel_bytes(const char *text, const char *key, double *ret);

/* Sets the bits of "0-3,6" or "0 1 2 6"; numbers past the bits are skipped. The bits are cleared
 * first. 0 or -EBADMSG (the bits are what was read so far). */
int kernel_cpu_list(const char *text, uint64_t *bits, size_t count);

static inline bool cpu_list_has(const uint64_t *bits, size_t index)
{
	return bits[index / 64] >> (index % 64) & 1;
}
