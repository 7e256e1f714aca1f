/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts and explanations from the history that the daemon has. */
#include <math.h>
#include <time.h>

#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"
#include "tests/unit/varlink/api_apps_fixture.h"

enum { TRIP = 85 };

static struct source *zones;
static struct metric *zone, *headroom;

/* The machine may have been started a moment ago. */
static uint64_t hours_up(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec + 7200) * FIXTURE_SECOND + (uint64_t)now.tv_nsec;
}

static void start_late(void)
{
	static struct sysops table;
	table = *sysops();
	table.now_ns = hours_up;
	sysops_replace(&table);
	fixture_open();
	ck_assert_int_eq(sources_add(f.core.sources, "zones", FIXTURE_SECOND, &zones), 0);
	ck_assert_int_eq(
		metrics_add(f.core.metrics, zones, "temperature/die", UNIT_CELSIUS, &zone), 0);
	ck_assert_int_eq(
		metrics_add(f.core.metrics, zones, "headroom/die", UNIT_CELSIUS, &headroom), 0);
	ck_assert_int_eq(diagnoses_create(&f.core, &f.core.diagnoses), 0);
	fixture_serve();
}

static void end_late(void)
{
	diagnoses_destroy(f.core.diagnoses);
	fixture_close();
	sysops_replace(NULL);
}

FIXTURE(start_late, end_late);

/* An hour, a value each `every` s: at rest, then, for the last load_s, towards 100 °C. */
static cJSON *forecast(int every, double load_s, double tau_s)
{
	for (int ago = 3600; ago >= 0; ago -= every) {
		double since_s = fmax(0, load_s - ago);
		double celsius = 100 - 50 * exp(-since_s / tau_s) + 0.1 * (ago / every % 2);
		metric_set(zone, celsius);
		metric_set(headroom, TRIP - celsius);
		metrics_commit(f.core.metrics, zones, f.now_ns - (uint64_t)ago * FIXTURE_SECOND);
	}
	return ask("Forecast", NULL);
}

static const struct {
	int every;
	double load_s, tau_s;
} loads[] = {{1, 120, 200}, {1, 900, 1500}, {10, 600, 800}};

START_LOOP_TEST(a_load_of_minutes_is_seen_after_an_hour_at_rest, 0, COUNT(loads))
{
	cJSON *reply = forecast(loads[_i].every, loads[_i].load_s, loads[_i].tau_s);
	const cJSON *found = item_of(reply, "temperatures", "metric", "temperature/die");
	double left_s = loads[_i].tau_s * log(50. / (100 - TRIP)) - loads[_i].load_s;
	ck_assert_str_eq(string(found, "state"), "rising_to_trip");
	ck_assert_double_eq_tol(number(found, "trip_in_s"), left_s, 0.2 * left_s);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(an_hour_without_a_load_is_steady)
{
	cJSON *reply = forecast(1, 0, 100);
	const cJSON *found = item_of(reply, "temperatures", "metric", "temperature/die");
	ck_assert_str_eq(string(found, "state"), "steady");
	ck_assert_double_gt(number(found, "span_s"), 3000);
	ck_assert_ptr_nonnull(strstr(string(found, "verdict"), "steady at 50.1 °C, safe: "));
	cJSON_Delete(reply);
}
END_TEST

/* One value for 100 s: samples enough, but not of those that are 15 s apart. */
START_TEST(a_minute_of_one_value_is_steady)
{
	for (int ago = 100; ago >= 0; ago--) {
		metric_set(zone, 50);
		metric_set(headroom, TRIP - 50);
		metrics_commit(f.core.metrics, zones, f.now_ns - (uint64_t)ago * FIXTURE_SECOND);
	}
	cJSON *reply = ask("Forecast", NULL);
	const cJSON *found = item_of(reply, "temperatures", "metric", "temperature/die");
	ck_assert_str_eq(string(found, "state"), "steady");
	ck_assert_ptr_nonnull(strstr(string(found, "verdict"), "steady at 50.0 °C, safe: "));
	cJSON_Delete(reply);
}
END_TEST

START_TEST(what_throttles_or_is_next_to_its_limit_is_not_safe)
{
	static const char *const verdicts[] = {
		"steady at 50.1 °C, not safe: 0.7 °C below its trip point",
		"throttled now at 50.0 °C; steady at 50.1 °C: 0.7 °C below its trip point"};
	struct metric *active;
	cJSON_Delete(forecast(1, 0, 100));
	metric_set(headroom, 0.8);
	ck_assert_int_eq(
		metrics_add(f.core.metrics, zones, "throttle/active", UNIT_BOOL, &active), 0);
	for (int i = 0; i < 2; i++) {
		metric_set(active, i);
		cJSON *reply = ask("Forecast", NULL);
		const cJSON *found = item_of(reply, "temperatures", "metric", "temperature/die");
		ck_assert_str_eq(string(found, "verdict"), verdicts[i]);
		cJSON_Delete(reply);
	}
}
END_TEST

static uint64_t changed = UINT64_MAX; /* 40 ms longer are the frames from that one on */

/* Frames of 48 ms, one each 66 ms from t0_ns on; one is longer. */
static void play(uint64_t t0_ns, uint64_t slow, uint64_t last)
{
	const uint64_t now_ns = f.now_ns, ms = 1000000;
	f.now_ns = t0_ns - FIXTURE_SECOND;
	struct app_process *process = attach("cam", geteuid());
	f.now_ns = now_ns;
	declare(process, 0, "infer", "", 0);
	for (uint64_t i = 0; i < last; i++) {
		const uint64_t longer = i > changed ? i - changed : 0;
		struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = t0_ns + (i * 66 + longer * 40) * ms,
			.value = (i == slow	      ? 62
					 : longer > 0 ? 88
						      : 48) *
				 ms,
			.frame = i};
		apps_record(f.core.apps, process, 0, &record, now_ns);
	}
	apps_drained(f.core.apps, process);
}

START_TEST(a_sensor_that_is_read_each_50_ms_is_compared_around_the_frame)
{
	const uint64_t step_ns = 50000000, t0_ns = f.now_ns - 50 * (uint64_t)FIXTURE_SECOND,
		       slow_ns = t0_ns + 300 * (uint64_t)66000000 + 62000000;
	struct metric *delay;
	play(t0_ns, 300, 600);
	ck_assert_int_eq(
		metrics_add(f.core.metrics, zones, "process/cam/run_delay", UNIT_PERCENT, &delay),
		0);
	for (uint64_t t_ns = t0_ns; t_ns < f.now_ns; t_ns += step_ns) {
		metric_set(delay, t_ns >= slow_ns && t_ns < slow_ns + step_ns ? 60 : 2);
		metrics_commit(f.core.metrics, zones, t_ns);
	}
	cJSON *reply = ask("Explain", "{\"app\":\"cam\"}");
	ck_assert_double_eq(number(reply, "frame"), 300);
	const cJSON *found = item_of(reply, "differences", "what", "process/cam/run_delay");
	ck_assert_double_eq(number(found, "value"), 60);
	ck_assert_double_eq(number(found, "usual"), 2);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(after_a_change_the_worst_frame_is_compared_with_before)
{
	changed = 300;
	play(f.now_ns - 52 * (uint64_t)FIXTURE_SECOND, 0, 600);
	changed = UINT64_MAX;
	cJSON *reply = ask("Explain", "{\"app\":\"cam\"}");
	ck_assert_double_eq_tol(number(reply, "took_ms"), 88, 0.1);
	ck_assert_double_eq_tol(number(reply, "usual_ms"), 48, 0.1);
	ck_assert_ptr_nonnull(strstr(string(reply, "summary"), "; all frames have been slow for "));
	cJSON_Delete(reply);
}
END_TEST
