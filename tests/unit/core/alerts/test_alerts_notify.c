/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent of an alert: when it happened and when it was sent, what the limit suppresses and
 * what it never touches, and that no notification contradicts its value. */
#include "tests/unit/core/alerts/alerts_fixture.h"

#include "daemon/core/alerts/actions.h"
#include "tests/unit/unit.h"

static const struct alert_record *newest(const struct life *life)
{
	const struct overrides *holds = alerts_overrides(life->alerts);
	return overrides_logged(holds, holds->records);
}

static void at(struct life *life, const char *name, double value, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		life_set(life, name, value);
		life_commit(life, SECOND);
	}
}

/* Fires and clears `times` times. */
static void flap(struct life *life, const char *name, int times)
{
	for (int i = 0; i < times; i++) {
		at(life, name, 90, 1);
		at(life, name, 60, 1);
	}
}

TEST_TIMEOUT(60);

START_TEST(what_the_limit_defers_carries_when_it_happened)
{
	struct alert_rule rule = plain_rule("hot", "a/*", ALERT_ABOVE, 80);
	rule.max_per_hour = 4;
	struct life *life = life_new(&rule, 1);
	flap(life, "a/x", 1);
	ck_assert_uint_eq(life->count, 2);
	at(life, "a/x", 90, 1);
	const uint64_t fired_ns = life->now_ns;
	/* the log knows it at once, people later */
	ck_assert_uint_eq(life->count, 2);
	const struct alert_record *record = newest(life);
	ck_assert_int_eq(record->to, ALERT_FIRING);
	ck_assert_uint_eq(record->t_ns, fired_ns);
	ck_assert_uint_eq(record->sent_ns, 0);
	ck_assert_int_eq(record->flags & RECORD_SUPPRESSED, RECORD_SUPPRESSED);
	const uint64_t entries = timeline_last_serial(life->timeline);
	at(life, "a/x", 95, 3600);
	ck_assert_uint_eq(life->count, 3);
	const struct heard *heard = &life->heard[2];
	ck_assert_int_eq(heard->to, ALERT_FIRING);
	ck_assert_uint_eq(heard->happened_ns, fired_ns);
	ck_assert_uint_gt(heard->t_ns, fired_ns + 60 * SECOND);
	ck_assert_double_eq(heard->value, 90); /* of then, as the text says */
	ck_assert_str_eq(life_alert(life, "hot")->text, "a/x 90, above 80");
	/* one transition is one entry */
	const struct alert_record *same = newest(life);
	ck_assert_ptr_eq(same, record);
	ck_assert_uint_eq(same->t_ns, fired_ns);
	ck_assert_uint_eq(same->sent_ns, heard->t_ns);
	ck_assert_int_eq(same->flags & RECORD_SUPPRESSED, 0);
	const struct timeline_entry *entry = timeline_from(life->timeline, entries + 1);
	ck_assert_uint_eq(entry->t_ns, fired_ns);
	ck_assert_ptr_nonnull(strstr(entry->text, "a/x 90, above 80 (sent "));
	life_free(life);
}
END_TEST

START_TEST(a_flood_fills_neither_log_nor_timeline_and_the_log_ends_with_the_truth)
{
	struct alert_rule rules[2] = {plain_rule("hot", "a/*", ALERT_ABOVE, 80),
		plain_rule("other", "b", ALERT_ABOVE, 80)};
	rules[0].max_per_hour = rules[1].max_per_hour = 12;
	struct life *life = life_new(rules, 2);
	flap(life, "b", 1);
	const uint64_t records = alerts_overrides(life->alerts)->records;
	flap(life, "a/x", 250);
	ck_assert_uint_eq(alerts_overrides(life->alerts)->records, records + 7);
	ck_assert_int_eq(newest(life)->to, ALERT_OK);
	ck_assert_uint_eq(newest(life)->t_ns, life->now_ns);
	at(life, "a/x", 90, 1);
	ck_assert_int_eq(newest(life)->to, ALERT_FIRING);
	ck_assert_uint_eq(newest(life)->t_ns, life->now_ns);
	ck_assert_uint_eq(alerts_overrides(life->alerts)->records, records + 7);
	ck_assert_uint_eq(timeline_last_serial(life->timeline), 2 + 6);
	life_free(life);
}
END_TEST

START_TEST(a_flapping_instance_delays_no_other)
{
	struct alert_rule rules[2] = {plain_rule("hot", "a/*", ALERT_ABOVE, 80),
		plain_rule("too", "a/*", ALERT_ABOVE, 85)};
	rules[0].max_per_hour = rules[1].max_per_hour = 2;
	struct life *life = life_new(rules, 2);
	for (int i = 0; i < 20; i++) {
		at(life, "a/x", 82, 1);
		at(life, "a/x", 60, 1);
	}
	const size_t count = life->count;
	life_set(life, "a/y", 82); /* another instance of the rule */
	life_set(life, "a/x", 90); /* another rule over the same metric */
	life_commit(life, SECOND);
	ck_assert_uint_eq(life->count, count + 2);
	for (size_t i = count; i < life->count; i++) {
		ck_assert_uint_eq(life->heard[i].happened_ns, life->now_ns);
		ck_assert_uint_eq(life->heard[i].t_ns, life->now_ns);
	}
	life_free(life);
}
END_TEST

struct seen {
	size_t count;
	enum alert_phase phase;
	enum alert_severity severity;
};

static void on_state(void *ctx, const struct alert_transition *transition)
{
	struct seen *seen = ctx;
	seen->count++;
	seen->phase = transition->to;
	seen->severity = transition->alert->severity;
	ck_assert_int_eq(transition->alert->phase, transition->to);
}

/* Whoever keeps a state (the retained topic) has the present one after every sample. */
START_TEST(the_state_is_never_delayed)
{
	struct alert_rule rule = plain_rule("hot", "a", ALERT_ABOVE, 75);
	rule.critical = 85;
	rule.max_per_hour = 1;
	struct life *life = life_new(&rule, 1);
	struct seen seen = {.phase = ALERT_OK};
	ck_assert_int_eq(alerts_observe(life->alerts, on_state, &seen), 0);
	uint64_t seed = 5;
	for (int i = 0; i < 3000; i++) {
		at(life, "a", floor(100 * noise(&seed)), 1);
		const struct alert *alert = life_alert(life, "hot");
		ck_assert_int_eq(alert->phase, seen.phase);
		if (alert->phase == ALERT_FIRING) {
			ck_assert_int_eq(alert->severity, seen.severity);
		}
		if (i == 2000) { /* its end while it fires without a notification */
			at(life, "a", 80, 1);
			ck_assert_int_eq(alert->phase, ALERT_FIRING);
			rule.enabled = false;
			life->rule[0] = rule;
			life_reload(life);
			ck_assert_int_eq(seen.phase, ALERT_OK);
			rule.enabled = true;
			life->rule[0] = rule;
			life_reload(life);
		}
	}
	ck_assert_uint_gt(seen.count, 1000);
	ck_assert_uint_le(life->count, 10);
	life_free(life);
}
END_TEST

static struct alert_rule thermal(void)
{
	struct alert_rule rule = plain_rule("temperature", "a", ALERT_ABOVE, 75);
	rule.critical = 82;
	rule.clear = 72;
	rule.clear_for_ns = 10 * SECOND;
	return rule;
}

START_TEST(a_fall_from_critical_is_no_warning)
{
	struct alert_rule rule = thermal();
	struct life *life = life_new(&rule, 1);
	at(life, "a", 90, 3);
	ck_assert_uint_eq(life->count, 1);
	ck_assert_int_eq(life->heard[0].severity, ALERT_CRITICAL);
	at(life, "a", 74, 5); /* on its way down */
	at(life, "a", 60, 8);
	ck_assert_int_eq(life_alert(life, "temperature")->severity, ALERT_CRITICAL); /* it waits */
	at(life, "a", 60, 30);
	ck_assert_uint_eq(life->count, 2);
	ck_assert_int_eq(life->heard[1].to, ALERT_OK);
	ck_assert_uint_eq(alerts_overrides(life->alerts)->records, 2);
	life_free(life);
}
END_TEST

START_TEST(below_the_warning_limit_it_steps_down_without_a_notification)
{
	struct alert_rule rule = thermal();
	struct life *life = life_new(&rule, 1);
	at(life, "a", 90, 3);
	at(life, "a", 74, 60);
	const struct alert *alert = life_alert(life, "temperature");
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert_int_eq(alert->severity, ALERT_WARNING);
	ck_assert_double_eq(alert->threshold, 75);
	ck_assert_str_eq(alert->text, "a 74, clears at 72");
	ck_assert_uint_eq(life->count, 1);
	ck_assert_uint_eq(timeline_last_serial(life->timeline), 1);
	/* a warning again: now that is true */
	at(life, "a", 77, 2);
	ck_assert_uint_eq(life->count, 2);
	ck_assert_int_eq(life->heard[1].severity, ALERT_WARNING);
	ck_assert_double_eq(life->heard[1].value, 77);
	ck_assert_uint_eq(life->heard[1].happened_ns, life->now_ns - SECOND);
	ck_assert_str_eq(alert->text, "a 77, above 75");
	life_free(life);
}
END_TEST

START_TEST(a_step_down_that_waited_is_not_sent_of_a_critical_value)
{
	struct alert_rule rule = thermal();
	rule.for_ns = 2 * SECOND;
	struct life *life = life_new(&rule, 1);
	at(life, "a", 90, 6);
	at(life, "a", 74, 60);
	ck_assert_int_eq(life_alert(life, "temperature")->severity, ALERT_WARNING);
	at(life, "a", 90, 6);
	ck_assert_int_eq(life_alert(life, "temperature")->severity, ALERT_CRITICAL);
	ck_assert_uint_eq(life->count, 1);
	life_free(life);
}
END_TEST

/* Over random walks, kills and limits: what is sent as firing is past the limit it names. */
START_TEST(no_notification_contradicts_its_value)
{
	uint64_t seed = 17;
	for (int round = 0; round < 60; round++) {
		struct alert_rule rule = thermal();
		rule.for_ns = (uint64_t)(4 * noise(&seed)) * SECOND;
		rule.clear_for_ns = (uint64_t)(12 * noise(&seed)) * SECOND;
		rule.max_per_hour = (uint64_t)(20 * noise(&seed));
		struct life *life = life_new(&rule, 1);
		double value = 70;
		for (int i = 0; i < 1500; i++) {
			value += noise(&seed) < 0.03 ? 30 * (noise(&seed) - 0.5)
						     : 3 * (noise(&seed) - 0.5);
			value = value < 55 ? 55 : value > 95 ? 95 : value;
			at(life, "a", floor(value), 1);
			if (i % 400 == 399) {
				life_begin(life);
			}
		}
		for (size_t i = 0; i < life->count; i++) {
			const struct heard *heard = &life->heard[i];
			if (heard->to == ALERT_FIRING) {
				ck_assert_double_gt(
					heard->value, heard->severity == ALERT_CRITICAL ? 82 : 75);
			} else {
				ck_assert_double_le(heard->value, 72);
			}
			ck_assert_uint_le(heard->happened_ns, heard->t_ns);
		}
		life_free(life);
	}
}
END_TEST

START_TEST(an_absent_rule_has_no_threshold)
{
	struct alert_rule rule = plain_rule("lost", "a", ALERT_ABSENT, 0);
	struct life *life = life_new(&rule, 1);
	at(life, "a", NAN, 3);
	const struct alert *alert = life_alert(life, "lost");
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert(isnan(alert->threshold));
	ck_assert(isnan(newest(life)->threshold));
	life_begin(life); /* and none after a restart */
	at(life, "a", NAN, 1);
	ck_assert_int_eq(life_alert(life, "lost")->phase, ALERT_FIRING);
	ck_assert(isnan(life_alert(life, "lost")->threshold));
	life_free(life);
}
END_TEST

START_TEST(the_end_of_what_has_no_value_names_no_number)
{
	struct alert_rule rule = plain_rule("slow", "a", ALERT_ABOVE, 20);
	struct life *life = life_new(&rule, 1);
	at(life, "a", 90, 1);
	struct metric *metric = metrics_find(life->metrics, "a");
	metric_set_ended(metric, "app ended");
	life_commit(life, SECOND);
	const struct alert *alert = life_alert(life, "slow");
	ck_assert_int_eq(alert->phase, ALERT_OK);
	ck_assert_str_eq(alert->text, "a has no value any more");
	life_free(life);
}
END_TEST

/* app_gone: that the app's metric is not there is no proof that the app is. */
START_TEST(what_is_gone_stays_gone_over_a_restart_until_it_is_back)
{
	struct alert_rule rule = plain_rule("app_gone", "app/*/died", ALERT_EQUALS, 1);
	rule.for_ns = 10 * SECOND;
	struct life *life = life_new(&rule, 1);
	at(life, "app/cam/died", 1, 5);
	life_begin(life); /* pending */
	ck_assert_uint_eq(life->count, 0);
	at(life, "x", 0, 4);
	ck_assert_uint_eq(life->count, 0);
	at(life, "x", 0, 3);
	ck_assert_uint_eq(life->count, 1); /* nobody has come back */
	for (int i = 0; i < 3; i++) {
		life_begin(life);
		const struct alert *alert = life_alert(life, "app_gone"); /* at once */
		ck_assert_ptr_nonnull(alert);
		ck_assert_int_eq(alert->phase, ALERT_FIRING);
		ck_assert_str_eq(alert->instance, "cam");
		at(life, "x", 0, 90);
		ck_assert_int_eq(life_alert(life, "app_gone")->phase, ALERT_FIRING);
		ck_assert_double_eq(life_alert(life, "app_gone")->value, 1);
		life_reload(life);
		ck_assert_uint_eq(life->count, 1);
	}
	at(life, "app/cam/died", 0, 1);
	ck_assert_uint_eq(life->count, 2);
	ck_assert_int_eq(life->heard[1].to, ALERT_OK);
	ck_assert_ptr_null(alerts_at(life->alerts, 1)); /* one instance all along */
	at(life, "app/cam/died", 1, 11);
	life_begin(life);
	life->rules = 0; /* its rule goes */
	life_reload(life);
	ck_assert_uint_eq(life->count, 4);
	ck_assert_ptr_null(life_alert(life, "app_gone"));
	life_free(life);
}
END_TEST

/* An app that hangs does not attach. */
START_TEST(what_hangs_stays_so_over_a_restart_until_it_is_seen)
{
	struct alert_rule rule = plain_rule("app_hung", "app/*/hung", ALERT_EQUALS, 1);
	struct life *life = life_new(&rule, 1);
	at(life, "app/cam/hung", 1, 1);
	life_begin(life);
	at(life, "x", 0, 90);
	ck_assert_int_eq(life_alert(life, "app_hung")->phase, ALERT_FIRING);
	ck_assert(isnan(life_alert(life, "app_hung")->value));
	at(life, "app/cam/hung", NAN, 5); /* seen, and not known yet */
	ck_assert_int_eq(life_alert(life, "app_hung")->phase, ALERT_FIRING);
	at(life, "app/cam/hung", 0, 1);
	ck_assert_uint_eq(life->count, 2);
	ck_assert_int_eq(life->heard[1].to, ALERT_OK);
	life_free(life);
}
END_TEST

START_TEST(what_fires_is_there_before_its_metric_with_no_value)
{
	struct alert_rule rule = plain_rule("hot", "a/*", ALERT_ABOVE, 80);
	struct life *life = life_new(&rule, 1);
	life_set(life, "a/x", 90);
	life_set(life, "a/y", 90);
	life_commit(life, SECOND);
	const uint64_t since_ns = life->now_ns;
	life_begin(life);
	ck_assert_uint_eq(alerts_firing(life->alerts), 2);
	ck_assert(isnan(life_alert(life, "hot")->value));
	ck_assert_uint_eq(life_alert(life, "hot")->since_ns, since_ns);
	at(life, "a/y", 91, 59);
	ck_assert_uint_eq(life->count, 2);
	at(life, "a/y", 91, 2); /* x did not come back within a minute */
	ck_assert_uint_eq(life->count, 3);
	ck_assert_uint_eq(alerts_firing(life->alerts), 1);
	life_free(life);
}
END_TEST

static const char *comment(void *ctx, const char *metric, uint64_t t_ns)
{
	(void)t_ns;
	return strcmp(metric, "a/x") == 0 ? ctx : NULL;
}

START_TEST(a_firing_text_ends_with_what_is_known_of_its_metric)
{
	struct alert_rule rule = plain_rule("hot", "a/*", ALERT_ABOVE, 80);
	struct life *life = life_new(&rule, 1);
	char much[512];
	alerts_set_comment(life->alerts, comment, "the clock is capped");
	at(life, "a/x", 90, 1);
	ck_assert_str_eq(life_alert(life, "hot")->text, "a/x 90, above 80; the clock is capped");
	at(life, "a/x", 60, 1);
	ck_assert_str_eq(life_alert(life, "hot")->text, "a/x 60, no longer above 80");
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	alerts_set_comment(life->alerts, comment, much);
	at(life, "a/x", 90, 1);
	ck_assert_uint_eq(strlen(life_alert(life, "hot")->text), ALERT_TEXT - 1);
	alerts_set_comment(life->alerts, NULL, NULL);
	at(life, "a/x", 60, 1);
	at(life, "a/x", 90, 1);
	ck_assert_str_eq(life_alert(life, "hot")->text, "a/x 90, above 80");
	life_free(life);
}
END_TEST
