/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.h: checks JSON text strictly, before any parser. Pure, libc only. */
#pragma once

#include <stddef.h>

/* Strict check of one message (without its NUL): a single JSON object and nothing after it, valid
 * UTF-8, depth <= max_depth, tokens <= max_tokens (0 = no limit), no \u0000, no lone surrogate, no
 * control bytes in strings, no duplicate key within an object, numbers of the JSON grammar; at most
 * 2048 keys in open objects and max_depth is at most 64. White space around the object is fine. A
 * token is a key, a value or an opening bracket. 0, or -EBADMSG with *reason a static text. */
int proto_json_scan(const char *text, size_t length, unsigned max_depth, unsigned max_tokens,
	const char **reason);
