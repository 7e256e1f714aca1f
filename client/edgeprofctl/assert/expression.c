/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c: parses by recursive descent into postfix order, and evaluates with three truths. */
#include "client/edgeprofctl/assert/expression.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/term/when.h"

struct parser {
	const char *text, *at;
	const char *expected; /* NULL: no error yet */
	struct expression *into;
	int depth;
};

static const char *const relations[RELATIONS] = {">", ">=", "<", "<=", "==", "!="};

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
	skip_blanks(parser);
	size_t length = strlen(symbol);
	bool found = strncmp(parser->at, symbol, length) == 0;
	parser->at += found ? length : 0;
	return found;
}

static bool parse_path(struct parser *parser, struct term *term)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./@-";
	skip_blanks(parser);
	size_t length = strspn(parser->at, bytes);
	bool named = memchr(parser->at, '.', length) || memchr(parser->at, '/', length);
	if (!named || !isalpha((unsigned char)*parser->at) || length >= sizeof(term->path)) {
		return fail(parser,
			"a name such as frames.fps, stages.infer.p99_ms or temperature/max");
	}
	memcpy(term->path, parser->at, length);
	term->path[length] = '\0';
	parser->at += length;
	return true;
}

static bool parse_relation(struct parser *parser, struct term *term)
{
	skip_blanks(parser);
	size_t length = strspn(parser->at, "<>=!");
	for (int i = 0; i < RELATIONS; i++) {
		if (strlen(relations[i]) == length &&
			memcmp(relations[i], parser->at, length) == 0) {
			term->relation = (enum relation)i;
			parser->at += length;
			return true;
		}
	}
	return fail(parser, "one of > >= < <= == !=");
}

static bool parse_number(struct parser *parser, struct term *term)
{
	skip_blanks(parser);
	const char *start = parser->at;
	size_t sign = *start == '-', digits = strspn(start + sign, "0123456789.");
	char *end;
	term->number = strtod(start, &end);
	if (digits == 0 || end != start + sign + digits || !isfinite(term->number)) {
		return fail(parser, "a number");
	}
	parser->at = end;
	bool blank = isspace((unsigned char)*parser->at);
	skip_blanks(parser);
	size_t length = 0;
	while (isalpha((unsigned char)parser->at[length]) || parser->at[length] == '%') {
		length++;
	}
	bool is_for = blank && length == 3 && memcmp(parser->at, "for", 3) == 0;
	if (is_for) {
		length = 0;
	}
	if (length >= sizeof(term->unit)) {
		return fail(parser, "a unit such as ms, MHz, MiB, W, C or %");
	}
	memcpy(term->unit, parser->at, length);
	term->unit[length] = '\0';
	snprintf(term->text, sizeof(term->text), "%s %.*s%s%.*s", relations[term->relation],
		(int)(end - start < 18 ? end - start : 18), start, length > 0 ? " " : "",
		(int)length, parser->at);
	parser->at += length;
	return true;
}

static bool add_step(struct parser *parser, int step)
{
	/* As many operators as terms, less one, always fit. */
	parser->into->step[parser->into->step_count++] = step;
	return true;
}

static bool parse_any(struct parser *parser);

static bool parse_term(struct parser *parser)
{
	if (accept(parser, "(")) {
		if (++parser->depth > EXPRESSION_DEPTH) {
			return fail(parser, "fewer parentheses");
		}
		bool inner = parse_any(parser);
		parser->depth--;
		return inner && (accept(parser, ")") || fail(parser, "'&&', '||' or ')'"));
	}
	struct expression *into = parser->into;
	if (into->term_count == EXPRESSION_TERMS) {
		return fail(parser, "at most 32 comparisons");
	}
	struct term *term = &into->term[into->term_count];
	if (!parse_path(parser, term) || !parse_relation(parser, term) ||
		!parse_number(parser, term)) {
		return false;
	}
	return add_step(parser, (int)into->term_count++);
}

static bool parse_all(struct parser *parser)
{
	bool parsed = parse_term(parser);
	while (parsed && accept(parser, "&&")) {
		parsed = parse_term(parser) && add_step(parser, STEP_ALL);
	}
	return parsed;
}

static bool parse_any(struct parser *parser)
{
	bool parsed = parse_all(parser);
	while (parsed && accept(parser, "||")) {
		parsed = parse_all(parser) && add_step(parser, STEP_ANY);
	}
	return parsed;
}

static bool parse_for(struct parser *parser)
{
	skip_blanks(parser);
	if (*parser->at == '\0') {
		return true;
	}
	if (strncmp(parser->at, "for", 3) != 0 || !isspace((unsigned char)parser->at[3])) {
		return fail(parser, "'&&', '||', 'for SPAN' or the end");
	}
	parser->at += 3;
	skip_blanks(parser);
	char span[24];
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

int expression_parse(
	const char *text, struct expression *ret, const char **ret_expected, size_t *ret_at)
{
	struct parser parser = {.text = text, .at = text, .into = ret};
	memset(ret, 0, sizeof(*ret));
	if (parse_any(&parser) && parse_for(&parser)) {
		return 0;
	}
	*ret_expected = parser.expected;
	*ret_at = (size_t)(parser.at - text);
	return -EINVAL;
}

enum truth expression_truth(const struct expression *expression, const enum truth *terms)
{
	enum truth stack[EXPRESSION_TERMS];
	size_t top = 0;
	for (size_t i = 0; i < expression->step_count; i++) {
		int step = expression->step[i];
		if (step >= 0) {
			stack[top++] = terms[step];
			continue;
		}
		enum truth right = stack[--top], left = stack[top - 1];
		bool first = step == STEP_ALL ? left < right : left > right;
		stack[top - 1] = first ? left : right;
	}
	return stack[0];
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

enum truth term_truth(const struct term *term, double factor, double value)
{
	double number = term->number * factor;
	if (!isfinite(value)) {
		return TRUTH_UNKNOWN;
	}
	const bool holds[RELATIONS] = {[MORE] = value > number,
		[AT_LEAST] = value >= number,
		[LESS] = value < number,
		[AT_MOST] = value <= number,
		[EQUAL] = !(value < number) && !(value > number),
		[UNEQUAL] = value < number || value > number};
	return holds[term->relation] ? TRUTH_YES : TRUTH_NO;
}
