/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the archive: steps, answers in parts, boots whose clocks were wrong, and memory that
 * ends at any moment. */
#include "tests/unit/core/history/archive_case.h"

#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

static uint32_t found[BLOCKS_MAX];

static void fill(unsigned blocks)
{
	for (unsigned i = 0; i < blocks; i++) {
		run(5);
		seal(false);
	}
}

static int64_t wall_us(uint64_t tick)
{
	return ((int64_t)(tick * TICK) + WALL_NS) / 1000;
}

/* The rows of a series in a range of wall time, by the plain model. */
static struct history_point model_step(unsigned i, int64_t from_us, int64_t to_us)
{
	struct history_point point = {.time_us = from_us};
	double sum = 0;
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		const struct model_row *row = &it.row[i][tick];
		if (row->block == 0 || wall_us(row->tick) < from_us ||
			wall_us(row->tick) >= to_us) {
			continue;
		}
		point.min = point.count == 0 ? row->min : fmin(point.min, row->min);
		point.max = point.count == 0 ? row->max : fmax(point.max, row->max);
		sum += row->mean * row->count;
		point.count += row->count;
	}
	point.mean = sum / point.count;
	return point;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, teardown);

START_TEST(steps_are_what_their_rows_make)
{
	start(ARCHIVE_SIZE_MIN, 6);
	fill(60);
	static const int64_t step_s[] = {10, 30, 60, 300, 3600, 86400};
	for (size_t s = 0; s < sizeof(step_s) / sizeof(step_s[0]); s++) {
		int64_t step_us = step_s[s] * 1000000;
		int64_t from_us = wall_us(1007), to_us = wall_us(1250);
		struct archive_plan *plan = ask_of(it.archive, it.image, "board/group0/*", from_us,
			to_us, (uint64_t)step_us * 1000, SIZE_MAX);
		ck_assert_uint_eq(archive_plan_series(plan), 6);
		ck_assert_int_eq(archive_plan_next_us(plan), INT64_MAX);
		for (unsigned i = 0; i < 6; i++) {
			struct archive_series series;
			uint64_t samples = 0;
			archive_plan_at(plan, i, &series);
			ck_assert_str_eq(series.name, it.name[i]);
			for (size_t k = 0; k < series.count; k++) {
				const struct history_point *point = &series.points[k];
				int64_t end_us = point->time_us + step_us;
				struct history_point wanted = model_step(i,
					point->time_us > from_us ? point->time_us : from_us,
					end_us <= to_us ? end_us : to_us + 1);
				ck_assert_int_eq(point->time_us % step_us, 0);
				ck_assert_uint_eq(point->count, wanted.count);
				ck_assert(point->min == wanted.min && point->max == wanted.max);
				ck_assert_double_eq_tol(point->mean, wanted.mean, 1e-6);
				samples += point->count;
			}
			ck_assert_uint_eq(samples, model_step(i, from_us, to_us + 1).count);
		}
		archive_plan_destroy(plan);
	}
}
END_TEST

/* The parts of an answer are, together, the whole. */
static void ask_in_parts(uint64_t step_ns, size_t points_max, size_t series_most)
{
	struct archive_plan *whole =
		ask_of(it.archive, it.image, "**", INT64_MIN, INT64_MAX, step_ns, SIZE_MAX);
	size_t wanted = 0, got = 0, parts = 0;
	double wanted_sum = 0, sum = 0;
	for (size_t s = 0; s < archive_plan_series(whole); s++) {
		struct archive_series series;
		archive_plan_at(whole, s, &series);
		wanted += series.count;
		for (size_t k = 0; k < series.count; k++) {
			wanted_sum += series.points[k].max * series.points[k].count;
		}
	}
	archive_plan_destroy(whole);
	int64_t from_us = INT64_MIN;
	while (from_us != INT64_MAX) {
		struct archive_plan *plan =
			ask_of(it.archive, it.image, "**", from_us, INT64_MAX, step_ns, points_max);
		size_t points = 0;
		for (size_t s = 0; s < archive_plan_series(plan); s++) {
			struct archive_series series;
			archive_plan_at(plan, s, &series);
			points += series.count;
			for (size_t k = 0; k < series.count; k++) {
				sum += series.points[k].max * series.points[k].count;
			}
		}
		ck_assert_uint_le(points, points_max > series_most ? points_max : series_most);
		ck_assert_int_gt(archive_plan_next_us(plan), from_us);
		from_us = archive_plan_next_us(plan);
		archive_plan_destroy(plan);
		got += points;
		parts++;
		ck_assert_uint_lt(parts, 4 * wanted + 4);
	}
	ck_assert_uint_eq(got, wanted);
	ck_assert_double_eq_tol(sum, wanted_sum, 1e-9 * fabs(wanted_sum));
	ck_assert(parts > 1 || wanted <= points_max || wanted <= series_most);
}

START_TEST(an_answer_in_parts_is_the_whole)
{
	start(ARCHIVE_SIZE_MIN, 20);
	fill(40);
	static const size_t most[] = {1, 20, 21, 99, 100, 1000, 3999, 4000};
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		ask_in_parts(0, most[i], 20);
		ask_in_parts(60 * SECOND, most[i], 20);
		ask_in_parts(3600 * SECOND, most[i], 20);
	}
}
END_TEST

/* Boots without a clock all begin at the same wall time: their rows overlap. */
START_TEST(overlapping_boots_are_told_boot_by_boot)
{
	start(ARCHIVE_SIZE_MIN, 4);
	uint64_t begin_ns = it.now_ns;
	for (uint8_t boot = 'a'; boot < 'f'; boot++) {
		use_boot(boot);
		archive_adopt(it.archive, scan_image(it.image, it.size));
		it.now_ns = begin_ns;
		wallclock_init(&it.wall);
		wallclock_note(&it.wall, it.now_ns, (int64_t)it.now_ns, false);
		fill(6);
	}
	struct archive_plan *plan = ask("**");
	ck_assert_uint_eq(archive_plan_series(plan), 4 * 5);
	for (size_t s = 0; s < 20; s++) {
		struct archive_series series;
		archive_plan_at(plan, s, &series);
		ck_assert_str_eq(series.name, it.name[s / 5]);
		ck_assert_uint_eq(series.boot_seq, 1 + s % 5);
		ck_assert_uint_eq(series.count, 30);
		ck_assert_int_eq(series.points[0].time_us, (int64_t)begin_ns / 1000);
	}
	archive_plan_destroy(plan);
	for (size_t most = 4; most < 700; most += 37) {
		ask_in_parts(0, most, 20);
		ask_in_parts(60 * SECOND, most, 20);
	}
	struct archive_boot boot;
	for (size_t i = 0; i < 5; i++) {
		ck_assert(archive_boot_at(it.archive, i, &boot));
		ck_assert_uint_eq(boot.seq, i + 1);
		ck_assert(!boot.synced);
	}
	ck_assert(!archive_boot_at(it.archive, 5, &boot));
}
END_TEST

START_TEST(rows_of_before_the_first_sync_get_the_right_time_afterwards)
{
	start(ARCHIVE_SIZE_MIN, 4);
	uint64_t begin = it.now_ns / TICK;
	wallclock_init(&it.wall);
	wallclock_note(&it.wall, it.now_ns, 1000, false);
	fill(4);
	struct archive_boot boot;
	ck_assert(archive_boot_at(it.archive, 0, &boot));
	ck_assert(!boot.synced);
	wallclock_note(&it.wall, it.now_ns, (int64_t)it.now_ns + WALL_NS, true);
	fill(4);
	/* in the boot itself, and in the next */
	for (int i = 0; i < 2; i++) {
		struct archive_plan *plan = ask("**");
		memset(found, 0, sizeof(found));
		ck_assert_uint_eq(compare(plan, found), 4 * 40);
		archive_plan_destroy(plan);
		ck_assert(archive_boot_at(it.archive, 0, &boot));
		ck_assert(boot.synced);
		ck_assert_int_eq(boot.first_us, wall_us(begin));
		ck_assert_int_eq(boot.last_us, wall_us(begin + 39));
		use_boot('b');
		archive_adopt(it.archive, scan_image(it.image, it.size));
		wallclock_init(&it.wall);
		wallclock_note(&it.wall, 5 * SECOND, 1000, false);
	}
	ck_assert(archive_boot_at(it.archive, 1, &boot));
	ck_assert_uint_eq(boot.seq, 2);
	ck_assert_int_eq(boot.first_us, 0);
}
END_TEST

START_TEST(events_of_past_boots_come_back)
{
	start(ARCHIVE_SIZE_MIN, 2);
	run(5);
	for (uint64_t i = 0; i < 3; i++) {
		struct timeline_entry entry = {.t_ns = it.now_ns - i * SECOND,
			.kind = TIMELINE_MARK,
			.level = TIMELINE_WARNING,
			.subject = "cam"};
		snprintf(entry.text, sizeof(entry.text), "mark %d", (int)i);
		archive_on_event(it.archive, &entry);
	}
	seal(false);
	const struct timeline_entry *event;
	ck_assert_uint_eq(archive_events(it.archive, &event), 0);
	use_boot('b');
	archive_adopt(it.archive, scan_image(it.image, it.size));
	ck_assert_uint_eq(archive_events(it.archive, &event), 3);
	ck_assert_str_eq(event[0].text, "mark 2");
	ck_assert_str_eq(event[2].text, "mark 0");
	ck_assert_str_eq(event[0].subject, "cam");
	ck_assert_int_eq(event[0].kind, TIMELINE_MARK);
	ck_assert_int_eq(event[0].level, TIMELINE_WARNING);
	ck_assert_uint_eq(event[0].boot_seq, 1);
	ck_assert_int_eq(event[2].time_us, ((int64_t)it.now_ns + WALL_NS) / 1000);
}
END_TEST

START_TEST(a_block_that_was_overwritten_meanwhile_is_left_out)
{
	start(ARCHIVE_SIZE_MIN, 20);
	fill(10);
	struct archive_plan *plan = NULL;
	ck_assert_int_eq(archive_plan_make(it.archive, "**", INT64_MIN, INT64_MAX, 0, SIZE_MAX,
				 &it.wall, &plan),
		0);
	fill(300);
	for (size_t i = 0; i < archive_plan_blocks(plan); i++) {
		uint32_t page, pages;
		archive_plan_block(plan, i, &page, &pages);
		ck_assert_int_eq(
			archive_plan_read(plan, i, it.image + (size_t)page * ARCHIVE_PAGE), 0);
	}
	archive_plan_finish(plan);
	ck_assert_uint_eq(archive_plan_lost(plan), 10);
	ck_assert_uint_eq(archive_plan_series(plan), 0);
	archive_plan_destroy(plan);
}
END_TEST

static uint32_t new_series; /* that the file does not have */

/* All of it with the n-th allocation failing: no crash, no leak, and nothing wrong comes back. */
static bool live(void)
{
	struct archive *archive = NULL;
	struct archive_index *index = NULL;
	struct archive_plan *plan = NULL;
	bool whole = archive_create(it.boot_id, it.history, &archive) == 0 &&
		     archive_index_create(it.size, it.identity, &index) == 0;
	for (uint32_t page = 1; whole && page < it.size / ARCHIVE_PAGE;) {
		uint64_t at = (uint64_t)page * ARCHIVE_PAGE;
		int n = archive_index_scan(index, page, it.image + at, (size_t)(it.size - at));
		page += n > 0 ? (uint32_t)n : 1;
	}
	if (!whole || archive_index_finish(index) < 0) {
		archive_index_destroy(index);
		archive_destroy(archive);
		return false;
	}
	archive_adopt(archive, index);
	archive_on_row(archive, &(struct history_bucket_row){.series = new_series,
					.tier = HISTORY_TENS,
					.t_ns = it.now_ns / TICK * TICK + TICK,
					.value = {.count = 1}});
	archive_on_event(archive, &(struct timeline_entry){.t_ns = it.now_ns, .text = "x"});
	const uint8_t *bytes;
	uint32_t page;
	whole = archive_seal(
			archive, it.now_ns + 60 * SECOND, &it.wall, NULL, true, &bytes, &page) > 0;
	archive_written(archive, 0);
	if (archive_plan_make(archive, "**", INT64_MIN, wall_us(it.now_ns / TICK), 0, SIZE_MAX,
		    &it.wall, &plan) < 0) {
		archive_destroy(archive);
		return false;
	}
	for (size_t i = 0; i < archive_plan_blocks(plan) && whole; i++) {
		uint32_t pages;
		archive_plan_block(plan, i, &page, &pages);
		whole = archive_plan_read(plan, i, it.image + (size_t)page * ARCHIVE_PAGE) == 0;
	}
	archive_plan_finish(plan);
	memset(found, 0, sizeof(found));
	compare(plan, found);
	archive_plan_destroy(plan);
	archive_destroy(archive);
	return whole;
}

START_TEST(no_memory_at_any_moment_is_survived)
{
	start(ARCHIVE_SIZE_MIN, 20);
	archive_on_event(it.archive, &(struct timeline_entry){.t_ns = it.now_ns, .text = "a"});
	fill(70);
	add_metric(20, "new/name", UNIT_NONE);
	feed(20, 1, it.now_ns);
	ck_assert_int_eq(history_find(it.history, "new/name", &new_series), 0);
	alloc_faults_start(0);
	live();
	size_t calls = alloc_calls;
	ck_assert_uint_gt(calls, 50);
	for (size_t i = 1; i <= calls; i++) {
		alloc_faults_start(i);
		live();
	}
	alloc_faults_stop();
}
END_TEST
