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

enum { OPTIONS_MAX = 96, LONG_CODE = 256 };

/* The union of all tables in the form of getopt_long(3). */
struct grammar {
	struct option longs[OPTIONS_MAX + 1];
	const struct option_spec *specs[OPTIONS_MAX];
	int count;
	char shorts[2 * OPTIONS_MAX + 2];
	size_t short_length;
};

static void grammar_add(struct grammar *grammar, const struct option_spec *table)
{
	for (; table && table->name && grammar->count < OPTIONS_MAX; table++) {
		int i = 0;
		while (i < grammar->count && strcmp(grammar->specs[i]->name, table->name) != 0) {
			i++;
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
		if (table->letter != 0) {
			grammar->shorts[grammar->short_length++] = table->letter;
			if (option_needs_argument(table)) {
				grammar->shorts[grammar->short_length++] = ':';
			}
		}
	}
}

static void grammar_init(struct grammar *grammar, const struct verb *const *verbs)
{
	memset(grammar, 0, sizeof(*grammar));
	grammar->shorts[grammar->short_length++] = ':';
	grammar_add(grammar, common_options);
	for (; *verbs; verbs++) {
		grammar_add(grammar, (*verbs)->options);
	}
}

static const struct option_spec *grammar_spec(const struct grammar *grammar, int code)
{
	if (code >= LONG_CODE) {
		return grammar->specs[code - LONG_CODE];
	}
	int i = 0;
	while (grammar->specs[i]->letter != code) {
		i++;
	}
	return grammar->specs[i];
}

/* "--recent 5" as well as "--recent=5": a number behind an optional argument belongs to it. */
static bool is_number(const char *text)
{
	return text && text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* Stores an option where its table says: the common one, or that of the verb. */
static int store(struct command *command, const struct option_spec *any, int code, const char *text)
{
	const struct option_spec *spec =
		option_find(common_options, any->name, strlen(any->name), 0);
	if (!spec && !command->verb) {
		return 0; /* an option without a verb: the usage follows */
	}
	if (!spec) {
		spec = option_find(command->verb->options, any->name, strlen(any->name), 0);
	}
	if (!spec) {
		fprintf(stderr, "edgeprofctl: '%s' has no option '--%s'\n", command->verb->name,
			any->name);
		return -EINVAL;
	}
	text = code == 'j' ? "short" : text;
	if (spec->parse(spec, text, (char *)&command->options + spec->offset) < 0) {
		fprintf(stderr, "edgeprofctl: invalid value '%s' for --%s\n", text ? text : "",
			spec->name);
		return -EINVAL;
	}
	return 0;
}

/* One pass over the options. The first only permutes argv, so that the verb can be found; the
 * second, with `command`, stores their values. */
static int scan(const struct grammar *grammar, int argc, char **argv, struct command *command)
{
	int code;
	optind = 0; /* GNU: start over */
	opterr = 0;
	while ((code = getopt_long(argc, argv, grammar->shorts, grammar->longs, NULL)) != -1) {
		if (code == '?' || code == ':') {
			/* optopt is the option that was recognised */
			fprintf(stderr,
				code == ':' ? "edgeprofctl: option '%s' requires an argument\n"
				: optopt >= LONG_CODE
					? "edgeprofctl: option '%s' does not take an argument\n"
					: "edgeprofctl: unknown option '%s'\n",
				argv[optind - 1]);
			return -EINVAL;
		}
		const struct option_spec *spec = grammar_spec(grammar, code);
		if (code >= LONG_CODE && spec->argument && spec->argument[0] == '[' && !optarg &&
			optind < argc && is_number(argv[optind])) {
			optarg = argv[optind++];
		}
		if (command && store(command, spec, code, optarg) < 0) {
			return -EINVAL;
		}
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

int command_parse(int argc, char **argv, const struct verb *const *verbs, struct command *ret)
{
	struct grammar grammar;
	struct command command = {.options = {.timeout_ms = 5000}};
	grammar_init(&grammar, verbs);
	if (scan(&grammar, argc, argv, NULL) < 0) {
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
	if (scan(&grammar, argc, argv, &command) < 0) {
		goto error;
	}
	command.help = help || command.options.help;
	*ret = command;
	return 0;
error:
	fprintf(stderr, "Try 'edgeprofctl %s%s--help'.\n", command.verb ? command.verb->name : "",
		command.verb ? " " : "");
	return -EINVAL;
}
