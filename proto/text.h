/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: appends to strings in a buffer of the caller's, and compares their ends. What does not
 * fit is dropped at the boundary of a UTF-8 character; the text is always NUL-terminated. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *data;
	size_t size;   /* of the buffer, at least 1 */
	size_t length; /* without the NUL, below size */
	bool truncated;
};

/* An empty text in an array (not in a pointer). */
#define TEXT_IN(array) text_in((array), sizeof(array))
struct text text_in(char *data, size_t size);

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);
__attribute__((format(printf, 2, 0))) void text_vadd(
	struct text *text, const char *format, va_list ap);

/* The separator, unless the text is still empty, and then what the format says. */
__attribute__((format(printf, 3, 4))) void text_join(
	struct text *text, const char *separator, const char *format, ...);

/* A short text by value: text_span(x).text lives to the end of the expression. */
struct text_span {
	char text[32];
};
struct text_span text_span(uint64_t seconds); /* "8 s", "3 min 20 s", "1 h": two units at most */

bool text_starts_with(const char *text, const char *start);
bool text_ends_with(const char *text, const char *end);
