/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts: when they fire, step, clear, and what people are told. */
#include "daemon/core/alerts/alerts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static struct sources *sources;
static struct metrics *metrics;
static struct timeline *timeline;
static struct alerts *alerts;
static struct source *source, *other;
static uint64_t now_ns;

static char heard[1024];

static void on_transition(void *ctx, const struct alert_transition *transition)
{
	(void)ctx;
	size_t used = strlen(heard);
	snprintf(heard + used, sizeof(heard) - used, "%s>%s(%s) ",
		alert_phase_name(transition->from), alert_phase_name(transition->to),
		alert_severity_name(transition->alert->severity));
	ck_assert_int_eq(transition->alert->phase, transition->to);
	ck_assert_uint_eq(transition->t_ns, transition->alert->t_ns);
}

static void setup(void)
{
	heard[0] = '\0';
	now_ns = 100 * SECOND;
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	ck_assert_int_eq(sources_add(sources, "two", SECOND, &other), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(64, &timeline), 0);
	ck_assert_int_eq(alerts_create(metrics, timeline, &alerts), 0);
	ck_assert_int_eq(alerts_observe(alerts, on_transition, NULL), 0);
}

static void teardown(void)
{
	alerts_destroy(alerts);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static struct alert_rule rule_of(const char *metric, enum alert_kind kind, double threshold)
{
	struct alert_rule rule = {.name = "r",
		.kind = kind,
		.threshold = threshold,
		.critical = NAN,
		.clear = NAN,
		.severity = ALERT_WARNING,
		.enabled = true};
	snprintf(rule.metric, sizeof(rule.metric), "%s", metric);
	return rule;
}

static void set_rule(struct alert_rule rule)
{
	ck_assert_int_eq(alerts_set_rules(alerts, &rule, 1, now_ns), 0);
}

static struct metric *add(const char *name, enum unit unit)
{
	struct metric *metric = NULL;
	ck_assert_int_eq(metrics_add(metrics, source, name, unit, &metric), 0);
	return metric;
}

/* A second passes, then the metric has the value (NAN = null). */
static const struct alert *feed(struct metric *metric, double value)
{
	now_ns += SECOND;
	metric_set(metric, value);
	metrics_commit(metrics, source, now_ns);
	alerts_commit(alerts, source, now_ns);
	return alerts_at(alerts, 0);
}

FIXTURE(setup, teardown);

/* covers G0.16 */
START_TEST(temperatures_fire_at_the_threshold_and_step_to_critical)
{
	struct alert_rule rule = rule_of("temperature/*", ALERT_ABOVE, 75);
	rule.critical = 82;
	rule.clear = 72;
	set_rule(rule);
	struct metric *zone = add("temperature/cpu", UNIT_CELSIUS);
	ck_assert_int_eq(feed(zone, 74.9)->phase, ALERT_OK);
	ck_assert_str_eq(heard, "");
	const struct alert *alert = feed(zone, 75);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert_str_eq(alert->text, "THERMAL WARNING: 75.0C (threshold: 75.0)");
	ck_assert_str_eq(alert->instance, "cpu");
	feed(zone, 81);
	feed(zone, 82.04);
	ck_assert_str_eq(alert->text, "THERMAL CRITICAL: 82.0C (threshold: 82.0)");
	feed(zone, 80); /* above 82 - (75 - 72): stays critical */
	ck_assert_int_eq(alert->severity, ALERT_CRITICAL);
	feed(zone, 79);
	ck_assert_int_eq(alert->severity, ALERT_WARNING);
	feed(zone, 73);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	feed(zone, 72);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	ck_assert_str_eq(heard, "ok>firing(warning) firing>firing(critical) "
				"firing>firing(warning) firing>ok(warning) ");
	ck_assert_uint_eq(alert->transitions, 4);
	ck_assert_uint_eq(timeline_last_serial(timeline), 4);
	ck_assert_str_eq(timeline_from(timeline, 2)->subject, "r:cpu");
	ck_assert_int_eq(timeline_from(timeline, 2)->level, TIMELINE_CRITICAL);
	ck_assert_int_eq(timeline_from(timeline, 4)->level, TIMELINE_INFO);
}
END_TEST

START_TEST(everything_else_fires_past_the_threshold)
{
	set_rule(rule_of("cpu/utilization", ALERT_ABOVE, 95));
	struct metric *cpu = add("cpu/utilization", UNIT_PERCENT);
	ck_assert_int_eq(feed(cpu, 95)->phase, ALERT_OK);
	const struct alert *alert = feed(cpu, 97.2);
	ck_assert_str_eq(alert->text, "cpu/utilization 97.2 percent, above 95");
	ck_assert_str_eq(alert->instance, "_");
	ck_assert_uint_eq(alerts_firing(alerts), 1);
	feed(cpu, 95);
	ck_assert_str_eq(alert->text, "cpu/utilization 95 percent, no longer above 95");
	ck_assert_uint_eq(alerts_firing(alerts), 0);
}
END_TEST

START_TEST(below_and_equals_look_the_other_ways)
{
	struct alert_rule rules[2] = {rule_of("temperature/a", ALERT_BELOW, 5),
		rule_of("throttle/active", ALERT_EQUALS, 1)};
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), 0);
	struct metric *zone = add("temperature/a", UNIT_CELSIUS);
	ck_assert_int_eq(feed(zone, 5.1)->phase, ALERT_OK);
	ck_assert_int_eq(feed(zone, 5)->phase, ALERT_FIRING);
	ck_assert_int_eq(feed(zone, 6)->phase, ALERT_OK);
	struct metric *flag = add("throttle/active", UNIT_BOOL);
	feed(flag, 0);
	const struct alert *alert = alerts_at(alerts, 1);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	feed(flag, 1);
	ck_assert_str_eq(alert->text, "throttle/active is on");
	feed(flag, 0);
	ck_assert_int_eq(alert->phase, ALERT_OK);
}
END_TEST

START_TEST(hold_times_count_in_both_directions)
{
	struct alert_rule rule = rule_of("a", ALERT_ABOVE, 10);
	rule.for_ns = 3 * SECOND;
	rule.clear_for_ns = 2 * SECOND;
	set_rule(rule);
	struct metric *a = add("a", UNIT_NONE);
	ck_assert_int_eq(feed(a, 11)->phase, ALERT_PENDING);
	feed(a, 11);
	ck_assert_int_eq(feed(a, 9)->phase, ALERT_OK); /* not long enough */
	feed(a, 11);
	feed(a, 11);
	ck_assert_int_eq(feed(a, 11)->phase, ALERT_PENDING);
	ck_assert_str_eq(heard, "");
	ck_assert_int_eq(feed(a, 11)->phase, ALERT_FIRING);
	feed(a, 9);
	feed(a, 9);
	feed(a, 11); /* not calm for long enough */
	feed(a, 9);
	ck_assert_int_eq(feed(a, 9)->phase, ALERT_FIRING);
	ck_assert_int_eq(feed(a, 9)->phase, ALERT_OK);
	ck_assert_str_eq(heard, "ok>firing(warning) firing>ok(warning) ");
}
END_TEST

START_TEST(a_null_changes_no_phase)
{
	set_rule(rule_of("a", ALERT_ABOVE, 10));
	struct metric *a = add("a", UNIT_NONE);
	ck_assert_int_eq(feed(a, NAN)->phase, ALERT_OK);
	feed(a, 11);
	const struct alert *alert = feed(a, NAN);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert(isnan(alert->value));
	ck_assert_int_eq(feed(a, 1)->phase, ALERT_OK);
}
END_TEST

START_TEST(absent_fires_on_null_stale_and_gone)
{
	set_rule(rule_of("a", ALERT_ABSENT, 0));
	struct metric *a = add("a", UNIT_NONE);
	const struct alert *alert = feed(a, 1);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	feed(a, NAN);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	ck_assert_str_eq(alert->text, "a has no value");
	feed(a, 1);
	ck_assert_str_eq(alert->text, "a has a value again");
	/* Its source falls silent; another one's commits tell. */
	source_report(source, SOURCE_OK, NULL);
	alerts_commit(alerts, other, now_ns + 3 * SECOND);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	alerts_commit(alerts, other, now_ns + 4 * SECOND);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
	now_ns += 4 * SECOND;
	feed(a, 1);
	ck_assert_int_eq(alert->phase, ALERT_OK);
	alerts_retire(alerts, a, now_ns);
	metrics_retire(metrics, a);
	ck_assert_ptr_eq(alerts_at(alerts, 0), alert);
	alerts_commit(alerts, other, now_ns + SECOND);
	ck_assert_int_eq(alert->phase, ALERT_PENDING);
	alerts_commit(alerts, other, now_ns + SECOND + ALERT_ABSENT_GRACE_NS);
	ck_assert_int_eq(alert->phase, ALERT_FIRING);
}
END_TEST

START_TEST(a_metric_that_goes_clears_its_alert)
{
	set_rule(rule_of("a", ALERT_ABOVE, 10));
	struct metric *a = add("a", UNIT_NONE);
	feed(a, 11);
	alerts_retire(alerts, a, now_ns + SECOND);
	metrics_retire(metrics, a);
	ck_assert_ptr_null(alerts_at(alerts, 0));
	ck_assert_str_eq(heard, "ok>firing(warning) firing>ok(warning) ");
	ck_assert_str_eq(timeline_from(timeline, 2)->text, "a is gone");
	/* Another metric in its slot starts clean. */
	a = add("a", UNIT_NONE);
	ck_assert_int_eq(feed(a, 1)->phase, ALERT_OK);
}
END_TEST

START_TEST(unchanged_rules_keep_their_states)
{
	struct alert_rule rules[2] = {rule_of("a", ALERT_ABOVE, 10), rule_of("a", ALERT_ABOVE, 5)};
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), 0);
	struct metric *a = add("a", UNIT_NONE);
	feed(a, 11);
	ck_assert_uint_eq(alerts_firing(alerts), 2);
	heard[0] = '\0';
	rules[1].threshold = 6;
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), 0);
	ck_assert_str_eq(heard, "firing>ok(warning) ");
	ck_assert_uint_eq(alerts_firing(alerts), 1);
	feed(a, 11);
	ck_assert_uint_eq(alerts_firing(alerts), 2);
	ck_assert_str_eq(heard, "firing>ok(warning) ok>firing(warning) ");
	rules[0].enabled = false;
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 1, now_ns), 0);
	ck_assert_ptr_null(alerts_at(alerts, 0));
	ck_assert_int_eq(alerts_set_rules(alerts, NULL, 0, now_ns), 0);
}
END_TEST

START_TEST(messages_are_filled_in)
{
	struct alert_rule rule = rule_of("cpu/*/utilization", ALERT_ABOVE, 90.5);
	snprintf(rule.message, sizeof(rule.message), "%s",
		"core {instance}: {value} {unit} > {threshold} ({metric}) {x} {");
	set_rule(rule);
	struct metric *cpu = add("cpu/3/utilization", UNIT_PERCENT);
	ck_assert_str_eq(
		feed(cpu, 99.25)->text, "core 3: 99.2 percent > 90.5 (cpu/3/utilization) {x} {");
	struct alert_rule single = rule_of("cpu/utilization", ALERT_ABOVE, 90.5);
	snprintf(single.message, sizeof(single.message), "{instance} is at {value}");
	set_rule(single);
	struct metric *all = add("cpu/utilization", UNIT_PERCENT);
	ck_assert_str_eq(feed(all, 99.25)->text, "cpu/utilization is at 99.2");
	memset(rule.message, 'x', sizeof(rule.message) - 1);
	memcpy(rule.message + sizeof(rule.message) - 9, "{metric}", 8);
	set_rule(rule);
	ck_assert_uint_lt(strlen(feed(cpu, 99)->text), ALERT_TEXT);
}
END_TEST

START_TEST(noise_inside_the_hysteresis_is_one_alert)
{
	struct alert_rule rule = rule_of("a", ALERT_ABOVE, 80);
	rule.clear = 70;
	rule.critical = 90;
	set_rule(rule);
	struct metric *a = add("a", UNIT_PERCENT);
	uint64_t seed = 1;
	for (int i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		feed(a, 71 + (double)(seed >> 33) / 2147483648.0 * 18);
	}
	ck_assert_uint_eq(alerts_at(alerts, 0)->transitions, 1);
	for (int i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		feed(a, 81 + (double)(seed >> 33) / 2147483648.0 * 18);
	}
	ck_assert_uint_eq(alerts_at(alerts, 0)->transitions, 2);
}
END_TEST

/* As many commits as it takes to look up the rules of all metrics. */
static void feed_new(struct metric *metric)
{
	for (size_t i = 0; i <= ALERT_INSTANCES_MAX * ALERT_WORK_INSTANCE / ALERT_WORK_COMMIT;
		i++) {
		feed(metric, 1);
	}
}

/* Metrics of a user's apps; how many of their instances were refused. */
static size_t add_metrics_of(uid_t owner, int count)
{
	const uint64_t refused = alerts_refused(alerts);
	struct metric *metric = NULL;
	for (int i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof(name), "m/%u_%d", (unsigned)owner, i);
		metric = add(name, UNIT_NONE);
		metric->owner = owner;
	}
	feed_new(metric);
	return alerts_refused(alerts) - refused;
}

START_TEST(each_user_has_a_share_of_the_instances)
{
	set_rule(rule_of("m/*", ALERT_ABOVE, 2));
	ck_assert_uint_eq(add_metrics_of(1000, ALERT_OWN_MAX), ALERT_OWN_MAX / 2);
	ck_assert_uint_eq(add_metrics_of(1001, ALERT_OWN_MAX / 4), 0);
	/* the device has the rest, and after that each user a part of what is on top */
	ck_assert_uint_eq(
		add_metrics_of(0, ALERT_OWN_MAX), 3 * ALERT_OWN_MAX / 4 - ALERT_OWN_MAX / 8);
	ck_assert_uint_eq(alerts_count(alerts, alerts_rule_at(alerts, 0), now_ns).instances,
		ALERT_INSTANCES_MAX);
}
END_TEST

START_TEST(device_that_uses_all_leaves_each_user_a_part_on_top)
{
	set_rule(rule_of("m/*", ALERT_ABOVE, 2));
	ck_assert_uint_eq(add_metrics_of(0, 2 * ALERT_OWN_MAX), ALERT_OWN_MAX);
	ck_assert_uint_eq(add_metrics_of(1000, ALERT_OWN_MAX / 8), ALERT_OWN_MAX / 16);
	ck_assert_uint_eq(add_metrics_of(1001, 10), 0);
}
END_TEST

static void retire(const char *name)
{
	struct metric *metric = metrics_find(metrics, name);
	alerts_retire(alerts, metric, now_ns);
	metrics_retire(metrics, metric);
	while (alerts_catch_up(alerts, now_ns)) {
	}
}

static size_t count_instances(size_t rule)
{
	return alerts_count(alerts, alerts_rule_at(alerts, rule), now_ns).instances;
}

START_TEST(what_was_refused_comes_in_when_others_end)
{
	const struct alert_rule rules[] = {
		rule_of("m/*", ALERT_ABOVE, 2), rule_of("never/there", ALERT_ABSENT, NAN)};
	set_rule(rules[0]);
	ck_assert_uint_eq(add_metrics_of(0, ALERT_OWN_MAX + 1), 1);
	while (alerts_catch_up(alerts, now_ns)) {
	}
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), 0);
	ck_assert_uint_eq(count_instances(1), 0);
	feed_new(metrics_find(metrics, "m/0_0")); /* the rules have changed: once more */
	const uint64_t refused = alerts_refused(alerts);
	retire("m/0_0");
	ck_assert_uint_eq(count_instances(0), ALERT_OWN_MAX - 1);
	ck_assert_uint_eq(count_instances(1), 1);
	retire("m/0_1");
	ck_assert_uint_eq(count_instances(0), ALERT_OWN_MAX - 1);
	feed(metrics_find(metrics, "m/0_1024"), 3);
	ck_assert_uint_eq(alerts_firing(alerts), 1);
	ck_assert_uint_eq(alerts_refused(alerts), refused);
}
END_TEST

START_TEST(limits_are_told)
{
	static struct alert_rule rules[ALERT_RULES_MAX + 1];
	for (int i = 0; i <= ALERT_RULES_MAX; i++) {
		rules[i] = rule_of("m/*", ALERT_ABOVE, i);
	}
	set_rule(rules[0]);
	ck_assert_int_eq(alerts_set_rules(alerts, rules, ALERT_RULES_MAX + 1, 0), -ENOSPC);
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), 0);
	struct metric *metric = NULL;
	for (int i = 0; i < ALERT_OWN_MAX; i++) {
		char name[32];
		snprintf(name, sizeof(name), "m/%d", i);
		metric = add(name, UNIT_NONE);
	}
	feed_new(metric);
	ck_assert_uint_eq(alerts_refused(alerts), ALERT_OWN_MAX);
	ck_assert_ptr_nonnull(alerts_at(alerts, ALERT_OWN_MAX - 1));
	ck_assert_ptr_null(alerts_at(alerts, ALERT_OWN_MAX));
	for (int i = 1; i < ALERT_OBSERVERS; i++) {
		ck_assert_int_eq(alerts_observe(alerts, on_transition, NULL), 0);
	}
	ck_assert_int_eq(alerts_observe(alerts, on_transition, NULL), -ENOSPC);
	alerts_unobserve(alerts, NULL);
	ck_assert_int_eq(alerts_observe(alerts, on_transition, NULL), 0);
}
END_TEST

START_TEST(short_memory_changes_no_rule_and_known_instances_need_none)
{
	struct alerts *none = NULL;
	alloc_faults_start(1);
	ck_assert_int_eq(alerts_create(metrics, timeline, &none), -ENOMEM);
	alloc_faults_stop();
	ck_assert_ptr_null(none);
	set_rule(rule_of("a", ALERT_ABOVE, 10));
	struct metric *a = add("a", UNIT_NONE);
	feed(a, 11);
	struct alert_rule rules[2] = {rule_of("b", ALERT_ABOVE, 1), rule_of("c", ALERT_ABOVE, 1)};
	alloc_faults_start(1);
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), -ENOMEM);
	ck_assert_uint_eq(alerts_firing(alerts), 1);
	alloc_faults_start(0);
	feed(a, 1);
	feed(a, 11);
	ck_assert_uint_eq(alloc_calls, 0);
	struct metric *b = add("b", UNIT_NONE);
	ck_assert_int_eq(alerts_set_rules(alerts, rules, 2, now_ns), 0);
	alloc_faults_start(1);
	feed(b, 5);
	alloc_faults_start(1);
	ck_assert(alerts_catch_up(alerts, now_ns)); /* once between two commits */
	ck_assert(!alerts_catch_up(alerts, now_ns));
	alloc_faults_stop();
	ck_assert_uint_eq(alerts_refused(alerts), 1);
	ck_assert_ptr_null(alerts_at(alerts, 0));
	feed(b, 5);
	ck_assert(alerts_catch_up(alerts, now_ns));
	ck_assert_ptr_nonnull(alerts_at(alerts, 0));
	ck_assert_uint_eq(alerts_refused(alerts), 1);
	alerts_destroy(NULL);
}
END_TEST

START_TEST(words_are_read_and_written)
{
	enum alert_severity severity = ALERT_INFO;
	ck_assert_int_eq(alert_severity_parse("critical", &severity), 0);
	ck_assert_int_eq(severity, ALERT_CRITICAL);
	ck_assert_int_eq(alert_severity_parse("Critical", &severity), -EINVAL);
	ck_assert_int_eq(alert_severity_parse("", &severity), -EINVAL);
	ck_assert_str_eq(alert_severity_name(ALERT_INFO), "info");
	ck_assert_str_eq(alert_phase_name(ALERT_PENDING), "pending");
}
END_TEST
