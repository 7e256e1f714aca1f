/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c: decodes UTF-8 as defined by Unicode 3.9, table 3-7: the border check for text of peers
 * and of the kernel. */
#include "proto/utf8.h"

#include <string.h>

size_t proto_utf8_length(const char *text, size_t length)
{
	const unsigned char *s = (const unsigned char *)text;
	if (length == 0) {
		return 0;
	}
	if (s[0] < 0x80) {
		return 1;
	}
	/* Unicode 3.9, table 3-7: the second byte's range is what rules out overlong forms,
	 * surrogates and what is above U+10FFFF. */
	size_t need;
	unsigned char low = 0x80, high = 0xbf;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		need = 2;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		need = 3;
		low = s[0] == 0xe0 ? 0xa0 : 0x80;
		high = s[0] == 0xed ? 0x9f : 0xbf;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		need = 4;
		low = s[0] == 0xf0 ? 0x90 : 0x80;
		high = s[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return 0;
	}
	if (length < need || s[1] < low || s[1] > high) {
		return 0;
	}
	for (size_t i = 2; i < need; i++) {
		if (s[i] < 0x80 || s[i] > 0xbf) {
			return 0;
		}
	}
	return need;
}

size_t proto_utf8_decode(const char *text, size_t length, uint32_t *ret)
{
	static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *s = (const unsigned char *)text;
	size_t used = proto_utf8_length(text, length);
	if (used > 0) {
		uint32_t c = s[0] & lead[used];
		for (size_t i = 1; i < used; i++) {
			c = c << 6 | (s[i] & 0x3f);
		}
		*ret = c;
	}
	return used;
}

size_t proto_utf8_encode(uint32_t c, char ret[4])
{
	size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = length; i-- > 1; c >>= 6) {
		ret[i] = (char)(0x80 | (c & 0x3f));
	}
	ret[0] = (char)(lead[length] | c);
	return length;
}

size_t proto_utf8_complete(const char *text, size_t length)
{
	size_t start = length;
	while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80) {
		start--;
	}
	bool is_lead = start > 0 && (unsigned char)text[start - 1] >= 0xc0;
	return is_lead && proto_utf8_length(text + start - 1, length - start + 1) == 0 ? start - 1
										       : length;
}

bool proto_utf8_is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0x00, 0x1f},
		{0x7f, 0x9f},
		{0xad, 0xad},
		{0x34f, 0x34f},
		{0x61c, 0x61c},
		{0x115f, 0x1160},
		{0x17b4, 0x17b5},
		{0x180b, 0x180f},
		{0x200b, 0x200f},
		{0x2028, 0x202e},
		{0x2060, 0x206f},
		{0x3164, 0x3164},
		{0xfe00, 0xfe0f},
		{0xfeff, 0xfeff},
		{0xffa0, 0xffa0},
		{0xfff0, 0xfffb},
		{0xfffe, 0xffff},
		{0x1bca0, 0x1bca3},
		{0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff},
	};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && c >= hidden[i].first; i++) {
		if (c <= hidden[i].last) {
			return true;
		}
	}
	return false;
}

void proto_utf8_clean(char *text)
{
	char *to = text;
	for (size_t left = strlen(text); left > 0;) {
		uint32_t c = 0;
		size_t length = proto_utf8_decode(text, left, &c);
		size_t used = length > 0 ? length : 1;
		if (length == 0 || proto_utf8_is_hidden(c)) {
			*to++ = '?';
		} else {
			memmove(to, text, length);
			to += length;
		}
		text += used;
		left -= used;
	}
	*to = '\0';
}
