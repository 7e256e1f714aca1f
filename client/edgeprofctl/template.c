/* SPDX-License-Identifier: Apache-2.0 */
/* template.c: expands templates by recursive descent. Templates are string literals of verbs, so
 * their syntax is not checked. */
#include "client/edgeprofctl/template.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"

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
};

static struct label format_member(
	const struct template *template, const char *name, double number, const char *format)
{
	int64_t integer = json_integer(template->object, name);
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

/* What is between braces; false when it is absent or a condition that does not hold. */
static bool expand_member(struct template *template)
{
	char name[NAME_SIZE];
	size_t length = strcspn(template->at, "}");
	bool condition = template->at[0] == '?' || template->at[0] == '!';
	snprintf(name, sizeof(name), "%.*s", (int)length - condition, template->at + condition);
	bool negated = template->at[0] == '!';
	template->at += length + 1;
	char *format = strchr(name, ':');
	if (format) {
		*format++ = '\0';
	}
	const cJSON *item = json_get(template->object, name);
	if (condition) {
		return is_set(item) != negated;
	}
	if (format && strcmp(format, "is") == 0) {
		return item;
	}
	if (cJSON_IsString(item) && item->valuestring[0] != '\0') {
		text_add(template->text, "%s", item->valuestring);
		return true;
	}
	double number = json_number(template->object, name);
	bool known = !isnan(number);
	if (known || format) {
		text_add(template->text, "%s",
			known ? format_member(template, name, number, format ? format : "0").text
			      : "-");
	}
	return known;
}

static bool expand(struct template *template);

/* "first|second]": the first alternative that is complete. */
static void expand_group(struct template *template)
{
	bool done = false;
	do {
		struct text before = *template->text;
		template->at++;
		bool complete = expand(template);
		if (done || !complete) {
			*template->text = before;
			before.data[before.length] = '\0';
		}
		done = done || complete;
	} while (*template->at == '|');
	template->at += *template->at == ']';
}

/* Up to the end of the alternative or the template. True when nothing was absent. */
static bool expand(struct template *template)
{
	bool complete = true;
	while (*template->at != '\0' && *template->at != '|' && *template->at != ']') {
		size_t plain = strcspn(template->at, "{[|]");
		text_add(template->text, "%.*s", (int)plain, template->at);
		template->at += plain;
		if (*template->at == '{') {
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
