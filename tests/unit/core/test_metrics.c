/* SPDX-License-Identifier: Apache-2.0 */
/* The table of current values and its stream of commits. */
#include "daemon/core/metrics/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

static struct sources *sources;
static struct metrics *metrics;
static struct source *cpu, *thermal;

static void setup(void)
{
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "cpu", 0, &cpu), 0);
	ck_assert_int_eq(sources_add(sources, "thermal", 0, &thermal), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
}

static void teardown(void)
{
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static struct metric *add(struct source *source, const char *name)
{
	struct metric *metric = NULL;
	ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_PERCENT, &metric), 0);
	return metric;
}

FIXTURE(setup, teardown);

START_TEST(a_new_metric_is_null_with_a_reason)
{
	struct metric *metric = add(cpu, "cpu/utilization");
	ck_assert_str_eq(metric->name, "cpu/utilization");
	ck_assert(isnan(metric->value));
	ck_assert(isnan(metric->limit));
	ck_assert_ptr_nonnull(metric->reason);
	ck_assert_uint_eq(metric->t_ns, 0);
	ck_assert(metric->full_rate);
	ck_assert_ptr_eq(metric->source, cpu);
	ck_assert_ptr_eq(metrics_find(metrics, "cpu/utilization"), metric);
	ck_assert_ptr_null(metrics_find(metrics, "cpu/utilizatio"));
	ck_assert_ptr_eq(add(cpu, "cpu/utilization"), metric);
	ck_assert_uint_eq(metrics_count(metrics), 1);
	ck_assert_uint_eq(cpu->metrics, 1);
}
END_TEST

START_TEST(bad_names_and_names_of_others_are_refused)
{
	static const char *const bad[] = {"", "/", "a/", "/a", "a//b", "a b", "a\n", "ä"};
	struct metric *metric = NULL;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(metrics_add(metrics, cpu, bad[i], UNIT_PERCENT, &metric), -EINVAL);
	}
	char longest[2 * PROTO_PATH_SIZE];
	size_t length = 0;
	for (int i = 0; i < 5; i++) {
		memset(longest + length, 'a', 48);
		length += 48;
		longest[length++] = '/';
	}
	longest[length - 1] = '\0';
	ck_assert_int_eq(metrics_add(metrics, cpu, longest, UNIT_PERCENT, &metric), -EINVAL);
	ck_assert_ptr_null(metric);
	add(cpu, "cpu/load1");
	ck_assert_int_eq(
		metrics_add(metrics, thermal, "cpu/load1", UNIT_PERCENT, &metric), -EEXIST);
	ck_assert_ptr_null(metric);
}
END_TEST

static unsigned yielded;

static void on_yield(void *ctx, const struct metric *metric)
{
	(void)ctx;
	ck_assert_str_eq(metric->name, "temperature/cpu");
	ck_assert_str_eq(metric->source->name, "cpu");
	yielded++;
}

START_TEST(a_source_that_yields_loses_its_name_to_any_other)
{
	struct metric *metric = add(cpu, "temperature/cpu");
	struct metric *ret = NULL;
	ck_assert_int_eq(
		metrics_observe(metrics, (struct metrics_observer){.retire = on_yield}), 0);
	ck_assert_int_eq(
		metrics_add(metrics, thermal, "temperature/cpu", UNIT_CELSIUS, &ret), -EEXIST);
	cpu->yields = true;
	ck_assert_ptr_eq(add(cpu, "temperature/cpu"), metric);
	thermal->yields = true;
	ck_assert_int_eq(
		metrics_add(metrics, thermal, "temperature/cpu", UNIT_CELSIUS, &ret), -EEXIST);
	thermal->yields = false;
	ck_assert_uint_eq(yielded, 0);
	metric = add(thermal, "temperature/cpu");
	ck_assert_uint_eq(yielded, 1);
	ck_assert_ptr_eq(metric->source, thermal);
	ck_assert_ptr_eq(metrics_find(metrics, "temperature/cpu"), metric);
	ck_assert_uint_eq(cpu->metrics, 0);
	ck_assert_uint_eq(metrics_count(metrics), 1);
	ck_assert_int_eq(metrics_add(metrics, cpu, "temperature/cpu", UNIT_CELSIUS, &ret), -EEXIST);
}
END_TEST

START_TEST(a_full_table_refuses_and_counts)
{
	struct metric *metric = NULL;
	for (int i = 0; i < METRICS_MAX; i++) {
		char name[32];
		snprintf(name, sizeof(name), "gauge/app/g%d", i);
		ck_assert_int_eq(metrics_add(metrics, cpu, name, UNIT_NONE, &metric), 0);
	}
	ck_assert_int_eq(metrics_add(metrics, cpu, "one/more", UNIT_NONE, &metric), -ENOSPC);
	ck_assert_int_eq(metrics_add(metrics, cpu, "one/more", UNIT_NONE, &metric), -ENOSPC);
	ck_assert_uint_eq(metrics_refused(metrics), 2);
	ck_assert_uint_eq(metrics_count(metrics), METRICS_MAX);
	/* Every second one goes; the others are still found, and the places serve again. */
	for (int i = 0; i < METRICS_MAX; i += 2) {
		char name[32];
		snprintf(name, sizeof(name), "gauge/app/g%d", i);
		metrics_retire(metrics, metrics_find(metrics, name));
	}
	for (int i = 0; i < METRICS_MAX; i++) {
		char name[32];
		snprintf(name, sizeof(name), "gauge/app/g%d", i);
		metric = metrics_find(metrics, name);
		ck_assert(i % 2 == 0 ? !metric : metric && strcmp(metric->name, name) == 0);
	}
	ck_assert_uint_eq(cpu->metrics, METRICS_MAX / 2);
	metric = NULL;
	ck_assert_int_eq(metrics_add(metrics, cpu, "one/more", UNIT_NONE, &metric), 0);
	ck_assert_uint_lt(metric->id, METRICS_MAX);
	ck_assert_uint_eq(metric->serial, METRICS_MAX);
}
END_TEST

START_TEST(metrics_of_a_source_keep_the_order_of_their_addition)
{
	struct metric *a = add(cpu, "cpu/a");
	struct metric *x = add(thermal, "temperature/x");
	struct metric *b = add(cpu, "cpu/b");
	struct metric *c = add(cpu, "cpu/c");
	ck_assert_ptr_eq(metrics_of(metrics, cpu, 0), a);
	ck_assert_ptr_eq(metrics_of(metrics, cpu, 1), b);
	ck_assert_ptr_eq(metrics_of(metrics, cpu, 2), c);
	ck_assert_ptr_null(metrics_of(metrics, cpu, 3));
	ck_assert_ptr_eq(metrics_of(metrics, thermal, 0), x);
	metrics_retire(metrics, b);
	ck_assert_ptr_eq(metrics_of(metrics, cpu, 1), c);
	ck_assert_ptr_null(metrics_of(metrics, cpu, 2));
	uint32_t cursor = 0;
	ck_assert_ptr_eq(metrics_next(metrics, &cursor), a);
	ck_assert_ptr_eq(metrics_next(metrics, &cursor), x);
	struct metric *d = add(thermal, "temperature/d");
	ck_assert_ptr_eq(metrics_next(metrics, &cursor), d); /* in b's slot */
	ck_assert_ptr_eq(metrics_next(metrics, &cursor), c);
	ck_assert_ptr_null(metrics_next(metrics, &cursor));
}
END_TEST

START_TEST(what_was_not_set_becomes_null_at_the_commit)
{
	struct metric *a = add(cpu, "cpu/a");
	struct metric *b = add(cpu, "cpu/b");
	metric_set(a, 1);
	metric_set(b, 2);
	metrics_commit(metrics, cpu, 100);
	ck_assert_double_eq(a->value, 1);
	ck_assert_double_eq(b->value, 2);
	ck_assert_ptr_null(b->reason);
	ck_assert_uint_eq(b->t_ns, 100);
	ck_assert_uint_eq(cpu->last_ok_ns, 100);
	metric_set(a, 3);
	metrics_commit(metrics, cpu, 200);
	ck_assert_double_eq(a->value, 3);
	ck_assert(isnan(b->value));
	ck_assert_str_eq(b->reason, "not reported");
	ck_assert_uint_eq(b->t_ns, 200);
	metric_set_null(a, errno_reason(EACCES));
	metrics_commit(metrics, cpu, 300);
	ck_assert_str_eq(a->reason, "Permission denied");
	ck_assert_uint_eq(cpu->last_ok_ns, 200);
}
END_TEST

START_TEST(not_a_number_is_null)
{
	struct metric *a = add(cpu, "cpu/a");
	double bad[] = {NAN, INFINITY, -INFINITY};
	for (size_t i = 0; i < 3; i++) {
		metric_set(a, 1);
		metric_set(a, bad[i]);
		metrics_commit(metrics, cpu, i);
		ck_assert(isnan(a->value));
		ck_assert_str_eq(a->reason, "not a number");
	}
	ck_assert_uint_eq(cpu->last_ok_ns, 0);
}
END_TEST

START_TEST(time_never_runs_back_within_a_source)
{
	struct metric *a = add(cpu, "cpu/a");
	struct metric *x = add(thermal, "temperature/x");
	metric_set(a, 1);
	metrics_commit(metrics, cpu, 500);
	metric_set(a, 2);
	metrics_commit(metrics, cpu, 400);
	ck_assert_uint_eq(a->t_ns, 500);
	metrics_commit(metrics, thermal, 400);
	ck_assert_uint_eq(x->t_ns, 400);
}
END_TEST

struct heard {
	char log[64];
	size_t commits;
	uint64_t t_ns;
	char retired[PROTO_PATH_SIZE];
};

static struct heard first_heard, second_heard;
static char order[16];

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct heard *heard = ctx;
	ck_assert_ptr_eq(source, cpu);
	heard->commits++;
	heard->t_ns = t_ns;
	strcat(order, heard == &first_heard ? "1" : "2");
}

static void on_retire(void *ctx, const struct metric *metric)
{
	struct heard *heard = ctx;
	snprintf(heard->retired, sizeof(heard->retired), "%s", metric->name);
	ck_assert_ptr_eq(metrics_find(metrics, metric->name), metric);
}

START_TEST(observers_hear_in_the_order_of_registration)
{
	struct metric *a = add(cpu, "cpu/a");
	ck_assert_int_eq(
		metrics_observe(metrics, (struct metrics_observer){on_commit, NULL, &first_heard}),
		0);
	ck_assert_int_eq(metrics_observe(metrics,
				 (struct metrics_observer){on_commit, on_retire, &second_heard}),
		0);
	metrics_commit(metrics, cpu, 7);
	ck_assert_str_eq(order, "12");
	ck_assert_uint_eq(second_heard.t_ns, 7);
	metrics_commit(metrics, cpu, 3);
	ck_assert_uint_eq(second_heard.t_ns, 7);
	metrics_unobserve(metrics, &first_heard);
	metrics_commit(metrics, cpu, 9);
	ck_assert_uint_eq(first_heard.commits, 2);
	ck_assert_uint_eq(second_heard.commits, 3);
	metrics_retire(metrics, a);
	ck_assert_str_eq(second_heard.retired, "cpu/a");
	ck_assert_uint_eq(metrics_count(metrics), 0);
}
END_TEST

START_TEST(observers_have_a_limit)
{
	struct metrics_observer observer = {on_commit, NULL, NULL};
	for (int i = 0; i < METRICS_OBSERVERS; i++) {
		ck_assert_int_eq(metrics_observe(metrics, observer), 0);
	}
	ck_assert_int_eq(metrics_observe(metrics, observer), -ENOSPC);
}
END_TEST

START_TEST(a_commit_allocates_nothing)
{
	struct metric *metric[100];
	for (int i = 0; i < 100; i++) {
		char name[32];
		snprintf(name, sizeof(name), "cpu/%d", i);
		metric[i] = add(cpu, name);
	}
	alloc_faults_start(0);
	for (uint64_t t = 1; t < 100; t++) {
		for (int i = 0; i < 100; i++) {
			metric_set(metric[i], (double)t);
		}
		metrics_commit(metrics, cpu, t);
		ck_assert_ptr_eq(add(cpu, "cpu/5"), metric[5]);
	}
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
}
END_TEST

START_TEST(short_memory_is_reported_and_harmless)
{
	struct metrics *other = NULL;
	alloc_faults_start(1);
	ck_assert_int_eq(metrics_create(&other), -ENOMEM);
	ck_assert_ptr_null(other);
	for (size_t n = 1; n <= 2; n++) {
		struct metric *metric = NULL;
		alloc_faults_start(n);
		ck_assert_int_eq(
			metrics_add(metrics, cpu, n == 1 ? "a" : "b", UNIT_NONE, &metric), -ENOMEM);
		ck_assert_ptr_null(metric);
		ck_assert_uint_eq(metrics_count(metrics), 0);
		ck_assert_uint_eq(cpu->metrics, 0);
	}
	alloc_faults_stop();
	metrics_commit(metrics, cpu, 1);
	add(cpu, "a");
	ck_assert_uint_eq(metrics_refused(metrics), 0);
	metrics_destroy(NULL);
}
END_TEST

START_TEST(every_errno_has_a_text)
{
	ck_assert_str_eq(errno_reason(ENOENT), "No such file or directory");
	ck_assert_str_eq(errno_reason(-ENOENT), "No such file or directory");
	ck_assert_str_eq(errno_reason(0), "error");
	ck_assert_str_eq(errno_reason(99999), "error");
	ck_assert_str_eq(errno_reason(INT32_MIN), "error");
}
END_TEST
