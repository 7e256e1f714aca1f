/* SPDX-License-Identifier: Apache-2.0 */
/* row.c: encodes and decodes the rows of history (the format is in the header). Used by the writer
 * for every commit and by readers and the start-up scan on bytes that may be anything. */
#include "daemon/core/history/row.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/core/history/varint.h"

/* Time distances at or beyond this start a new block: the code has 63 bits for a zigzag. */
#define DT_LIMIT (UINT64_C(1) << 60)
#define QUANTA_LIMIT (INT64_C(1) << 52)

void history_row_start(struct history_row_state *state, uint64_t first_ns, unsigned columns)
{
	memset(state, 0, sizeof(*state));
	state->last.t_ns = first_ns;
	state->last.nulls = UINT64_MAX;
	state->columns = columns;
}

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t code)
{
	return code >> 1 ^ (code & 1 ? UINT64_MAX : 0);
}

static uint64_t column_code(
	const struct history_row_state *state, const struct history_row *row, unsigned i)
{
	if (row->nulls >> i & 1) {
		return 0;
	}
	/* Fits: both are within 2^52 quanta. */
	return 1 + zigzag((uint64_t)row->value[i] - (uint64_t)state->last.value[i]);
}

enum form { FORM_DENSE, FORM_SPARSE, FORM_FRONT, FORM_COUNT };

/* What each form would cost, gathered column by column. */
struct forms {
	unsigned bit_bytes;
	uint64_t changed;
	size_t all, changed_only, up_to_last; /* bytes of the codes */
	unsigned front;			      /* columns up to the last one that changed */
};

static void forms_add(struct forms *forms, unsigned column, size_t size, bool changed)
{
	forms->all += size;
	if (changed) {
		forms->changed |= UINT64_C(1) << column;
		forms->changed_only += size;
		forms->up_to_last = forms->all;
		forms->front = column + 1;
	}
}

static enum form forms_shortest(const struct forms *forms)
{
	size_t sparse = forms->bit_bytes + forms->changed_only;
	size_t front = 1 + forms->up_to_last;
	if (forms->all <= sparse && forms->all <= front) {
		return FORM_DENSE;
	}
	return sparse <= front ? FORM_SPARSE : FORM_FRONT;
}

size_t history_row_encode(const struct history_row_state *state, const struct history_row *row,
	uint8_t ret[HISTORY_ROW_MAX])
{
	uint64_t dt = row->t_ns - state->last.t_ns;
	if (row->t_ns < state->last.t_ns || dt >= DT_LIMIT) {
		return 0;
	}
	uint64_t code[HISTORY_COLUMNS];
	struct forms forms = {.bit_bytes = (state->columns + 7) / 8};
	for (unsigned i = 0; i < state->columns; i++) {
		bool was_null = state->last.nulls >> i & 1;
		code[i] = column_code(state, row, i);
		forms_add(&forms, i, varint_size(code[i]), code[i] != (was_null ? 0 : 1));
	}
	enum form form = forms_shortest(&forms);
	uint8_t *at = varint_put(ret, zigzag(dt - state->dt_ns) << 2 | form);
	if (form == FORM_FRONT) {
		*at++ = (uint8_t)forms.front;
	}
	for (unsigned i = 0; form == FORM_SPARSE && i < forms.bit_bytes; i++) {
		*at++ = (uint8_t)(forms.changed >> 8 * i);
	}
	unsigned columns = form == FORM_FRONT ? forms.front : state->columns;
	for (unsigned i = 0; i < columns; i++) {
		if (form != FORM_SPARSE || forms.changed >> i & 1) {
			at = varint_put(at, code[i]);
		}
	}
	return (size_t)(at - ret);
}

void history_row_accept(struct history_row_state *state, const struct history_row *row)
{
	state->dt_ns = row->t_ns - state->last.t_ns;
	state->last.t_ns = row->t_ns;
	state->last.nulls = row->nulls;
	for (unsigned i = 0; i < state->columns; i++) {
		if (!(row->nulls >> i & 1)) {
			state->last.value[i] = row->value[i];
		}
	}
	state->rows++;
}

int history_row_decode(struct history_row_state *state, const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	uint64_t code;
	const uint8_t *at = varint_get(data, end, &code);
	if (!at) {
		return -EBADMSG;
	}
	enum form form = (enum form)(code & 3);
	uint64_t dt = state->dt_ns + unzigzag(code >> 2);
	uint64_t t_ns = state->last.t_ns + dt;
	if (form >= FORM_COUNT || dt >= DT_LIMIT || t_ns < state->last.t_ns ||
		(dt == 0 && state->rows > 0)) {
		return -EBADMSG;
	}
	uint64_t changed = UINT64_MAX;
	if (form == FORM_FRONT) {
		if (at == end || *at > state->columns) {
			return -EBADMSG;
		}
		changed = *at < 64 ? (UINT64_C(1) << *at) - 1 : UINT64_MAX;
		at++;
	} else if (form == FORM_SPARSE) {
		unsigned bit_bytes = (state->columns + 7) / 8;
		if ((size_t)(end - at) < bit_bytes) {
			return -EBADMSG;
		}
		changed = 0;
		for (unsigned i = 0; i < bit_bytes; i++) {
			changed |= (uint64_t)*at++ << 8 * i;
		}
	}
	for (unsigned i = 0; i < state->columns; i++) {
		uint64_t bit = UINT64_C(1) << i;
		if (!(changed & bit)) {
			continue;
		}
		at = varint_get(at, end, &code);
		if (!at) {
			return -EBADMSG;
		}
		if (code == 0) {
			state->last.nulls |= bit;
			continue;
		}
		state->last.nulls &= ~bit;
		int64_t value = (int64_t)((uint64_t)state->last.value[i] + unzigzag(code - 1));
		if (value > QUANTA_LIMIT || value < -QUANTA_LIMIT) {
			return -EBADMSG;
		}
		state->last.value[i] = value;
	}
	state->dt_ns = dt;
	state->last.t_ns = t_ns;
	state->rows++;
	return (int)(at - data);
}

void history_walk_start(struct history_walk *walk, const uint8_t *bytes, size_t size, unsigned rows,
	uint64_t first_ns, unsigned columns)
{
	walk->at = bytes;
	walk->end = bytes + size;
	walk->rows = rows;
	walk->bad = false;
	history_row_start(&walk->state, first_ns, columns);
}

bool history_walk_next(struct history_walk *walk)
{
	if (walk->bad || walk->state.rows >= walk->rows) {
		walk->bad = walk->bad || walk->at != walk->end;
		return false;
	}
	int used = history_row_decode(&walk->state, walk->at, (size_t)(walk->end - walk->at));
	walk->bad = used < 0;
	walk->at += walk->bad ? 0 : used;
	return !walk->bad;
}

void history_row_put(struct history_row *row, unsigned series, unsigned i, unsigned width,
	const struct history_quanta *quanta)
{
	const bool flat = width == HISTORY_WIDTH_FLAT;
	const int64_t value[] = {
		quanta->mean, flat ? quanta->count : quanta->low, quanta->high, quanta->count};
	for (unsigned k = 0; k < width; k++) {
		row->value[k * series + i] = value[k];
		row->nulls &= ~(UINT64_C(1) << (k * series + i));
	}
}

bool history_row_get(const struct history_row *row, unsigned series, unsigned i, unsigned width,
	struct history_quanta *ret)
{
	const unsigned last = (width - 1) * series + i;
	const int64_t count = width == HISTORY_WIDTH_SAMPLE ? 1 : row->value[last];
	*ret = (struct history_quanta){.mean = row->value[i], .count = (uint32_t)count};
	if (width == HISTORY_WIDTH_BUCKET) {
		ret->low = row->value[series + i];
		ret->high = row->value[2 * series + i];
	}
	return !(row->nulls >> i & 1) && !(row->nulls >> last & 1) && count > 0 &&
	       count <= UINT32_MAX && ret->low >= 0 && ret->high >= 0;
}

/* Quanta below 1 are powers of ten: multiplying by the whole number 1/quantum, and dividing by it
 * on the way back, gives the nearest double to the decimal (45.123, not 45.123000000000005). */
static double quanta_per_one(enum unit unit)
{
	return round(1 / unit_quantum(unit));
}

/* Codes of units that are rounded. Below 2^14 quanta a code is the number of quanta. From there on
 * each doubling has 2^13 codes: exponent e >= 1, mantissa m in [2^13, 2^14), value m * 2^e quanta,
 * code 2^14 + (e - 1) * 2^13 + (m - 2^13). So codes rise with their values, and neighbours differ
 * by at most 1/2^13. */
enum { MANTISSA_BITS = 13 };

#define MANTISSA_LEAST (INT64_C(1) << MANTISSA_BITS)

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
	return ldexp((double)mantissa, exponent < 40 ? (int)exponent : 40);
}

bool history_quantise(enum unit unit, double value, int64_t *ret)
{
	double quantum = unit_quantum(unit);
	double quanta = quantum < 1 ? value * quanta_per_one(unit) : value / quantum;
	/* Also false for NAN. */
	if (!(fabs(quanta) <= (double)QUANTA_LIMIT)) {
		return false;
	}
	if (!unit_rounded(unit)) {
		*ret = llround(quanta);
	} else {
		*ret = quanta < 0 ? -round_code(-quanta) : round_code(quanta);
	}
	return true;
}

double history_unquantise(enum unit unit, int64_t value)
{
	double quantum = unit_quantum(unit);
	double quanta = (double)value;
	if (unit_rounded(unit)) {
		quanta = value < 0 ? -unround_code(-value) : unround_code(value);
	}
	return quantum < 1 ? quanta / quanta_per_one(unit) : quanta * quantum;
}
