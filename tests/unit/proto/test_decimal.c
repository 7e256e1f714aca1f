/* SPDX-License-Identifier: Apache-2.0 */
/* test_decimal.c: checks that numbers are written as printf writes them. */
#include "proto/decimal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

enum { ROUNDS = 60000 };

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static const char *written(double value)
{
	static char text[DECIMAL_SIZE + 1];
	text[decimal_double(value, text)] = '\0';
	return text;
}

static void check_double(double value)
{
	char usual[64];
	double size = fabs(value);
	const char *text = written(value);
	ck_assert_msg(strtod(text, NULL) == value, "%.17g is written %s", value, text);
	snprintf(usual, sizeof(usual), "%.15g", value);
	if (strtod(usual, NULL) != value) {
		snprintf(usual, sizeof(usual), "%.17g", value);
	}
	if (size <= 0x1p53 && size == trunc(size)) {
		snprintf(usual, sizeof(usual), "%.0f", value == 0 ? 0 : value);
	}
	if (size == 0 || size >= 1e-4 || size < 1e-8) {
		ck_assert_str_eq(text, usual);
	} else {
		ck_assert_msg(strspn(text, "-0.") > 4 && !strchr(text, 'e') && strlen(text) <= 28,
			"%s is written %s", usual, text);
	}
}

/* It and its neighbours. */
static void check_around(double value)
{
	double below = value, above = value;
	check_double(value);
	for (int i = 0; i < 4; i++) {
		below = nextafter(below, -INFINITY);
		above = nextafter(above, INFINITY);
		check_double(below);
		check_double(above);
		check_double(-above);
	}
}

START_TEST(doubles_of_all_kinds_are_as_printf_writes_them)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t random = next();
		uint64_t ns = random >> (next() % 44 + 20);
		double value;
		check_double((double)ns / 1e6);				      /* a duration */
		check_double((double)ns / 1e6 / (double)(random % 1024 + 1)); /* a mean */
		check_double((double)(int64_t)random / 1e3);		      /* a time */
		check_double((double)(random % 100000) / 1e3);
		check_double(ldexp((double)(random >> 11), -(int)(next() % 84)));
		memcpy(&value, &random, sizeof(value)); /* any at all */
		if (isfinite(value)) {
			check_double(value);
		}
	}
}
END_TEST

START_TEST(doubles_around_powers_and_halves_are_as_printf_writes_them)
{
	double power = 1e-12, third = 1e-12 / 3;
	for (int i = 0; i < 40; i++, power *= 10, third *= 10) {
		check_around(power);
		check_around(third);
		check_around(power * 5);
		check_around(power * 10 - power / 1e14);
	}
	for (int i = -60; i < 70; i++) {
		check_around(ldexp(1, i));
		check_around(ldexp(1, i) + 0.5);
	}
	for (uint64_t i = 0; i < 2000; i++) { /* the 16th and the 18th digit are a tie */
		check_double((double)(UINT64_C(100000000000000) + i) + 0.5);
		check_double((double)(UINT64_C(10000000000000) + i) + 0.25);
		check_double((double)i + 0.5);
	}
	check_double(DBL_MAX);
	check_double(DBL_TRUE_MIN);
	check_double(-0.0);
	ck_assert_str_eq(written(-1.5), "-1.5");
	ck_assert_str_eq(written(0.00005), "0.00005");
	ck_assert_str_eq(written(0.1 + 0.2), "0.30000000000000004");
	ck_assert_str_eq(written(1e15), "1000000000000000");
}
END_TEST

START_TEST(whole_numbers_are_as_printf_writes_them)
{
	const uint64_t edges[] = {0, 9, 10, 99, 100, 101, 999, 1000, 9999, 10000, UINT64_MAX};
	char text[DECIMAL_SIZE + 1], usual[32];
	for (size_t i = 0; i < ROUNDS + sizeof(edges) / sizeof(edges[0]); i++) {
		uint64_t value = i < ROUNDS ? next() >> (i % 64) : edges[i - ROUNDS];
		text[decimal_unsigned(value, text)] = '\0';
		snprintf(usual, sizeof(usual), "%" PRIu64, value);
		ck_assert_str_eq(text, usual);
	}
}
END_TEST
