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
		const char *unit, *base;
		double factor;
	} bases[] = {{"ms", "s", 1e3}, {"ms", "min", 6e4}, {"milliseconds", "s", 1e3},
		{"milliseconds", "min", 6e4}, {"microseconds", "s", 1e6}, {"seconds", "s", 1},
		{"seconds", "min", 60}, {"fps", "fps", 1}, {"percent", "%", 1}, {"celsius", "C", 1},
		{"bytes", "B", 1}, {"hertz", "Hz", 1}, {"milliwatts", "W", 1e3},
		{"millijoules", "J", 1e3}, {"volts", "V", 1}};
	static const struct {
		const char *name;
		double factor;
	} prefixes[] = {{"", 1}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9},
		{"Ki", 1024}, {"Mi", 1 << 20}, {"Gi", 1 << 30}};
	const size_t base_count = sizeof(bases) / sizeof(bases[0]),
		     prefix_count = sizeof(prefixes) / sizeof(prefixes[0]);
	for (size_t i = 0; i < base_count * prefix_count; i++) {
		size_t base = i / prefix_count, prefix = i % prefix_count;
		char name[8];
		snprintf(name, sizeof(name), "%s%s", prefixes[prefix].name, bases[base].base);
		if (strcmp(bases[base].unit, unit) == 0 && strcmp(name, typed) == 0) {
			return prefixes[prefix].factor * bases[base].factor;
		}
	}
	return typed[0] == '\0' || strcmp(typed, unit) == 0 ? 1 : (double)NAN;
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
