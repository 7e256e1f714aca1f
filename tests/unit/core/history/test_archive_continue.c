/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that is killed loses nothing that live history still has: the next one brings it into
 * the archive, once. */
#include "tests/unit/core/history/archive_case.h"

#include "daemon/core/history/history.h"
#include "tests/unit/unit.h"

enum { POOL = 1024 * 1024, METRICS = 6, LIVES = 14 };

static uint64_t pool[POOL / 8], ring[16384];
static struct sources *sources;
static struct metrics *metrics;
static struct source *source;
static struct metric *metric[METRICS];
static struct history *history;
static struct timeline *timeline;
static struct archive *archive;
static uint64_t samples, marks;

static void end_life(void)
{
	timeline_destroy(timeline);
	history_destroy(history);
	archive_destroy(archive);
	metrics_destroy(metrics);
	sources_destroy(sources);
	archive = NULL;
	timeline = NULL;
	history = NULL;
	metrics = NULL;
	sources = NULL;
}

/* late: the medium answers after the first samples. */
static void begin_life(bool late)
{
	enum history_found found;
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	for (int i = 0; i < METRICS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "board/m%d", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_CELSIUS, &metric[i]), 0);
	}
	metric[0]->full_rate = false;
	ck_assert_int_eq(history_create(pool, POOL, it.boot_id, &history, &found), 0);
	ck_assert_int_eq(timeline_adopt(ring, 32, it.boot_id, &timeline), 0);
	ck_assert_int_eq(archive_create(it.boot_id, history, &archive), 0);
	archive_continue(archive, timeline);
	history_observe(history, archive_on_row, archive);
	ck_assert_int_eq(timeline_observe(timeline, archive_on_event, archive), 0);
	if (!late) {
		archive_adopt(archive, scan_image(it.image, it.size));
	}
}

static void sample(void)
{
	for (int i = 0; i < METRICS; i++) {
		metric_set(metric[i], (double)(it.now_ns / SECOND % 90));
	}
	metrics_commit(metrics, source, it.now_ns);
	history_append(history, metrics, source, it.now_ns);
	if (samples++ % 7 == 0) {
		timeline_add(timeline, it.now_ns, TIMELINE_MARK, TIMELINE_INFO, "cam", "mark %d",
			(int)marks++);
	}
	it.now_ns += SECOND;
}

/* noted: the process lives long enough to hear that the block is on the medium. */
static void write_blocks(bool all, bool noted)
{
	const uint8_t *bytes;
	uint32_t page;
	size_t size;
	while ((size = archive_seal(archive, it.now_ns, &it.wall, NULL, all, &bytes, &page)) > 0) {
		memcpy(it.image + (size_t)page * ARCHIVE_PAGE, bytes, size);
		if (!noted) {
			return;
		}
		archive_written(archive, 0);
		history_set_archived(history, archive_mark_ns(archive, it.now_ns));
	}
}

/* Every sample is in one row, the rows are in the order of time and do not overlap. */
static void compare_rows(uint64_t lost_at_most)
{
	struct archive *kept = it.archive;
	it.archive = archive;
	struct archive_plan *plan = ask("board/*");
	it.archive = kept;
	ck_assert_uint_eq(archive_plan_series(plan), METRICS);
	for (size_t s = 0; s < METRICS; s++) {
		struct archive_series series;
		uint64_t count = 0;
		archive_plan_at(plan, s, &series);
		for (size_t i = 0; i < series.count; i++) {
			ck_assert(
				i == 0 || series.points[i].time_us > series.points[i - 1].time_us);
			count += series.points[i].count;
		}
		/* what has no full rate may lose the bucket that a kill interrupts */
		bool rough = strcmp(series.name, "board/m0") == 0;
		ck_assert_msg(count <= samples, "%s: %llu of %llu samples", series.name,
			(unsigned long long)count, (unsigned long long)samples);
		ck_assert_msg(rough || count + lost_at_most >= samples, "%s: %llu of %llu samples",
			series.name, (unsigned long long)count, (unsigned long long)samples);
		ck_assert(!rough || count + 10 * LIVES + lost_at_most >= samples);
	}
	archive_plan_destroy(plan);
}

static void compare_marks(void)
{
	const struct timeline_entry *event;
	archive_destroy(archive);
	ck_assert_int_eq(archive_create(it.boot_id, NULL, &archive), 0);
	archive_adopt(archive, scan_image(it.image, it.size));
	size_t count = archive_events(archive, &event);
	ck_assert_uint_eq(count, marks);
	for (size_t i = 0; i < count; i++) {
		char text[32];
		snprintf(text, sizeof(text), "mark %zu", i);
		ck_assert_str_eq(event[i].text, text);
	}
}

static void live(uint64_t bucket_ns, bool late, bool noted)
{
	start(ARCHIVE_SIZE_MIN, 0);
	memset(pool, 0, sizeof(pool));
	memset(ring, 0, sizeof(ring));
	samples = marks = 0;
	for (int life = 0; life < LIVES; life++) {
		begin_life(late);
		archive_set_bucket(archive, bucket_ns, it.now_ns);
		uint64_t seconds = 3 + random_u64() % (life % 2 ? 20 : 200);
		for (uint64_t s = 0; s < seconds; s++) {
			sample();
			if (late && s == seconds / 2) {
				archive_adopt(archive, scan_image(it.image, it.size));
			}
			if (s % 60 == 59) {
				write_blocks(false, noted || s < 100);
			}
			if (!noted && s > 100 && s % 60 == 59) {
				break; /* killed in that moment */
			}
		}
		if (life < LIVES - 1) {
			end_life();
		}
	}
	write_blocks(true, true);
	/* a bucket of which a block took the first part is closed to what comes later */
	compare_rows(noted ? 0 : 10 * LIVES);
	compare_marks();
	end_life();
	teardown();
}

TEST_TIMEOUT(60);

START_TEST(a_kill_loses_nothing_and_doubles_nothing)
{
	live(10 * SECOND, false, true);
	live(10 * SECOND, true, true);
}
END_TEST

START_TEST(with_buckets_of_a_minute_neither)
{
	live(60 * SECOND, false, true);
	live(60 * SECOND, true, true);
}
END_TEST

START_TEST(a_block_of_which_nobody_heard_is_not_written_twice)
{
	live(10 * SECOND, false, false);
	live(60 * SECOND, true, false);
}
END_TEST

START_TEST(no_more_is_gathered_than_may_wait)
{
	struct archive_pending pending;
	start(ARCHIVE_SIZE_MIN, 0);
	memset(pool, 0, sizeof(pool));
	memset(ring, 0, sizeof(ring));
	samples = marks = 0;
	begin_life(false);
	for (int i = 0; i < 40000; i++) {
		sample();
	}
	end_life();
	begin_life(true);
	archive_pending(archive, &pending);
	ck_assert_uint_gt(pending.rows, 3600);
	ck_assert_uint_eq(pending.dropped, 0);
	ck_assert_uint_lt(archive_mark_ns(archive, it.now_ns), it.now_ns - 8 * 3600 * SECOND);
	sample();
	archive_pending(archive, &pending);
	ck_assert_uint_eq(pending.dropped, 0);
	end_life();
	teardown();
}
END_TEST

/* A source that commits each minute: its buckets do not wait for its next commit. */
START_TEST(a_slow_source_is_in_the_next_block)
{
	start(ARCHIVE_SIZE_MIN, 1);
	for (int i = 0; i < 5; i++) {
		give(0, value_of(0));
		it.now_ns += 11 * SECOND;
		seal(false);
		ck_assert_uint_eq(it.block, i + 1);
		ck_assert_uint_eq(it.at[it.block].rows, 1);
		/* a sample of before that comes late is in no bucket */
		feed(0, 1e6, it.now_ns - 5 * SECOND);
		it.now_ns += 49 * SECOND;
	}
	struct archive_plan *plan = ask("**");
	static uint32_t found[BLOCKS_MAX];
	ck_assert_uint_eq(compare(plan, found), 5);
	archive_plan_destroy(plan);
	teardown();
}
END_TEST

/* 10 s rows are kept up to a full minute, rows of a minute from there on, and back again. */
START_TEST(no_sample_is_lost_or_doubled_when_the_length_of_buckets_changes)
{
	start(ARCHIVE_SIZE_MIN, 3);
	uint64_t given = 0;
	for (int i = 0; i < 1000; i++) {
		if (i % 170 == 0) {
			archive_set_bucket(it.archive, (i / 170 % 2 ? 60 : 10) * SECOND, it.now_ns);
		}
		for (unsigned k = 0; k < 3; k++) {
			metric_set(it.metric[k], 7);
		}
		commit(it.now_ns);
		given++;
		it.now_ns += SECOND;
		if (i % 57 == 56) {
			seal(false);
		}
	}
	seal(true);
	struct archive_plan *plan = ask("**");
	ck_assert_uint_eq(archive_plan_series(plan), 3);
	for (size_t i = 0; i < 3; i++) {
		struct archive_series series;
		uint64_t count = 0;
		archive_plan_at(plan, i, &series);
		for (size_t k = 0; k < series.count; k++) {
			count += series.points[k].count;
			ck_assert(
				k == 0 || series.points[k].time_us > series.points[k - 1].time_us);
		}
		ck_assert_uint_eq(count, given);
	}
	archive_plan_destroy(plan);
	teardown();
}
END_TEST
