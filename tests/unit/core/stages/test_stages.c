/* SPDX-License-Identifier: Apache-2.0 */
/* One stage's statistics. */
#include "daemon/core/stages/stages.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

static const uint64_t MS = 1000000;

static void near(double value, double want)
{
	ck_assert_msg(fabs(value - want) <= 1e-7 * fabs(want), "%.10g is not %.10g", value, want);
}

static struct stage *make(size_t window)
{
	struct stage *stage;
	ck_assert_int_eq(stage_create("infer", window, &stage), 0);
	return stage;
}

static void run(
	struct stage *stage, uint64_t end_ns, uint64_t duration_ns, uint64_t frame, uint32_t cpu_us)
{
	struct stage_run run = stage_run_of(end_ns, duration_ns, frame);
	run.cpu_us = cpu_us;
	stage_event(stage, &run);
}

static void end(struct stage *stage, uint64_t id, uint64_t end_ns)
{
	struct stage_run run = stage_run_of(end_ns, 0, PROTO_NO_FRAME);
	stage_end_run(stage, id, &run);
}

/* covers G0.4 */
START_TEST(golden_vector_b_through_a_stage)
{
	struct stage *stage = make(1024);
	for (uint64_t i = 1; i <= 100; i++) {
		run(stage, i * 1000 * MS, i * MS, i, PROTO_CPU_NOT_MEASURED);
	}
	double scratch[1024];
	struct proto_summary s;
	stage_summary(stage, scratch, &s);
	near(s.p50, 50.5);
	near(s.p90, 90.1);
	near(s.p95, 95.05);
	near(s.p99, 99.01);
	near(s.std, 28.8660700);
	near(s.std_sample, 29.0114920);
	near(s.min, 1);
	near(s.max, 100);
	near(s.mean, 50.5);
	ck_assert_uint_eq(s.count, 100);
	ck_assert_uint_eq(stage->last_frame, 100);
	ck_assert_uint_eq(stage->last_ns, 100000 * MS);
	stage_destroy(stage);
}
END_TEST

START_TEST(the_window_forgets_and_the_lifetime_does_not)
{
	struct stage *stage = make(4);
	for (uint64_t i = 1; i <= 10; i++) {
		run(stage, i, i * MS, PROTO_NO_FRAME, PROTO_CPU_NOT_MEASURED);
	}
	double scratch[4];
	struct proto_summary s;
	stage_summary(stage, scratch, &s);
	ck_assert_uint_eq(s.count, 4);
	near(s.min, 7);
	near(s.mean, 8.5);
	ck_assert_uint_eq(stage->count, 10);
	ck_assert_uint_eq(stage->total_ns, 55 * MS);
	ck_assert_uint_eq(stage->min_ns, 1 * MS);
	ck_assert_uint_eq(stage->max_ns, 10 * MS);
	stage_destroy(stage);
}
END_TEST

/* covers G0.3 */
START_TEST(an_end_without_a_begin_is_an_orphan)
{
	struct stage *stage = make(4);
	end(stage, 1, 100);
	ck_assert_uint_eq(stage->orphan_ends, 1);
	ck_assert_uint_eq(stage->count, 0);
	stage_begin(stage, 1, 50, PROTO_NO_FRAME);
	end(stage, 2, 100);
	ck_assert_uint_eq(stage->orphan_ends, 2);
	end(stage, 1, 100);
	end(stage, 1, 100);
	ck_assert_uint_eq(stage->orphan_ends, 3);
	ck_assert_uint_eq(stage->count, 1);
	stage_destroy(stage);
}
END_TEST

/* covers G0.3 */
START_TEST(a_begin_over_an_open_begin_abandons_the_older)
{
	struct stage *stage = make(4);
	stage_begin(stage, 7, 100, 1);
	stage_begin(stage, 7, 200, 2);
	ck_assert_uint_eq(stage->abandoned, 1);
	end(stage, 7, 250);
	ck_assert_uint_eq(stage->count, 1);
	ck_assert_uint_eq(stage->max_ns, 50);
	ck_assert_uint_eq(stage->last_frame, 2);
	stage_destroy(stage);
}
END_TEST

/* covers G4.11 */
START_TEST(begins_and_ends_by_id_may_overlap)
{
	struct stage *stage = make(4);
	stage_begin(stage, 1, 100, 1);
	stage_begin(stage, 2, 200, 2);
	end(stage, 1, 1100);
	end(stage, 2, 700);
	ck_assert_uint_eq(stage->count, 2);
	ck_assert_uint_eq(stage->max_ns, 1000);
	ck_assert_uint_eq(stage->min_ns, 500);
	ck_assert_uint_eq(stage->last_frame, 1); /* the later end, not the later record */
	stage_destroy(stage);
}
END_TEST

START_TEST(with_all_places_open_the_oldest_goes)
{
	struct stage *stage = make(4);
	for (uint64_t id = 0; id <= STAGE_OPEN_IDS; id++) {
		stage_begin(stage, id, 1000 + id, id);
	}
	ck_assert_uint_eq(stage->abandoned, 1);
	end(stage, 0, 5000);
	ck_assert_uint_eq(stage->orphan_ends, 1);
	end(stage, 1, 5000);
	end(stage, STAGE_OPEN_IDS, 5000);
	ck_assert_uint_eq(stage->count, 2);
	stage_destroy(stage);
}
END_TEST

/* covers G1.12 */
START_TEST(misses_count_what_is_over_the_deadline)
{
	struct stage *stage = make(8);
	run(stage, 1, 500 * MS, 1, PROTO_CPU_NOT_MEASURED);
	stage->deadline_ns = 33 * MS;
	run(stage, 2, 33 * MS, 2, PROTO_CPU_NOT_MEASURED);
	run(stage, 3, 33 * MS + 1, 3, PROTO_CPU_NOT_MEASURED);
	ck_assert_uint_eq(stage->misses, 1);
	ck_assert_uint_eq(stage->interval.misses, 1);
	stage_interval_reset(stage);
	ck_assert_uint_eq(stage->interval.misses, 0);
	ck_assert_uint_eq(stage->misses, 1);
	stage_destroy(stage);
}
END_TEST

/* covers G1.12 */
START_TEST(misses_in_a_row_and_the_worst_run_are_kept)
{
	struct stage *stage = make(8);
	stage_set_deadline(stage, 10 * MS);
	static const uint64_t ms[] = {11, 25, 12, 9, 14, 10, 11, 13};
	for (uint64_t i = 0; i < 8; i++) {
		run(stage, i + 1, ms[i] * MS, i, PROTO_CPU_NOT_MEASURED);
	}
	ck_assert_uint_eq(stage->judged, 8);
	ck_assert_uint_eq(stage->misses, 6);
	ck_assert_uint_eq(stage->worst_ns, 25 * MS);
	ck_assert_uint_eq(stage->longest_misses, 3);
	ck_assert_uint_eq(stage->consecutive_misses, 2);
	stage_set_deadline(stage, 0); /* given up: what was missed stays missed */
	run(stage, 9, 99 * MS, 9, PROTO_CPU_NOT_MEASURED);
	ck_assert_uint_eq(stage->misses, 6);
	ck_assert_uint_eq(stage->judged, 8);
	ck_assert_uint_eq(stage->worst_ns, 25 * MS);
	ck_assert_uint_eq(stage->consecutive_misses, 0);
	stage_destroy(stage);
}
END_TEST

START_TEST(the_operator_s_word_wins_over_the_app_s)
{
	struct stage *stage = make(8);
	const struct stage_settings settings = {
		.deadline_ns = 5 * MS, .unit = "npu", .category = "nn", .rss_growth_limit = 7};
	stage_set_deadline(stage, 3 * MS);
	stage_set_labels(stage, "app's", "gpu");
	ck_assert_str_eq(stage->unit, "gpu");
	stage_configure(stage, &settings);
	stage_set_deadline(stage, 1 * MS);
	stage_set_labels(stage, "another", "cpu");
	ck_assert_uint_eq(stage->deadline_ns, 5 * MS);
	ck_assert_str_eq(stage_unit(stage), "gpu"); /* the configured one is only expected */
	ck_assert_str_eq(stage->category, "nn");
	ck_assert_int_eq(stage->settings.rss_growth_limit, 7);
	const struct stage_settings none = {.deadline_ns = 0};
	stage_configure(stage, &none);
	ck_assert_uint_eq(stage->deadline_ns, 1 * MS);
	ck_assert_int_eq(stage->settings.rss_growth_limit, 10 << 20);
	stage_set_deadline(stage, 2 * MS);
	ck_assert_uint_eq(stage->deadline_ns, 2 * MS);
	stage_destroy(stage);
}
END_TEST

/* covers G4.1 */
START_TEST(warm_up_events_are_counted_apart)
{
	struct stage *stage = make(8);
	const struct stage_settings settings = {.warmup = 3, .deadline_ns = 2 * MS};
	stage_configure(stage, &settings);
	for (uint64_t i = 0; i < 5; i++) {
		run(stage, i + 1, (i < 3 ? 500 : 1) * MS, i, PROTO_CPU_NOT_MEASURED);
	}
	ck_assert_uint_eq(stage->warmup_skipped, 3);
	ck_assert_uint_eq(stage->count, 2);
	ck_assert_uint_eq(stage->filled, 2);
	ck_assert_uint_eq(stage->all->count, 2);
	ck_assert_uint_eq(stage->max_ns, 1 * MS);
	ck_assert_uint_eq(stage->misses, 0);
	ck_assert_uint_eq(stage->interval.count, 2);
	stage_configure(stage, &settings); /* a reload does not begin anew */
	run(stage, 6, 1 * MS, 6, PROTO_CPU_NOT_MEASURED);
	ck_assert_uint_eq(stage->warmup_skipped, 3);
	stage_warm_up(stage); /* a new process does */
	run(stage, 7, 1 * MS, 7, PROTO_CPU_NOT_MEASURED);
	ck_assert_uint_eq(stage->warmup_skipped, 4);
	stage_destroy(stage);
}
END_TEST

START_TEST(memory_growth_is_summed_and_its_greatest_kept)
{
	struct stage *stage = make(8);
	static const int64_t growth[] = {-4096, 8192, INT64_MIN, 4096};
	for (uint64_t i = 0; i < 4; i++) {
		struct stage_run measured = stage_run_of(i + 1, MS, i);
		measured.rss_growth = growth[i];
		measured.failed = i == 1;
		stage_event(stage, &measured);
	}
	ck_assert_uint_eq(stage->rss_measured, 3);
	ck_assert_int_eq(stage->rss_growth_max, 8192);
	ck_assert_int_eq(stage->rss_growth_total, 8192);
	ck_assert_uint_eq(stage->failed, 1);
	ck_assert_uint_eq(stage->count, 4);
	stage_destroy(stage);
}
END_TEST

/* covers G4.11: every id finds its begin whatever the order of ends */
START_TEST(open_ids_survive_any_order_of_ends)
{
	struct stage *stage = make(4);
	uint64_t id[STAGE_OPEN_IDS];
	uint64_t seed = 12345, now = 1;
	for (int round = 0; round < 200; round++) {
		for (uint64_t i = 0; i < STAGE_OPEN_IDS; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			id[i] = seed >> 60 | i << 4; /* many share a place in the table */
			stage_begin(stage, id[i], now++, i);
		}
		for (uint64_t i = STAGE_OPEN_IDS; i > 0; i--) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint64_t at = (seed >> 33) % i;
			ck_assert(stage_is_open(stage, id[at]));
			end(stage, id[at], now++);
			ck_assert(!stage_is_open(stage, id[at]));
			id[at] = id[i - 1];
		}
	}
	ck_assert_uint_eq(stage->count, 200 * STAGE_OPEN_IDS);
	ck_assert_uint_eq(stage->orphan_ends + stage->abandoned, 0);
	stage_begin(stage, 1, now, 0);
	stage_abandon(stage);
	ck_assert_uint_eq(stage->abandoned, 1);
	ck_assert(!stage_is_open(stage, 1));
	stage_destroy(stage);
}
END_TEST

START_TEST(a_budget_refuses_the_extras_and_gets_all_back)
{
	struct stage_budget budget = {.limit = stage_bytes(64)};
	struct stage *stage = make(64);
	stage_set_budget(stage, &budget);
	struct stage_run hot = stage_run_of(1, MS, 1);
	hot.throttled = THROTTLE_YES;
	hot.cpu_us = 5;
	stage_event(stage, &hot);
	stage_begin(stage, 1, 1, 1);
	end(stage, 1, 2);
	ck_assert_ptr_null(stage->throttled);
	ck_assert_ptr_null(stage->cpu);
	ck_assert(stage->throttled_refused);
	ck_assert_uint_eq(budget.refused, 3);
	ck_assert_uint_eq(stage->count, 1);
	ck_assert_uint_eq(stage->abandoned, 1);
	ck_assert_uint_eq(stage->orphan_ends, 1);
	ck_assert_uint_eq(budget.used, budget.limit);
	stage_destroy(stage);
	ck_assert_uint_eq(budget.used, 0);
}
END_TEST

/* Its count-th run took count ns, of CPU time as many us where that is measured. */
static void note_next(struct stage *stage, uint64_t count, bool cpu)
{
	struct stage_run run = stage_run_of(count * MS, count, count);
	run.cpu_us = cpu ? (uint32_t)count : PROTO_CPU_NOT_MEASURED;
	ck_assert(stage_note(stage, &run));
}

/* The window is the last ones in their order. */
static void has_the_last(const struct stage *stage, uint64_t count, size_t filled)
{
	ck_assert_uint_eq(stage->count, count);
	ck_assert_uint_eq(stage->filled, filled);
	size_t oldest = filled < stage->capacity ? 0 : stage->next;
	for (size_t i = 0; i < filled; i++) {
		size_t at = (oldest + i) % stage->capacity;
		ck_assert_uint_eq(stage_word_ns(stage->runs[at]), count - filled + i + 1);
		ck_assert(!stage->cpu || stage->cpu[at].thread_us == count - filled + i + 1);
	}
}

START_TEST(a_window_grows_until_it_has_its_size)
{
	static const uint64_t batches[] = {1, 7, 63, 64, 65, 200, 1000};
	for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
		struct stage *stage = make(300);
		size_t first = stage->capacity;
		ck_assert_uint_ge(first, STAGE_CAPACITY);
		ck_assert_uint_lt(first, 2 * STAGE_CAPACITY);
		for (uint64_t i = 1; i <= 1000; i++) {
			note_next(stage, i, b % 2);
			if (i % batches[b] == 0) {
				stage_fold(stage);
				has_the_last(stage, i, i < 300 ? i : 300);
			}
			ck_assert_uint_le(stage->capacity, i < first ? first : 2 * i);
		}
		ck_assert_uint_eq(stage->capacity, 300);
		stage_destroy(stage);
	}
}
END_TEST

START_TEST(without_memory_a_window_stays_small_until_it_comes_round)
{
	for (size_t fail_at = 1; fail_at <= 2; fail_at++) { /* runs, CPU times */
		struct stage *stage = make(300);
		size_t first = stage->capacity;
		note_next(stage, 1, true);
		alloc_faults_start(0);
		stage_fold(stage); /* the histogram's first buckets */
		alloc_faults_start(fail_at);
		for (uint64_t i = 2; i <= 1000; i++) {
			note_next(stage, i, true);
			if (i == first || i == first + 30) {
				ck_assert_uint_eq(stage->capacity, first);
			}
			if (i % 50 == 0) {
				stage_fold(stage);
				has_the_last(stage, i,
					i <= first	  ? i
					: i < 2 * first	  ? first
					: i < 300 + first ? i - first
							  : 300);
			}
		}
		alloc_faults_stop();
		stage_destroy(stage);
	}
}
END_TEST

START_TEST(stages_that_run_equally_often_do_not_grow_at_once)
{
	struct stage *stage[120];
	for (size_t i = 0; i < 120; i++) {
		char name[16];
		snprintf(name, sizeof(name), "stage-%zu", i);
		ck_assert_int_eq(stage_create(name, 1024, &stage[i]), 0);
	}
	for (uint64_t n = 1; n <= 1024; n++) {
		size_t grown = 0;
		for (size_t i = 0; i < 120; i++) {
			size_t before = stage[i]->capacity;
			note_next(stage[i], n, false);
			grown += stage[i]->capacity > before;
		}
		ck_assert_uint_le(grown, 15);
	}
	for (size_t i = 0; i < 120; i++) {
		stage_destroy(stage[i]);
	}
}
END_TEST

START_TEST(a_young_stage_takes_little)
{
	struct stage *stage = make(1024);
	for (uint64_t i = 1; i <= 15; i++) {
		run(stage, i * MS, 20 * MS + i, i, PROTO_CPU_NOT_MEASURED);
	}
	ck_assert_uint_le(sizeof(*stage) + stage->capacity * sizeof(*stage->runs) +
				  proto_histogram_bytes(stage->all),
		3 * 1024);
	stage_destroy(stage);
}
END_TEST

/* covers G2.2: 8 KiB of window, 10 KiB of histogram, and what was computed last */
START_TEST(a_stage_fits_in_its_part_of_the_budget)
{
	ck_assert_uint_le(stage_bytes(1024), (8 + 10) * 1024 + 680);
}
END_TEST

START_TEST(cpu_time_counts_only_where_it_was_measured)
{
	struct stage *stage = make(8);
	run(stage, 1, MS, 1, 400);
	run(stage, 2, MS, 2, PROTO_CPU_NOT_MEASURED);
	run(stage, 3, MS, 3, 0);
	ck_assert_uint_eq(stage->interval.cpu_us, 400);
	ck_assert_uint_eq(stage->interval.cpu_count, 2);
	ck_assert_uint_eq(stage->interval.count, 3);
	stage_destroy(stage);
}
END_TEST

static unsigned allocations_left;

static void *failing_calloc(size_t count, size_t size)
{
	return allocations_left-- == 0 ? NULL : calloc(count, size);
}

START_TEST(short_memory_is_enomem)
{
	struct sysops table = *sysops();
	table.calloc = failing_calloc;
	sysops_replace(&table);
	struct stage *stage = NULL;
	for (unsigned i = 0; i < 3; i++) {
		allocations_left = i;
		ck_assert_int_eq(stage_create("infer", 4, &stage), -ENOMEM);
		ck_assert_ptr_null(stage);
	}
	sysops_replace(NULL);
	stage_destroy(NULL);
}
END_TEST
