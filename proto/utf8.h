/* Valid UTF-8, byte by byte. Pure. */
#pragma once

#include <stddef.h>

/* Length (1 to 4) of the valid UTF-8 sequence at text, which holds `length` bytes; 0 when there is
 * none (overlong, surrogate, above U+10FFFF, cut). NUL is a valid byte of length 1. */
size_t proto_utf8_length(const char *text, size_t length);
