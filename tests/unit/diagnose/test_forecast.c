/* SPDX-License-Identifier: Apache-2.0 */
/* test_forecast.c: tests forecasts of simulated boards whose future is known. FORECAST_BOARDS=2000
 * in the environment runs a longer campaign than the 400 boards of the test. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/diagnose/boards.h"

TEST_TIMEOUT(120);

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
	ck_assert_int_eq(result.soak, SOAK_THROTTLES);
}
END_TEST

START_TEST(rise_that_ends_below_the_trip_settles)
{
	heat(400, 40, 70, 150, 0.1);
	forecast_temperature(points, 300, 90, &result);
	ck_assert_int_eq(result.state, FORECAST_SETTLES);
	ck_assert_int_eq(result.soak, SOAK_SAFE);
	ck_assert(isnan(result.to_trip_s));
	assert_near(result.steady_celsius, 70, 1.5);
	assert_near(result.soak_s, 150 * log(20) - 299, 40);
}
END_TEST

START_TEST(states_of_level_and_falling_temperatures)
{
	heat(400, 60, 60, 100, 0.5);
	forecast_temperature(points, 400, 90, &result);
	ck_assert_int_eq(result.state, FORECAST_STEADY);
	ck_assert_int_eq(result.soak, SOAK_SAFE);
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

/* What the campaign counts; a false "safe" says that a board settles below a trip point that it
 * reaches. A change cannot be seen before it shows in a few samples. */
struct campaign {
	int boards, reach, third, third_given, given, good, covered;
	int safe, safe_given, false_safe, false_reach;
};

static void judge(const struct board *board, struct campaign *campaign)
{
	const bool given = result.state == FORECAST_REACHES, third = board->progress >= 1. / 3;
	if (!isfinite(board->remaining_s)) {
		campaign->safe++;
		campaign->safe_given += result.soak == SOAK_SAFE;
		campaign->false_reach += result.soak == SOAK_THROTTLES;
		return;
	}
	const double off = fabs(result.to_trip_s - board->remaining_s) / board->remaining_s;
	campaign->reach++;
	campaign->third += third;
	campaign->third_given += third && given;
	campaign->given += given;
	campaign->good += given && off <= 0.2;
	campaign->covered += given && result.to_trip_low_s <= board->remaining_s &&
			     board->remaining_s <= result.to_trip_high_s;
	campaign->false_safe +=
		result.soak == SOAK_SAFE && board->seen_s >= fmax(20, 8 * board->sampling_s);
}

START_TEST(answers_about_simulated_boards_are_within_a_fifth)
{
	static struct board board;
	struct campaign campaign = {0};
	const char *wanted = getenv("FORECAST_BOARDS");
	const int boards = wanted ? (int)strtol(wanted, NULL, 10) : 400;
	for (uint64_t seed = 100001; campaign.boards < boards; seed++) {
		if (board_make(seed, &board)) {
			campaign.boards++;
			forecast_temperature(board.point, board.count, board.trip, &result);
			judge(&board, &campaign);
		}
	}
	printf("forecasts: %d boards; %d reach the trip: %d answers, %d within 20 %%, %d within "
	       "the interval; after a third of the way %d of %d answered; of %d safe boards %d "
	       "called so; false safe %d, false reach %d\n",
		campaign.boards, campaign.reach, campaign.given, campaign.good, campaign.covered,
		campaign.third_given, campaign.third, campaign.safe, campaign.safe_given,
		campaign.false_safe, campaign.false_reach);
	ck_assert_int_gt(campaign.given, campaign.third / 20);
	/* Of few answers, one that is off is more than 5 %. */
	ck_assert_int_ge(100 * (campaign.good + 1), 95 * campaign.given);
	ck_assert_int_gt(campaign.safe_given, campaign.safe / 8);
	ck_assert_int_eq(campaign.false_safe, 0);
	ck_assert_int_le(100 * campaign.false_reach, campaign.safe);
}
END_TEST
