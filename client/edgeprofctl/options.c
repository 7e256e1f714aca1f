/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: parses the values of options, and holds the table of those that every verb knows. */
#include "client/edgeprofctl/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/term/when.h"

enum { PREVIOUS_RUNS = 8 };

int option_flag(const struct option_spec *spec, const char *text, void *value)
{
	(void)spec;
	(void)text;
	*(bool *)value = true;
	return 0;
}

int option_text(const struct option_spec *spec, const char *text, void *value)
{
	(void)spec;
	*(const char **)value = text;
	return 0;
}

int option_nonempty(const struct option_spec *spec, const char *text, void *value)
{
	return text[0] == '\0' ? -EINVAL : option_text(spec, text, value);
}

int option_append(const struct option_spec *spec, const char *text, void *value)
{
	struct option_list *list = value;
	(void)spec;
	if (list->count == OPTION_LIST_MAX || text[0] == '\0') {
		return -EINVAL;
	}
	list->items[list->count++] = text;
	return 0;
}

int option_pair(const struct option_spec *spec, const char *text, void *value)
{
	bool valid = text[0] != '=' && strchr(text, '=');
	return valid ? option_append(spec, text, value) : -EINVAL;
}

/* The position of the text among the words of "a|b|c", which may stand in brackets; -1: none. */
static int word_index(const char *words, const char *text)
{
	words += *words == '[';
	for (int index = 0;; index++) {
		size_t length = strcspn(words, "|]");
		if (strlen(text) == length && memcmp(words, text, length) == 0) {
			return index;
		}
		if (words[length] != '|') {
			return -1;
		}
		words += length + 1;
	}
}

int option_word(const struct option_spec *spec, const char *text, void *value)
{
	if (!text) {
		return option_text(spec, "", value);
	}
	return word_index(spec->argument, text) < 0 ? -EINVAL : option_text(spec, text, value);
}

int option_count(const struct option_spec *spec, const char *text, void *value)
{
	(void)spec;
	size_t length = text ? strspn(text, "0123456789") : 0;
	long number = length == 0 || length > 9 ? 0 : strtol(text, NULL, 10);
	if (text && (text[length] != '\0' || number < 1)) {
		return -EINVAL;
	}
	*(long *)value = text ? number : -1;
	return 0;
}

int option_ms(const struct option_spec *spec, const char *text, void *value)
{
	double seconds;
	(void)spec;
	if (when_parse_span(text, &seconds) < 0 || seconds < 0.001 || seconds > 366 * 86400.0) {
		return -EINVAL;
	}
	*(double *)value = seconds * 1000;
	return 0;
}

int option_run(const struct option_spec *spec, const char *text, void *value)
{
	bool previous = text[0] == '-';
	if (text[previous] < '0' || text[previous] > '0' + (previous ? PREVIOUS_RUNS : 0) ||
		text[previous + 1] != '\0') {
		return -EINVAL;
	}
	return option_text(spec, text, value);
}

static int parse_json(const struct option_spec *spec, const char *text, void *value)
{
	static const enum json_mode modes[] = {JSON_PRETTY, JSON_SHORT, JSON_OFF};
	int index = text ? word_index(spec->argument, text) : 0;
	*(enum json_mode *)value = index < 0 ? JSON_OFF : modes[index];
	return index < 0 ? -EINVAL : 0;
}

static int parse_color(const struct option_spec *spec, const char *text, void *value)
{
	static const enum color_mode modes[] = {COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER};
	int index = word_index(spec->argument, text);
	*(enum color_mode *)value = index < 0 ? COLOR_AUTO : modes[index];
	return index < 0 ? -EINVAL : 0;
}

static int parse_timeout(const struct option_spec *spec, const char *text, void *value)
{
	double milliseconds;
	int r = option_ms(spec, text, &milliseconds);
	*(uint64_t *)value = r < 0 ? 0 : (uint64_t)milliseconds;
	return r;
}

static int parse_host(const struct option_spec *spec, const char *text, void *value)
{
	(void)spec;
	return remote_add(value, text);
}

const struct option_spec common_options[] = {
	{"json", 'j', "[pretty|short|off]", "print the daemon's reply as JSON; -j: on one line",
		parse_json, offsetof(struct options, json)},
	{"no-pager", 0, NULL, "do not pipe long output into a pager", option_flag,
		offsetof(struct options, no_pager)},
	{"color", 0, "auto|always|never",
		"use colours; auto: on a terminal, unless NO_COLOR is set", parse_color,
		offsetof(struct options, color)},
	{"socket", 0, "PATH", "connect to the daemon at this socket", option_nonempty,
		offsetof(struct options, socket)},
	{"remote", 'H', "HOST", "query the daemon of [USER@]HOST over ssh; several: HOST,HOST",
		parse_host, offsetof(struct options, hosts)},
	{"timeout", 0, "SPAN", "wait at most this long for each reply; default: 5s", parse_timeout,
		offsetof(struct options, timeout_ms)},
	{"utc", 0, NULL, "show times in UTC, and read them so; default: local time", option_flag,
		offsetof(struct options, utc)},
	{"help", 'h', NULL, "show this help, or that of a command", option_flag,
		offsetof(struct options, help)},
	{"version", 0, NULL, "show the version of edgeprofctl", option_flag,
		offsetof(struct options, version)},
	{.name = NULL},
};

const struct option_spec *option_find(
	const struct option_spec *table, const char *name, size_t length, char letter)
{
	for (; table && table->name; table++) {
		bool same = name ? strlen(table->name) == length &&
					    memcmp(table->name, name, length) == 0
				 : table->letter == letter;
		if (same) {
			return table;
		}
	}
	return NULL;
}

bool option_needs_argument(const struct option_spec *spec)
{
	return spec->argument && spec->argument[0] != '[';
}
