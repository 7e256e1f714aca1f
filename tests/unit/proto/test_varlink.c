/* SPDX-License-Identifier: Apache-2.0 */
/* The strict scan and the numbers of messages. */
#include "proto/varlink.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/utf8.h"
#include "tests/unit/unit.h"

struct text {
	const char *bytes;
	size_t length;
};
#define TEXT(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct text good[] = {
	TEXT("{}"),
	TEXT(" \t\r\n{ } \n"),
	TEXT("{\"method\":\"a.b\",\"parameters\":{\"x\":[1,-0,0.5,1e5,1E-5,-1.25e+3]}}"),
	TEXT("{\"a\":{\"a\":{\"a\":null}},\"b\":[{\"a\":1},{\"a\":2}]}"),
	TEXT("{\"\":true,\" \":false}"),
	TEXT("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"}"),
	TEXT("{\"a\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"}"),
	TEXT("{\"n\":[1e999]}"),
};

static const struct text bad[] = {
	TEXT(""),
	TEXT(" "),
	TEXT("null"),
	TEXT("[]"),
	TEXT("\"a\""),
	TEXT("1"),
	TEXT("{"),
	TEXT("}"),
	TEXT("{]"),
	TEXT("{\"a\":[}"),
	TEXT("{\"a\":[1}]"),
	TEXT("{\"a\""),
	TEXT("{\"a\":"),
	TEXT("{\"a\":1"),
	TEXT("{\"a\":1,"),
	TEXT("{\"a\":1,}"),
	TEXT("{\"a\":[1,]}"),
	TEXT("{\"a\":[,1]}"),
	TEXT("{,}"),
	TEXT("{\"a\" 1}"),
	TEXT("{\"a\"::1}"),
	TEXT("{1:2}"),
	TEXT("{a:1}"),
	TEXT("{'a':1}"),
	TEXT("{\"a\":1}x"),
	TEXT("{\"a\":1}{}"),
	TEXT("{\"a\":1}\0"),
	TEXT("{\"a\":1 2}"),
	TEXT("{\"a\":1,\"a\":2}"),
	TEXT("{\"a\":1,\"\\u0061\":2}"),
	TEXT("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}"),
	TEXT("{\"x\":{\"b\":0},\"b\":1,\"c\":2,\"b\":3}"),
	TEXT("{\"a\":\"\\u0000\"}"),
	TEXT("{\"a\\u0000b\":1}"),
	TEXT("{\"a\":\"\\ud800\"}"),
	TEXT("{\"a\":\"\\udc00\"}"),
	TEXT("{\"a\":\"\\ud800\\u0041\"}"),
	TEXT("{\"a\":\"\\ud800x\"}"),
	TEXT("{\"a\":\"\\u12\"}"),
	TEXT("{\"a\":\"\\u12g4\"}"),
	TEXT("{\"a\":\"\\x41\"}"),
	TEXT("{\"a\":\"\\\0\"}"),
	TEXT("{\"a\":\"\\"),
	TEXT("{\"a\":\"b"),
	TEXT("{\"a\":\"b\nc\"}"),
	TEXT("{\"a\":\"b\0c\"}"),
	TEXT("{\"a\":\"\x1b[0m\"}"),
	TEXT("{\"a\":\"\x80\"}"),
	TEXT("{\"a\":\"\xc0\x80\"}"),
	TEXT("{\"a\":\"\xe0\x80\x80\"}"),
	TEXT("{\"a\":\"\xed\xa0\x80\"}"),
	TEXT("{\"a\":\"\xf4\x90\x80\x80\"}"),
	TEXT("{\"a\":\"\xf0\x9f\x98\"}"),
	TEXT("{\"a\":\"\xff\"}"),
	TEXT("\xef\xbb\xbf{}"),
	TEXT("{\"a\":01}"),
	TEXT("{\"a\":-}"),
	TEXT("{\"a\":+1}"),
	TEXT("{\"a\":.5}"),
	TEXT("{\"a\":1.}"),
	TEXT("{\"a\":1e}"),
	TEXT("{\"a\":1e+}"),
	TEXT("{\"a\":0x10}"),
	TEXT("{\"a\":NaN}"),
	TEXT("{\"a\":Infinity}"),
	TEXT("{\"a\":nul}"),
	TEXT("{\"a\":True}"),
	TEXT("{\"a\":truefalse}"),
	TEXT("{\"a\":1/*x*/}"),
	TEXT("{\"a\":123456789012345678901234567890123456789012345678901234567890123}"),
};

TEST_TIMEOUT(100);

START_LOOP_TEST(json_is_accepted, 0, COUNT(good))
{
	const char *reason = NULL;
	int r = proto_json_scan(
		good[_i].bytes, good[_i].length, PROTO_JSON_DEPTH, PROTO_JSON_TOKENS, &reason);
	ck_assert_msg(r == 0, "%s: %s", good[_i].bytes, reason);
	struct cJSON *object = NULL;
	ck_assert_int_eq(proto_json_parse(good[_i].bytes, good[_i].length, &object, &reason), 0);
	ck_assert(cJSON_IsObject(object));
	cJSON_Delete(object);
}
END_TEST

START_LOOP_TEST(what_is_not_one_strict_object_is_ebadmsg_with_a_reason, 0, COUNT(bad))
{
	/* a copy of the exact size, so that a read past the end is seen */
	char *copy = malloc(bad[_i].length + 1);
	const char *reason = NULL;
	struct cJSON *object = NULL;
	memcpy(copy, bad[_i].bytes, bad[_i].length);
	char *exact = bad[_i].length > 0 ? realloc(copy, bad[_i].length) : copy;
	ck_assert_msg(proto_json_parse(exact, bad[_i].length, &object, &reason) == -EBADMSG, "%s",
		bad[_i].bytes);
	ck_assert_ptr_nonnull(reason);
	ck_assert_ptr_null(object);
	reason = NULL;
	ck_assert_int_eq(proto_json_parse_reply(exact, bad[_i].length, &object, &reason), -EBADMSG);
	ck_assert_ptr_nonnull(reason);
	free(exact);
}
END_TEST

static size_t nest(char *text, size_t depth)
{
	size_t n = 5;
	memcpy(text, "{\"a\":", n);
	memset(text + n, '[', depth - 1);
	n += depth - 1;
	memset(text + n, ']', depth - 1);
	n += depth - 1;
	text[n++] = '}';
	return n;
}

START_TEST(depth_is_limited)
{
	static char text[65536];
	const char *reason = NULL;
	size_t n = nest(text, 16);
	ck_assert_int_eq(proto_json_scan(text, n, 16, 0, &reason), 0);
	n = nest(text, 17);
	ck_assert_int_eq(proto_json_scan(text, n, 16, 0, &reason), -EBADMSG);
	ck_assert_str_eq(reason, "nested too deep");
	n = nest(text, 10000);
	ck_assert_int_eq(proto_json_scan(text, n, 100000, 0, &reason), -EBADMSG);
	memset(text, '[', sizeof(text));
	memcpy(text, "{\"a\":", 5);
	ck_assert_int_eq(proto_json_scan(text, sizeof(text), 16, 0, &reason), -EBADMSG);
}
END_TEST

START_TEST(tokens_are_limited)
{
	static char text[65536];
	const char *reason = NULL;
	size_t n = (size_t)snprintf(text, sizeof(text), "{\"a\":[");
	for (int i = 0; i < 2045; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s1", i > 0 ? "," : "");
	}
	size_t m = n + (size_t)snprintf(text + n, sizeof(text) - n, "]}");
	ck_assert_int_eq(proto_json_scan(text, m, 16, 2048, &reason), 0);
	m = n + (size_t)snprintf(text + n, sizeof(text) - n, ",1]}");
	ck_assert_int_eq(proto_json_scan(text, m, 16, 2048, &reason), -EBADMSG);
	ck_assert_str_eq(reason, "too many tokens");
	ck_assert_int_eq(proto_json_scan(text, m, 16, 0, &reason), 0);
}
END_TEST

START_TEST(keys_of_open_objects_are_limited)
{
	static char text[65536];
	const char *reason = NULL;
	size_t n = (size_t)snprintf(text, sizeof(text), "{");
	for (int i = 0; i < 2049; i++) {
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s\"%x\":1", i > 0 ? "," : "", (unsigned)i);
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "}");
	ck_assert_int_eq(proto_json_scan(text, n, 16, 0, &reason), -EBADMSG);
	ck_assert_str_eq(reason, "too many keys");
	/* those of closed ones do not count */
	n = (size_t)snprintf(text, sizeof(text), "{\"a\":[");
	for (int i = 0; i < 3000; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s{\"b\":1}", i > 0 ? "," : "");
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "]}");
	ck_assert_int_eq(proto_json_scan(text, n, 16, 0, &reason), 0);
}
END_TEST

static uint64_t random_state = 88172645463325252u;

static unsigned pick(unsigned below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 11) % below;
}

/* What the scan lets through cJSON must read: else the two disagree on what JSON is. */
START_TEST(mutated_messages_neither_crash_nor_confuse)
{
	static const char alphabet[] = "{}[]:,\"\\u0123456789eE+-.ntrufals \x01\x80\xc3\xa9\xed";
	unsigned accepted = 0;
	for (int round = 0; round < 100000; round++) {
		char text[256];
		size_t length;
		if (round % 4 == 0) {
			length = pick(64);
			for (size_t i = 0; i < length; i++) {
				text[i] = alphabet[pick(sizeof(alphabet))];
			}
		} else {
			const struct text *seed = &good[pick(sizeof(good) / sizeof(good[0]))];
			length = seed->length;
			memcpy(text, seed->bytes, length);
			for (unsigned i = pick(3); i > 0; i--) {
				text[pick((unsigned)length)] = alphabet[pick(sizeof(alphabet))];
			}
			length -= pick(8) == 0 ? pick((unsigned)length) : 0;
		}
		char *exact = malloc(length + (length == 0));
		memcpy(exact, text, length);
		struct cJSON *object = NULL;
		const char *reason = NULL;
		int r = proto_json_parse(exact, length, &object, &reason);
		ck_assert_msg(r == 0 || r == -EBADMSG, "%.*s: %d", (int)length, exact, r);
		ck_assert(r == 0 || reason);
		accepted += r == 0;
		cJSON_Delete(object);
		free(exact);
	}
	ck_assert_uint_gt(accepted, 1000);
}
END_TEST

static void prints_as(struct cJSON *item, const char *expected)
{
	struct cJSON *object = cJSON_CreateObject();
	cJSON_AddItemToObject(object, "x", item);
	char *text = cJSON_PrintUnformatted(object);
	char wanted[64];
	snprintf(wanted, sizeof(wanted), "{\"x\":%s}", expected);
	ck_assert_str_eq(text, wanted);
	free(text);
	cJSON_Delete(object);
}

START_TEST(integers_print_as_strict_readers_want_them)
{
	prints_as(proto_json_integer(-3), "-3");
	prints_as(proto_json_integer(1000000000000000), "1000000000000000");
	prints_as(proto_json_integer(1700000000123456), "1700000000123456");
	prints_as(proto_json_integer(-1700000000123456), "-1700000000123456");
	prints_as(proto_json_integer(9007199254740992), "9007199254740992");
}
END_TEST

START_TEST(utf8_lengths)
{
	ck_assert_uint_eq(proto_utf8_length("", 0), 0);
	ck_assert_uint_eq(proto_utf8_length("\0", 1), 1);
	ck_assert_uint_eq(proto_utf8_length("\xc3\xa9", 2), 2);
	ck_assert_uint_eq(proto_utf8_length("\xc3\xa9", 1), 0);
	ck_assert_uint_eq(proto_utf8_length("\xf4\x8f\xbf\xbf", 4), 4);
	ck_assert_uint_eq(proto_utf8_length("\xf5\x80\x80\x80", 4), 0);
}
END_TEST

START_TEST(hidden_characters_become_question_marks)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain \xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80",
			"plain \xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80"},
		{"\x1b[2J\x7f\xc2\x9b", "?[2J??"},
		{"a\xe2\x80\xae"
		 "b\xe2\x80\x8f",
			"a?b?"},			 /* U+202E, U+200F */
		{"\xd8\x9c\xe2\x81\xa6", "??"},		 /* U+061C, U+2066 */
		{"x\xe2\x80\x8bx\xef\xbb\xbf", "x?x?"},	 /* U+200B, U+FEFF */
		{"\xc2\xad\xcd\x8f\xe3\x85\xa4", "???"}, /* U+00AD, U+034F, U+3164 */
		{"\xf3\xa0\x81\x81\xef\xb8\x8f", "??"},	 /* U+E0041, U+FE0F */
		{"\xe2\x80\xa8\xff\xe6\xbc", "????"},	 /* U+2028, bytes of nothing */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", cases[i].in);
		proto_utf8_clean(text);
		ck_assert_str_eq(text, cases[i].out);
	}
	uint32_t c = 0;
	ck_assert_uint_eq(proto_utf8_decode("\xf4\x8f\xbf\xbf", 4, &c), 4);
	ck_assert_uint_eq(c, 0x10ffff);
}
END_TEST

START_TEST(the_interface_is_the_file)
{
	char path[4096];
	static char text[65536];
	const char *source = getenv("EDGEPROF_SOURCE");
	snprintf(path, sizeof(path), "%s/proto/io.edgeprof.varlink", source ? source : ".");
	FILE *file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	ck_assert_uint_eq(proto_interface_size, n + 1);
	static char unpacked[sizeof(text)];
	proto_interface(unpacked);
	ck_assert_str_eq(unpacked, text);
}
END_TEST
