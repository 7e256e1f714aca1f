/* SPDX-License-Identifier: Apache-2.0 */
/* style.h: declares how output looks: colours, characters, width. Plain data, set once at start. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

enum tone { TONE_NONE, TONE_DIM, TONE_BOLD, TONE_GOOD, TONE_WARN, TONE_BAD };

struct style {
	bool tty; /* stdout is a terminal */
	bool color;
	bool utf8;	 /* the locale's characters are UTF-8 */
	bool fit;	 /* tables drop columns, the last one first, to stay within width */
	unsigned width;	 /* columns; 0 = no limit */
	unsigned height; /* lines of the terminal; 0 = unknown */
};

/* Looks at stdout, the locale (after setlocale), COLUMNS, LINES, NO_COLOR and TERM. */
void style_detect(struct style *style, enum color_mode mode);

/* The terminal's size again (after SIGWINCH). */
void style_resize(struct style *style);

/* Escape sequences around text, "" without colour. */
const char *style_on(const struct style *style, enum tone tone);
const char *style_off(const struct style *style, enum tone tone);

/* A byte of STYLE_MARK + a tone in a text is the beginning of that tone; clean text has no such
 * bytes. */
enum { STYLE_MARK = 1, STYLE_MARKS = TONE_BAD + 1 };

/* Writes a text with marks. */
void style_write(const struct style *style, FILE *out, const char *text);

/* Takes the marks out of the text; the last one's tone, without any the usual one. */
enum tone style_take(char *text, enum tone usual);

/* True when the text holds nothing but marks. */
bool style_is_blank(const char *text);

/* The tone of a state or severity word of the daemon. */
enum tone style_of_state(const char *word);
