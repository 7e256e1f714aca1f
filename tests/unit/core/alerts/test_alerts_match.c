/* SPDX-License-Identifier: Apache-2.0 */
/* New metrics under many rules: what a commit compares, and when all of them are judged. */
#include "daemon/core/alerts/alerts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/rules.h"
#include "daemon/core/alerts/store.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static struct sources *sources;
static struct metrics *metrics;
static struct timeline *timeline;
static struct alerts *alerts;
static struct source *source;
static uint64_t now_ns;
static struct alert_rule rules[ALERT_RULES_MAX];

static void setup(void)
{
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(64, &timeline), 0);
	ck_assert_int_eq(alerts_create(metrics, timeline, &alerts), 0);
	now_ns = SECOND;
}

static void teardown(void)
{
	alerts_destroy(alerts);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static struct alert_rule *rule(size_t i, const char *glob, enum alert_kind kind)
{
	rules[i] = (struct alert_rule){.kind = kind,
		.threshold = 10,
		.critical = NAN,
		.clear = NAN,
		.severity = ALERT_WARNING,
		.enabled = true};
	snprintf(rules[i].name, sizeof(rules[i].name), "r%zu", i);
	snprintf(rules[i].metric, sizeof(rules[i].metric), "%s", glob);
	return &rules[i];
}

static void use_rules(size_t count)
{
	ck_assert_int_eq(alerts_set_rules(alerts, rules, count, now_ns), 0);
}

static void add_metrics(const char *format)
{
	for (unsigned i = 0; i < METRICS_MAX; i++) {
		char name[PROTO_PATH_SIZE];
		struct metric *metric;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(name, sizeof(name), format, i % 512, i);
#pragma GCC diagnostic pop
		ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_NONE, &metric), 0);
	}
}

static void commit(double value)
{
	uint32_t cursor = 0;
	struct metric *metric;
	while ((metric = metrics_next(metrics, &cursor))) {
		metric_set(metric, value);
	}
	now_ns += SECOND;
	metrics_commit(metrics, source, now_ns);
	alerts_commit(alerts, source, now_ns);
}

/* Pairs that matched, whether or not there was room for their instance. */
static uint64_t pairs(void)
{
	uint64_t count = alerts_refused(alerts);
	for (size_t i = 0; alerts_at(alerts, i); i++) {
		count++;
	}
	return count;
}

static uint64_t candidates(const struct alert_rule_set *set)
{
	uint64_t count = 0;
	for (size_t i = 0; i < ALERT_MATCH_WORDS; i++) {
		count += (uint64_t)__builtin_popcountll(set->bit[i]);
	}
	return count;
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(no_rule_that_matches_is_passed_over)
{
	static const char *const globs[] = {"a/b", "a/*", "*/b", "a/**", "**", "*", "a", "?/b/c",
		"a*/b", "a/b/**", "*/*/**", "a/b/c/d/e/f/g/h", "a/b/c/d/e/f/g/**", "ab/*"};
	static const char *const names[] = {"a", "b", "ab", "a/b", "a/c", "ab/b", "a/b/c", "x/b/c",
		"a/b/c/d", "a/b/c/d/e/f/g/h", "a/b/c/d/e/f/g/h/i", "a/b/c/d/e/f/g/h/i/j"};
	enum { GLOBS = sizeof(globs) / sizeof(globs[0]), NAMES = sizeof(names) / sizeof(names[0]) };
	/* also in the second word of the set; a rule that is off is in none */
	for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
		rule(i, globs[i % GLOBS], ALERT_ABOVE)->enabled = i % 5 != 4;
	}
	struct alert_match match;
	alert_match_set(&match, rules, ALERT_RULES_MAX);
	uint64_t passed = 0;
	for (size_t n = 0; n < NAMES; n++) {
		struct alert_rule_set set = alert_match_find(&match, names[n]);
		for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
			bool in = set.bit[i / 64] >> i % 64 & 1;
			bool matches = proto_glob_match(rules[i].metric, names[n]);
			ck_assert_msg(in || !matches || !rules[i].enabled, "%s on %s",
				rules[i].metric, names[n]);
			ck_assert(!in || rules[i].enabled);
			passed += !in;
		}
	}
	ck_assert_uint_gt(passed, NAMES * ALERT_RULES_MAX / 2);
}
END_TEST

START_TEST(plain_first_segments_leave_few_globs)
{
	for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
		char glob[PROTO_PATH_SIZE];
		snprintf(glob, sizeof(glob), "a%zu/*/*", i);
		rule(i, glob, ALERT_ABOVE);
	}
	struct alert_match match;
	alert_match_set(&match, rules, ALERT_RULES_MAX);
	uint64_t compared = 0;
	for (unsigned i = 0; i < METRICS_MAX; i++) {
		char name[PROTO_PATH_SIZE];
		snprintf(name, sizeof(name), "a%u/x%u/y", i % 512, i);
		struct alert_rule_set set = alert_match_find(&match, name);
		compared += candidates(&set);
	}
	/* of 524288 pairs */
	ck_assert_uint_lt(compared, 3 * METRICS_MAX);
	add_metrics("a%u/x%u/y");
	use_rules(ALERT_RULES_MAX);
	for (int i = 0; i < 20; i++) { /* it is the new instances that need so many */
		commit(5);
	}
	ck_assert_uint_eq(pairs(), METRICS_MAX / 4);
}
END_TEST

/* A commit makes so many instances; the others are made before the next one, which evaluates them.
 */
START_TEST(what_a_commit_left_is_matched_before_the_next_one)
{
	rule(0, "a*/*/y", ALERT_ABOVE);
	add_metrics("a%u/x%u/y");
	use_rules(1);
	ck_assert(!alerts_catch_up(alerts, 0));
	commit(5);
	const uint64_t before = pairs();
	ck_assert_uint_lt(before, ALERT_OWN_MAX / 2);
	while (alerts_catch_up(alerts, 0)) {
	}
	ck_assert_uint_eq(pairs(), METRICS_MAX);
	commit(5);
	ck_assert_uint_eq(pairs(), METRICS_MAX);
}
END_TEST

/* Every rule matches every metric: a commit does a bounded part, 91 commits do all. */
START_TEST(a_commit_matches_so_many_and_the_next_ones_the_rest)
{
	for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
		rule(i, "*/*/*", i % 4 ? ALERT_ABOVE : ALERT_ABSENT);
	}
	use_rules(ALERT_RULES_MAX);
	add_metrics("a%u/x%u/y");
	for (int life = 0; life < 2; life++) {
		uint64_t all = 0, before = pairs();
		for (int i = 0; i < 91; i++) {
			commit(5);
			const uint64_t after = pairs();
			ck_assert_uint_le(after - before, ALERT_WORK_COMMIT + ALERT_RULES_MAX);
			all += after - before;
			before = after;
		}
		ck_assert_uint_eq(all, (uint64_t)METRICS_MAX * ALERT_RULES_MAX);
		commit(5);
		ck_assert_uint_eq(pairs(), before);
		/* a reload that changes every rule */
		for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
			rules[i].threshold++;
		}
		before = alerts_refused(alerts);
		use_rules(ALERT_RULES_MAX);
		ck_assert_uint_eq(pairs(), before);
	}
}
END_TEST

/* The last metric of the source comes back among 4095 new ones. */
START_TEST(what_waits_to_be_matched_is_not_absent)
{
	struct metric *metric;
	for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
		rule(i, "*/*", ALERT_ABOVE);
	}
	rule(0, "a511/x4095", ALERT_ABSENT);
	use_rules(ALERT_RULES_MAX);
	add_metrics("a%u/x%u");
	for (int i = 0; i < 40; i++) {
		commit(5);
		ck_assert_uint_eq(alerts_firing(alerts), 0);
	}
	metric = metrics_find(metrics, "a511/x4095");
	ck_assert_ptr_nonnull(metric);
	commit(11);
	ck_assert_uint_eq(alerts_firing(alerts), ALERT_OWN_MAX - 1);
}
END_TEST

static void count_told(void *ctx, const struct alert_transition *transition)
{
	(void)transition;
	++*(int *)ctx;
}

/* It fires on after a restart, though its metric is matched later than orphans end. */
START_TEST(what_waits_to_be_matched_is_no_orphan)
{
	static const uint8_t boot[16] = "this boot";
	void *memory = calloc(1, alerts_store_bytes());
	ck_assert_ptr_nonnull(memory);
	for (size_t i = 0; i < ALERT_RULES_MAX; i++) {
		rule(i, "*/*z", ALERT_ABOVE);
	}
	rule(0, "*/x4095", ALERT_ABOVE);
	add_metrics("a%u/x%u");
	int told = 0;
	for (int life = 0; life < 2; life++) {
		alerts_destroy(alerts);
		ck_assert_int_eq(alerts_create(metrics, timeline, &alerts), 0);
		alerts_attach_store(alerts, memory, boot, now_ns);
		ck_assert_int_eq(alerts_observe(alerts, count_told, &told), 0);
		use_rules(ALERT_RULES_MAX);
		for (int i = 0; i < 70; i++) {
			now_ns += 2 * SECOND;
			commit(11);
		}
		ck_assert_uint_eq(alerts_firing(alerts), 1);
		ck_assert_int_eq(told, 1);
	}
	alerts_unobserve(alerts, &told);
	teardown();
	free(memory);
	setup();
}
END_TEST
