/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a block is of: its checksum begins with random bytes of the file's header. */
#include "tests/unit/core/history/archive_case.h"

#include "daemon/util/crc32c.h"
#include "tests/unit/unit.h"

static const uint8_t some_id[16] = "just an example";

TEST_TIMEOUT(60);
FIXTURE(NULL, teardown);

/* As the first version wrote it: no id, and its checksum ends before where that is now. */
START_TEST(a_header_of_version_1_is_ours)
{
	uint8_t page[ARCHIVE_PAGE];
	char why[128];
	struct archive_identity identity;
	archive_header_make(ARCHIVE_SIZE_MIN, some_id, page);
	const uint32_t version = 1;
	memcpy(page + 20, &version, sizeof(version));
	uint32_t crc = crc32c(0, page, 40);
	memcpy(page + 40, &crc, sizeof(crc));
	memset(page + 44, 0, sizeof(page) - 44);
	ck_assert_int_eq(archive_header_check(page, ARCHIVE_SIZE_MIN, &identity, why, sizeof(why)),
		ARCHIVE_OURS);
	ck_assert_uint_eq(identity.version, 1);
	ck_assert_uint_eq(identity.seed, 0);
}
END_TEST

static size_t rows_in(const uint8_t *image)
{
	struct archive *archive = NULL;
	ck_assert_int_eq(archive_create(it.boot_id, NULL, &archive), 0);
	archive_adopt(archive, scan_image(image, it.size));
	struct archive_plan *plan = ask_of(archive, image, "**", INT64_MIN, INT64_MAX, 0, SIZE_MAX);
	size_t rows = 0;
	for (size_t i = 0; i < archive_plan_series(plan); i++) {
		struct archive_series series;
		archive_plan_at(plan, i, &series);
		rows += series.count;
	}
	archive_plan_destroy(plan);
	archive_destroy(archive);
	return rows;
}

/* Every block of a second archive, at the very page where it was, with names of its own. */
START_TEST(blocks_of_another_archive_are_not_believed)
{
	start(ARCHIVE_SIZE_MIN, 100);
	run(40);
	seal(false);
	uint8_t *theirs = it.image;
	ck_assert_uint_gt(rows_in(theirs), 1000);
	it.image = NULL;
	teardown();
	start(ARCHIVE_SIZE_MIN, 7);
	it.identity.seed ^= 0x80000000;
	archive_adopt(it.archive, scan_image(it.image, it.size));
	run(40);
	seal(false);
	size_t ours = rows_in(it.image);
	ck_assert_uint_gt(ours, 0);
	for (size_t at = ARCHIVE_PAGE; at < it.size; at += ARCHIVE_PAGE) {
		static const uint8_t nothing[ARCHIVE_PAGE];
		if (memcmp(it.image + at, nothing, ARCHIVE_PAGE) == 0) {
			memcpy(it.image + at, theirs + at, ARCHIVE_PAGE);
		}
	}
	ck_assert_uint_eq(rows_in(it.image), ours);
	free(theirs);
	teardown();
}
END_TEST

START_TEST(a_file_of_version_1_is_continued)
{
	start(ARCHIVE_SIZE_MIN, 20);
	it.identity = (struct archive_identity){.version = 1};
	archive_adopt(it.archive, scan_image(it.image, it.size));
	run(20);
	seal(false);
	size_t before = rows_in(it.image);
	ck_assert_uint_gt(before, 0);
	run(20);
	seal(false);
	ck_assert_uint_gt(rows_in(it.image), before);
	it.identity.version = 2;
	ck_assert_uint_eq(rows_in(it.image), 0);
	teardown();
}
END_TEST
