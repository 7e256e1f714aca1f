/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal.c: writes numbers as decimals. A double is m * 2^e, so that its product with 10^k is
 * m * 5^k * 2^(e + k): an exact one of two words for all that k may be here, which is shifted and
 * rounded once, half to even, as printf does.
 */
#include "proto/decimal.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/multiply.h"

#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */
#define FIXED_MIN 1e-8
#define FIXED_MAX 1e14 /* rounded to 15 digits it may have one more in front of the point */

static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
	1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000,
	1000000000000000, 10000000000000000};

/* The eight digits of a number, the first one in the lowest byte: in halves, quarters and eighths
 * of the word at once. */
static inline uint64_t eight_digits(uint64_t value)
{
	uint64_t fours = value / 10000 | value % 10000 << 32;
	uint64_t upper = fours * 10486 >> 20 & UINT64_C(0x7f0000007f); /* / 100 */
	uint64_t twos = upper | (fours - upper * 100) << 16;
	upper = twos * 103 >> 10 & UINT64_C(0xf000f000f000f); /* / 10 */
	return upper | (twos - upper * 10) << 8;
}

static void put_eight(uint64_t digits, char *ret)
{
	uint64_t text = htole64(digits | UINT64_C(0x3030303030303030));
	memcpy(ret, &text, sizeof(text));
}

size_t decimal_unsigned(uint64_t value, char ret[DECIMAL_SIZE])
{
	if (value < 10) { /* what follows need not wait for the length */
		ret[0] = (char)('0' + value);
		return 1;
	}
	if (value >= tens[8]) {
		size_t upper = decimal_unsigned(value / tens[8], ret);
		put_eight(eight_digits(value % tens[8]), ret + upper);
		return upper + 8;
	}
	uint64_t digits = eight_digits(value);
	unsigned zeros = (unsigned)__builtin_ctzll(digits) / 8;
	put_eight(digits >> 8 * zeros, ret);
	return 8 - zeros;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Of a positive number; floor(log2(value)). */
static int exponent_of(double value)
{
	return (int)(bits_of(value) >> 52) - 1023;
}

/* value * 10^k, rounded; FIXED_MIN <= value < FIXED_MAX, and the product is of 17 or 18 digits. */
static uint64_t scaled(double value, unsigned k)
{
	static const uint64_t fives[] = {1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125,
		9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125, 152587890625,
		762939453125, 3814697265625, 19073486328125, 95367431640625, 476837158203125,
		2384185791015625, 11920928955078125, 59604644775390625, 298023223876953125};
	const uint64_t implicit = UINT64_C(1) << 52;
	uint64_t high, mantissa = (bits_of(value) & (implicit - 1)) | implicit;
	unsigned shift = (unsigned)(52 - exponent_of(value)) - k; /* 1 … 63 */
	uint64_t low = proto_multiply(mantissa, fives[k], &high);
	uint64_t whole = high << (64 - shift) | low >> shift;
	uint64_t rest = low << (64 - shift), half = UINT64_C(1) << 63;
	return whole + (rest > half || (rest == half && (whole & 1)));
}

/* digits / 10^k, no whole number, without zeros at its end; whole is in front of the point. */
static size_t put_fixed(uint64_t whole, uint64_t digits, unsigned k, char *ret)
{
	uint64_t rest = whole > 0 ? digits - whole * tens[k] : digits;
	size_t at = decimal_unsigned(whole, ret);
	ret[at++] = '.';
	if (k > 16) {
		put_eight(eight_digits(rest / tens[16]) >> 8 * (24 - k), ret + at);
		at += k - 16;
		rest %= tens[16];
	} else {
		rest *= tens[16 - k];
	}
	uint64_t upper = eight_digits(rest / tens[8]), lower = eight_digits(rest % tens[8]);
	put_eight(upper, ret + at);
	put_eight(lower, ret + at + 8);
	size_t zeros = (size_t)__builtin_clzll(lower ? lower : upper) / 8 + (lower ? 0 : 8);
	return at + 16 - zeros;
}

/* The same of value / 10^6: whole ns in ms are such numbers. */
static size_t put_millionths(uint64_t value, char *ret)
{
	size_t at = decimal_unsigned(value / 1000000, ret);
	uint64_t digits = eight_digits(value % 1000000 * 100);
	ret[at++] = '.';
	put_eight(digits, ret + at);
	return at + 8 - (size_t)__builtin_clzll(digits) / 8;
}

/* What printf writes, for numbers that are too large or too small to be usual. */
static size_t put_other(double value, char *ret)
{
	int n = snprintf(ret, DECIMAL_SIZE, "%.15g", value);
	if (strtod(ret, NULL) != value) {
		n = snprintf(ret, DECIMAL_SIZE, "%.17g", value);
	}
	return (size_t)n;
}

size_t decimal_double(double value, char ret[DECIMAL_SIZE])
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	size_t sign = value < 0;
	double positive = fabs(value);
	ret[0] = '-';
	if (positive <= EXACT_INTEGER && positive == (double)(uint64_t)positive) {
		return sign + decimal_unsigned((uint64_t)positive, ret + sign);
	}
	if (!(positive >= FIXED_MIN && positive < FIXED_MAX)) {
		return put_other(value, ret);
	}
	uint64_t millionths = positive < 1e9 ? (uint64_t)(positive * 1e6 + 0.5) : 0;
	if ((double)millionths / 1e6 == positive) {
		return sign + put_millionths(millionths, ret + sign);
	}
	/* 2^e is 10^(n - 9) or more, and the number may be the next power or more */
	unsigned n = (unsigned)((exponent_of(positive) * 1233 + 9 * 4096) / 4096);
	unsigned k = 16 + 9 - n - (positive * 1e8 >= powers[n]);
	uint64_t digits = scaled(positive, k);
	if (digits < tens[16]) { /* that product was rounded up */
		digits = scaled(positive, ++k);
	}
	/* a double is less than 12 from its digits; the quotient of exact ones is rounded once */
	uint64_t fewer = (digits + 50) / 100;
	if (digits - fewer * 100 + 12 <= 24 && (double)fewer / powers[k - 2] == positive) {
		digits = fewer;
		k -= 2;
	}
	return sign + put_fixed((uint64_t)positive, digits, k, ret + sign);
}
