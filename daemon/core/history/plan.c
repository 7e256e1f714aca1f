/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: chooses how many bits each column has in packed rows of history: those that would have
 * been cheapest for the rows that are in the block. Nothing is kept for it from row to row: they
 * are read again when the time has come. */
#include "daemon/core/history/plan.h"

#include <string.h>

#include "daemon/core/history/varint.h"

enum { FIRST_ROWS = 16, ROWS = 64, AGAIN = 16, LENGTHS = PACK_WIDTH_MAX + 2 };

/* Of each column: which divisors fit all differences, and how many codes have how many bits with
 * the divisor that they are counted with; those that do not fit any width come last. */
struct tally {
	uint64_t varied; /* columns with any difference */
	uint8_t divisors[HISTORY_COLUMNS];
	uint8_t divisor[HISTORY_COLUMNS];
	uint16_t count[HISTORY_COLUMNS][LENGTHS];
};

static unsigned length_of(uint64_t number)
{
	return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

static void see(struct tally *tally, unsigned i, int64_t difference)
{
	if (difference == 0) {
		tally->count[i][0]++;
		return;
	}
	tally->varied |= UINT64_C(1) << i;
	for (unsigned k = PACK_DIVISORS - 1; tally->divisors[i] >> 1 != 0 && k > 0; k--) {
		if (tally->divisors[i] >> k & 1 && difference % pack_divisor[k] != 0) {
			tally->divisors[i] &= (uint8_t) ~(1u << k);
		}
	}
	const int64_t divisor = pack_divisor[tally->divisor[i]];
	const unsigned length =
		length_of(zigzag((uint64_t)(divisor > 1 ? difference / divisor : difference)));
	tally->count[i][length < LENGTHS ? length : LENGTHS - 1]++;
}

static void see_all(struct tally *tally, struct history_walk walk, uint64_t columns)
{
	int64_t before[HISTORY_COLUMNS];
	const struct history_row *last = &walk.state.last;
	history_walk_only(&walk, columns);
	for (bool first = true; history_walk_next(&walk); first = false) {
		for (uint64_t todo = columns & ~last->nulls; todo != 0; todo &= todo - 1) {
			const unsigned i = (unsigned)__builtin_ctzll(todo);
			if (!first) {
				see(tally, i, last->value[i] - before[i]);
			}
		}
		memcpy(before, last->value, walk.state.columns * sizeof(before[0]));
	}
}

/* Once more with the largest divisor where it is not 1, if there is any difference to divide. */
static void see_divided(struct tally *tally, const struct history_walk *block)
{
	uint64_t columns = 0;
	for (uint64_t todo = tally->varied; todo != 0; todo &= todo - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(todo);
		/* 1 divides all */
		tally->divisor[i] = (uint8_t)(length_of(tally->divisors[i] | 1) - 1);
		if (tally->divisor[i] > 0) {
			columns |= UINT64_C(1) << i;
			memset(tally->count[i], 0, sizeof(tally->count[i]));
		}
	}
	if (columns != 0) {
		see_all(tally, *block, columns);
	}
}

/* Of a code that does not fit: a varint that is listed. */
static unsigned odd_bits(const struct tally *tally, unsigned i, unsigned length)
{
	return 8 * ((length + length_of(pack_divisor[tally->divisor[i]]) + 5) / 7) + 4;
}

/* What the rows would have cost with a plan, in bits. */
static unsigned cost_of(const struct tally *tally, unsigned i, uint8_t plan)
{
	const unsigned tallied = pack_divisor[tally->divisor[i]];
	const unsigned divisor = pack_divisor[plan >> 5];
	const unsigned more = length_of(tallied / divisor) - 1;
	unsigned bits = tally->count[i][0] * pack_width(plan);
	for (unsigned length = 1; tally->varied >> i & 1 && length < LENGTHS; length++) {
		const bool fit = tallied >= divisor && length < LENGTHS - 1 &&
				 length + more <= pack_width(plan);
		bits += tally->count[i][length] *
			(fit ? pack_width(plan) : odd_bits(tally, i, length));
	}
	return bits;
}

/* Goes from width to width with what fits and what the others cost. */
static uint8_t cheapest(const struct tally *tally, unsigned i, unsigned *ret)
{
	const uint16_t *count = tally->count[i];
	uint8_t best = 0;
	unsigned fit = count[0], odd = cost_of(tally, i, 0);
	*ret = odd;
	for (unsigned width = 1; tally->varied >> i & 1 && width <= PACK_WIDTH_MAX; width++) {
		fit += count[width];
		odd -= count[width] * odd_bits(tally, i, width);
		if (odd + fit * width < *ret) {
			*ret = odd + fit * width;
			best = (uint8_t)(width | (unsigned)tally->divisor[i] << 5);
		}
	}
	return best;
}

bool history_plan_is_due(const struct history_row_state *state)
{
	const unsigned first = state->planned ? ROWS : FIRST_ROWS;
	return state->rows >= (state->plan_at > 0 ? state->plan_at : first);
}

void history_plan_make(struct history_row_state *state, const struct history_walk *block)
{
	struct tally tally = {0};
	uint8_t plan[HISTORY_COLUMNS] = {0};
	unsigned cost = 8 * (2 + state->columns), cost_now = 0;
	memset(tally.divisors, 0xff, sizeof(tally.divisors));
	see_all(&tally, *block, pack_columns(state->columns));
	see_divided(&tally, block);
	for (unsigned i = 0; i < state->columns; i++) {
		unsigned bits;
		plan[i] = cheapest(&tally, i, &bits);
		cost += bits;
		cost_now += cost_of(&tally, i, state->plan[i]);
	}
	state->plan_at = state->rows < ROWS ? ROWS : AGAIN * state->rows;
	if (cost < cost_now || !state->planned) {
		memcpy(state->plan, plan, sizeof(state->plan));
		state->planned = state->plan_waits = true;
	}
}
