/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c: selects and summarises what a query asks of a recent window or of a lifetime. stats.c
 * asks for stages, frame_stats.c for frame streams.
 */
#include "daemon/core/stages/window.h"

#include <math.h>
#include <string.h>

#include "daemon/util/sysops.h"

bool window_wants(enum window_filter filter, uint64_t word)
{
	switch (filter) {
	case WINDOW_ALL:
		return true;
	case WINDOW_THROTTLED:
		return stage_word_state(word) == THROTTLE_YES;
	case WINDOW_UNTHROTTLED:
		return stage_word_state(word) == THROTTLE_NO;
	}
	return false;
}

/* All durations. Of a number below 2^52 these bits in front make a double that is 2^52 larger. */
static void all_durations(const struct window_view *view, double *ret_ns)
{
	typedef uint64_t words __attribute__((vector_size(16)));
	typedef double doubles __attribute__((vector_size(16)));
	const words mask = {STAGE_WORD_DURATION, STAGE_WORD_DURATION};
	const words front = {UINT64_C(0x433) << 52, UINT64_C(0x433) << 52};
	words any = {0};
	size_t i = 0;
	for (; i + 2 <= view->filled; i += 2) {
		words two;
		memcpy(&two, view->words + i, sizeof(two));
		two &= mask;
		any |= two;
		doubles ns = (doubles)(two | front) - 0x1p52;
		memcpy(ret_ns + i, &ns, sizeof(ns));
	}
	if ((any[0] | any[1]) >> 52 != 0) {
		i = 0;
	}
	/* the sign bit is 0, and signed ones are converted by one instruction */
	for (; i < view->filled; i++) {
		ret_ns[i] = (double)(int64_t)stage_word_ns(view->words[i]);
	}
}

/* The durations that pass the filter. */
static size_t durations(const struct window_view *view, enum window_filter filter, double *ret_ns)
{
	size_t count = 0;
	if (filter == WINDOW_ALL) {
		all_durations(view, ret_ns);
		return view->filled;
	}
	for (size_t i = 0; i < view->filled; i++) {
		ret_ns[count] = (double)(int64_t)stage_word_ns(view->words[i]);
		count += window_wants(filter, view->words[i]);
	}
	return count;
}

void window_summarize(double *values, size_t count, bool nearest, struct proto_summary *ret)
{
	proto_summarize(values, count, ret);
	if (nearest && count > 0) {
		ret->p50 = proto_percentile_nearest(values, count, 50);
		ret->p90 = proto_percentile_nearest(values, count, 90);
		ret->p95 = proto_percentile_nearest(values, count, 95);
		ret->p99 = proto_percentile_nearest(values, count, 99);
	}
}

const struct proto_histogram *lifetime_of(const struct window_view *view, enum window_filter filter,
	struct proto_histogram *difference)
{
	proto_histogram_init(difference, mem_calloc);
	switch (filter) {
	case WINDOW_ALL:
		return view->all;
	case WINDOW_THROTTLED:
		return view->throttled;
	case WINDOW_UNTHROTTLED:
		if (!view->throttled) {
			return view->all;
		}
		proto_histogram_subtract(view->all, view->throttled, difference);
		return difference;
	}
	return NULL;
}

uint64_t nearest_rank(uint64_t count, double p)
{
	double rank = floor((double)count * p / 100);
	return rank < (double)(count - 1) ? (uint64_t)rank : count - 1;
}

static double nearest_ms(const struct proto_histogram *histogram, double p)
{
	return proto_histogram_at(histogram, nearest_rank(histogram->count, p)) / 1e6;
}

void window_ask(const struct window_view *view, const struct window_query *query, double *scratch,
	struct proto_summary *ret)
{
	if (!query->lifetime) {
		size_t count = durations(view, query->filter, scratch);
		proto_summarize_window(scratch, count, query->nearest, view->guess, ret);
		return;
	}
	struct proto_histogram difference;
	const struct proto_histogram *histogram = lifetime_of(view, query->filter, &difference);
	if (histogram) {
		proto_histogram_summary(histogram, ret);
	} else {
		proto_summarize(NULL, 0, ret);
	}
	if (query->nearest && ret->count > 0) {
		ret->p50 = nearest_ms(histogram, 50);
		ret->p90 = nearest_ms(histogram, 90);
		ret->p95 = nearest_ms(histogram, 95);
		ret->p99 = nearest_ms(histogram, 99);
	}
	proto_histogram_finish(&difference);
}
