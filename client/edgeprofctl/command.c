/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: reads the command line. getopt_long(3) runs over the union of all tables, because
 * options may precede the verb that they belong to; what it finds is then looked up in the verb's
 * own table. */
#include "client/edgeprofctl/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/help.h"
#include "client/edgeprofctl/similar.h"
#include "client/edgeprofctl/term/format.h"
#include "proto/text.h"

enum { OPTIONS_MAX = 160, LONG_CODE = 256 };

/* The union of all tables in the form of getopt_long(3). */
struct grammar {
	struct option longs[OPTIONS_MAX + 1];
	const struct option_spec *specs[OPTIONS_MAX];
	int count;
	char shorts[2 * OPTIONS_MAX + 3]; /* begins with "+": options end at the first argument */
	size_t short_length;
	const struct verb *const *verbs;
};

static void grammar_add(struct grammar *grammar, const struct option_spec *table)
{
	for (; table && table->name && grammar->count < OPTIONS_MAX; table++) {
		int i = 0;
		while (i < grammar->count && strcmp(grammar->specs[i]->name, table->name) != 0) {
			i++;
		}
		if (table->letter != 0 && !strchr(grammar->shorts, table->letter)) {
			grammar->shorts[grammar->short_length++] = table->letter;
			if (option_needs_argument(table)) {
				grammar->shorts[grammar->short_length++] = ':';
			}
		}
		if (i < grammar->count) {
			continue; /* another verb has it */
		}
		grammar->longs[i] = (struct option){table->name,
			option_needs_argument(table) ? required_argument
			: table->argument	     ? optional_argument
						     : no_argument,
			NULL, LONG_CODE + i};
		grammar->specs[i] = table;
		grammar->count++;
	}
}

static void grammar_init(struct grammar *grammar, const struct verb *const *verbs)
{
	memset(grammar, 0, sizeof(*grammar));
	grammar->verbs = verbs;
	grammar->short_length = (size_t)snprintf(grammar->shorts, sizeof(grammar->shorts), "+:");
	grammar_add(grammar, common_options);
	for (; *verbs; verbs++) {
		grammar_add(grammar, (*verbs)->options);
	}
}

/* "--recent 5" as well as "--recent=5": a number behind an optional argument belongs to it. */
static bool is_number(const char *text)
{
	return text && text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Whether a form of the verb begins with the word: "[list] | enable SOURCE" */
static bool is_form(const struct verb *verb, const char *word, size_t length)
{
	const char *form = verb->synopsis;
	while (form) {
		form += strspn(form, " |[");
		if (strcspn(form, " ]") == length && memcmp(form, word, length) == 0) {
			return true;
		}
		form = strstr(form, " | ");
	}
	return false;
}

/* The form in use, where the option does not belong to it; NULL: it does. Options of some forms say
 * so in their help: "start: what distinguishes it; list: only those with it" */
static const char *foreign_form(const struct command *command, const struct option_spec *spec)
{
	const char *word = command->word_count > 0 ? command->words[0] : "", *at = spec->help;
	if (at[0] == '\0' || !is_form(command->verb, at, strcspn(at, ":"))) {
		return NULL;
	}
	word = is_form(command->verb, word, strlen(word)) ? word : "list";
	for (; at; at = strstr(at, "; "), at = at ? at + 2 : NULL) {
		if (strcspn(at, ":") == strlen(word) && text_starts_with(at, word)) {
			return NULL;
		}
	}
	return word;
}

/* Stores an option where its table says: the common one, or that of the verb. any: the option, NULL
 * for a letter, which may be of another one in each verb. */
static int store(struct command *command, const struct option_spec *any, int code, const char *text)
{
	const char *name = any ? any->name : NULL;
	const size_t length = any ? strlen(name) : 0;
	const struct option_spec *spec = option_find(common_options, name, length, (char)code);
	if (!spec && !command->verb) {
		return 0; /* an option without a verb: the usage follows */
	}
	if (!spec) {
		spec = option_find(command->verb->options, name, length, (char)code);
	}
	if (!spec) {
		const char letter[] = {(char)code, '\0'};
		fprintf(stderr, "edgeprofctl: '%s' has no option '%s%s'\n", command->verb->name,
			any ? "--" : "-", any ? name : letter);
		return -EINVAL;
	}
	if (command->verb && foreign_form(command, spec)) {
		command->foreign = spec;
	}
	text = code == 'j' ? "short" : text;
	if (spec->parse(spec, text, (char *)&command->options + spec->offset) < 0) {
		bool words = strpbrk(spec->argument, "|=");
		const char *use = spec->argument + (spec->argument[0] == '[');
		fprintf(stderr, "edgeprofctl: invalid value '%s' for --%s%s%.*s\n",
			format_word(text ? text : "").text, spec->name, words ? "; use " : "",
			words ? (int)strcspn(use, "]") : 0, use);
		return -EINVAL;
	}
	return 0;
}

static const struct verb *find_verb(const struct verb *const *verbs, const char *name)
{
	while (*verbs && strcmp((*verbs)->name, name) != 0) {
		verbs++;
	}
	return *verbs;
}

/* getopt's code for what it does not accept; optopt is the option that was recognised. */
static void report(const struct grammar *grammar, int code, char **argv)
{
	/* inside of a word of short options getopt has not moved on yet */
	const char letter[] = {'-', (char)optopt, '\0'};
	bool in_word = code == '?' && optopt != 0 && optopt < LONG_CODE;
	const char *word = in_word ? letter : argv[optind - 1];
	struct label name = format_word(word + strspn(word, "-"));
	name.text[strcspn(name.text, "=")] = '\0';
	bool unknown = code == '?' && optopt < LONG_CODE;
	struct similar similar = similar_to(name.text);
	const struct verb *verb = NULL;
	for (char **at = argv + 1; unknown && *at && !verb; at++) {
		verb = find_verb(grammar->verbs, *at);
	}
	const struct option_spec *const tables[] = {common_options, verb ? verb->options : NULL};
	for (size_t i = 0; unknown && strlen(name.text) > 2 && i < 2; i++) {
		for (const struct option_spec *spec = tables[i]; spec && spec->name; spec++) {
			similar_add(&similar, spec->name);
		}
	}
	fprintf(stderr,
		code == ':' ? "edgeprofctl: option '%s' requires an argument"
		: unknown   ? "edgeprofctl: unknown option '%s'"
			    : "edgeprofctl: option '%s' does not take an argument",
		format_word(word).text);
	fprintf(stderr, similar.name ? "; did you mean '--%s'?\n" : "%s\n",
		similar.name ? similar.name : "");
}

/* One pass over the options. The first only permutes argv, so that the verb can be found; the
 * second, with `command`, stores their values. leading: those in front of the first argument. */
static int scan(
	const struct grammar *grammar, int argc, char **argv, struct command *command, bool leading)
{
	int code;
	optind = 0; /* GNU: start over */
	opterr = 0;
	while ((code = getopt_long(argc, argv, grammar->shorts + !leading, grammar->longs, NULL)) !=
		-1) {
		if (code == '?' || code == ':') {
			report(grammar, code, argv);
			return -EINVAL;
		}
		const struct option_spec *spec =
			code >= LONG_CODE ? grammar->specs[code - LONG_CODE] : NULL;
		if (spec && spec->argument && spec->argument[0] == '[' && !optarg &&
			optind < argc && is_number(argv[optind])) {
			optarg = argv[optind++];
		}
		if (command && store(command, spec, code, optarg) < 0) {
			return -EINVAL;
		}
	}
	return 0;
}

/* Options in front of the verb, and those between it and the command that it runs. */
static int parse_launcher(
	const struct grammar *grammar, int argc, char **argv, int at, struct command *command)
{
	if (scan(grammar, at, argv, command, true) < 0 ||
		scan(grammar, argc - at, argv + at, command, true) < 0) {
		return -EINVAL;
	}
	command->words = argv + at + optind;
	command->word_count = argc - at - optind;
	command->help = command->options.help;
	return 0;
}

int command_parse(int argc, char **argv, const struct verb *const *verbs, struct command *ret)
{
	struct grammar grammar;
	struct command command = {.options = {.timeout_ms = 5000}};
	grammar_init(&grammar, verbs);
	if (scan(&grammar, argc, argv, NULL, true) < 0) {
		goto error;
	}
	command.verb = optind < argc ? find_verb(verbs, argv[optind]) : NULL;
	if (command.verb && text_starts_with(command.verb->synopsis, "PROGRAM")) {
		if (parse_launcher(&grammar, argc, argv, optind, &command) < 0) {
			goto error;
		}
		*ret = command;
		return 0;
	}
	command.verb = NULL;
	if (scan(&grammar, argc, argv, NULL, false) < 0) {
		goto error;
	}
	command.words = argv + optind;
	command.word_count = argc - optind;
	bool help = command.word_count > 0 && strcmp(command.words[0], "help") == 0;
	if (command.word_count > help) {
		command.verb = find_verb(verbs, command.words[help]);
		if (!command.verb) {
			help_unknown_verb(verbs, command.words[help]);
			return -EINVAL;
		}
		command.words += help + 1;
		command.word_count -= help + 1;
	}
	if (scan(&grammar, argc, argv, &command, false) < 0) {
		goto error;
	}
	command.help = help || command.options.help;
	if (command.foreign && !command.help) {
		fprintf(stderr, "edgeprofctl: '%s %s' has no option '--%s'\n", command.verb->name,
			foreign_form(&command, command.foreign), command.foreign->name);
		goto error;
	}
	*ret = command;
	return 0;
error:
	fprintf(stderr, "Try 'edgeprofctl %s%s--help'.\n", command.verb ? command.verb->name : "",
		command.verb ? " " : "");
	return -EINVAL;
}
