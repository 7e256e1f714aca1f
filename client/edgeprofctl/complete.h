/* SPDX-License-Identifier: Apache-2.0 */
/* complete.h: completes the word that is being typed in a shell. */
#pragma once

#include "client/edgeprofctl/verb.h"

/* Writes "WORD\tDESCRIPTION" lines for the last of the words, which follow "edgeprofctl" on the
 * command line. Returns 0, or 1 when names of files fit too. */
int complete(const struct verb *const *verbs, char **words, int count);
