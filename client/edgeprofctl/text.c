/* Text on a terminal: names and messages come from any program that attaches to the daemon, so
 * they pass here before a person's terminal sees them. */
#include "client/edgeprofctl/text.h"

#include <string.h>
#include <wchar.h>

enum { REPLACEMENT = 0xfffd };

uint32_t text_decode(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	uint32_t c = at[0];
	size_t more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	(*text)++;
	if (c < 0x80) {
		return c;
	}
	if (more == 0 || c >= 0xf5) {
		return REPLACEMENT;
	}
	c &= 0x3fU >> more;
	for (size_t i = 1; i <= more; i++) {
		if ((at[i] & 0xc0) != 0x80) {
			return REPLACEMENT;
		}
		c = c << 6 | (at[i] & 0x3f);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		return REPLACEMENT;
	}
	*text += more;
	return c;
}

bool text_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

void text_clean(char *text, bool utf8)
{
	char *to = text;
	const char *from = text;
	while (*from != '\0') {
		const char *at = from;
		uint32_t c = text_decode(&from);
		if (text_is_control(c) || c == REPLACEMENT || (c >= 0x80 && !utf8)) {
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
