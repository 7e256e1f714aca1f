/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c: computes statistics over long spans: the daemon adds each event's duration (in the
 * header, it is one of the few things done per event), and queries, sessions and reports merge,
 * subtract and read here. Sums are integers of several words: a deviation of 1 us around 20 ms
 * after 1e9 events is a difference in the tenth digit, which a double no longer has.
 */
#include "proto/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/multiply.h"
#include "proto/percentile.h"

struct cursor {
	uint32_t bucket;
	uint64_t before; /* events in lower buckets */
	uint64_t here;
};

/* Words are stored lowest first. */
static void wide_add(uint64_t *into, const uint64_t *from, size_t words)
{
	uint64_t carry = 0;
	for (size_t i = 0; i < words; i++) {
		uint64_t add = from[i] + carry;
		carry = add < carry;
		into[i] += add;
		carry += into[i] < add;
	}
}

/* True when the result is below 0 (and wrapped). */
static bool wide_subtract(uint64_t *from, const uint64_t *what, size_t words)
{
	uint64_t borrow = 0;
	for (size_t i = 0; i < words; i++) {
		uint64_t take = what[i] + borrow;
		borrow = take < borrow;
		borrow += from[i] < take;
		from[i] -= take;
	}
	return borrow != 0;
}

/* ret has as many words as a and b together. */
static void wide_multiply(
	const uint64_t *a, size_t a_words, const uint64_t *b, size_t b_words, uint64_t *ret)
{
	for (size_t i = 0; i < a_words + b_words; i++) {
		ret[i] = 0;
	}
	for (size_t i = 0; i < a_words; i++) {
		uint64_t carry = 0;
		for (size_t j = 0; j < b_words; j++) {
			uint64_t high, low = proto_multiply(a[i], b[j], &high);
			low += carry;
			high += low < carry;
			ret[i + j] += low;
			carry = high + (ret[i + j] < low);
		}
		ret[i + b_words] = carry;
	}
}

static double wide_double(const uint64_t *words, size_t count)
{
	double value = 0;
	for (size_t i = count; i-- > 0;) {
		value = value * 0x1p64 + (double)words[i];
	}
	return value;
}

void proto_histogram_init(struct proto_histogram *h, proto_calloc *alloc)
{
	*h = (struct proto_histogram){.min = UINT64_MAX, .calloc = alloc};
}

static uint32_t *memory_of(const struct proto_histogram *h)
{
	return h->complete ? h->buckets - h->first : h->buckets;
}

void proto_histogram_finish(struct proto_histogram *h)
{
	if (h) {
		free(memory_of(h));
		free(h->carries);
	}
}

size_t proto_histogram_bytes(const struct proto_histogram *h)
{
	size_t buckets = h->complete ? PROTO_HISTOGRAM_BUCKETS : h->held;
	return sizeof(*h) + buckets * sizeof(*h->buckets) + (h->carries ? sizeof(*h->carries) : 0);
}

/* The first bucket of the octave, and the one behind its last. Values below the octaves count as
 * one. */
static uint32_t octave_first(uint32_t bucket)
{
	const uint32_t exact = PROTO_HISTOGRAM_EXACT;
	return bucket < exact ? 0 : bucket - (bucket - exact) % PROTO_HISTOGRAM_PER_OCTAVE;
}

static uint32_t octave_end(uint32_t bucket)
{
	uint32_t end = bucket < PROTO_HISTOGRAM_EXACT
			       ? PROTO_HISTOGRAM_EXACT
			       : octave_first(bucket) + PROTO_HISTOGRAM_PER_OCTAVE;
	return end < PROTO_HISTOGRAM_BUCKETS ? end : PROTO_HISTOGRAM_BUCKETS;
}

/* Holds the buckets [first, end) as well, from the second time on in memory for all of them. False:
 * memory is short, nothing changes. */
static bool hold(struct proto_histogram *h, uint32_t first, uint32_t end)
{
	uint32_t has_end = h->first + h->held;
	if (h->held > 0) {
		first = h->first < first ? h->first : first;
		end = has_end > end ? has_end : end;
	}
	if (end - first <= h->held) {
		return true;
	}
	bool complete = h->held > 0;
	uint32_t *memory = memory_of(h);
	if (!h->complete) {
		memory = h->calloc(
			complete ? PROTO_HISTOGRAM_BUCKETS : end - first, sizeof(*memory));
	}
	if (!memory) {
		return false;
	}
	if (!h->complete && complete) {
		memcpy(memory + h->first, h->buckets, h->held * sizeof(*memory));
		free(h->buckets);
	}
	h->complete = complete;
	h->buckets = complete ? memory + first : memory;
	h->first = first;
	h->held = (uint16_t)(end - first);
	return true;
}

/* The same for one bucket; of the first one, with an octave below and two above it. */
static bool hold_octave(struct proto_histogram *h, uint32_t bucket)
{
	uint32_t first = octave_first(bucket), end = octave_end(bucket);
	if (h->held == 0) {
		first = first > 0 ? octave_first(first - 1) : 0;
		end = octave_end(end);
		end = octave_end(end);
	}
	return hold(h, first, end);
}

void proto_histogram_add_square(struct proto_histogram *h, uint64_t value_ns)
{
	uint64_t square[3] = {0};
	square[0] = proto_multiply(value_ns, value_ns, &square[1]);
	wide_add(h->squares, square, 3);
}

uint64_t proto_histogram_add_words(
	struct proto_histogram *h, const uint64_t *words, size_t n, uint64_t mask)
{
	uint64_t sum[2] = {0}, squares = 0, carries = 0, min = h->min, max = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t value_ns = words[i] & mask;
		sum[0] += value_ns;
		sum[1] += sum[0] < value_ns;
		if (__builtin_expect(value_ns >> 32 == 0, 1)) {
			uint64_t square = value_ns * value_ns;
			squares += square;
			carries += squares < square;
		} else {
			proto_histogram_add_square(h, value_ns);
		}
		min = value_ns < min ? value_ns : min;
		max = value_ns > max ? value_ns : max;
		proto_histogram_count(h, proto_histogram_bucket(value_ns));
	}
	h->count += n;
	wide_add(h->sum, sum, 2);
	wide_add(h->squares, (const uint64_t[]){squares, carries, 0}, 3);
	h->min = min;
	h->max = max > h->max ? max : h->max;
	return max;
}

static uint32_t distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

/* False when memory is short. */
static bool add_carry(struct proto_histogram *h, uint32_t bucket, uint32_t units)
{
	struct proto_histogram_carries *carries = h->carries;
	if (!carries) {
		carries = h->carries = h->calloc(1, sizeof(*carries));
	}
	if (!carries) {
		return false;
	}
	uint32_t best = 0;
	for (uint32_t i = 1; i < carries->count; i++) {
		if (distance(carries->bucket[i], bucket) <
			distance(carries->bucket[best], bucket)) {
			best = i;
		}
	}
	bool found = carries->count > 0 && carries->bucket[best] == bucket;
	if (!found && carries->count < PROTO_HISTOGRAM_CARRIES) {
		best = carries->count++;
		carries->bucket[best] = (uint16_t)bucket;
	}
	carries->carry[best] += units;
	return true;
}

void proto_histogram_carry(struct proto_histogram *h, uint32_t bucket)
{
	if (!add_carry(h, bucket, 1)) {
		h->buckets[bucket - h->first] = UINT32_MAX;
	}
}

/* Counts n times 2^0 and units times 2^32. False: not in this bucket, or not all, for lack of
 * memory. */
static bool count_many(struct proto_histogram *h, uint32_t bucket, uint32_t n, uint32_t units)
{
	bool complete = bucket - h->first < h->held || hold_octave(h, bucket);
	if (h->held == 0) {
		return false;
	}
	uint32_t last = h->first + h->held - 1;
	bucket = bucket < h->first ? h->first : bucket > last ? last : bucket;
	uint32_t *count = &h->buckets[bucket - h->first];
	uint32_t more = *count + n;
	units += more < n;
	bool carried = units == 0 || add_carry(h, bucket, units);
	*count = carried ? more : UINT32_MAX;
	return complete && carried;
}

void proto_histogram_count_outside(struct proto_histogram *h, uint32_t bucket)
{
	count_many(h, bucket, 1, 0);
}

uint64_t proto_histogram_in(const struct proto_histogram *h, uint32_t bucket)
{
	uint64_t count = bucket - h->first < h->held ? h->buckets[bucket - h->first] : 0;
	for (uint32_t i = 0; h->carries && i < h->carries->count; i++) {
		if (h->carries->bucket[i] == bucket) {
			count += (uint64_t)h->carries->carry[i] << 32;
		}
	}
	return count;
}

/* The least value of a bucket; *ret_above is what its greatest has more. The last bucket ends at
 * max. */
static uint64_t bucket_low(uint32_t bucket, uint64_t max, uint64_t *ret_above)
{
	if (bucket < PROTO_HISTOGRAM_EXACT) {
		*ret_above = 0;
		return bucket;
	}
	uint32_t octave = (bucket - PROTO_HISTOGRAM_EXACT) / PROTO_HISTOGRAM_PER_OCTAVE;
	uint32_t at = (bucket - PROTO_HISTOGRAM_EXACT) % PROTO_HISTOGRAM_PER_OCTAVE;
	uint64_t low = 128 + (at < 32 ? at * 2 : 64 + (at - 32) * 3);
	uint64_t width = at < 32 ? 2 : at + 1 < PROTO_HISTOGRAM_PER_OCTAVE ? 3 : 1;
	low <<= octave;
	*ret_above = (width << octave) - 1;
	if (bucket == PROTO_HISTOGRAM_LAST) {
		*ret_above = max > low ? max - low : 0;
	}
	return low;
}

static uint64_t bucket_middle(uint32_t bucket, uint64_t max)
{
	uint64_t above, low = bucket_low(bucket, max, &above);
	return low + above / 2;
}

bool proto_histogram_add_all(struct proto_histogram *into, const struct proto_histogram *from)
{
	if (from->count == 0) {
		return true;
	}
	into->count += from->count;
	wide_add(into->sum, from->sum, 2);
	wide_add(into->squares, from->squares, 3);
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
	bool complete = from->held > 0 && hold(into, from->first, from->first + from->held);
	for (uint32_t i = 0, n = from->carries ? from->carries->count : 0; i < n; i++) {
		const struct proto_histogram_carries *carries = from->carries;
		complete = count_many(into, carries->bucket[i], 0, carries->carry[i]) && complete;
	}
	const uint32_t *n = from->buckets;
	uint32_t i = 0;
	if (complete && into->count <= UINT32_MAX) { /* no bucket can pass that: four at once */
		typedef uint32_t four __attribute__((vector_size(16)));
		uint32_t *to = into->buckets + (from->first - into->first);
		for (; i + 4 <= from->held; i += 4) {
			four sum, more;
			memcpy(&sum, to + i, sizeof(sum));
			memcpy(&more, n + i, sizeof(more));
			sum += more;
			memcpy(to + i, &sum, sizeof(sum));
		}
	}
	for (; i < from->held; i++) {
		while (from->held - i > 4 && (n[i] | n[i + 1] | n[i + 2] | n[i + 3]) == 0) {
			i += 4; /* most are empty */
		}
		uint32_t at = from->first + i - into->first;
		uint32_t *count = at < into->held ? &into->buckets[at] : NULL;
		if (count && *count + n[i] >= n[i]) {
			*count += n[i];
		} else if (n[i] > 0) {
			complete = count_many(into, from->first + i, n[i], 0) && complete;
		}
	}
	return complete;
}

static void estimate_sums(struct proto_histogram *h, uint64_t max)
{
	for (size_t i = 0; i < 3; i++) {
		h->squares[i] = 0;
	}
	h->sum[0] = h->sum[1] = 0;
	for (uint32_t i = h->first; i < h->first + h->held; i++) {
		uint64_t count = proto_histogram_in(h, i), value = bucket_middle(i, max);
		uint64_t square[2], term[3];
		wide_multiply(&value, 1, &count, 1, term);
		wide_add(h->sum, term, 2);
		wide_multiply(&value, 1, &value, 1, square);
		wide_multiply(square, 2, &count, 1, term);
		wide_add(h->squares, term, 3);
	}
}

/* The mean is exact: min and max can't be on the wrong side of it. */
static void include_mean(struct proto_histogram *h, uint64_t max)
{
	double mean = wide_double(h->sum, 2) / (double)h->count;
	if (mean < (double)h->min) {
		h->min = (uint64_t)mean;
	}
	if (mean > (double)h->max) {
		h->max = ceil(mean) < (double)max ? (uint64_t)ceil(mean) : max;
	}
}

bool proto_histogram_subtract(const struct proto_histogram *a, const struct proto_histogram *b,
	struct proto_histogram *out)
{
	if (b->count == 0) {
		proto_histogram_add_all(out, a);
		return true;
	}
	bool part = true;
	uint32_t first = PROTO_HISTOGRAM_BUCKETS, last = 0;
	hold(out, a->first, a->first + a->held); /* at once */
	for (uint32_t i = 0; i < PROTO_HISTOGRAM_BUCKETS; i++) {
		uint64_t have = proto_histogram_in(a, i), take = proto_histogram_in(b, i);
		if (take >= have) {
			part = part && take == have;
			continue;
		}
		out->count += have - take;
		count_many(out, i, (uint32_t)(have - take), (uint32_t)((have - take) >> 32));
		first = first < i ? first : i;
		last = i;
	}
	if (out->count == 0) {
		return part;
	}
	wide_add(out->sum, a->sum, 2);
	wide_add(out->squares, a->squares, 3);
	bool sum_below = wide_subtract(out->sum, b->sum, 2);
	bool squares_below = wide_subtract(out->squares, b->squares, 3);
	if (!part || sum_below || squares_below) {
		part = false;
		estimate_sums(out, a->max);
	}
	out->min = part && b->min > a->min ? a->min : bucket_middle(first, a->max);
	out->max = part && b->max < a->max ? a->max : bucket_middle(last, a->max);
	if (part && out->count == 1) {
		out->min = out->max = out->sum[0];
	}
	include_mean(out, a->max);
	return part;
}

/* At the first bucket that may hold anything. */
static struct cursor cursor_of(const struct proto_histogram *h)
{
	return (struct cursor){.bucket = h->first, .here = proto_histogram_in(h, h->first)};
}

static double value_at(const struct proto_histogram *h, struct cursor *at, uint64_t rank)
{
	if (rank == 0) {
		return (double)h->min;
	}
	if (rank >= h->count - 1) {
		return (double)h->max;
	}
	if (rank < at->before) {
		*at = cursor_of(h);
	}
	while (rank - at->before >= at->here && at->bucket < PROTO_HISTOGRAM_LAST) {
		at->before += at->here;
		at->here = proto_histogram_in(h, ++at->bucket);
	}
	if (at->here == 0) { /* memory was short */
		return (double)h->max;
	}
	uint64_t above, low = bucket_low(at->bucket, h->max, &above);
	double within = ((double)(rank - at->before) + 0.5) / (double)at->here;
	if (at->bucket != PROTO_HISTOGRAM_LAST) {
		within = 0.5 + (within - 0.5) / 4;
	}
	double value = (double)low + (double)above * within;
	return fmin(fmax(value, (double)h->min), (double)h->max);
}

double proto_histogram_at(const struct proto_histogram *h, uint64_t rank)
{
	struct cursor at = cursor_of(h);
	return h->count > 0 ? value_at(h, &at, rank) : (double)NAN;
}

void proto_histogram_percentiles(
	const struct proto_histogram *h, const double *p, double *ret_ns, size_t n)
{
	struct cursor at = cursor_of(h);
	for (size_t i = 0; i < n; i++) {
		if (h->count == 0) {
			ret_ns[i] = NAN;
			continue;
		}
		double k = (double)(h->count - 1) * p[i] / 100.0;
		uint64_t rank = 0;
		if (k > 0) {
			rank = k < (double)(h->count - 1) ? (uint64_t)k : h->count - 1;
		}
		ret_ns[i] = value_at(h, &at, rank);
		double part = k - (double)rank;
		if (k > 0 && part > 0 && rank < h->count - 1) {
			struct cursor next = at; /* the next p may begin at this rank again */
			ret_ns[i] += part * (value_at(h, &next, rank + 1) - ret_ns[i]);
		}
	}
}

void proto_histogram_summary(const struct proto_histogram *h, struct proto_summary *ret)
{
	static const double p[] = {50, 90, 95, 99};
	double at[4];
	proto_summarize(NULL, 0, ret);
	if (h->count == 0) {
		return;
	}
	/* count² times the variance = count * squares - sum², all digits of it */
	uint64_t spread[4], mean_part[4];
	wide_multiply(h->squares, 3, &h->count, 1, spread);
	wide_multiply(h->sum, 2, h->sum, 2, mean_part);
	double deviation = wide_subtract(spread, mean_part, 4) ? 0 : sqrt(wide_double(spread, 4));
	double count = (double)h->count;
	proto_histogram_percentiles(h, p, at, 4);
	ret->count = (size_t)h->count;
	ret->mean = wide_double(h->sum, 2) / count / 1e6;
	ret->min = (double)h->min / 1e6;
	ret->max = (double)h->max / 1e6;
	ret->std = deviation / count / 1e6;
	if (h->count > 1) {
		ret->std_sample = deviation / sqrt(count) / sqrt(count - 1) / 1e6;
	}
	ret->p50 = at[0] / 1e6;
	ret->p90 = at[1] / 1e6;
	ret->p95 = at[2] / 1e6;
	ret->p99 = at[3] / 1e6;
}
