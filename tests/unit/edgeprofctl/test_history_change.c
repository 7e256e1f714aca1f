/* SPDX-License-Identifier: Apache-2.0 */
/* What `history --around` takes for a change. */
#include "client/edgeprofctl/history/history_rows.h"

#include <math.h>
#include <stdio.h>

#include "tests/unit/unit.h"

enum { BEFORE = 20, WITHIN = 10 };

static cJSON *series;
static struct change change;

static void begin(const char *unit)
{
	cJSON_Delete(series);
	series = cJSON_CreateObject();
	cJSON_AddStringToObject(series, "unit", unit);
	cJSON_AddArrayToObject(series, "time_us");
	cJSON_AddArrayToObject(series, "mean");
	cJSON_AddArrayToObject(series, "min");
	cJSON_AddArrayToObject(series, "max");
	cJSON_AddArrayToObject(series, "count");
}

static void push(const char *column, double value)
{
	cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(series, column),
		isnan(value) ? cJSON_CreateNull() : cJSON_CreateNumber(value));
}

/* A row at each second from 0 on; the window begins at second BEFORE. */
static void row(double mean, double least, double most)
{
	int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(series, "time_us"));
	push("time_us", n * 1e6);
	push("mean", mean);
	push("min", least);
	push("max", most);
	push("count", 1);
}

static void rows(int count, double first, double step)
{
	for (int i = 0; i < count; i++) {
		row(first + step * i, first + step * i, first + step * i);
	}
}

static bool find(void)
{
	return change_find(series, BEFORE * 1000000, (BEFORE + WITHIN) * 1000000, &change);
}

static void teardown(void)
{
	cJSON_Delete(series);
	series = NULL;
}

FIXTURE(NULL, teardown);

START_TEST(what_stays_in_its_range_scores_nothing)
{
	begin("celsius");
	for (int i = 0; i < BEFORE + WITHIN; i++) {
		row(50 + i % 5, 50 + i % 5, 50 + i % 5);
	}
	ck_assert(find());
	ck_assert_double_eq(change.score, 0);
}
END_TEST

START_TEST(a_peak_hidden_in_a_mean_is_seen_where_it_was)
{
	begin("celsius");
	rows(BEFORE, 50, 0.1);
	rows(5, 51, 0);
	row(51, 50, 90);
	rows(4, 51, 0);
	ck_assert(find());
	ck_assert_double_gt(change.score, 15);
	ck_assert_double_eq(change.extreme, 90);
	ck_assert_int_eq(change.time_us, (BEFORE + 5) * 1000000);
	ck_assert_double_eq(change.within.last, 51);
}
END_TEST

START_TEST(a_fall_is_a_change_too)
{
	begin("fps");
	rows(BEFORE, 30, 0);
	rows(WITHIN, 12, 0);
	ck_assert(find());
	ck_assert_double_gt(change.score, 10);
	ck_assert_double_eq(change.extreme, 12);
	ck_assert_int_eq(change.time_us, BEFORE * 1000000);
}
END_TEST

START_TEST(a_flag_that_rises_outranks_noise_of_a_constant)
{
	begin("bool");
	rows(BEFORE, 0, 0);
	rows(WITHIN, 1, 0);
	ck_assert(find());
	double flag = change.score;
	begin("percent");
	rows(BEFORE, 0, 0);
	rows(WITHIN, 0.3, 0);
	ck_assert(find());
	ck_assert_double_lt(change.score, 0.25);
	ck_assert_double_gt(flag, 5);
}
END_TEST

START_TEST(a_counter_that_goes_on_counting_is_no_news)
{
	begin("millijoules");
	rows(BEFORE + WITHIN, 1000, 500);
	ck_assert(find());
	ck_assert_double_eq(change.score, 0);
	begin("millijoules");
	rows(BEFORE, 1000, 500);
	rows(WITHIN, 1000 + BEFORE * 500, 2500);
	ck_assert(find());
	ck_assert_double_gt(change.score, 2);
}
END_TEST

START_TEST(a_series_without_a_past_is_new)
{
	begin("percent");
	rows(BEFORE, NAN, 0);
	rows(WITHIN, 10, 5);
	ck_assert(find());
	ck_assert_uint_eq(change.before.rows, 0);
	ck_assert_double_gt(change.score, 0);
	ck_assert_double_lt(change.score, 2);
}
END_TEST

START_TEST(nothing_in_the_window_is_told)
{
	begin("percent");
	rows(BEFORE, 1, 1);
	ck_assert(!find());
	begin("");
	ck_assert(!find());
	cJSON_Delete(series);
	series = cJSON_CreateObject();
	ck_assert(!find());
}
END_TEST
