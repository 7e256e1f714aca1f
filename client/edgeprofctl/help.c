/* SPDX-License-Identifier: Apache-2.0 */
/* help.c: prints --help and the tables of the manual page. Nothing here knows a verb by name. */
#include "client/edgeprofctl/help.h"

#include <ctype.h>
#include <string.h>

#include "client/edgeprofctl/similar.h"
#include "client/edgeprofctl/term/format.h"
#include "proto/text.h"

enum { LEFT_WIDTH = 32, LINE_SIZE = 4096, VERBS_MAX = 128 };

/* "  -n, --lines N   the last N entries": a line, or two where the left side is long. */
static void print_options(const struct option_spec *spec, FILE *out)
{
	for (; spec && spec->name; spec++) {
		char left[256];
		struct text text = TEXT_IN(left);
		text_add(&text, spec->letter ? "  -%c, " : "      ", spec->letter);
		text_add(&text, "--%s", spec->name);
		if (spec->argument) {
			bool optional = spec->argument[0] == '[';
			text_add(&text, "%s%s", optional ? "[=" : " ", spec->argument + optional);
		}
		if (text.length + 2 > LEFT_WIDTH) {
			fprintf(out, "%s\n%*s%s\n", left, LEFT_WIDTH, "", spec->help);
		} else {
			fprintf(out, "%-*s%s\n", LEFT_WIDTH, left, spec->help);
		}
	}
}

void help_synopsis(const struct verb *verb, FILE *out)
{
	const char *form = verb->synopsis, *start = "Usage:";
	while (form) {
		const char *next = strstr(form, " | ");
		int length = next ? (int)(next - form) : (int)strlen(form);
		fprintf(out, "%s edgeprofctl %s%s%s%.*s\n", start, verb->name,
			verb->options ? " [OPTION]..." : "", length > 0 ? " " : "", length, form);
		form = next ? next + 3 : NULL;
		start = "   or:";
	}
}

void help_verb(const struct verb *verb, FILE *out)
{
	help_synopsis(verb, out);
	fprintf(out, "%s\n\n", verb->summary);
	print_options(verb->options, out);
	fprintf(out, "%sExample: edgeprofctl %s\nOptions of every command: edgeprofctl --help\n",
		verb->options ? "\n" : "", verb->example);
}

void help_overview(const struct verb *const *verbs, FILE *out)
{
	fputs("Usage: edgeprofctl [OPTION]... COMMAND [ARGUMENT]...\n\nCommands:\n", out);
	for (; *verbs; verbs++) {
		fprintf(out, "  %-12s %s\n", (*verbs)->name, (*verbs)->summary);
	}
	fputs("\nOptions of every command:\n", out);
	print_options(common_options, out);
	fputs("\n'edgeprofctl COMMAND --help' explains a command and gives an example.\n", out);
}

void help_unknown_verb(const struct verb *const *verbs, const char *word)
{
	struct similar similar = similar_to(word);
	for (; *verbs; verbs++) {
		similar_add(&similar, (*verbs)->name);
	}
	fprintf(stderr, "edgeprofctl: unknown command '%s'%s%s%s\nTry 'edgeprofctl --help'.\n",
		format_word(word).text, similar.name ? "; did you mean '" : "",
		similar.name ? similar.name : "", similar.name ? "'?" : "");
}

void help_start(const struct verb *const *verbs, FILE *out)
{
	static const char *const steps[][2] = {
		{"status", "what the device and its apps are doing"},
		{"top", "the same, live"},
		{"stages", "where the time of each frame goes"},
		{"session start before --frames", "measure 300 frames, and keep them"},
		{"session start after --frames", "the same again, after a change"},
		{"compare before after", "what became slower or faster"},
	};
	fputs("Usage: edgeprofctl [OPTION]... COMMAND [ARGUMENT]...\n\nTo begin with:\n", out);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (const struct verb *const *verb = verbs; *verb; verb++) {
			size_t length = strlen((*verb)->name);
			if (strcspn(steps[i][0], " ") == length &&
				memcmp(steps[i][0], (*verb)->name, length) == 0) {
				fprintf(out, "  edgeprofctl %-29s %s\n", steps[i][0], steps[i][1]);
			}
		}
	}
	fputs("\n'edgeprofctl --help' lists all commands, 'edgeprofctl COMMAND --help' explains "
	      "one.\n",
		out);
}

/* Words in capitals stand for something (_X_), others are typed (*x*); scdoc acts on the rest. */
static void manual_text(const char *text, size_t length, FILE *out)
{
	const char *end = text + length;
	while (text < end) {
		size_t capitals = 0, letters = 0;
		while (isupper((unsigned char)text[capitals])) {
			capitals++;
		}
		while (islower((unsigned char)text[letters]) ||
			isdigit((unsigned char)text[letters]) || text[letters] == '-') {
			letters++;
		}
		if (capitals > 0) {
			fprintf(out, "_%.*s_", (int)capitals, text);
		} else if (letters > 0) {
			fprintf(out, "*%.*s*", (int)letters, text);
		} else {
			fprintf(out, strchr("_*\\<>#", *text) ? "\\%c" : "%c", *text);
		}
		text += capitals > 0 ? capitals : letters > 0 ? letters : 1;
	}
}

static void manual_options(const struct option_spec *spec, const char *indent, FILE *out)
{
	for (; spec && spec->name; spec++) {
		fputs(indent, out);
		if (spec->letter) {
			fprintf(out, "*-%c*, ", spec->letter);
		}
		fprintf(out, "*--%s*", spec->name);
		if (spec->argument) {
			const char *argument = spec->argument + (spec->argument[0] == '[');
			fputs(spec->argument[0] == '[' ? "[=" : " ", out);
			manual_text(argument, strlen(argument), out);
		}
		fprintf(out, "\n%s\t", indent);
		for (const char *at = spec->help; *at != '\0'; at++) {
			fprintf(out, strchr("_*\\<>#", *at) ? "\\%c" : "%c", *at);
		}
		fputs("\n\n", out);
	}
}

static void manual_verb(const struct verb *verb, FILE *out)
{
	const char *form = verb->synopsis;
	while (form) {
		const char *next = strstr(form, " | ");
		fprintf(out, "*%s*%s%s", verb->name, verb->options ? " [_OPTION_]..." : "",
			form[0] == '\0' ? "" : " ");
		manual_text(form, next ? (size_t)(next - form) : strlen(form), out);
		fputs(next ? "++\n" : "\n", out);
		form = next ? next + 3 : NULL;
	}
}

/* The verb that "@NAME@\n" names, or NULL. */
static const struct verb *const *manual_marker(const struct verb *const *verbs, const char *line)
{
	size_t length = strlen(line);
	for (; line[0] == '@' && length > 3 && *verbs; verbs++) {
		const char *name = (*verbs)->name;
		if (strlen(name) == length - 3 && memcmp(name, line + 1, length - 3) == 0) {
			return verbs;
		}
	}
	return NULL;
}

/* Verbs about which the page says nothing of its own. */
static void manual_others(const struct verb *const *verbs, const bool shown[VERBS_MAX], FILE *out)
{
	for (size_t i = 0; verbs[i] && i < VERBS_MAX; i++) {
		if (!shown[i]) {
			manual_verb(verbs[i], out);
			fprintf(out, "\t%s\n\n", verbs[i]->summary);
			manual_options(verbs[i]->options, "\t", out);
		}
	}
}

void help_manual(const struct verb *const *verbs, FILE *in, FILE *out)
{
	char line[LINE_SIZE];
	bool shown[VERBS_MAX] = {false};
	const struct verb *const *verb = NULL;
	while (fgets(line, sizeof(line), in)) {
		const struct verb *const *next = manual_marker(verbs, line);
		if (verb && (next || line[0] == '#' || line[0] == '@')) {
			manual_options((*verb)->options, "\t", out);
			verb = NULL;
		}
		if (next) {
			manual_verb(*next, out);
			shown[next - verbs] = true;
			verb = next;
		} else if (strcmp(line, "@options@\n") == 0) {
			manual_options(common_options, "", out);
		} else if (strcmp(line, "@others@\n") == 0) {
			manual_others(verbs, shown, out);
		} else {
			fputs(line, out);
		}
	}
}

const struct verb verb_help = {
	"help", "[COMMAND]", "Show this help, or that of a command.", "help sensors", NULL, NULL};
