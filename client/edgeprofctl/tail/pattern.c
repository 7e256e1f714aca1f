/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c: checks the patterns of `tail`, and matches them as they were typed. Lines come from
 * other programs: any byte may be in them. What stands between two {*} matches at the first place
 * where it does, as in a shell's globs, so that a line costs no more than its length.
 */
#include "client/edgeprofctl/tail/pattern.h"

#include <string.h>

#include "proto/statsd/number.h"
#include "proto/text.h"

enum { WORD_MAX = 64 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_number(char c)
{
	return is_digit(c) || c == '.' || c == '+' || c == '-';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

/* What names of stages are made of: "infer@gpu", paths, and any character not of ASCII, too. */
static bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '@' || c == '/';
}

static const char *skip(bool (*is)(char), const char *at, const char *end)
{
	while (at < end && is(*at)) {
		at++;
	}
	return at;
}

static const char *skip_word(const char *at, const char *end)
{
	return skip(is_word, at, end - at < WORD_MAX ? end : at + WORD_MAX);
}

enum kind { LITERAL, DURATION, STAGE, FRAME, ANY, NAME, UNKNOWN };

/* One character or placeholder of a pattern. */
struct part {
	const char *text;
	enum kind kind;
	bool (*of)(char); /* does not begin behind such a character; NULL: anywhere */
	double to_ms;	  /* of a duration */
	size_t length;
};

static struct part part_at(const char *text)
{
	static const struct part known[] = {{"{ms}", DURATION, is_number, 1, 4},
		{"{us}", DURATION, is_number, 1e-3, 4}, {"{s}", DURATION, is_number, 1e3, 3},
		{"{ns}", DURATION, is_number, 1e-6, 4}, {"{stage}", STAGE, is_word, 0, 7},
		{"{frame}", FRAME, is_number, 0, 7}, {"{*}", ANY, NULL, 0, 3},
		{"{{", LITERAL, NULL, 0, 2}};
	if (*text != '{') {
		return (struct part){text, LITERAL, is_blank(*text) ? is_blank : NULL, 0, 1};
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (text[1] == known[i].text[1] &&
			strncmp(text, known[i].text, known[i].length) == 0) {
			return known[i];
		}
	}
	size_t length = strcspn(text, "}") + 1;
	if (strncmp(text, "{stage=", 7) != 0 || length <= 8 || text[length - 1] != '}') {
		return (struct part){text, UNKNOWN, NULL, 0, length};
	}
	return (struct part){text, NAME, part_at(text + length).of, 0, length};
}

/* Without the punctuation behind it. */
static struct statsd_text word_at(const char *at)
{
	const char *end = skip_word(at, at + strlen(at));
	while (!is_letter(end[-1]) && !is_digit(end[-1])) {
		end--;
	}
	return (struct statsd_text){at, (size_t)(end - at)};
}

const char *pattern_parse(const char *text, struct pattern *ret, size_t *position)
{
	struct statsd_text named = {NULL, 0}, word = {NULL, 0};
	unsigned seen = 0; /* a bit for each kind */
	struct part part;
	for (*position = 0; text[*position] != '\0'; *position += part.length) {
		const char *at = text + *position;
		part = part_at(at);
		bool once = part.kind == DURATION || part.kind == STAGE || part.kind == FRAME;
		if (part.kind == UNKNOWN) {
			return !strchr(at, '}')
				       ? "no '}' follows"
				       : "unknown placeholder; {ms}, {us}, {s}, {ns}, {stage}, "
					 "{stage=NAME}, {frame}, {*} are known, and {{ is a brace";
		}
		if (once && (seen & 1u << part.kind)) {
			return "only one duration, {stage} and {frame} are allowed";
		}
		seen |= 1u << part.kind;
		if (part.kind == NAME) {
			at += strlen("{stage=");
			named = (struct statsd_text){at, strcspn(at, "}")};
		} else if (part.kind == LITERAL && !word.at && is_letter(*at)) {
			word = word_at(at);
		}
	}
	*ret = (struct pattern){text, named.at ? named : word};
	if (!ret->stage.at && !(seen & 1u << STAGE)) {
		return "no stage: {stage}, {stage=NAME} or a word";
	}
	return seen & 1u << DURATION ? NULL : "no duration: {ms}, {us}, {s} or {ns}";
}

/* The last of several blanks stands for as many as there are. */
static const char *match_literal(const char *wanted, const char *at, const char *end)
{
	bool blank = is_blank(*wanted);
	if (at == end || (*at != *wanted && !(blank && is_blank(*at)))) {
		return NULL;
	}
	return blank && !is_blank(wanted[1]) ? skip(is_blank, at, end) : at + 1;
}

/* A number, also where a word follows at once that begins with an e. */
static const char *match_number(const char *at, const char *end, double *ret)
{
	return statsd_number(&at, end, ret) || statsd_number(&at, skip(is_number, at, end), ret)
		       ? at
		       : NULL;
}

/* From `at` on: where it ends, or NULL. *text moves to the next {*} or to the end of the pattern. A
 * word is as long as possible, but leaves what the pattern needs behind it ("{stage}_time"). */
static const char *match(
	const char **text, const char *at, const char *end, struct pattern_match *ret)
{
	const char *begin, *rest = *text, *found = NULL;
	while (at && **text != '\0') {
		struct part part = part_at(*text);
		begin = at;
		switch (part.kind) {
		case LITERAL:
			at = match_literal(*text + part.length - 1, at, end);
			break;
		case DURATION:
			at = match_number(at, end, &ret->ms);
			ret->ms *= part.to_ms;
			break;
		case FRAME:
			at = skip(is_digit, at, end);
			ret->frame = (struct statsd_text){begin, (size_t)(at - begin)};
			at = at > begin ? at : NULL;
			break;
		case STAGE:
			for (at = skip_word(at, end); at > begin && !found; at--) {
				rest = *text + part.length;
				ret->stage = (struct statsd_text){begin, (size_t)(at - begin)};
				found = match(&rest, at, end, ret);
			}
			*text = rest;
			return found;
		case NAME:
		case UNKNOWN:
			break;
		case ANY:
			return at;
		}
		*text += part.length;
	}
	return at;
}

bool pattern_find(const struct pattern *pattern, const char *line, const char *at, const char *end,
	struct pattern_match *ret)
{
	const char *text = pattern->text, *stop = text;
	*ret = (struct pattern_match){.end = at, .stage = pattern->stage};
	for (;;) {
		struct part first = part_at(text);
		const char *from = ret->end;
		for (ret->end = NULL; from <= end && !ret->end; from++) {
			if (from == line || !first.of || !first.of(from[-1])) {
				stop = text;
				ret->end = match(&stop, from, end, ret);
			}
		}
		if (!ret->end || *stop == '\0') {
			return ret->end;
		}
		text = stop + part_at(stop).length;
	}
}
