/* SPDX-License-Identifier: Apache-2.0 */
/* The coder of rows: what goes in comes out, and no bytes do harm. */
#include "daemon/core/history/row.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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
		ck_assert(!history_quantise(UNIT_COUNT, bad[i], &value));
	}
	ck_assert_int_eq(value, 7);
	ck_assert(history_quantise(UNIT_COUNT, 4503599627370496.0, &value));
	ck_assert_int_eq(value, INT64_C(1) << 52);
}
END_TEST

/* Rows of every width with nulls, constants, big and small jumps. */
START_TEST(rows_come_back_exactly)
{
	for (unsigned columns = 1; columns <= HISTORY_COLUMNS; columns++) {
		static uint8_t bytes[400 * HISTORY_ROW_MAX];
		static struct history_row rows[400];
		struct history_row_state state;
		size_t size = 0;
		history_row_start(&state, 1000, columns);
		for (unsigned r = 0; r < 400; r++) {
			struct history_row *row = &rows[r];
			row->t_ns = r == 0 ? 1000
					   : rows[r - 1].t_ns + 1 +
						     (random_u64() >> (random_u64() % 40 + 20));
			row->nulls = random_u64() & random_u64() & random_u64();
			for (unsigned i = 0; i < columns; i++) {
				int64_t jump = (int64_t)(random_u64() >> (12 + random_u64() % 50));
				bool keep = i % 3 == 0 || random_u64() % 4 == 0;
				row->value[i] = keep && r > 0 ? rows[r - 1].value[i] : jump;
				if (random_u64() % 16 == 0) {
					row->value[i] = -row->value[i];
				}
			}
			size_t used = history_row_encode(&state, row, bytes + size);
			ck_assert_uint_gt(used, 0);
			ck_assert_uint_le(used, HISTORY_ROW_MAX);
			history_row_accept(&state, row);
			size += used;
		}
		struct history_row_state reader;
		history_row_start(&reader, 1000, columns);
		size_t at = 0;
		for (unsigned r = 0; r < 400; r++) {
			int used = history_row_decode(&reader, bytes + at, size - at);
			ck_assert_int_gt(used, 0);
			at += (size_t)used;
			ck_assert_uint_eq(reader.last.t_ns, rows[r].t_ns);
			for (unsigned i = 0; i < columns; i++) {
				bool null = rows[r].nulls >> i & 1;
				ck_assert_int_eq(reader.last.nulls >> i & 1, null);
				if (!null) {
					ck_assert_int_eq(reader.last.value[i], rows[r].value[i]);
				}
			}
		}
		ck_assert_uint_eq(at, size);
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
	ck_assert_int_eq(history_row_decode(&state, bytes, size), (int)size);
	ck_assert_int_eq(history_row_decode(&state, bytes, size), -EBADMSG); /* dt 0 again */
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
		{"\x03\x00", 2},				      /* no such form */
		{"\x02", 1},					      /* front of what? */
		{"\x02\x01", 2},				      /* front, no code */
		{"\x02\x02\x00\x00", 4},			      /* front beyond the columns */
		{"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* value past 2^52 */
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct history_row_state state;
		uint8_t copy[16];
		memcpy(copy, table[i].bytes, table[i].size);
		history_row_start(&state, 100, 1);
		ck_assert_int_eq(history_row_decode(&state, copy, table[i].size), -EBADMSG);
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
		struct history_row_state state;
		history_row_start(&state, random_u64() >> 2, 1 + (unsigned)(random_u64() % 64));
		uint64_t t_ns = state.last.t_ns;
		for (size_t at = 0; at < size;) {
			int used = history_row_decode(&state, bytes + at, size - at);
			if (used < 0) {
				break;
			}
			ck_assert_int_gt(used, 0);
			ck_assert_uint_ge(state.last.t_ns, t_ns);
			t_ns = state.last.t_ns;
			at += (size_t)used;
			ck_assert_uint_le(at, size);
		}
	}
}
END_TEST
