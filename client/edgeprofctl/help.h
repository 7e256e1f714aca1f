/* SPDX-License-Identifier: Apache-2.0 */
/* help.h: prints what the tables of verbs and options say, for --help, for messages and for the
 * manual page. */
#pragma once

#include <stdio.h>

#include "client/edgeprofctl/verb.h"

void help_overview(const struct verb *const *verbs, FILE *out);
void help_verb(const struct verb *verb, FILE *out);
/* "Usage: edgeprofctl VERB …", one line. */
void help_synopsis(const struct verb *verb, FILE *out);

/* How to begin, for somebody who typed nothing. */
void help_start(const struct verb *const *verbs, FILE *out);

/* Reports an unknown verb on stderr, with the most similar one. */
void help_unknown_verb(const struct verb *const *verbs, const char *word);

/* Copies a manual page in scdoc(5) to out. A line "@VERB@" becomes the verb's synopsis, and its
 * options follow in front of the next such line or heading; "@others@" becomes the verbs that have
 * no such line, and "@options@" the common options. */
void help_manual(const struct verb *const *verbs, FILE *in, FILE *out);
