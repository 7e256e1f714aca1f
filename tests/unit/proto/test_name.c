/* SPDX-License-Identifier: Apache-2.0 */
/* The name rule and globs. */
#include "proto/name.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

START_TEST(other_bytes_become_underscores)
{
	static const struct {
		const char *text;
		size_t length;
		const char *want;
	} table[] = {
		{"infer", 5, "infer"},
		{"CPU-therm.0_x", 13, "CPU-therm.0_x"},
		{"a/b+c#d", 7, "a_b_c_d"},
		{"a\0b", 3, "a_b"},
		{"\x1b[31m", 5, "__31m"},
		{"\xc3\xa9", 2, "__"},
		{"", 0, "_"},
		{".", 1, "_"},
		{"..", 2, "__"},
		{".a", 2, ".a"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char name[PROTO_NAME_SIZE];
		proto_name_clean(table[i].text, table[i].length, name);
		ck_assert_str_eq(name, table[i].want);
		ck_assert(proto_name_valid(name));
	}
}
END_TEST

START_TEST(long_names_are_cut_to_48)
{
	char text[100], name[PROTO_NAME_SIZE];
	memset(text, 'x', sizeof(text));
	proto_name_clean(text, sizeof(text), name);
	ck_assert_uint_eq(strlen(name), PROTO_NAME_MAX);
}
END_TEST

struct taken {
	unsigned calls, limit;
};

static bool taken_until(void *ctx, const char *name)
{
	struct taken *taken = ctx;
	ck_assert(proto_name_valid(name));
	return taken->calls++ < taken->limit;
}

START_TEST(taken_names_get_a_number)
{
	char name[PROTO_NAME_SIZE];
	struct taken none = {0, 0}, one = {0, 1}, nine = {0, 9};
	ck_assert_int_eq(proto_name_unique("a b", 3, taken_until, &none, name), 0);
	ck_assert_str_eq(name, "a_b");
	ck_assert_int_eq(proto_name_unique("a b", 3, taken_until, &one, name), 0);
	ck_assert_str_eq(name, "a_b.2");
	ck_assert_int_eq(proto_name_unique("a b", 3, taken_until, &nine, name), 0);
	ck_assert_str_eq(name, "a_b.10");
}
END_TEST

START_TEST(a_long_taken_name_is_cut_for_its_number)
{
	char text[PROTO_NAME_MAX], name[PROTO_NAME_SIZE];
	memset(text, 'x', sizeof(text));
	struct taken taken = {0, 9998};
	ck_assert_int_eq(proto_name_unique(text, sizeof(text), taken_until, &taken, name), 0);
	ck_assert_uint_eq(strlen(name), PROTO_NAME_MAX);
	ck_assert_str_eq(name + PROTO_NAME_MAX - 5, ".9999");
}
END_TEST

START_TEST(ten_thousand_taken_names_are_enospc)
{
	char name[PROTO_NAME_SIZE] = "untouched";
	struct taken taken = {0, 1000000};
	ck_assert_int_eq(proto_name_unique("a", 1, taken_until, &taken, name), -ENOSPC);
	ck_assert_str_eq(name, "untouched");
}
END_TEST

START_TEST(paths_are_one_to_eight_segments)
{
	ck_assert(proto_path_valid("temperature/max"));
	ck_assert(proto_path_valid("a"));
	ck_assert(proto_path_valid("a/b/c/d/e/f/g/h"));
	static const char *const bad[] = {"", "/", "/a", "a/", "a//b", "a/b/c/d/e/f/g/h/i", "a/..",
		"a b", "a/*", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(!proto_path_valid(bad[i]), "%s", bad[i]);
	}
	ck_assert(!proto_name_valid("a/b"));
	ck_assert(!proto_name_valid(""));
}
END_TEST

START_TEST(globs_match_by_segment)
{
	static const struct {
		const char *glob, *path;
		bool match;
	} table[] = {
		{"temperature/*", "temperature/max", true},
		{"temperature/*", "temperature/a/b", false},
		{"temperature/*", "temperature", false},
		{"*", "temperature/max", false},
		{"stage/*/infer/p95_ms", "stage/cam/infer/p95_ms", true},
		{"stage/*/infer/p95_ms", "stage/cam/post/p95_ms", false},
		{"stage/c?m/*", "stage/cam/x", true},
		{"stage/c?m/*", "stage/cm/x", false},
		{"stage/**", "stage/cam/infer/p95_ms", true},
		{"stage/**", "stage", false},
		{"**", "a/b/c", true},
		{"a*b*c", "axxbxxbc", true},
		{"a*b*c", "axxbxxb", false},
		{"*a", "bab", false},
		{"**a", "bba", true},
		{"a", "a/", false},
		{"a/", "a", false},
		{"?", "", false},
		{"*", "", false},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_msg(proto_glob_match(table[i].glob, table[i].path) == table[i].match,
			"%s on %s", table[i].glob, table[i].path);
	}
}
END_TEST

START_TEST(many_stars_do_not_blow_up)
{
	char glob[PROTO_NAME_SIZE], path[PROTO_NAME_SIZE];
	for (size_t i = 0; i < PROTO_NAME_MAX; i++) {
		glob[i] = i % 2 ? 'a' : '*';
		path[i] = 'a';
	}
	glob[PROTO_NAME_MAX - 1] = 'b';
	glob[PROTO_NAME_MAX] = path[PROTO_NAME_MAX] = '\0';
	for (unsigned i = 0; i < 10000; i++) { /* exponential work would not end */
		ck_assert(!proto_glob_match(glob, path));
	}
}
END_TEST

START_TEST(unusable_globs_are_einval)
{
	static const char *const good[] = {"a", "*", "a/*/c?", "**", "a/**"};
	static const char *const bad[] = {
		"", "/", "a/", "/a", "a//b", "[a]", "a b", "a/../b", "**/a", "1/2/3/4/5/6/7/8/9"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(proto_glob_check(good[i]), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(proto_glob_check(bad[i]), -EINVAL);
	}
}
END_TEST

START_TEST(a_word_is_a_prefix_and_a_glob_without_slash_is_any_segment)
{
	static const struct {
		const char *query, *path;
		bool want;
	} table[] = {
		{"cpu", "cpu/0/frequency", true},
		{"cpu", "process/cam/cpu", true},
		{"cp", "temperature/cpu-thermal", true},
		{"pu", "cpu/0/frequency", false},
		{"cpu", "temperature/gpu-thermal", false},
		{"cpu/1", "cpu/1/utilization", true},
		{"cpu/ut", "cpu/utilization", true},
		{"cpu/1", "process/cpu/1", false},
		{"*", "cpu/0/frequency", true},
		{"**", "cpu/0/frequency", true},
		{"gpu*", "temperature/gpu-thermal", true},
		{"*thermal", "temperature/gpu-thermal", true},
		{"?pu", "process/cam/cpu", true},
		{"*thermal", "gpu/utilization", false},
		{"cpu/*", "cpu/utilization", true},
		{"cpu/*", "cpu/0/frequency", false},
		{"cpu/**", "cpu/0/frequency", true},
		{"*/cpu", "process/cam/cpu", false},
		{"=cpu/load1", "cpu/load1", true},
		{"=cpu/load1", "cpu/load15", false},
		{"cpu/load1", "cpu/load15", true},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_msg(proto_query_match(table[i].query, table[i].path) == table[i].want,
			"%s on %s", table[i].query, table[i].path);
	}
}
END_TEST

START_TEST(the_instance_is_what_wildcards_matched)
{
	static const struct {
		const char *glob, *path, *want;
	} table[] = {
		{"temperature/*", "temperature/cpu", "cpu"},
		{"stage/*/inf?r/p95_ms", "stage/cam/infer/p95_ms", "cam:infer"},
		{"stage/**", "stage/cam/infer/p95_ms", "cam:infer:p95_ms"},
		{"temperature/max", "temperature/max", "_"},
	};
	char text[PROTO_PATH_SIZE];
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_int_eq(
			proto_glob_instance(table[i].glob, table[i].path, text, sizeof(text)), 0);
		ck_assert_str_eq(text, table[i].want);
	}
	ck_assert_int_eq(proto_glob_instance("a/*", "b/c", text, sizeof(text)), -EINVAL);
	ck_assert_int_eq(proto_glob_instance("a/*", "a/bcd", text, 3), -ENAMETOOLONG);
	ck_assert_int_eq(proto_glob_instance("a/*", "a/bcd", text, 4), 0);
}
END_TEST
