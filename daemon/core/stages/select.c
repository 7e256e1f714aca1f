/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.c: selects the order statistics of a window without sorting it. Its values are dealt into
 * equal ranges between the minimum and the maximum, and only the ranges that hold a wanted rank are
 * looked into, by the same again while they are large. Whatever the values are, each round cuts
 * the range by 256.
 */
#include <math.h>
#include <string.h>

#include "daemon/core/stages/stages.h"

enum { RANGES = 256, SMALL = 24 };

/* Values dealt into ranges: those of range i are value[begin[i]] … value[begin[i + 1] - 1]. */
struct deal {
	uint32_t begin[RANGES + 1];
};

static unsigned shift_of(uint64_t span)
{
	unsigned bits = span > 0 ? 64 - (unsigned)__builtin_clzll(span) : 0;
	return bits > 8 ? bits - 8 : 0;
}

static void deal(struct deal *deal, const uint64_t *from, size_t count, uint64_t min,
	unsigned shift, uint64_t *to)
{
	uint32_t end[RANGES + 1];
	memset(end, 0, sizeof(end));
	for (size_t i = 0; i < count; i++) {
		end[((from[i] - min) >> shift) + 1]++;
	}
	for (size_t i = 1; i <= RANGES; i++) {
		end[i] += end[i - 1];
	}
	memcpy(deal->begin, end, sizeof(end));
	for (size_t i = 0; i < count; i++) {
		to[end[(from[i] - min) >> shift]++] = from[i];
	}
}

/* The value of a rank. values are put in another order; spare is as large. */
static uint64_t value_at(uint64_t *values, size_t count, size_t rank, uint64_t *spare)
{
	while (count > SMALL) {
		uint64_t min = values[0], max = values[0];
		for (size_t i = 1; i < count; i++) {
			min = values[i] < min ? values[i] : min;
			max = values[i] > max ? values[i] : max;
		}
		if (min == max) {
			return min;
		}
		struct deal dealt;
		unsigned shift = shift_of(max - min);
		deal(&dealt, values, count, min, shift, spare);
		size_t range = 0;
		while (dealt.begin[range + 1] <= rank) {
			range++;
		}
		size_t begin = dealt.begin[range];
		memcpy(values, spare + begin, (dealt.begin[range + 1] - begin) * sizeof(*values));
		count = dealt.begin[range + 1] - begin;
		rank -= begin;
	}
	sort_small(values, count);
	return values[rank];
}

struct window {
	struct deal deal;
	size_t count;
	uint64_t *values;	  /* dealt */
	uint64_t *spare, *spare2; /* as large */
};

static double rank_ms(struct window *window, size_t rank)
{
	size_t low = 0, high = RANGES; /* the last range that begins at the rank or before */
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (window->deal.begin[middle] <= rank) {
			low = middle;
		} else {
			high = middle;
		}
	}
	size_t begin = window->deal.begin[low], count = window->deal.begin[low + 1] - begin;
	uint64_t *values = window->values + begin;
	if (count > SMALL) { /* looking into it takes values away */
		values = memcpy(window->spare, values, count * sizeof(*values));
	}
	return (double)value_at(values, count, rank - begin, window->spare2) / 1e6;
}

static double percentile(struct window *window, double p)
{
	double k = (double)(window->count - 1) * p / 100;
	size_t rank = (size_t)k;
	double low = rank_ms(window, rank);
	if (k <= (double)rank) {
		return low;
	}
	return low + (rank_ms(window, rank + 1) - low) * (k - (double)rank);
}

void stage_select(const struct stage *stage, uint64_t *scratch, struct stage_metrics *ret)
{
	size_t count = stage->filled;
	struct window window = {.count = count,
		.values = scratch,
		.spare = scratch + stage->window,
		.spare2 = scratch + 2 * stage->window};
	if (count == 0) {
		*ret = (struct stage_metrics){NAN, NAN, NAN, NAN};
		return;
	}
	uint64_t min = UINT64_MAX, max = 0, sum = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t value = stage_word_ns(stage->runs[i]);
		window.spare[i] = value;
		sum += value;
		min = value < min ? value : min;
		max = value > max ? value : max;
	}
	deal(&window.deal, window.spare, count, min, shift_of(max - min), window.values);
	ret->mean = (double)sum / (double)count / 1e6;
	ret->p50 = percentile(&window, 50);
	ret->p95 = percentile(&window, 95);
	ret->p99 = percentile(&window, 99);
}
