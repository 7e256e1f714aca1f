/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c: parses by recursive descent, and evaluates with three truths while it does. */
#include "client/edgeprofctl/assert/expression.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/term/when.h"

struct parser {
	const char *at;
	const char *expected; /* NULL: no error yet */
	const enum truth *truths;
	struct expression *into;
	int depth;
};

static const struct relation relations[] = {
	{">", false, false, true},
	{">=", false, true, true},
	{"<", true, false, false},
	{"<=", true, true, false},
	{"==", false, true, false},
	{"!=", true, false, true},
};

static void skip_blanks(struct parser *parser)
{
	while (isspace((unsigned char)*parser->at)) {
		parser->at++;
	}
}

static bool fail(struct parser *parser, const char *expected)
{
	parser->expected = parser->expected ? parser->expected : expected;
	return false;
}

static bool accept(struct parser *parser, const char *symbol)
{
	if (parser->expected) {
		return false;
	}
	skip_blanks(parser);
	size_t length = strlen(symbol);
	bool found = strncmp(parser->at, symbol, length) == 0;
	parser->at += found ? length : 0;
	return found;
}

/* Takes as many bytes as that; false: they do not fit. */
static bool take(struct parser *parser, size_t length, char *ret, size_t size)
{
	if (length >= size) {
		return false;
	}
	memcpy(ret, parser->at, length);
	ret[length] = '\0';
	parser->at += length;
	return true;
}

static bool parse_path(struct parser *parser, struct term *term)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./@-";
	skip_blanks(parser);
	size_t length = strspn(parser->at, bytes);
	bool named = memchr(parser->at, '.', length) || memchr(parser->at, '/', length);
	return (named && isalpha((unsigned char)*parser->at) &&
		       take(parser, length, term->path, sizeof(term->path))) ||
	       fail(parser, "a name such as frames.fps, stages.infer.p99_ms or temperature/max");
}

static bool parse_relation(struct parser *parser, struct term *term)
{
	char sign[4];
	skip_blanks(parser);
	const char *start = parser->at;
	bool taken = take(parser, strspn(start, "<>=!"), sign, sizeof(sign));
	for (size_t i = 0; taken && i < sizeof(relations) / sizeof(relations[0]); i++) {
		if (strcmp(relations[i].sign, sign) == 0) {
			term->relation = &relations[i];
			return true;
		}
	}
	parser->at = start;
	return fail(parser, "one of > >= < <= == !=");
}

static bool parse_number(struct parser *parser, struct term *term)
{
	skip_blanks(parser);
	size_t digits = strspn(parser->at, "-.0123456789"), length = 0;
	char *end;
	term->number = strtod(parser->at, &end);
	if (digits == 0 || end != parser->at + digits || !isfinite(term->number)) {
		return fail(parser, "a number");
	}
	parser->at = end;
	skip_blanks(parser);
	while (isalpha((unsigned char)parser->at[length]) || parser->at[length] == '%') {
		length++;
	}
	bool is_for = parser->at > end && length == 3 && memcmp(parser->at, "for", 3) == 0;
	return take(parser, is_for ? 0 : length, term->unit, sizeof(term->unit)) ||
	       fail(parser, "a unit such as ms, MHz, MiB, W, C or %");
}

static enum truth parse_any(struct parser *parser);

static enum truth parse_term(struct parser *parser)
{
	struct expression *into = parser->into;
	enum truth truth = TRUTH_UNKNOWN;
	if (accept(parser, "(")) {
		if (++parser->depth > EXPRESSION_DEPTH) {
			fail(parser, "fewer parentheses");
		} else {
			truth = parse_any(parser);
		}
		parser->depth--;
		if (!accept(parser, ")")) {
			fail(parser, "'&&', '||' or ')'");
		}
	} else if (into->term_count == EXPRESSION_TERMS) {
		fail(parser, "at most 32 comparisons");
	} else {
		size_t number = into->term_count++;
		struct term *term = &into->term[number];
		bool parsed = parse_path(parser, term) && parse_relation(parser, term) &&
			      parse_number(parser, term);
		truth = parsed && parser->truths ? parser->truths[number] : truth;
	}
	return truth;
}

static enum truth parse_all(struct parser *parser)
{
	enum truth all = parse_term(parser);
	while (accept(parser, "&&")) {
		enum truth next = parse_term(parser);
		all = next < all ? next : all;
	}
	return all;
}

static enum truth parse_any(struct parser *parser)
{
	enum truth any = parse_all(parser);
	while (accept(parser, "||")) {
		enum truth next = parse_all(parser);
		any = next > any ? next : any;
	}
	return any;
}

static bool parse_for(struct parser *parser)
{
	char span[24];
	skip_blanks(parser);
	if (*parser->at == '\0') {
		return true;
	}
	if (strncmp(parser->at, "for", 3) != 0 || !isspace((unsigned char)parser->at[3])) {
		return fail(parser, "'&&', '||', 'for SPAN' or the end");
	}
	parser->at += 3;
	skip_blanks(parser);
	snprintf(span, sizeof(span), "%s", parser->at);
	span[strcspn(span, " \t\n")] = '\0';
	if (when_parse_span(span, &parser->into->for_s) < 0 || !(parser->into->for_s > 0) ||
		parser->into->for_s > 86400) {
		return fail(parser, "a span of at most 24h, such as 30s");
	}
	parser->at += strlen(span);
	skip_blanks(parser);
	return *parser->at == '\0' || fail(parser, "the end");
}

int expression_parse(const char *text, const enum truth *truths, struct expression *ret,
	const char **ret_expected, size_t *ret_at)
{
	struct parser parser = {.at = text, .truths = truths, .into = ret};
	memset(ret, 0, sizeof(*ret));
	ret->truth = parse_any(&parser);
	if (!parser.expected && parse_for(&parser)) {
		return 0;
	}
	*ret_expected = parser.expected;
	*ret_at = (size_t)(parser.at - text);
	return -EINVAL;
}

double unit_factor(const char *typed, const char *unit)
{
	static const struct {
		const char *typed, *unit;
		double factor;
	} units[] = {
		{"us", "ms", 1e-3},
		{"ms", "ms", 1},
		{"s", "ms", 1e3},
		{"min", "ms", 6e4},
		{"ms", "seconds", 1e-3},
		{"s", "seconds", 1},
		{"min", "seconds", 60},
		{"fps", "fps", 1},
		{"%", "percent", 1},
		{"C", "celsius", 1},
		{"B", "bytes", 1},
		{"kB", "bytes", 1e3},
		{"MB", "bytes", 1e6},
		{"GB", "bytes", 1e9},
		{"KiB", "bytes", 1024},
		{"MiB", "bytes", 1 << 20},
		{"GiB", "bytes", 1 << 30},
		{"Hz", "hertz", 1},
		{"kHz", "hertz", 1e3},
		{"MHz", "hertz", 1e6},
		{"GHz", "hertz", 1e9},
		{"mW", "milliwatts", 1},
		{"W", "milliwatts", 1e3},
		{"mJ", "millijoules", 1},
		{"J", "millijoules", 1e3},
		{"V", "volts", 1},
		{"mV", "volts", 1e-3},
	};
	if (typed[0] == '\0') {
		return 1;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].typed, typed) == 0 && strcmp(units[i].unit, unit) == 0) {
			return units[i].factor;
		}
	}
	return NAN;
}

double term_margin(const struct term *term, double value)
{
	const struct relation *relation = term->relation;
	double off = value - term->number;
	return relation->less != relation->more ? (relation->more ? off : -off)
	       : relation->equal		? -fabs(off)
						: fabs(off);
}

enum truth term_truth(const struct term *term, double value)
{
	const struct relation *relation = term->relation;
	bool holds = value < term->number   ? relation->less
		     : value > term->number ? relation->more
					    : relation->equal;
	return !isfinite(value) ? TRUTH_UNKNOWN : holds ? TRUTH_YES : TRUTH_NO;
}
