/* SPDX-License-Identifier: Apache-2.0 */
/* What ties a trace together: lanes whose slices nest, frames, pairs by id, clocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/trace/trace.h"
#include "tests/unit/unit.h"

struct slice {
	uint64_t start_ns, end_ns;
	uint32_t tid;
};

static int by_start(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;
	if (x->start_ns != y->start_ns) {
		return x->start_ns < y->start_ns ? -1 : 1;
	}
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

/* The slices of one track are nested or apart. */
static void check_track(struct slice *slices, size_t count, uint32_t tid)
{
	uint64_t *open_until = calloc(count + 1, sizeof(*open_until));
	size_t depth = 0;
	qsort(slices, count, sizeof(*slices), by_start);
	for (size_t i = 0; i < count; i++) {
		if (slices[i].tid != tid) {
			continue;
		}
		while (depth > 0 && open_until[depth - 1] <= slices[i].start_ns) {
			depth--;
		}
		ck_assert(depth == 0 || slices[i].end_ns <= open_until[depth - 1]);
		open_until[depth++] = slices[i].end_ns;
	}
	free(open_until);
}

static struct trace_tracks tracks;
static struct trace_track track;

static void teardown(void)
{
	trace_tracks_finish(&tracks);
	memset(&tracks, 0, sizeof(tracks));
}

/* Into track. */
static int place_event(struct trace_event event)
{
	int r = trace_tracks_place(&tracks, &event);
	track = event.track;
	return r < 0 ? r : event.apart ? -ENOENT : 0;
}

static int place(uint64_t start_ns, uint64_t end_ns, unsigned depth)
{
	return place_event((struct trace_event){.kind = TRACE_COMPLETE,
		.process = 1,
		.pid = 4711,
		.start_ns = start_ns,
		.duration_ns = end_ns - start_ns,
		.depth = depth});
}

static struct trace_track find(uint32_t app, uint32_t process, uint32_t pid, uint8_t thread)
{
	ck_assert_int_eq(place_event((struct trace_event){.kind = TRACE_GAUGE,
				 .app_index = app,
				 .process = process,
				 .pid = pid,
				 .thread = thread}),
		0);
	return track;
}

START_TEST(runs_that_nest_stay_on_one_lane)
{
	/* children first, as they end; touching ends, equal runs and runs of no length are fine */
	static const struct {
		uint64_t start_ns, end_ns;
		unsigned depth;
	} runs[] = {{10, 20, 1}, {20, 30, 1}, {30, 30, 1}, {30, 30, 1}, {10, 30, 0}, {5, 30, 0},
		{30, 40, 0}, {50, 60, 0}, {50, 60, 0}, {45, 70, 0}, {1, 80, 0}};
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		ck_assert_int_eq(place(runs[i].start_ns, runs[i].end_ns, runs[i].depth), 0);
		ck_assert_uint_eq(track.lane, 0);
		ck_assert_uint_eq(track.pid, 4711);
		ck_assert(track.new_thread == (i == 0) && track.new_process == (i == 0));
	}
	teardown();
}
END_TEST

START_TEST(runs_that_cut_another_go_beside_it_and_at_last_apart)
{
	for (uint64_t i = 0; i < TRACE_LANES; i++) {
		ck_assert_int_eq(place(10 + i, 20 + i, 0), 0);
		ck_assert_uint_eq(track.lane, i);
	}
	ck_assert_int_eq(place(18, 30, 0), -ENOENT);
	/* the order of time went back: no lane can say what is around it */
	ck_assert_int_eq(place(1, 2, 0), -ENOENT);
	ck_assert_int_eq(place(40, 50, 0), 0);
	ck_assert_uint_eq(track.lane, 0);
	teardown();
}
END_TEST

START_TEST(an_outer_run_of_many_keeps_its_lane)
{
	uint64_t t = 1000;
	for (int frame = 0; frame < 5; frame++) {
		uint64_t begin = t;
		for (int i = 0; i < 5000; i++, t += 10) {
			ck_assert_int_eq(place(t, t + 5, 1), 0);
			ck_assert_uint_eq(track.lane, 0);
		}
		ck_assert_int_eq(place(begin, t, 0), 0);
		ck_assert_uint_eq(track.lane, 0);
	}
	/* what was dropped from the stack is still not cut */
	ck_assert_int_eq(place(1005, t + 1, 0), 0);
	ck_assert_uint_ne(track.lane, 0);
	uint64_t begin = t;
	for (int i = 0; i < 5000; i++, t += 10) {
		ck_assert_int_eq(place(t, t + 5, 1), 0);
		ck_assert_uint_eq(track.lane, 0);
	}
	ck_assert_int_eq(place(begin + 12, t, 0), 0);
	ck_assert_uint_ne(track.lane, 0);
	ck_assert_int_eq(place(begin, t, 0), 0);
	ck_assert_uint_eq(track.lane, 0);
	teardown();
}
END_TEST

START_TEST(whatever_comes_nests_on_its_lane)
{
	enum { COUNT = 4000 };
	for (unsigned seed = 1; seed <= 20; seed++) {
		static struct slice slices[COUNT];
		size_t count = 0;
		unsigned state = seed;
		uint64_t end_ns = 100000;
		for (int i = 0; i < COUNT; i++) {
			state = state * 1664525 + 1013904223;
			end_ns += state >> 8 & 31;
			end_ns -= (state >> 16 & 255) == 0 ? 40 : 0;
			uint64_t start_ns = end_ns - (state >> 20 & 255) * (seed % 5);
			if (place(start_ns, end_ns, state >> 29) == 0) {
				slices[count++] = (struct slice){start_ns, end_ns, track.tid};
			}
		}
		ck_assert_uint_gt(count, 100);
		for (uint32_t tid = TRACE_FIRST_TID; tid < TRACE_FIRST_TID + TRACE_LANES; tid++) {
			check_track(slices, count, tid);
		}
		teardown();
	}
}
END_TEST

START_TEST(processes_have_pids_and_threads_tids_of_their_own)
{
	struct trace_track a, b, c, d;
	ck_assert(!trace_tracks_of_app(&tracks, 0, &a));
	a = find(0, 1, 42, 0);
	b = find(0, 1, 42, 1);
	c = find(0, 2, 42, 0); /* used again */
	d = find(1, 1, 0, 0);  /* not seen */
	ck_assert_uint_eq(a.pid, 42);
	ck_assert_uint_eq(b.pid, 42);
	ck_assert(a.tid != b.tid && a.tid != c.tid && c.tid != d.tid);
	ck_assert(c.pid != 42 && d.pid != 42 && c.pid != d.pid && d.pid > 1 << 22);
	ck_assert(d.pid < TRACE_DEVICE_PID);
	ck_assert(trace_tracks_of_app(&tracks, 1, &a));
	ck_assert_uint_eq(a.tid, d.tid);
	for (uint32_t i = 3; i < TRACE_PROCESSES; i++) {
		find(2, i, i, 0);
	}
	ck_assert_int_eq(
		place_event((struct trace_event){.kind = TRACE_GAUGE, .app_index = 2}), -ENOSPC);
	ck_assert_int_eq(place(1, 2, 0), -ENOSPC);
	teardown();
}
END_TEST

static struct {
	size_t told, parts;
	uint64_t frame;
} flow;

static void on_flow(void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count)
{
	(void)ctx;
	flow.told++;
	flow.parts += count;
	flow.frame = frame;
	ck_assert_uint_ge(count, 2);
	for (size_t i = 1; i < count; i++) {
		ck_assert_uint_le(part[i - 1].start_ns, part[i].start_ns);
	}
}

static struct trace_flows flows = {.report = on_flow};

static void part(uint64_t frame, uint64_t start_ns)
{
	trace_flows_add(&flows, frame, &(struct trace_flow_part){.start_ns = start_ns});
}

START_TEST(parts_of_a_frame_are_told_once_in_order)
{
	memset(&flow, 0, sizeof(flow));
	part(7, 30);
	part(7, 10);
	part(UINT64_MAX - 1, 1); /* alone: no arrow */
	part(7, 20);
	ck_assert_uint_eq(flow.told, 0);
	trace_flows_finish(&flows);
	ck_assert_uint_eq(flow.told, 1);
	ck_assert_uint_eq(flow.parts, 3);
	ck_assert_uint_eq(flow.frame, 7);
	trace_flows_finish(&flows);
	ck_assert_uint_eq(flow.told, 1);
}
END_TEST

/* covers G3.16 */
START_TEST(a_thousand_frames_may_be_open_and_no_more_memory_is_used)
{
	memset(&flow, 0, sizeof(flow));
	for (uint64_t i = 0; i < 10000; i++) {
		part(1000 + i, i);
		if (i >= 1000) {
			part(i, i); /* of the frame a thousand before */
		}
	}
	for (int i = 0; i < 1000; i++) {
		part(10999, 1);
	}
	trace_flows_finish(&flows);
	ck_assert_uint_eq(flow.told, 9001);
	ck_assert_uint_eq(flow.parts, 2 * 9000 + TRACE_FLOW_PARTS);
}
END_TEST

static struct {
	int pairs, begins, ends;
} seen;

static void on_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end)
{
	(void)ctx;
	ck_assert(begin || end);
	ck_assert(!begin || !end || begin->t_ns <= end->t_ns);
	seen.pairs += begin && end;
	seen.begins += begin && !end;
	seen.ends += end && !begin;
}

static struct trace_pairs pairs = {.report = on_pair};

static void half(bool end, uint64_t id, uint64_t t_ns, const char *name)
{
	struct trace_event event = {.kind = end ? TRACE_END : TRACE_BEGIN,
		.name = name,
		.unit = "",
		.category = "",
		.id = id,
		.start_ns = t_ns};
	trace_pairs_add(&pairs, &event);
}

START_TEST(begins_and_ends_meet_in_any_order)
{
	memset(&seen, 0, sizeof(seen));
	half(false, 1, 10, "a");
	half(true, 1, 20, "a");
	half(true, 2, 40, "a"); /* its thread was read first */
	half(false, 2, 30, "a");
	ck_assert_int_eq(seen.pairs, 2);
	half(false, 3, 50, "a");
	half(true, 3, 60, "b"); /* another stage */
	half(true, 3, 45, "a"); /* before its begin: of one that is not kept */
	ck_assert_int_eq(seen.pairs, 2);
	trace_pairs_finish(&pairs);
	ck_assert_int_eq(seen.begins, 1);
	ck_assert_int_eq(seen.ends, 2);
	for (uint64_t i = 0; i < 5000; i++) {
		half(false, i, i, "a");
	}
	trace_pairs_finish(&pairs);
	ck_assert_int_eq(seen.begins, 5001);
}
END_TEST

START_TEST(wall_times_find_their_way_back_over_a_step)
{
	/* set back by an hour at 200 s, forward by two at 300 s */
	struct trace_clock_step steps[] = {
		{100000000, 1000100000000}, {200000000, 996600000000}, {300000000, 1003900000000}};
	struct trace_clock clock = {3, steps};
	for (int64_t us = 100000000; us < 400000000; us += 777777) {
		uint64_t ns = (uint64_t)us * 1000;
		int64_t wall_us = trace_clock_time_us(&clock, ns);
		uint64_t back_ns = trace_clock_mono_ns(&clock, wall_us, 400000000000);
		/* a wall time that was twice is the later one */
		ck_assert_int_eq(trace_clock_time_us(&clock, back_ns), wall_us);
		ck_assert_uint_ge(back_ns, ns);
	}
	clock.count = 0;
	ck_assert_int_eq(trace_clock_time_us(&clock, 5), 0);
	ck_assert_uint_eq(trace_clock_mono_ns(&clock, 5, 5), 0);
}
END_TEST
