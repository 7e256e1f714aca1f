/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: validates UTF-8 byte by byte, and finds characters that must not reach a terminal or a
 * log. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length (1 to 4) of the valid UTF-8 sequence at text, which holds `length` bytes; 0 when there is
 * none (overlong, surrogate, above U+10FFFF, cut). NUL is a valid byte of length 1. */
size_t proto_utf8_length(const char *text, size_t length);

/* The length of text without a sequence that its end cuts in two. */
size_t proto_utf8_complete(const char *text, size_t length);

/* The same as proto_utf8_length(); *ret is its code point. */
size_t proto_utf8_decode(const char *text, size_t length, uint32_t *ret);

/* Writes the code point (below 0x110000) as UTF-8, without a NUL; the length, 1 to 4. */
size_t proto_utf8_encode(uint32_t c, char ret[4]);

/* Whether a reader would not see it, or would see something else in its place: control characters,
 * line ends, those that turn the direction of text, those without a width (Unicode's
 * Default_Ignorable_Code_Point, Bidi_Control, and U+FFF9..U+FFFB). */
bool proto_utf8_is_hidden(uint32_t c);

/* Replaces each hidden character, and each byte that is not UTF-8, with one '?', in place. */
void proto_utf8_clean(char *text);
