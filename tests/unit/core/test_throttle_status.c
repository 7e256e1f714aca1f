/* SPDX-License-Identifier: Apache-2.0 */
/* What the throttle word means, and what of it becomes an entry of the timeline. */
#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "daemon/core/timeline/timeline.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static struct throttle_status status;

static void setup(void)
{
	memset(&status, 0, sizeof(status));
	throttle_clear(&status, "not sampled");
}

static const struct {
	uint32_t word;
	const char *flags; /* the eight bits of the word in the order of enum throttle_flag */
	bool active;
} words[] = {
	{0x0, "00000000", false},
	{0x50000, "00001010", false},
	{0x50005, "10101010", true},
	{0x60002, "01000110", true},
	{0x80008, "00010001", true},
	{0x10001, "10001000", false},
	{0x1, "10001000", false},
	{0x4, "00100010", true},
	{0xffffffff, "11111111", true},
};

FIXTURE(setup, NULL);

/* covers G0.13 */
START_LOOP_TEST(each_bit_of_the_word_is_its_own_flag, 0, COUNT(words))
{
	throttle_on_word(&status, words[_i].word, THROTTLE_SINCE_BOOT);
	for (int i = 0; i < 8; i++) {
		ck_assert_msg(status.flag[i].value ==
				      (words[_i].flags[i] == '1' ? THROTTLE_YES : THROTTLE_NO),
			"0x%x %s", (unsigned)words[_i].word, throttle_flag_name(i));
	}
	ck_assert_int_eq(
		status.flag[THROTTLE_ACTIVE].value, words[_i].active ? THROTTLE_YES : THROTTLE_NO);
	ck_assert_int_eq(status.flag[THROTTLE_OVER_CURRENT].value, THROTTLE_UNKNOWN);
	ck_assert(status.has_raw && status.raw == words[_i].word);
	ck_assert_ptr_null(status.raw_reason);
}
END_TEST

START_TEST(a_sticky_bit_that_others_clear_proves_only_what_is_set)
{
	throttle_on_word(&status, 0x60002, THROTTLE_SINCE_POLL);
	ck_assert_int_eq(status.flag[THROTTLE_FREQ_CAPPED_OCCURRED].value, THROTTLE_YES);
	ck_assert_int_eq(status.flag[THROTTLE_THROTTLED_OCCURRED].value, THROTTLE_YES);
	ck_assert_int_eq(status.flag[THROTTLE_UNDER_VOLTAGE_OCCURRED].value, THROTTLE_UNKNOWN);
	ck_assert_ptr_nonnull(status.flag[THROTTLE_UNDER_VOLTAGE_OCCURRED].reason);
	ck_assert_int_eq(status.flag[THROTTLE_UNDER_VOLTAGE].value, THROTTLE_NO);
}
END_TEST

START_TEST(yes_wins_over_no_and_no_over_unknown)
{
	throttle_join(&status, THROTTLE_ACTIVE, false);
	ck_assert_int_eq(status.flag[THROTTLE_ACTIVE].value, THROTTLE_NO);
	throttle_join(&status, THROTTLE_ACTIVE, true);
	throttle_join(&status, THROTTLE_ACTIVE, false);
	ck_assert_int_eq(status.flag[THROTTLE_ACTIVE].value, THROTTLE_YES);
}
END_TEST

START_TEST(what_was_seen_since_the_start_has_occurred)
{
	const struct throttle_state *occurred = &status.flag[THROTTLE_FREQ_CAPPED_OCCURRED];
	throttle_clear(&status, "not reported");
	throttle_join(&status, THROTTLE_FREQ_CAPPED, false);
	throttle_occurred(&status);
	ck_assert_int_eq(occurred->value, THROTTLE_UNKNOWN);
	ck_assert_str_eq(occurred->reason, "not seen since the daemon started");
	throttle_join(&status, THROTTLE_FREQ_CAPPED, true);
	throttle_occurred(&status);
	ck_assert_int_eq(occurred->value, THROTTLE_YES);
	throttle_clear(&status, "not reported");
	throttle_join(&status, THROTTLE_FREQ_CAPPED, false);
	throttle_occurred(&status);
	ck_assert_int_eq(occurred->value, THROTTLE_YES);
	ck_assert_int_eq(status.flag[THROTTLE_UNDER_VOLTAGE_OCCURRED].value, THROTTLE_UNKNOWN);
	ck_assert_str_eq(status.flag[THROTTLE_UNDER_VOLTAGE_OCCURRED].reason, "not reported");
}
END_TEST

START_TEST(cleared_is_unknown_with_the_reason)
{
	throttle_on_word(&status, 0xf, THROTTLE_SINCE_BOOT);
	throttle_add_source(&status, "a");
	throttle_clear(&status, "gone");
	for (int i = 0; i < THROTTLE_FLAGS; i++) {
		ck_assert_int_eq(status.flag[i].value, THROTTLE_UNKNOWN);
		ck_assert_str_eq(status.flag[i].reason, "gone");
	}
	ck_assert(!status.has_raw);
	ck_assert_str_eq(status.raw_reason, "gone");
	ck_assert_str_eq(status.source, "");
}
END_TEST

START_TEST(long_lists_and_sources_are_cut)
{
	for (int i = 0; i < 40; i++) {
		throttle_add_source(&status, "a source with a name");
		throttle_add_tried(&status, "place", "result %d", i);
	}
	ck_assert_uint_eq(strlen(status.source), THROTTLE_SOURCE - 1);
	ck_assert_uint_eq(status.tried_count, THROTTLE_TRIED_MAX);
	ck_assert_str_eq(status.tried[THROTTLE_TRIED_MAX - 1].result, "result 11");
}
END_TEST

static struct timeline *timeline;
static struct throttle_edges edges;
static uint64_t now_ns;

/* One sample a second later. */
static void sample(enum throttle_value active)
{
	now_ns += SECOND;
	status.flag[THROTTLE_ACTIVE].value = active;
	throttle_edges_update(&edges, &status, timeline, now_ns);
}

START_TEST(each_transition_is_one_entry)
{
	ck_assert_int_eq(timeline_create(16, &timeline), 0);
	throttle_add_source(&status, "firmware mailbox");
	sample(THROTTLE_NO);
	ck_assert_uint_eq(timeline_last_serial(timeline), 0);
	sample(THROTTLE_YES);
	sample(THROTTLE_YES);
	sample(THROTTLE_UNKNOWN);
	sample(THROTTLE_YES);
	ck_assert_uint_eq(timeline_last_serial(timeline), 1);
	const struct timeline_entry *entry = timeline_from(timeline, 1);
	ck_assert_int_eq(entry->kind, TIMELINE_THROTTLE);
	ck_assert_int_eq(entry->level, TIMELINE_WARNING);
	ck_assert_str_eq(entry->subject, "active");
	ck_assert_str_eq(entry->text, "throttling began (firmware mailbox)");
	/* flickering is no end */
	for (int i = 0; i < 20; i++) {
		sample(i % 2 ? THROTTLE_YES : THROTTLE_NO);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 1);
	for (int i = 0; i < 20; i++) {
		sample(THROTTLE_NO);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 2);
	entry = timeline_from(timeline, 2);
	ck_assert_int_eq(entry->level, TIMELINE_INFO);
	ck_assert_str_eq(entry->text, "throttling ended (firmware mailbox)");
	sample(THROTTLE_YES);
	ck_assert_uint_eq(timeline_last_serial(timeline), 3);
	timeline_destroy(timeline);
}
END_TEST

/* A new process, or a source that was switched off: nobody saw it begin. */
START_TEST(what_was_on_before_a_restart_does_not_begin)
{
	ck_assert_int_eq(timeline_create(64, &timeline), 0);
	throttle_add_source(&status, "firmware mailbox");
	edges = (struct throttle_edges){0};
	sample(THROTTLE_UNKNOWN);
	sample(THROTTLE_YES);
	ck_assert_str_eq(
		timeline_from(timeline, 1)->text, "throttling is active (firmware mailbox)");
	for (int restart = 0; restart < 3; restart++) {
		edges = (struct throttle_edges){0};
		timeline_add(timeline, now_ns, TIMELINE_DAEMON, TIMELINE_INFO, "edgeprofd", "x");
		for (int i = 0; i < 10; i++) {
			sample(THROTTLE_YES);
		}
		ck_assert_uint_eq(timeline_last_serial(timeline), 2 + (uint64_t)restart);
	}
	edges = (struct throttle_edges){0};
	for (int i = 0; i < 10; i++) { /* it ended while nobody looked */
		sample(THROTTLE_NO);
	}
	ck_assert_str_eq(timeline_from(timeline, 5)->text, "throttling ended (firmware mailbox)");
	edges = (struct throttle_edges){0};
	sample(THROTTLE_NO);
	ck_assert_uint_eq(timeline_last_serial(timeline), 5);
	sample(THROTTLE_YES);
	ck_assert_str_eq(timeline_from(timeline, 6)->text, "throttling began (firmware mailbox)");
	timeline_destroy(timeline);
}
END_TEST

START_TEST(unknown_is_no_edge)
{
	ck_assert_int_eq(timeline_create(16, &timeline), 0);
	for (int i = 0; i < 20; i++) {
		sample(THROTTLE_UNKNOWN);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 0);
	sample(THROTTLE_YES);
	for (int i = 0; i < 20; i++) {
		sample(THROTTLE_UNKNOWN);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 1);
	timeline_destroy(timeline);
}
END_TEST
