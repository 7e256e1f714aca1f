/* SPDX-License-Identifier: Apache-2.0 */
/* The coder of rows: what goes in comes out, and no bytes do harm. */
#include "daemon/core/history/row.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "daemon/core/history/plan.h"
#include "tests/unit/unit.h"

static uint64_t seed = 88172645463325252u;

static uint64_t random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

TEST_TIMEOUT(60);

START_TEST(values_come_back_as_the_decimals_they_were)
{
	static const struct {
		enum unit unit;
		double value, back;
	} table[] = {
		{UNIT_CELSIUS, 45.123, 45.123},
		{UNIT_CELSIUS, -40, -40},
		{UNIT_CELSIUS, 0.0004, 0},
		{UNIT_PERCENT, 97.2, 97.2},
		{UNIT_BYTES, 4096, 4096},
		{UNIT_BYTES, 1e12, 976562500.0 * 1024},
		{UNIT_HERTZ, 1.5e9, 1.5e9},
		{UNIT_VOLTS, 0.8563, 0.8563},
		{UNIT_MILLISECONDS, 1.6383, 1.6383},
		{UNIT_MILLISECONDS, 12.3456, 12.3456},
		{UNIT_MILLISECONDS, 12.3457, 12.3456},
		{UNIT_MILLISECONDS, -12.3457, -12.3456},
		{UNIT_BOOL, 1, 1},
		{UNIT_BOOL, 0.4, 0.4},
		{UNIT_STATE, 1.25, 1.25},
		{UNIT_COUNT, 1.25, 1.25},
		{UNIT_COUNT, -9999.99, -9999.99},
		{UNIT_COUNT, 9999.996, 10000},
		{UNIT_COUNT, 10000.4, 10000},
		{UNIT_COUNT, -1e15 - 1, -1e15 - 1},
		{UNIT_NONE, 0.1 + 0.2, 0.3},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int64_t value = 0;
		ck_assert(history_quantise(table[i].unit, table[i].value, &value));
		ck_assert(history_unquantise(table[i].unit, value) == table[i].back);
	}
}
END_TEST

/* Every code of a rounded unit: codes rise with the values, come back as they are, and no value is
 * off by more than half a quantum or 1 / 2^14 of itself. */
START_TEST(rounded_values_keep_order_and_14_digits)
{
	int64_t before = -1;
	for (double value = 0; value < 4e8; value = value * 1.00003 + 0.00003) {
		int64_t code = 0, again = 0;
		ck_assert(history_quantise(UNIT_MILLISECONDS, value, &code));
		double back = history_unquantise(UNIT_MILLISECONDS, code);
		ck_assert_int_ge(code, before);
		ck_assert_double_le(
			fabs(back - value), fmax(0.00005 * 1.000001, value / (1 << 14)));
		ck_assert(history_quantise(UNIT_MILLISECONDS, back, &again));
		ck_assert_int_eq(again, code);
		ck_assert(history_quantise(UNIT_MILLISECONDS, -value, &again));
		ck_assert_int_eq(again, -code);
		before = code;
	}
	int64_t largest = INT64_C(1) << 52;
	ck_assert(isfinite(history_unquantise(UNIT_MILLISECONDS, largest)));
	ck_assert(isfinite(history_unquantise(UNIT_MILLISECONDS, -largest)));
}
END_TEST

START_TEST(what_fixed_point_cannot_hold_is_null)
{
	int64_t value = 7;
	double bad[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 4503599627370497.0};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert(!history_quantise(UNIT_RPM, bad[i], &value));
		ck_assert(!history_quantise(UNIT_COUNT, bad[i], &value));
	}
	ck_assert_int_eq(value, 7);
	ck_assert(history_quantise(UNIT_RPM, 4503599627370496.0, &value));
	ck_assert_int_eq(value, INT64_C(1) << 52);
}
END_TEST

/* Rows of the same start, of which the writer may make a plan. */
static size_t put_row(struct history_row_state *state, uint64_t first_ns,
	const struct history_row *row, uint8_t *bytes, size_t size)
{
	if (history_plan_is_due(state)) {
		struct history_walk block;
		history_walk_start(&block, bytes, size, state->rows, first_ns, state->columns);
		history_plan_make(state, &block);
	}
	size_t used = history_row_encode(state, row, bytes + size);
	if (used > 0) {
		history_row_accept(state, row);
	}
	ck_assert_uint_le(used, HISTORY_ROW_MAX);
	return used;
}

enum { ROWS = 400 };

/* Nulls, constants, big and small jumps, steps of ten; nulls change seldom in the second half. */
static void make_row(struct history_row *row, const struct history_row *before, unsigned r)
{
	*row = *before;
	row->t_ns = before->t_ns + (r > 0) + (random_u64() >> (random_u64() % 40 + 20));
	if (r < ROWS / 2 || random_u64() % 32 == 0) {
		row->nulls = random_u64() & random_u64() & random_u64();
	}
	for (unsigned i = 0; i < HISTORY_COLUMNS; i++) {
		unsigned bits = r < ROWS / 2 || random_u64() % 64 == 0
					? 12 + (unsigned)(random_u64() % 50)
					: 64 - i / 2;
		int64_t jump = bits < 64 ? (int64_t)(random_u64() >> bits) : 0;
		bool keep = i % 3 == 0 || random_u64() % 4 == 0;
		row->value[i] = keep && r > 0 ? before->value[i]
				: bits == 64 - i / 2
					? (before->value[i] >> 1) + (i % 5 == 0 ? 10 : 1) * jump
					: jump;
		if (random_u64() % 16 == 0) {
			row->value[i] = -row->value[i];
		}
	}
}

/* The same rows, of which only some columns are decoded. */
static void check_only(struct history_walk walk, const struct history_row *rows, uint64_t only)
{
	history_walk_only(&walk, only);
	for (unsigned r = 0; r < ROWS; r++) {
		ck_assert(history_walk_next(&walk));
		ck_assert_uint_eq(walk.state.last.t_ns, rows[r].t_ns);
		for (unsigned i = 0; i < walk.state.columns; i++) {
			bool null = rows[r].nulls >> i & 1;
			ck_assert_int_eq(walk.state.last.nulls >> i & 1, null);
			if (!null && only >> i & 1) {
				ck_assert_int_eq(walk.state.last.value[i], rows[r].value[i]);
			}
		}
	}
	ck_assert(!history_walk_next(&walk));
	ck_assert(!walk.bad);
}

START_TEST(rows_come_back_exactly)
{
	for (unsigned columns = 1; columns <= HISTORY_COLUMNS; columns++) {
		static uint8_t bytes[ROWS * HISTORY_ROW_MAX];
		static struct history_row rows[ROWS];
		struct history_row_state state;
		struct history_walk walk;
		size_t size = 0;
		const struct history_row none = {.t_ns = 1000};
		history_row_start(&state, 1000, columns);
		for (unsigned r = 0; r < ROWS; r++) {
			make_row(&rows[r], r > 0 ? &rows[r - 1] : &none, r);
			rows[r].t_ns = r == 0 ? 1000 : rows[r].t_ns;
			size_t used = put_row(&state, 1000, &rows[r], bytes, size);
			ck_assert_uint_gt(used, 0);
			size += used;
		}
		ck_assert(state.planned);
		history_walk_start(&walk, bytes, size, ROWS, 1000, columns);
		check_only(walk, rows, UINT64_MAX);
		for (unsigned i = 0; i < columns; i += 7) {
			check_only(walk, rows, UINT64_C(1) << i);
		}
		check_only(walk, rows, history_row_columns((columns + 3) / 4, 0, 4));
	}
}
END_TEST

START_TEST(a_constant_costs_a_bit_or_less)
{
	struct history_row_state state;
	struct history_row row = {.t_ns = 0};
	uint8_t bytes[HISTORY_ROW_MAX];
	history_row_start(&state, 0, 64);
	for (unsigned i = 0; i < 64; i++) {
		row.value[i] = 1000 + i;
	}
	for (int r = 0; r < 3; r++) {
		ck_assert_uint_gt(history_row_encode(&state, &row, bytes), 0);
		history_row_accept(&state, &row);
		row.t_ns += 1000000000;
	}
	/* One byte of time (the rhythm is kept), and one that says that nothing changed. */
	ck_assert_uint_eq(history_row_encode(&state, &row, bytes), 2);
	row.value[0]++;
	ck_assert_uint_eq(history_row_encode(&state, &row, bytes), 3); /* the front */
	row.value[63]++;
	ck_assert_uint_eq(history_row_encode(&state, &row, bytes), 11); /* bits for the two */
}
END_TEST

/* The size of a row behind `count` of them whose values take steps of up to `most` times `step`,
 * each eighth the largest. */
static size_t size_behind(unsigned count, int64_t most, int64_t step)
{
	static uint8_t bytes[100 * HISTORY_ROW_MAX];
	struct history_row_state state;
	struct history_row row = {.t_ns = 0};
	size_t size = 0, last = 0;
	history_row_start(&state, 0, 16);
	for (unsigned r = 0; r <= count; r++) {
		for (unsigned i = 0; i < 16; i++) {
			const int64_t jump = (int64_t)(random_u64() % (uint64_t)(2 * most + 1));
			row.value[i] += step * (r % 8 == 0 ? most : jump - most);
		}
		last = put_row(&state, 0, &row, bytes, size);
		size += last;
		row.t_ns += 1000000000;
	}
	return last;
}

/* 16 series: a byte of time, and as many bits as a difference has with its sign. */
START_TEST(differences_cost_the_bits_they_have)
{
	ck_assert_uint_eq(size_behind(20, 0, 1), 1);
	ck_assert_uint_eq(size_behind(20, 1, 1), 1 + 16 * 2 / 8);
	ck_assert_uint_eq(size_behind(20, 400, 1), 1 + 16 * 10 / 8);
	ck_assert_uint_eq(size_behind(80, 400, 1), 1 + 16 * 10 / 8);
	ck_assert_uint_eq(size_behind(20, 1, 500), 1 + 16 * 2 / 8); /* half degrees in m°C */
	ck_assert_uint_eq(size_behind(20, 100, 4), 1 + 16 * 8 / 8); /* pages in KiB */
	ck_assert_uint_eq(size_behind(20, (1 << 28) - 1, 1), 1 + 16 * 29 / 8);
	ck_assert_uint_le(size_behind(20, INT64_C(1) << 40, 1), 1 + 2 + 16 * 6); /* varints */
}
END_TEST

/* What does not fit the plan stands behind the others, and costs nothing but itself. */
START_TEST(a_jump_costs_only_its_own_column)
{
	static uint8_t bytes[40 * HISTORY_ROW_MAX];
	struct history_row_state state;
	struct history_row row = {.t_ns = 0};
	size_t size = 0;
	history_row_start(&state, 0, 16);
	for (unsigned r = 0; r < 20; r++) {
		for (unsigned i = 0; i < 16; i++) {
			row.value[i] += r % 2 ? 7 : -8;
		}
		size += put_row(&state, 0, &row, bytes, size);
		row.t_ns += 1000000000;
	}
	row.value[7] += 1000000;
	ck_assert_uint_eq(history_row_encode(&state, &row, bytes), 1 + 1 + 15 * 4 / 8 + 1 + 3);
	/* a new block goes on with the plan, which stands in front of its first packed row */
	struct history_row_state next = state;
	history_row_restart(&next, row.t_ns, 16);
	history_row_encode(&next, &row, bytes);
	ck_assert_uint_eq(bytes[0], 15);
	ck_assert_uint_eq(bytes[1], 16);
	ck_assert_uint_eq(bytes[2], 4);
	history_row_accept(&next, &row);
	row.t_ns += 1000000000;
	history_row_encode(&next, &row, bytes);
	ck_assert_uint_ne(bytes[0], 15);
	history_row_restart(&next, row.t_ns, 15); /* of other columns it says nothing */
	history_row_encode(&next, &row, bytes);
	ck_assert_uint_ne(bytes[0], 15);
}
END_TEST

START_TEST(a_time_that_does_not_run_on_is_refused)
{
	struct history_row_state state;
	struct history_row row = {.t_ns = 99};
	uint8_t bytes[HISTORY_ROW_MAX];
	history_row_start(&state, 100, 1);
	ck_assert_uint_eq(history_row_encode(&state, &row, bytes), 0);
	row.t_ns = 100 + (UINT64_C(1) << 60);
	ck_assert_uint_eq(history_row_encode(&state, &row, bytes), 0);
	row.t_ns = 100;
	size_t size = history_row_encode(&state, &row, bytes);
	memcpy(bytes + size, bytes, size);
	struct history_walk walk;
	history_walk_start(&walk, bytes, 2 * size, 2, 100, 1);
	ck_assert(history_walk_next(&walk));
	ck_assert(!history_walk_next(&walk)); /* dt 0 again */
	ck_assert(walk.bad);
}
END_TEST

START_TEST(bad_bytes_are_no_row)
{
	static const struct {
		const char *bytes;
		size_t size;
	} table[] = {
		{"", 0}, {"\x00", 1},				      /* no column */
		{"\x80", 1},					      /* cut varint */
		{"\x01", 1},					      /* no bits */
		{"\x01\x01", 2},				      /* bit, no code */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", 11}, /* over 64 bits */
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11}, /* overlong */
		{"\x04\x00", 2},				      /* time runs back */
		{"\x03\x00", 2},				      /* packed, no plan */
		{"\x0f", 1},					      /* a plan for what? */
		{"\x0f\x01", 2},				      /* cut plan */
		{"\x0f\x02\x01\x01\x00\x01", 6},		      /* plan beyond the columns */
		{"\x0f\x01\x0a", 3},				      /* plan, no row */
		{"\x0f\x00\x0f\x00\x00\x01", 6},		      /* two plans */
		{"\x0f\x00\x2f\x00", 4},			      /* no such list */
		{"\x0f\x00\x0b", 3},				      /* no list */
		{"\x0f\x00\x0b\x00\x00", 5},			      /* lists what is null */
		{"\x0f\x00\x0b\x01\x00", 5},			      /* lists no column */
		{"\x0f\x00\x07", 3},				      /* cut bits of a list */
		{"\x00\x01\x0f\x01\x0a\x23\x00", 7},		      /* cut bits of codes */
		{"\x00\x01\x0f\x01\x0a\x2b\x00", 7},		      /* listed, no code */
		{"\x00\x01\x0f\x01\x0a\x2b\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
			17},					      /* a listed one past 2^52 */
		{"\x02", 1},					      /* front of what? */
		{"\x02\x01", 2},				      /* front, no code */
		{"\x02\x02\x00\x00", 4},			      /* front beyond the columns */
		{"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* value past 2^52 */
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct history_walk walk;
		uint8_t copy[24];
		memcpy(copy, table[i].bytes, table[i].size);
		history_walk_start(&walk, copy, table[i].size, UINT_MAX, 100, 1);
		while (history_walk_next(&walk)) {
		}
		/* it ended at a row that begins, not behind the last */
		ck_assert_msg(walk.at < walk.end || table[i].size == 0, "%zu", i);
		ck_assert(walk.bad);
	}
}
END_TEST

START_TEST(random_bytes_end_or_are_rows)
{
	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[64];
		size_t size = random_u64() % sizeof(bytes);
		for (size_t i = 0; i < size; i++) {
			bytes[i] = (uint8_t)(random_u64() >> (random_u64() % 2 ? 8 : 58));
		}
		if (round % 2 == 0 && size > 2) { /* a plan for as many columns */
			bytes[0] = 15;
			bytes[1] = (uint8_t)(random_u64() % size);
		}
		struct history_walk walk;
		history_walk_start(&walk, bytes, size, UINT_MAX, random_u64() >> 2,
			1 + (unsigned)(random_u64() % 64));
		uint64_t t_ns = walk.state.last.t_ns;
		const uint8_t *at = walk.at;
		while (history_walk_next(&walk)) {
			ck_assert(walk.at > at && walk.at <= bytes + size);
			ck_assert_uint_ge(walk.state.last.t_ns, t_ns);
			t_ns = walk.state.last.t_ns;
			at = walk.at;
		}
		ck_assert(walk.bad);
	}
}
END_TEST
