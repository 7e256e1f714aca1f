/* SPDX-License-Identifier: Apache-2.0 */
/* Wall times of past samples, across synchronisation, steps and a full table. */
#include "daemon/core/metrics/wallclock.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)
#define USECOND INT64_C(1000000)
#define YEAR_2026 (INT64_C(1767225600) * SECOND)

static struct wallclock wall;

static void setup(void)
{
	wallclock_init(&wall);
}

static bool note(int64_t mono_s, int64_t wall_ns, bool synced)
{
	return wallclock_note(&wall, (uint64_t)(mono_s * SECOND), wall_ns, synced);
}

FIXTURE(setup, NULL);

START_TEST(an_empty_table_says_nothing)
{
	ck_assert_int_eq(wallclock_us(&wall, 5), 0);
	ck_assert(!wallclock_synced(&wall));
	ck_assert_uint_eq(wallclock_mono_ns(&wall, 5), 5000);
	ck_assert_uint_eq(wallclock_mono_ns(&wall, -5), 0);
}
END_TEST

START_TEST(samples_from_before_the_first_sync_are_told_right_afterwards)
{
	ck_assert(!note(10, 10 * SECOND, false)); /* 1970 */
	ck_assert_int_eq(wallclock_us(&wall, 20 * SECOND), 20 * USECOND);
	ck_assert(!wallclock_synced(&wall));
	ck_assert(note(60, YEAR_2026, true));
	ck_assert_uint_eq(wall.steps, 1);
	ck_assert(wallclock_synced(&wall));
	ck_assert_int_eq(wallclock_us(&wall, 20 * SECOND), (YEAR_2026 - 40 * SECOND) / 1000);
	ck_assert_int_eq(wallclock_us(&wall, 60 * SECOND), YEAR_2026 / 1000);
	ck_assert_int_eq(wallclock_us(&wall, 61 * SECOND), (YEAR_2026 + SECOND) / 1000);
}
END_TEST

START_TEST(a_time_has_the_offset_that_held_then)
{
	note(10, YEAR_2026, true);
	ck_assert(note(100, YEAR_2026 + 92 * SECOND, true));  /* + 2 s */
	ck_assert(note(200, YEAR_2026 + 188 * SECOND, true)); /* - 4 s */
	ck_assert_int_eq(wallclock_us(&wall, 5 * SECOND), (YEAR_2026 - 5 * SECOND) / 1000);
	ck_assert_int_eq(wallclock_us(&wall, 50 * SECOND), (YEAR_2026 + 40 * SECOND) / 1000);
	ck_assert_int_eq(wallclock_us(&wall, 150 * SECOND), (YEAR_2026 + 142 * SECOND) / 1000);
	ck_assert_int_eq(wallclock_us(&wall, 250 * SECOND), (YEAR_2026 + 238 * SECOND) / 1000);
	ck_assert_uint_eq(wall.steps, 2);
}
END_TEST

START_TEST(a_table_that_was_saved_is_restored_in_the_same_boot_alone)
{
	static const uint8_t boot[16] = {1}, next[16] = {2};
	struct wallclock other;
	unsigned char *memory = calloc(1, wallclock_bytes());
	ck_assert_uint_eq(wallclock_restore(&wall, memory, boot), 0);
	ck_assert_uint_eq(wall.count, 0);
	note(10, YEAR_2026, true);
	note(100, YEAR_2026 + 92 * SECOND, false);
	wallclock_save(&wall, memory);
	wallclock_init(&other);
	ck_assert_uint_eq(wallclock_restore(&other, memory, boot), 0);
	ck_assert_mem_eq(&other, &wall, sizeof(wall));
	wallclock_init(&other);
	memory[wallclock_bytes() / 2] ^= 1;
	ck_assert_uint_eq(wallclock_restore(&other, memory, boot), 1);
	ck_assert_uint_eq(other.count, 0);
	memory[wallclock_bytes() / 2] ^= 1;
	ck_assert_uint_eq(wallclock_restore(&other, memory, next), 0);
	ck_assert_uint_eq(other.count, 0);
	/* killed before it saved: the table of the boot before is not its own */
	ck_assert_uint_eq(wallclock_restore(&other, memory, next), 1);
	ck_assert_uint_eq(other.count, 0);
	free(memory);
}
END_TEST

START_TEST(only_more_than_a_second_is_a_step)
{
	ck_assert(!note(10, YEAR_2026, true));
	ck_assert(!note(20, YEAR_2026 + 11 * SECOND, true));
	ck_assert(!note(30, YEAR_2026 + 20 * SECOND, true));
	ck_assert(note(40, YEAR_2026 + 31 * SECOND + 1, true));
	ck_assert(note(50, YEAR_2026 + 40 * SECOND, true));
	ck_assert_uint_eq(wall.steps, 2);
	ck_assert_uint_eq(wall.count, 5);
}
END_TEST

START_TEST(readings_that_agree_are_one_entry)
{
	note(0, YEAR_2026, true);
	for (int i = 1; i < 10000; i++) {
		ck_assert(!note(i, YEAR_2026 + i * SECOND + (i % 2) * 999999, true));
	}
	ck_assert_uint_eq(wall.count, 1);
	note(10001, YEAR_2026 + 10001 * SECOND, false);
	ck_assert_uint_eq(wall.count, 2);
	ck_assert(!wallclock_synced(&wall));
}
END_TEST

START_TEST(a_full_table_keeps_the_steps_and_the_newest)
{
	note(0, 0, false);
	note(1, YEAR_2026 + SECOND, true);
	int64_t offset = YEAR_2026;
	for (int i = 2; i < 5000; i++) {
		if (i == 1000) {
			offset += 3600 * SECOND;
		}
		offset += 2000000; /* drifts by 2 ms each time */
		note(i, i * SECOND + offset, true);
		ck_assert_uint_le(wall.count, WALLCLOCK_ENTRIES);
		ck_assert_int_eq(
			wallclock_us(&wall, (uint64_t)(i * SECOND)), (i * SECOND + offset) / 1000);
	}
	for (uint32_t i = 1; i < wall.count; i++) {
		ck_assert_uint_lt(wall.entry[i - 1].t_ns, wall.entry[i].t_ns);
	}
	/* Past the merging the hour's step is where it was, and the drift is followed closely. */
	int64_t before = wallclock_us(&wall, 999 * (uint64_t)SECOND);
	int64_t after = wallclock_us(&wall, 1000 * (uint64_t)SECOND);
	ck_assert_int_ge(after - before, 3601 * USECOND);
	ck_assert_int_le(after - before, 3602 * USECOND);
	int64_t right = (500 * SECOND + YEAR_2026 + 499 * INT64_C(2000000)) / 1000;
	int64_t off = wallclock_us(&wall, 500 * (uint64_t)SECOND) - right;
	ck_assert_int_lt(off < 0 ? -off : off, USECOND);
}
END_TEST

START_TEST(wall_times_lead_back)
{
	note(10, YEAR_2026, true);
	ck_assert_uint_eq(wallclock_mono_ns(&wall, (YEAR_2026 + SECOND) / 1000), 11 * SECOND);
	ck_assert_uint_eq(wallclock_mono_ns(&wall, 0), 0);
	ck_assert_uint_eq(wallclock_mono_ns(&wall, INT64_MIN), 0);
	ck_assert_uint_ge(wallclock_mono_ns(&wall, INT64_MAX), (uint64_t)INT64_MAX);
}
END_TEST

START_TEST(wall_times_before_a_step_lead_back_to_their_samples)
{
	note(10, YEAR_2026, true);
	note(100, YEAR_2026 + 3690 * SECOND, true); /* + 1 h */
	note(200, YEAR_2026 + 9999 * SECOND, true); /* + 1 h 43 min */
	for (int64_t s = 0; s < 300; s++) {
		int64_t time_us = wallclock_us(&wall, (uint64_t)(s * SECOND));
		ck_assert_uint_eq(wallclock_mono_ns(&wall, time_us), s * SECOND);
	}
	/* never shown: the clock was set forward over it */
	int64_t skipped_us = (YEAR_2026 + 1000 * SECOND) / 1000;
	ck_assert_uint_eq(wallclock_mono_ns(&wall, skipped_us), 100 * SECOND);
	note(300, YEAR_2026, true); /* back to where it began */
	uint64_t last_ns = 0;
	for (int64_t s = -100; s < 20000; s++) {
		uint64_t t_ns = wallclock_mono_ns(&wall, (YEAR_2026 + s * SECOND) / 1000);
		ck_assert_uint_ge(t_ns, last_ns);
		last_ns = t_ns;
	}
}
END_TEST

START_TEST(of_moments_with_the_same_wall_time_the_newest_is_meant)
{
	note(10, YEAR_2026, true);
	note(100, YEAR_2026 + 30 * SECOND, true); /* - 60 s */
	ck_assert_uint_eq(wallclock_mono_ns(&wall, (YEAR_2026 + 35 * SECOND) / 1000), 105 * SECOND);
	ck_assert_uint_eq(wallclock_mono_ns(&wall, (YEAR_2026 + 29 * SECOND) / 1000), 39 * SECOND);
}
END_TEST

START_TEST(extreme_times_do_not_overflow)
{
	wallclock_note(&wall, UINT64_MAX, INT64_MAX, true);
	wallclock_note(&wall, 0, INT64_MIN, true);
	wallclock_us(&wall, 0);
	wallclock_us(&wall, UINT64_MAX);
	wallclock_mono_ns(&wall, INT64_MAX);
	wallclock_mono_ns(&wall, INT64_MIN);
	ck_assert_uint_ge(wall.count, 1);
}
END_TEST
