/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h: rows of history: how values of one moment become bytes and come back. Knows nothing of
 * blocks.
 *
 * A row is a time code and the columns' codes, all LEB128 varints of at most 64 bits:
 *   time     zigzag(dt - previous dt) << 2 | form, where dt is the distance to the row before it
 *            in ns (0 for a block's first row); form: 0 dense, 1 sparse, 2 front
 *   dense    one code for each column: 0 = null, else 1 + zigzag(value - last value that was not
 *            null), 0 being the value before the first
 *   sparse   ceil(columns / 8) bytes of bits, the lowest bit of the first byte is column 0: set =
 *            the column's code follows, clear = as in the row before (null stays null)
 *   front    a byte n; codes of the first n columns follow, the others are as in the row before
 * The encoder takes the shortest form: a constant costs at most an eighth of a byte.
 * Values are fixed-point, see history_quantise. Beyond 2^52 quanta a value is kept as null:
 * neighbouring values would be indistinguishable, and a clamped one would be wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/unit.h"

enum { HISTORY_COLUMNS = 64 };

/* Time code, bits, and a full varint for each column. */
enum { HISTORY_ROW_MAX = 10 + 8 + HISTORY_COLUMNS * 10 };

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
};

/* Before the first row of a block that starts at first_ns. columns: 1 … HISTORY_COLUMNS. */
void history_row_start(struct history_row_state *state, uint64_t first_ns, unsigned columns);

/* Codes the row behind what state knows; state is unchanged (see history_row_accept). The number of
 * bytes, or 0 when the time does not fit behind the last one (a new block is needed). */
size_t history_row_encode(const struct history_row_state *state, const struct history_row *row,
	uint8_t ret[HISTORY_ROW_MAX]);

/* The row is written: the next one is coded against it. */
void history_row_accept(struct history_row_state *state, const struct history_row *row);

/* Decodes the next row into state->last. The bytes used (> 0), or -EBADMSG when they are no row:
 * cut off, an overlong varint, a time that does not run on, a value beyond 2^52 quanta. state is
 * then unusable. */
int history_row_decode(struct history_row_state *state, const uint8_t *data, size_t size);

/* Goes over the rows of a block: state.last is the row. False at the end, or where the bytes are
 * none (bad). */
struct history_walk {
	const uint8_t *at, *end;
	unsigned rows;
	struct history_row_state state;
	bool bad;
};
void history_walk_start(struct history_walk *walk, const uint8_t *bytes, size_t size, unsigned rows,
	uint64_t first_ns, unsigned columns);
bool history_walk_next(struct history_walk *walk);

/* What a row has of one of its series, in quanta of its unit. */
struct history_quanta {
	int64_t mean, low, high; /* low = mean - min, high = max - mean: never negative */
	uint32_t count;
};

/* A row's shape: how many values it has of each series. The means of all stand first, then the
 * distances, last the counts, which seldom change. */
enum { HISTORY_WIDTH_SAMPLE = 1, HISTORY_WIDTH_FLAT = 2, HISTORY_WIDTH_BUCKET = 4 };

/* Column i of `series` columns; flat: low and high are 0; a sample is its mean. */
void history_row_put(struct history_row *row, unsigned series, unsigned i, unsigned width,
	const struct history_quanta *quanta);
/* False when the row has nothing of it. */
bool history_row_get(const struct history_row *row, unsigned series, unsigned i, unsigned width,
	struct history_quanta *ret);

/* Code of a value: its quanta, in units that are rounded (unit.h) with fewer digits beyond 2^14
 * quanta. Codes are in the order of their values. false when it is null: NAN or out of range. */
bool history_quantise(enum unit unit, double value, int64_t *ret);
double history_unquantise(enum unit unit, int64_t value);
