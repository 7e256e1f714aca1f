/* Frame streams. */
#include "daemon/core/frames.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/util/seam.h"
#include "proto/mapping.h"

static const uint64_t MS = 1000000;

static void near(double value, double want)
{
	ck_assert_msg(fabs(value - want) <= 1e-7 * fabs(want), "%.10g is not %.10g", value, want);
}

static struct frames *make(size_t window)
{
	struct frames *frames;
	ck_assert_int_eq(frames_create(window, &frames), 0);
	return frames;
}

/* covers G0.2 */
START_TEST(golden_vector_a)
{
	static const unsigned deltas_ms[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33};
	struct frames *frames = make(300);
	uint64_t t = 1000 * MS;
	frames_tick(frames, t, PROTO_NO_FRAME, 0);
	for (size_t i = 0; i < 10; i++) {
		t += deltas_ms[i] * MS;
		frames_tick(frames, t, PROTO_NO_FRAME, 0);
	}
	double scratch[600];
	struct frames_stats s;
	frames_stats(frames, scratch, &s);
	ck_assert(s.sufficient);
	near(s.fps, 23.9234450);
	near(s.frame_time_ms, 41.8);
	near(s.fps_mean, 26.8910109);
	near(s.fps_min, 10);
	near(s.fps_max, 30.3030303);
	near(s.fps_p5, 14.5);
	near(s.fps_p95, 30.3030303);
	near(s.frame_time_mean_ms, 41.8);
	near(s.frame_time_p95_ms, 77.5);
	near(s.frame_time_p99_ms, 95.5);
	near(s.jitter_ms, 20.0239856);
	ck_assert_uint_eq(s.frame_count, 10);
	ck_assert(isnan(s.end_to_end_mean_ms));
	frames_destroy(frames);
}
END_TEST

/* covers G0.1 */
START_TEST(fps_looks_at_the_last_sixty_ticks)
{
	struct frames *frames = make(300);
	double scratch[600];
	struct frames_stats s;
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps));
	frames_tick(frames, 1, 0, 0);
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps) && !s.sufficient);
	for (uint64_t i = 1; i <= 40; i++) {
		frames_tick(frames, i * 1000 * MS, i, 0);
	}
	for (uint64_t i = 1; i <= 60; i++) {
		frames_tick(frames, 40000 * MS + i * 10 * MS, 40 + i, 0);
	}
	frames_stats(frames, scratch, &s);
	near(s.fps, 100);
	near(s.frame_time_ms, 10);
	ck_assert_uint_eq(s.frame_count, 100);
	frames_destroy(frames);
}
END_TEST

START_TEST(equal_times_make_no_infinite_rate)
{
	struct frames *frames = make(300);
	double scratch[600];
	struct frames_stats s;
	frames_tick(frames, 5 * MS, PROTO_NO_FRAME, 0);
	frames_tick(frames, 5 * MS, PROTO_NO_FRAME, 0);
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps));
	frames_tick(frames, 15 * MS, PROTO_NO_FRAME, 0);
	frames_stats(frames, scratch, &s);
	ck_assert_uint_eq(frames->zero_deltas, 1);
	near(s.fps_mean, 100);
	near(s.fps_max, 100);
	near(s.fps, 200);
	frames_destroy(frames);
}
END_TEST

START_TEST(late_ticks_are_counted_and_make_no_delta)
{
	struct frames *frames = make(300);
	frames_tick(frames, 100 * MS, 10, 0);
	frames_tick(frames, 90 * MS, 9, 0);
	ck_assert_uint_eq(frames->out_of_order, 1);
	ck_assert_uint_eq(frames->filled, 0);
	ck_assert_uint_eq(frames->last_tick_ns, 100 * MS);
	ck_assert_uint_eq(frames->last_id, 10);
	frames_tick(frames, 110 * MS, 11, 0);
	ck_assert_uint_eq(frames->filled, 1);
	ck_assert_uint_eq(frames->count, 3);
	ck_assert_uint_eq(frames->skipped_ids, 0);
	frames_tick(frames, 120 * MS, 15, 0);
	ck_assert_uint_eq(frames->skipped_ids, 3);
	frames_tick(frames, 130 * MS, PROTO_NO_FRAME - 1, 0);
	frames_tick(frames, 140 * MS, 0, 0);
	frames_tick(frames, 150 * MS, PROTO_NO_FRAME - 1, 0);
	ck_assert_uint_eq(frames->out_of_order, 2);
	frames_destroy(frames);
}
END_TEST

START_TEST(latency_is_told_where_frames_have_a_start)
{
	struct frames *frames = make(4);
	for (uint64_t i = 1; i <= 6; i++) {
		frames_tick(frames, i * 100 * MS, i, i * 10 * MS);
	}
	double scratch[8];
	struct frames_stats s;
	frames_stats(frames, scratch, &s);
	near(s.end_to_end_mean_ms, 45); /* the last four: 30 40 50 60 */
	near(s.end_to_end_p95_ms, 58.5);
	near(s.frame_time_mean_ms, 100);
	ck_assert_uint_eq(s.frame_count, 4);
	frames_destroy(frames);
}
END_TEST

/* covers G1.12 */
START_TEST(frame_misses_count_against_the_deadline)
{
	struct frames *frames = make(4);
	frames->deadline_ns = 40 * MS;
	frames_tick(frames, 100 * MS, 1, 40 * MS);
	frames_tick(frames, 200 * MS, 2, 41 * MS);
	frames_tick(frames, 230 * MS, 3, 0); /* bare ticks: the delta is judged */
	frames_tick(frames, 290 * MS, 4, 0);
	ck_assert_uint_eq(frames->misses, 2);
	ck_assert_uint_eq(frames->interval.misses, 2);
	ck_assert_uint_eq(frames->interval.count, 4);
	frames_interval_reset(frames);
	ck_assert_uint_eq(frames->interval.count, 0);
	ck_assert_uint_eq(frames->misses, 2);
	frames_destroy(frames);
}
END_TEST

static unsigned allocations_left;

static void *failing_calloc(size_t count, size_t size)
{
	return allocations_left-- == 0 ? NULL : calloc(count, size);
}

START_TEST(short_memory_is_enomem)
{
	struct seam table = *seam();
	table.calloc = failing_calloc;
	seam_replace(&table);
	struct frames *frames = NULL;
	for (unsigned i = 0; i < 3; i++) {
		allocations_left = i;
		ck_assert_int_eq(frames_create(4, &frames), -ENOMEM);
		ck_assert_ptr_null(frames);
	}
	seam_replace(NULL);
	frames_destroy(NULL);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("frames");
	tcase_add_test(tc, golden_vector_a);
	tcase_add_test(tc, fps_looks_at_the_last_sixty_ticks);
	tcase_add_test(tc, equal_times_make_no_infinite_rate);
	tcase_add_test(tc, late_ticks_are_counted_and_make_no_delta);
	tcase_add_test(tc, latency_is_told_where_frames_have_a_start);
	tcase_add_test(tc, frame_misses_count_against_the_deadline);
	tcase_add_test(tc, short_memory_is_enomem);
	Suite *suite = suite_create("frames");
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
