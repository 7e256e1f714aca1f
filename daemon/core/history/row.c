/* SPDX-License-Identifier: Apache-2.0 */
/* row.c: encodes and decodes the rows of history (the format is in the header). Used by the writer
 * for every commit and by readers and the start-up scan on bytes that may be anything. */
#include "daemon/core/history/row.h"

#include <string.h>

#include "daemon/core/history/varint.h"

/* Time distances at or beyond this start a new block: the code has 63 bits for a zigzag. */
#define DT_LIMIT (UINT64_C(1) << 60)

void history_row_start(struct history_row_state *state, uint64_t first_ns, unsigned columns)
{
	memset(state, 0, sizeof(*state));
	state->last.t_ns = first_ns;
	state->last.nulls = UINT64_MAX;
	state->columns = columns;
}

void history_row_restart(struct history_row_state *state, uint64_t first_ns, unsigned columns)
{
	const struct history_row_state before = *state;
	history_row_start(state, first_ns, columns);
	if (before.columns == columns && before.planned) {
		memcpy(state->plan, before.plan, sizeof(state->plan));
		state->planned = state->plan_waits = true;
	}
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

enum form { FORM_DENSE, FORM_SPARSE, FORM_FRONT, FORM_PACKED };

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

/* A row of a form other than packed. */
static uint8_t *put_codes(const struct history_row_state *state, const struct history_row *row,
	uint64_t time, uint8_t *at)
{
	uint64_t code[HISTORY_COLUMNS];
	struct forms forms = {.bit_bytes = (state->columns + 7) / 8};
	for (unsigned i = 0; i < state->columns; i++) {
		bool was_null = state->last.nulls >> i & 1;
		code[i] = column_code(state, row, i);
		forms_add(&forms, i, varint_size(code[i]), code[i] != (was_null ? 0 : 1));
	}
	enum form form = forms_shortest(&forms);
	at = varint_put(at, time << 2 | form);
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
	return at;
}

size_t history_row_encode(const struct history_row_state *state, const struct history_row *row,
	uint8_t ret[HISTORY_ROW_MAX])
{
	const uint64_t dt = row->t_ns - state->last.t_ns;
	if (row->t_ns < state->last.t_ns || dt >= DT_LIMIT) {
		return 0;
	}
	const uint64_t time = zigzag(dt - state->dt_ns);
	const bool same_nulls = !((row->nulls ^ state->last.nulls) & pack_columns(state->columns));
	uint8_t *at = state->plan_waits ? pack_put_plan(state, ret) : ret;
	if (state->planned && same_nulls && time < PACK_TIME_LIMIT) {
		at = pack_put(state, row, time << 4 | FORM_PACKED, at);
	} else {
		at = put_codes(state, row, time, at);
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
	state->plan_waits = false;
}

/* Which columns have a code in the row; NULL when the bytes do not say. */
static const uint8_t *get_changed(
	const struct history_walk *walk, enum form form, const uint8_t *at, uint64_t *changed)
{
	const unsigned columns = walk->state.columns;
	*changed = UINT64_MAX;
	if (form == FORM_FRONT) {
		if (at == walk->end || *at > columns) {
			return NULL;
		}
		*changed = pack_columns(*at++);
	} else if (form == FORM_SPARSE) {
		return pack_get_bits(at, walk->end, columns, changed);
	}
	return at;
}

static const uint8_t *get_codes(struct history_walk *walk, enum form form, const uint8_t *at)
{
	struct history_row *last = &walk->state.last;
	const uint64_t nulls = last->nulls;
	uint64_t changed, code;
	at = get_changed(walk, form, at, &changed);
	for (unsigned i = 0; at && i < walk->state.columns; i++) {
		uint64_t bit = UINT64_C(1) << i;
		if (!(changed & bit)) {
			continue;
		}
		at = varint_get(at, walk->end, &code);
		if (!at) {
			return NULL;
		}
		if (code == 0) {
			last->nulls |= bit;
			continue;
		}
		last->nulls &= ~bit;
		if (walk->wanted & bit && !pack_add(&last->value[i], unzigzag(code - 1))) {
			return NULL;
		}
	}
	walk->moved = walk->moved || last->nulls != nulls;
	return at;
}

/* Out of the way of most rows, which are packed ones in which all fits. */
__attribute__((noinline)) static const uint8_t *get_row(
	struct history_walk *walk, uint64_t code, const uint8_t *at)
{
	const enum form form = (enum form)(code & 3);
	return form == FORM_PACKED ? pack_get(walk, (enum pack_list)(code >> 2 & 3), at)
				   : get_codes(walk, form, at);
}

__attribute__((noinline)) static const uint8_t *get_plan(
	struct history_walk *walk, const uint8_t *at, uint64_t *code)
{
	at = pack_get_plan(walk, at);
	at = at ? varint_get(at, walk->end, code) : NULL;
	return at && *code != PACK_PLAN ? at : NULL;
}

/* Decodes the next row into state.last. What follows it, or NULL. */
static const uint8_t *decode(struct history_walk *walk)
{
	struct history_row_state *state = &walk->state;
	uint64_t code;
	const uint8_t *at = varint_get(walk->at, walk->end, &code);
	if (at && code == PACK_PLAN) {
		at = get_plan(walk, at, &code);
	}
	if (!at) {
		return NULL;
	}
	const uint64_t time = (code & 3) == FORM_PACKED ? code >> 4 : code >> 2;
	const uint64_t dt = state->dt_ns + unzigzag(time);
	const uint64_t t_ns = state->last.t_ns + dt;
	if (dt >= DT_LIMIT || t_ns < state->last.t_ns || (dt == 0 && state->rows > 0)) {
		return NULL;
	}
	state->dt_ns = dt;
	state->last.t_ns = t_ns;
	state->rows++;
	return (code & 15) == (FORM_PACKED | PACK_NONE << 2) && !walk->moved
		       ? pack_get_fitting(walk, at)
		       : get_row(walk, code, at);
}

void history_walk_start(struct history_walk *walk, const uint8_t *bytes, size_t size, unsigned rows,
	uint64_t first_ns, unsigned columns)
{
	walk->at = bytes;
	walk->end = bytes + size;
	walk->rows = rows;
	walk->bad = false;
	walk->moved = true;
	walk->wanted = UINT64_MAX;
	history_row_start(&walk->state, first_ns, columns);
}

void history_walk_only(struct history_walk *walk, uint64_t columns)
{
	walk->wanted = columns;
}

bool history_walk_next(struct history_walk *walk)
{
	if (walk->bad || walk->state.rows >= walk->rows) {
		walk->bad = walk->bad || walk->at != walk->end;
		return false;
	}
	const uint8_t *at = decode(walk);
	walk->bad = !at;
	walk->at = at ? at : walk->at;
	return at != NULL;
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

uint64_t history_row_columns(unsigned series, unsigned i, unsigned width)
{
	uint64_t columns = 0;
	for (unsigned k = 0; k < width; k++) {
		columns |= UINT64_C(1) << (k * series + i);
	}
	return columns;
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
