/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal.c: writes numbers as decimals. A double is m * 2^e, so that its product with 10^k is
 * m * 5^k * 2^(e + k): an exact one of two words for all that k may be here, which is shifted and
 * rounded once, half to even, as printf does.
 */
#include "proto/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/multiply.h"

#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */
#define FIXED_MIN 1e-8
#define FIXED_MAX 1e14 /* rounded to 15 digits it may have one more in front of the point */
#define DIGITS_15 UINT64_C(1000000000000000)

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
	1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000,
	1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000,
	UINT64_C(10000000000000000000)};

/* The number with zeros in front, that many digits in all. */
static void put_digits(uint64_t value, size_t digits, char *ret)
{
	while (digits >= 2) {
		digits -= 2;
		memcpy(ret + digits, pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (digits > 0) {
		ret[0] = (char)('0' + value);
	}
}

size_t decimal_unsigned(uint64_t value, char ret[DECIMAL_SIZE])
{
	/* 2^n has floor(n * log10(2)) + 1 digits */
	size_t digits = (size_t)(64 - __builtin_clzll(value | 1)) * 1233 >> 12;
	digits += value >= tens[digits] || value == 0;
	put_digits(value, digits, ret);
	return digits;
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

/* value * 10^k, rounded; FIXED_MIN <= value < FIXED_MAX, and the product is of 14 … 17 digits. */
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

/* Takes these zeros from the end, if there are. */
static inline void strip(uint64_t *digits, unsigned *k, unsigned zeros, uint64_t power)
{
	if (*k >= zeros && *digits % power == 0) {
		*k -= zeros;
		*digits /= power;
	}
}

/* digits / 10^k without zeros at its end. */
static size_t put_fixed(uint64_t digits, unsigned k, char *ret)
{
	if (digits % 10 == 0) {
		strip(&digits, &k, 8, 100000000);
		strip(&digits, &k, 4, 10000);
		strip(&digits, &k, 2, 100);
		strip(&digits, &k, 1, 10);
	}
	uint64_t whole = k < sizeof(tens) / sizeof(tens[0]) ? digits / tens[k] : 0;
	size_t at = decimal_unsigned(whole, ret);
	if (k > 0) {
		ret[at++] = '.';
		put_digits(whole > 0 ? digits - whole * tens[k] : digits, k, ret + at);
		at += k;
	}
	return at;
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
	/* 2^e has floor(e * log10(2)) + 1 digits in front of the point; the 9 keeps it positive */
	unsigned k = 14 + 9 - (unsigned)((exponent_of(positive) * 1233 + 9 * 4096) / 4096);
	uint64_t digits = scaled(positive, k);
	if (digits >= DIGITS_15) {
		digits = scaled(positive, --k);
	}
	/* both are exact, so the quotient is the double nearest to these digits */
	if ((double)digits / powers[k] == positive) {
		return sign + put_fixed(digits, k, ret + sign);
	}
	k += 2;
	digits = scaled(positive, k);
	if (digits < 10 * DIGITS_15) {
		digits = scaled(positive, ++k);
	}
	return sign + put_fixed(digits, k, ret + sign);
}
