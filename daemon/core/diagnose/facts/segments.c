/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c: divides time into segments, tells fast ones from slow ones, and judges columns. */
#include "daemon/core/diagnose/facts/segments.h"

#include <string.h>

#include "proto/percentile.h"

enum {
	FRAMES_MIN = 5, /* of a segment, on average */
	NOW_FRAMES_MIN = 10,
	RECORD_SEGMENTS = 42, /* when there is an older time: two thirds */
	MATCH_MIN = 8,
	SLOPE_MIN = 4,
};

static const uint64_t SECOND = 1000000000;
static const uint64_t NOW_NS = 10 * UINT64_C(1000000000);
/* older values say little about what the app reaches today */
static const uint64_t OLDER_MAX_NS = 7200 * UINT64_C(1000000000);
static const uint64_t FINE_MAX_NS = 128 * UINT64_C(1000000000);
static const double SLOWER = 1.08;

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
	double frames = span->frames[span->count - 1];
	span->now = span->count - 1;
	while (span->now > span->older) {
		uint64_t length_ns = until_ns - span->segment[span->now].from_ns;
		uint64_t longer_ns = until_ns - span->segment[span->now - 1].from_ns;
		/* a time without any frame is not averaged with the one before */
		bool enough = frames >= NOW_FRAMES_MIN || frames == 0;
		if (longer_ns > third_ns + SECOND / 2 || (length_ns >= NOW_NS && enough)) {
			break;
		}
		frames += span->frames[--span->now];
	}
}

void span_divide(
	struct span *span, const struct past_frames *past, uint64_t since_ns, uint64_t until_ns)
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
	/* a frame that ends when it starts, and is all there is, starts after from_ns */
	uint64_t older_ns = from_ns > since_ns ? from_ns - since_ns : 0;
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
	size_t at = span->older;
	for (size_t i = 0; i < past->count; i++) {
		while (at + 1 < span->count && past->frame[i].end_ns > span->segment[at].to_ns) {
			at++;
		}
		struct segment *segment = &span->segment[at];
		segment->first = segment->count == 0 ? i : segment->first;
		segment->count++;
		span->frames[at]++;
	}
	choose_now(span);
}

/* Those of the segments before now whose frames are among the fastest, but for the very fastest. */
static void choose_usual(struct span *span, const double *frame_ms)
{
	column sorted;
	size_t count = 0, chosen = 0;
	for (size_t i = 0; i < span->now; i++) {
		if (!isnan(frame_ms[i])) {
			sorted[count++] = frame_ms[i];
		}
	}
	if (count < 2) {
		return;
	}
	proto_sort(sorted, count);
	double least_ms = sorted[count / 10];
	double most_ms = fmin(sorted[(count * 4 + 9) / 10 - 1], least_ms * SLOWER);
	for (size_t i = 0; i < span->now; i++) {
		span->is_usual[i] = frame_ms[i] >= least_ms && frame_ms[i] <= most_ms;
		chosen += span->is_usual[i];
	}
	span->has_usual = chosen >= 2;
}

static double mean_of(
	const struct span *span, const double *means, const double *weights, bool usual)
{
	double sum = 0, count = 0;
	for (size_t i = 0; i < span->count; i++) {
		double weight = weights ? weights[i] : 1;
		if ((usual ? span->is_usual[i] : i >= span->now) && weight > 0 &&
			!isnan(means[i])) {
			sum += means[i] * weight;
			count += weight;
		}
	}
	return count > 0 ? sum / count : (double)NAN;
}

/* The limit of what is as fast as usual. */
static double slow_limit(const struct span *span, const double *square, double usual_ms)
{
	double frames = 0, segments = 0;
	for (size_t i = 0; square && i < span->count; i++) {
		bool known = span->is_usual[i] && !isnan(square[i]);
		frames += known ? span->frames[i] : 0;
		segments += known;
	}
	/* of the mean of a segment; older segments have no squares */
	double of_squares = square ? mean_of(span, square, span->frames, true) : (double)NAN;
	double sigma_ms = sqrt(fmax(of_squares - usual_ms * usual_ms, 0) * segments / frames);
	return fmax(usual_ms * SLOWER, usual_ms + (isnan(sigma_ms) ? 0 : 3 * sigma_ms));
}

/* Whether segments were slow until less than half of the time was over, and none since then. */
static bool only_first_slow(const struct span *span, const double *frame_ms)
{
	size_t end = 0, slow = 0, first = span->count;
	for (size_t i = 0; i < span->count; i++) {
		if (frame_ms[i] > span->slow_ms) {
			end = i + 1;
			slow++;
		} else if (!isnan(frame_ms[i]) && first == span->count) {
			first = i;
		}
	}
	return slow > 0 && end <= first && first <= span->count / 2;
}

void span_choose(struct span *span, const double *frame_ms, const double *square)
{
	memcpy(span->paced, frame_ms, sizeof(span->paced));
	choose_usual(span, frame_ms);
	span->usual_is_now = false;
	if (!span->has_usual) {
		return;
	}
	struct fact fact = span_fact(span, frame_ms, span->frames);
	span->slow_ms = slow_limit(span, square, fact.usual);
	if (fact.now * SLOWER < fact.usual) { /* never was it faster */
		span->usual_is_now = true;
		span->slow_ms = fact.now * SLOWER;
	}
	span->warming_up = only_first_slow(span, frame_ms);
}

struct fact span_fact(const struct span *span, const double *means, const double *weights)
{
	struct fact fact = {.now = mean_of(span, means, weights, false), .usual = NAN};
	if (span->has_usual) {
		fact.usual = span->usual_is_now ? fact.now : mean_of(span, means, weights, true);
	}
	return fact;
}

double span_length_s(const struct span *span, size_t from)
{
	return span->count > 0 ? (double)(span->segment[span->count - 1].to_ns -
					  span->segment[from].from_ns) /
					 1e9
			       : 0;
}

double span_since(const struct span *span, const double *means, double sign, double limit)
{
	size_t first = span->count;
	while (first > 0 && !(means[first - 1] * sign <= limit * sign)) {
		first--;
	}
	return first == 0 || first == span->count ? (double)NAN : span_length_s(span, first);
}

/* Sen 1968; the bound by ranks as in Gilbert 1987, 16.4.2. */
void span_slope(
	const struct span *span, size_t from, const double *means, double *slope, double *slope_low)
{
	double slopes[FACTS_SEGMENTS * (FACTS_SEGMENTS - 1) / 2], n = 0;
	size_t count = 0;
	*slope = *slope_low = NAN;
	for (size_t i = from; i < span->count; i++) {
		n += !isnan(means[i]);
		for (size_t k = from; k < i; k++) {
			uint64_t run_ns = span->segment[i].to_ns - span->segment[k].to_ns;
			if (!isnan(means[i] - means[k])) {
				slopes[count++] = (means[i] - means[k]) / ((double)run_ns / 1e9);
			}
		}
	}
	if (n < SLOPE_MIN) {
		return;
	}
	proto_sort(slopes, count);
	double interval = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18);
	double rank = ((double)count - interval) / 2;
	*slope = proto_percentile(slopes, count, 50);
	*slope_low = slopes[rank > 0 ? (size_t)rank : 0];
}

/* Equal values share the mean of their ranks; that of all ranks is 0. */
static double rank_of(const double *values, size_t count, size_t at)
{
	int above = 0;
	for (size_t i = 0; i < count; i++) {
		above += (values[at] > values[i]) - (values[at] < values[i]);
	}
	return above / 2.0;
}

double span_match(const struct span *span, const double *means, const double *others)
{
	column value, other;
	double both = 0, squares = 0, other_squares = 0;
	size_t count = 0;
	for (size_t i = 0; i < span->count; i++) {
		if (!isnan(means[i]) && !isnan(others[i])) {
			value[count] = means[i];
			other[count++] = others[i];
		}
	}
	for (size_t i = 0; i < count && count >= MATCH_MIN; i++) {
		double rank = rank_of(value, count, i), of_other = rank_of(other, count, i);
		both += rank * of_other;
		squares += rank * rank;
		other_squares += of_other * of_other;
	}
	return squares > 0 && other_squares > 0 ? both / sqrt(squares * other_squares)
						: (double)NAN;
}
