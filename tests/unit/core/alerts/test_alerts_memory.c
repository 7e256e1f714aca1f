/* SPDX-License-Identifier: Apache-2.0 */
/* What alerts remember when the daemon is killed and started again. */
#include "daemon/core/alerts/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static const uint8_t boot[16] = "this boot";
static uint64_t *memory;
static struct sources *sources;
static struct metrics *metrics;
static struct timeline *timeline;
static struct alerts *alerts;
static struct source *source;
static uint64_t now_ns;
static char heard[1024];

static void on_transition(void *ctx, const struct alert_transition *transition)
{
	(void)ctx;
	size_t used = strlen(heard);
	snprintf(heard + used, sizeof(heard) - used, "%s:%s>%s(%s) ", transition->alert->instance,
		alert_phase_name(transition->from), alert_phase_name(transition->to),
		alert_severity_name(transition->alert->severity));
}

static void stop(void)
{
	alerts_destroy(alerts);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
	alerts = NULL;
	timeline = NULL;
	metrics = NULL;
	sources = NULL;
}

static struct alert_rule rule_of(double threshold)
{
	return (struct alert_rule){.name = "hot",
		.metric = "temperature/*",
		.kind = ALERT_ABOVE,
		.threshold = threshold,
		.critical = 82,
		.clear = 72,
		.for_ns = 5 * SECOND,
		.clear_for_ns = 5 * SECOND,
		.severity = ALERT_WARNING,
		.enabled = true};
}

/* As after a kill: nothing of the process before was told to end. */
static void start(double threshold)
{
	stop();
	heard[0] = '\0';
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(64, &timeline), 0);
	ck_assert_int_eq(alerts_create(metrics, timeline, &alerts), 0);
	alerts_attach_store(alerts, memory, boot, now_ns);
	ck_assert_int_eq(alerts_observe(alerts, on_transition, NULL), 0);
	struct alert_rule rule = rule_of(threshold);
	ck_assert_int_eq(alerts_set_rules(alerts, &rule, 1, now_ns), 0);
}

static void setup(void)
{
	memory = calloc(1, alerts_store_bytes());
	ck_assert_ptr_nonnull(memory);
	now_ns = 100 * SECOND;
	start(75);
}

static void teardown(void)
{
	stop();
	free(memory);
}

static const struct alert *feed(const char *name, double value, int seconds)
{
	struct metric *metric;
	ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_CELSIUS, &metric), 0);
	for (int i = 0; i < seconds; i++) {
		now_ns += SECOND;
		metric_set(metric, value);
		metrics_commit(metrics, source, now_ns);
		alerts_commit(alerts, source, now_ns);
	}
	return alerts_at(alerts, 0);
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(what_fires_goes_on_without_being_told_again)
{
	const struct alert *alert = feed("temperature/cpu", 80, 7);
	ck_assert_str_eq(heard, "cpu:ok>firing(warning) ");
	uint64_t since_ns = alert->since_ns;
	for (int i = 0; i < 5; i++) {
		start(75);
		alert = feed("temperature/cpu", 80, 3);
		ck_assert_int_eq(alert->phase, ALERT_FIRING);
		ck_assert_uint_eq(alert->since_ns, since_ns);
		ck_assert_str_eq(alert->text, "THERMAL WARNING: 80.0C (threshold: 75.0)");
		ck_assert_str_eq(heard, "");
	}
	/* clearing takes its five seconds, of which the first three were before the kill */
	feed("temperature/cpu", 60, 3);
	start(75);
	feed("temperature/cpu", 60, 2);
	ck_assert_str_eq(heard, "");
	feed("temperature/cpu", 60, 2);
	ck_assert_str_eq(heard, "cpu:firing>ok(warning) ");
	start(75);
	feed("temperature/cpu", 60, 70);
	ck_assert_str_eq(heard, "");
}
END_TEST

START_TEST(hold_times_run_on)
{
	feed("temperature/cpu", 80, 4);
	ck_assert_str_eq(heard, "");
	start(75);
	ck_assert_int_eq(feed("temperature/cpu", 80, 1)->phase, ALERT_PENDING);
	feed("temperature/cpu", 80, 2);
	ck_assert_str_eq(heard, "cpu:ok>firing(warning) ");
}
END_TEST

START_TEST(what_nobody_judges_any_more_ends_after_a_minute)
{
	feed("temperature/cpu", 80, 7);
	feed("temperature/gpu", 90, 7);
	start(75);
	feed("temperature/gpu", 90, 59);
	ck_assert_str_eq(heard, "");
	feed("temperature/gpu", 90, 2);
	ck_assert_str_eq(heard, "cpu:firing>ok(warning) ");
	start(75);
	feed("temperature/gpu", 90, 70);
	ck_assert_str_eq(heard, "");
}
END_TEST

START_TEST(a_changed_rule_starts_anew_and_the_old_one_ends)
{
	feed("temperature/cpu", 80, 7);
	start(79);
	feed("temperature/cpu", 80, 3);
	ck_assert_str_eq(heard, "");
	feed("temperature/cpu", 80, 3);
	ck_assert_str_eq(heard, "cpu:ok>firing(warning) ");
	feed("temperature/cpu", 80, 60);
	ck_assert_str_eq(heard, "cpu:ok>firing(warning) cpu:firing>ok(warning) ");
}
END_TEST

/* So many alerts of one owner. */
static void fire(const char *prefix, uid_t owner)
{
	char name[64];
	for (int i = 0; i < ALERT_SLOTS + 20; i++) {
		snprintf(name, sizeof(name), "temperature/%s%d", prefix, i);
		struct metric *metric;
		ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_CELSIUS, &metric), 0);
		metric->owner = owner;
	}
	for (int round = 0; round < 8; round++) {
		now_ns += SECOND;
		for (size_t i = 0; i < source->metrics; i++) {
			metric_set(metrics_of(metrics, source, i), 80);
		}
		metrics_commit(metrics, source, now_ns);
		alerts_commit(alerts, source, now_ns);
	}
}

START_TEST(more_than_there_is_room_for_is_judged_all_the_same)
{
	fire("z", 0);
	ck_assert_uint_eq(alerts_firing(alerts), ALERT_SLOTS + 20);
}
END_TEST

START_TEST(a_user_leaves_room_for_the_alerts_of_others)
{
	/* also when the daemon is started again and again, and knows no metric yet */
	for (int life = 0; life < 7; life++) {
		const char prefix[] = {(char)('a' + life), '\0'};
		fire(prefix, 1000);
		start(75);
	}
	feed("temperature/cpu", 80, 7);
	start(75);
	feed("temperature/cpu", 80, 7);
	ck_assert_str_eq(heard, "");
}
END_TEST

START_TEST(the_device_leaves_room_for_the_alerts_of_a_user)
{
	struct metric *metric;
	fire("device", 0);
	ck_assert_int_eq(metrics_add(metrics, source, "temperature/x", UNIT_CELSIUS, &metric), 0);
	metric->owner = 1001;
	feed("temperature/x", 80, 7);
	start(75);
	feed("temperature/x", 80, 7);
	ck_assert_str_eq(heard, "");
}
END_TEST

START_TEST(a_user_leaves_room_for_the_slopes_of_others)
{
	struct alert_store store = {0};
	struct alert_slope *slope[ALERT_SLOPES];
	struct alert_rule rule = rule_of(1);
	char name[64];
	alert_store_attach(&store, memory, boot, now_ns);
	const struct alert_slope *end = store.slope + ALERT_SLOPES;
	size_t stored = 0;
	for (int i = 0; i < ALERT_SLOPES; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		slope[i] = alert_store_slope(&store, &rule, name, 1000);
		stored += slope[i] >= store.slope && slope[i] < end;
	}
	ck_assert_uint_eq(stored, (ALERT_SLOPES_OWN + 1) / 2);
	const struct alert_slope *other = alert_store_slope(&store, &rule, "cpu", 0);
	ck_assert(other >= store.slope && other < end);
	for (int i = 0; i < ALERT_SLOPES; i++) {
		alert_store_free_slope(&store, slope[i], false);
	}
}
END_TEST

START_TEST(damage_does_no_harm)
{
	feed("temperature/cpu", 80, 7);
	feed("temperature/gpu", 80, 3);
	size_t bytes = alerts_store_bytes();
	uint8_t *good = malloc(bytes);
	ck_assert_ptr_nonnull(good);
	memcpy(good, memory, bytes);
	uint64_t seed = 88172645463325252u;
	for (int round = 0; round < 400; round++) {
		memcpy(memory, good, bytes);
		for (int k = 0; k < 200; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* mostly where something is */
			((uint8_t *)memory)[(seed >> 33) % (k % 2 ? 3000 : bytes)] =
				(uint8_t)(seed >> 25);
		}
		start(75);
		const struct alert *alert = feed("temperature/cpu", 80, 65);
		ck_assert_int_eq(alert->phase, ALERT_FIRING);
		ck_assert_uint_le(alert->since_ns, now_ns);
	}
	free(good);
}
END_TEST
