/* SPDX-License-Identifier: Apache-2.0 */
/* number.c: parses the numbers of statsd lines. Nearly all are short: an integer below 2^53 and one
 * multiplication or division by a power of ten that a double holds exactly, which rounds once. */
#include "proto/statsd/number.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MANTISSA_DIGITS = 19, /* what always fits into 64 bits */
	PLAIN_DIGITS = 15,    /* what is always below 2^53 */
	EXACT_POWERS = 22,    /* 10^22 = 2^22 * 5^22, and 5^22 < 2^53 */
	EXPONENT_MAX = 9999,
};

static const double powers[EXACT_POWERS + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct decimal {
	uint64_t mantissa;
	int exponent;
	int digits; /* of the mantissa, without leading zeros */
	bool any;
};

static bool is_digit(const char *at, const char *end)
{
	return at < end && (unsigned char)(*at - '0') <= 9;
}

/* Digits before or after the point; those that do not fit only move the point. */
static const char *parse_digits(
	const char *at, const char *end, struct decimal *decimal, bool fraction)
{
	for (; is_digit(at, end); at++) {
		decimal->any = true;
		if (decimal->digits < MANTISSA_DIGITS) {
			decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*at - '0');
			decimal->digits += decimal->mantissa != 0;
			decimal->exponent -= fraction;
		} else {
			decimal->exponent += !fraction;
		}
	}
	return at;
}

/* "e-3"; NULL when there are no digits after the e. */
static const char *parse_exponent(const char *at, const char *end, struct decimal *decimal)
{
	int exponent = 0;
	bool negative = false;
	at++;
	if (at < end && (*at == '+' || *at == '-')) {
		negative = *at == '-';
		at++;
	}
	if (!is_digit(at, end)) {
		return NULL;
	}
	for (; is_digit(at, end); at++) {
		exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*at - '0') : EXPONENT_MAX;
	}
	decimal->exponent += negative ? -exponent : exponent;
	return at;
}

static double decimal_value(const struct decimal *decimal)
{
	int exponent = decimal->exponent;
	if (decimal->mantissa == 0) {
		return 0;
	}
	if (decimal->mantissa <= UINT64_C(1) << 53 && exponent >= -EXACT_POWERS &&
		exponent <= EXACT_POWERS) {
		double value = (double)decimal->mantissa;
		return exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
	}
	/* Where a long double is a double, as on 32-bit ARM, nothing wider is left to round in. The
	 * text has no point, which depends on the locale. */
	char text[40];
	snprintf(text, sizeof(text), "%" PRIu64 "e%d", decimal->mantissa, exponent);
	return strtod(text, NULL);
}

static __attribute__((noinline)) bool parse_any(const char **at, const char *end, double *ret)
{
	struct decimal decimal = {0};
	const char *p = *at;
	bool negative = p < end && *p == '-';
	if (p < end && (*p == '-' || *p == '+')) {
		p++;
	}
	p = parse_digits(p, end, &decimal, false);
	if (p < end && *p == '.') {
		p = parse_digits(p + 1, end, &decimal, true);
	}
	if (!decimal.any) {
		return false;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p = parse_exponent(p, end, &decimal);
		if (!p) {
			return false;
		}
	}
	double value = decimal_value(&decimal);
	if (!isfinite(value)) {
		return false;
	}
	*ret = negative ? -value : value;
	*at = p;
	return true;
}

/* "12.5": digits with at most one point among them, none of which is too many. NULL: it may be a
 * number all the same. */
static const char *parse_plain(const char *at, const char *end, double *ret)
{
	const char *p = at, *point = NULL;
	uint64_t mantissa = 0;
	for (; p < end && p - at <= PLAIN_DIGITS + 1; p++) {
		unsigned digit = (unsigned char)(*p - '0');
		if (digit <= 9) {
			mantissa = mantissa * 10 + digit;
		} else if (*p == '.' && !point) {
			point = p;
		} else {
			break;
		}
	}
	ptrdiff_t digits = p - at - (point != NULL), fraction = point ? p - point - 1 : 0;
	if (digits == 0 || digits > PLAIN_DIGITS || (p < end && (*p == 'e' || *p == 'E'))) {
		return NULL;
	}
	*ret = (double)(int64_t)mantissa / powers[fraction];
	return p;
}

bool statsd_number(const char **at, const char *end, double *ret)
{
	const char *plain = parse_plain(*at, end, ret);
	if (!plain) {
		return parse_any(at, end, ret);
	}
	*at = plain;
	return true;
}
