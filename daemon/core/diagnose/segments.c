/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c: divides time into segments and tells fast ones from slow ones. */
#include "daemon/core/diagnose/segments.h"

#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "proto/percentile.h"

enum {
	FRAMES_MIN = 5, /* of a segment, on average */
	NOW_FRAMES_MIN = 10,
	RECORD_SEGMENTS = 42, /* when there is an older time: two thirds */
};

static const uint64_t SECOND = 1000000000;
static const uint64_t NOW_NS = 10 * UINT64_C(1000000000);
/* older values say little about what the app reaches today */
static const uint64_t OLDER_MAX_NS = 7200 * UINT64_C(1000000000);
static const uint64_t FINE_MAX_NS = 128 * UINT64_C(1000000000);
static const double SLOWER = 1.08;

void segment_add(struct segment *segment, int measure, double mean, double frames)
{
	if (isfinite(mean) && frames > 0) {
		segment->of[measure].sum += mean * frames;
		segment->of[measure].count += frames;
	}
}

double segment_mean(const struct segment *segment, int measure)
{
	double count = segment->of[measure].count;
	return count > 0 ? segment->of[measure].sum / count : (double)NAN;
}

static void add_frame(struct segment *segment, const struct past_frames *past,
	const struct past_frame *frame, double deadline_ms)
{
	double delta_ms = frame->delta_ns > 0 ? (double)frame->delta_ns / 1e6 : (double)NAN;
	double latency_ms = frame->id == PROTO_NO_FRAME || frame->start_ns == frame->end_ns
				    ? (double)NAN
				    : (double)(frame->end_ns - frame->start_ns) / 1e6;
	double took_ms = isnan(latency_ms) ? delta_ms : latency_ms;
	bool judged = deadline_ms > 0 && !isnan(took_ms);
	bool delayed = frame->has_context && frame->run_delay_us != PROTO_CPU_NOT_MEASURED;
	double context = frame->has_context ? 1 : (double)NAN;
	const double value[MEASURE_STAGE_MS] = {
		[MEASURE_FRAME_MS] = delta_ms,
		[MEASURE_FRAME_SQUARE] = delta_ms * delta_ms,
		[MEASURE_BUSY_MS] = past->stages > 0 ? (double)frame->busy_ms : (double)NAN,
		[MEASURE_LATENCY_MS] = latency_ms,
		[MEASURE_MISSED] = judged ? took_ms > deadline_ms : (double)NAN,
		[MEASURE_THROTTLED] = frame->throttled == THROTTLE_UNKNOWN
					      ? (double)NAN
					      : frame->throttled == THROTTLE_YES,
		[MEASURE_RUN_DELAY_MS] = delayed ? frame->run_delay_us / 1e3 : (double)NAN,
		[MEASURE_INVOLUNTARY] = context * frame->involuntary,
		[MEASURE_VOLUNTARY] = context * frame->voluntary,
		[MEASURE_MAJOR_FAULTS] = context * frame->major_faults,
		[MEASURE_MINOR_FAULTS] = context * frame->minor_faults,
	};
	segment->frames++;
	for (int i = 0; i < MEASURE_STAGE_MS; i++) {
		segment_add(segment, i, value[i], 1);
	}
	for (int i = 0; i < (int)past->stages; i++) {
		double ms = (double)frame->stage_ms[i];
		segment_add(segment, MEASURE_STAGE_MS + i, isnan(ms) ? 0 : ms, 1);
		segment_add(segment, MEASURE_WAIT_MS + i, (double)frame->wait_ms[i], 1);
	}
}

/* Appends at most max segments of equal length, of some time and some frames each. */
static void append(struct span *span, uint64_t from_ns, uint64_t to_ns, double frames, size_t max)
{
	uint64_t length_ns = to_ns - from_ns;
	double count = fmin((double)length_ns / (double)span->least_ns, frames / FRAMES_MIN);
	max = count < 1 ? 1 : count < (double)max ? (size_t)count : max;
	for (size_t i = 0; i < max; i++) {
		struct segment *segment = &span->segment[span->count++];
		segment->from_ns = from_ns + length_ns * i / max;
		segment->to_ns = from_ns + length_ns * (i + 1) / max;
	}
}

static void choose_now(struct span *span)
{
	uint64_t until_ns = span->segment[span->count - 1].to_ns;
	uint64_t third_ns = (until_ns - span->segment[0].from_ns) / 3;
	double frames = span->segment[span->count - 1].frames;
	span->now = span->count - 1;
	while (span->now > span->older) {
		uint64_t length_ns = until_ns - span->segment[span->now].from_ns;
		uint64_t longer_ns = until_ns - span->segment[span->now - 1].from_ns;
		/* a time without any frame is not averaged with the one before */
		bool enough = frames >= NOW_FRAMES_MIN || frames == 0;
		if (longer_ns > third_ns + SECOND / 2 || (length_ns >= NOW_NS && enough)) {
			break;
		}
		frames += span->segment[--span->now].frames;
	}
}

void span_divide(struct span *span, const struct past_frames *past, uint64_t since_ns,
	uint64_t until_ns, double deadline_ms)
{
	memset(span, 0, sizeof(*span));
	span->slow_ms = NAN;
	if (past->count == 0 || until_ns <= since_ns) {
		return;
	}
	uint64_t from_ns = past->frame[0].start_ns;
	since_ns = past->whole ? from_ns : since_ns;
	from_ns = from_ns < since_ns ? since_ns : from_ns < until_ns ? from_ns : until_ns - 1;
	double length_s = (double)(until_ns - from_ns) / 1e9;
	uint64_t older_ns = from_ns - since_ns;
	older_ns = older_ns < OLDER_MAX_NS ? older_ns : OLDER_MAX_NS;
	bool has_older = (double)older_ns / 1e9 > fmax(length_s / 10, 5);
	/* segments as long as the buckets of history cost a tenth of reading its samples */
	span->least_ns = until_ns - from_ns + older_ns > FINE_MAX_NS ? 10 * SECOND : SECOND;
	if (has_older) {
		append(span, from_ns - older_ns, from_ns, INFINITY,
			FACTS_SEGMENTS - RECORD_SEGMENTS);
		span->older = span->count;
	}
	append(span, from_ns, until_ns, (double)past->count,
		has_older ? RECORD_SEGMENTS : FACTS_SEGMENTS);
	struct segment *segment = &span->segment[span->older];
	for (size_t i = 0; i < past->count; i++) {
		while (past->frame[i].end_ns > segment->to_ns &&
			segment < &span->segment[span->count - 1]) {
			segment++;
		}
		segment->first = segment->count == 0 ? i : segment->first;
		segment->count++;
		add_frame(segment, past, &past->frame[i], deadline_ms);
	}
	choose_now(span);
}

/* Those of the segments before now whose frames are among the fastest, but for the very fastest. */
static void choose_usual(struct span *span)
{
	double sorted[FACTS_SEGMENTS];
	size_t count = 0, chosen = 0;
	for (size_t i = 0; i < span->now; i++) {
		double ms = segment_mean(&span->segment[i], MEASURE_FRAME_MS);
		if (!isnan(ms)) {
			sorted[count++] = ms;
		}
	}
	if (count < 2) {
		return;
	}
	proto_sort(sorted, count);
	double least_ms = sorted[count / 10];
	double most_ms = fmin(sorted[(count * 4 + 9) / 10 - 1], least_ms * SLOWER);
	for (size_t i = 0; i < span->now; i++) {
		double ms = segment_mean(&span->segment[i], MEASURE_FRAME_MS);
		span->is_usual[i] = ms >= least_ms && ms <= most_ms;
		chosen += span->is_usual[i];
	}
	span->has_usual = chosen >= 2;
}

static double mean_of(const struct span *span, int measure, bool usual)
{
	double sum = 0, count = 0;
	for (size_t i = 0; i < span->count; i++) {
		if (usual ? span->is_usual[i] : i >= span->now) {
			sum += span->segment[i].of[measure].sum;
			count += span->segment[i].of[measure].count;
		}
	}
	return count > 0 ? sum / count : (double)NAN;
}

/* The limit of what is as fast as usual. */
static double slow_limit(const struct span *span)
{
	double usual_ms = mean_of(span, MEASURE_FRAME_MS, true);
	double square = mean_of(span, MEASURE_FRAME_SQUARE, true);
	double frames = 0, segments = 0;
	for (size_t i = 0; i < span->count; i++) {
		frames += span->is_usual[i] ? span->segment[i].of[MEASURE_FRAME_MS].count : 0;
		segments += span->is_usual[i];
	}
	/* of the mean of a segment; older segments have no squares */
	double sigma_ms = sqrt(fmax(square - usual_ms * usual_ms, 0) * segments / frames);
	return fmax(usual_ms * SLOWER, usual_ms + (isnan(sigma_ms) ? 0 : 3 * sigma_ms));
}

/* 1: slow, 0: not, -1: no frames. */
static int is_slow(const struct span *span, size_t i)
{
	double ms = segment_mean(&span->segment[i], MEASURE_FRAME_MS);
	return isnan(ms) ? -1 : ms > span->slow_ms;
}

static bool only_first_slow(const struct span *span)
{
	size_t slow = 0, seen = 0;
	while (slow < span->count && is_slow(span, slow) != 0) {
		seen += is_slow(span, slow++) == 1;
	}
	for (size_t i = slow; i < span->count; i++) {
		if (is_slow(span, i) == 1) {
			return false;
		}
	}
	return seen > 0 && slow <= span->count / 2;
}

void span_choose(struct span *span)
{
	choose_usual(span);
	if (!span->has_usual) {
		return;
	}
	double now_ms = mean_of(span, MEASURE_FRAME_MS, false);
	span->slow_ms = slow_limit(span);
	span->warming_up = only_first_slow(span);
	if (now_ms * SLOWER < mean_of(span, MEASURE_FRAME_MS, true)) { /* never was it faster */
		span->usual_is_now = true;
		span->slow_ms = now_ms * SLOWER;
		span->warming_up = only_first_slow(span);
	}
}

struct fact span_fact(const struct span *span, int measure)
{
	struct fact fact = {.now = mean_of(span, measure, false), .usual = NAN};
	if (span->has_usual) {
		fact.usual = span->usual_is_now ? fact.now : mean_of(span, measure, true);
	}
	return fact;
}

double span_slower_since(const struct span *span)
{
	size_t first = span->count;
	while (first > 0 && is_slow(span, first - 1) != 0) {
		first--;
	}
	bool as_usual = mean_of(span, MEASURE_FRAME_MS, false) <= span->slow_ms;
	if (!span->has_usual || as_usual || first == span->count || first == 0) {
		return NAN;
	}
	return (double)(span->segment[span->count - 1].to_ns - span->segment[first].from_ns) / 1e9;
}
