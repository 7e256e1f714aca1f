/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: parses the command line by the tables of the verbs, and completes it in a shell. */
#pragma once

#include "client/edgeprofctl/verb.h"

struct command {
	struct options options;
	const struct verb *verb; /* NULL: none was named */
	bool help;		 /* "help" or --help */
	char **words;		 /* the verb's arguments */
	int word_count;
	const struct option_spec *foreign; /* one that the form in use does not have */
};

/* Options may precede or follow the verb. 0, or -EINVAL after a message on stderr. argv
 * is permuted and must outlive *ret. */
int command_parse(int argc, char **argv, const struct verb *const *verbs, struct command *ret);

/* Writes "WORD\tDESCRIPTION" lines for the last of the words, which follow "edgeprofctl" on the
 * command line. Returns 0, or 1 when names of files fit too. */
int complete(const struct verb *const *verbs, char **words, int count);
