/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c: encodes and decodes packed rows of history and the plans they need. */
#include "daemon/core/history/pack.h"

const uint16_t pack_divisor[PACK_DIVISORS] = {1, 4, 10, 50, 100, 125, 500, 1000};

enum { LIST_LAST = 63, LIST_MORE = 64 };

uint8_t *pack_put_plan(const struct history_row_state *state, uint8_t *at)
{
	unsigned columns = state->columns;
	while (columns > 0 && state->plan[columns - 1] == 0) {
		columns--;
	}
	*at++ = PACK_PLAN;
	*at++ = (uint8_t)columns;
	memcpy(at, state->plan, columns);
	return at + columns;
}

const uint8_t *pack_get_plan(struct history_walk *walk, const uint8_t *at)
{
	struct history_row_state *state = &walk->state;
	if (at == walk->end || *at > state->columns || *at > walk->end - at - 1) {
		return NULL;
	}
	const unsigned columns = *at++;
	memset(state->plan, 0, sizeof(state->plan));
	memcpy(state->plan, at, columns);
	state->planned = true;
	walk->moved = true;
	return at + columns;
}

/* False: the difference does not fit the plan. */
static bool fits(uint8_t plan, uint64_t difference, uint64_t *ret)
{
	const int64_t divisor = pack_divisor[plan >> 5];
	if (divisor > 1 && difference != 0) {
		if ((int64_t)difference % divisor != 0) {
			return false;
		}
		difference = (uint64_t)((int64_t)difference / divisor);
	}
	*ret = zigzag(difference);
	return *ret >> pack_width(plan) == 0;
}

static uint8_t *put_list(uint64_t odd, enum pack_list list, unsigned columns, uint8_t *at)
{
	for (unsigned i = 0; list == PACK_BITS && i < columns; i += 8) {
		*at++ = (uint8_t)(odd >> i);
	}
	for (; list == PACK_BYTES && odd != 0; odd &= odd - 1) {
		*at++ = (uint8_t)((unsigned)__builtin_ctzll(odd) |
				  (odd & (odd - 1) ? LIST_MORE : 0));
	}
	return at;
}

uint8_t *pack_put(const struct history_row_state *state, const struct history_row *row,
	uint64_t time, uint8_t *at)
{
	uint64_t code[HISTORY_COLUMNS];
	uint64_t odd = 0;
	const uint64_t values = pack_columns(state->columns) & ~row->nulls;
	for (uint64_t todo = values; todo != 0; todo &= todo - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(todo);
		const uint64_t difference =
			(uint64_t)row->value[i] - (uint64_t)state->last.value[i];
		if (!fits(state->plan[i], difference, &code[i])) {
			code[i] = zigzag(difference);
			odd |= UINT64_C(1) << i;
		}
	}
	const unsigned count = (unsigned)__builtin_popcountll(odd);
	const enum pack_list list = count == 0				? PACK_NONE
				    : count <= (state->columns + 7) / 8 ? PACK_BYTES
									: PACK_BITS;
	at = put_list(odd, list, state->columns, varint_put(at, time | list << 2));
	uint64_t waiting = 0;
	unsigned bits = 0;
	for (uint64_t todo = values & ~odd; todo != 0; todo &= todo - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(todo);
		waiting |= code[i] << bits;
		for (bits += pack_width(state->plan[i]); bits >= 8; bits -= 8) {
			*at++ = (uint8_t)waiting;
			waiting >>= 8;
		}
	}
	if (bits > 0) {
		*at++ = (uint8_t)waiting;
	}
	for (; odd != 0; odd &= odd - 1) {
		at = varint_put(at, code[__builtin_ctzll(odd)]);
	}
	return at;
}

const uint8_t *pack_get_bits(const uint8_t *at, const uint8_t *end, unsigned columns, uint64_t *ret)
{
	*ret = 0;
	if ((size_t)(end - at) < (columns + 7) / 8) {
		return NULL;
	}
	for (unsigned i = 0; i < columns; i += 8) {
		*ret |= (uint64_t)*at++ << i;
	}
	return at;
}

static const uint8_t *get_list(
	const struct history_walk *walk, enum pack_list list, const uint8_t *at, uint64_t *odd)
{
	*odd = 0;
	if (list > PACK_BYTES) {
		return NULL;
	}
	if (list == PACK_BITS) {
		return pack_get_bits(at, walk->end, walk->state.columns, odd);
	}
	for (bool more = true; more;) {
		if (at == walk->end) {
			return NULL;
		}
		*odd |= UINT64_C(1) << (*at & LIST_LAST);
		more = *at++ & LIST_MORE;
	}
	return at;
}

static void look_at_one(struct history_walk *walk, unsigned column, unsigned row_bytes)
{
	const unsigned start = walk->start[column], end = start / 8 + (unsigned)sizeof(uint64_t);
	walk->one = (struct pack_one){.reach = row_bytes > end ? row_bytes : end,
		.byte = (uint16_t)(start / 8),
		.divisor = pack_divisor[walk->state.plan[column] >> 5],
		.shift = start % 8,
		.column = (uint8_t)column,
		.mask = (UINT64_C(1) << pack_width_at(walk, column)) - 1};
}

/* Where the bits of each column start in a row whose differences all fit. */
static void lay_out(struct history_walk *walk)
{
	const struct history_row_state *state = &walk->state;
	unsigned bits = 0;
	walk->bits = 0;
	for (unsigned i = 0; i < state->columns; i++) {
		const bool null = state->last.nulls >> i & 1;
		const unsigned width = null ? 0 : pack_width(state->plan[i]);
		walk->start[i] = (uint16_t)bits;
		walk->bits |= (uint64_t)(width > 0) << i;
		bits += width;
	}
	walk->start[state->columns] = (uint16_t)bits;
	walk->bits &= walk->wanted;
	walk->moved = false;
	walk->one.reach = UINT32_MAX;
	if (walk->bits != 0 && (walk->bits & (walk->bits - 1)) == 0) {
		look_at_one(walk, (unsigned)__builtin_ctzll(walk->bits), (bits + 7) / 8);
	}
}

/* Those that are listed stand behind the bits of the others. */
static const uint8_t *get_listed(struct history_walk *walk, const uint8_t *packed, uint64_t odd)
{
	unsigned bits = walk->start[walk->state.columns], missing = 0;
	for (uint64_t todo = odd; todo != 0; todo &= todo - 1) {
		bits -= pack_width_at(walk, (unsigned)__builtin_ctzll(todo));
	}
	if ((size_t)(walk->end - packed) < (bits + 7) / 8) {
		return NULL;
	}
	const uint8_t *at = packed + (bits + 7) / 8;
	bool good = true;
	for (uint64_t todo = walk->bits | odd; good && todo != 0; todo &= todo - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(todo);
		uint64_t code = 0;
		if (!(odd >> i & 1)) {
			good = pack_add_bits(walk, i, packed, missing);
			continue;
		}
		missing += pack_width_at(walk, i);
		at = varint_get(at, walk->end, &code);
		good = at && (!(walk->wanted >> i & 1) ||
				     pack_add(&walk->state.last.value[i], unzigzag(code)));
	}
	return good ? at : NULL;
}

const uint8_t *pack_get(struct history_walk *walk, enum pack_list list, const uint8_t *at)
{
	const struct history_row_state *state = &walk->state;
	uint64_t odd;
	if (!state->planned) {
		return NULL;
	}
	if (walk->moved) {
		lay_out(walk);
	}
	if (list == PACK_NONE) {
		return pack_get_fitting(walk, at);
	}
	at = get_list(walk, list, at, &odd);
	if (!at || odd & (state->last.nulls | ~pack_columns(state->columns))) {
		return NULL;
	}
	return get_listed(walk, at, odd);
}
