/* SPDX-License-Identifier: Apache-2.0 */
/* The archive: what goes in comes out after a restart, on the time axis it belongs to. */
#include "tests/unit/core/history/archive_case.h"

#include "daemon/core/archive/account.h"
#include "daemon/util/crc32c.h"
#include "tests/unit/unit.h"

#define MINUTE (60 * SECOND)

static uint32_t found[BLOCKS_MAX];

static void reopen(uint8_t boot)
{
	use_boot(boot);
	archive_adopt(it.archive, scan_image(it.image, it.size));
}

/* All that the model has of the blocks from `first` on is there, and nothing else. */
static size_t compare_all(uint64_t first)
{
	struct archive_plan *plan = ask("**");
	memset(found, 0, sizeof(found));
	size_t points = compare(plan, found);
	for (uint64_t b = 1; b <= it.block; b++) {
		if (found[b] != (b >= first ? it.at[b].rows : 0)) {
			ck_abort_msg("block %llu: %u of %u rows", (unsigned long long)b, found[b],
				it.at[b].rows);
		}
	}
	archive_plan_destroy(plan);
	return points;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, teardown);

START_TEST(the_checksum_is_crc32c)
{
	uint8_t zeros[32] = {0};
	ck_assert_uint_eq(crc32c(0, "123456789", 9), 0xe3069283);
	/* RFC 3720, B.4 */
	ck_assert_uint_eq(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aa);
	ck_assert_uint_eq(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}
END_TEST

static const uint8_t some_id[16] = "just an example";

static enum archive_found look(const uint8_t *page, uint64_t size, char why[128])
{
	struct archive_identity identity;
	return archive_header_check(page, size, &identity, why, 128);
}

START_TEST(other_formats_are_recognised)
{
	uint8_t page[ARCHIVE_PAGE], other[ARCHIVE_PAGE];
	char why[128];
	archive_header_make(ARCHIVE_SIZE_MIN, some_id, page);
	ck_assert_int_eq(look(page, ARCHIVE_SIZE_MIN, why), ARCHIVE_OURS);
	ck_assert_int_eq(look(page, 2 * ARCHIVE_SIZE_MIN, why), ARCHIVE_OTHER);
	ck_assert(strstr(why, "bytes"));
	/* byte order, version, page size, units, checksum, id: each at its place */
	static const size_t at[] = {16, 20, 24, 28, 40, 48, 63};
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		memcpy(other, page, sizeof(page));
		other[at[i]] ^= 0x40;
		ck_assert_int_eq(look(other, ARCHIVE_SIZE_MIN, why), ARCHIVE_OTHER);
		ck_assert_str_ne(why, "");
	}
	memset(other, 0, sizeof(other));
	ck_assert_int_eq(look(other, ARCHIVE_SIZE_MIN, why), ARCHIVE_EMPTY);
	other[100] = 1;
	ck_assert_int_eq(look(other, ARCHIVE_SIZE_MIN, why), ARCHIVE_FOREIGN);
	struct archive_index *index = NULL;
	ck_assert_int_eq(archive_index_create(ARCHIVE_SIZE_MIN - 1, it.identity, &index), -EINVAL);
}
END_TEST

START_TEST(rows_come_back_after_a_restart)
{
	start(ARCHIVE_SIZE_MIN, 100);
	for (int i = 0; i < 20; i++) {
		run(5);
		seal(false);
	}
	size_t points = compare_all(1);
	ck_assert_uint_eq(points, 100 * 100);
	reopen('b');
	ck_assert_uint_eq(compare_all(1), points);
	ck_assert_uint_eq(archive_boot_seq(it.archive), 2);
	ck_assert(archive_has(it.archive, "board/group0/m001"));
	ck_assert(!archive_has(it.archive, "board/group0"));
	struct archive_span span;
	archive_span(it.archive, &span);
	ck_assert_uint_eq(span.series, 100);
	ck_assert_uint_eq(span.boots, 1);
	ck_assert_uint_eq(span.damaged, 0);
	ck_assert_int_eq(span.oldest_us, ((int64_t)(1000 * TICK) + WALL_NS) / 1000);
	ck_assert_int_eq(span.newest_us, ((int64_t)(1099 * TICK) + WALL_NS) / 1000);
}
END_TEST

START_TEST(gaps_stay_gaps_and_rates_may_differ)
{
	start(ARCHIVE_SIZE_MIN, 40);
	for (uint64_t second = 0; second < 1200; second++) {
		for (unsigned i = 0; i < it.series; i++) {
			bool silent = i % 5 == 4 && second / 100 % 2 == 1;
			if (second % (1 + i) == 0) {
				give(i, silent ? NAN : value_of(i));
			}
		}
		it.now_ns += SECOND;
		if (second % 50 == 49) {
			seal(false);
		}
	}
	seal(true);
	compare_all(1);
	reopen('b');
	compare_all(1);
}
END_TEST

START_TEST(what_is_sealed_is_not_changed_by_late_values)
{
	start(ARCHIVE_SIZE_MIN, 4);
	run(5);
	seal(false);
	it.now_ns -= SECOND; /* behind the end of a bucket that was sealed */
	feed(0, 1e6, it.now_ns);
	it.now_ns += SECOND;
	run(5);
	seal(false);
	compare_all(1);
	/* open buckets too, when all are asked for; what comes then is left out */
	run(2);
	it.now_ns += SECOND;
	give_all();
	seal(true);
	feed(0, 1e6, it.now_ns);
	const uint8_t *bytes;
	uint32_t page;
	ck_assert_uint_eq(make_block(true, &bytes, &page), 0);
	compare_all(1);
}
END_TEST

START_TEST(metrics_come_and_go)
{
	start(ARCHIVE_SIZE_MIN, 30);
	run(5);
	retire(3);
	seal(false);
	it.series = 3;
	run(10);
	seal(false);
	it.series = 30;
	/* the same name in another slot's place, with another serial */
	add_metric(3, "board/group0/m003", UNIT_VOLTS);
	run(5);
	/* goes and comes within a bucket: one row of both parts */
	give(3, 10);
	retire(3);
	add_metric(3, "board/group0/m003", UNIT_VOLTS);
	it.now_ns += SECOND;
	give(3, 50);
	run(5);
	seal(false);
	ck_assert_uint_gt(compare_all(1), 0);
	reopen('b');
	compare_all(1);
}
END_TEST

START_TEST(another_unit_is_another_series)
{
	start(ARCHIVE_SIZE_MIN, 1);
	run(5);
	seal(false);
	retire(0);
	add_metric(0, "board/group0/m000", UNIT_RPM);
	run(5);
	seal(false);
	struct archive_plan *plan = ask("**");
	ck_assert_uint_eq(archive_plan_series(plan), 2);
	struct archive_series a, b;
	archive_plan_at(plan, 0, &a);
	archive_plan_at(plan, 1, &b);
	ck_assert_str_eq(a.name, b.name);
	ck_assert_int_eq(a.unit, UNIT_CELSIUS);
	ck_assert_int_eq(b.unit, UNIT_RPM);
	ck_assert_uint_eq(a.count, 5);
	ck_assert_uint_eq(b.count, 5);
	archive_plan_destroy(plan);
}
END_TEST

START_TEST(a_restart_in_the_same_boot_goes_on)
{
	start(ARCHIVE_SIZE_MIN, 8);
	run(5);
	seal(false);
	uint64_t end_ns = it.now_ns;
	/* the next process has some of it again, before it has the file */
	use_boot('a');
	feed(0, 1e6, end_ns - 15 * SECOND);
	feed(0, 1e6, end_ns - 5 * SECOND);
	run(5);
	archive_adopt(it.archive, scan_image(it.image, it.size));
	ck_assert_uint_eq(archive_boot_seq(it.archive), 1);
	seal(false);
	ck_assert_uint_eq(compare_all(1), 80);
	struct archive_boot boot;
	ck_assert(archive_boot_at(it.archive, 0, &boot));
	ck_assert(!archive_boot_at(it.archive, 1, &boot));
}
END_TEST

START_TEST(without_a_file_rows_wait_within_bounds)
{
	start(ARCHIVE_SIZE_MIN, 200);
	archive_release(it.archive);
	run(100);
	struct archive_pending pending;
	archive_pending(it.archive, &pending);
	ck_assert_uint_eq(pending.rows, 8192);
	ck_assert_uint_eq(pending.dropped, 100 * 200 - 200 - 8192);
	const uint8_t *bytes;
	uint32_t page;
	ck_assert_uint_eq(
		archive_seal(it.archive, it.now_ns, &it.wall, NULL, true, &bytes, &page), 0);
	archive_adopt(it.archive, scan_image(it.image, it.size));
	size_t blocks = 0, size;
	while ((size = archive_seal(it.archive, it.now_ns, &it.wall, NULL, false, &bytes, &page)) >
		0) {
		memcpy(it.image + (size_t)page * ARCHIVE_PAGE, bytes, size);
		archive_written(it.archive, 0);
		blocks++;
	}
	ck_assert_uint_ge(blocks, 1);
	archive_pending(it.archive, &pending);
	ck_assert_uint_eq(pending.rows, 0);
	ck_assert_uint_eq(archive_mark_ns(it.archive, it.now_ns), it.now_ns - it.now_ns % TICK);
	struct archive_plan *plan = ask("**");
	size_t points = 0;
	for (size_t i = 0; i < archive_plan_series(plan); i++) {
		struct archive_series series;
		archive_plan_at(plan, i, &series);
		points += series.count;
	}
	ck_assert_uint_eq(points, 8192);
	archive_plan_destroy(plan);
}
END_TEST

START_TEST(a_failed_write_is_tried_again)
{
	start(ARCHIVE_SIZE_MIN, 20);
	struct archive_account_memory day = {.hour_s = 7, .bytes = {1, 2, 3}}, back;
	run(5);
	const uint8_t *bytes;
	uint32_t page, first_page;
	ck_assert_uint_gt(
		archive_seal(it.archive, it.now_ns, &it.wall, &day, false, &bytes, &first_page), 0);
	ck_assert_uint_eq(
		archive_seal(it.archive, it.now_ns, &it.wall, &day, false, &bytes, &page), 0);
	archive_written(it.archive, -EIO);
	run(5);
	size_t size = make_block(false, &bytes, &page);
	ck_assert_uint_eq(page, first_page);
	put_block(bytes, size, page);
	ck_assert_uint_eq(compare_all(1), 200);
	archive_account_found(it.archive, &back);
	ck_assert_int_eq(back.hour_s, 0);
	run(1);
	size = archive_seal(it.archive, it.now_ns, &it.wall, &day, false, &bytes, &page);
	memcpy(it.image + (size_t)page * ARCHIVE_PAGE, bytes, size);
	archive_written(it.archive, 0);
	reopen('b');
	archive_account_found(it.archive, &back);
	ck_assert(memcmp(&day, &back, sizeof(day)) == 0);
}
END_TEST

/* The medium has it all the same, in the last page; the second try is larger and goes to the first.
 */
START_TEST(a_write_that_only_seemed_to_fail_is_told_once)
{
	start(ARCHIVE_SIZE_MIN, 20);
	const uint32_t last = (uint32_t)(it.size / ARCHIVE_PAGE) - 1;
	const uint8_t *bytes;
	uint32_t page = 0;
	size_t size = 0;
	for (;;) {
		run(5);
		size = make_block(false, &bytes, &page);
		ck_assert_uint_eq(size, ARCHIVE_PAGE);
		if (page == last) {
			break;
		}
		put_block(bytes, size, page);
	}
	memcpy(it.image + (size_t)page * ARCHIVE_PAGE, bytes, size);
	archive_written(it.archive, -EIO);
	run(60);
	size = make_block(false, &bytes, &page);
	ck_assert_uint_eq(page, 1);
	ck_assert_uint_gt(size, ARCHIVE_PAGE);
	put_block(bytes, size, page);
	const uint64_t first = 1 + size / ARCHIVE_PAGE;
	compare_all(first);
	reopen('a');
	compare_all(first);
	run(5);
	seal(false);
	reopen('b');
	compare_all(first + 1);
}
END_TEST

START_TEST(minutes_begin_at_a_full_minute)
{
	start(ARCHIVE_SIZE_MIN, 1);
	it.now_ns = 6000 * TICK + 20 * SECOND;
	archive_set_bucket(it.archive, MINUTE, it.now_ns);
	for (int i = 0; i < 200; i++) {
		feed(0, i, it.now_ns);
		it.now_ns += SECOND;
	}
	const uint8_t *bytes;
	uint32_t page;
	size_t size = archive_seal(it.archive, it.now_ns, &it.wall, NULL, false, &bytes, &page);
	memcpy(it.image + (size_t)page * ARCHIVE_PAGE, bytes, size);
	archive_written(it.archive, 0);
	struct archive_plan *plan = ask("**");
	struct archive_series series;
	archive_plan_at(plan, 0, &series);
	/* 20, 30, 40, 50 s; then minutes 1 and 2; minute 3 is open */
	static const uint32_t count[] = {10, 10, 10, 10, 60, 60};
	ck_assert_uint_eq(series.count, 6);
	for (size_t i = 0; i < 6; i++) {
		ck_assert_uint_eq(series.points[i].count, count[i]);
	}
	ck_assert_int_eq(series.points[5].time_us - series.points[4].time_us, 60000000);
	archive_plan_destroy(plan);
}
END_TEST
