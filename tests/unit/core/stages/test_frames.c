/* SPDX-License-Identifier: Apache-2.0 */
/* Frame streams. */
#include "daemon/core/frames/frames.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"
#include "proto/mapping.h"
#include "proto/percentile.h"
#include "tests/unit/unit.h"

static const uint64_t MS = 1000000, DAY = 86400u * UINT64_C(1000000000);

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

static void within(double value, double want, double part)
{
	ck_assert_msg(fabs(value - want) <= part * fabs(want), "%.10g is not %.10g", value, want);
}

static void tick(struct frames *frames, uint64_t t_ms, uint64_t id)
{
	frames_tick(frames, t_ms * MS, id, THROTTLE_UNKNOWN);
}

/* covers G0.2 */
START_TEST(golden_vector_a)
{
	static const unsigned deltas_ms[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33};
	struct frames *frames = make(300);
	uint64_t t = 1000 * MS;
	frames_tick(frames, t, PROTO_NO_FRAME, THROTTLE_UNKNOWN);
	for (size_t i = 0; i < 10; i++) {
		t += deltas_ms[i] * MS;
		frames_tick(frames, t, PROTO_NO_FRAME, THROTTLE_UNKNOWN);
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
	near(s.times.mean, 41.8);
	near(s.times.p95, 77.5);
	near(s.times.p99, 95.5);
	near(s.times.std, 20.0239856);
	ck_assert_uint_eq(s.times.count, 10);
	ck_assert(isnan(s.latencies.mean));

	/* all of it again, by the histogram */
	struct window_query query = {.lifetime = true};
	frames_ask(frames, &query, scratch, &s);
	ck_assert(!s.exact);
	within(s.fps_p5, 14.5, 0.01);
	within(s.fps_p95, 30.3030303, 0.01);
	within(s.times.p95, 77.5, 0.01);
	within(s.times.p99, 95.5, 0.01);
	query.nearest = true;
	frames_ask(frames, &query, scratch, &s);
	within(s.fps_p5, 10, 0.01);
	within(s.fps_p95, 30.3030303, 0.01);
	within(s.times.p50, 34, 0.01);
	within(s.times.p95, 100, 0.01);
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
	frames_tick(frames, 1, 0, THROTTLE_UNKNOWN);
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps) && !s.sufficient);
	for (uint64_t i = 1; i <= 40; i++) {
		tick(frames, i * 1000, i);
	}
	for (uint64_t i = 1; i <= 60; i++) {
		tick(frames, 40000 + i * 10, 40 + i);
	}
	frames_stats(frames, scratch, &s);
	near(s.fps, 100);
	near(s.frame_time_ms, 10);
	ck_assert_uint_eq(s.times.count, 100);
	frames_destroy(frames);
}
END_TEST

START_TEST(fps_begins_again_after_an_idle_time)
{
	struct frames *frames = make(300);
	struct frames_stats s;
	double scratch[600];
	uint64_t t_ms = 1000;
	for (int i = 0; i < 30; i++, t_ms += 100) {
		tick(frames, t_ms, PROTO_NO_FRAME);
	}
	tick(frames, t_ms += 1800, PROTO_NO_FRAME); /* not idle */
	frames_stats(frames, scratch, &s);
	near(s.fps, 30 / 4.8);
	tick(frames, t_ms += 20000, PROTO_NO_FRAME);
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps));
	near(s.times.max, 20000);
	tick(frames, t_ms += 100, PROTO_NO_FRAME);
	frames_stats(frames, scratch, &s);
	near(s.fps, 10);
	frames_destroy(frames);
}
END_TEST

START_TEST(equal_times_make_no_infinite_rate)
{
	struct frames *frames = make(300);
	double scratch[600];
	struct frames_stats s;
	tick(frames, 5, PROTO_NO_FRAME);
	tick(frames, 5, PROTO_NO_FRAME);
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps));
	tick(frames, 15, PROTO_NO_FRAME);
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
	tick(frames, 100, 10);
	tick(frames, 90, 9);
	ck_assert_uint_eq(frames->out_of_order, 1);
	ck_assert_uint_eq(frames->times.filled, 0);
	ck_assert_uint_eq(frames->last_tick_ns, 100 * MS);
	tick(frames, 110, 11);
	ck_assert_uint_eq(frames->times.filled, 1);
	ck_assert_uint_eq(frames->count, 3);
	ck_assert_uint_eq(frames->skipped_ids, 0);
	tick(frames, 120, 15);
	ck_assert_uint_eq(frames->skipped_ids, 3);
	tick(frames, 130, 13);
	ck_assert_uint_eq(frames->skipped_ids, 2);
	ck_assert_uint_eq(frames->out_of_order, 2);
	frames_destroy(frames);
}
END_TEST

START_TEST(latency_is_told_where_frames_have_a_start)
{
	struct frames *frames = make(4);
	for (uint64_t i = 1; i <= 6; i++) {
		tick(frames, i * 100, i);
		frames_latency(frames, i * 10 * MS, i * 5 * MS, THROTTLE_UNKNOWN);
	}
	double scratch[8];
	struct frames_stats s;
	frames_stats(frames, scratch, &s);
	near(s.latencies.mean, 45); /* the last four: 30 40 50 60 */
	near(s.latencies.p95, 58.5);
	near(s.latencies.max, 60);
	near(s.stage_sum_mean_ms, 22.5);
	near(s.times.mean, 100);
	near(s.in_flight, 0.45);
	ck_assert_uint_eq(s.times.count, 4);
	frames_destroy(frames);
}
END_TEST

/* covers G1.12 */
START_TEST(frame_misses_count_against_the_deadline)
{
	struct frames *frames = make(4);
	ck_assert(!frames_judge(frames, DAY)); /* none is known */
	frames_set_deadline(frames, 40 * MS);
	static const unsigned took_ms[] = {40, 41, 50, 39, 60, 41, 41, 10};
	for (size_t i = 0; i < 8; i++) {
		tick(frames, 100 + i, i);
		ck_assert_int_eq(frames_judge(frames, took_ms[i] * MS), took_ms[i] > 40);
	}
	ck_assert_uint_eq(frames->judged, 8);
	ck_assert_uint_eq(frames->misses, 5);
	ck_assert_uint_eq(frames->interval.misses, 5);
	ck_assert_uint_eq(frames->worst_ns, 60 * MS);
	ck_assert_uint_eq(frames->longest_misses, 3);
	ck_assert_uint_eq(frames->consecutive_misses, 0);
	ck_assert_uint_eq(frames->interval.count, 8);
	frames_interval_reset(frames);
	ck_assert_uint_eq(frames->interval.count, 0);
	ck_assert_uint_eq(frames->misses, 5);
	frames_destroy(frames);
}
END_TEST

START_TEST(settings_win_and_warm_up_is_left_out)
{
	struct frames *frames = make(10);
	const struct frames_settings settings = {
		.deadline_ns = 20 * MS, .target_fps = 30, .warmup = 3};
	frames_configure(frames, &settings);
	frames_set_deadline(frames, 5 * MS);
	ck_assert_uint_eq(frames->deadline_ns, 20 * MS);
	for (uint64_t i = 0; i < 8; i++) {
		tick(frames, i < 3 ? i * 1000 : 2000 + (i - 2) * 10, i);
		frames_judge(frames, (i < 3 ? 900 : 25) * MS);
		frames_latency(frames, (i < 3 ? 900 : 8) * MS, 0, THROTTLE_NO);
	}
	double scratch[20];
	struct frames_stats s;
	frames_stats(frames, scratch, &s);
	ck_assert_uint_eq(frames->warmup_skipped, 3);
	ck_assert_uint_eq(frames->count, 5);
	ck_assert_uint_eq(s.times.count, 5);
	near(s.times.mean, 10);
	near(s.latencies.max, 8);
	ck_assert_uint_le(frames->misses, 6); /* the last one of the warm-up ends it */
	frames_restart(frames); /* the app came back: neither a delta nor its warm-up counts */
	for (uint64_t i = 0; i < 5; i++) {
		tick(frames, 60000 + i * 10, i);
	}
	frames_stats(frames, scratch, &s);
	ck_assert_uint_eq(s.times.count, 7);
	near(s.times.mean, 10);
	ck_assert_uint_eq(frames->skipped_ids, 0);
	const struct frames_settings none = {.warmup = 5}; /* a reload */
	frames_configure(frames, &none);
	ck_assert_uint_eq(frames->deadline_ns, 5 * MS);
	ck_assert_uint_eq(frames->warmup_left, 0);
	frames_destroy(frames);
}
END_TEST

/* covers G3.13 */
START_TEST(fps_as_a_range_is_that_of_full_seconds)
{
	struct frames *frames = make(300);
	double scratch[600];
	struct frames_stats s;
	uint64_t t = 1000;
	tick(frames, t, PROTO_NO_FRAME);
	frames_stats(frames, scratch, &s);
	ck_assert(isnan(s.fps_1s_min) && isnan(s.fps_1s_max));
	static const unsigned each_ms[] = {100, 50, 200, 500, 100};
	for (size_t second = 0; second < 5; second++) {
		for (unsigned i = 0; i < 1000 / each_ms[second]; i++) {
			tick(frames, t += each_ms[second], PROTO_NO_FRAME);
		}
	}
	tick(frames, t += 100, PROTO_NO_FRAME); /* ends the fifth second */
	frames_stats(frames, scratch, &s);
	near(s.fps_1s_min, 2);
	near(s.fps_1s_max, 20);
	tick(frames, t += 3000, PROTO_NO_FRAME); /* a stall: seconds without any */
	frames_stats(frames, scratch, &s);
	ck_assert_double_eq(s.fps_1s_min, 0);
	for (unsigned i = 0; i < 70 * 4; i++) { /* the window forgets, the lifetime does not */
		tick(frames, t += 250, PROTO_NO_FRAME);
	}
	frames_stats(frames, scratch, &s);
	near(s.fps_1s_min, 4);
	near(s.fps_1s_max, 4);
	const struct window_query lifetime = {.lifetime = true};
	frames_ask(frames, &lifetime, scratch, &s);
	ck_assert_double_eq(s.fps_1s_min, 0);
	near(s.fps_1s_max, 20);
	tick(frames, t += 60000, PROTO_NO_FRAME); /* a pause is no slow second */
	frames_stats(frames, scratch, &s);
	near(s.fps_1s_min, 4);
	frames_destroy(frames);
}
END_TEST

/* Over random times: each number of the lifetime against the exact one of the same method. */
START_TEST(a_lifetime_knows_both_methods_of_percentiles)
{
	enum { TICKS = 1500 };
	struct frames *frames = make(TICKS);
	uint64_t t_ns = DAY;
	frames_tick(frames, t_ns, PROTO_NO_FRAME, THROTTLE_UNKNOWN);
	srand(7);
	for (unsigned i = 0; i < TICKS; i++) {
		/* two groups far apart, so that a wrong rank shows, and now and then none at all */
		uint64_t delta_ns = i % 19 == 0 ? 90 * MS : (uint64_t)(rand() % 2000 + 4000) * 1000;
		delta_ns = i % 100 == 50 ? 0 : delta_ns;
		t_ns += delta_ns;
		frames_tick(frames, t_ns, PROTO_NO_FRAME, THROTTLE_UNKNOWN);
		frames_latency(frames, delta_ns + MS, delta_ns, THROTTLE_UNKNOWN);
	}
	static double scratch[2 * TICKS];
	for (int nearest = 0; nearest < 2; nearest++) {
		const struct window_query exact = {.nearest = nearest};
		const struct window_query lifetime = {.nearest = nearest, .lifetime = true};
		struct frames_stats want, have;
		frames_ask(frames, &exact, scratch, &want);
		frames_ask(frames, &lifetime, scratch, &have);
		within(have.fps_min, want.fps_min, 1e-9);
		within(have.fps_max, want.fps_max, 0.01);
		within(have.fps_p5, want.fps_p5, 0.01);
		within(have.fps_p95, want.fps_p95, 0.01);
		within(have.times.p50, want.times.p50, 0.01);
		within(have.times.p95, want.times.p95, 0.01);
		within(have.times.p99, want.times.p99, 0.01);
		within(have.latencies.p50, want.latencies.p50, 0.01);
		within(have.latencies.p95, want.latencies.p95, 0.01);
		within(have.latencies.p99, want.latencies.p99, 0.01);
	}
	frames_destroy(frames);
}
END_TEST

START_TEST(a_lifetime_is_within_one_percent_of_the_exact_numbers)
{
	static double exact[5000];
	struct frames *frames = make(10);
	uint64_t t_ns = 1000 * MS, random = 12345;
	frames_tick(frames, t_ns, PROTO_NO_FRAME, THROTTLE_NO);
	for (size_t i = 0; i < 5000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t delta_ns = 20 * MS + (random >> 40) * (i % 50 == 0 ? 8 : 1);
		exact[i] = (double)delta_ns / 1e6;
		frames_tick(frames, t_ns += delta_ns, PROTO_NO_FRAME, THROTTLE_NO);
		frames_latency(frames, delta_ns, 0, THROTTLE_NO);
	}
	struct proto_summary want;
	proto_summarize(exact, 5000, &want);
	const struct window_query lifetime = {.lifetime = true};
	struct frames_stats s;
	frames_ask(frames, &lifetime, NULL, &s);
	ck_assert(!s.exact && s.sufficient);
	ck_assert_uint_eq(s.times.count, 5000);
	within(s.times.p95, want.p95, 0.01);
	within(s.times.p99, want.p99, 0.01);
	within(s.latencies.p50, want.p50, 0.01);
	within(s.times.mean, want.mean, 1e-9);
	within(s.times.std, want.std, 1e-6);
	within(s.fps, 1000 / want.mean, 1e-9);
	within(s.fps_min, 1000 / want.max, 1e-9);
	frames_destroy(frames);
}
END_TEST

START_TEST(throttled_frames_are_told_apart_unless_any_is_unknown)
{
	struct frames *frames = make(100);
	double scratch[200];
	struct frames_stats s;
	uint64_t t_ns = 1000 * MS;
	frames_tick(frames, t_ns, PROTO_NO_FRAME, THROTTLE_NO);
	for (size_t i = 0; i < 20; i++) {
		bool throttled = i >= 10;
		frames_tick(frames, t_ns += (throttled ? 50 : 20) * MS, PROTO_NO_FRAME,
			throttled ? THROTTLE_YES : THROTTLE_NO);
		frames_latency(frames, (throttled ? 45 : 15) * MS, 0,
			throttled ? THROTTLE_YES : THROTTLE_NO);
	}
	for (int lifetime = 0; lifetime < 2; lifetime++) {
		struct window_query query = {.lifetime = lifetime, .filter = WINDOW_THROTTLED};
		frames_ask(frames, &query, scratch, &s);
		ck_assert_uint_eq(s.times.count, 10);
		within(s.times.mean, 50, 0.01);
		within(s.latencies.p95, 45, 0.01);
		query.filter = WINDOW_UNTHROTTLED;
		frames_ask(frames, &query, scratch, &s);
		ck_assert_uint_eq(s.times.count, 10);
		within(s.times.mean, 20, 0.01);
		within(s.latencies.mean, 15, 0.01);
	}
	frames_tick(frames, t_ns + MS, PROTO_NO_FRAME, THROTTLE_UNKNOWN);
	const struct window_query query = {.filter = WINDOW_UNTHROTTLED};
	frames_ask(frames, &query, scratch, &s);
	ck_assert_uint_eq(s.times.count, 0);
	ck_assert(isnan(s.times.mean));
	ck_assert_ptr_nonnull(s.reason);
	frames_destroy(frames);
}
END_TEST

static void take(struct frame_ids *ids, uint64_t id, uint64_t skipped, uint64_t out_of_order)
{
	frame_ids_append(ids, id);
	ck_assert_msg(ids->skipped == skipped && ids->out_of_order == out_of_order,
		"id %" PRIu64 ": %" PRIu64 " skipped, %" PRIu64 " out of order", id, ids->skipped,
		ids->out_of_order);
}

START_TEST(ids_tell_lost_and_late_frames)
{
	struct frame_ids ids = {0};
	take(&ids, 5, 0, 0);
	take(&ids, 6, 0, 0);
	take(&ids, 9, 2, 0); /* 7 and 8 are missing */
	take(&ids, 7, 1, 1); /* late is not lost */
	take(&ids, 10, 1, 1);
	take(&ids, 8, 0, 2);
	take(&ids, 11, 0, 2);
	take(&ids, 4096 + 11, 4095, 2); /* a long stall */
	take(&ids, 4096 + 10, 4094, 3);
	ck_assert_uint_eq(ids.sequences, 1);
	take(&ids, 4096 + 11 + 4097, 4094, 3); /* further: somebody else's */
	ck_assert_uint_eq(ids.sequences, 2);
}
END_TEST

START_TEST(ids_that_start_anew_are_another_sequence)
{
	struct frame_ids ids = {0};
	for (uint64_t i = 0; i < 1000; i++) {
		take(&ids, i, 0, 0);
	}
	for (uint64_t i = 0; i < 20; i++) { /* the process came back */
		take(&ids, i, 0, 0);
	}
	for (uint64_t i = 0; i < 30; i++) { /* and again, soon */
		take(&ids, i, 0, 0);
	}
	take(&ids, UINT64_MAX - 1, 0, 0);
	take(&ids, 30, 0, 0);
	take(&ids, 0, 0, 0);
	ck_assert_uint_eq(ids.skipped, 0);
	for (uint64_t i = 0; i < 10000000; i++) { /* hostile ones only begin sequences */
		frame_ids_append(&ids, i * 0x9e3779b97f4a7c15u);
	}
	ck_assert_uint_le(ids.skipped, 100000);
}
END_TEST

START_TEST(two_cameras_have_their_own_sequences)
{
	struct frame_ids far = {0}, near_by = {0}, same = {0};
	for (uint64_t i = 0; i < 500; i++) {
		if (i != 100) {
			take(&far, i, i > 100, 0);
		}
		take(&far, 1000000 + i, i > 100, 0);
	}
	ck_assert_uint_eq(far.sequences, 2);
	for (uint64_t i = 0; i < 500; i++) { /* what looks like a jump at first */
		frame_ids_append(&near_by, i);
		frame_ids_append(&near_by, 1000 + i);
	}
	ck_assert_uint_eq(near_by.skipped, 0);
	ck_assert_uint_eq(near_by.out_of_order, 0);
	ck_assert_uint_eq(near_by.sequences, 2);
	struct frame_ids workers = {0}; /* each with a range of ids; one loses one, one is late */
	for (uint64_t i = 0; i < 50; i++) {
		for (uint64_t k = 1; k <= 8; k++) {
			if (k != 3 || i != 20) {
				frame_ids_append(
					&workers, k * 1000 + (k == 8 && i > 1 ? i ^ 1 : i));
			}
		}
	}
	ck_assert_uint_eq(workers.skipped, 1);
	ck_assert_uint_eq(workers.out_of_order, 24);
	ck_assert_uint_eq(workers.sequences, 8);
	for (uint64_t i = 0; i < 500; i++) { /* both count from 0 */
		frame_ids_append(&same, i);
		if (i % 10 != 9) {
			frame_ids_append(&same, i);
		}
	}
	ck_assert_uint_ge(same.skipped, 45); /* the second one's lost frames */
	ck_assert_uint_le(same.skipped, 50);
	ck_assert_uint_eq(same.sequences, 2);
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
	struct frames *frames = NULL;
	for (unsigned i = 0; i < 4; i++) {
		allocations_left = i;
		ck_assert_int_eq(frames_create(4, &frames), -ENOMEM);
		ck_assert_ptr_null(frames);
	}
	sysops_replace(NULL);
	frames_destroy(NULL);
}
END_TEST
