/* UTF-8 as Unicode 3.9, table 3-7 has it: the border check for text of peers and of the kernel. */
#include "proto/utf8.h"

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
