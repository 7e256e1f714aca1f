/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.h: writes JSON into a fixed buffer. Replies are bounded by one frame, so nothing
 * allocates, and a list that has become too long is rolled back to a mark. Broken UTF-8 becomes
 * U+FFFD. A structure is written by a const table of its members.
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
	double number; /* private: the last one */
	size_t number_at, number_length; /* private: its text; length 0: none */
};

void json_init(struct json *json, char *buffer, size_t size);

/* Where the text stands; json_rollback takes back all that was written since. */
size_t json_mark(const struct json *json);
void json_rollback(struct json *json, size_t mark);
size_t json_room(const struct json *json);

/* name is NULL for array items; it holds nothing that needs an escape. Brackets: '{' '}' '[' ']'.
 * Closing always fits. */
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

/* Nullable fields: omitted when "" or not finite. */
void json_string_opt(struct json *json, const char *name, const char *text);
void json_number_opt(struct json *json, const char *name, double value);
/* The same as an integer (bytes); omitted when not finite. */
void json_whole_opt(struct json *json, const char *name, double value);

/* How a member of a structure is written. */
enum json_type {
	JSON_STRING,	 /* char[] */
	JSON_STRING_OPT, /* the same; omitted when "" */
	JSON_TEXT_OPT,	 /* const char *; omitted when NULL or "" */
	JSON_BOOL,
	JSON_INT32,
	JSON_INT64,
	JSON_UINT32,
	JSON_UINT64,
	JSON_NUMBER,	 /* double; not finite is null */
	JSON_NUMBER_OPT, /* the same; omitted when not finite */
	JSON_WHOLE_OPT,	 /* double as an integer; omitted when not finite */
	JSON_S_OPT,	 /* uint64_t, ns; written in s; omitted when 0 */
};

/* A row of a table that writes a structure's members. */
struct json_field {
	const char *name;
	enum json_type type;
	size_t offset, size; /* of the member */
};

/* A member in the form of its type; a double is omitted when not finite. */
#define JSON_FIELD(structure, name, member)                                                \
	{                                                                                  \
		name, JSON_TYPE_OF(((structure *)0)->member), offsetof(structure, member), \
			sizeof(((structure *)0)->member)                                   \
	}
/* A member in the form that is named. */
#define JSON_FIELD_AS(type, structure, name, member)                                      \
	{                                                                                 \
		name, type, offsetof(structure, member), sizeof(((structure *)0)->member) \
	}
#define JSON_TYPE_OF(member) \
	_Generic((member), \
		char *: JSON_STRING, \
		const char *: JSON_TEXT_OPT, \
		_Bool: JSON_BOOL, \
		int: JSON_INT32, \
		long: sizeof(long) == 8 ? JSON_INT64 : JSON_INT32, \
		long long: JSON_INT64, \
		unsigned: JSON_UINT32, \
		unsigned long: sizeof(long) == 8 ? JSON_UINT64 : JSON_UINT32, \
		unsigned long long: JSON_UINT64, \
		double: JSON_NUMBER_OPT)

/* Writes the members of object that a const array lists, in its order. */
#define JSON_FIELDS(json, fields, object) \
	json_fields(json, fields, sizeof(fields) / sizeof((fields)[0]), object)
void json_fields(
	struct json *json, const struct json_field *fields, size_t count, const void *object);

/* The value behind "name": in a line that was written so; NULL: it is not there. The first of that
 * name at any depth, never in a text, whose quotes are escaped. */
const char *json_member(const char *line, const char *name);
/* The text in quotes at `at`, without escapes; what follows it, or NULL. at may be NULL. */
const char *json_quoted(const char *at, char *ret, size_t size);
/* Reads what JSON_FIELDS() wrote in a line of our own. A member that is not there is "", false, 0;
 * NAN where it may be omitted. Not for JSON_TEXT_OPT. */
#define JSON_FIELDS_READ(line, fields, object) \
	json_fields_read(line, fields, sizeof(fields) / sizeof((fields)[0]), object)
void json_fields_read(
	const char *line, const struct json_field *fields, size_t count, void *object);

/* Bytes as they are: brackets of the frame. Uses the slack. */
void json_raw(struct json *json, const char *text);
