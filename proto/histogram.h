/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h: summarises long spans (a session, minutes, a lifetime) in bounded memory: a
 * log-linear histogram of durations.
 * Exact below 128 ns, then 54 buckets an octave up to a little over one day: 32 of 1/64 in its
 * lower half and 22 of 3/128 in its upper half, so that a bucket's middle is never more than 1/128
 * (0.78 %) from a value in it. (64 equal ones an octave are no better and do not fit in 10 KiB.)
 * Longer values share the last bucket. Count, sum, sum of squares, min and max are exact integers
 * for any values, so mean and std are exact as well; only percentiles are estimates.
 *
 * Buckets are kept for the octaves from the least to the greatest value, at first for four. The
 * first value outside of them takes memory for all, PROTO_HISTOGRAM_BYTES: nothing is allocated for
 * the rare values that come later. When memory is short a value is counted in the nearest bucket
 * there is, so that percentiles may be wrong.
 *
 * A bucket holds 2^32 - 1; what passes that goes to a carry entry (2^32 times 2^32). Only when
 * more than PROTO_HISTOGRAM_CARRIES buckets have passed 2^32 each, 2.7e11 events (3 days of 1 M/s,
 * 8 years of 1 kHz), 2^32 counts at once go to the nearest bucket that has an entry. Without memory
 * for the entries the bucket stays full. Count, min, max, mean and std never change by any of it.
 *
 * Not for two threads at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto_summary;

enum {
	PROTO_HISTOGRAM_EXACT = 128,		   /* below this each value has its bucket */
	PROTO_HISTOGRAM_PER_OCTAVE = 54,	   /* 32 in the lower half, 22 in the upper */
	PROTO_HISTOGRAM_LAST = 128 + 39 * 54 + 15, /* from 86.86e12 ns, 24 h 7 min */
	PROTO_HISTOGRAM_BUCKETS = PROTO_HISTOGRAM_LAST + 1,
	PROTO_HISTOGRAM_CARRIES = 64,
};

struct proto_histogram_carries {
	uint32_t count, unused; /* entries in use */
	uint16_t bucket[PROTO_HISTOGRAM_CARRIES];
	uint32_t carry[PROTO_HISTOGRAM_CARRIES]; /* times 2^32 */
};

typedef void *proto_calloc(size_t count, size_t size);

struct proto_histogram {
	uint64_t count;
	uint64_t min, max;   /* UINT64_MAX and 0 when empty */
	uint64_t sum[2];     /* ns, lowest word first */
	uint64_t squares[3]; /* of ns * ns, lowest word first */
	uint32_t *buckets;   /* those that are held; NULL before the first value */
	uint32_t first;
	uint16_t held;
	bool complete;				 /* there is memory for all buckets */
	struct proto_histogram_carries *carries; /* NULL until a bucket passes 2^32 */
	proto_calloc *calloc;
};

/* What a histogram takes at most. */
#define PROTO_HISTOGRAM_BYTES                                                          \
	(sizeof(struct proto_histogram) + PROTO_HISTOGRAM_BUCKETS * sizeof(uint32_t) + \
		sizeof(struct proto_histogram_carries))

_Static_assert(PROTO_HISTOGRAM_BYTES <= 10 * 1024, "a histogram fits in 10 KiB");

/* alloc: where it gets memory from, which free(3) releases. */
void proto_histogram_init(struct proto_histogram *h, proto_calloc *alloc);
/* Frees what it holds. NULL is fine. */
void proto_histogram_finish(struct proto_histogram *h);
/* What it takes now. */
size_t proto_histogram_bytes(const struct proto_histogram *h);

/* The rare parts of an addition: a bucket that is not held or has passed 2^32, and values of 4.3 s
 * and more. */
void proto_histogram_count_outside(struct proto_histogram *h, uint32_t bucket);
void proto_histogram_carry(struct proto_histogram *h, uint32_t bucket);
void proto_histogram_add_square(struct proto_histogram *h, uint64_t value_ns);

/* The bucket of a value. Within an octave the lower half is cut by 2/128, the upper half by 3/128;
 * the two lines cross in the middle, so the smaller one is right. n * 171 >> 9 is n / 3 here. */
static inline uint32_t proto_histogram_bucket(uint64_t value_ns)
{
	if (value_ns < PROTO_HISTOGRAM_EXACT) {
		return (uint32_t)value_ns;
	}
	uint32_t shift = (63 ^ (uint32_t)__builtin_clzll(value_ns)) - 7; /* 0 for 128 … 255 */
	uint32_t x = (uint32_t)(value_ns >> shift) & 127;
	uint32_t lower = x / 2;
	/* (x - 64) / 3 + 32, of unsigned numbers: 66 / 3 more, and 22 less */
	uint32_t upper = ((x + 2) * 171 >> 9) + 10;
	uint32_t bucket = PROTO_HISTOGRAM_EXACT + shift * PROTO_HISTOGRAM_PER_OCTAVE +
			  (lower < upper ? lower : upper);
	return bucket < PROTO_HISTOGRAM_LAST ? bucket : PROTO_HISTOGRAM_LAST;
}

static inline void proto_histogram_count(struct proto_histogram *h, uint32_t bucket)
{
	uint32_t at = bucket - h->first;
	if (__builtin_expect(at >= h->held, 0)) {
		proto_histogram_count_outside(h, bucket);
	} else if (__builtin_expect(++h->buckets[at] == 0, 0)) {
		proto_histogram_carry(h, bucket);
	}
}

/* Any value. Allocates when it is the first one, and the first outside of what is held. */
static inline void proto_histogram_add(struct proto_histogram *h, uint64_t value_ns)
{
	h->count++;
	h->sum[0] += value_ns;
	h->sum[1] += h->sum[0] < value_ns;
	if (__builtin_expect(value_ns >> 32 == 0, 1)) {
		uint64_t square = value_ns * value_ns;
		h->squares[0] += square;
		h->squares[1] += h->squares[0] < square; /* ends after 2^64 of these */
	} else {
		proto_histogram_add_square(h, value_ns);
	}
	if (value_ns < h->min) {
		h->min = value_ns;
	}
	if (value_ns > h->max) {
		h->max = value_ns;
	}
	proto_histogram_count(h, proto_histogram_bucket(value_ns));
}

/* The same for n values, which are the lower bits of words. Returns the greatest of them. */
uint64_t proto_histogram_add_words(
	struct proto_histogram *h, const uint64_t *words, size_t n, uint64_t mask);

/* Adds all of from to into; from may be into (everything twice). False: memory was short. */
bool proto_histogram_add_all(struct proto_histogram *into, const struct proto_histogram *from);

/*
 * *out = a - b bucket by bucket (unthrottled = all - throttled); out is empty before. Returns false
 * when b is not a part of a: then no bucket is below 0, and sum and squares are estimated
 * from the buckets, as are min and max. Otherwise count, mean and std are exact; min is a's where b
 * did not have it too, else the middle of the lowest bucket left (within 1/128), or the value
 * itself when one is left. The same for max.
 */
bool proto_histogram_subtract(const struct proto_histogram *a, const struct proto_histogram *b,
	struct proto_histogram *out);

/*
 * n percentiles p (0..100, ascending is fastest) in ns. As in proto/percentile.h: between the
 * values at the ranks around k = (count-1)*p/100. Rank 0 is min and the last rank max; the value of
 * another rank lies in its bucket, ranks spread evenly over the middle quarter of the bucket and
 * not outside of [min, max]. Up to one day each is within 0.98 % (5/8 of 1/64) of the exact result
 * whatever the distribution: over the whole width it would be 1.56 %. NAN when h is empty.
 */
void proto_histogram_percentiles(
	const struct proto_histogram *h, const double *p, double *ret_ns, size_t n);

/* Events in a bucket. */
uint64_t proto_histogram_in(const struct proto_histogram *h, uint32_t bucket);

/* The value at a rank, 0 … count - 1 (the last one above), in ns, as estimated above. NAN when h is
 * empty. */
double proto_histogram_at(const struct proto_histogram *h, uint64_t rank);

/* Like proto_summarize, in ms; percentiles as above, everything else exact. Empty: NANs. */
void proto_histogram_summary(const struct proto_histogram *h, struct proto_summary *ret);
