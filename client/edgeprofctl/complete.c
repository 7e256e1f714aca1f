/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c: completes words by the tables of verbs and options. The scripts for bash, zsh and
 * fish only call this. Names of metrics, apps and sources come from the daemon, when it answers at
 * once. */
#include "client/edgeprofctl/command.h"

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/text.h"

enum { TIMEOUT_MS = 1000, TOKEN_SIZE = 64, FORM_WORDS = 8 };

/* The words in front of the one being typed, taken apart. */
struct line {
	const struct verb *const *verbs;
	const struct verb *verb;	   /* NULL: not typed yet */
	const struct option_spec *pending; /* the option whose argument is being typed */
	const char *words[FORM_WORDS];	   /* the verb's arguments so far */
	size_t count;
	const char *typed;
	char prefix[TOKEN_SIZE]; /* "--check=" in front of what is offered */
	bool files;
	bool silent; /* the daemon that has the names does not answer, or is on another machine */
};

static void offer(const struct line *line, const char *word, size_t length, const char *help)
{
	if (strlen(line->typed) <= length && strncmp(word, line->typed, strlen(line->typed)) == 0) {
		printf("%s%.*s\t%s\n", line->prefix, (int)length, word, help);
	}
}

/* Names that the daemon knows. A shell expands what it gets: only bytes of names come through. */
static void offer_names(struct line *line, const char *method, const char *list, const char *member)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./-";
	struct ctl ctl = {.options = {.timeout_ms = TIMEOUT_MS}, .quiet = true};
	cJSON *reply, *parameters = NULL;
	if (strcmp(list, "apps") == 0) {
		parameters = cJSON_CreateObject();
		cJSON_AddTrueToObject(parameters, "all");
	}
	if (line->silent) {
		cJSON_Delete(parameters);
	} else if (ctl_call(&ctl, method, parameters, true, &reply) != CTL_FINE) {
		line->silent = true;
	} else {
		for (const cJSON *row = json_first(reply, list); row; row = row->next) {
			const char *name = json_word(row, member);
			size_t length = strlen(name);
			if (length > 0 && strspn(name, plain) == length) {
				offer(line, name, length, "");
			}
		}
		cJSON_Delete(reply);
	}
	ctl_disconnect(&ctl);
}

static void offer_targets(const struct line *line)
{
	struct ctl ctl = {.quiet = true};
	cJSON *targets;
	if (targets_read(&ctl, &targets) == CTL_FINE) {
		for (const cJSON *row = json_first(targets, "targets"); row; row = row->next) {
			const char *name = json_word(row, "target");
			offer(line, name, strlen(name), "");
		}
		cJSON_Delete(targets);
	}
}

/* Words in capitals stand for something. */
static bool is_literal(const char *token)
{
	return (*token >= 'a' && *token <= 'z') || (*token >= '0' && *token <= '9') ||
	       *token == '-';
}

/* What a word of a synopsis or of an option's argument stands for. */
static void offer_token(struct line *line, const char *token, size_t length)
{
	static const struct {
		const char *word, *method, *list, *member;
	} kinds[] = {
		{"APP", "ListApps", "apps", "name"},
		{"GLOB", "ListMetrics", "metrics", "name"},
		{"PID", "ListProcesses", "processes", "name"},
		{"RECORDING", "ListRecordings", "recordings", "name"},
		{"RULE", "ListRules", "rules", "rule"},
		{"SESSION", "ListSessions", "sessions", "name"},
		{"SOURCE", "ListSources", "sources", "name"},
	};
	if (length == 7 && memcmp(token, "COMMAND", length) == 0) {
		for (const struct verb *const *verb = line->verbs; *verb; verb++) {
			offer(line, (*verb)->name, strlen((*verb)->name), (*verb)->summary);
		}
	}
	if (length == 6 && memcmp(token, "TARGET", length) == 0) {
		offer_targets(line);
	}
	line->files = line->files || (length == 4 && memcmp(token, "FILE", length) == 0) ||
		      (length == 4 && memcmp(token, "PATH", length) == 0) ||
		      (length == 7 && memcmp(token, "PROGRAM", length) == 0) ||
		      (length == 8 && memcmp(token, "ARGUMENT", length) == 0);
	if (is_literal(token)) {
		offer(line, token, length, "");
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].word) == length && memcmp(kinds[i].word, token, length) == 0) {
			offer_names(line, kinds[i].method, kinds[i].list, kinds[i].member);
		}
	}
}

/* "[pretty|short|off]" or "RECORDING|FILE", up to `end`. */
static void offer_alternatives(struct line *line, const char *text, const char *end)
{
	text += strspn(text, "[");
	while (text < end) {
		size_t length = strcspn(text, "|[]. ");
		length = length < (size_t)(end - text) ? length : (size_t)(end - text);
		offer_token(line, text, length);
		text += length;
		if (text >= end || *text != '|') {
			break;
		}
		text++;
	}
}

static void offer_options(const struct line *line, const struct option_spec *spec)
{
	for (; spec && spec->name; spec++) {
		char name[TOKEN_SIZE];
		struct text text = TEXT_IN(name);
		text_add(&text, "--%s", spec->name);
		offer(line, name, text.length, spec->help);
		const char *word = spec->argument;
		if (!word || word[0] != '[') {
			continue;
		}
		for (word++; *word >= 'a' && *word <= 'z'; word += *word == '|') {
			size_t length = strcspn(word, "|]");
			struct text with = TEXT_IN(name);
			text_add(&with, "--%s=%.*s", spec->name, (int)length, word);
			offer(line, name, with.length, spec->help);
			word += length;
		}
	}
}

/* The word of a form ("enable SOURCE") that stands at this position, if those in front of it are
 * the ones that were typed. */
static void offer_form(struct line *line, const char *form, size_t size)
{
	const char *end = form + size;
	for (size_t i = 0; form < end; i++) {
		form += strspn(form, " [");
		const char *stop = form;
		while (stop < end && *stop != ' ') {
			stop++;
		}
		bool repeated = stop - form > 3 && strncmp(stop - 3, "...", 3) == 0;
		if (i == line->count || (repeated && i < line->count)) {
			offer_alternatives(line, form, stop);
			return;
		}
		bool literal = is_literal(form) && !memchr(form, '|', (size_t)(stop - form));
		if (literal && (strlen(line->words[i]) != (size_t)(stop - form) ||
				       memcmp(form, line->words[i], (size_t)(stop - form)) != 0)) {
			return;
		}
		form = stop;
	}
}

static void offer_words(struct line *line)
{
	const char *form = line->verb ? line->verb->synopsis : "COMMAND";
	while (form) {
		const char *next = strstr(form, " | ");
		offer_form(line, form, next ? (size_t)(next - form) : strlen(form));
		form = next ? next + 3 : NULL;
	}
}

static const struct option_spec *find_option(const struct line *line, const char *word)
{
	bool is_long = word[1] == '-';
	const char *name = is_long ? word + 2 : NULL;
	size_t length = is_long ? strcspn(name, "=") : 0;
	const struct option_spec *spec = option_find(common_options, name, length, word[1]);
	if (!spec && line->verb) {
		spec = option_find(line->verb->options, name, length, word[1]);
	}
	return spec;
}

/* Takes the next word in front of the one being typed. */
static void read_word(struct line *line, const char *word)
{
	if (strcmp(word, "=") == 0) { /* bash divides --check=critical into three words */
		return;
	}
	if (line->pending) {
		line->pending = NULL;
	} else if (word[0] == '-' && word[1] != '\0') {
		const struct option_spec *spec = find_option(line, word);
		bool has = strchr(word, '=');
		line->pending = spec && option_needs_argument(spec) && !has ? spec : NULL;
		line->silent = line->silent || (spec && (strcmp(spec->name, "remote") == 0 ||
								strcmp(spec->name, "socket") == 0));
	} else if (!line->verb) {
		const struct verb *const *verb = line->verbs;
		while (*verb && strcmp((*verb)->name, word) != 0) {
			verb++;
		}
		line->verb = *verb;
	} else if (line->count < FORM_WORDS - 1) {
		line->words[line->count++] = word;
	}
}

int complete(const struct verb *const *verbs, char **words, int count)
{
	struct line line = {.verbs = verbs, .typed = count > 0 ? words[count - 1] : ""};
	for (int i = 0; i + 1 < count; i++) {
		read_word(&line, words[i]);
	}
	if (count > 1 && strcmp(words[count - 2], "=") == 0 && count > 2) {
		line.pending = find_option(&line, words[count - 3]);
	} else if (count > 2 && strcmp(line.typed, "=") == 0) {
		line.pending = find_option(&line, words[count - 2]);
		line.typed = "";
	}
	const char *equals = strchr(line.typed, '=');
	if (!line.pending && line.typed[0] == '-' && line.typed[1] == '-' && equals) {
		struct text prefix = TEXT_IN(line.prefix);
		text_add(&prefix, "%.*s", (int)(equals + 1 - line.typed), line.typed);
		line.pending = find_option(&line, line.typed);
		line.typed = equals + 1;
	}
	if (line.pending && line.pending->argument) {
		const char *argument = line.pending->argument;
		offer_alternatives(&line, argument, argument + strlen(argument));
	} else if (line.typed[0] == '-') {
		offer_options(&line, common_options);
		offer_options(&line, line.verb ? line.verb->options : NULL);
	} else {
		offer_words(&line);
	}
	return line.files;
}
