/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h: cuts bytes of a stream into lines. A line may arrive in any number of pieces. One that
 * is longer than the capacity is skipped completely: the end of a cut line could be half a number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines {
	char *buffer;
	size_t capacity, length;
	bool skipping; /* the present line is too long */
	uint64_t cut;  /* lines skipped */
};

/* line: without its '\n' and a '\r' before that, not NUL-terminated, may hold any bytes. */
typedef void lines_line(void *ctx, const char *line, size_t length);

int lines_init(struct lines *lines, size_t capacity); /* -ENOMEM */
void lines_finish(struct lines *lines);		      /* zeroed storage is fine */

/* Calls line for each line that these bytes complete. line must not feed or finish. */
void lines_feed(struct lines *lines, const char *bytes, size_t length, lines_line *line, void *ctx);

/* Forgets an unfinished line: what follows comes from somewhere else. */
void lines_reset(struct lines *lines);
