/* SPDX-License-Identifier: Apache-2.0 */
/* The long-span histogram against exact statistics: every bucket, every shape, carries, limits. */
#include "proto/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "proto/percentile.h"
#include "tests/unit/histograms.h"
#include "tests/unit/unit.h"

static const uint64_t MS = 1000000, DAY = 86400000000000;
static const double PERCENTILES[] = {0, 0.1, 1, 5, 25, 50, 75, 90, 95, 99, 99.9, 100};
enum { PERCENTILE_COUNT = sizeof(PERCENTILES) / sizeof(PERCENTILES[0]), SIZE_MAX_ = 1000000 };

static struct proto_histogram h, other, result;
static bool memory_is_short;

static void *calloc_or_not(size_t count, size_t size)
{
	return memory_is_short ? NULL : calloc(count, size);
}

static void reset(struct proto_histogram *histogram)
{
	proto_histogram_finish(histogram);
	proto_histogram_init(histogram, calloc_or_not);
}

static bool subtract(const struct proto_histogram *a, const struct proto_histogram *b,
	struct proto_histogram *out)
{
	reset(out);
	return proto_histogram_subtract(a, b, out);
}

static void within(double value, double want, double relative, const char *what)
{
	ck_assert_msg(fabs(value - want) <= relative * fabs(want), "%s: %.10g is not %.10g", what,
		value, want);
}

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* In (0, 1). */
static double uniform(uint64_t *seed)
{
	return ((double)(next(seed) >> 11) + 0.5) / 0x1p53;
}

static double gauss(uint64_t *seed)
{
	return sqrt(-2 * log(uniform(seed))) * cos(6.283185307179586 * uniform(seed));
}

static double lognormal(uint64_t *seed)
{
	return 8e6 * exp(0.8 * gauss(seed));
}

static double bimodal(uint64_t *seed)
{
	return next(seed) % 3 ? 5e6 + 1e4 * gauss(seed) : 60e6 + 3e6 * gauss(seed);
}

static double constant(uint64_t *seed)
{
	(void)seed;
	return 33333333;
}

static double pareto(uint64_t *seed)
{
	return fmin(2e4 / pow(uniform(seed), 1 / 1.1), 8e13);
}

static double tiny(uint64_t *seed)
{
	return (double)(next(seed) % 1000);
}

/* Two values at opposite ends of their buckets: what ranks spread over a bucket get wrong. */
static double edges(uint64_t *seed)
{
	return next(seed) % 2 ? 1 << 20 : (1 << 24) - 1;
}

static const struct {
	const char *name;
	double (*draw)(uint64_t *seed);
} SHAPES[] = {{"lognormal", lognormal}, {"bimodal", bimodal}, {"constant", constant},
	{"pareto", pareto}, {"tiny", tiny}, {"edges", edges}};
enum { SHAPE_COUNT = sizeof(SHAPES) / sizeof(SHAPES[0]) };

static void fill(
	struct proto_histogram *into, double *values, size_t count, size_t shape, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = (uint64_t)SHAPES[shape].draw(&seed);
		proto_histogram_add(into, value);
		values[i] = (double)value;
	}
}

/* Exact where the histogram promises it, 1 % elsewhere. values are ns and get sorted. */
static void compare(
	const struct proto_histogram *got, double *values, size_t count, const char *what)
{
	struct proto_summary exact, s;
	double ns[PERCENTILE_COUNT];
	proto_summarize(values, count, &exact);
	proto_histogram_summary(got, &s);
	ck_assert_uint_eq(s.count, count);
	within(s.mean, exact.mean / 1e6, 1e-9, what);
	within(s.min, exact.min / 1e6, 1e-15, what);
	within(s.max, exact.max / 1e6, 1e-15, what);
	ck_assert_msg(fabs(s.std - exact.std / 1e6) <= 1e-9 * exact.max / 1e6, "%s: std", what);
	if (count > 1) {
		ck_assert(fabs(s.std_sample - exact.std_sample / 1e6) <= 1e-9 * exact.max / 1e6);
	}
	within(s.p50, exact.p50 / 1e6, 0.01, what);
	within(s.p90, exact.p90 / 1e6, 0.01, what);
	within(s.p95, exact.p95 / 1e6, 0.01, what);
	within(s.p99, exact.p99 / 1e6, 0.01, what);
	proto_histogram_percentiles(got, PERCENTILES, ns, PERCENTILE_COUNT);
	for (size_t i = 0; i < PERCENTILE_COUNT; i++) {
		within(ns[i], proto_percentile(values, count, PERCENTILES[i]), 0.01, what);
		ck_assert(i == 0 || ns[i] >= ns[i - 1]);
	}
}

static uint64_t events_in_buckets(const struct proto_histogram *of)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < PROTO_HISTOGRAM_BUCKETS; i++) {
		count += proto_histogram_in(of, i);
	}
	return count;
}

TEST_TIMEOUT(60);

START_TEST(words_at_once_are_as_good_as_one_by_one)
{
	static struct proto_histogram at_once, one_by_one;
	const uint64_t high = UINT64_C(3) << 62;
	uint64_t words[257], seed = 11;
	reset(&at_once);
	reset(&one_by_one);
	for (size_t n = 0; n <= 257; n += 1 + n / 3) {
		for (size_t i = 0; i < n; i++) {
			words[i] = next(&seed) >> (2 + next(&seed) % 60);
			proto_histogram_add(&one_by_one, words[i]);
			words[i] |= next(&seed) & high;
		}
		proto_histogram_add_words(&at_once, words, n, ~high);
		ck_assert(histograms_match(&at_once, &one_by_one));
	}
	ck_assert_uint_gt(at_once.squares[2] + at_once.sum[1], 0);
}
END_TEST

START_TEST(every_shape_seed_and_size_is_within_one_percent)
{
	static const size_t sizes[] = {1, 2, 3, 10, 99, 100, 1000, 30000, SIZE_MAX_};
	double *values = malloc(SIZE_MAX_ * sizeof(*values));
	ck_assert_ptr_nonnull(values);
	for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			uint64_t seeds = sizes[i] > 1000 ? 1 : 8;
			for (uint64_t seed = 1; seed <= seeds; seed++) {
				reset(&h);
				fill(&h, values, sizes[i], shape, seed * 88172645463325252u);
				compare(&h, values, sizes[i], SHAPES[shape].name);
			}
		}
	}
	free(values);
}
END_TEST

static uint64_t first_of(uint32_t bucket)
{
	uint64_t low = 0, high = UINT64_MAX;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (proto_histogram_bucket(middle) < bucket) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

START_TEST(no_value_of_any_bucket_is_further_than_one_percent)
{
	for (uint32_t i = 0; i < PROTO_HISTOGRAM_LAST; i++) {
		uint64_t low = first_of(i), high = first_of(i + 1) - 1;
		ck_assert_uint_eq(proto_histogram_bucket(low), i);
		ck_assert_uint_eq(proto_histogram_bucket(high), i);
		ck_assert_uint_le((high - low) * 64, low); /* the middle within 1/128 */
		const uint64_t ends[] = {low, high};
		for (size_t end = 0; end < 2; end++) {
			static const double p[] = {10, 50, 90};
			double ns[3];
			reset(&h);
			proto_histogram_add(&h, 0);
			proto_histogram_add(&h, UINT64_MAX);
			for (int n = 0; n < 60; n++) {
				proto_histogram_add(&h, ends[end]);
			}
			proto_histogram_percentiles(&h, p, ns, 3);
			for (size_t n = 0; n < 3; n++) {
				within(ns[n], (double)ends[end], 0.0098, "end of a bucket");
				/* the middle quarter of what the bucket really holds */
				ck_assert(fabs(ns[n] - (double)low - (double)(high - low) / 2) <=
					  (double)(high - low) / 8 + 1e-9 * (double)low);
			}
		}
	}
	ck_assert_uint_eq(proto_histogram_bucket(DAY), PROTO_HISTOGRAM_LAST - 1);
}
END_TEST

/* covers G1.3 */
START_TEST(golden_vector_b)
{
	struct proto_summary s;
	reset(&h);
	for (uint64_t i = 0; i < 100; i++) {
		proto_histogram_add(&h, ((i * 37) % 100 + 1) * MS);
	}
	proto_histogram_summary(&h, &s);
	ck_assert_uint_eq(s.count, 100);
	within(s.mean, 50.5, 1e-12, "mean");
	within(s.std, 28.8660700, 1e-8, "std");
	within(s.std_sample, 29.0114920, 1e-8, "std_sample");
	within(s.min, 1, 0, "min");
	within(s.max, 100, 0, "max");
	within(s.p50, 50.5, 0.01, "p50");
	within(s.p90, 90.1, 0.01, "p90");
	within(s.p95, 95.05, 0.01, "p95");
	within(s.p99, 99.01, 0.01, "p99");
}
END_TEST

START_TEST(numbers_of_another_implementation)
{
	/* computed with Python's fractions and statistics: seed, count, mean, std, min, max, p */
	static const struct {
		uint64_t seed, count;
		double mean, std, std_sample, min, max, p[4];
	} golden[] = {
		{1, 1024, 266308664.64160156, 232820241.96090129, 232934007.05049574, 1000,
			1035205018,
			{197185802.5, 624367816.60000002, 731098151.5, 912538270.60000002}},
		{2, 300, 274636827.58999997, 245449743.9655011, 245859852.42854109, 1000, 982684465,
			{207688048, 637961844, 781259918.75, 938545330.45000005}},
		{3, 7, 188746189.57142857, 134190779.77028458, 144942607.96806157, 34189336,
			481580320,
			{172505024, 328529702.19999999, 405055011.10000002, 466275258.22000003}},
		{4, 100000, 266005139.81558999, 236199350.6911813, 236200531.6967923, 1000,
			1056960316,
			{198655287.5, 627756213.70000005, 749518926.79999995, 919720585.78999996}},
	};
	static const double p[] = {50, 90, 95, 99};
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct proto_summary s;
		double ns[4];
		uint64_t x = golden[i].seed;
		reset(&h);
		for (uint64_t n = 0; n < golden[i].count; n++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			proto_histogram_add(&h, 1000 + (x >> 40) * ((x >> 20) % 64));
		}
		proto_histogram_summary(&h, &s);
		within(s.mean, golden[i].mean / 1e6, 1e-14, "mean");
		within(s.std, golden[i].std / 1e6, 1e-14, "std");
		within(s.std_sample, golden[i].std_sample / 1e6, 1e-14, "std_sample");
		within(s.min, golden[i].min / 1e6, 1e-15, "min");
		within(s.max, golden[i].max / 1e6, 1e-15, "max");
		proto_histogram_percentiles(&h, p, ns, 4);
		for (size_t n = 0; n < 4; n++) {
			within(ns[n], golden[i].p[n], 0.01, "percentile");
		}
	}
}
END_TEST

START_TEST(a_microsecond_around_20_ms_survives_a_billion_events)
{
	struct proto_summary s;
	reset(&h);
	for (uint64_t i = 0; i < 2001; i++) {
		proto_histogram_add(&h, 20 * MS - 1000 + i);
	}
	for (int i = 0; i < 19; i++) {
		proto_histogram_add_all(&h, &h);
	}
	proto_histogram_summary(&h, &s);
	ck_assert_uint_eq(s.count, (size_t)2001 << 19);
	within(s.mean, 20, 1e-15, "mean");
	within(s.std, sqrt((2001.0 * 2001 - 1) / 12) / 1e6, 1e-13, "std");
}
END_TEST

START_TEST(nothing_is_nan)
{
	struct proto_summary s;
	double ns[2] = {0, 0};
	reset(&h);
	proto_histogram_percentiles(&h, (const double[]){0, 100}, ns, 2);
	ck_assert(isnan(ns[0]) && isnan(ns[1]));
	proto_histogram_summary(&h, &s);
	ck_assert_uint_eq(s.count, 0);
	ck_assert(isnan(s.mean) && isnan(s.min) && isnan(s.max) && isnan(s.std));
	ck_assert(isnan(s.std_sample) && isnan(s.p50) && isnan(s.p99));
	proto_histogram_add(&h, 7);
	proto_histogram_summary(&h, &s);
	within(s.p50, 7e-6, 1e-15, "one value");
	ck_assert_double_eq(s.std, 0);
	ck_assert(isnan(s.std_sample));
}
END_TEST

START_TEST(percentiles_in_any_order_and_out_of_range)
{
	static const double p[] = {99, 50, 101, -1, 50, 100, 0, (double)NAN};
	double ns[8];
	reset(&h);
	for (uint64_t i = 1; i <= 99; i++) {
		proto_histogram_add(&h, i);
	}
	proto_histogram_percentiles(&h, p, ns, 8);
	const double want[] = {98.02, 50, 99, 1, 50, 99, 1, 1};
	for (size_t i = 0; i < 8; i++) {
		within(ns[i], want[i], 1e-14, "percentile of exact values");
	}
}
END_TEST

START_TEST(extreme_values_are_counted_and_summed_exactly)
{
	struct proto_summary s;
	double ns[5];
	reset(&h);
	const uint64_t values[] = {0, 1, DAY, DAY * 2, UINT64_MAX};
	for (size_t i = 0; i < 5; i++) {
		proto_histogram_add(&h, values[i]);
	}
	proto_histogram_percentiles(&h, (const double[]){0, 25, 50, 75, 100}, ns, 5);
	ck_assert_double_eq(ns[0], 0);
	ck_assert_double_eq(ns[1], 1);
	within(ns[2], (double)DAY, 0.01, "a day");
	ck_assert(ns[3] > (double)DAY && ns[3] <= 0x1p64);
	ck_assert_double_eq(ns[4], 0x1p64);
	ck_assert_uint_eq(h.sum[0], 3 * DAY); /* 0 + 1 + 3 days + 2^64 - 1 */
	ck_assert_uint_eq(h.sum[1], 1);

	reset(&h);
	for (int i = 0; i < 1000; i++) {
		proto_histogram_add(&h, UINT64_MAX);
		proto_histogram_add(&h, UINT64_MAX - 2000000);
	}
	proto_histogram_summary(&h, &s);
	within(s.std, 1, 1e-12, "std beside 2^64");
	within(s.mean, 0x1p64 / 1e6, 1e-12, "mean");
}
END_TEST

START_TEST(carries_of_the_sums_run_through_full_words)
{
	reset(&h);
	reset(&other);
	for (int i = 0; i < 3; i++) {
		proto_histogram_add(&h, 100);
		proto_histogram_add(&other, 100);
	}
	h.squares[0] = UINT64_MAX;
	other.squares[0] = 1;
	other.squares[1] = UINT64_MAX;
	proto_histogram_add_all(&h, &other);
	ck_assert_uint_eq(h.squares[0], 0);
	ck_assert_uint_eq(h.squares[1], 0);
	ck_assert_uint_eq(h.squares[2], 1);
	ck_assert(subtract(&h, &other, &result));
	ck_assert_uint_eq(result.squares[0], UINT64_MAX);
	ck_assert_uint_eq(result.squares[1], 0);
	ck_assert_uint_eq(result.squares[2], 0);
}
END_TEST

START_TEST(merging_is_adding_both)
{
	static double values[3000];
	for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
		reset(&h);
		reset(&other);
		reset(&result);
		fill(&h, values, 2000, shape, 5);
		fill(&other, values + 2000, 1000, (shape + 1) % SHAPE_COUNT, 6);
		for (size_t i = 0; i < 3000; i++) {
			proto_histogram_add(&result, (uint64_t)values[i]);
		}
		proto_histogram_add_all(&h, &other);
		ck_assert(histograms_match(&h, &result));
		compare(&h, values, 3000, SHAPES[shape].name);
		reset(&other);
		proto_histogram_add_all(&h, &other);
		ck_assert(histograms_match(&h, &result));
		proto_histogram_add_all(&other, &h);
		ck_assert(histograms_match(&other, &h));
	}
}
END_TEST

START_TEST(what_is_left_of_a_part_is_the_rest)
{
	static double values[5000];
	static const double p[] = {0, 1, 50, 90, 99, 100};
	for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
		struct proto_summary exact, s;
		double ns[6];
		reset(&h);
		reset(&other);
		fill(&other, values, 2000, shape, 9);
		fill(&h, values, 3000, (shape + 2) % SHAPE_COUNT, 10);
		proto_histogram_add_all(&h, &other);
		ck_assert(subtract(&h, &other, &result));
		proto_summarize(values, 3000, &exact);
		proto_histogram_summary(&result, &s);
		ck_assert_uint_eq(s.count, 3000);
		within(s.mean, exact.mean / 1e6, 1e-9, "mean");
		ck_assert(fabs(s.std - exact.std / 1e6) <= 1e-9 * exact.max / 1e6);
		ck_assert(s.min <= s.mean && s.mean <= s.max);
		proto_histogram_percentiles(&result, p, ns, 6);
		for (size_t i = 0; i < 6; i++) {
			within(ns[i], proto_percentile(values, 3000, p[i]), 0.01, "rest");
		}
	}
}
END_TEST

START_TEST(the_ends_of_a_rest_are_exact_where_they_can_be)
{
	reset(&h);
	reset(&other);
	for (uint64_t i = 1; i <= 100; i++) {
		proto_histogram_add(&h, i * 1000003);
	}
	proto_histogram_add(&other, 50 * 1000003);
	ck_assert(subtract(&h, &other, &result));
	ck_assert_uint_eq(result.min, 1000003);
	ck_assert_uint_eq(result.max, 100 * 1000003);
	for (uint64_t i = 1; i <= 100; i++) {
		if (i != 50 && i != 77) {
			proto_histogram_add(&other, i * 1000003);
		}
	}
	ck_assert(subtract(&h, &other, &result));
	ck_assert_uint_eq(result.count, 1);
	ck_assert_uint_eq(result.min, 77 * 1000003); /* the sum tells the last one */
	ck_assert_uint_eq(result.max, 77 * 1000003);
	proto_histogram_add(&other, 77 * 1000003);
	ck_assert(subtract(&h, &other, &result));
	reset(&other);
	ck_assert(histograms_match(&result, &other));
	ck_assert(subtract(&h, &other, &result));
	ck_assert(histograms_match(&result, &h));
}
END_TEST

START_TEST(what_is_no_part_leaves_nothing_below_zero)
{
	struct proto_summary s;
	reset(&h);
	reset(&other);
	for (int i = 0; i < 10; i++) {
		proto_histogram_add(&h, 20 * MS);
		proto_histogram_add(&other, 30 * MS);
	}
	proto_histogram_add(&other, 20 * MS);
	ck_assert(!subtract(&h, &other, &result));
	proto_histogram_summary(&result, &s);
	ck_assert_uint_eq(s.count, 9);
	within(s.mean, 20, 0.01, "mean");
	within(s.min, 20, 0.01, "min");
	within(s.max, 20, 0.01, "max");
	within(s.p99, 20, 0.01, "p99");
	ck_assert(s.std >= 0 && s.std < 0.2);

	ck_assert(!subtract(&result, &h, &other)); /* nothing is left */
	proto_histogram_summary(&other, &s);
	ck_assert_uint_eq(s.count, 0);
	ck_assert(isnan(s.mean));

	/* the same bucket, a larger sum */
	reset(&h);
	reset(&other);
	proto_histogram_add(&h, 1 << 20);
	proto_histogram_add(&h, 1 << 20);
	proto_histogram_add(&other, (1 << 20) + 16000);
	ck_assert(subtract(&h, &other, &result));
	ck_assert_uint_le(result.min, 1 << 20);
	reset(&h);
	reset(&other);
	proto_histogram_add(&h, 0);
	proto_histogram_add(&h, 1 << 20);
	proto_histogram_add(&other, (1 << 20) + 16000);
	ck_assert(!subtract(&h, &other, &result));
	ck_assert_uint_eq(result.count, 1);
	ck_assert_uint_eq(result.sum[0], 0);
}
END_TEST

/* As if a bucket had been filled by that many events. */
static void poke(struct proto_histogram *into, uint64_t value, uint32_t count)
{
	proto_histogram_count(into, proto_histogram_bucket(value));
	into->buckets[proto_histogram_bucket(value) - into->first] = count;
	into->count += count;
}

START_TEST(a_bucket_goes_on_after_4_billion)
{
	double ns[2];
	reset(&h);
	proto_histogram_add(&h, 0);
	proto_histogram_add(&h, DAY);
	poke(&h, 10 * MS, UINT32_MAX);
	poke(&h, 90 * MS, UINT32_MAX / 2);
	for (int i = 0; i < 3; i++) {
		proto_histogram_add(&h, 10 * MS);
	}
	ck_assert_uint_eq(h.carries->count, 1);
	ck_assert_uint_eq(events_in_buckets(&h), h.count);
	proto_histogram_percentiles(&h, (const double[]){60, 70}, ns, 2);
	within(ns[0], 10e6, 0.01, "p60");
	within(ns[1], 90e6, 0.01, "p70");

	reset(&other);
	proto_histogram_add_all(&other, &h);
	proto_histogram_add_all(&other, &h); /* 2 * (2^32 + 2): one entry, two carries */
	proto_histogram_add_all(&other, &h);
	ck_assert_uint_eq(other.count, 3 * h.count);
	ck_assert_uint_eq(events_in_buckets(&other), other.count);
	ck_assert_uint_eq(other.carries->count, 2);
	proto_histogram_percentiles(&other, (const double[]){60, 70}, ns, 2);
	within(ns[0], 10e6, 0.01, "p60");
	within(ns[1], 90e6, 0.01, "p70");

	ck_assert(subtract(&other, &h, &result));
	ck_assert_uint_eq(result.count, 2 * h.count);
	ck_assert_uint_eq(events_in_buckets(&result), result.count);
	proto_histogram_add_all(&result, &h);
	ck_assert_uint_eq(events_in_buckets(&result), other.count);
	ck_assert(subtract(&result, &other, &h));
	ck_assert_uint_eq(h.count, 0);
}
END_TEST

START_TEST(more_carries_than_entries_lose_nothing)
{
	double ns[1];
	reset(&h);
	for (uint64_t i = 1; i <= PROTO_HISTOGRAM_CARRIES + 6; i++) {
		poke(&h, i, UINT32_MAX);
		proto_histogram_add(&h, i);
		proto_histogram_add(&h, i);
	}
	ck_assert_uint_eq(h.carries->count, PROTO_HISTOGRAM_CARRIES);
	ck_assert_uint_eq(events_in_buckets(&h), h.count);
	proto_histogram_percentiles(&h, (const double[]){50}, ns, 1);
	within(ns[0], 35.5, 0.03, "p50"); /* only the six beyond have moved, to the nearest */
	ck_assert_uint_eq(h.carries->carry[PROTO_HISTOGRAM_CARRIES - 1], 7);
}
END_TEST

START_TEST(what_it_holds_grows_by_octaves_at_both_ends)
{
	static const uint64_t values[] = {20, 30, 1, 1000, 0}; /* ms */
	reset(&h);
	ck_assert_uint_eq(proto_histogram_bytes(&h), sizeof(h));
	for (uint64_t i = 0; i < 5; i++) {
		proto_histogram_add(&h, values[i] * MS);
		ck_assert_uint_eq(events_in_buckets(&h), i + 1);
		if (i < 2) {
			ck_assert_uint_eq(h.held, 4 * PROTO_HISTOGRAM_PER_OCTAVE);
			ck_assert_uint_le(proto_histogram_bytes(&h), 1024);
		}
		memory_is_short = i >= 2; /* it needs no more */
	}
	ck_assert_uint_eq(h.first, 0);
	ck_assert_uint_eq(proto_histogram_in(&h, proto_histogram_bucket(30 * MS)), 1);
	ck_assert_uint_lt(h.held, PROTO_HISTOGRAM_BUCKETS);
	ck_assert_uint_eq((h.held - PROTO_HISTOGRAM_EXACT) % PROTO_HISTOGRAM_PER_OCTAVE, 0);
	proto_histogram_add(&h, UINT64_MAX);
	ck_assert_uint_eq(h.held, PROTO_HISTOGRAM_BUCKETS);
	ck_assert_uint_le(proto_histogram_bytes(&h), PROTO_HISTOGRAM_BYTES);
	ck_assert_uint_eq(events_in_buckets(&h), 6);
	memory_is_short = false;

	reset(&h);
	proto_histogram_add(&h, UINT64_MAX); /* the highest octave has no whole one above it */
	ck_assert_uint_eq(h.first + h.held, PROTO_HISTOGRAM_BUCKETS);
	ck_assert_uint_eq(events_in_buckets(&h), 1);
}
END_TEST

START_TEST(histograms_of_far_ranges_merge_and_part)
{
	for (int order = 0; order < 2; order++) {
		reset(&h);
		reset(&other);
		for (uint64_t i = 1; i <= 100; i++) {
			proto_histogram_add(order ? &h : &other, i * 7);
			proto_histogram_add(order ? &other : &h, i * 1000 * MS);
		}
		ck_assert(proto_histogram_add_all(&h, &other));
		ck_assert_uint_eq(events_in_buckets(&h), 200);
		ck_assert_uint_eq(h.min, 7);
		ck_assert_uint_eq(h.max, 100000 * MS);
		ck_assert(subtract(&h, &other, &result));
		ck_assert_uint_eq(events_in_buckets(&result), 100);
		ck_assert(proto_histogram_add_all(&result, &other));
		ck_assert_uint_eq(events_in_buckets(&result), 200);
		ck_assert(!subtract(&other, &h, &result)); /* more than there is */
		ck_assert_uint_eq(result.count, 0);
	}
}
END_TEST

START_TEST(without_memory_a_value_counts_in_the_nearest_bucket)
{
	reset(&h);
	reset(&other);
	proto_histogram_add(&h, 20 * MS);
	proto_histogram_add(&other, 20 * MS);
	memory_is_short = true;
	proto_histogram_add(&h, 1);
	proto_histogram_add(&h, 9000 * MS);
	ck_assert_uint_eq(h.held, 4 * PROTO_HISTOGRAM_PER_OCTAVE);
	ck_assert_uint_eq(h.buckets[0], 1);
	ck_assert_uint_eq(h.buckets[h.held - 1], 1);
	ck_assert_uint_eq(h.count, 3);
	ck_assert_uint_eq(h.min, 1);
	ck_assert_uint_eq(h.max, 9000 * MS);
	ck_assert_uint_eq(h.sum[0], 9020 * MS + 1);
	memory_is_short = false;
	proto_histogram_add(&h, 9000 * MS);
	ck_assert_uint_eq(proto_histogram_in(&h, proto_histogram_bucket(9000 * MS)), 1);
	ck_assert_uint_eq(events_in_buckets(&h), 4);

	memory_is_short = true;
	ck_assert(!proto_histogram_add_all(&other, &h));
	ck_assert_uint_eq(events_in_buckets(&other), 5);
	ck_assert_uint_eq(other.max, 9000 * MS);
	reset(&result);
	ck_assert(!proto_histogram_add_all(&result, &h)); /* it holds none at all */
	proto_histogram_add(&result, 9000 * MS);
	ck_assert_uint_eq(result.count, 5);
	ck_assert_double_eq(proto_histogram_at(&result, 0), 1);
	ck_assert_double_eq(proto_histogram_at(&result, 2), 9000e6);
	memory_is_short = false;
}
END_TEST

START_TEST(without_memory_for_carries_a_bucket_stays_full)
{
	reset(&h);
	poke(&h, 10 * MS, UINT32_MAX);
	memory_is_short = true;
	proto_histogram_add(&h, 10 * MS);
	ck_assert_uint_eq(h.count, UINT64_C(1) << 32);
	ck_assert_uint_eq(events_in_buckets(&h), UINT32_MAX);
	proto_histogram_add_all(&h, &h);
	ck_assert_uint_eq(h.count, UINT64_C(1) << 33);
	ck_assert_uint_eq(events_in_buckets(&h), UINT32_MAX);
	memory_is_short = false;
	proto_histogram_add(&h, 10 * MS);
	ck_assert_uint_eq(events_in_buckets(&h), UINT64_C(1) << 32);
}
END_TEST
