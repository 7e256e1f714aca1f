/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of alerts: noise is told a bounded number of times, the state in the end is always
 * told, and neither kills nor reloads nor clocks change what people hear. */
#include "tests/unit/core/alerts/alerts_fixture.h"

#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"

enum { CROSSINGS = 10000 };

static size_t told(const struct life *life, const char *rule)
{
	size_t count = 0;
	for (size_t i = 0; i < life->count; i++) {
		count += strcmp(life->heard[i].rule, rule) == 0;
	}
	return count;
}

/* Of a rule, and of one sort: steps to critical, or all else. */
static bool is_of(const struct heard *heard, const char *rule, bool critical)
{
	bool to_critical = heard->to == ALERT_FIRING && heard->severity == ALERT_CRITICAL;
	return to_critical == critical && strcmp(heard->rule, rule) == 0;
}

/* The most of these that were told in any hour, which begins with one of them. */
static size_t most_in_an_hour(const struct life *life, const char *rule, bool critical)
{
	size_t most = 0;
	for (size_t i = 0; i < life->count; i++) {
		if (!is_of(&life->heard[i], rule, critical)) {
			continue;
		}
		size_t count = 0;
		for (size_t k = i;
			k < life->count && life->heard[k].t_ns < life->heard[i].t_ns + HOUR; k++) {
			count += is_of(&life->heard[k], rule, critical);
		}
		most = count > most ? count : most;
	}
	return most;
}

/* Each sample is on the other side of 80 than the one before, by up to 10. */
static void cross(struct life *life, uint64_t *seed, int crossings)
{
	for (int i = 0; i < crossings; i++) {
		double distance = 0.01 + 9.98 * noise(seed);
		life_set(life, "a", i % 2 ? 80 - distance : 80 + distance);
		life_commit(life, SECOND);
	}
}

TEST_TIMEOUT(60);

START_TEST(ten_thousand_crossings_are_told_a_bounded_number_of_times)
{
	enum { HYSTERESIS, HOLD, LIMIT, BELOW, STEPS, BARE, KINDS };
	struct alert_rule rules[KINDS] = {
		[HYSTERESIS] = plain_rule("hysteresis", "a", ALERT_ABOVE, 80),
		[HOLD] = plain_rule("hold", "a", ALERT_ABOVE, 80),
		[LIMIT] = plain_rule("limit", "a", ALERT_ABOVE, 80),
		[BELOW] = plain_rule("below", "a", ALERT_BELOW, 80),
		[STEPS] = plain_rule("steps", "a", ALERT_ABOVE, 75),
		[BARE] = plain_rule("bare", "a", ALERT_ABOVE, 80),
	};
	rules[HYSTERESIS].clear = 70;
	rules[HOLD].for_ns = rules[HOLD].clear_for_ns = 2 * SECOND;
	rules[LIMIT].max_per_hour = 12;
	rules[BELOW].max_per_hour = 3;
	rules[STEPS].critical = 80;
	rules[STEPS].max_per_hour = 12;
	struct life *life = life_new(rules, KINDS);
	uint64_t seed = 7;
	cross(life, &seed, CROSSINGS);
	const size_t seconds = CROSSINGS;
	/* without anything every crossing is told: the noise is as bad as it can be */
	ck_assert_uint_eq(told(life, "bare"), CROSSINGS);
	/* it clears nowhere in the noise, and is never held for two seconds */
	ck_assert_uint_eq(told(life, "hysteresis"), 1);
	ck_assert_uint_eq(told(life, "hold"), 0);
	/* six at once, then one every ten minutes; it goes on changing every second */
	ck_assert_uint_le(told(life, "limit"), 6 + seconds / 600);
	ck_assert_uint_ge(told(life, "limit"), 6 + seconds / 600 - 2);
	ck_assert_uint_le(most_in_an_hour(life, "limit", false), 12);
	ck_assert_uint_ge(life_alert(life, "limit")->transitions, CROSSINGS - 1);
	/* two at once, one an hour */
	ck_assert_uint_le(told(life, "below"), 2 + seconds / 3600);
	ck_assert_uint_ge(told(life, "below"), 2 + seconds / 3600 - 1);
	ck_assert_uint_le(most_in_an_hour(life, "below", false), 3);
	/* either sort on its own */
	ck_assert_uint_ge(told(life, "steps"), 12);
	ck_assert_uint_le(most_in_an_hour(life, "steps", false), 12);
	ck_assert_uint_le(most_in_an_hour(life, "steps", true), 12);
	life_free(life);
}
END_TEST

/* Held for a while in both directions, seen from outside: between two transitions of an alert lies
 * at least the hold time, whatever the noise; and noise of any length has some that are long. */
START_TEST(hold_times_space_what_is_told)
{
	struct alert_rule rule = plain_rule("hold", "a", ALERT_ABOVE, 80);
	rule.for_ns = 3 * SECOND;
	rule.clear_for_ns = 5 * SECOND;
	struct life *life = life_new(&rule, 1);
	uint64_t seed = 11;
	for (int i = 0; i < 4 * CROSSINGS; i++) {
		life_set(life, "a", 70 + 20 * noise(&seed));
		life_commit(life, SECOND);
	}
	const uint64_t passed_ns = 4 * CROSSINGS * SECOND;
	ck_assert_uint_ge(life->count, 100);
	ck_assert_uint_le(life->count, 2 * passed_ns / (rule.for_ns + rule.clear_for_ns) + 1);
	for (size_t i = 1; i < life->count; i++) {
		const struct heard *heard = &life->heard[i];
		uint64_t apart_ns = heard->t_ns - life->heard[i - 1].t_ns;
		ck_assert_uint_ge(
			apart_ns, heard->to == ALERT_FIRING ? rule.for_ns : rule.clear_for_ns);
		ck_assert_int_eq(heard->from, life->heard[i - 1].to);
	}
	life_free(life);
}
END_TEST

static const struct {
	bool fires;  /* in the end */
	bool silent; /* its source gives nothing any more */
	bool killed;
} ends[] = {{false, false, false}, {true, false, false}, {false, true, false}, {true, true, false},
	{true, false, true}, {false, true, true}};

START_LOOP_TEST(the_state_in_the_end_is_always_told, 0, COUNT(ends))
{
	struct alert_rule rule = plain_rule("r", "a", ALERT_ABOVE, 80);
	rule.max_per_hour = 4;
	struct life *life = life_new(&rule, 1);
	uint64_t seed = 3;
	cross(life, &seed, 1001 + ends[_i].fires);
	life_set(life, "a", ends[_i].fires ? 81 : 79);
	life_commit(life, SECOND);
	if (ends[_i].killed) {
		life_begin(life);
	}
	for (int i = 0; i < 3600; i++) {
		if (!ends[_i].silent) {
			life_set(life, "a", ends[_i].fires ? 81 : 79);
			life_commit(life, SECOND);
		} else {
			if (ends[_i].killed && i == 0) {
				life_set(life, "a", NAN); /* known by name, without a reading */
				life_commit(life, SECOND);
			}
			life->now_ns += SECOND;
			alerts_commit(life->alerts, life->other, life->now_ns);
		}
	}
	ck_assert_uint_ge(life->count, 2);
	ck_assert_uint_le(life->count, 5);
	ck_assert_int_eq(life->heard[life->count - 1].to, ends[_i].fires ? ALERT_FIRING : ALERT_OK);
	const struct alert *alert = life_alert(life, "r");
	ck_assert_int_eq(alert->phase, ends[_i].fires ? ALERT_FIRING : ALERT_OK);
	/* two in a row are never the same */
	for (size_t i = 1; i < life->count; i++) {
		ck_assert_int_ne(life->heard[i].to, life->heard[i - 1].to);
	}
	life_free(life);
}
END_TEST

START_TEST(what_was_suppressed_is_counted_in_what_is_sent_next)
{
	struct alert_rule rule = plain_rule("r", "a", ALERT_ABOVE, 80);
	rule.max_per_hour = 2;
	struct life *life = life_new(&rule, 1);
	uint64_t seed = 3;
	cross(life, &seed, 9); /* the first is told; eight more end at what was told */
	const struct alert *alert = life_alert(life, "r");
	ck_assert_uint_eq(life->count, 1);
	life->now_ns += HOUR;
	life_set(life, "a", 79);
	life_commit(life, SECOND);
	ck_assert_uint_eq(life->count, 2);
	ck_assert_str_eq(alert->text, "a 79, no longer above 80 (8 changes suppressed)");
	life_free(life);
}
END_TEST

/* Six rules of all kinds over walks with gaps, nulls, vanished and new metrics. */
static struct life *story(int kill_every, int reload_every)
{
	struct alert_rule rules[6] = {
		plain_rule("above", "a", ALERT_ABOVE, 0.6),
		plain_rule("below", "b/*", ALERT_BELOW, 0.4),
		plain_rule("equals", "c", ALERT_EQUALS, 1),
		plain_rule("absent", "d", ALERT_ABSENT, 0),
		plain_rule("slope", "e", ALERT_SLOPE, 3),
		plain_rule("flapping", "a", ALERT_ABOVE, 0.5),
	};
	rules[0].critical = 0.9;
	rules[0].clear = 0.5;
	rules[0].for_ns = 2 * SECOND;
	rules[0].clear_for_ns = 3 * SECOND;
	rules[1].critical = 0.1;
	rules[1].for_ns = 3 * SECOND;
	rules[2].clear_for_ns = 4 * SECOND;
	rules[3].for_ns = 5 * SECOND;
	rules[4].for_ns = 10 * SECOND;
	rules[4].clear_for_ns = 5 * SECOND;
	rules[5].max_per_hour = 9;
	struct life *life = life_new(rules, 6);
	uint64_t seed = 42;
	double e = 0;
	for (int i = 0; i < 4000; i++) {
		if (kill_every && i % kill_every == 0) {
			life_begin(life);
		}
		if (reload_every && i % reload_every == 0) {
			life_reload(life);
		}
		double level = 0.5 + 0.5 * sin(i / 40.0);
		life_set(life, "a", 0.6 * level + 0.4 * noise(&seed));
		life_set(life, "b/x", noise(&seed) < 0.1 ? NAN : level + 0.1 * noise(&seed));
		life_set(life, "b/y", 1 - level);
		life_set(life, "c", noise(&seed) < 0.7);
		life_set(life, "d", i / 30 % 3 == 1 ? NAN : 1);
		e += i / 300 % 2 ? 0.1 : -0.1;
		life_set(life, "e", i % 1100 == 1050 ? NAN : e + noise(&seed));
		life_commit(life, i % 997 == 996 ? 30 * SECOND : SECOND + SECOND / 8);
	}
	return life;
}

static void expect_same(const struct life *life, const struct life *plain)
{
	ck_assert_uint_eq(life->count, plain->count);
	for (size_t i = 0; i < plain->count; i++) {
		ck_assert_str_eq(life->heard[i].rule, plain->heard[i].rule);
		ck_assert_uint_eq(life->heard[i].t_ns, plain->heard[i].t_ns);
		ck_assert_int_eq(life->heard[i].from, plain->heard[i].from);
		ck_assert_int_eq(life->heard[i].to, plain->heard[i].to);
		ck_assert_int_eq(life->heard[i].severity, plain->heard[i].severity);
	}
}

static const int every[] = {1, 2, 3, 7, 50, 333};

START_LOOP_TEST(kills_and_reloads_change_nothing_that_is_told, 0, COUNT(every))
{
	struct life *plain = story(0, 0);
	for (size_t i = 0; i < plain->rules; i++) {
		ck_assert_uint_ge(told(plain, plain->rule[i].name), 4);
	}
	struct life *killed = story(every[_i], 0);
	expect_same(killed, plain);
	struct life *reloaded = story(0, every[_i]);
	expect_same(reloaded, plain);
	life_free(reloaded);
	life_free(killed);
	life_free(plain);
}
END_TEST

static uint64_t asked, allocated;

static uint64_t no_clock(void)
{
	return asked++;
}

static int64_t no_wall(void)
{
	return (int64_t)asked++;
}

static void *counted_calloc(size_t count, size_t size)
{
	allocated++;
	return calloc(count, size);
}

/* Times are arguments: what a clock says, or that it was set, never comes this way. */
START_TEST(no_clock_is_asked_and_nothing_allocated)
{
	struct alert_rule rule = plain_rule("r", "a", ALERT_ABOVE, 80);
	struct sysops table = *sysops();
	table.now_ns = no_clock;
	table.wall_ns = no_wall;
	table.calloc = counted_calloc;
	rule.max_per_hour = 12;
	sysops_replace(&table);
	struct life *life = life_new(&rule, 1);
	uint64_t seed = 1;
	cross(life, &seed, 2);
	allocated = 0;
	cross(life, &seed, CROSSINGS);
	ck_assert_uint_eq(allocated, 0);
	life_begin(life);
	cross(life, &seed, 10);
	ck_assert_uint_eq(asked, 0);
	life_free(life);
	sysops_replace(NULL);
}
END_TEST
