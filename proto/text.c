/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: appends to bounded strings without ever splitting a character. */
#include "proto/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/utf8.h"

struct text text_in(char *data, size_t size)
{
	data[0] = '\0';
	return (struct text){.data = data, .size = size};
}

void text_vadd(struct text *text, const char *format, va_list ap)
{
	size_t room = text->size - text->length;
	if (text->truncated) {
		return;
	}
	int length = vsnprintf(text->data + text->length, room, format, ap);
	if (length < 0) {
		text->data[text->length] = '\0';
	} else if ((size_t)length < room) {
		text->length += (size_t)length;
	} else {
		text->length = text->size - 1;
		text->truncated = true;
		text->length = proto_utf8_complete(text->data, text->length);
		text->data[text->length] = '\0';
	}
}

void text_add(struct text *text, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	text_vadd(text, format, ap);
	va_end(ap);
}

void text_join(struct text *text, const char *separator, const char *format, ...)
{
	if (text->length > 0) {
		text_add(text, "%s", separator);
	}
	va_list ap;
	va_start(ap, format);
	text_vadd(text, format, ap);
	va_end(ap);
}

struct text_span text_span(uint64_t seconds)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} unit[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
	struct text_span span;
	size_t i = 0;
	while (i < 3 && seconds < unit[i].seconds) {
		i++;
	}
	struct text text = TEXT_IN(span.text);
	text_add(&text, "%" PRIu64 " %s", seconds / unit[i].seconds, unit[i].name);
	const uint64_t rest = i < 3 ? seconds % unit[i].seconds / unit[i + 1].seconds : 0;
	if (rest > 0) {
		text_add(&text, " %" PRIu64 " %s", rest, unit[i + 1].name);
	}
	return span;
}

bool text_starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

bool text_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);
	return length >= wanted && memcmp(text + length - wanted, end, wanted) == 0;
}
