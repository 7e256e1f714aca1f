/* SPDX-License-Identifier: Apache-2.0 */
/* What alerts remember across a reboot: as bytes and back, and any other bytes. */
#include "daemon/core/alerts/snapshot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/overrides.h"
#include "daemon/core/alerts/store.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static const uint8_t boots[2][16] = {"boot one", "boot two"};

/* One boot's alerts on memory of its own. */
static struct world {
	struct sources *sources;
	struct metrics *metrics;
	struct timeline *timeline;
	struct alerts *alerts;
	struct source *source;
	struct metric *metric;
	uint64_t *memory, *holds;
	struct wallclock wall;
} w;

static const struct alert_rule rules[] = {
	{.name = "now",
		.metric = "temperature/*",
		.threshold = 75,
		.critical = 82,
		.clear = 72,
		.severity = ALERT_WARNING,
		.enabled = true},
	{.name = "later",
		.metric = "temperature/*",
		.threshold = 70,
		.critical = (double)NAN,
		.clear = (double)NAN,
		.for_ns = 60 * SECOND,
		.severity = ALERT_WARNING,
		.enabled = true},
	{.name = "seldom",
		.metric = "temperature/*",
		.threshold = 90,
		.critical = (double)NAN,
		.clear = (double)NAN,
		.max_per_hour = 1,
		.severity = ALERT_WARNING,
		.enabled = true},
};

static void start(const uint8_t *boot, uint64_t now_ns, int64_t wall_s, const uint8_t *saved,
	size_t size, int wanted)
{
	memset(&w, 0, sizeof(w));
	w.memory = calloc(1, alerts_store_bytes());
	w.holds = calloc(1, overrides_bytes());
	wallclock_init(&w.wall);
	wallclock_note(&w.wall, now_ns, wall_s * 1000000000, true);
	ck_assert_int_eq(sources_create(&w.sources), 0);
	ck_assert_int_eq(metrics_create(&w.metrics), 0);
	ck_assert_int_eq(timeline_create(64, &w.timeline), 0);
	ck_assert_int_eq(alerts_create(w.metrics, w.timeline, &w.alerts), 0);
	if (saved) {
		ck_assert_int_eq(
			alerts_snapshot_restore(w.memory, w.holds, boot, saved, size, now_ns),
			wanted);
	}
	alerts_attach_store(w.alerts, w.memory, boot, now_ns);
	alerts_attach_overrides(w.alerts, w.holds, boot, now_ns);
	ck_assert_int_eq(alerts_set_rules(w.alerts, rules, 3, now_ns), 0);
	ck_assert_int_eq(sources_add(w.sources, "thermal", SECOND, &w.source), 0);
	ck_assert_int_eq(
		metrics_add(w.metrics, w.source, "temperature/cpu", UNIT_CELSIUS, &w.metric), 0);
}

static void stop(void)
{
	alerts_destroy(w.alerts);
	timeline_destroy(w.timeline);
	metrics_destroy(w.metrics);
	sources_destroy(w.sources);
	free(w.memory);
	free(w.holds);
}

static void sample(double celsius, uint64_t t_ns)
{
	metric_set(w.metric, celsius);
	metrics_commit(w.metrics, w.source, t_ns);
	alerts_commit(w.alerts, w.source, t_ns);
}

static const struct alert *find(const char *rule)
{
	const struct alert *alert;
	for (size_t i = 0; (alert = alerts_at(w.alerts, i)); i++) {
		if (strcmp(alert->rule->name, rule) == 0) {
			return alert;
		}
	}
	return NULL;
}

/* A boot in which one alert fires since 1000 s of wall time and one is pending since 1010 s. */
static size_t first_boot(uint8_t *bytes)
{
	start(boots[0], 5000 * SECOND, 1000, NULL, 0, 0);
	sample(60, 4999 * SECOND);
	sample(78, 5000 * SECOND);
	sample(78, 5010 * SECOND);
	ck_assert_int_eq(find("now")->phase, ALERT_FIRING);
	ck_assert_int_eq(find("later")->phase, ALERT_PENDING);
	size_t size = alerts_snapshot(w.alerts, &w.wall, bytes);
	ck_assert_uint_le(size, alerts_snapshot_bytes());
	stop();
	return size;
}

START_TEST(phases_and_their_times_go_on_and_hold_times_begin_anew)
{
	uint8_t *bytes = calloc(1, alerts_snapshot_bytes());
	size_t size = first_boot(bytes);
	start(boots[1], 3 * SECOND, 9000, bytes, size, 0);
	sample(78, 4 * SECOND);
	const struct alert *now = find("now"), *later = find("later");
	ck_assert_int_eq(now->phase, ALERT_FIRING);
	ck_assert_int_eq(now->since_us, 1000 * 1000000);
	ck_assert_int_eq(later->phase, ALERT_PENDING);
	ck_assert_int_eq(later->since_us, 1000 * 1000000);
	ck_assert_uint_eq(timeline_last_serial(w.timeline), 0); /* nothing is news */
	/* 60 s of this boot, not of the one before */
	sample(78, 62 * SECOND);
	ck_assert_int_eq(find("later")->phase, ALERT_PENDING);
	sample(78, 64 * SECOND);
	ck_assert_int_eq(find("later")->phase, ALERT_FIRING);
	ck_assert_int_eq(find("later")->since_us, 0); /* of this boot: since_ns */
	ck_assert_uint_eq(find("later")->since_ns, 64 * SECOND);
	/* what has not changed is the same bytes; a third boot knows the first one's time */
	size = alerts_snapshot(w.alerts, &w.wall, bytes);
	uint8_t *again = calloc(1, alerts_snapshot_bytes());
	sample(79, 65 * SECOND);
	ck_assert_uint_eq(alerts_snapshot(w.alerts, &w.wall, again), size);
	ck_assert_mem_eq(again, bytes, size);
	stop();
	start(boots[0], 3 * SECOND, 20000, bytes, size, 0);
	sample(78, 4 * SECOND);
	ck_assert_int_eq(find("now")->since_us, 1000 * 1000000);
	ck_assert_int_eq(find("later")->since_us, 9061 * (int64_t)1000000);
	/* it ends as ever */
	sample(60, 5 * SECOND);
	ck_assert_int_eq(find("now")->phase, ALERT_OK);
	stop();
	free(again);
	free(bytes);
}
END_TEST

static void count_ok(void *ctx, const struct alert_transition *transition)
{
	*(int *)ctx += !transition->update &&
		       strcmp(transition->alert->rule->name, "seldom") == 0 &&
		       transition->alert->phase == ALERT_OK;
}

/* The limit held an end back: whoever heard of the begin hears of the end, in the next boot. */
START_TEST(an_end_that_was_not_told_is_told_after_the_reboot)
{
	uint8_t *bytes = calloc(1, alerts_snapshot_bytes());
	int told = 0;
	start(boots[0], 5000 * SECOND, 1000, NULL, 0, 0);
	ck_assert_int_eq(alerts_observe(w.alerts, count_ok, &told), 0);
	sample(95, 5000 * SECOND);
	ck_assert_int_eq(find("seldom")->phase, ALERT_FIRING);
	sample(60, 5010 * SECOND);
	ck_assert_int_eq(find("seldom")->phase, ALERT_OK);
	ck_assert_int_eq(told, 0);
	size_t size = alerts_snapshot(w.alerts, &w.wall, bytes);
	stop();
	start(boots[1], 3 * SECOND, 9000, bytes, size, 0);
	ck_assert_int_eq(alerts_observe(w.alerts, count_ok, &told), 0);
	sample(60, 4 * SECOND);
	sample(60, 5 * SECOND);
	ck_assert_int_eq(told, 1);
	stop();
	free(bytes);
}
END_TEST

START_TEST(memory_of_this_boot_is_left_alone)
{
	uint8_t *bytes = calloc(1, alerts_snapshot_bytes());
	size_t size = first_boot(bytes);
	start(boots[1], 3 * SECOND, 9000, NULL, 0, 0);
	sample(60, 4 * SECOND);
	ck_assert_int_eq(
		alerts_snapshot_restore(w.memory, w.holds, boots[1], bytes, size, 5 * SECOND),
		-EALREADY);
	stop();
	size = alerts_snapshot_empty(bytes);
	start(boots[1], 3 * SECOND, 9000, bytes, size, 0);
	sample(60, 4 * SECOND);
	ck_assert_int_eq(find("now")->phase, ALERT_OK);
	ck_assert_uint_eq(alerts_snapshot(w.alerts, &w.wall, bytes), size);
	stop();
	free(bytes);
}
END_TEST

/* Whatever lies there: refused as a whole, or, with a right checksum, slot by slot. */
START_TEST(damage_is_refused)
{
	uint8_t *bytes = calloc(1, alerts_snapshot_bytes());
	uint8_t *damaged = calloc(1, alerts_snapshot_bytes());
	size_t size = first_boot(bytes);
	uint64_t seed = 7;
	for (int round = 0; round < 300; round++) {
		memcpy(damaged, bytes, size);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		damaged[(seed >> 33) % size] ^= (uint8_t)(1 + (seed >> 20) % 255);
		start(boots[1], 3 * SECOND, 9000, damaged, size, -EBADMSG);
		sample(60, 4 * SECOND);
		ck_assert_int_eq(find("now")->phase, ALERT_OK);
		stop();
	}
	for (size_t cut = 0; cut < size; cut += 97) {
		start(boots[1], 3 * SECOND, 9000, bytes, cut, -EBADMSG);
		stop();
	}
	free(damaged);
	free(bytes);
}
END_TEST
