/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_text.c: reads numbers out of texts that the kernel writes. Those are regular, but a
 * fixture, a vendor driver or a short read may hold anything: every reader here stops at the first
 * byte that does not fit. */
#include "daemon/collect/lib/kernel_text.h"

#include <errno.h>
#include <string.h>

bool kernel_u64(const char **cursor, uint64_t *ret)
{
	const char *p = *cursor;
	for (; *p == ' ' || *p == '\t'; p++) {
	}
	if (*p < '0' || *p > '9') {
		return false;
	}
	uint64_t value = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value)) {
			return false;
		}
	}
	*cursor = p;
	*ret = value;
	return true;
}

const char *kernel_line(const char *text, const char *key)
{
	size_t length = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line == *key && strncmp(line, key, length) == 0) {
			return line + length;
		}
	}
	return NULL;
}

int kernel_kib(const char *p, double *ret)
{
	uint64_t kib;
	if (!kernel_u64(&p, &kib)) {
		return -EBADMSG;
	}
	p += strspn(p, " \t");
	/* Without the unit and the line's end it may be the head of a longer number. */
	if (strncmp(p, "kB", 2) != 0) {
		return -EBADMSG;
	}
	*ret = (double)kib * 1024;
	return 0;
}

int kernel_bytes(const char *text, const char *key, double *ret)
{
	const char *p = kernel_line(text, key);
	return p ? kernel_kib(p, ret) : -ENODATA;
}

int kernel_cpu_list(const char *text, uint64_t *bits, size_t count)
{
	memset(bits, 0, (count + 63) / 64 * sizeof(bits[0]));
	const char *p = text;
	for (;;) {
		p += strspn(p, " ,\n");
		if (*p == '\0') {
			return 0;
		}
		uint64_t first, last;
		if (!kernel_u64(&p, &first)) {
			return -EBADMSG;
		}
		last = first;
		if (*p == '-') {
			p++;
			if (!kernel_u64(&p, &last)) {
				return -EBADMSG;
			}
		}
		for (uint64_t i = first; i <= last && i < count; i++) {
			bits[i / 64] |= UINT64_C(1) << (i % 64);
		}
	}
}
