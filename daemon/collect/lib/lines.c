/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c: stands between a pipe and a parser of lines. A complete line that arrives in one piece
 * is dispatched where it is; only the pieces of a torn one are copied. */
#include "daemon/collect/lib/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

int lines_init(struct lines *lines, size_t capacity)
{
	memset(lines, 0, sizeof(*lines));
	lines->buffer = mem_calloc(capacity, 1);
	lines->capacity = capacity;
	return lines->buffer ? 0 : -ENOMEM;
}

void lines_finish(struct lines *lines)
{
	free(lines->buffer);
	memset(lines, 0, sizeof(*lines));
}

void lines_reset(struct lines *lines)
{
	lines->length = 0;
	lines->skipping = false;
}

static void dispatch(const char *text, size_t length, lines_line *line, void *ctx)
{
	line(ctx, text, length > 0 && text[length - 1] == '\r' ? length - 1 : length);
}

/* A piece of a line; from then on the line is in the buffer or skipped. */
static void append(struct lines *lines, const char *bytes, size_t length)
{
	if (lines->skipping || length > lines->capacity - lines->length) {
		lines->cut += !lines->skipping;
		lines->skipping = true;
		return;
	}
	memcpy(lines->buffer + lines->length, bytes, length);
	lines->length += length;
}

void lines_feed(struct lines *lines, const char *bytes, size_t length, lines_line *line, void *ctx)
{
	while (length > 0) {
		const char *end = memchr(bytes, '\n', length);
		size_t piece = end ? (size_t)(end - bytes) : length;
		if (end && lines->length == 0 && !lines->skipping && piece <= lines->capacity) {
			dispatch(bytes, piece, line, ctx);
		} else {
			append(lines, bytes, piece);
			if (end && !lines->skipping) {
				dispatch(lines->buffer, lines->length, line, ctx);
			}
			if (end) {
				lines_reset(lines);
			}
		}
		piece += end != NULL;
		bytes += piece;
		length -= piece;
	}
}
