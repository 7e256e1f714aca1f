/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h: declares the recent window and the lifetime that stages and frame streams have in
 * common, and how a query selects from them. A window is a ring of words: a duration and, in the
 * two highest bits, the hardware's state at its end. A lifetime is a histogram of all durations and
 * one of those that the hardware throttled.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/throttle.h"
#include "proto/histogram.h"
#include "proto/percentile.h"

#define STAGE_WORD_SHIFT 62
#define STAGE_WORD_DURATION ((UINT64_C(1) << STAGE_WORD_SHIFT) - 1)

enum window_filter { WINDOW_ALL, WINDOW_THROTTLED, WINDOW_UNTHROTTLED };

struct window_query {
	bool lifetime; /* else the recent window */
	bool nearest;  /* percentiles by the nearest rank instead of linear interpolation */
	enum window_filter filter;
};

/* Of the recent window, all of it, by linear interpolation: what stages keep the answer to. */
static inline bool window_is_usual(const struct window_query *query)
{
	return !query->lifetime && !query->nearest && query->filter == WINDOW_ALL;
}

static inline uint64_t stage_word(uint64_t duration_ns, enum throttle_value state)
{
	return (duration_ns < STAGE_WORD_DURATION ? duration_ns : STAGE_WORD_DURATION) |
	       (uint64_t)state << STAGE_WORD_SHIFT;
}

static inline uint64_t stage_word_ns(uint64_t word)
{
	return word & STAGE_WORD_DURATION;
}

static inline enum throttle_value stage_word_state(uint64_t word)
{
	return (enum throttle_value)(word >> STAGE_WORD_SHIFT);
}

/* Whether a word of the window passes the filter. */
bool window_wants(enum window_filter filter, uint64_t word);

/* What stages and frame streams keep of their durations. */
struct window_view {
	const uint64_t *words;
	size_t filled;
	const struct proto_histogram *all, *throttled; /* the latter may be NULL */
	struct proto_guess *guess;		       /* of all words; may be NULL */
};

/* Summarises the recent window or the lifetime, of what passes the filter. scratch holds `filled`
 * doubles; it is untouched for a lifetime, else, without a guess, it holds the durations in ns, in
 * any order. */
void window_ask(const struct window_view *view, const struct window_query *query, double *scratch,
	struct proto_summary *ret);

/* Summarises durations or rates, which it sorts. */
void window_summarize(double *values, size_t count, bool nearest, struct proto_summary *ret);

/* The histogram of the lifetime that the filter leaves, which may be *difference; NULL: there is
 * none. The caller finishes *difference in any case. */
const struct proto_histogram *lifetime_of(const struct window_view *view, enum window_filter filter,
	struct proto_histogram *difference);

/* The index floor(count * p / 100), at most count - 1, as in proto_percentile_nearest(). */
uint64_t nearest_rank(uint64_t count, double p);
