/* SPDX-License-Identifier: Apache-2.0 */
/* style.c: decides how output looks. Colour only distinguishes states, and only on terminals. */
#include "client/edgeprofctl/term/style.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned size_from_environment(const char *name)
{
	const char *text = getenv(name);
	if (!text || text[0] < '1' || text[0] > '9') {
		return 0;
	}
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	return *end != '\0' || value > 10000 ? 0 : (unsigned)value;
}

void style_resize(struct style *style)
{
	struct winsize size = {0};
	if (style->tty) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	}
	unsigned columns = size_from_environment("COLUMNS");
	unsigned lines = size_from_environment("LINES");
	style->width = columns > 0 ? columns : size.ws_col;
	style->height = lines > 0 ? lines : size.ws_row;
}

void style_detect(struct style *style, enum color_mode mode)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	bool plain = (no_color && no_color[0] != '\0') || !term || strcmp(term, "dumb") == 0;
	style->tty = isatty(STDOUT_FILENO) == 1;
	style->color = mode == COLOR_ALWAYS || (mode == COLOR_AUTO && style->tty && !plain);
	style->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	style_resize(style);
}

const char *style_on(const struct style *style, enum tone tone)
{
	if (!style->color) {
		return "";
	}
	switch (tone) {
	case TONE_NONE:
		return "";
	case TONE_DIM:
		return "\033[2m";
	case TONE_BOLD:
		return "\033[1m";
	case TONE_GOOD:
		return "\033[32m";
	case TONE_WARN:
		return "\033[33m";
	case TONE_BAD:
		return "\033[1;31m";
	}
	return "";
}

const char *style_off(const struct style *style, enum tone tone)
{
	return style->color && tone != TONE_NONE ? "\033[0m" : "";
}

static bool is_mark(char c)
{
	return c >= STYLE_MARK && c < STYLE_MARK + STYLE_MARKS;
}

void style_write(const struct style *style, FILE *out, const char *text)
{
	enum tone tone = TONE_NONE;
	for (; *text != '\0'; text++) {
		if (is_mark(*text)) {
			fputs(style_off(style, tone), out);
			tone = (enum tone)(*text - STYLE_MARK);
			fputs(style_on(style, tone), out);
		} else {
			fputc(*text, out);
		}
	}
	fputs(style_off(style, tone), out);
}

enum tone style_take(char *text, enum tone usual)
{
	enum tone tone = usual;
	char *to = text;
	for (; *text != '\0'; text++) {
		if (is_mark(*text)) {
			tone = (enum tone)(*text - STYLE_MARK);
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
	return tone;
}

bool style_is_blank(const char *text)
{
	while (is_mark(*text)) {
		text++;
	}
	return *text == '\0';
}

enum tone style_of_state(const char *word)
{
	static const struct {
		const char *word;
		enum tone tone;
	} tones[] = {
		{"ok", TONE_GOOD},
		{"running", TONE_GOOD},
		{"connected", TONE_GOOD},
		{"info", TONE_NONE},
		{"pending", TONE_WARN},
		{"warning", TONE_WARN},
		{"stale", TONE_WARN},
		{"connecting", TONE_WARN},
		{"away", TONE_WARN},
		{"error", TONE_BAD},
		{"failed", TONE_BAD},
		{"critical", TONE_BAD},
		{"died", TONE_BAD},
		{"killed", TONE_BAD},
		{"hung", TONE_BAD},
	};
	for (size_t i = 0; i < sizeof(tones) / sizeof(tones[0]); i++) {
		if (strcmp(tones[i].word, word) == 0) {
			return tones[i].tone;
		}
	}
	return TONE_DIM;
}
