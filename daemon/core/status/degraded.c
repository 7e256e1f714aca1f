/* SPDX-License-Identifier: Apache-2.0 */
/* degraded.c: adds to and removes from the short list of degraded files, one row per file. */
#include "daemon/core/status/degraded.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t find(const struct degraded *degraded, const char *file)
{
	size_t at = 0;
	while (at < degraded->count && strcmp(degraded->row[at].file, file) != 0) {
		at++;
	}
	return at;
}

bool degraded_add(struct degraded *degraded, const char *file, const char *format, ...)
{
	size_t at = degraded ? find(degraded, file) : 0;
	if (!degraded || at == DEGRADED_MAX || at < degraded->count) {
		return !degraded;
	}
	degraded->count++;
	snprintf(degraded->row[at].file, sizeof(degraded->row[at].file), "%s", file);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(degraded->row[at].reason, DEGRADED_REASON, format, arguments);
	va_end(arguments);
	return true;
}

void degraded_drop(struct degraded *degraded, const char *file)
{
	size_t at = find(degraded, file);
	if (at < degraded->count) {
		degraded->row[at] = degraded->row[--degraded->count];
	}
}
