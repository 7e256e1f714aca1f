/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgements, silences, their end, the log and the test: who is called and who is not, also
 * across a kill. */
#include "tests/unit/core/alerts/holds_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

START_TEST(a_silenced_alert_goes_on_and_is_told_when_the_silence_ends)
{
	feed(60, 1);
	ck_assert_int_eq(silence("h*", "", 10, 0), 0);
	ck_assert_str_eq(last_entry()->subject, "h*");
	ck_assert_int_eq(last_entry()->kind, TIMELINE_HOLD);
	const struct alert *alert = feed(80, 3);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert_uint_gt(alert->notifier.muted_until_ns, now_ns);
	expect(".ok>firing(warning) ");
	ck_assert_int_eq(last_entry()->kind, TIMELINE_SILENCED);
	ck_assert_int_eq(last_entry()->level, TIMELINE_INFO);
	ck_assert_ptr_nonnull(strstr(last_entry()->text, "(silenced)"));
	feed(95, 1);
	expect(".firing>firing(critical) ");
	feed(95, 5);
	expect("");
	feed(95, 1);
	expect("!ok>firing(critical)later ");
	ck_assert_int_eq(last_entry()->kind, TIMELINE_ALERT);
	ck_assert_int_eq(last_entry()->level, TIMELINE_CRITICAL);
	feed(60, 1);
	expect("!firing>ok(critical) ");
}
END_TEST

START_TEST(what_fires_and_ends_within_a_silence_calls_nobody)
{
	ck_assert_int_eq(silence("hot", "c?u", 100, 0), 0);
	feed(80, 2);
	feed(60, 1);
	expect(".ok>firing(warning) .firing>ok(warning) ");
	feed(60, 200);
	expect("");
}
END_TEST

START_TEST(the_end_of_what_people_were_called_for_is_told_in_a_silence)
{
	feed(80, 1);
	expect("!ok>firing(warning) ");
	ck_assert_int_eq(silence("*", "temperature/*", 100, 0), 0);
	expect("~firing>firing(warning) ");
	feed(60, 1);
	expect("!firing>ok(warning) ");
	feed(80, 1);
	expect(".ok>firing(warning) ");
}
END_TEST

START_TEST(an_acknowledgement_lasts_until_it_is_worse_or_over)
{
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 7, "", now_ns), -ENOENT);
	const struct alert *alert = feed(80, 1);
	expect("!ok>firing(warning) ");
	ck_assert_int_eq(alerts_ack(alerts, "hot", "gpu", 7, "", now_ns), -ENOENT);
	ck_assert_int_eq(alerts_ack(alerts, "hot", "cpu", 7, "fan ordered", now_ns), 1);
	expect("~firing>firing(warning) ");
	ck_assert(alert->notifier.acked);
	ck_assert_str_eq(last_entry()->text, "acknowledged by uid 7: fan ordered");
	ck_assert_str_eq(
		overrides_ack(alerts_overrides(alerts), "hot", "cpu")->note, "fan ordered");
	feed(80, 60);
	expect("");
	feed(95, 1);
	expect("!firing>firing(critical) ");
	ck_assert(!alert->notifier.acked);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 7, "", now_ns), 1);
	feed(80, 1);
	expect("~firing>firing(critical) .firing>firing(warning) ");
	feed(60, 1);
	expect("!firing>ok(warning) ");
	ck_assert_ptr_null(overrides_ack(alerts_overrides(alerts), "hot", "cpu"));
	feed(80, 1);
	expect("!ok>firing(warning) ");
}
END_TEST

START_TEST(an_acknowledged_alert_is_not_told_when_its_silence_ends)
{
	ck_assert_int_eq(silence("hot", "", 5, 0), 0);
	feed(80, 1);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 0, "", now_ns), 1);
	feed(80, 10);
	expect(".ok>firing(warning) ~firing>firing(warning) ~firing>firing(warning) ");
	ck_assert_int_eq(alerts_unack(alerts, "hot", "cpu", 0, now_ns), 1);
	ck_assert_int_eq(alerts_unack(alerts, "hot", "cpu", 0, now_ns), -ENOENT);
}
END_TEST

START_TEST(all_of_it_survives_a_kill)
{
	feed(80, 1);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 7, "known", now_ns), 1);
	ck_assert_int_eq(silence("nothing*", "", 20, 0), 0);
	start();
	ck_assert(alerts_at(alerts, 0)->notifier.acked); /* before the first sample */
	const struct alert *alert = feed(80, 1);
	expect("");
	ck_assert(alert->notifier.acked);
	ck_assert_uint_eq(overrides_ack(alerts_overrides(alerts), "hot", "cpu")->uid, 7);
	const struct alert_silence *kept =
		overrides_silence(alerts_overrides(alerts), "nothing*", "");
	ck_assert_uint_eq(kept->until_ns, 121 * SECOND);
	/* the log goes on */
	ck_assert_str_eq(overrides_logged(alerts_overrides(alerts), 1)->metric, "temperature/cpu");
	feed(80, 90); /* past the end of what nobody took up */
	ck_assert(alert->notifier.acked);
	ck_assert_ptr_null(overrides_silence(alerts_overrides(alerts), "nothing*", ""));
}
END_TEST

START_TEST(a_silence_that_ended_while_nobody_ran_is_made_good)
{
	ck_assert_int_eq(silence("hot", "", 20, 0), 0);
	feed(80, 1);
	expect(".ok>firing(warning) ");
	now_ns += 5 * SECOND;
	start();
	feed(80, 1);
	expect("~firing>firing(warning) ");
	now_ns += 30 * SECOND;
	start();
	feed(80, 1);
	expect("!ok>firing(warning)later ");
	start();
	feed(80, 1);
	expect("");
}
END_TEST

START_TEST(damage_is_left_out)
{
	ck_assert_int_eq(silence("hot", "", 20, 0), 0);
	ck_assert_int_eq(silence("cold", "", 20, 0), 0);
	feed(80, 1);
	ck_assert_int_eq(alerts_ack(alerts, "hot", NULL, 7, "known", now_ns), 1);
	struct overrides *holds = (struct overrides *)(uintptr_t)alerts_overrides(alerts);
	memset(holds->silence[0].rule, 'x', sizeof(holds->silence[0].rule));
	holds->ack[0].t_ns = UINT64_MAX;
	holds->record[0].severity = 200;
	start();
	ck_assert_ptr_null(overrides_silence(alerts_overrides(alerts), "hot", ""));
	ck_assert_ptr_nonnull(overrides_silence(alerts_overrides(alerts), "cold", ""));
	ck_assert_ptr_null(overrides_ack(alerts_overrides(alerts), "hot", "cpu"));
	ck_assert_ptr_null(overrides_logged(alerts_overrides(alerts), 0));
	unsigned char *bytes = holds_memory;
	srand(1);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 200; i++) {
			bytes[64 + (size_t)rand() % (overrides_bytes() - 64)] =
				(unsigned char)rand();
		}
		start();
		feed(round % 2 ? 80 : 60, 3);
	}
}
END_TEST

START_TEST(silences_are_limited_in_all_and_by_user)
{
	char rule[16];
	for (int i = 0; i < ALERT_SILENCES_UID; i++) {
		snprintf(rule, sizeof(rule), "r%d", i);
		ck_assert_int_eq(silence(rule, "", 20, 1000), 0);
	}
	ck_assert_int_eq(silence("more", "", 20, 1000), -EDQUOT);
	ck_assert_int_eq(silence("r3", "", 40, 1000), 0); /* renewed */
	for (int i = ALERT_SILENCES_UID; i < ALERT_SILENCES; i++) {
		snprintf(rule, sizeof(rule), "r%d", i);
		ck_assert_int_eq(silence(rule, "", 20, 0), 0);
	}
	ck_assert_int_eq(silence("more", "", 20, 0), -ENOSPC);
	ck_assert_int_eq(alerts_unsilence(alerts, "r0", "", 0, now_ns), 0);
	ck_assert_int_eq(alerts_unsilence(alerts, "r0", "", 0, now_ns), -ENOENT);
	ck_assert_int_eq(silence("more", "", 20, 0), 0);
	feed(60, 21);
	ck_assert_ptr_nonnull(overrides_silence(alerts_overrides(alerts), "r3", ""));
	ck_assert_ptr_null(overrides_silence(alerts_overrides(alerts), "r4", ""));
}
END_TEST

START_TEST(a_test_goes_the_whole_way_whatever_is_silenced)
{
	ck_assert_int_eq(silence("*", "", 100, 0), 0);
	ck_assert_int_eq(
		alerts_test(alerts, ALERT_CRITICAL, "hello", now_ns, now_ns + 5 * SECOND), 0);
	expect("!ok>firing(critical) ");
	ck_assert_ptr_nonnull(strstr(last_entry()->text, "hello (test)"));
	ck_assert(alerts_at(alerts, 0)->test);
	ck_assert_uint_eq(alerts_firing(alerts), 0);
	ck_assert_int_eq(alerts_test(alerts, ALERT_INFO, "x", now_ns, now_ns + SECOND), -EBUSY);
	feed(60, 4);
	expect("");
	feed(60, 1);
	expect("!firing>ok(critical) ");
	ck_assert_int_eq(alerts_test(alerts, ALERT_INFO, "x", now_ns, now_ns + SECOND), -EAGAIN);
	feed(60, 5);
	ck_assert_int_eq(alerts_test(alerts, ALERT_INFO, "x", now_ns, now_ns + SECOND), 0);
	ck_assert_uint_eq(alerts_last_test(alerts)->serial, 3);
	const struct alert_record *record = overrides_logged(alerts_overrides(alerts), 2);
	ck_assert_int_eq(record->to, ALERT_OK);
	ck_assert_int_eq(record->flags & RECORD_TEST, RECORD_TEST);
}
END_TEST
