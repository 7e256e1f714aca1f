/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: reads and writes the daemon's replies: getters that survive any shape, and a printer that
 * keeps whole numbers whole (cJSON prints some time_us with an exponent). */
#include "client/edgeprofctl/link/json.h"

#include <math.h>
#include <stdlib.h>

#include "client/edgeprofctl/term/text.h"
#include "proto/utf8.h"

/* Doubles hold every whole number up to here. */
#define WHOLE_MAX 9007199254740992.0

const cJSON *json_get(const cJSON *object, const char *name)
{
	if (!cJSON_IsObject(object)) {
		return NULL;
	}
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	return !item || cJSON_IsNull(item) ? NULL : item;
}

const char *json_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(json_get(object, name));
}

const char *json_word(const cJSON *object, const char *name)
{
	const char *text = json_text(object, name);
	return !text ? "" : text;
}

double json_number(const cJSON *object, const char *name)
{
	const cJSON *item = json_get(object, name);
	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

int64_t json_whole(double number)
{
	return fabs(number) <= WHOLE_MAX ? (int64_t)number : 0;
}

int64_t json_integer(const cJSON *object, const char *name)
{
	return json_whole(json_number(object, name));
}

bool json_true(const cJSON *object, const char *name)
{
	return cJSON_IsTrue(json_get(object, name));
}

const cJSON *json_first(const cJSON *object, const char *name)
{
	const cJSON *array = json_get(object, name);
	return cJSON_IsArray(array) ? array->child : NULL;
}

int json_count(const cJSON *object, const char *name)
{
	const cJSON *array = json_get(object, name);
	return cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
}

void json_add_number(cJSON *object, const char *name, double value)
{
	if (isfinite(value)) {
		cJSON_AddNumberToObject(object, name, value);
	} else {
		cJSON_AddNullToObject(object, name);
	}
}

/* Depth is bounded by the scan in front of the parser (PROTO_JSON_DEPTH). */
void json_clean(cJSON *tree, bool utf8)
{
	for (cJSON *item = tree; item; item = item->next) {
		if (cJSON_IsString(item)) {
			text_clean(item->valuestring, utf8);
		}
		json_clean(item->child, utf8);
	}
}

static void write_number(FILE *out, double value)
{
	if (!isfinite(value)) {
		fputs("null", out);
		return;
	}
	if (value == floor(value) && fabs(value) <= WHOLE_MAX) {
		fprintf(out, "%.0f", value);
		return;
	}
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value) {
			break;
		}
	}
	fputs(text, out);
}

/* Above U+FFFF as a pair of surrogates. */
static void write_escape(FILE *out, uint32_t c)
{
	if (c > 0xffff) {
		fprintf(out, "\\u%04x", (unsigned)(0xd7c0 + (c >> 10)));
		c = 0xdc00 | (c & 0x3ff);
	}
	fprintf(out, "\\u%04x", (unsigned)c);
}

void json_write_text(FILE *out, const char *text)
{
	fputc('"', out);
	while (*text != '\0') {
		const char *at = text;
		uint32_t c = text_decode(&text);
		if (c == '"' || c == '\\') {
			fprintf(out, "\\%c", (int)c);
		} else if (c == '\n') {
			fputs("\\n", out);
		} else if (c == '\t') {
			fputs("\\t", out);
		} else if (c == 0xfffd) { /* also invalid UTF-8, such as a text that was cut */
			fputs("\xef\xbf\xbd", out);
		} else if (proto_utf8_is_hidden(c)) {
			write_escape(out, c);
		} else {
			fwrite(at, 1, (size_t)(text - at), out);
		}
	}
	fputc('"', out);
}

static void write_value(FILE *out, const cJSON *value, bool pretty, int depth)
{
	bool object = cJSON_IsObject(value);
	if (cJSON_IsString(value)) {
		json_write_text(out, value->valuestring);
	} else if (cJSON_IsNumber(value)) {
		write_number(out, value->valuedouble);
	} else if (cJSON_IsBool(value)) {
		fputs(cJSON_IsTrue(value) ? "true" : "false", out);
	} else if (cJSON_IsArray(value) || object) {
		int indent = pretty ? 2 * depth : 0;
		fputc(object ? '{' : '[', out);
		for (const cJSON *item = value->child; item; item = item->next) {
			fprintf(out, pretty ? "\n%*s" : "%*s", pretty ? indent + 2 : 0, "");
			if (object) {
				json_write_text(out, item->string);
				fputs(pretty ? ": " : ":", out);
			}
			write_value(out, item, pretty, depth + 1);
			fputs(item->next ? "," : "", out);
		}
		fprintf(out, pretty && value->child ? "\n%*s" : "%*s", value->child ? indent : 0,
			"");
		fputc(object ? '}' : ']', out);
	} else {
		fputs("null", out);
	}
}

void json_write(FILE *out, const cJSON *value, bool pretty)
{
	write_value(out, value, pretty, 0);
	fputc('\n', out);
}
