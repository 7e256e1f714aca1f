/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h: rows of history: how values of one moment become bytes and come back. Knows nothing of
 * blocks.
 *
 * A row is a time code and the columns' codes, all LEB128 varints of at most 64 bits unless packed:
 *   time     zigzag(dt - previous dt) << 2 | form, where dt is the distance to the row before it
 *            in ns (0 for a block's first row); form: 0 dense, 1 sparse, 2 front, 3 packed
 *   dense    one code for each column: 0 = null, else 1 + zigzag(value - last value that was not
 *            null), 0 being the value before the first
 *   sparse   ceil(columns / 8) bytes of bits, the lowest bit of the first byte is column 0: set =
 *            the column's code follows, clear = as in the row before (null stays null)
 *   front    a byte n; codes of the first n columns follow, the others are as in the row before
 *   packed   the time is shifted by two bits more, which say how columns are listed whose
 *            difference does not fit its plan: 0 there is none, 1 bits as in sparse, 2 a byte each,
 *            64 added where another follows. Then come the codes of the others that are not null,
 *            in as many bits as the plan says, from the lowest bit of a byte on, the last byte
 *            filled with zeros: zigzag(difference / divisor). Last those of the columns listed:
 *            zigzag(difference), varints. What is null stays null, and the others are not.
 * A plan stands in front of a row and is that of all packed rows behind it: a byte 15, a byte n,
 * then for each of the first n columns a byte width | divisor << 5, where the divisor is one of a
 * table (pack.c); the width of the others is 0: they are as in the row before.
 * The encoder takes the packed form once it has a plan and nothing becomes null or a value; else
 * the shortest of the others. So a constant costs at most an eighth of a byte, a series that
 * varies hardly more than its differences have bits. As a column's bits stand at a place that is
 * known before the row is read, one series can be read without the others (history_walk_only).
 * Values are fixed-point, see history_quantise. Beyond 2^52 quanta a value is kept as null:
 * neighbouring values would be indistinguishable, and a clamped one would be wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/history/pack.h"
#include "daemon/core/metrics/unit.h"

/* A plan, time code, bits, and a full varint for each column. */
enum { HISTORY_ROW_MAX = 2 + HISTORY_COLUMNS + 10 + 8 + HISTORY_COLUMNS * 10 };

/* Before the first row of a block that starts at first_ns. columns: 1 … HISTORY_COLUMNS. */
void history_row_start(struct history_row_state *state, uint64_t first_ns, unsigned columns);

/* The same behind a block of the writer's: its plan goes on where the columns are as many. */
void history_row_restart(struct history_row_state *state, uint64_t first_ns, unsigned columns);

/* Codes the row behind what state knows; state is unchanged (see history_row_accept). The number of
 * bytes, or 0 when the time does not fit behind the last one (a new block is needed). */
size_t history_row_encode(const struct history_row_state *state, const struct history_row *row,
	uint8_t ret[HISTORY_ROW_MAX]);

/* The row is written: the next one is coded against it. */
void history_row_accept(struct history_row_state *state, const struct history_row *row);

/* Goes over the rows of a block. */
void history_walk_start(struct history_walk *walk, const uint8_t *bytes, size_t size, unsigned rows,
	uint64_t first_ns, unsigned columns);
/* At its start: of the values only those of these columns are worth something from now on, and the
 * rest costs next to no time in packed rows. */
void history_walk_only(struct history_walk *walk, uint64_t columns);
/* The next row, in state.last. False at the end, or where the bytes are none (bad): cut off, an
 * overlong varint, a time that does not run on, a value beyond 2^52 quanta, a packed row without a
 * plan. */
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
/* The columns of series i. */
uint64_t history_row_columns(unsigned series, unsigned i, unsigned width);
/* False when the row has nothing of it. */
bool history_row_get(const struct history_row *row, unsigned series, unsigned i, unsigned width,
	struct history_quanta *ret);

/* Code of a value: its quanta, in units that are rounded (unit.h) with fewer digits beyond 2^14
 * quanta. Codes are in the order of their values. false when it is null: NAN or out of range. */
bool history_quantise(enum unit unit, double value, int64_t *ret);
double history_unquantise(enum unit unit, int64_t value);

/* The same for many values of a unit. */
struct history_scale {
	double per_one, quantum; /* of unit.h */
	int64_t exact;		 /* codes below are numbers of quanta, of either sign */
	bool counts;
};

struct history_scale history_scale_of(enum unit unit);
/* The quanta of any other. */
double history_unround(const struct history_scale *scale, int64_t code);

static inline double history_scaled(const struct history_scale *scale, int64_t code)
{
	const bool exact = code < scale->exact && code > -scale->exact;
	const double quanta = exact ? (double)code : history_unround(scale, code);
	return scale->per_one > 0 ? quanta / scale->per_one : quanta * scale->quantum;
}
