/* SPDX-License-Identifier: Apache-2.0 */
/* frame_rows.h: writes the single frames of GetFrames. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct json;
struct list_cursor;

/* The field "list": the newest frames, or slow ones, of each wanted app, at most n of each and as
 * many as fit; "list_left_out" when some did not. */
void frame_rows_write(struct json *out, const struct list_cursor *cursor, bool slow, uint32_t n);
