/* SPDX-License-Identifier: Apache-2.0 */
/* What alerts remember, cut off in the midst of a write and damaged in any way. */
#include "tests/unit/core/alerts/alerts_fixture.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/alerts/actions.h"
#include "tests/unit/unit.h"

enum { KILLS = 100, ROUNDS = 1000, HEADER = 64 };

static struct alert_rule hot_rule(void)
{
	struct alert_rule rule = plain_rule("hot", "temperature/*", ALERT_ABOVE, 75);
	rule.clear = 72;
	rule.clear_for_ns = HOUR;
	return rule;
}

static struct metric *cpu_of(struct life *life)
{
	struct metric *metric;
	ck_assert_int_eq(
		metrics_add(life->metrics, life->source, "temperature/cpu", UNIT_CELSIUS, &metric),
		0);
	return metric;
}

static void feed(struct life *life, double value)
{
	metric_set(cpu_of(life), value);
	life_commit(life, SECOND);
}

/* The child writes its slot with every commit until it is killed somewhere in it. It asserts
 * nothing: libcheck's messages are the parent's. */
static void write_until_killed(struct life *life, struct metric *metric)
{
	for (unsigned i = 0;; i++) {
		metric_set(metric, i % 2 ? 80 : 71);
		metrics_commit(life->metrics, life->source, life->now_ns);
		alerts_commit(life->alerts, life->source, life->now_ns);
	}
}

TEST_TIMEOUT(60);

START_TEST(an_alert_that_fires_survives_a_kill_at_any_instruction)
{
	struct alert_rule rule = hot_rule();
	struct life *life = life_new(&rule, 1);
	void *private = life->memory;
	life->memory = mmap(NULL, alerts_store_bytes(), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(life->memory, MAP_FAILED);
	life_begin(life);
	feed(life, 80);
	const uint64_t since_ns = life->now_ns;
	for (int kill_number = 0; kill_number < KILLS; kill_number++) {
		struct metric *metric = cpu_of(life);
		pid_t child = fork();
		if (child == 0) {
			write_until_killed(life, metric);
		}
		ck_assert_int_ge(child, 0);
		usleep(200 + (useconds_t)(kill_number * 7 % 100));
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		life_begin(life);
		life->count = 0;
		feed(life, 80);
		ck_assert_int_eq(life_alert(life, "hot")->phase, ALERT_FIRING);
		ck_assert_uint_eq(life_alert(life, "hot")->since_ns, since_ns);
		ck_assert_uint_eq(life->count, 0);
	}
	life_end(life);
	munmap(life->memory, alerts_store_bytes());
	life->memory = private;
	life_free(life);
}
END_TEST

/* Config and damage may bring any finite limit. */
START_TEST(a_limit_of_three_hundred_digits_is_cut)
{
	struct alert_rule rule = hot_rule();
	rule.threshold = rule.clear = -1e300;
	struct life *life = life_new(&rule, 1);
	feed(life, 50);
	const char *text = life_alert(life, "hot")->text;
	ck_assert_int_eq(strncmp(text, "THERMAL WARNING: 50.0C (threshold: -1000000",
				 strlen("THERMAL WARNING: 50.0C (threshold: -1000000")),
		0);
	ck_assert_uint_lt(strlen(text), 100);
	life_free(life);
}
END_TEST

START_TEST(an_instance_that_is_no_part_of_a_topic_is_damage)
{
	struct alert_rule rule = hot_rule();
	struct life *life = life_new(&rule, 1);
	feed(life, 80);
	struct alert_slot *slot = (struct alert_slot *)(void *)((char *)life->memory + HEADER);
	ck_assert_str_eq(slot->instance, "cpu");
	memcpy(slot->instance, "#", 2);
	life->rules = 0;
	life_begin(life);
	life->count = 0;
	for (int i = 0; i < 70; i++) {
		feed(life, 60);
	}
	ck_assert_uint_eq(life->count, 0);
	life_free(life);
}
END_TEST

START_TEST(a_record_number_beyond_what_lists_count_is_damage)
{
	struct alert_rule rule = hot_rule();
	struct life *life = life_new(&rule, 1);
	uint64_t *bytes = calloc(1, overrides_bytes());
	static const uint8_t boot[16] = "this boot";
	alerts_attach_overrides(life->alerts, bytes, boot, life->now_ns);
	feed(life, 80);
	struct overrides *holds = (struct overrides *)(uintptr_t)alerts_overrides(life->alerts);
	ck_assert_uint_eq(holds->record[0].serial, 1);
	holds->record[0].serial = (UINT64_C(1) << 40) + 1;
	overrides_attach(holds, bytes, boot, life->now_ns);
	ck_assert_uint_eq(holds->records, 0);
	ck_assert_ptr_null(overrides_logged(holds, 0));
	life_free(life);
	free(bytes);
}
END_TEST

static void walk(const struct life *life)
{
	const struct overrides *holds = alerts_overrides(life->alerts);
	const struct alert_record *record;
	const struct alert *alert;
	uint64_t serial = 0;
	size_t records = 0;
	for (size_t i = 0; (alert = alerts_at(life->alerts, i)); i++) {
		ck_assert_uint_lt(strlen(alert->text), ALERT_TEXT);
	}
	while ((record = overrides_logged(holds, serial))) {
		ck_assert_uint_ge(record->serial, serial);
		serial = (uint32_t)record->serial + 1;
		ck_assert_uint_le(++records, ALERT_RECORDS);
	}
}

/* Behind a right header any bytes: few of them, in words that hold times, or all. */
static void damage(uint64_t *words, size_t bytes, uint64_t *seed, int round)
{
	const size_t first = HEADER / sizeof(*words), count = bytes / sizeof(*words) - first;
	const int hits = round % 10 == 0 ? 100000 : 300;
	for (int i = 0; i < hits; i++) {
		const uint64_t word = (uint64_t)(noise(seed) * 2147483648.0) << 32 |
				      (uint64_t)(noise(seed) * 2147483648.0);
		words[first + (size_t)(noise(seed) * (double)count)] =
			i % 3 == 0   ? word % 2000 * SECOND
			: i % 3 == 1 ? word << 1
				     : word % 3;
	}
}

START_TEST(a_thousand_damaged_memories_are_lived_with)
{
	struct alert_rule rules[] = {hot_rule(),
		plain_rule("leak", "temperature/*", ALERT_SLOPE, 1),
		plain_rule("gone", "temperature/gone", ALERT_ABSENT, 0)};
	struct life *life = life_new(rules, 3);
	uint64_t *bytes = calloc(1, overrides_bytes()), seed = 1;
	static const uint8_t boot[16] = "this boot";
	for (int round = 0; round < ROUNDS; round++) {
		damage(life->memory, alerts_store_bytes(), &seed, round);
		alerts_attach_overrides(life->alerts, bytes, boot, life->now_ns);
		damage(bytes, overrides_bytes(), &seed, round);
		life->count = 0;
		life_begin(life);
		alerts_attach_overrides(life->alerts, bytes, boot, life->now_ns);
		for (int i = 0; i < 4; i++) {
			feed(life, i % 2 ? 80 + round % 7 : 60);
		}
		if (round % 5 == 0) {
			life_commit(life, ALERT_ORPHAN_NS);
			ck_assert_int_lt(
				alerts_ack(life->alerts, "hot", NULL, 0, "", life->now_ns), 2);
		}
		walk(life);
	}
	life_free(life);
	free(bytes);
}
END_TEST
