/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h: does what a key means, and reads lines of text in the status line. */
#pragma once

#include "client/edgeprofctl/top/host.h"

enum { PROMPT_SIZE = 96 };

/* A question in the status line; label NULL: none. */
struct prompt {
	const char *label;
	char text[PROMPT_SIZE];
	void (*done)(struct view *view, struct host *host, const char *text);
};

/* False: quit. */
struct keyboard {
	struct prompt prompt;
	bool paused, quit, next_host;
};
void keys_press(struct keyboard *keyboard, struct view *view, struct host *host, int key);
