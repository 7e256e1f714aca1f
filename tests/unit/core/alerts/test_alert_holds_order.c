/* SPDX-License-Identifier: Apache-2.0 */
/* Holds, limits and reloads in the orders that are easily forgotten. */
#include "tests/unit/core/alerts/holds_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

START_TEST(what_nobody_was_called_for_is_told_when_its_acknowledgement_is_taken_back)
{
	ck_assert_int_eq(silence("hot", "", 5, 0), 0);
	feed(80, 1);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 0, "", now_ns), 1);
	feed(80, 10);
	heard[0] = '\0';
	ck_assert_int_eq(alerts_unack(alerts, "hot", NULL, 0, now_ns), 1);
	expect("!ok>firing(warning)later ");
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 0, "", now_ns), 1);
	ck_assert_int_eq(alerts_unack(alerts, "hot", NULL, 0, now_ns), 1);
	expect("~firing>firing(warning) ~firing>firing(warning) ");
	feed(60, 1);
	expect("!firing>ok(warning) ");
}
END_TEST

/* The limit holds the third firing back; the end of a silence does not tell it before its time. */
START_TEST(the_end_of_a_silence_leaves_what_the_limit_holds_back)
{
	limit = 2;
	start();
	feed(80, 1);
	feed(60, 1);
	feed(80, 1);
	expect("!ok>firing(warning) ~firing>ok(warning) ~ok>firing(warning) ");
	feed(60, 1);
	feed(60, 2 * 3600);
	expect("~firing>ok(warning) !firing>ok(warning)later ");
	feed(80, 1);
	expect("!ok>firing(warning) ");
	feed(60, 1);
	feed(60, 3600);
	expect("~firing>ok(warning) !firing>ok(warning)later ");
	feed(80, 1);
	expect("~ok>firing(warning) ");
	ck_assert_int_eq(silence("hot", "", 5, 0), 0);
	feed(80, 10);
	expect("~firing>firing(warning) ~firing>firing(warning) ");
	ck_assert_int_eq(alerts_at(alerts, 0)->phase, ALERT_FIRING);
	feed(80, 3600);
	expect("!ok>firing(warning)later ");
}
END_TEST

START_TEST(an_acknowledgement_goes_with_the_rule_even_when_it_was_not_told)
{
	limit = 1;
	start();
	feed(80, 1);
	feed(60, 1);
	feed(60, 3601);
	heard[0] = '\0';
	feed(80, 1);
	expect("~ok>firing(warning) ");
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 0, "", now_ns), 1);
	ck_assert_int_eq(alerts_set_rules(alerts, NULL, 0, now_ns), 0);
	ck_assert_ptr_null(overrides_ack(alerts_overrides(alerts), "hot", "cpu"));
}
END_TEST

START_TEST(steps_to_critical_have_a_limit_of_their_own)
{
	limit = 2;
	start();
	feed(80, 1);
	feed(60, 1);
	expect("!ok>firing(warning) ~firing>ok(warning) ");
	feed(95, 1);
	expect("!firing>firing(critical) ");
}
END_TEST

START_TEST(the_end_of_what_got_worse_and_was_told_is_told)
{
	ck_assert_int_eq(silence("hot", "", 5, 0), 0);
	const struct alert *alert = feed(80, 1);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 0, "", now_ns), 1);
	feed(80, 10);
	heard[0] = '\0';
	feed(95, 1);
	expect("!firing>firing(critical) ");
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 0, "", now_ns), 1);
	heard[0] = '\0';
	feed(60, 1);
	expect("!firing>ok(critical) ");
	ck_assert(!alert->notifier.acked && !alert->notifier.missed &&
		  alert->notifier.muted_until_ns == 0);
}
END_TEST

START_TEST(a_renewed_silence_has_its_old_begin_and_its_new_end)
{
	ck_assert_int_eq(silence("hot", "", 20, 0), 0);
	const struct alert_silence *kept = overrides_silence(alerts_overrides(alerts), "hot", "");
	const struct alert *alert = feed(60, 5);
	ck_assert_int_eq(silence("hot", "", 20, 0), 0);
	ck_assert_uint_eq(kept->from_ns, 100 * SECOND);
	ck_assert_uint_eq(kept->until_ns, 125 * SECOND);
	ck_assert_uint_eq(
		overrides_muted_until(alerts_overrides(alerts), alert, 124 * SECOND), 125 * SECOND);
	ck_assert_uint_eq(overrides_muted_until(alerts_overrides(alerts), alert, 125 * SECOND), 0);
	((struct alert_silence *)(uintptr_t)kept)->until_ns = UINT64_MAX;
	start();
	ck_assert_ptr_null(overrides_silence(alerts_overrides(alerts), "hot", ""));
}
END_TEST

START_TEST(the_end_of_what_nobody_was_called_for_is_quiet_also_when_its_rule_is_gone)
{
	ck_assert_int_eq(silence("hot", "", 5, 0), 0);
	feed(80, 1);
	start();
	ck_assert_int_eq(alerts_set_rules(alerts, NULL, 0, now_ns), 0);
	feed(80, 70);
	expect(".firing>ok(warning) ");
}
END_TEST

/* One entry for each hold, as long as they are few. */
START_TEST(a_flood_of_holds_leaves_the_timeline_to_others)
{
	feed(80, 1);
	const uint64_t first = timeline_last_serial(timeline);
	for (int i = 0; i < 10000; i++) {
		ck_assert_int_eq(silence("x*", "", 100, 1000), 0);
		ck_assert_int_eq(alerts_unsilence(alerts, "x*", "", 1000, now_ns), 0);
		ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 1000, "", now_ns), 1);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), first + 64);
	feed(80, 3600);
	ck_assert_uint_eq(timeline_last_serial(timeline), first + 64);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 1000, "at last", now_ns), 1);
	ck_assert_str_eq(last_entry()->text,
		"acknowledged by uid 1000: at last (29936 earlier entries suppressed)");
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 1000, "", now_ns), 1);
	ck_assert_str_eq(last_entry()->text, "acknowledged by uid 1000");
}
END_TEST
