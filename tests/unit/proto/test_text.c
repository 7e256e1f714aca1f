/* SPDX-License-Identifier: Apache-2.0 */
/* test_text.c: bounded strings of proto/text.h. */
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

START_TEST(what_fits_is_appended)
{
	char buffer[8];
	struct text text = TEXT_IN(buffer);
	ck_assert_str_eq(buffer, "");
	text_add(&text, "%d", 12);
	text_join(&text, ", ", "%s", "abc");
	ck_assert_str_eq(buffer, "12, abc");
	ck_assert_uint_eq(text.length, 7);
	ck_assert(!text.truncated);
	text_add(&text, "x");
	ck_assert_str_eq(buffer, "12, abc");
	ck_assert(text.truncated);
}
END_TEST

START_TEST(the_first_of_a_list_has_no_separator)
{
	char buffer[16];
	struct text text = TEXT_IN(buffer);
	text_join(&text, ", ", "a");
	text_join(&text, ", ", "b");
	ck_assert_str_eq(buffer, "a, b");
}
END_TEST

START_TEST(a_span_has_two_units_at_most)
{
	ck_assert_str_eq(text_span(0).text, "0 s");
	ck_assert_str_eq(text_span(59).text, "59 s");
	ck_assert_str_eq(text_span(60).text, "1 min");
	ck_assert_str_eq(text_span(61).text, "1 min 1 s");
	ck_assert_str_eq(text_span(3600).text, "1 h");
	ck_assert_str_eq(text_span(3659).text, "1 h");
	ck_assert_str_eq(text_span(90000).text, "1 d 1 h");
	ck_assert_uint_lt(strlen(text_span(UINT64_MAX).text), sizeof(struct text_span) - 1);
}
END_TEST

START_TEST(a_character_is_never_split)
{
	static const char *const characters[] = {"é", "€", "😀"};
	for (size_t i = 0; i < 3; i++) {
		for (size_t size = 1; size <= 10; size++) {
			char buffer[10];
			struct text text = text_in(buffer, size);
			text_add(&text, "%s%s", characters[i], characters[i]);
			size_t one = strlen(characters[i]);
			size_t whole = (size - 1) / one > 2 ? 2 : (size - 1) / one;
			ck_assert_uint_eq(text.length, whole * one);
			ck_assert_uint_eq(strlen(buffer), whole * one);
			ck_assert_int_eq(text.truncated, size - 1 < 2 * one);
		}
	}
}
END_TEST

START_TEST(nothing_follows_what_was_truncated)
{
	char buffer[4];
	struct text text = TEXT_IN(buffer);
	text_add(&text, "a€x");
	ck_assert_str_eq(buffer, "a");
	text_add(&text, "b");
	ck_assert_str_eq(buffer, "a");
}
END_TEST

START_TEST(starts_and_ends)
{
	ck_assert(text_starts_with("infer", "inf"));
	ck_assert(text_starts_with("infer", ""));
	ck_assert(!text_starts_with("in", "inf"));
	ck_assert(text_ends_with("a.json", ".json"));
	ck_assert(!text_ends_with("json", ".json"));
	ck_assert(text_ends_with("json", ""));
}
END_TEST
