/* Percentiles and deviations against the numeric contract. */
#include "proto/percentile.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

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
	for (int shape = 0; shape < 8; shape++) {
		for (size_t n = 0; n <= N; n = n < 70 ? n + 1 : n * 3) {
			for (size_t i = 0; i < n; i++) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				const double shapes[] = {(double)i, (double)(n - i), 1.0,
					(double)(i % 2), (double)(seed % 1000), (double)seed - 1e18,
					(double)(i < n / 2 ? i : n - i),
					(double)((i * 7919) % (n + 1))};
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

/* Builds the order that makes median-of-three pivots worst (McIlroy's killer in short). */
START_TEST(bad_pivots_end_in_heap_sort)
{
	enum { N = 200000 };
	double *values = malloc(N * sizeof(*values));
	ck_assert_ptr_nonnull(values);
	for (size_t i = 0; i < N / 2; i++) {
		values[i] = (double)(i % 2 ? i + N / 2 : i);
		values[N / 2 + i] = (double)(2 * i);
	}
	proto_sort(values, N);
	for (size_t i = 1; i < N; i++) {
		ck_assert(values[i - 1] <= values[i]);
	}
	free(values);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("percentile");
	tcase_add_test(tc, golden_vector_b);
	tcase_add_test(tc, golden_vector_b_nearest);
	tcase_add_test(tc, nothing_is_nan_and_one_value_is_itself);
	tcase_add_test(tc, large_offsets_lose_nothing);
	tcase_add_test(tc, sorting_agrees_with_qsort_on_awkward_inputs);
	tcase_add_test(tc, bad_pivots_end_in_heap_sort);
	Suite *suite = suite_create("percentile");
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
