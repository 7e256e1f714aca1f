/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h: rows of history in which each column has as many bits as its plan says (the format is in
 * row.h), and what coder and decoder know of the rows before. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/history/varint.h"

enum { HISTORY_COLUMNS = 64 };

#define HISTORY_QUANTA_LIMIT (INT64_C(1) << 52)

/* The values of one moment: bit i of nulls = column i is null. */
struct history_row {
	uint64_t t_ns;
	uint64_t nulls;
	int64_t value[HISTORY_COLUMNS];
};

/* What coder and decoder remember of the rows before; value[] keeps the last that was not null. */
struct history_row_state {
	struct history_row last;
	uint64_t dt_ns;
	unsigned columns;
	unsigned rows;
	uint8_t plan[HISTORY_COLUMNS];
	bool planned;	  /* there is a plan */
	bool plan_waits;  /* it is written with the next row */
	unsigned plan_at; /* rows before which it is not looked at again */
};

/* A reader of a block's rows; see row.h. */
struct history_walk {
	const uint8_t *at, *end;
	unsigned rows;
	bool bad;
	bool moved;	 /* where bits start is to be worked out again; false: there is a plan */
	uint64_t wanted; /* the columns that are decoded */
	uint64_t bits;	 /* those of them that have bits in a packed row */
	uint16_t start[HISTORY_COLUMNS + 1];
	struct pack_one { /* the column of bits when that is one */
		uint32_t
			reach; /* bytes of a row and behind it that are read; UINT32_MAX: not one */
		uint16_t byte, divisor;
		uint8_t shift, column;
		uint64_t mask;
	} one;
	struct history_row_state state;
};

/* The time code of a plan, and how a packed row lists the columns that do not fit theirs. */
enum { PACK_PLAN = 15 };
enum pack_list { PACK_NONE, PACK_BITS, PACK_BYTES };

/* Times that are farther from the rhythm have no room behind list and form. */
#define PACK_TIME_LIMIT (UINT64_C(1) << 60)

enum { PACK_WIDTH_MAX = 31, PACK_DIVISORS = 8 };

/* What the steps of sensors have in common: pages in KiB, clocks in kHz, temperatures in m°C that
 * come in eighths, halves or whole degrees. */
extern const uint16_t pack_divisor[PACK_DIVISORS];

static inline unsigned pack_width(uint8_t plan)
{
	return plan & PACK_WIDTH_MAX;
}

static inline uint64_t pack_columns(unsigned columns)
{
	return columns < 64 ? (UINT64_C(1) << columns) - 1 : UINT64_MAX;
}

/* The value a difference further; false beyond the limit. */
static inline bool pack_add(int64_t *value, uint64_t difference)
{
	*value = (int64_t)((uint64_t)*value + difference);
	return *value <= HISTORY_QUANTA_LIMIT && *value >= -HISTORY_QUANTA_LIMIT;
}

/* All return what follows what they wrote or read; NULL: the bytes are none. */
uint8_t *pack_put_plan(const struct history_row_state *state, uint8_t *at);
const uint8_t *pack_get_plan(struct history_walk *walk, const uint8_t *at);

/* A row of which the same is null as before. time: its code without the list. */
uint8_t *pack_put(const struct history_row_state *state, const struct history_row *row,
	uint64_t time, uint8_t *at);
const uint8_t *pack_get(struct history_walk *walk, enum pack_list list, const uint8_t *at);

/* A bit for each column. */
const uint8_t *pack_get_bits(
	const uint8_t *at, const uint8_t *end, unsigned columns, uint64_t *ret);

static inline uint64_t pack_bits_at(
	const uint8_t *from, const uint8_t *end, unsigned bit, unsigned width)
{
	uint64_t bytes = 0;
	from += bit / 8;
	const size_t left = (size_t)(end - from);
	if (left >= sizeof(bytes)) {
		memcpy(&bytes, from, sizeof(bytes));
	} else {
		memcpy(&bytes, from, left);
	}
	return le64toh(bytes) >> bit % 8 & ((UINT64_C(1) << width) - 1);
}

static inline unsigned pack_width_at(const struct history_walk *walk, unsigned i)
{
	return walk->start[i + 1] - walk->start[i];
}

/* The bits of a column of a row, `missing` earlier than they stand when all fit. */
static inline bool pack_add_bits(
	struct history_walk *walk, unsigned i, const uint8_t *packed, unsigned missing)
{
	const uint64_t code =
		pack_bits_at(packed, walk->end, walk->start[i] - missing, pack_width_at(walk, i));
	return pack_add(&walk->state.last.value[i],
		unzigzag(code) * pack_divisor[walk->state.plan[i] >> 5]);
}

/* A row in which all fit, as they do in most; there is a plan, and the walk has not moved. */
static inline const uint8_t *pack_get_fitting(struct history_walk *walk, const uint8_t *at)
{
	const unsigned size = (walk->start[walk->state.columns] + 7u) / 8;
	const struct pack_one *one = &walk->one;
	if ((size_t)(walk->end - at) >= one->reach) {
		uint64_t bytes;
		memcpy(&bytes, at + one->byte, sizeof(bytes));
		const uint64_t difference =
			unzigzag(le64toh(bytes) >> one->shift & one->mask) * one->divisor;
		return pack_add(&walk->state.last.value[one->column], difference) ? at + size
										  : NULL;
	}
	bool good = (size_t)(walk->end - at) >= size;
	for (uint64_t todo = walk->bits; good && todo != 0; todo &= todo - 1) {
		good = pack_add_bits(walk, (unsigned)__builtin_ctzll(todo), at, 0);
	}
	return good ? at + size : NULL;
}
