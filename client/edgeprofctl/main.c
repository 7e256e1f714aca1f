/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: runs edgeprofctl. The verbs are listed in meson.build; each is in a file of its own. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/command.h"
#include "client/edgeprofctl/help.h"
#include "proto/posix/std_fds.h"

#define VERB(name) extern const struct verb verb_##name;
#include "client/edgeprofctl/verb_list.h"
#undef VERB

#define VERB(name) &verb_##name,
static const struct verb *const verbs[] = {
#include "client/edgeprofctl/verb_list.h"
	NULL};

/* How many arguments a synopsis allows: words in brackets are optional, "..." are any number. */
static void count_words(const char *synopsis, int *ret_min, int *ret_max)
{
	int depth = 0, min = 0, max = 0;
	*ret_min = INT_MAX;
	*ret_max = 0;
	for (const char *at = synopsis;; at++) {
		bool starts = *at > ' ' && (at == synopsis || at[-1] == ' ');
		if (*at == '\0' || (*at == '|' && at[1] == ' ')) {
			*ret_min = min < *ret_min ? min : *ret_min;
			*ret_max = max > *ret_max ? max : *ret_max;
			min = max = 0;
			if (*at == '\0') {
				break;
			}
			continue;
		}
		depth += (*at == '[') - (*at == ']');
		min += starts && depth == 0;
		max += starts;
		max = strncmp(at, "...", 3) == 0 ? INT_MAX / 2 : max;
	}
}

/* 0, or the usage on stderr and CTL_USAGE. */
static int check_words(const struct verb *verb, int count)
{
	int min, max;
	count_words(verb->synopsis, &min, &max);
	if (count >= min && count <= max) {
		return 0;
	}
	fprintf(stderr, "edgeprofctl: too %s arguments for '%s'\n", count < min ? "few" : "many",
		verb->name);
	help_synopsis(verb, stderr);
	fprintf(stderr, "Try 'edgeprofctl %s --help'.\n", verb->name);
	return CTL_USAGE;
}

static int run_verb(const struct command *command)
{
	struct ctl ctl = {
		.options = command->options,
		.words = command->words,
		.word_count = command->word_count,
	};
	if (command->options.utc) {
		/* local time is UTC from here on, for what is shown and for what was typed */
		setenv("TZ", "UTC0", 1);
		tzset();
	}
	style_detect(&ctl.style, command->options.color);
	if (output_open(&ctl.output) < 0) {
		return ctl_fail(&ctl, CTL_OUTPUT, "out of memory");
	}
	const char *format = command->options.format; /* of files, whose lines are as they are */
	bool text = command->options.json == JSON_OFF && (!format || strcmp(format, "text") == 0);
	ctl.output.style = text ? &ctl.style : NULL;
	int status = command->verb->run(&ctl);
	bool page = !command->options.no_pager && command->options.json != JSON_SHORT;
	int r = page ? output_page(&ctl.output, &ctl.style) : output_flush(&ctl.output);
	if (r < 0 && r != -EPIPE) {
		status = ctl_fail(&ctl, CTL_OUTPUT, "cannot write output: %s", strerror(-r));
	}
	ctl_disconnect(&ctl);
	output_finish(&ctl.output);
	return status;
}

static int cannot_write(int error)
{
	fprintf(stderr, "edgeprofctl: cannot write output: %s\n", strerror(error));
	return CTL_OUTPUT;
}

/* Help for a person, wrapped to the terminal. */
static int show_help(const struct command *command, int status)
{
	struct output output = {0};
	struct style style;
	style_detect(&style, COLOR_NEVER);
	if (output_open(&output) < 0) {
		return CTL_OUTPUT;
	}
	output.style = &style;
	if (command->help && command->verb) {
		help_verb(command->verb, output.stream);
	} else if (command->help) {
		help_overview(verbs, output.stream);
	} else {
		help_start(verbs, output.stream);
	}
	int r = output_flush(&output);
	output_finish(&output);
	return r < 0 && r != -EPIPE ? cannot_write(-r) : status;
}

static int run(const struct command *command)
{
	if (command->options.version) {
		puts("edgeprofctl " EDGEPROF_VERSION);
		return fflush(stdout) == 0 || errno == EPIPE ? CTL_FINE : cannot_write(errno);
	}
	if (command->help || !command->verb) {
		return show_help(command, command->help ? CTL_FINE : CTL_USAGE);
	}
	int status = check_words(command->verb, command->word_count);
	return status != 0 ? status : run_verb(command);
}

int main(int argc, char **argv)
{
	struct command command;
	std_fds_hold();
	setlocale(LC_CTYPE, "");
	output_ignore_sigpipe();
	/* two modes for the shells' completion and for the build; they are no part of the usage */
	if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
		return complete(verbs, argv + 2, argc - 2);
	}
	if (argc > 1 && strcmp(argv[1], "--manual") == 0) {
		help_manual(verbs, stdin, stdout);
		return fflush(stdout) == 0 ? CTL_FINE : CTL_OUTPUT;
	}
	if (command_parse(argc, argv, verbs, &command) < 0) {
		return CTL_USAGE;
	}
	return run(&command);
}
