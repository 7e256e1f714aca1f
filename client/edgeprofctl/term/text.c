/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: makes text fit for a terminal: names and messages come from any program that attaches to
 * the daemon, so they pass here before a person's terminal sees them. */
#include "client/edgeprofctl/term/text.h"

#include <string.h>
#include <wchar.h>

#include "proto/utf8.h"

enum { REPLACEMENT = 0xfffd };

uint32_t text_decode(const char **text)
{
	uint32_t c;
	size_t length = proto_utf8_decode(*text, strnlen(*text, 4), &c);
	*text += length > 0 ? length : 1;
	return length > 0 ? c : REPLACEMENT;
}

void text_clean(char *text, bool utf8)
{
	char *to = text;
	const char *from = text;
	while (*from != '\0') {
		const char *at = from;
		uint32_t c = text_decode(&from);
		if (proto_utf8_is_hidden(c) || c == REPLACEMENT || (c >= 0x80 && !utf8)) {
			*to++ = '?';
			continue;
		}
		memmove(to, at, (size_t)(from - at));
		to += from - at;
	}
	*to = '\0';
}

/* wcwidth knows nothing outside ASCII in the C locale, where text_clean left only ASCII, or our
 * own units and bars, which take one column each. */
static size_t columns_of(uint32_t c)
{
	int width = wcwidth((wchar_t)c);
	return width < 0 ? 1 : (size_t)width;
}

char *text_trim(char *text)
{
	static const char space[] = " \t\r\n";
	text += strspn(text, space);
	size_t length = strlen(text);
	while (length > 0 && strchr(space, text[length - 1])) {
		text[--length] = '\0';
	}
	return text;
}

size_t text_width(const char *text)
{
	size_t width = 0;
	while (*text != '\0') {
		width += columns_of(text_decode(&text));
	}
	return width;
}

size_t text_fit(const char *text, size_t columns)
{
	const char *at = text;
	while (*at != '\0') {
		const char *next = at;
		size_t width = columns_of(text_decode(&next));
		if (width > columns) {
			break;
		}
		columns -= width;
		at = next;
	}
	return (size_t)(at - text);
}
