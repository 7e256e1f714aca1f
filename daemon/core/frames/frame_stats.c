/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_stats.c: computes the numbers of a frame stream, of its recent window or of its lifetime,
 * for queries and the sample tick.
 */
#include "daemon/core/frames/frames.h"

#include <math.h>

static bool any_unknown(const struct frames_series *series)
{
	for (size_t i = 0; i < series->filled; i++) {
		if (stage_word_state(series->words[i]) == THROTTLE_UNKNOWN) {
			return true;
		}
	}
	return false;
}

static struct window_view view_of(const struct frames_series *series)
{
	return (struct window_view){.words = series->words,
		.filled = series->filled,
		.all = &series->all,
		.throttled = series->throttled};
}

/* rates is as large. */
static void recent_rates(const struct window_query *query, const double *times_ns, double *rates,
	struct frames_stats *ret)
{
	size_t count = 0;
	for (size_t i = 0; i < ret->times.count; i++) {
		if (times_ns[i] > 0) {
			rates[count++] = 1000.0 / (times_ns[i] / 1e6);
		}
	}
	struct proto_summary fps;
	window_summarize(rates, count, query->nearest, &fps);
	ret->fps_mean = fps.mean;
	ret->fps_min = fps.min;
	ret->fps_max = fps.max;
	ret->fps_p5 =
		(query->nearest ? proto_percentile_nearest : proto_percentile)(rates, count, 5);
	ret->fps_p95 = fps.p95;
}

double frames_fps(const struct frames *frames)
{
	if (frames->ticks_filled < 2) {
		return (double)NAN;
	}
	size_t oldest = frames->ticks_filled < FRAMES_FPS_TICKS ? 0 : frames->ticks_next;
	uint64_t elapsed_ns = frames->last_tick_ns - frames->ticks_ns[oldest];
	return elapsed_ns > 0 ? (double)(frames->ticks_filled - 1) / ((double)elapsed_ns / 1e9)
			      : (double)NAN;
}

static void recent_fps(const struct frames *frames, struct frames_stats *ret)
{
	for (size_t i = 0; i < frames->second.filled; i++) {
		double fps = frames->second.fps[i];
		ret->fps_1s_min = fmin(ret->fps_1s_min, fps);
		ret->fps_1s_max = fmax(ret->fps_1s_max, fps);
	}
	ret->fps = frames_fps(frames);
	ret->frame_time_ms = 1000.0 / ret->fps;
}

static void recent_sums(
	const struct frames *frames, const struct window_query *query, struct frames_stats *ret)
{
	const struct frames_series *series = &frames->latencies;
	double sum_ns = 0;
	for (size_t i = 0; i < series->filled; i++) {
		if (window_wants(query->filter, series->words[i])) {
			sum_ns += (double)frames->sums_ns[i];
		}
	}
	if (sum_ns > 0) {
		ret->stage_sum_mean_ms = sum_ns / (double)ret->latencies.count / 1e6;
	}
}

/* The percentile of 1/dt over the deltas that are not 0. Rates rise as times fall, and between two
 * ranks it is the rates that are interpolated: 1/dt of the percentile of dt is another number. */
static double rate_percentile(const struct proto_histogram *h, double p, bool nearest)
{
	uint64_t count = h->count - proto_histogram_in(h, 0);
	if (count == 0) {
		return (double)NAN;
	}
	double k = (double)(count - 1) * p / 100;
	uint64_t rank = nearest ? nearest_rank(count, p) : (uint64_t)k;
	double part = nearest ? 0 : k - (double)rank;
	double rate = 1e9 / proto_histogram_at(h, h->count - 1 - rank);
	if (part > 0 && rank + 1 < count) {
		double next = 1e9 / proto_histogram_at(h, h->count - 2 - rank);
		rate += part * (next - rate);
	}
	return rate;
}

static void lifetime_rates(
	const struct frames *frames, const struct window_query *query, struct frames_stats *ret)
{
	struct proto_histogram difference;
	const struct window_view view = view_of(&frames->times);
	const struct proto_histogram *h = lifetime_of(&view, query->filter, &difference);
	/* the mean of 1/dt is not kept over a lifetime */
	ret->fps_min = rate_percentile(h, 0, query->nearest);
	ret->fps_max = rate_percentile(h, 100, query->nearest);
	ret->fps_p5 = rate_percentile(h, 5, query->nearest);
	ret->fps_p95 = rate_percentile(h, 95, query->nearest);
	proto_histogram_finish(&difference);
	if (query->filter != WINDOW_ALL && ret->times.mean > 0) {
		ret->fps = 1000 / ret->times.mean;
		ret->frame_time_ms = ret->times.mean;
	}
}

static void lifetime_fps(const struct frames *frames, struct frames_stats *ret)
{
	if (frames->second.max > 0 || frames->second.min != UINT32_MAX) {
		ret->fps_1s_min = frames->second.min;
		ret->fps_1s_max = frames->second.max;
	}
	uint64_t elapsed_ns = frames->last_tick_ns - frames->first_tick_ns - frames->paused_ns;
	if (frames->times.all.count > 0 && elapsed_ns > 0) {
		ret->fps = (double)frames->times.all.count / ((double)elapsed_ns / 1e9);
		ret->frame_time_ms = 1000.0 / ret->fps;
	}
}

static void stats_clear(struct frames_stats *ret)
{
	*ret = (struct frames_stats){.fps = NAN,
		.frame_time_ms = NAN,
		.fps_mean = NAN,
		.fps_min = NAN,
		.fps_max = NAN,
		.fps_p5 = NAN,
		.fps_p95 = NAN,
		.fps_1s_min = NAN,
		.fps_1s_max = NAN,
		.stage_sum_mean_ms = NAN,
		.in_flight = NAN};
	proto_summarize(NULL, 0, &ret->times);
	proto_summarize(NULL, 0, &ret->latencies);
}

void frames_ask(const struct frames *frames, const struct window_query *query, double *scratch,
	struct frames_stats *ret)
{
	stats_clear(ret);
	ret->exact = !query->lifetime;
	if (query->filter != WINDOW_ALL &&
		(query->lifetime
				? frames->times.unknown_count + frames->latencies.unknown_count > 0
				: any_unknown(&frames->times) || any_unknown(&frames->latencies))) {
		ret->reason = "the throttle state of some frames is not known";
		return;
	}
	const struct window_view times = view_of(&frames->times);
	const struct window_view latencies = view_of(&frames->latencies);
	window_ask(&times, query, scratch, &ret->times);
	ret->sufficient = ret->times.count >= 2;
	if (!ret->sufficient) {
		const size_t count = ret->times.count;
		proto_summarize(NULL, 0, &ret->times);
		ret->times.count = count;
	} else if (query->lifetime) {
		lifetime_rates(frames, query, ret);
	} else {
		recent_rates(query, scratch, scratch + frames->window, ret);
	}
	window_ask(&latencies, query, scratch, &ret->latencies);
	if (!query->lifetime) {
		recent_sums(frames, query, ret);
	}
	if (query->filter == WINDOW_ALL) {
		(query->lifetime ? lifetime_fps : recent_fps)(frames, ret);
	}
	if (ret->times.mean > 0) {
		ret->in_flight = ret->latencies.mean / ret->times.mean;
	}
}

void frames_stats(const struct frames *frames, double *scratch, struct frames_stats *ret)
{
	const struct window_query recent = {.filter = WINDOW_ALL};
	frames_ask(frames, &recent, scratch, ret);
}
