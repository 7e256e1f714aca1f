/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of `assert`, and what its conditions decide. */
#include "client/edgeprofctl/assert/expression.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct expression expression;
static const char *expected;
static size_t at;

/* The comparisons, as "frames.fps>30 stages.infer.p99_ms<50 for 30". */
static const struct {
	const char *text, *terms;
} good[] = {
	{"frames.fps>30", "frames.fps>30"},
	{"frames.fps>30 && stages.infer.p99_ms<50 for 30s",
		"frames.fps>30 stages.infer.p99_ms<50 for 30"},
	{" temperature/max <= 80 C ", "temperature/max<=80C"},
	{"temperature/max<80C", "temperature/max<80C"},
	{"a.b==1||a.c!=2&&a.d>=3", "a.b==1 a.c!=2 a.d>=3"},
	{"stages.my-stage.v2@gpu.p99_ms<1.5ms", "stages.my-stage.v2@gpu.p99_ms<1.5ms"},
	{"temperature/cpu-thermal>-5", "temperature/cpu-thermal>-5"},
	{"a.b > 3 for 2min", "a.b>3 for 120"},
	{"((a.b > 3))", "a.b>3"},
	{"power/total < 5 W for 10s", "power/total<5W for 10"},
};

static void write_terms(char *out, size_t size)
{
	size_t length = 0;
	for (size_t i = 0; i < expression.term_count; i++) {
		const struct term *term = &expression.term[i];
		length += (size_t)snprintf(out + length, size - length, "%s%s%s%g%s",
			i > 0 ? " " : "", term->path, term->relation->sign, term->number,
			term->unit);
	}
	if (expression.for_s > 0) {
		snprintf(out + length, size - length, " for %g", expression.for_s);
	}
}

static int parse(const char *text)
{
	return expression_parse(text, NULL, &expression, &expected, &at);
}

/* covers G4.12 */
START_LOOP_TEST(a_condition_is_parsed, 0, COUNT(good))
{
	char terms[512];
	ck_assert_msg(
		parse(good[_i].text) == 0, "%s: expected %s at %zu", good[_i].text, expected, at);
	write_terms(terms, sizeof(terms));
	ck_assert_str_eq(terms, good[_i].terms);
}
END_TEST

static const struct {
	const char *text;
	size_t at;
	const char *expected;
} bad[] = {
	{"", 0, "a name"},
	{"fps>30", 0, "a name"},
	{"frames.fps", 10, "one of >"},
	{"frames.fps=30", 10, "one of >"},
	{"frames.fps=>30", 10, "one of >"},
	{"frames.fps><30", 10, "one of >"},
	{"frames.fps>", 11, "a number"},
	{"frames.fps>fast", 11, "a number"},
	{"frames.fps>1.2.3", 11, "a number"},
	{"frames.fps>0x10", 11, "a number"},
	{"frames.fps>inf", 11, "a number"},
	{"frames.fps>--3", 11, "a number"},
	{"frames.fps>3 || ", 16, "a name"},
	{"frames.fps>3 & a.b>2", 13, "'&&'"},
	{"(frames.fps>3", 13, "'&&', '||' or ')'"},
	{"frames.fps>3)", 12, "'&&'"},
	{"frames.fps>3 for", 13, "'&&'"},
	{"frames.fps>3 for ever", 17, "a span"},
	{"frames.fps>3 for 0s", 17, "a span"},
	{"frames.fps>3 for 25h", 17, "a span"},
	{"frames.fps>3 for 3s && a.b>2", 20, "the end"},
	{"frames.fps>3 fortnights", 13, "a unit"},
	{"((((((((((a.b>1))))))))))", 9, "fewer"},
	{"a.b>1 \xff", 6, "'&&'"},
};

START_LOOP_TEST(what_does_not_fit_is_refused_at_its_place, 0, COUNT(bad))
{
	ck_assert_int_lt(parse(bad[_i].text), 0);
	ck_assert_msg(strncmp(expected, bad[_i].expected, strlen(bad[_i].expected)) == 0,
		"'%s': expected %s", bad[_i].text, expected);
	ck_assert_msg(at == bad[_i].at, "'%s': at %zu", bad[_i].text, at);
}
END_TEST

START_TEST(more_comparisons_than_fit_are_refused)
{
	char text[1024] = "a.b>1";
	for (int i = 1; i < EXPRESSION_TERMS; i++) {
		strncat(text, "&&a.b>1", sizeof(text) - strlen(text) - 1);
	}
	ck_assert_int_eq(parse(text), 0);
	strncat(text, "||a.b>1", sizeof(text) - strlen(text) - 1);
	ck_assert_int_lt(parse(text), 0);
	ck_assert_str_eq(expected, "at most 32 comparisons");
}
END_TEST

START_TEST(what_is_not_known_decides_only_where_the_rest_does_not)
{
	static const char letters[] = "NUY"; /* in the order of enum truth */
	static const struct {
		const char *text, *terms;
		char all;
	} cases[] = {
		{"a.b>1&&a.c>1", "YU", 'U'},
		{"a.b>1&&a.c>1", "NU", 'N'},
		{"a.b>1&&a.c>1", "YY", 'Y'},
		{"a.b>1||a.c>1", "YU", 'Y'},
		{"a.b>1||a.c>1", "NU", 'U'},
		{"a.b>1||a.c>1", "NN", 'N'},
		{"a.b>1||a.c>1&&a.d>1", "YNN", 'Y'},
		{"(a.b>1||a.c>1)&&a.d>1", "YNN", 'N'},
		{"a.b>1&&a.c>1||a.d>1", "NNY", 'Y'},
		{"a.b>1&&(a.c>1||a.d>1)", "NNY", 'N'},
		{"a.b>1&&a.c>1&&a.d>1", "YYN", 'N'},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		enum truth terms[3];
		for (size_t j = 0; j < strlen(cases[i].terms); j++) {
			terms[j] = (enum truth)(strchr(letters, cases[i].terms[j]) - letters);
		}
		ck_assert_int_eq(
			expression_parse(cases[i].text, terms, &expression, &expected, &at), 0);
		ck_assert_msg(letters[expression.truth] == cases[i].all, "case %d", i);
	}
}
END_TEST

START_TEST(terms_compare_in_the_unit_that_was_typed)
{
	ck_assert_int_eq(parse("a.p99_ms<0.05s"), 0);
	double factor = unit_factor(expression.term[0].unit, "ms");
	ck_assert_int_eq(term_truth(&expression.term[0], 49 / factor), TRUTH_YES);
	ck_assert_int_eq(term_truth(&expression.term[0], 50 / factor), TRUTH_NO);
	ck_assert_int_eq(term_truth(&expression.term[0], NAN), TRUTH_UNKNOWN);
	static const struct {
		const char *typed, *unit;
		double factor;
	} units[] = {{"s", "milliseconds", 1e3}, {"ms", "milliseconds", 1},
		{"us", "microseconds", 1}, {"ms", "microseconds", 1e3}, {"min", "seconds", 60},
		{"J", "millijoules", 1e3}, {"rpm", "rpm", 1}};
	for (int i = 0; i < COUNT(units); i++) {
		double found = unit_factor(units[i].typed, units[i].unit);
		ck_assert_msg(fabs(found / units[i].factor - 1) < 1e-9, "%s", units[i].typed);
	}
	ck_assert(isnan(unit_factor("W", "celsius")));
	ck_assert(isnan(unit_factor("parsecs", "ms")));
	ck_assert_double_eq(unit_factor("", "celsius"), 1);
}
END_TEST

START_TEST(the_worst_value_has_the_least_margin)
{
	static const struct {
		const char *text;
		double worse, better;
	} cases[] = {{"a.b>3", 2, 5}, {"a.b>=3", 2, 5}, {"a.b<3", 5, 2}, {"a.b<=3", 5, 2},
		{"a.b==3", 1, 4}, {"a.b!=3", 4, 1}};
	for (int i = 0; i < COUNT(cases); i++) {
		ck_assert_int_eq(parse(cases[i].text), 0);
		ck_assert_double_lt(term_margin(&expression.term[0], cases[i].worse),
			term_margin(&expression.term[0], cases[i].better));
	}
}
END_TEST
