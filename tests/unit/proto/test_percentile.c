/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles and deviations against the numeric contract. */
#include "proto/percentile.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static void near(double value, double want)
{
	ck_assert_msg(fabs(value - want) <= 1e-7 * fabs(want), "%.10g is not %.10g", value, want);
}

/* covers G1.3 */
START_TEST(golden_vector_b)
{
	double values[100];
	for (int i = 0; i < 100; i++) {
		values[i] = (i * 37) % 100 + 1; /* 1 … 100 out of order */
	}
	struct proto_summary s;
	proto_summarize(values, 100, &s);
	ck_assert_uint_eq(s.count, 100);
	near(s.mean, 50.5);
	near(s.min, 1);
	near(s.max, 100);
	near(s.p50, 50.5);
	near(s.p90, 90.1);
	near(s.p95, 95.05);
	near(s.p99, 99.01);
	near(s.std, 28.8660700);
	near(s.std_sample, 29.0114920);
}
END_TEST

/* covers G4.4 */
START_TEST(golden_vector_b_nearest)
{
	double values[100];
	for (int i = 0; i < 100; i++) {
		values[i] = i + 1;
	}
	near(proto_percentile_nearest(values, 100, 50), 51);
	near(proto_percentile_nearest(values, 100, 90), 91);
	near(proto_percentile_nearest(values, 100, 95), 96);
	near(proto_percentile_nearest(values, 100, 99), 100);
	near(proto_percentile_nearest(values, 100, 100), 100);
	near(proto_percentile_nearest(values, 100, 0), 1);
}
END_TEST

START_TEST(nothing_is_nan_and_one_value_is_itself)
{
	struct proto_summary s;
	proto_summarize(NULL, 0, &s);
	ck_assert_uint_eq(s.count, 0);
	ck_assert(isnan(s.mean) && isnan(s.min) && isnan(s.max) && isnan(s.std) && isnan(s.p99));
	ck_assert(isnan(proto_percentile(NULL, 0, 50)));
	ck_assert(isnan(proto_percentile_nearest(NULL, 0, 50)));

	double one = 7;
	proto_summarize(&one, 1, &s);
	near(s.mean, 7);
	near(s.p50, 7);
	near(s.p99, 7);
	ck_assert_double_eq(s.std, 0);
	ck_assert(isnan(s.std_sample));
}
END_TEST

START_TEST(large_offsets_lose_nothing)
{
	double values[1000];
	for (int i = 0; i < 1000; i++) {
		values[i] = 1e9 + i % 2;
	}
	struct proto_summary s;
	proto_summarize(values, 1000, &s);
	near(s.mean - 1e9, 0.5);
	near(s.std, 0.5);
}
END_TEST

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

START_TEST(sorting_agrees_with_qsort_on_awkward_inputs)
{
	enum { N = 5000 };
	static double ours[N], theirs[N];
	uint64_t seed = 88172645463325252u;
	for (int shape = 0; shape < 9; shape++) {
		for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3) {
			for (size_t i = 0; i < n; i++) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				const double shapes[] = {(double)i, (double)(n - i), 1.0,
					(double)(i % 2), (double)(seed % 1000), (double)seed - 1e18,
					(double)(i < n / 2 ? i : n - i),
					(double)((i * 7919) % (n + 1)), (double)(seed % 7) / 8};
				ours[i] = theirs[i] = shapes[shape];
			}
			proto_sort(ours, n);
			qsort(theirs, n, sizeof(double), compare);
			for (size_t i = 0; i < n; i++) {
				ck_assert(!(ours[i] < theirs[i]) && !(ours[i] > theirs[i]));
			}
		}
	}
}
END_TEST

START_TEST(selected_percentiles_are_the_sorted_ones)
{
	enum { N = 1500 };
	static double sorted[N], selected[N];
	uint64_t seed = 88172645463325252u;
	for (size_t n = 0; n <= N; n = n < 130 ? n + 1 : n + 97) {
		for (int shape = 0; shape < 4; shape++) {
			for (size_t i = 0; i < n; i++) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				const double shapes[] = {(double)(seed % 1000), (double)i,
					(double)(n - i), i == 5 ? 1e15 : (double)(seed % 3)};
				sorted[i] = selected[i] = shapes[shape];
			}
			struct proto_summary summary, nearest;
			proto_sort(sorted, n);
			proto_summarize_window(selected, n, shape % 2, NULL, &summary);
			proto_summarize_window(selected, n, true, NULL, &nearest);
			const double numbers[][3] = {{50, summary.p50, nearest.p50},
				{90, summary.p90, nearest.p90}, {95, summary.p95, nearest.p95},
				{99, summary.p99, nearest.p99}};
			for (size_t i = 0; n > 0 && i < 4; i++) {
				const double *row = numbers[i];
				double want = proto_percentile_nearest(sorted, n, row[0]) / 1e6;
				ck_assert_double_eq(row[2], want);
				want = shape % 2 ? want : proto_percentile(sorted, n, row[0]) / 1e6;
				ck_assert_double_eq(row[1], want);
			}
		}
	}
}
END_TEST

/* A window that becomes another one, part by part and at once: noise, few different values, all the
 * same, one that is half of them. */
START_TEST(a_guess_changes_no_number)
{
	enum { N = 1024, ROUNDS = 400 };
	static double window[N], guessed[N], plain[N];
	uint64_t seed = 88172645463325252u;
	struct proto_guess guess = {0};
	for (size_t round = 0; round < ROUNDS; round++) {
		const size_t n = round < 300 ? N : round + 1, fresh = round % 20 == 0 ? N : 40;
		for (size_t i = 0; i < fresh; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			const double shapes[] = {(double)(seed % 100000), (double)(seed % 5 * 10),
				7, (double)(seed % 2 * (seed % 1000))};
			window[(round * 40 + i) % N] = shapes[round / 40 % 4];
		}
		struct proto_summary with, without;
		const size_t numbers = offsetof(struct proto_summary, mean); /* behind padding */
		memcpy(guessed, window, sizeof(window));
		memcpy(plain, window, sizeof(window));
		proto_summarize_window(guessed, n, round % 3 == 0, &guess, &with);
		proto_summarize_window(plain, n, round % 3 == 0, NULL, &without);
		ck_assert_uint_eq(with.count, without.count);
		ck_assert_mem_eq((char *)&with + numbers, (char *)&without + numbers,
			sizeof(with) - numbers);
	}
}
END_TEST

struct item {
	double value;
	size_t at; /* in the array that is built */
};

static void order_items(struct item *a, struct item *b)
{
	if (b->value < a->value) {
		struct item t = *a;
		*a = *b;
		*b = t;
	}
}

/* Plays the sort's choice of pivots and makes the three it looks at the least values left, so that
 * each partition takes two values off. McIlroy, "A killer adversary for quicksort". */
static void build_killer(double *values, size_t total, unsigned levels)
{
	struct item *items = calloc(total, sizeof(*items)), *left = items;
	size_t count = total;
	double least = 1;
	ck_assert_ptr_nonnull(items);
	for (size_t i = 0; i < total; i++) {
		items[i] = (struct item){INFINITY, i};
	}
	while (levels-- > 0) {
		const size_t looked_at[] = {count / 4, count / 2, count / 4 * 3};
		for (size_t i = 0; i < 3; i++) {
			struct item *item = &left[looked_at[i]];
			if (isinf(item->value)) {
				item->value = least++;
				values[item->at] = item->value;
			}
		}
		order_items(&left[looked_at[0]], &left[looked_at[1]]);
		order_items(&left[looked_at[1]], &left[looked_at[2]]);
		order_items(&left[looked_at[0]], &left[looked_at[1]]);
		struct item pivot = left[looked_at[1]];
		left[looked_at[1]] = left[0];
		left[0] = pivot;
		size_t less = 1;
		for (size_t i = 1; i < count; i++) {
			struct item item = left[i];
			left[i] = left[less];
			left[less] = item;
			less += item.value < pivot.value;
		}
		ck_assert_uint_le(less, 5);
		left += less;
		count -= less;
	}
	for (size_t i = 0; i < count; i++) {
		if (isinf(left[i].value)) {
			values[left[i].at] = least + (double)((i * 7919) % count);
		}
	}
	free(items);
}

START_TEST(bad_pivots_end_in_heap_sort)
{
	enum { N = 100003 };
	double *ours = malloc(N * sizeof(*ours)), *theirs = malloc(N * sizeof(*theirs));
	ck_assert(ours && theirs);
	build_killer(ours, N, 60);
	for (size_t i = 0; i < N; i++) {
		theirs[i] = ours[i];
	}
	proto_sort(ours, N);
	qsort(theirs, N, sizeof(double), compare);
	for (size_t i = 0; i < N; i++) {
		ck_assert(!(ours[i] < theirs[i]) && !(ours[i] > theirs[i]));
	}
	free(ours);
	free(theirs);
}
END_TEST

START_TEST(infinities_are_sorted_like_numbers)
{
	double values[300];
	for (int i = 0; i < 300; i++) {
		values[i] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? -INFINITY : i;
	}
	proto_sort(values, 300);
	for (int i = 0; i < 300; i++) {
		const double want = i < 100 ? -INFINITY : i < 200 ? (i - 100) * 3 + 2 : INFINITY;
		ck_assert(!(values[i] < want) && !(values[i] > want));
	}
}
END_TEST

START_TEST(numbers_of_another_implementation)
{
	/* computed with Python's fractions and statistics */
	static const struct {
		uint64_t seed;
		size_t count;
		double mean, std, std_sample, min, max, p[4], nearest[4];
	} golden[] = {
		{1, 1024, 266308664.64160156, 232820241.96090129, 232934007.05049574, 1000,
			1035205018,
			{197185802.5, 624367816.60000002, 731098151.5, 912538270.60000002},
			{197508808, 624543274, 731550640, 914123794}},
		{2, 300, 274636827.58999997, 245449743.9655011, 245859852.42854109, 1000, 982684465,
			{207688048, 637961844, 781259918.75, 938545330.45000005},
			{207721408, 639975000, 791928015, 938586955}},
		{3, 7, 188746189.57142857, 134190779.77028458, 144942607.96806157, 34189336,
			481580320,
			{172505024, 328529702.19999999, 405055011.10000002, 466275258.22000003},
			{172505024, 481580320, 481580320, 481580320}},
	};
	static const double p[] = {50, 90, 95, 99};
	static double values[1024];
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct proto_summary s;
		uint64_t x = golden[i].seed;
		for (size_t n = 0; n < golden[i].count; n++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			values[n] = (double)(1000 + (x >> 40) * ((x >> 20) % 64));
		}
		proto_summarize(values, golden[i].count, &s);
		const double got[] = {
			s.mean, s.std, s.std_sample, s.min, s.max, s.p50, s.p90, s.p95, s.p99};
		const double want[] = {golden[i].mean, golden[i].std, golden[i].std_sample,
			golden[i].min, golden[i].max, golden[i].p[0], golden[i].p[1],
			golden[i].p[2], golden[i].p[3]};
		for (size_t n = 0; n < 9; n++) {
			ck_assert(fabs(got[n] - want[n]) <= 1e-14 * want[n]);
		}
		for (size_t n = 0; n < 4; n++) {
			near(proto_percentile_nearest(values, golden[i].count, p[n]),
				golden[i].nearest[n]);
		}
	}
}
END_TEST
