/* SPDX-License-Identifier: Apache-2.0 */
/* test_tail_pattern.c: patterns of `edgeprofctl tail`: what they match, what is wrong with them,
 * and that no line costs more than its length. */
#include "client/edgeprofctl/tail/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* "infer=12.5 infer=3 frame 7": all matches of a line. */
static const char *found(const char *pattern_text, const char *line, size_t length)
{
	static char ret[512];
	struct pattern pattern;
	size_t position, used = 0;
	const char *error = pattern_parse(pattern_text, &pattern, &position);
	ck_assert_msg(!error, "%s: %s", pattern_text, error);
	struct pattern_match match = {.end = line};
	ret[0] = '\0';
	while (pattern_find(&pattern, line, match.end, line + length, &match)) {
		used += (size_t)snprintf(ret + used, sizeof(ret) - used, "%s%.*s=%.15g",
			used ? " " : "", (int)match.stage.length, match.stage.at, match.ms);
		if (match.frame.at) {
			used += (size_t)snprintf(ret + used, sizeof(ret) - used, " frame %.*s",
				(int)match.frame.length, match.frame.at);
		}
	}
	return ret;
}

START_TEST(durations_are_found_in_lines)
{
	static const struct {
		const char *pattern, *line, *expected;
	} cases[] = {
		{"infer: {ms} ms", "2026-11-28 INFO infer: 12.5 ms (batch 1)", "infer=12.5"},
		{"infer: {ms} ms", "infer:\t  12.5  ms", "infer=12.5"}, /* columns */
		{"infer: {ms} ms", "infer: 12.5ms", ""},
		{"infer: {ms} ms", "infer: x infer: 3 ms", "infer=3"},
		{"infer: {ms} ms", "", ""},
		{"took {us}us", "took 1500us", "took=1.5"},
		{"took {s}s", "took 1.5e-2s", "took=15"},
		{"took {ns} ns", "took 2000000 ns", "took=2"},
		{"{stage=infer}took {s} s", "it took 2 s", "infer=2000"},
		{"{stage}: {ms} ms", "[12:00:01] infer@gpu: 5 ms", "infer@gpu=5"},
		{"{stage} {ms}", "a/b-c.d_e 1", "a/b-c.d_e=1"},
		{"{stage}_time={ms}", "nms_time=4", "nms=4"}, /* leaves the text behind it */
		{"{stage}_time={ms}", "_time=4", ""},
		{"{ms}ms {stage}", "Speed: 1.2ms pre, 5.6ms inference, 0.9ms post per image",
			"pre=1.2 inference=5.6 post=0.9"},
		{"{stage=nms}frame {frame}{*}infer {ms}", "frame 17 of 99: infer 3",
			"nms=3 frame 17"},
		{"frame {frame} {*}{ms} ms", "frame 17 a 1 b 2 ms", "frame=2 frame 17"},
		{"infer {ms}{*}", "infer 5 and infer 6", "infer=5 infer=6"},
		{"{ms} ms total", "x 112.5 ms total", "ms=112.5"}, /* not 12.5 */
		{"{ms} ms total", "10-12 ms total", ""},
		{"{stage=a}{ms} ms", "10-12 ms", ""},
		{"infer {ms}", "infer -5", "infer=-5"},
		{"infer-{ms}", "infer-5", "infer=5"},
		{"infer {ms}", "infer 1e99", "infer=1e+99"},
		{"infer {ms} ms", "infer 1e999 ms", ""},
		{"infer {ms}each", "infer 5each", "infer=5"},
		{"infer {ms}", "infer nan", ""},
		{"{{\"infer\": {ms}}", "{\"t\": 1} {\"infer\": 5}", "infer=5"},
		{"\xc3\xa9t\xc3\xa9 {ms}", "\xc3\xa9t\xc3\xa9 5", "\xc3\xa9t\xc3\xa9=5"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		const char *got = found(cases[i].pattern, cases[i].line, strlen(cases[i].line));
		ck_assert_msg(strcmp(got, cases[i].expected) == 0, "%s in '%s': '%s'",
			cases[i].pattern, cases[i].line, got);
	}
	static const char nul[] = "a\0infer: 5\xff ms infer: 6 ms\0";
	ck_assert_str_eq(found("infer: {ms} ms", nul, sizeof(nul) - 1), "infer=6");
}
END_TEST

START_TEST(a_wrong_pattern_has_a_position_and_a_reason)
{
	static const struct {
		const char *pattern;
		size_t position;
		const char *reason;
	} cases[] = {
		{"", 0, "no stage"},
		{"infer", 5, "no duration"},
		{"{ms}", 4, "no stage"},
		{"12: {ms}", 8, "no stage"},
		{"a {msec}", 2, "unknown placeholder"},
		{"a {}", 2, "unknown placeholder"},
		{"a {stage=}", 2, "unknown placeholder"},
		{"a {ms", 2, "no '}'"},
		{"a {ms} {us}", 7, "only one"},
		{"{stage} {stage} {ms}", 8, "only one"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct pattern pattern;
		size_t position = 99;
		const char *error = pattern_parse(cases[i].pattern, &pattern, &position);
		ck_assert_msg(error && strstr(error, cases[i].reason) == error &&
				      position == cases[i].position,
			"%s: %s at %zu", cases[i].pattern, error ? error : "fine", position);
	}
}
END_TEST

/* Each would take hours if a {*} gave back what follows it. */
START_TEST(no_line_takes_longer_than_its_length)
{
	enum { SIZE = 1 << 18 };
	static const char *const patterns[] = {"a{*}a{*}a{*}a{*}a{*}a{*}x {ms}",
		"{stage}{*}{frame}{*}b{*}x {ms}", "{ms}{*}1{*}1{*}1{*}x {stage}", " {ms}{stage=x}"};
	static const char fills[] = "a1 \t-.\xff";
	char *line = malloc(SIZE);
	ck_assert_ptr_nonnull(line);
	for (int i = 0; i < COUNT(patterns); i++) {
		for (const char *fill = fills; *fill; fill++) {
			memset(line, *fill, SIZE);
			ck_assert_str_eq(found(patterns[i], line, SIZE), "");
		}
	}
	free(line);
}
END_TEST
