/* SPDX-License-Identifier: Apache-2.0 */
/* test_forecast.c: tests forecasts of simulated boards whose future is known. FORECAST_BOARDS=4000
 * in the environment runs a longer campaign than the 600 boards of the test, also at fixed parts of
 * the way. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/diagnose/boards.h"

TEST_TIMEOUT(300);

static struct forecast_point points[600];
static struct forecast result;

/* One exponential from `from` to `to` °C, a point each second, without noise but quantised. */
static void heat(size_t count, double from, double to, double tau_s, double quantum)
{
	for (size_t i = 0; i < count; i++) {
		const double celsius = to - (to - from) * exp(-(double)i / tau_s);
		points[i] = (struct forecast_point){
			(double)i, quantum > 0 ? quantum * round(celsius / quantum) : celsius};
	}
}

static void assert_near(double value, double expected, double tolerance)
{
	ck_assert_msg(fabs(value - expected) <= tolerance, "%g, not %g", value, expected);
}

START_TEST(too_few_points_are_unknown)
{
	heat(11, 40, 90, 100, 0);
	forecast_temperature(points, 11, 80, &result);
	ck_assert_int_eq(result.state, FORECAST_UNKNOWN);
	ck_assert_ptr_nonnull(result.reason);
	ck_assert(isnan(result.steady_celsius) && isnan(result.to_trip_s));
	forecast_temperature(NULL, 0, 80, &result);
	ck_assert_int_eq(result.state, FORECAST_UNKNOWN);
}
END_TEST

START_TEST(clean_rise_reaches_the_trip_in_time)
{
	heat(200, 40, 100, 200, 0.1);
	forecast_temperature(points, 200, 90, &result);
	ck_assert_int_eq(result.state, FORECAST_REACHES);
	assert_near(result.to_trip_s, 200 * log(60. / 10) - 199, 16);
	ck_assert(result.to_trip_low_s <= result.to_trip_s &&
		  result.to_trip_s <= result.to_trip_high_s);
	assert_near(result.tau_s, 200, 40);
	assert_near(result.steady_celsius, 100, 4);
	ck_assert(result.r_squared > 0.99 && result.rmse_celsius < 0.1);
}
END_TEST

START_TEST(rise_that_ends_below_the_trip_settles)
{
	heat(400, 40, 70, 150, 0.1);
	forecast_temperature(points, 300, 90, &result);
	ck_assert_int_eq(result.state, FORECAST_SETTLES);
	ck_assert(isnan(result.to_trip_s));
	assert_near(result.steady_celsius, 70, 1.5);
}
END_TEST

START_TEST(states_of_level_and_falling_temperatures)
{
	heat(400, 60, 60, 100, 0.5);
	forecast_temperature(points, 400, 90, &result);
	ck_assert_int_eq(result.state, FORECAST_STEADY);
	assert_near(result.now_celsius, 60, 0.3);
	forecast_temperature(points, 400, 59, &result);
	ck_assert_int_eq(result.state, FORECAST_AT_TRIP);
	forecast_temperature(points, 400, NAN, &result);
	ck_assert_int_eq(result.state, FORECAST_UNKNOWN);
	heat(400, 60, 60, 100, 0.5);
	points[5].celsius = 1e300;
	forecast_temperature(points, 400, 90, &result);
	ck_assert_int_eq(result.state, FORECAST_STEADY);
	heat(200, 80, 50, 150, 0.1);
	forecast_temperature(points, 200, 85, &result);
	ck_assert_int_eq(result.state, FORECAST_FALLS);
}
END_TEST

START_TEST(what_is_constant_for_a_minute_is_steady)
{
	heat(61, 50, 50, 100, 0.5);
	forecast_temperature(points, 61, 85, &result);
	ck_assert_int_eq(result.state, FORECAST_STEADY);
	assert_near(result.steady_celsius, 50, 1e-9);
	forecast_temperature(points, 20, 85, &result);
	ck_assert_int_eq(result.state, FORECAST_UNKNOWN);
	ck_assert_ptr_null(strstr(result.reason, "changed"));
}
END_TEST

START_TEST(bad_points_are_skipped_and_only_the_last_count)
{
	heat(600, 40, 100, 500, 0.1);
	points[300].celsius = NAN;
	points[301].t_s = points[299].t_s;
	points[302].t_s = INFINITY;
	forecast_temperature(points, 600, 85, &result);
	ck_assert_int_eq(result.state, FORECAST_REACHES);
	assert_near(result.to_trip_s, 500 * log(60. / 15) - 599, 20);
	ck_assert(result.points <= FORECAST_POINTS);
}
END_TEST

/* What the campaign counts. A board is eligible if a third of its climb has 40 samples and its
 * noise is at most 0.3 °C. */
struct campaign {
	int reach, given, good, covered, false_safe;
	int eligible, eligible_given, eligible_good;
	int settle, safe, false_reach;
};

static bool is_safe(void)
{
	return result.state == FORECAST_STEADY || result.state == FORECAST_SETTLES ||
	       result.state == FORECAST_FALLS;
}

/* Counts the forecast at this part of the time from the load to the trip. */
static void judge_reach(struct board *board, double part, struct campaign *campaign)
{
	const double climb_s = board->trip_s - board->load_s, left_s = (1 - part) * climb_s;
	board_sample(board, board->load_s + part * climb_s);
	forecast_temperature(board->point, board->count, board->trip, &result);
	const bool given = result.state == FORECAST_REACHES,
		   good = given && fabs(result.to_trip_s - left_s) <= 0.2 * left_s,
		   eligible = climb_s / 3 >= 40 * board->sampling_s && board->sigma <= 0.3;
	campaign->reach++;
	campaign->given += given;
	campaign->good += good;
	campaign->covered +=
		given && result.to_trip_low_s <= left_s && left_s <= result.to_trip_high_s;
	campaign->false_safe += is_safe();
	campaign->eligible += eligible;
	campaign->eligible_given += eligible && given;
	campaign->eligible_good += eligible && good;
}

static void judge_settle(struct board *board, struct campaign *campaign)
{
	board_sample(board, board->load_s + 2 * board->sink_tau_s);
	forecast_temperature(board->point, board->count, board->trip, &result);
	campaign->settle++;
	campaign->safe += is_safe();
	campaign->false_reach += result.state == FORECAST_REACHES;
}

/* Half of the boards settle; the others are judged at one part of the way (0: at parts that are
 * spread evenly from a third to nine tenths). */
static void run_campaign(uint64_t seed, int boards, double part, struct campaign *campaign)
{
	static struct board board;
	*campaign = (struct campaign){0};
	for (int i = 0; i < boards; i++) {
		const double spread = 1. / 3 + (0.9 - 1. / 3) * fmod(i * 0.6180339887, 1);
		if (board_make(seed + (uint64_t)i, i % 2 == 0, &board)) {
			if (i % 2 == 0) {
				judge_reach(&board, part > 0 ? part : spread, campaign);
			} else {
				judge_settle(&board, campaign);
			}
		}
	}
	printf("forecasts at %.2f of the way: of %d boards %d answered, %d within 20 %%, %d within "
	       "the interval; of %d eligible %d answered, %d within 20 %%; false safe %d; of %d "
	       "that settle %d called safe, false reach %d\n",
		part, campaign->reach, campaign->given, campaign->good, campaign->covered,
		campaign->eligible, campaign->eligible_given, campaign->eligible_good,
		campaign->false_safe, campaign->settle, campaign->safe, campaign->false_reach);
	fflush(stdout);
}

START_TEST(answers_about_simulated_boards_are_within_a_fifth)
{
	struct campaign campaign;
	const char *wanted = getenv("FORECAST_BOARDS");
	const int boards = wanted ? (int)strtol(wanted, NULL, 10) : 600;
	run_campaign(1000001, boards, 0, &campaign);
	ck_assert_int_ge(100 * campaign.eligible_given, 75 * campaign.eligible);
	/* Of few answers, one that is off is more than it should be. */
	ck_assert_int_ge(100 * (campaign.eligible_good + 1), 95 * campaign.eligible_given);
	ck_assert_int_ge(100 * (campaign.good + 1), 90 * campaign.given);
	ck_assert_int_le(1000 * (campaign.false_safe - 1), 5 * campaign.reach);
	ck_assert_int_ge(100 * campaign.safe, 80 * campaign.settle);
	ck_assert_int_le(100 * campaign.false_reach, campaign.settle);
	for (int part = 1; wanted && part < 6; part++) {
		run_campaign(1000001, boards, part / 6., &campaign);
	}
}
END_TEST
