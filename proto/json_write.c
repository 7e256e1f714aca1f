/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c: writes JSON. A comma is due unless the last byte opens a container, so there is no
 * state but the text itself, and rolling back is setting the length.
 */
#include "proto/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/decimal.h"
#include "proto/utf8.h"

#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

void json_init(struct json *json, char *buffer, size_t size)
{
	json->buffer = buffer;
	json->size = size;
	json->length = 0;
	json->overflow = false;
	json->number_length = 0;
}

size_t json_mark(const struct json *json)
{
	return json->length;
}

void json_rollback(struct json *json, size_t mark)
{
	json->length = mark;
	json->number_length = 0;
	json->overflow = false;
}

size_t json_room(const struct json *json)
{
	size_t used = json->length + JSON_SLACK;
	return json->overflow || used >= json->size ? 0 : json->size - used;
}

static void append(struct json *json, const char *text, size_t length, size_t room)
{
	if (room < length) {
		json->overflow = true;
		return;
	}
	memcpy(json->buffer + json->length, text, length);
	json->length += length;
}

static void put(struct json *json, const char *text, size_t length)
{
	append(json, text, length, json_room(json));
}

void json_raw(struct json *json, const char *text)
{
	append(json, text, strlen(text), json->size - json->length);
}

static bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* How many bytes stand for themselves. */
static size_t plain_length(const char *text, size_t length)
{
	size_t i = 0;
	while (i < length && is_plain(text[i])) {
		i++;
	}
	return i;
}

/* Writes a string without escapes, which nearly all are. False, and nothing written: it needs one
 * or does not fit. */
static bool put_plain(struct json *json, const char *text, size_t max)
{
	size_t room = json_room(json), length = 0;
	char *at = json->buffer + json->length;
	if (room < 2) {
		return false;
	}
	*at++ = '"';
	max = max < room - 2 ? max : room - 2;
	while (length < max && is_plain(text[length])) {
		at[length] = text[length];
		length++;
	}
	if (length == max || text[length] != '\0') {
		return false;
	}
	at[length] = '"';
	json->length += length + 2;
	return true;
}

static void put_text(struct json *json, const char *text, size_t max)
{
	static const char hex[] = "0123456789abcdef";
	if (put_plain(json, text, max)) {
		return;
	}
	size_t length = strnlen(text, max);
	put(json, "\"", 1);
	for (size_t i = 0; i < length && !json->overflow;) {
		size_t plain = plain_length(text + i, length - i);
		put(json, text + i, plain);
		i += plain;
		if (i == length) {
			break;
		}
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\') {
			char escape[2] = {'\\', (char)c};
			put(json, escape, 2);
			i++;
		} else if (c == '\n') {
			put(json, "\\n", 2);
			i++;
		} else if (c < 0x20 || c == 0x7f) {
			char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
			put(json, escape, 6);
			i++;
		} else {
			size_t n = proto_utf8_length(text + i, length - i);
			put(json, n > 0 ? text + i : "\xef\xbf\xbd", n > 0 ? n : 3);
			i += n > 0 ? n : 1;
		}
	}
	put(json, "\"", 1);
}

/* The comma and the name that stand before a value. */
static void lead(struct json *json, const char *name)
{
	size_t length = name ? strlen(name) : 0;
	if (json_room(json) < length + strlen(",\"\":")) {
		json->overflow = true;
		return;
	}
	char *at = json->buffer + json->length;
	if (json->length > 0 && at[-1] != '{' && at[-1] != '[') {
		*at++ = ',';
	}
	if (name) {
		*at++ = '"';
		memcpy(at, name, length);
		at += length;
		*at++ = '"';
		*at++ = ':';
	}
	json->length = (size_t)(at - json->buffer);
}

void json_open(struct json *json, const char *name, char bracket)
{
	lead(json, name);
	put(json, &bracket, 1);
}

void json_close(struct json *json, char bracket)
{
	char text[2] = {bracket, '\0'};
	if (!json->overflow) {
		json_raw(json, text);
	}
}

void json_string_cut(struct json *json, const char *name, const char *text, size_t max)
{
	bool whole = strnlen(text, max + 1) <= max;
	lead(json, name);
	put_text(json, text, whole ? max : proto_utf8_complete(text, max));
}

void json_string(struct json *json, const char *name, const char *text)
{
	lead(json, name);
	put_text(json, text, SIZE_MAX);
}

void json_unsigned(struct json *json, const char *name, uint64_t value)
{
	char text[DECIMAL_SIZE];
	lead(json, name);
	if (json_room(json) >= sizeof(text)) {
		json->length += decimal_unsigned(value, json->buffer + json->length);
	} else {
		put(json, text, decimal_unsigned(value, text));
	}
}

void json_integer(struct json *json, const char *name, int64_t value)
{
	char text[DECIMAL_SIZE] = "-";
	size_t sign = value < 0;
	uint64_t positive = sign ? 0 - (uint64_t)value : (uint64_t)value;
	lead(json, name);
	put(json, text, sign + decimal_unsigned(positive, text + sign));
}

void json_number(struct json *json, const char *name, double value)
{
	char text[DECIMAL_SIZE];
	lead(json, name);
	if (!isfinite(value)) {
		put(json, "null", 4);
	} else if (json_room(json) < sizeof(text)) {
		put(json, text, decimal_double(value, text));
	} else if (json->number_length > 0 && value == json->number) { /* a number by two names */
		put(json, json->buffer + json->number_at, json->number_length);
	} else {
		json->number = value;
		json->number_at = json->length;
		json->number_length = decimal_double(value, json->buffer + json->length);
		json->length += json->number_length;
	}
}

void json_bool(struct json *json, const char *name, bool value)
{
	lead(json, name);
	put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_string_opt(struct json *json, const char *name, const char *text)
{
	if (text && text[0] != '\0') {
		json_string(json, name, text);
	}
}

void json_number_opt(struct json *json, const char *name, double value)
{
	if (isfinite(value)) {
		json_number(json, name, value);
	}
}

void json_whole_opt(struct json *json, const char *name, double value)
{
	if (isfinite(value) && fabs(value) <= EXACT_INTEGER) {
		json_integer(json, name, llround(value));
	}
}

static void put_field(struct json *json, const char *name, enum json_type type, const void *member)
{
	switch (type) {
	case JSON_STRING:
		json_string(json, name, member);
		return;
	case JSON_STRING_OPT:
		json_string_opt(json, name, member);
		return;
	case JSON_TEXT_OPT:
		json_string_opt(json, name, *(const char *const *)member);
		return;
	case JSON_BOOL:
		json_bool(json, name, *(const bool *)member);
		return;
	case JSON_INT32:
		json_integer(json, name, *(const int32_t *)member);
		return;
	case JSON_INT64:
		json_integer(json, name, *(const int64_t *)member);
		return;
	case JSON_UINT32:
		json_unsigned(json, name, *(const uint32_t *)member);
		return;
	case JSON_UINT64:
		json_unsigned(json, name, *(const uint64_t *)member);
		return;
	case JSON_NUMBER:
		json_number(json, name, *(const double *)member);
		return;
	case JSON_NUMBER_OPT:
		json_number_opt(json, name, *(const double *)member);
		return;
	case JSON_WHOLE_OPT:
		json_whole_opt(json, name, *(const double *)member);
		return;
	case JSON_S_OPT:
		if (*(const uint64_t *)member != 0) {
			json_number(json, name, (double)*(const uint64_t *)member / 1e9);
		}
		return;
	}
}

void json_fields(
	struct json *json, const struct json_field *fields, size_t count, const void *object)
{
	for (size_t i = 0; i < count; i++) {
		put_field(json, fields[i].name, fields[i].type,
			(const char *)object + fields[i].offset);
	}
}

const char *json_member(const char *line, const char *name)
{
	char key[64];
	snprintf(key, sizeof(key), "\"%s\":", name);
	const char *at = strstr(line, key);
	return at ? at + strlen(key) : NULL;
}

const char *json_quoted(const char *at, char *ret, size_t size)
{
	size_t length = 0;
	ret[0] = '\0';
	if (!at || *at++ != '"') {
		return NULL;
	}
	while (*at && *at != '"') {
		at += *at == '\\' && at[1];
		if (length + 1 < size) {
			ret[length++] = *at;
		}
		at++;
	}
	ret[length] = '\0';
	return *at == '"' ? at + 1 : NULL;
}

static void read_field(const char *at, const struct json_field *field, void *member)
{
	const uint64_t whole = at ? strtoull(at, NULL, 10) : 0; /* of a negative one, too */
	switch (field->type) {
	case JSON_STRING:
	case JSON_STRING_OPT:
		json_quoted(at, member, field->size);
		return;
	case JSON_TEXT_OPT:
		return;
	case JSON_BOOL:
		*(bool *)member = at && strncmp(at, "true", 4) == 0;
		return;
	case JSON_INT32:
	case JSON_UINT32:
		*(uint32_t *)member = (uint32_t)whole;
		return;
	case JSON_INT64:
	case JSON_UINT64:
		*(uint64_t *)member = whole;
		return;
	case JSON_S_OPT:
		*(uint64_t *)member = at ? (uint64_t)(strtod(at, NULL) * 1e9) : 0;
		return;
	case JSON_NUMBER:
	case JSON_NUMBER_OPT:
	case JSON_WHOLE_OPT:
		*(double *)member = at && *at != 'n' ? strtod(at, NULL) : (double)NAN;
		return;
	}
}

void json_fields_read(const char *line, const struct json_field *fields, size_t count, void *object)
{
	for (size_t i = 0; i < count; i++) {
		read_field(json_member(line, fields[i].name), &fields[i],
			(char *)object + fields[i].offset);
	}
}
