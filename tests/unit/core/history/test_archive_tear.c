/* SPDX-License-Identifier: Apache-2.0 */
/* The power goes while a block is written, at every boundary there is: what was there before stays,
 * what comes back is what was sealed, and at most the last block is gone. */
#include "tests/unit/core/history/archive_case.h"

#include "daemon/core/archive/block.h"
#include "daemon/util/crc32c.h"
#include "tests/unit/unit.h"

/* Every 23rd cut is judged by all that the file gives, the others by the place of the block: a
 * block's bytes are all that decides on it. */
enum { SERIES = 96, THOROUGH = 23 };

enum fault { SUBSET, TORN, GARBAGE, FLIP, TRUNCATION, FAULTS };

static uint8_t *cut; /* the image as the cut left it */
static uint8_t block[ARCHIVE_BLOCK_MAX];
static size_t block_size; /* 0: none is being written */
static uint32_t block_page;
static uint32_t skipped_from; /* the block before ended here, this one is at page 1 */
static size_t cuts, thorough[FAULTS];
static uint32_t found[BLOCKS_MAX];

static bool overlaps(uint64_t b)
{
	uint32_t pages = (uint32_t)(block_size / ARCHIVE_PAGE);
	uint32_t page = it.at[b].page, end = page + it.at[b].pages;
	return (page < block_page + pages && end > block_page) ||
	       (skipped_from > 0 && page >= skipped_from);
}

/* All blocks but the newest, back to where its place begins, are there; the newest is there exactly
 * when all its bytes are. limit: the file ends there. */
static void judge_all(enum fault fault, uint64_t limit)
{
	struct archive *archive = NULL;
	memset(found, 0, sizeof(found));
	ck_assert_int_eq(archive_create(it.boot_id, NULL, &archive), 0);
	archive_adopt(archive, scan_image(cut, limit));
	struct archive_plan *plan = ask_of(archive, cut, "**", INT64_MIN, INT64_MAX, 0, SIZE_MAX);
	compare(plan, found);
	ck_assert_uint_eq(archive_plan_lost(plan), 0);
	archive_plan_destroy(plan);
	archive_destroy(archive);
	uint64_t newest = it.block;
	bool whole = memcmp(cut + (size_t)block_page * ARCHIVE_PAGE, block, block_size) == 0 &&
		     (uint64_t)block_page * ARCHIVE_PAGE + block_size <= limit;
	ck_assert_uint_eq(found[newest], whole ? it.at[newest].rows : 0);
	for (uint64_t b = newest - 1; b > 0 && !overlaps(b); b--) {
		uint64_t end = (uint64_t)(it.at[b].page + it.at[b].pages) * ARCHIVE_PAGE;
		if (found[b] != (end <= limit ? it.at[b].rows : 0)) {
			ck_abort_msg("block %llu: %u rows", (unsigned long long)b, found[b]);
		}
	}
	for (uint64_t b = 1; b < newest; b++) {
		if (found[b] != 0 && found[b] != it.at[b].rows) {
			ck_abort_msg("block %llu: %u rows", (unsigned long long)b, found[b]);
		}
	}
	thorough[fault]++;
}

static void judge_place(void)
{
	struct archive_index *index = NULL;
	ck_assert_int_eq(archive_index_create(it.size, it.identity, &index), 0);
	size_t at = (size_t)block_page * ARCHIVE_PAGE;
	bool whole = memcmp(cut + at, block, block_size) == 0;
	int n = archive_index_scan(index, block_page, cut + at, it.size - at);
	if (whole) {
		ck_assert_int_eq(n, (int)(block_size / ARCHIVE_PAGE));
	} else if (n > 0) {
		/* The block that was here before, not yet touched. */
		ck_assert_int_eq(memcmp(cut + at, it.image + at, (size_t)n * ARCHIVE_PAGE), 0);
	}
	archive_index_destroy(index);
}

static void judge(enum fault fault)
{
	if (cuts++ % THOROUGH == 0) {
		judge_all(fault, it.size);
	} else {
		judge_place();
	}
	/* As before the write, for the next cut. */
	size_t at = (size_t)block_page * ARCHIVE_PAGE;
	memcpy(cut + at, it.image + at, block_size);
}

static void write_part(size_t from, size_t to)
{
	memcpy(cut + (size_t)block_page * ARCHIVE_PAGE + from, block + from, to - from);
}

static void every_subset_of_pages(void)
{
	uint32_t pages = (uint32_t)(block_size / ARCHIVE_PAGE);
	uint32_t subsets = pages <= 5 ? 1u << pages : 64;
	for (uint32_t subset = 0; subset < subsets; subset++) {
		for (uint32_t p = 0; p < pages; p++) {
			if (pages <= 5 ? subset >> p & 1 : random_u64() % 2) {
				write_part((size_t)p * ARCHIVE_PAGE, (p + 1u) * ARCHIVE_PAGE);
			}
		}
		judge(SUBSET);
	}
}

static void torn_sectors(void)
{
	for (size_t at = 0; at < block_size; at += 512) {
		write_part(0, at);
		judge(TORN);
		write_part(0, block_size);
		size_t lost = (size_t)block_page * ARCHIVE_PAGE + at;
		memcpy(cut + lost, it.image + lost, 512);
		judge(TORN);
	}
}

static void garbage(void)
{
	for (size_t page = 0; page < block_size; page += ARCHIVE_PAGE) {
		write_part(0, block_size);
		size_t at = page + random_u64() % (ARCHIVE_PAGE - 8);
		for (size_t i = at; i < page + ARCHIVE_PAGE; i++) {
			cut[(size_t)block_page * ARCHIVE_PAGE + i] = (uint8_t)random_u64();
		}
		judge(GARBAGE);
	}
	for (int i = 0; i < 4; i++) {
		write_part(0, block_size);
		cut[(size_t)block_page * ARCHIVE_PAGE + random_u64() % block_size] ^=
			(uint8_t)(1u << random_u64() % 8);
		judge(FLIP);
	}
}

static void truncations(void)
{
	uint64_t from = (uint64_t)block_page * ARCHIVE_PAGE;
	write_part(0, block_size);
	judge_all(TRUNCATION, from + random_u64() % block_size);
	judge_all(TRUNCATION, from + block_size - 1);
	judge_all(TRUNCATION, random_u64() % it.size);
	judge_all(TRUNCATION, random_u64() % it.size / ARCHIVE_PAGE * ARCHIVE_PAGE);
	memcpy(cut + from, it.image + from, block_size);
}

/* One block on its way, cut in all ways, at last written. */
static void write_with_cuts(bool all_ways)
{
	const uint8_t *bytes;
	uint32_t end = it.at[it.block].page + it.at[it.block].pages;
	block_size = make_block(false, &bytes, &block_page);
	ck_assert_uint_gt(block_size, 0);
	memcpy(block, bytes, block_size);
	skipped_from = block_page == 1 && it.block > 1 ? end : 0;
	if (all_ways) {
		every_subset_of_pages();
		torn_sectors();
		garbage();
		if (it.block % 16 == 0) {
			truncations();
		}
	}
	put_block(bytes, block_size, block_page);
	memcpy(cut + (size_t)block_page * ARCHIVE_PAGE, block, block_size);
}

TEST_TIMEOUT(100);
FIXTURE(NULL, teardown);

/* Each ninth block is cut in all ways; in the long form each one. */
START_TEST(a_cut_at_any_boundary_costs_the_last_block_at_most)
{
	const int step = campaign(9, 1);
	start(ARCHIVE_SIZE_MIN, SERIES);
	cut = calloc(1, it.size);
	ck_assert_ptr_nonnull(cut);
	uint32_t largest = 0, turns = 0;
	for (int i = 0; i < 450; i++) {
		/* 50 s mostly; now and then longer, for blocks of more pages */
		run(i % 5 == 4 ? 20 + i % 24 : 5);
		write_with_cuts(i % step == 0);
		turns += block_page == 1;
		largest = block_size > largest ? (uint32_t)block_size : largest;
	}
	ck_assert_uint_ge(turns, 2);
	ck_assert_uint_ge(largest, 4 * ARCHIVE_PAGE);
	ck_assert_uint_gt(cuts, 10000 / (size_t)step);
	for (int i = 0; i < FAULTS; i++) {
		ck_assert_uint_gt(thorough[i], step > 1 ? 0 : 5);
	}
	free(cut);
}
END_TEST

/* Blocks every 50 s; the power goes at the last moment before the next one is on the medium. */
START_TEST(at_most_a_minute_is_lost)
{
	start(ARCHIVE_SIZE_MIN, 32);
	cut = calloc(1, it.size);
	ck_assert_ptr_nonnull(cut);
	for (int i = 0; i < 50; i++) {
		run(5);
		write_with_cuts(false);
	}
	run(5);
	const uint8_t *bytes;
	block_size = make_block(false, &bytes, &block_page);
	struct archive *archive = NULL;
	ck_assert_int_eq(archive_create(it.boot_id, NULL, &archive), 0);
	archive_adopt(archive, scan_image(cut, it.size));
	struct archive_span span;
	archive_span(archive, &span);
	int64_t now_us = ((int64_t)it.now_ns + WALL_NS) / 1000;
	ck_assert_int_le(now_us - (span.newest_us + 10000000), 60000000);
	ck_assert_uint_eq(span.blocks, 50);
	archive_destroy(archive);
	free(cut);
}
END_TEST

/* Damage anywhere, any bytes: nothing is read past an end, nothing comes back that was not there.
 */
START_TEST(any_image_is_survived)
{
	start(ARCHIVE_SIZE_MIN, 64);
	cut = malloc(it.size);
	ck_assert_ptr_nonnull(cut);
	for (int i = 0; i < 150; i++) {
		run(5);
		seal(false);
	}
	block_size = 0;
	for (int round = 0; round < campaign(60, 200); round++) {
		memcpy(cut, it.image, it.size);
		for (int i = 0; i < 1 << round % 9; i++) {
			size_t at = ARCHIVE_PAGE + random_u64() % (it.size - 2 * ARCHIVE_PAGE);
			switch (random_u64() % 4) {
			case 0:
				cut[at] ^= (uint8_t)(1u << random_u64() % 8);
				break;
			case 1: /* in a header */
				cut[at / ARCHIVE_PAGE * ARCHIVE_PAGE + random_u64() % 256] =
					(uint8_t)random_u64();
				break;
			case 2: /* a page where it does not belong */
				memcpy(cut + at / ARCHIVE_PAGE * ARCHIVE_PAGE,
					cut + ARCHIVE_PAGE *
							(1 + random_u64() %
									(it.size / ARCHIVE_PAGE -
										1)),
					ARCHIVE_PAGE);
				break;
			default:
				memset(cut + at, (int)random_u64(), random_u64() % ARCHIVE_PAGE);
			}
		}
		struct archive *archive = NULL;
		ck_assert_int_eq(archive_create(it.boot_id, NULL, &archive), 0);
		archive_adopt(archive, scan_image(cut, it.size));
		struct archive_plan *plan =
			ask_of(archive, cut, "**", INT64_MIN, INT64_MAX, 0, SIZE_MAX);
		memset(found, 0, sizeof(found));
		compare(plan, found);
		archive_plan_destroy(plan);
		archive_destroy(archive);
	}
	free(cut);
}
END_TEST

static void sign(uint8_t *bytes, size_t size)
{
	memset(bytes + offsetof(struct archive_block, crc), 0, sizeof(uint32_t));
	uint32_t crc = crc32c(it.identity.seed, bytes, size);
	memcpy(bytes + offsetof(struct archive_block, crc), &crc, sizeof(crc));
}

/* Numbers that go on from a block's: no boot has the number 0 then, which means "not known", and no
 * series the number 0, which means "none". */
START_TEST(no_number_that_follows_wraps)
{
	static const size_t fields[] = {
		offsetof(struct archive_block, boot_seq), offsetof(struct archive_block, next_id)};
	start(ARCHIVE_SIZE_MIN, 64);
	run(5);
	seal(false);
	uint8_t *bytes = it.image + (size_t)it.at[1].page * ARCHIVE_PAGE;
	const size_t size = (size_t)it.at[1].pages * ARCHIVE_PAGE;
	memcpy(block, bytes, size);
	for (size_t i = 0; i < 2; i++) {
		static const uint8_t other[16] = "another boot";
		struct archive *archive = NULL;
		struct archive_span span;
		memset(bytes + fields[i], 0xff, sizeof(uint32_t));
		sign(bytes, size);
		ck_assert_int_eq(archive_create(other, NULL, &archive), 0);
		archive_adopt(archive, scan_image(it.image, it.size));
		archive_span(archive, &span);
		ck_assert_uint_eq(span.blocks, 0);
		ck_assert_uint_eq(span.damaged, 1);
		ck_assert_uint_eq(archive_boot_seq(archive), 1);
		archive_destroy(archive);
		memcpy(bytes, block, size);
	}
}
END_TEST

/* Nonsense with a right checksum: a fault of ours, or somebody's who means harm. The long form is
 * tests/fuzz/fuzz_archive.c. */
START_TEST(nonsense_behind_a_right_checksum_is_survived)
{
	start(ARCHIVE_SIZE_MIN, 64);
	for (int i = 0; i < 30; i++) {
		run(5);
		seal(false);
	}
	for (int round = 0; round < 600; round++) {
		const uint64_t b = 1 + random_u64() % it.block;
		const size_t size = (size_t)it.at[b].pages * ARCHIVE_PAGE;
		uint8_t *bytes = it.image + (size_t)it.at[b].page * ARCHIVE_PAGE;
		memcpy(block, bytes, size);
		for (int i = 0; i < 1 << round % 5; i++) {
			/* behind what makes it a block of this place */
			size_t at = offsetof(struct archive_block, boot_id);
			bytes[at + random_u64() % (size - at)] = (uint8_t)random_u64();
		}
		sign(bytes, size);
		struct archive *archive = NULL;
		ck_assert_int_eq(archive_create(it.boot_id, NULL, &archive), 0);
		archive_adopt(archive, scan_image(it.image, it.size));
		archive_plan_destroy(
			ask_of(archive, it.image, "**", INT64_MIN, INT64_MAX, TICK, 100));
		archive_destroy(archive);
		memcpy(bytes, block, size);
	}
}
END_TEST
