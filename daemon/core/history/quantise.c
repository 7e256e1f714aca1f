/* SPDX-License-Identifier: Apache-2.0 */
/* quantise.c: turns values into codes of whole numbers, the ones that rows keep, and back. */
#include "daemon/core/history/row.h"

#include <math.h>

/* Codes of units that are rounded. Below 2^14 quanta a code is the number of quanta. From there on
 * each doubling has 2^13 codes: exponent e >= 1, mantissa m in [2^13, 2^14), value m * 2^e quanta,
 * code 2^14 + (e - 1) * 2^13 + (m - 2^13). So codes rise with their values, and neighbours differ
 * by at most 1/2^13. */
enum { MANTISSA_BITS = 13 };

#define MANTISSA_LEAST (INT64_C(1) << MANTISSA_BITS)

/* Codes of counts: below 10^4 hundredths, which only means have, from there on whole numbers. */
enum { COUNT_WHOLE = 10000, COUNT_SHIFT = 99 * COUNT_WHOLE };

static int64_t round_code(double quanta)
{
	int64_t whole = llround(quanta);
	if (whole < 2 * MANTISSA_LEAST) {
		return whole;
	}
	int exponent = 63 - MANTISSA_BITS - __builtin_clzll((unsigned long long)whole);
	/* a mantissa that is rounded up to 2^14 is the next exponent's first code */
	int64_t mantissa = llround(ldexp(quanta, -exponent));
	return exponent * MANTISSA_LEAST + mantissa;
}

static double unround_code(int64_t code)
{
	if (code < 2 * MANTISSA_LEAST) {
		return (double)code;
	}
	int64_t exponent = code / MANTISSA_LEAST - 1;
	int64_t mantissa = code % MANTISSA_LEAST + MANTISSA_LEAST;
	/* beyond is what no encoder wrote: 2^52 quanta have the exponent 39 */
	return (double)(mantissa << (exponent < 40 ? exponent : 40));
}

/* Quanta below 1 are powers of ten: multiplying by the whole number 1/quantum, and dividing by it
 * on the way back, gives the nearest double to the decimal (45.123, not 45.123000000000005). */
bool history_quantise(enum unit unit, double value, int64_t *ret)
{
	const double per_one = unit_quanta_per_one(unit);
	const bool whole = unit == UNIT_COUNT && fabs(value) >= COUNT_WHOLE;
	const double quanta = whole	    ? value + copysign(COUNT_SHIFT, value)
			      : per_one > 0 ? value * per_one
					    : value / unit_quantum(unit);
	/* Also false for NAN. */
	if (!(fabs(quanta) <= (double)HISTORY_QUANTA_LIMIT)) {
		return false;
	}
	if (!unit_rounded(unit)) {
		*ret = llround(quanta);
	} else {
		*ret = quanta < 0 ? -round_code(-quanta) : round_code(quanta);
	}
	return true;
}

struct history_scale history_scale_of(enum unit unit)
{
	return (struct history_scale){.per_one = unit_quanta_per_one(unit),
		.quantum = unit_quantum(unit),
		.exact = unit == UNIT_COUNT   ? 100 * COUNT_WHOLE
			 : unit_rounded(unit) ? 2 * MANTISSA_LEAST
					      : INT64_MAX,
		.counts = unit == UNIT_COUNT};
}

double history_unround(const struct history_scale *scale, int64_t code)
{
	if (scale->counts) {
		return 100.0 * (double)(code < 0 ? code + COUNT_SHIFT : code - COUNT_SHIFT);
	}
	return code < 0 ? -unround_code(-code) : unround_code(code);
}

double history_unquantise(enum unit unit, int64_t value)
{
	const struct history_scale scale = history_scale_of(unit);
	return history_scaled(&scale, value);
}
