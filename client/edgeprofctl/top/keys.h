/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h: does what a key means, and reads lines of text in the status line. */
#pragma once

#include "client/edgeprofctl/top/host.h"

enum { PROMPT_SIZE = 96 };

enum { FLAG_PAUSE, FLAG_HOST /* to the next one */, FLAG_HELP, FLAG_QUIT, FLAGS };

struct keyboard {
	struct view *view; /* what the keys act on */
	struct host *host;
	const struct prompt *prompt; /* a question in the status line; NULL: none */
	char text[PROMPT_SIZE];	     /* its answer so far */
	bool flags[FLAGS];
};

void keys_press(struct keyboard *keyboard, int key);
/* The question, NULL: none. */
const char *keys_prompt(const struct keyboard *keyboard);
/* Draws the list of keys. */
void keys_help(const struct view *view, struct box area);
