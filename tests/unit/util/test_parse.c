/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, durations and sizes of the configuration: whole or refused. */
#include "daemon/util/parse.h"

#include <errno.h>

#include "tests/unit/unit.h"

static const struct {
	const char *text;
	int result;
	uint64_t value;
} durations[] = {
	{"500ms", 0, 500000000},
	{"5s", 0, 5000000000},
	{"1.5s", 0, 1500000000},
	{"10min", 0, 600000000000},
	{"24h", 0, 86400000000000},
	{"7d", 0, 604800000000000},
	{"250us", 0, 250000},
	{"0", 0, 0},
	{"0s", 0, 0},
	{"", -EINVAL, 0},
	{"5", -EINVAL, 0},
	{"s", -EINVAL, 0},
	{"5 s", -EINVAL, 0},
	{" 5s", -EINVAL, 0},
	{"5s ", -EINVAL, 0},
	{"-5s", -EINVAL, 0},
	{"5S", -EINVAL, 0},
	{"5sec", -EINVAL, 0},
	{"infs", -EINVAL, 0},
	{"nans", -EINVAL, 0},
	{"0x5s", -EINVAL, 0},
	{"1e3s", 0, 1000000000000},
	{"1e300s", -ERANGE, 0},
	{"1e999s", -ERANGE, 0},
	{"999999999999h", -ERANGE, 0},
};

START_LOOP_TEST(durations_are_nanoseconds, 0, COUNT(durations))
{
	uint64_t value = 77;
	ck_assert_int_eq(parse_duration_ns(durations[_i].text, &value), durations[_i].result);
	ck_assert_uint_eq(value, durations[_i].result == 0 ? durations[_i].value : 77);
}
END_TEST

static const struct {
	const char *text;
	int result;
	uint64_t value;
} sizes[] = {
	{"4096", 0, 4096},
	{"64K", 0, 65536},
	{"16M", 0, 16777216},
	{"1G", 0, 1073741824},
	{"0", 0, 0},
	{"", -EINVAL, 0},
	{"K", -EINVAL, 0},
	{"1k", -EINVAL, 0},
	{"1KB", -EINVAL, 0},
	{"-1", -EINVAL, 0},
	{"1T", -EINVAL, 0},
	{"99999999999G", -ERANGE, 0},
};

START_LOOP_TEST(sizes_are_bytes, 0, COUNT(sizes))
{
	uint64_t value = 77;
	ck_assert_int_eq(parse_size(sizes[_i].text, &value), sizes[_i].result);
	ck_assert_uint_eq(value, sizes[_i].result == 0 ? sizes[_i].value : 77);
}
END_TEST

static const struct {
	const char *text;
	int u64, i64, number;
} numbers[] = {
	{"0", 0, 0, 0},
	{"18446744073709551615", 0, -ERANGE, 0},
	{"18446744073709551616", -ERANGE, -ERANGE, 0},
	{"-1", -EINVAL, 0, 0},
	{"-9223372036854775809", -EINVAL, -ERANGE, 0},
	{"1.5", -EINVAL, -EINVAL, 0},
	{"", -EINVAL, -EINVAL, -EINVAL},
	{" 1", -EINVAL, -EINVAL, -EINVAL},
	{"1 ", -EINVAL, -EINVAL, -EINVAL},
	{"+", -EINVAL, -EINVAL, -EINVAL},
	{"--1", -EINVAL, -EINVAL, -EINVAL},
	{"nan", -EINVAL, -EINVAL, -EINVAL},
	{"inf", -EINVAL, -EINVAL, -EINVAL},
	{"0x1", -EINVAL, -EINVAL, -EINVAL},
	{"1e999", -EINVAL, -EINVAL, -ERANGE},
	{"1,5", -EINVAL, -EINVAL, -EINVAL},
};

START_LOOP_TEST(numbers_are_whole_or_refused, 0, COUNT(numbers))
{
	uint64_t u = 77;
	int64_t i = 77;
	double d = 77;
	ck_assert_int_eq(parse_u64(numbers[_i].text, &u), numbers[_i].u64);
	ck_assert_int_eq(parse_i64(numbers[_i].text, &i), numbers[_i].i64);
	ck_assert_int_eq(parse_double(numbers[_i].text, &d), numbers[_i].number);
	ck_assert(numbers[_i].u64 == 0 || u == 77);
	ck_assert(numbers[_i].i64 == 0 || i == 77);
	ck_assert(numbers[_i].number == 0 || d == 77);
}
END_TEST

START_TEST(booleans_have_four_spellings_each)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
	for (size_t i = 0; i < 8; i++) {
		bool value = i % 2 == 0;
		ck_assert_int_eq(parse_bool(words[i], &value), 0);
		ck_assert(value == (i % 2 == 1));
	}
	bool value = true;
	ck_assert_int_eq(parse_bool("Yes", &value), -EINVAL);
	ck_assert_int_eq(parse_bool("", &value), -EINVAL);
	ck_assert(value);
}
END_TEST
