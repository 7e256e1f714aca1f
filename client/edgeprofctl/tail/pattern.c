/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c: parses the patterns of `tail` and matches them. Lines come from other programs: any
 * byte may be in them. Where the text between two {*} is first found decides, as in a shell's
 * globs, so that a line costs no more than its length.
 */
#include "client/edgeprofctl/tail/pattern.h"

#include <string.h>

#include "proto/statsd/number.h"

enum { WORD_MAX = 64 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
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

static size_t word_length(const char *at, const char *end)
{
	size_t length = 0;
	while (at + length < end && length < WORD_MAX && is_word(at[length])) {
		length++;
	}
	return length;
}

/* What stands between braces. */
static const char *add_placeholder(struct pattern *pattern, const char *name, size_t length)
{
	static const struct {
		const char *name;
		enum pattern_kind kind;
		double to_ms;
	} known[] = {{"s", PATTERN_DURATION, 1e3}, {"ms", PATTERN_DURATION, 1},
		{"us", PATTERN_DURATION, 1e-3}, {"ns", PATTERN_DURATION, 1e-6},
		{"stage", PATTERN_STAGE, 0}, {"frame", PATTERN_FRAME, 0}, {"*", PATTERN_ANY, 0}};
	static const char named[] = "stage=";
	if (length >= sizeof(named) && memcmp(name, named, sizeof(named) - 1) == 0) {
		pattern->stage = (struct pattern_text){
			name + sizeof(named) - 1, length - (sizeof(named) - 1)};
		return NULL;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].name) != length || memcmp(known[i].name, name, length) != 0) {
			continue;
		}
		if (known[i].kind != PATTERN_ANY && (pattern->kinds & 1u << known[i].kind)) {
			return "only one duration, {stage} and {frame} are allowed";
		}
		pattern->kinds |= 1u << known[i].kind;
		pattern->parts[pattern->count++] =
			(struct pattern_part){.kind = known[i].kind, .to_ms = known[i].to_ms};
		return NULL;
	}
	return "unknown placeholder; {ms}, {us}, {s}, {ns}, {stage}, {stage=NAME}, {frame}, {*} "
	       "are known, and {{ is a brace";
}

/* Its first word names the stage, unless something else does. */
static void add_text(struct pattern *pattern, const char *text, size_t length)
{
	const char *at = text, *end = text + length;
	pattern->parts[pattern->count++] =
		(struct pattern_part){.kind = PATTERN_TEXT, .text = {text, length}};
	while (at < end && !is_letter(*at)) {
		at++;
	}
	if (!pattern->word.at && at < end) {
		length = word_length(at, end);
		while (!is_letter(at[length - 1]) && !is_digit(at[length - 1])) {
			length--; /* punctuation */
		}
		pattern->word = (struct pattern_text){at, length};
	}
}

const char *pattern_parse(const char *text, struct pattern *ret, size_t *position)
{
	const char *at = text;
	*ret = (struct pattern){.count = 0};
	for (*position = 0; *at != '\0'; *position = (size_t)(at - text)) {
		if (ret->count == PATTERN_PARTS) {
			return "too many parts";
		}
		if (*at == '{' && at[1] != '{') {
			size_t length = strcspn(at + 1, "}");
			const char *error = at[1 + length] == '\0'
						    ? "no '}' follows"
						    : add_placeholder(ret, at + 1, length);
			if (error) {
				return error;
			}
			at += length + 2;
		} else {
			at += *at == '{'; /* one of the two */
			size_t length = 1 + strcspn(at + 1, "{");
			add_text(ret, at, length);
			at += length;
		}
	}
	ret->stage = ret->stage.at ? ret->stage : ret->word;
	if (!ret->stage.at && !(ret->kinds & 1u << PATTERN_STAGE)) {
		return "no stage: {stage}, {stage=NAME} or a word";
	}
	return ret->kinds & 1u << PATTERN_DURATION ? NULL : "no duration: {ms}, {us}, {s} or {ns}";
}

static const char *match_text(struct pattern_text text, const char *at, const char *end)
{
	const char *stop = text.at + text.length;
	for (const char *wanted = text.at; wanted < stop; wanted++) {
		if (at == end || (*at != *wanted && !(is_blank(*at) && is_blank(*wanted)))) {
			return NULL;
		}
		at++;
		if (is_blank(*wanted) && (wanted + 1 == stop || !is_blank(wanted[1]))) {
			while (at < end && is_blank(*at)) {
				at++;
			}
		}
	}
	return at;
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && is_digit(*at)) {
		at++;
	}
	return at;
}

/* A number, also where a word follows at once that begins with an e. */
static const char *match_number(const char *at, const char *end, double *ret)
{
	const char *stop = at;
	if (statsd_number(&stop, end, ret)) {
		return stop;
	}
	while (stop < end && (is_digit(*stop) || strchr("+-.", *stop)) && *stop != '\0') {
		stop++;
	}
	return statsd_number(&at, stop, ret) ? at : NULL;
}

struct matcher {
	const struct pattern *pattern;
	const char *line, *end;
	bool hopeless; /* what follows a {*} is nowhere in the rest: no other beginning helps */
	struct pattern_match match;
};

static const char *search(struct matcher *m, size_t part, const char *at);
static const char *match_word(struct matcher *m, size_t part, const char *at);

static const char *match_from(struct matcher *m, size_t part, const char *at)
{
	for (; at && part < m->pattern->count; part++) {
		const struct pattern_part *p = &m->pattern->parts[part];
		const char *begin = at;
		switch (p->kind) {
		case PATTERN_TEXT:
			at = match_text(p->text, at, m->end);
			break;
		case PATTERN_ANY:
			return search(m, part + 1, at);
		case PATTERN_DURATION:
			at = match_number(at, m->end, &m->match.ms);
			m->match.ms *= p->to_ms;
			break;
		case PATTERN_STAGE:
			return match_word(m, part, at);
		case PATTERN_FRAME:
			at = skip_digits(at, m->end);
			m->match.frame = (struct pattern_text){begin, (size_t)(at - begin)};
			at = at > begin ? at : NULL;
			break;
		}
	}
	return at;
}

/* A word is as long as possible, but leaves what the text behind it needs ("{stage}_time"). */
static const char *match_word(struct matcher *m, size_t part, const char *at)
{
	for (size_t length = word_length(at, m->end); length > 0 && !m->hopeless; length--) {
		const char *stop = match_from(m, part + 1, at + length);
		if (stop) {
			m->match.stage = (struct pattern_text){at, length};
			return stop;
		}
	}
	return NULL;
}

/* Whether a word or a number would begin in the middle of one. */
static bool is_inside(const struct matcher *m, size_t part, const char *at)
{
	bool starts = at == m->line || part == m->pattern->count;
	switch (starts ? PATTERN_TEXT : m->pattern->parts[part].kind) {
	case PATTERN_DURATION:
	case PATTERN_FRAME:
		return is_digit(at[-1]) || at[-1] == '.' || at[-1] == '+' || at[-1] == '-';
	case PATTERN_STAGE:
		return is_word(at[-1]);
	case PATTERN_TEXT:
	case PATTERN_ANY:
		break;
	}
	return false;
}

static const char *search(struct matcher *m, size_t part, const char *at)
{
	for (; at <= m->end && !m->hopeless; at++) {
		const char *stop = is_inside(m, part, at) ? NULL : match_from(m, part, at);
		if (stop) {
			return stop;
		}
	}
	m->hopeless = true;
	return NULL;
}

bool pattern_find(const struct pattern *pattern, const char *line, const char *at, const char *end,
	struct pattern_match *ret)
{
	struct matcher m = {.pattern = pattern, .line = line, .end = end};
	m.match.stage = pattern->stage;
	m.match.end = search(&m, 0, at);
	if (m.match.end) {
		*ret = m.match;
	}
	return m.match.end;
}
