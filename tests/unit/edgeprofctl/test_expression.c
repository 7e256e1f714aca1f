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

/* In postfix order, as "frames.fps>30 stages.infer.p99_ms<50ms && for 30". */
static const struct {
	const char *text, *postfix;
} good[] = {
	{"frames.fps>30", "frames.fps>30"},
	{"frames.fps>30 && stages.infer.p99_ms<50 for 30s",
		"frames.fps>30 stages.infer.p99_ms<50 && for 30"},
	{" temperature/max <= 80 C ", "temperature/max<=80C"},
	{"temperature/max<80C", "temperature/max<80C"},
	{"a.b==1||a.c!=2&&a.d>=3", "a.b==1 a.c!=2 a.d>=3 && ||"},
	{"(a.b==1||a.c!=2)&&a.d>=3", "a.b==1 a.c!=2 || a.d>=3 &&"},
	{"a.b<1&&a.c<2&&a.d<3", "a.b<1 a.c<2 && a.d<3 &&"},
	{"stages.my-stage.v2@gpu.p99_ms<1.5ms", "stages.my-stage.v2@gpu.p99_ms<1.5ms"},
	{"temperature/cpu-thermal>-5", "temperature/cpu-thermal>-5"},
	{"a.b > 3 for 2min", "a.b>3 for 120"},
	{"((a.b > 3))", "a.b>3"},
	{"power/total < 5 W for 10s", "power/total<5W for 10"},
};

static void write_postfix(char *out, size_t size)
{
	static const char *const names[RELATIONS] = {">", ">=", "<", "<=", "==", "!="};
	size_t length = 0;
	for (size_t i = 0; i < expression.step_count; i++) {
		int step = expression.step[i];
		const struct term *term = &expression.term[step >= 0 ? step : 0];
		const char *space = i > 0 ? " " : "";
		length += (size_t)(step >= 0 ? snprintf(out + length, size - length, "%s%s%s%g%s",
						       space, term->path, names[term->relation],
						       term->number, term->unit)
					     : snprintf(out + length, size - length, "%s%s", space,
						       step == STEP_ALL ? "&&" : "||"));
	}
	if (expression.for_s > 0) {
		snprintf(out + length, size - length, " for %g", expression.for_s);
	}
}

/* covers G4.12 */
START_LOOP_TEST(a_condition_is_parsed, 0, COUNT(good))
{
	char postfix[512];
	ck_assert_msg(expression_parse(good[_i].text, &expression, &expected, &at) == 0,
		"%s: expected %s at %zu", good[_i].text, expected, at);
	write_postfix(postfix, sizeof(postfix));
	ck_assert_str_eq(postfix, good[_i].postfix);
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
	ck_assert_int_lt(expression_parse(bad[_i].text, &expression, &expected, &at), 0);
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
	ck_assert_int_eq(expression_parse(text, &expression, &expected, &at), 0);
	strncat(text, "||a.b>1", sizeof(text) - strlen(text) - 1);
	ck_assert_int_lt(expression_parse(text, &expression, &expected, &at), 0);
	ck_assert_str_eq(expected, "at most 32 comparisons");
}
END_TEST

START_TEST(what_is_not_known_decides_only_where_the_rest_does_not)
{
	static const struct {
		const char *text;
		enum truth first, second, all;
	} cases[] = {
		{"a.b>1&&a.c>1", TRUTH_YES, TRUTH_UNKNOWN, TRUTH_UNKNOWN},
		{"a.b>1&&a.c>1", TRUTH_NO, TRUTH_UNKNOWN, TRUTH_NO},
		{"a.b>1&&a.c>1", TRUTH_YES, TRUTH_YES, TRUTH_YES},
		{"a.b>1||a.c>1", TRUTH_YES, TRUTH_UNKNOWN, TRUTH_YES},
		{"a.b>1||a.c>1", TRUTH_NO, TRUTH_UNKNOWN, TRUTH_UNKNOWN},
		{"a.b>1||a.c>1", TRUTH_NO, TRUTH_NO, TRUTH_NO},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		enum truth terms[] = {cases[i].first, cases[i].second};
		ck_assert_int_eq(expression_parse(cases[i].text, &expression, &expected, &at), 0);
		ck_assert_int_eq(expression_truth(&expression, terms), cases[i].all);
	}
}
END_TEST

START_TEST(terms_compare_in_the_unit_that_was_typed)
{
	ck_assert_int_eq(expression_parse("a.p99_ms<0.05s", &expression, &expected, &at), 0);
	double factor = unit_factor(expression.term[0].unit, "ms");
	ck_assert_int_eq(term_truth(&expression.term[0], factor, 49), TRUTH_YES);
	ck_assert_int_eq(term_truth(&expression.term[0], factor, 50), TRUTH_NO);
	ck_assert_int_eq(term_truth(&expression.term[0], factor, NAN), TRUTH_UNKNOWN);
	ck_assert(isnan(unit_factor("W", "celsius")));
	ck_assert(isnan(unit_factor("parsecs", "ms")));
	ck_assert_double_eq(unit_factor("", "celsius"), 1);
}
END_TEST
