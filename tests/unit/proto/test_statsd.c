/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of statsd lines: what is taken, what is refused and why, and that a bad line never
 * costs its neighbours anything. */
#include "proto/statsd/statsd.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/statsd/number.h"
#include "tests/unit/unit.h"

static struct statsd_reader reader;
static struct statsd_line *const line = &reader.line;

/* Reads from memory that ends with the text, so that a byte too many is seen by the sanitizer. */
static enum statsd_result parse(const char *text)
{
	static char *copy;
	size_t length = strlen(text);
	free(copy);
	copy = malloc(length ? length : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, length);
	statsd_reader_init(&reader, copy, length);
	return statsd_next(&reader);
}

static void assert_text(struct statsd_text text, const char *want)
{
	ck_assert_uint_eq(text.length, strlen(want));
	if (text.length) {
		ck_assert_mem_eq(text.at, want, text.length);
	}
}

#define NO STATSD_NO_FRAME

static const struct {
	const char *text, *name;
	enum statsd_type type;
	double value, rate;
	uint64_t frame;
	const char *app, *unit, *category;
} good[] = {
	{"infer:12.5|ms|#app:cam,frame:12", "infer", STATSD_TIME, 12.5, 1, 12, "cam", "", ""},
	{"infer:12.5|ms", "infer", STATSD_TIME, 12.5, 1, NO, "", "", ""},
	{"a:1|h", "a", STATSD_TIME, 1, 1, NO, "", "", ""},
	{"a:1|d", "a", STATSD_TIME, 1, 1, NO, "", "", ""},
	{"a:1|g", "a", STATSD_GAUGE, 1, 1, NO, "", "", ""},
	{"a:1|c|@0.1", "a", STATSD_COUNTER, 1, 0.1, NO, "", "", ""},
	{"a:1|c|@1", "a", STATSD_COUNTER, 1, 1, NO, "", "", ""},
	{"a:.5|g", "a", STATSD_GAUGE, 0.5, 1, NO, "", "", ""},
	{"a:5.|g", "a", STATSD_GAUGE, 5, 1, NO, "", "", ""},
	{"a:1e3|g", "a", STATSD_GAUGE, 1000, 1, NO, "", "", ""},
	{"a:1|g|#", "a", STATSD_GAUGE, 1, 1, NO, "", "", ""},
	{"a:1|g|", "a", STATSD_GAUGE, 1, 1, NO, "", "", ""},
	{"a:1|g||#app:x", "a", STATSD_GAUGE, 1, 1, NO, "x", "", ""},
	{"a:1|g|#app:x|@0.5", "a", STATSD_GAUGE, 1, 0.5, NO, "x", "", ""},
	{"page.views:1|c|#env:prod,app:web|c:ci-83f|T1656581400", "page.views", STATSD_COUNTER, 1,
		1, NO, "web", "", ""},
	{"t:1|ms|#unit:gpu,category:vision,frame:0", "t", STATSD_TIME, 1, 1, 0, "", "gpu",
		"vision"},
	{"t:1|ms|#app:a,app:b", "t", STATSD_TIME, 1, 1, NO, "b", "", ""},
	{"t:1|ms|#app:,app", "t", STATSD_TIME, 1, 1, NO, "", "", ""},
	{"t:1|ms|#,,:x,::,app:a:b", "t", STATSD_TIME, 1, 1, NO, "a:b", "", ""},
	{"t:1|ms|#frame:main", "t", STATSD_TIME, 1, 1, NO, "", "", ""},
	{"t:1|ms|#frame:18446744073709551614", "t", STATSD_TIME, 1, 1, UINT64_MAX - 1, "", "", ""},
	{"t:1|ms|#frame:18446744073709551616", "t", STATSD_TIME, 1, 1, NO, "", "", ""},
	{"t:1|ms|#frame:-1", "t", STATSD_TIME, 1, 1, NO, "", "", ""},
	{"a b/\xc3\xa4:1|g", "a b/\xc3\xa4", STATSD_GAUGE, 1, 1, NO, "", "", ""},
	{"a:1|g\r", "a", STATSD_GAUGE, 1, 1, NO, "", "", ""},
	{"_e:1|g", "_e", STATSD_GAUGE, 1, 1, NO, "", "", ""},
	{"a:1|g|e:it-false|card:low|zzz", "a", STATSD_GAUGE, 1, 1, NO, "", "", ""},
};

static void assert_line(size_t i)
{
	assert_text(line->name, good[i].name);
	ck_assert_int_eq(line->type, good[i].type);
	ck_assert(line->value == good[i].value);
	ck_assert(line->rate == good[i].rate);
	ck_assert_uint_eq(line->frame, good[i].frame);
	assert_text(line->app, good[i].app);
	assert_text(line->unit, good[i].unit);
	assert_text(line->category, good[i].category);
	ck_assert(!statsd_next_value(line));
}

START_LOOP_TEST(a_good_line_is_read_whole, 0, COUNT(good))
{
	ck_assert_int_eq(parse(good[_i].text), STATSD_LINE);
	assert_line((size_t)_i);
	ck_assert_int_eq(statsd_next(&reader), STATSD_END);
}
END_TEST

static const char NUMBER[] = "the value is not a decimal number";
static const char RATE[] = "the rate is not above 0 and up to 1";

static const struct {
	const char *text;
	enum statsd_result result;
	const char *reason;
} bad[] = {
	{"a", STATSD_BAD, "no ':' after the name"},
	{"a|ms", STATSD_BAD, "no ':' after the name"},
	{"a|:1|ms", STATSD_BAD, "no ':' after the name"},
	{":1|ms", STATSD_BAD, "no name"},
	{":", STATSD_BAD, "no name"},
	{":::::", STATSD_BAD, "no name"},
	{"a:", STATSD_BAD, "no type"},
	{"a:1", STATSD_BAD, "no type"},
	{"a:1:2", STATSD_BAD, "no type"},
	{"a:1|", STATSD_BAD, "no type"},
	{"a:1||ms", STATSD_BAD, "no type"},
	{"a:x", STATSD_BAD, "no type"},
	{"a:|ms", STATSD_BAD, NUMBER},
	{"a:x|ms", STATSD_BAD, NUMBER},
	{"a:1x|ms", STATSD_BAD, NUMBER},
	{"a: 1|ms", STATSD_BAD, NUMBER},
	{"a:1 |ms", STATSD_BAD, NUMBER},
	{"a:1,5|ms", STATSD_BAD, NUMBER},
	{"a:nan|ms", STATSD_BAD, NUMBER},
	{"a:inf|g", STATSD_BAD, NUMBER},
	{"a:-infinity|g", STATSD_BAD, NUMBER},
	{"a:0x10|g", STATSD_BAD, NUMBER},
	{"a:1e999|g", STATSD_BAD, NUMBER},
	{"a:1e|g", STATSD_BAD, NUMBER},
	{"a:--1|g", STATSD_BAD, NUMBER},
	{"a:.|g", STATSD_BAD, NUMBER},
	{"a:1:|ms", STATSD_BAD, "one of the values is not a decimal number"},
	{"a:1:x:2|ms", STATSD_BAD, "one of the values is not a decimal number"},
	{"a:1|c|@0", STATSD_BAD, RATE},
	{"a:1|c|@2", STATSD_BAD, RATE},
	{"a:1|c|@-1", STATSD_BAD, RATE},
	{"a:1|c|@", STATSD_BAD, RATE},
	{"a:1|c|@0.5x", STATSD_BAD, RATE},
	{"a\tb:1|g", STATSD_BAD, "a control character in the name"},
	{"\x01\x02", STATSD_BAD, "a control character in the name"},
	{"a:1|s", STATSD_UNSUPPORTED, "a set"},
	{"users:alice|s", STATSD_UNSUPPORTED, "a set"},
	{"a:1|m", STATSD_UNSUPPORTED, "an unknown type"},
	{"a:1|MS", STATSD_UNSUPPORTED, "an unknown type"},
	{"a:x|kv", STATSD_UNSUPPORTED, "an unknown type"},
	{"_e{5,4}:title|text", STATSD_UNSUPPORTED, "an event"},
	{"_sc|disk|0", STATSD_UNSUPPORTED, "a service check"},
};

START_LOOP_TEST(a_bad_line_tells_why, 0, COUNT(bad))
{
	ck_assert_int_eq(parse(bad[_i].text), bad[_i].result);
	ck_assert_str_eq(reader.reason, bad[_i].reason);
}
END_TEST

START_LOOP_TEST(a_bad_line_costs_its_neighbours_nothing, 0, COUNT(bad))
{
	char text[256];
	snprintf(text, sizeof(text), "a:1|ms\n%s\n\n\r\nb:2|ms\n", bad[_i].text);
	ck_assert_int_eq(parse(text), STATSD_LINE);
	ck_assert(line->value == 1);
	ck_assert_int_eq(statsd_next(&reader), bad[_i].result);
	ck_assert_int_eq(statsd_next(&reader), STATSD_LINE);
	assert_text(line->name, "b");
	ck_assert_int_eq(statsd_next(&reader), STATSD_END);
}
END_TEST

/* What a line has in common with the one before is not parsed again. */
START_LOOP_TEST(a_line_says_the_same_after_any_other, 0, COUNT(good))
{
	char text[256];
	for (size_t i = 0; i < COUNT(good); i++) {
		snprintf(text, sizeof(text), "%s\n%s\n%s", good[_i].text, good[i].text,
			good[_i].text);
		ck_assert_int_eq(parse(text), STATSD_LINE);
		ck_assert_int_eq(statsd_next(&reader), STATSD_LINE);
		assert_line(i);
		ck_assert_int_eq(statsd_next(&reader), STATSD_LINE);
		assert_line((size_t)_i);
		ck_assert_int_eq(statsd_next(&reader), STATSD_END);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		snprintf(text, sizeof(text), "%s\n%s\r\nb:2|ms", good[_i].text, bad[i].text);
		ck_assert_int_eq(parse(text), STATSD_LINE);
		ck_assert_int_eq(statsd_next(&reader), bad[i].result);
		ck_assert_str_eq(reader.reason, bad[i].reason);
		ck_assert_int_eq(statsd_next(&reader), STATSD_LINE);
		assert_text(line->name, "b");
	}
}
END_TEST

static const struct {
	const char *text;
	enum statsd_result result;
	double value;
	uint64_t frame;
} similar[] = {
	{"b:-2.5|ms|#app:x,frame:13,unit:gpu", STATSD_LINE, -2.5, 13},
	{"b:1e2|ms|#app:x,frame:13,unit:gpu", STATSD_LINE, 100, 13},
	{"b:2|ms|#app:x,frame:1234567890123456789,unit:gpu", STATSD_LINE, 2, 1234567890123456789},
	{"b:2|ms|#app:x,frame:18446744073709551614,unit:gpu", STATSD_LINE, 2, UINT64_MAX - 1},
	{"b:2|ms|#app:x,frame:18446744073709551616,unit:gpu", STATSD_LINE, 2, NO},
	{"b:2|ms|#app:x,frame:,unit:gpu", STATSD_LINE, 2, NO},
	{"b:2|ms|#app:x,frame:13:4,unit:gpu", STATSD_LINE, 2, NO},
	{"b:2|ms|#app:x,frame:13,unit:gpu,frame:14", STATSD_LINE, 2, 14},
	{"b:2|ms|#app:x,frame:13,unit:gpu\r", STATSD_LINE, 2, 13},
	{"b:2|ms|#app:x,frame:13,unit:gpu|@2", STATSD_BAD, 0, 0},
	{"_e{1,1}:2|ms|#app:x,frame:13,unit:gpu", STATSD_UNSUPPORTED, 0, 0},
	{"b\t:2|ms|#app:x,frame:13,unit:gpu", STATSD_BAD, 0, 0},
	{":2|ms|#app:x,frame:13,unit:gpu", STATSD_BAD, 0, 0},
	{"b:.|ms|#app:x,frame:13,unit:gpu", STATSD_BAD, 0, 0},
};

START_LOOP_TEST(a_line_like_the_last_one_differs_in_its_numbers, 0, COUNT(similar))
{
	char text[256];
	snprintf(text, sizeof(text), "a:1|ms|#app:x,frame:12,unit:gpu\n%s", similar[_i].text);
	ck_assert_int_eq(parse(text), STATSD_LINE);
	ck_assert_uint_eq(line->frame, 12);
	ck_assert_int_eq(statsd_next(&reader), similar[_i].result);
	if (similar[_i].result == STATSD_LINE) {
		assert_text(line->name, "b");
		assert_text(line->unit, "gpu");
		ck_assert(line->value == similar[_i].value);
		ck_assert_int_eq(line->has_sign, similar[_i].value < 0);
		ck_assert_uint_eq(line->frame, similar[_i].frame);
	}
	ck_assert_int_eq(statsd_next(&reader), STATSD_END);
}
END_TEST

START_TEST(names_have_equal_hashes_wherever_they_are)
{
	uint64_t hash[20];
	char text[64];
	for (int length = 1; length < 20; length++) {
		snprintf(text, sizeof(text), "%.*s:1|g\n%.*s:1|ms|#app:some", length,
			"abcdefghijklmnopqrstuvwxyz", length, "abcdefghijklmnopqrstuvwxyz");
		ck_assert_int_eq(parse(text), STATSD_LINE);
		hash[length] = line->name_hash;
		ck_assert_int_eq(statsd_next(&reader), STATSD_LINE);
		ck_assert_uint_eq(line->name_hash, hash[length]);
		for (int i = 1; i < length; i++) {
			ck_assert_uint_ne(hash[i], hash[length]);
		}
	}
}
END_TEST

START_TEST(packed_values_come_one_after_the_other)
{
	ck_assert_int_eq(parse("t:1:-2:+3.5|g|#app:x"), STATSD_LINE);
	ck_assert(line->value == 1 && !line->has_sign);
	ck_assert(statsd_next_value(line));
	ck_assert(line->value == -2 && line->has_sign);
	ck_assert(statsd_next_value(line));
	ck_assert(line->value == 3.5 && line->has_sign);
	ck_assert(!statsd_next_value(line));
	ck_assert(!statsd_next_value(line));
	assert_text(line->app, "x");
}
END_TEST

START_TEST(limits_of_a_line_hold)
{
	static char text[STATSD_DATAGRAM_MAX];
	size_t at = 1;
	text[0] = 'a';
	for (int i = 0; i < STATSD_VALUES_MAX; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, ":%d", i % 10);
	}
	snprintf(text + at, sizeof(text) - at, "|ms");
	ck_assert_int_eq(parse(text), STATSD_LINE);
	snprintf(text + at, sizeof(text) - at, ":1|ms");
	ck_assert_int_eq(parse(text), STATSD_BAD);
	ck_assert_str_eq(reader.reason, "too many values");
	memset(text, 'n', STATSD_NAME_MAX);
	memcpy(text + STATSD_NAME_MAX, ":1|g", 5);
	ck_assert_int_eq(parse(text), STATSD_LINE);
	memset(text, 'n', STATSD_NAME_MAX + 1);
	memcpy(text + STATSD_NAME_MAX + 1, ":1|g", 5);
	ck_assert_int_eq(parse(text), STATSD_BAD);
	ck_assert_str_eq(reader.reason, "the name is too long");
}
END_TEST

START_TEST(a_datagram_may_repeat_the_one_before)
{
	static const char text[][40] = {
		"x:2|ms|#app:cam,frame:8", "x:3|ms|#app:cat,frame:9", "x:4|g"};
	ck_assert_int_eq(parse("infer:1|ms|#app:cam,frame:7"), STATSD_LINE);
	for (size_t i = 0; i < 3; i++) {
		statsd_reader_resume(&reader, text[i], strlen(text[i]));
		ck_assert_int_eq(statsd_next(&reader), STATSD_LINE);
		ck_assert(line->value == 2 + (double)i);
		ck_assert_uint_eq(line->frame, i < 2 ? 8 + i : NO);
		assert_text(line->app, i == 0 ? "cam" : i == 1 ? "cat" : "");
		ck_assert_int_eq(statsd_next(&reader), STATSD_END);
	}
}
END_TEST

START_TEST(nothing_is_in_an_empty_datagram)
{
	ck_assert_int_eq(parse(""), STATSD_END);
	ck_assert_int_eq(parse("\n\n\r\n"), STATSD_END);
}
END_TEST

static double number_of(const char *text)
{
	const char *at = text;
	double value = -1;
	ck_assert_msg(statsd_number(&at, text + strlen(text), &value), "%s", text);
	ck_assert_msg(*at == '\0', "%s", text);
	return value;
}

START_TEST(short_numbers_are_those_of_strtod)
{
	static const char *const texts[] = {"0", "-0", "0.1", "12.5", "33.333333", "1e22", "1e-22",
		"9007199254740992", "123456789012345", "0.000001", "299792458", "6.02214076e22",
		"+7", "00012.500", "5.", ".5", "12345678901234.5", "123456789012345.",
		"123456789012345.6", "12345678901.23456", "1E3", "1e+3", "0e9999",
		"3.141592653589793"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		double want = strtod(texts[i], NULL), got = number_of(texts[i]);
		ck_assert_msg(memcmp(&want, &got, sizeof(want)) == 0, "%s: %.17g", texts[i], got);
	}
}
END_TEST

START_TEST(long_numbers_are_within_one_unit_of_strtod)
{
	static const char *const texts[] = {"1.7976931348623157e308", "2.2250738585072014e-308",
		"123456789012345678901234567890", "0.1234567890123456789012345678901234567890",
		"1e-400", "9.999999999999999999999e-5", "1e300", "4.9e-324"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		double want = strtod(texts[i], NULL), got = number_of(texts[i]);
		ck_assert_msg(got == want || got == nextafter(want, INFINITY) ||
				      got == nextafter(want, 0),
			"%s: %.17g", texts[i], got);
	}
	uint64_t state = 88172645463325252u;
	for (int i = 0; i < 200000; i++) {
		char text[64];
		double want;
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(&want, &state, sizeof(want));
		if (!isfinite(want)) {
			continue;
		}
		snprintf(text, sizeof(text), "%.*g", 1 + i % 20, want);
		want = strtod(text, NULL);
		if (!isfinite(want)) {
			continue;
		}
		double got = number_of(text);
		ck_assert_msg(got == want || got == nextafter(want, INFINITY) ||
				      got == nextafter(want, -INFINITY),
			"%s: %.17g", text, got);
	}
}
END_TEST

/* Any bytes: no read outside (the sanitizers), always an end, every line is counted. */
START_TEST(random_bytes_are_only_counted)
{
	static const char alphabet[] = "a1:|#@,.-+e\nmsgcd\x00\xff:|\nframe:app:";
	uint64_t state = 123456789;
	for (int round = 0; round < 20000; round++) {
		char text[128];
		size_t length = (size_t)(round % (int)sizeof(text)), results = 0;
		for (size_t i = 0; i < length; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			text[i] = alphabet[(state >> 33) % (sizeof(alphabet) - 1)];
		}
		statsd_reader_init(&reader, text, length);
		enum statsd_result r;
		while ((r = statsd_next(&reader)) != STATSD_END) {
			results++;
			ck_assert(results <= length);
			while (r == STATSD_LINE && statsd_next_value(line)) {
				ck_assert(isfinite(line->value));
			}
		}
	}
}
END_TEST
