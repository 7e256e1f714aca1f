/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes: what a line is, what makes none, and what leaks are against what loads are. */
#include "tests/unit/core/alerts/alerts_fixture.h"
#include "tests/unit/unit.h"

#define MINUTE (60 * SECOND)
#define MIB 1048576.0

static struct alert_slope window;
static uint64_t now_ns;

static void setup(void)
{
	memset(&window, 0, sizeof(window));
	window.slope = NAN;
	now_ns = 1000 * SECOND;
}

static enum alert_slope_found add(uint64_t passed_ns, double value)
{
	now_ns += passed_ns;
	return alert_slope_add(&window, 10 * MINUTE, value, now_ns);
}

TEST_TIMEOUT(60);
FIXTURE(setup, NULL);

START_TEST(a_line_has_its_slope_in_units_a_minute)
{
	uint64_t seed = 5;
	double x = 0;
	for (int i = 0; i < 3000; i++) {
		/* irregular times: the points have their own */
		uint64_t passed_ns = SECOND / 10 + (uint64_t)(noise(&seed) * 2e9);
		x += (double)passed_ns / 60e9;
		add(passed_ns, 1e9 + 7.5 * x);
	}
	ck_assert_double_eq_tol(window.slope, 7.5, 1e-4);
	ck_assert_uint_le(window.to - window.from, ALERT_SLOPE_POINTS);
	for (int i = 0; i < 700; i++) {
		add(SECOND, 1e9);
	}
	ck_assert_double_eq(window.slope, 0);
}
END_TEST

START_TEST(noise_has_hardly_a_slope)
{
	uint64_t seed = 9;
	for (int i = 0; i < 3000; i++) {
		add(SECOND, 100 + 10 * noise(&seed));
		if (i > 700) {
			ck_assert_double_lt(fabs(window.slope), 1.5);
		}
	}
}
END_TEST

START_TEST(less_than_half_a_window_is_not_known)
{
	enum alert_slope_found found = ALERT_SLOPE_KNOWN;
	for (int i = 0; i < 300; i++) {
		found = add(SECOND, i);
		ck_assert_int_eq(found, ALERT_SLOPE_UNKNOWN);
	}
	for (int i = 300; i < 330; i++) {
		found = add(SECOND, i);
	}
	ck_assert_int_eq(found, ALERT_SLOPE_KNOWN);
	ck_assert_double_eq_tol(window.slope, 60, 1e-9);
}
END_TEST

/* Of a gap, a suspend and a restart nothing reaches what comes behind it. */
START_TEST(what_is_broken_begins_anew)
{
	for (int i = 0; i < 700; i++) {
		add(SECOND, 5);
	}
	ck_assert_double_eq(window.slope, 0);
	ck_assert_int_eq(add(3 * MINUTE, 5e6), ALERT_SLOPE_UNKNOWN);
	for (int i = 0; i < 400; i++) {
		add(SECOND, 5e6);
	}
	ck_assert_double_eq(window.slope, 0);
	alert_slope_break(&window);
	ck_assert_int_eq(add(SECOND, 1), ALERT_SLOPE_UNKNOWN);
	for (int i = 0; i < 400; i++) {
		add(SECOND, 1);
	}
	ck_assert_double_eq(window.slope, 0);
	ck_assert_int_eq(add(SECOND, NAN), ALERT_SLOPE_VANISHED);
	ck_assert(isnan(window.slope));
	ck_assert_int_eq(add(SECOND, 77), ALERT_SLOPE_VANISHED);
	for (int i = 0; i < 400; i++) {
		add(SECOND, 77);
	}
	ck_assert_double_eq(window.slope, 0);
	/* a short gap is none: the points have their times */
	ck_assert_int_eq(add(2 * MINUTE, 77), ALERT_SLOPE_KNOWN);
}
END_TEST

START_TEST(damage_is_no_slope)
{
	for (int i = 0; i < 700; i++) {
		add(SECOND, 5);
	}
	const struct alert_slope good = window;
	alert_slope_restore(&window, now_ns);
	ck_assert_mem_eq(&window, &good, sizeof(good));
	window.point[window.to % 33].t_ns = UINT64_MAX; /* beside those that count: half written */
	alert_slope_restore(&window, now_ns);
	ck_assert_double_eq(window.slope, 0);
	for (int damage = 0; damage < 5; damage++) {
		window = good;
		switch (damage) {
		case 0:
			window.point[(window.to - 1) % 33].t_ns = now_ns + 1;
			break;
		case 1:
			window.point[(window.from + 3) % 33].value = INFINITY;
			break;
		case 2:
			window.point[(window.from + 3) % 33].t_ns = 1;
			break;
		case 3:
			window.from = window.to + 1;
			break;
		default:
			memset(&window, 0xff, sizeof(window));
			window.to = window.from + 5;
		}
		alert_slope_restore(&window, now_ns);
		ck_assert(isnan(window.slope));
		ck_assert_int_eq(add(SECOND, 5),
			window.vanished ? ALERT_SLOPE_VANISHED : ALERT_SLOPE_UNKNOWN);
	}
}
END_TEST

/* The built-in rule `leak` (config_alerts.c). */
static struct life *leak_life(void)
{
	struct alert_rule rule = plain_rule("leak", "process/*/rss", ALERT_SLOPE, MIB);
	rule.clear = MIB / 2;
	rule.over_ns = 20 * MINUTE;
	rule.for_ns = 25 * MINUTE;
	rule.clear_for_ns = MINUTE;
	return life_new(&rule, 1);
}

static void live(struct life *life, double rss, double grows, int minutes)
{
	for (int i = 0; i < 60 * minutes; i++) {
		struct metric *metric;
		ck_assert_int_eq(metrics_add(life->metrics, life->source, "process/cam/rss",
					 UNIT_BYTES, &metric),
			0);
		metric_set(metric, rss + grows * i / 60);
		life_commit(life, SECOND);
	}
}

START_TEST(a_loading_model_is_no_leak)
{
	struct life *life = leak_life();
	live(life, 50 * MIB, 0, 30);
	live(life, 50 * MIB, 2000 * MIB, 1); /* in a minute */
	live(life, 2050 * MIB, 0, 60);
	live(life, 9000 * MIB, 0, 60); /* in an instant */
	ck_assert_uint_eq(life->count, 0);
	life_free(life);
}
END_TEST

START_TEST(a_leak_fires_and_ends_with_its_process)
{
	struct life *life = leak_life();
	live(life, 50 * MIB, 0.9 * MIB, 120); /* not so much */
	ck_assert_uint_eq(life->count, 0);
	live(life, 158 * MIB, 12.3 * MIB, 60);
	ck_assert_uint_eq(life->count, 1);
	const struct alert *alert = life_alert(life, "leak");
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert_str_eq(alert->instance, "cam");
	ck_assert_double_eq_tol(alert->value, 12.3 * MIB, 1);
	ck_assert_ptr_nonnull(strstr(alert->text, "process/cam/rss grows by "));
	ck_assert_ptr_nonnull(strstr(alert->text, " MiB per minute"));
	/* a suspend leaves the alert as it is */
	alerts_break(life->alerts);
	live(life, 900 * MIB, 12.3 * MIB, 2);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert(isnan(alert->value));
	/* the process starts anew */
	life_set(life, "process/cam/rss", NAN);
	life_commit(life, SECOND);
	live(life, 50 * MIB, 0, 2);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	ck_assert_str_eq(alert->text, "process/cam/rss is not known to grow any more");
	/* and grows, and stops growing */
	live(life, 50 * MIB, 10 * MIB, 60);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	live(life, 650 * MIB, 0, 30);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	ck_assert_str_eq(alert->text, "process/cam/rss no longer grows by 1 MiB per minute");
	life_free(life);
}
END_TEST

/* Half of it before a kill, half of it behind: the window is in the memory. */
START_TEST(a_leak_outlives_a_kill)
{
	struct life *life = leak_life();
	live(life, 50 * MIB, 5 * MIB, 34);
	life_begin(life);
	live(life, 220 * MIB, 5 * MIB, 2);
	ck_assert_uint_eq(life->count, 1);
	for (int i = 0; i < 3; i++) {
		life_begin(life);
		live(life, 230 * MIB, 5 * MIB, 1);
		ck_assert_int_eq(life_alert(life, "leak")->phase, ALERT_FIRING);
	}
	ck_assert_uint_eq(life->count, 1);
	life_free(life);
}
END_TEST

/* What an absent rule had seen and is not there behind a kill still fires. */
START_TEST(what_is_absent_behind_a_kill_is_still_absent)
{
	struct alert_rule rule = plain_rule("absent", "frame/*/fps", ALERT_ABSENT, 0);
	struct life *life = life_new(&rule, 1);
	life_set(life, "frame/cam/fps", 30);
	life_commit(life, SECOND);
	life_set(life, "frame/cam/fps", NAN);
	life_commit(life, SECOND);
	ck_assert_uint_eq(life->count, 1);
	life_begin(life);
	for (int i = 0; i < 120; i++) {
		life_commit(life, SECOND);
	}
	ck_assert_uint_eq(life->count, 1);
	ck_assert_int_eq(life_alert(life, "absent")->phase, ALERT_FIRING);
	ck_assert_str_eq(life_alert(life, "absent")->instance, "cam");
	life_set(life, "frame/cam/fps", 30);
	life_commit(life, SECOND);
	ck_assert_uint_eq(life->count, 2);
	ck_assert_int_eq(life_alert(life, "absent")->phase, ALERT_OK);
	life_free(life);
}
END_TEST

START_TEST(what_vanished_once_is_forgotten_when_it_is_known_again)
{
	struct alert_slope fresh = {.slope = NAN};
	const uint64_t over_ns = 64 * SECOND;
	ck_assert_int_eq(alert_slope_add(&fresh, over_ns, NAN, SECOND), ALERT_SLOPE_VANISHED);
	ck_assert_int_eq(alert_slope_add(&fresh, over_ns, 1, 2 * SECOND), ALERT_SLOPE_VANISHED);
	for (uint64_t t = 4; t < 60; t += 2) {
		alert_slope_add(&fresh, over_ns, (double)t, t * SECOND);
	}
	ck_assert_int_eq(alert_slope_add(&fresh, over_ns, 60, 60 * SECOND), ALERT_SLOPE_KNOWN);
	alert_slope_break(&fresh);
	ck_assert_int_eq(alert_slope_add(&fresh, over_ns, 62, 62 * SECOND), ALERT_SLOPE_UNKNOWN);
}
END_TEST

START_TEST(another_window_is_another_rule)
{
	struct alert_rule rule = plain_rule("leak", "rss", ALERT_SLOPE, 1);
	struct life *life = life_new(&rule, 1);
	for (int i = 0; i < 64; i++) {
		life_set(life, "rss", 10.0 * i);
		life_commit(life, SECOND);
	}
	ck_assert_int_eq(life_alert(life, "leak")->phase, ALERT_FIRING);
	life->rule[0].over_ns = 32 * SECOND;
	life_begin(life);
	life_set(life, "rss", 640);
	life_commit(life, SECOND);
	ck_assert_int_eq(life_alert(life, "leak")->phase, ALERT_OK);
	for (int i = 65; i < 128; i++) {
		life_set(life, "rss", 10.0 * i);
		life_commit(life, SECOND);
	}
	ck_assert_int_eq(life_alert(life, "leak")->phase, ALERT_FIRING);
	life->rule[0].over_ns = 64 * SECOND;
	life->count = 0;
	life_reload(life);
	ck_assert_uint_eq(life->count, 1);
	ck_assert_int_eq(life->heard[0].to, ALERT_OK);
	life_free(life);
}
END_TEST
