/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h: makes text safe for a terminal, and measures its width. All functions work on UTF-8
 * whatever the locale is; broken UTF-8 counts byte by byte as U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next character; *text moves behind it (at least one byte; not past the NUL). */
uint32_t text_decode(const char **text);

/* Replaces in place what a terminal would act on by '?'; without utf8 all that is not ASCII too.
 * The text never grows. */
void text_clean(char *text, bool utf8);

/* Cuts white space off both ends, in place: where the text begins now. */
char *text_trim(char *text);

/* Columns that a clean text takes. */
size_t text_width(const char *text);

/* Bytes of the longest beginning that takes at most `columns` columns. */
size_t text_fit(const char *text, size_t columns);
