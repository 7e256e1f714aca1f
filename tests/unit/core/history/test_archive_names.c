/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the archive: the loss of a block makes no other unreadable, and none is forgotten while
 * a block needs it, however often the file went round. */
#include "tests/unit/core/history/archive_case.h"

#include "daemon/core/archive/names.h"
#include "tests/unit/unit.h"

static uint32_t found[BLOCKS_MAX];

static size_t compare_image(uint64_t *oldest)
{
	use_boot('a');
	archive_adopt(it.archive, scan_image(it.image, it.size));
	struct archive_plan *plan = ask("**");
	memset(found, 0, sizeof(found));
	size_t points = compare(plan, found);
	archive_plan_destroy(plan);
	*oldest = it.block;
	while (*oldest > 1 && found[*oldest - 1] > 0) {
		(*oldest)--;
	}
	return points;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, teardown);

START_TEST(a_lost_block_costs_its_own_rows_only)
{
	start(ARCHIVE_SIZE_MIN, 200);
	it.series = 40;
	for (int i = 0; i < 60; i++) {
		/* four new names with each block for a while */
		it.series += i < 40 ? 4 : 0;
		run(5);
		seal(false);
	}
	for (uint64_t lost = 1; lost <= it.block; lost++) {
		uint8_t *at = it.image + (size_t)it.at[lost].page * ARCHIVE_PAGE;
		uint8_t kept[ARCHIVE_PAGE];
		uint64_t oldest;
		memcpy(kept, at, sizeof(kept));
		memset(at, 0, sizeof(kept));
		compare_image(&oldest);
		for (uint64_t b = 1; b <= it.block; b++) {
			if (found[b] != (b == lost ? 0 : it.at[b].rows)) {
				ck_abort_msg("without block %llu: block %llu has %u of %u rows",
					(unsigned long long)lost, (unsigned long long)b, found[b],
					it.at[b].rows);
			}
		}
		memcpy(at, kept, sizeof(kept));
	}
}
END_TEST

/* Thousands of names, eight at a time, in a file that goes round and round: rows of all blocks that
 * are there have names, and the names that are known stay as few as blocks use. */
START_TEST(names_come_and_go_for_many_turns)
{
	start(ARCHIVE_SIZE_MIN, 64);
	unsigned turns = 0;
	size_t most = 0;
	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned k = 0; k < 4; k++) {
			unsigned slot = 32 + (4 * i + k) % 32;
			char name[48];
			retire(slot);
			snprintf(name, sizeof(name), "app/p%05u/cpu", 4 * i + k);
			add_metric(slot, name, UNIT_PERCENT);
			memset(it.row[slot], 0, sizeof(it.row[slot]));
		}
		run(5);
		seal(false);
		turns += it.block > 1 && it.at[it.block].page == 1;
		if (i % 250 != 249) {
			continue;
		}
		struct archive_span span;
		archive_span(it.archive, &span);
		most = span.series > most ? span.series : most;
		/* every row of every block has a name: 64 series of 5 rows a block */
		struct archive_plan *plan = ask("**");
		size_t points = 0;
		for (size_t s = 0; s < archive_plan_series(plan); s++) {
			struct archive_series series;
			archive_plan_at(plan, s, &series);
			points += series.count;
		}
		ck_assert_uint_eq(points, (size_t)span.blocks * 64 * 5);
		archive_plan_destroy(plan);
		/* and still after a restart */
		struct archive *other = NULL;
		ck_assert_int_eq(archive_create(it.boot_id, NULL, &other), 0);
		archive_adopt(other, scan_image(it.image, it.size));
		plan = ask_of(other, it.image, "**", INT64_MIN, INT64_MAX, 0, SIZE_MAX);
		points = 0;
		for (size_t s = 0; s < archive_plan_series(plan); s++) {
			struct archive_series series;
			archive_plan_at(plan, s, &series);
			points += series.count;
		}
		ck_assert_uint_eq(points, (size_t)span.blocks * 64 * 5);
		archive_plan_destroy(plan);
		archive_destroy(other);
	}
	ck_assert_uint_ge(turns, 5);
	/* 255 pages of blocks with 4 new names each */
	ck_assert_uint_le(most, 32 + 4 * 256 + 32);
}
END_TEST

/* A series that ended long ago is readable as long as its block is there, under its own name. */
START_TEST(an_ended_series_keeps_its_name_until_its_last_block_goes)
{
	start(ARCHIVE_SIZE_MIN, 16);
	run(5);
	seal(false);
	for (unsigned i = 8; i < 16; i++) {
		retire(i);
	}
	it.series = 8;
	uint64_t blocks = 0;
	while (it.at[it.block].page + it.at[it.block].pages < it.size / ARCHIVE_PAGE) {
		run(5);
		seal(false);
		blocks++;
	}
	it.series = 16;
	uint64_t oldest;
	compare_image(&oldest);
	ck_assert_uint_eq(oldest, 1);
	ck_assert_uint_eq(found[1], 16 * 5);
	ck_assert(archive_has(it.archive, "board/group0/m015"));
	it.series = 8;
	run(5);
	seal(false);
	ck_assert(!archive_has(it.archive, "board/group0/m015"));
	ck_assert(archive_has(it.archive, "board/group0/m001"));
	ck_assert_uint_gt(blocks, 100);
}
END_TEST

START_TEST(more_series_than_the_limit_are_refused)
{
	struct archive_names *names = calloc(1, sizeof(*names));
	struct archive_name *name;
	char text[16];
	ck_assert_ptr_nonnull(names);
	for (unsigned i = 0; i < ARCHIVE_NAMES_MAX; i++) {
		int length = snprintf(text, sizeof(text), "n%u", i);
		if (archive_names_add(names, text, (size_t)length, UNIT_NONE, &name) < 0) {
			ck_abort();
		}
	}
	ck_assert_int_eq(archive_names_add(names, "one", 3, UNIT_NONE, &name), -ENOSPC);
	archive_names_evict(names, 1);
	ck_assert_uint_eq(names->count, 0);
	ck_assert_int_eq(archive_names_add(names, "one", 3, UNIT_NONE, &name), 0);
	archive_names_finish(names);
	free(names);
}
END_TEST
