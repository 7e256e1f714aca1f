/* SPDX-License-Identifier: Apache-2.0 */
/* wrap.c: reads a line once, with the last blank at which it may be broken in mind. */
#include "client/edgeprofctl/term/wrap.h"

#include <string.h>

#include "client/edgeprofctl/term/text.h"

enum { INDENT = 4 };

/* Bytes of the escape sequence or of the character at text; *ret: its columns. */
static size_t next_length(const char *text, size_t *ret)
{
	char one[8] = "";
	const char *end = text;
	*ret = 0;
	if (text[0] == '\033') {
		size_t length = strcspn(text, "m\n");
		return length + (text[length] == 'm');
	}
	text_decode(&end);
	memcpy(one, text, (size_t)(end - text) < sizeof(one) ? (size_t)(end - text) : 0);
	*ret = text_width(one);
	return (size_t)(end - text);
}

static size_t wrap_line(const char *text, unsigned width, FILE *out)
{
	size_t at = 0, written = 0, column = 0, columns, indent = INDENT;
	size_t spaces = 0, blank = 0,
	       blank_column = 0; /* where the line may be broken; 0: nowhere */
	bool words = false;
	while (text[at] != '\0' && text[at] != '\n') {
		size_t length = next_length(text + at, &columns);
		bool is_blank = text[at] == ' ';
		if (column + columns > width && blank > written && !is_blank) {
			size_t next = blank + strspn(text + blank, " ");
			size_t room = indent + strcspn(text + next, " \n");
			indent = room > width ? INDENT : indent;
			fprintf(out, "%.*s\n%*s", (int)(blank - written), text + written,
				(int)indent, "");
			column = indent + column - (blank_column + (next - blank));
			written = next;
			blank = 0;
		}
		if (!is_blank && columns > 0 && spaces >= 2 && column < width * 3 / 5 &&
			written == 0) {
			indent = words ? column : column + INDENT;
		}
		if (is_blank && spaces == 0 && words) {
			blank = at;
			blank_column = column;
		}
		spaces = is_blank ? spaces + 1 : columns > 0 ? 0 : spaces;
		words = words || (!is_blank && columns > 0);
		column += columns;
		at += length;
	}
	fprintf(out, "%.*s", (int)(at - written), text + written);
	return at;
}

void wrap_write(const char *text, unsigned width, FILE *out)
{
	while (*text != '\0') {
		text += wrap_line(text, width, out);
		if (*text == '\n') {
			fputc(*text++, out);
		}
	}
}
