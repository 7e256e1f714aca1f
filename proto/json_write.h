/*
 * Writes JSON straight into a fixed buffer: replies are bounded by one frame, so nothing allocates
 * and a list that has grown too long is taken back to a mark. Broken UTF-8 becomes U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JSON_SLACK = 128, /* kept free for the brackets that close what is open */
};

struct json {
	char *buffer;
	size_t size, length;
	bool overflow; /* something did not fit: what follows is not written either */
};

void json_init(struct json *json, char *buffer, size_t size);

/* Where the text stands; json_rollback takes back all that was written since. */
size_t json_mark(const struct json *json);
void json_rollback(struct json *json, size_t mark);
size_t json_room(const struct json *json);

/* name is NULL for array items. Brackets: '{' '}' '[' ']'. Closing always fits. */
void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);

void json_string(struct json *json, const char *name, const char *text);
/* At most max bytes of text, cut between characters. */
void json_string_cut(struct json *json, const char *name, const char *text, size_t max);
void json_integer(struct json *json, const char *name, int64_t value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
/* NAN and inf become null. What is read back is the same double. */
void json_number(struct json *json, const char *name, double value);
void json_bool(struct json *json, const char *name, bool value);

/* Nullable fields: left out when "" or not finite. */
void json_string_opt(struct json *json, const char *name, const char *text);
void json_number_opt(struct json *json, const char *name, double value);
/* The same as an integer (bytes); left out when not finite. */
void json_whole_opt(struct json *json, const char *name, double value);

/* Bytes as they are: brackets of the frame. Uses the slack. */
void json_raw(struct json *json, const char *text);
