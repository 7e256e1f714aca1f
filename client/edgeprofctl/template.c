/* SPDX-License-Identifier: Apache-2.0 */
/* template.c: expands templates by recursive descent. Templates are string literals of verbs, so
 * their syntax is not checked. */
#include "client/edgeprofctl/template.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/style.h"

enum { NAME_SIZE = 64 };

struct template
{
	const char *at;
	const cJSON *object;
	bool utf8;
	struct text *text;
};

static bool is_set(const cJSON *item)
{
	return cJSON_IsTrue(item) || (cJSON_IsNumber(item) && item->valuedouble > 0) ||
	       (cJSON_IsString(item) && item->valuestring[0] != '\0') ||
	       (cJSON_IsArray(item) && item->child);
}

static const struct {
	const char *name;
	int decimals;
	double factor;
	const char *suffix;
} scaled[] = {
	{"us", 1, 1e-3, " ms"},
	{"share", 2, 100, " %"},
	{"KiB", 0, 1.0 / 1024, " KiB"},
	{"MB", 1, 1.0 / (1 << 20), "MB"},
	{"MB0", 0, 1.0 / (1 << 20), "MB"},
	{"+MB", 1, 1.0 / (1 << 20), "MB"},
	{"+MiB", 1, 1.0 / (1 << 20), " MiB"},
};

static struct label format_number(
	const struct template *template, double number, const char *format)
{
	int64_t integer = json_whole(number);
	const char *unit = json_word(template->object, "unit");
	struct label label = {"-"};
	for (size_t i = 0; i < sizeof(scaled) / sizeof(scaled[0]); i++) {
		if (strcmp(format, scaled[i].name) == 0) {
			number *= scaled[i].factor;
			snprintf(label.text, sizeof(label.text), "%s%.*f%s",
				format[0] == '+' && !signbit(number) ? "+" : "", scaled[i].decimals,
				number, scaled[i].suffix);
			return label;
		}
	}
	if (format[0] >= '0' && format[0] <= '9') {
		snprintf(label.text, sizeof(label.text), "%.*f", format[0] - '0', number);
	} else if (format[0] == '+') {
		snprintf(label.text, sizeof(label.text), "%+.*f", format[1] - '0', number);
	} else if (format[0] == 'g') {
		int digits = format[1] == '4' ? 4 : format[1] == '6' ? 6 : 10;
		snprintf(label.text, sizeof(label.text), "%.*g", digits, number);
	} else if (strcmp(format, "count") == 0) {
		label = format_count(integer);
	} else if (strcmp(format, "amount") == 0) {
		bool bytes = strcmp(unit, "bytes") == 0;
		label = bytes ? format_bytes(number) : format_count(integer);
	} else if (strcmp(format, "s") == 0) {
		label = format_span(number);
	} else if (strcmp(format, "ms") == 0) {
		label = format_span(number / 1000);
	} else if (strcmp(format, "ago") == 0) {
		label = format_ago(number);
	} else if (strcmp(format, "time") == 0) {
		label = format_time(integer);
	} else if (strcmp(format, "clock") == 0) {
		snprintf(label.text, sizeof(label.text), "%.8s", format_clock(integer).text);
	} else {
		bool own = strcmp(format, "value") == 0;
		label = format_value(number, own ? unit : format, template->utf8);
	}
	return label;
}

/* "a.b" is the member b of the member a; "" the item itself. */
static const cJSON *find(const cJSON *object, char *path)
{
	if (path[0] == '\0') {
		return object;
	}
	for (char *dot; (dot = strchr(path, '.')); path = dot + 1) {
		*dot = '\0';
		object = json_get(object, path);
	}
	return json_get(object, path);
}

/* An array is the number of its items. */
static double number_of(const cJSON *item)
{
	return cJSON_IsArray(item) ? cJSON_GetArraySize(item) : cJSON_GetNumberValue(item);
}

static bool holds(const struct template *template, char *condition)
{
	char *operand = strchr(condition, '=');
	if (!operand) {
		return is_set(find(template->object, condition));
	}
	bool at_least = operand[-1] == '>';
	operand[-at_least] = '\0';
	const cJSON *item = find(template->object, condition);
	return at_least ? number_of(item) >= atof(operand + 1)
			: cJSON_IsString(item) && strcmp(item->valuestring, operand + 1) == 0;
}

static bool expand(struct template *template);

/* Takes back what was appended since `before`. */
static void roll_back(struct template *template, struct text before)
{
	*template->text = before;
	before.data[before.length] = '\0';
}

/* The body for each item of the array; false when that is nothing. */
static bool expand_loop(struct template *template, char *name)
{
	char *separator = strchr(name, ',');
	if (separator) {
		*separator++ = '\0';
	}
	const char *body = template->at;
	size_t length = template->text->length;
	const cJSON *outer = template->object, *array = find(outer, name);
	const cJSON *item = cJSON_IsArray(array) ? array->child : NULL;
	for (bool first = true; first || item; first = false) {
		struct text before = *template->text;
		text_add(template->text, "%s", first || !separator ? "" : separator);
		template->at = body;
		template->object = item;
		expand(template);
		if (!item) {
			roll_back(template, before);
		}
		item = item ? item->next : NULL;
	}
	template->object = outer;
	template->at += sizeof("{/}") - 1;
	return template->text->length > length;
}

static bool expand_value(struct template *template, char *name)
{
	char *format = strchr(name, ':');
	if (format) {
		*format++ = '\0';
	}
	const cJSON *item = find(template->object, name);
	if (format && strcmp(format, "is") == 0) {
		return item;
	}
	if (cJSON_IsString(item) && item->valuestring[0] != '\0') {
		text_add(template->text, "%s", item->valuestring);
		return true;
	}
	double number = number_of(item);
	bool known = !isnan(number);
	if (known || format) {
		text_add(template->text, "%s",
			known ? format_number(template, number, format ? format : "0").text : "-");
	}
	return known;
}

/* "{~warn}" or "{~:state}": a mark in front of what has that tone. */
static void add_tone(struct template *template, char *name)
{
	static const char *const names[] = {"none", "dim", "bold", "good", "warn", "bad"};
	enum tone tone = TONE_NONE;
	if (name[0] == ':') {
		const cJSON *word = find(template->object, name + 1);
		tone = style_of_state(cJSON_IsString(word) ? word->valuestring : "");
	}
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
		tone = strcmp(name, names[i]) == 0 ? (enum tone)i : tone;
	}
	text_add(template->text, "%c", STYLE_MARK + (int)tone);
}

/* What is between braces; false when it is absent or a condition that does not hold. */
static bool expand_member(struct template *template)
{
	char name[NAME_SIZE];
	size_t length = strcspn(template->at, "}");
	snprintf(name, sizeof(name), "%.*s", (int)length, template->at);
	template->at += length + 1;
	switch (name[0]) {
	case '?':
		return holds(template, name + 1);
	case '!':
		return !holds(template, name + 1);
	case '~':
		add_tone(template, name + 1);
		return true;
	case ',':
		text_add(template->text, "%s", style_is_blank(template->text->data) ? "" : name);
		return true;
	case '>':
		text_add(template->text, "%s", template->utf8 ? " → " : " -> ");
		return true;
	case '*':
		return expand_loop(template, name + 1);
	}
	return expand_value(template, name);
}

/* "first|second]": the first alternative that is complete. */
static void expand_group(struct template *template)
{
	bool done = false;
	do {
		struct text before = *template->text;
		template->at++;
		bool complete = expand(template);
		if (done || !complete) {
			roll_back(template, before);
		}
		done = done || complete;
	} while (*template->at == '|');
	template->at += *template->at == ']';
}

/* Up to the end of the alternative or the template. True when nothing was absent. */
static bool expand(struct template *template)
{
	bool complete = true;
	while (!strchr("|]", *template->at) && strncmp(template->at, "{/}", 3) != 0) {
		size_t plain = strcspn(template->at, "{[|]\\");
		text_add(template->text, "%.*s", (int)plain, template->at);
		template->at += plain;
		if (plain > 0) {
			continue; /* what follows may be the end of a loop */
		}
		if (*template->at == '\\') {
			text_add(template->text, "%c", template->at[1]);
			template->at += 2;
		} else if (*template->at == '{') {
			template->at++;
			complete = expand_member(template) && complete;
		} else if (*template->at == '[') {
			expand_group(template);
		}
	}
	return complete;
}

void template_add(struct text *text, const char *template, const cJSON *object, bool utf8)
{
	struct template state = {template, object, utf8, text};
	expand(&state);
}
