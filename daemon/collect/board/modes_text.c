/* Part of the modes collector: pure readers, so that every odd file is a line in a test. */
#include "daemon/collect/board/modes_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/text.h"

enum { MODE_MAX = 9999 };

int modes_parse_status(const char *text)
{
	const char *p = text_line(text, "pmode:");
	uint64_t id;
	if (!p || !text_u64(&p, &id) || id > MODE_MAX || p[strspn(p, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	return (int)id;
}

/* The value behind KEY= within one line; its length, 0 when there is none. */
static size_t value_of(const char *line, size_t length, const char *key, const char **ret)
{
	const char *at = memmem(line, length, key, strlen(key));
	if (!at) {
		return 0;
	}
	at += strlen(key);
	size_t left = length - (size_t)(at - line), n = 0;
	while (n < left && !strchr(" \t\r>", at[n])) {
		n++;
	}
	*ret = at;
	return n;
}

int modes_find_name(const char *conf, int id, char *name, size_t size)
{
	const char *line = conf;
	while (line) {
		line += strspn(line, "\n");
		size_t length = strcspn(line, "\n");
		const char *text, *number;
		bool model = *line != '#' && memmem(line, length, "POWER_MODEL", 11) != NULL;
		if (model && value_of(line, length, " ID=", &number) > 0) {
			uint64_t value;
			size_t n = value_of(line, length, " NAME=", &text);
			if (text_u64(&number, &value) && value == (uint64_t)id && n > 0) {
				snprintf(name, size, "%.*s", n < size ? (int)n : (int)size - 1,
					text);
				return 0;
			}
		}
		line = strchr(line, '\n');
	}
	return -ENOENT;
}

void modes_add_word(char *list, size_t size, const char *word)
{
	size_t length = strlen(word), used = strlen(list);
	for (const char *at = list; length > 0 && *at;) {
		size_t n = strcspn(at, ",");
		if (n == length && memcmp(at, word, n) == 0) {
			return;
		}
		at += n + (at[n] == ',');
	}
	if (length == 0 || used + length + 2 > size) {
		return;
	}
	snprintf(list + used, size - used, "%s%s", used > 0 ? "," : "", word);
}

double modes_budget_mw(const char *name)
{
	for (const char *at = name; *at; at++) {
		const size_t digits = strspn(at, "0123456789");
		if (digits == 0) {
			continue;
		}
		const char *end = at + digits;
		if (digits <= 4 && end[0] == 'W' && (end[1] == '\0' || end[1] == '_')) {
			return strtod(at, NULL) * 1000;
		}
		at = end - 1;
	}
	return 0;
}
