/* SPDX-License-Identifier: Apache-2.0 */
/* Advice, with literals and against a plain model: what raises it, what lowers it, how often. */
#include "daemon/core/apps/advice.h"

#include <math.h>
#include <string.h>

#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static struct advice advice;
static struct advice_options options;
static struct advice_input input;
static uint64_t now_s;
static unsigned changes;

static void setup(void)
{
	advice = (struct advice){.level = PROTO_ADVICE_NONE};
	advice_defaults(&options);
	input = (struct advice_input){.headroom_celsius = 30, .headroom_of = "cpu-thermal"};
	now_s = 100000;
	changes = 0;
}

/* So many seconds of 30 frames each, of which some miss. */
static void run(unsigned seconds, unsigned misses)
{
	for (unsigned i = 0; i < seconds; i++) {
		enum proto_advice_level before = advice.level;
		uint64_t word = advice_word(&advice);
		now_s++;
		input.frames += 30;
		input.judged += input.has_deadline ? 30 : 0;
		input.misses += input.has_deadline ? misses : 0;
		bool told = advice_update(&advice, &options, &input, now_s * SECOND);
		ck_assert_int_eq(told, advice_word(&advice) != word);
		changes += advice.level != before;
	}
}

static void heat(double headroom, unsigned seconds)
{
	input.headroom_celsius = headroom;
	run(seconds, 0);
}

static const struct {
	double headroom;
	enum throttle_value throttled;
	enum proto_advice_level level;
	const char *reason;
} asked[] = {
	{8.1, THROTTLE_UNKNOWN, PROTO_ADVICE_FULL, "no pressure"},
	{8.0, THROTTLE_NO, PROTO_ADVICE_REDUCED, "headroom 8.0 °C of cpu-thermal"},
	{3.1, THROTTLE_NO, PROTO_ADVICE_REDUCED, "headroom 3.1 °C of cpu-thermal"},
	{3.0, THROTTLE_NO, PROTO_ADVICE_MINIMAL, "headroom 3.0 °C of cpu-thermal"},
	{-4, THROTTLE_UNKNOWN, PROTO_ADVICE_MINIMAL, "headroom -4.0 °C of cpu-thermal"},
	{40, THROTTLE_YES, PROTO_ADVICE_REDUCED, "hardware throttling active"},
	{2.1, THROTTLE_YES, PROTO_ADVICE_MINIMAL, "headroom 2.1 °C of cpu-thermal"},
	{NAN, THROTTLE_NO, PROTO_ADVICE_FULL, "no pressure"},
	{NAN, THROTTLE_YES, PROTO_ADVICE_REDUCED, "hardware throttling active"},
	{NAN, THROTTLE_UNKNOWN, PROTO_ADVICE_NONE,
		"no thermal zone, no throttle state, no deadline"},
};

FIXTURE(setup, NULL);

START_LOOP_TEST(the_level_follows_heat_and_throttling, 0, COUNT(asked))
{
	input.throttled = asked[_i].throttled;
	heat(asked[_i].headroom, 20);
	ck_assert_int_eq(advice.level, asked[_i].level);
	ck_assert_str_eq(advice.reason, asked[_i].reason);
}
END_TEST

START_TEST(a_spike_of_less_than_three_seconds_changes_nothing)
{
	heat(30, 5);
	for (int i = 0; i < 20; i++) {
		heat(1, 3);
		heat(30, 1);
	}
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
	heat(7, 4);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
}
END_TEST

START_TEST(the_least_that_was_asked_for_all_the_time_is_what_it_becomes)
{
	heat(30, 5);
	heat(2, 2);
	heat(7, 1);
	heat(2, 1);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	heat(2, 4);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
}
END_TEST

START_TEST(a_hiccup_does_not_move_the_rate_that_advice_starts_from)
{
	heat(30, 120);
	input.frames -= 25;
	heat(30, 1);
	heat(7, 4);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	ck_assert_double_eq_tol(advice.target_fps, 20, 0.5);
}
END_TEST

START_TEST(one_step_at_a_time_back_after_calm_with_distance)
{
	heat(2, 4);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	heat(5.9, 300); /* not the distance to 3 */
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	heat(6.5, 30);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	heat(6.5, 1);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	ck_assert_str_eq(advice.reason, "calm for 30 s");
	heat(6.5, 300);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	heat(11.5, 20);
	heat(10.5, 1); /* begins anew */
	heat(11.5, 30);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	heat(11.5, 1);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
}
END_TEST

START_TEST(throttling_keeps_a_level_however_cool)
{
	heat(5, 10);
	input.throttled = THROTTLE_YES;
	heat(40, 300);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	input.throttled = THROTTLE_NO;
	run(31, 0);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
}
END_TEST

START_TEST(missed_deadlines_ask_for_one_level_after_the_other)
{
	input.headroom_celsius = NAN;
	input.has_deadline = true;
	run(60, 6); /* 20 percent is not more than 20 percent */
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
	run(9, 12);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	ck_assert_ptr_nonnull(strstr(advice.reason, "% of frames missed their deadline"));
	run(5, 12); /* not yet: what is done for it must show first */
	ck_assert_int_eq(advice.level, PROTO_ADVICE_REDUCED);
	run(10, 12);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	run(200, 4); /* more than half of 20 percent is no calm */
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	run(80, 2);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
}
END_TEST

START_TEST(a_level_that_did_not_last_is_tried_later_each_time)
{
	input.has_deadline = true;
	unsigned spans[6];
	for (size_t i = 0; i < 6; i++) {
		while (advice.level <= PROTO_ADVICE_FULL) {
			run(1, 20);
		}
		for (spans[i] = 0; advice.level == PROTO_ADVICE_REDUCED; spans[i]++) {
			run(1, 0);
		}
	}
	static const unsigned expected[] = {30, 60, 120, 240, 240, 240};
	for (size_t i = 0; i < 6; i++) {
		ck_assert_uint_ge(spans[i], expected[i]);
		ck_assert_uint_le(spans[i], expected[i] + 8);
	}
	run(200, 0); /* it lasted: as at first */
	run(10, 20);
	unsigned span = 0;
	for (; advice.level == PROTO_ADVICE_REDUCED; span++) {
		run(1, 0);
	}
	ck_assert_uint_le(span, 38);
}
END_TEST

START_TEST(few_frames_say_nothing_and_frames_counted_anew_are_no_misses)
{
	input.has_deadline = true;
	for (unsigned i = 0; i < 60; i++) { /* one frame in two seconds, all late */
		now_s++;
		input.judged += i % 2;
		input.misses += i % 2;
		advice_update(&advice, &options, &input, now_s * SECOND);
	}
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
	run(10, 0);
	input.judged = input.misses = input.frames = 3;
	run(10, 1);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
}
END_TEST

START_TEST(what_cannot_be_seen_any_more_counts_on_for_a_while)
{
	heat(2, 10);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	heat(NAN, 30);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
	heat(NAN, 1);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_NONE);
	ck_assert_uint_eq(advice_word(&advice), 0);
	heat(2, 4);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_MINIMAL);
}
END_TEST

START_TEST(rates_and_skips_are_thirds)
{
	heat(30, 60);
	ck_assert_double_eq(advice.target_fps, 0);
	ck_assert_uint_eq(advice.skip_frames, 0);
	ck_assert_uint_eq(advice.of_frames, 1);
	heat(5, 10); /* of the rate that it had: 30 */
	ck_assert_double_eq_tol(advice.target_fps, 20, 0.01);
	ck_assert_uint_eq(advice.skip_frames, 1);
	ck_assert_uint_eq(advice.of_frames, 3);
	input.target_fps = 24; /* the operator's wins */
	heat(1, 10);
	ck_assert_double_eq_tol(advice.target_fps, 8, 0.01);
	ck_assert_uint_eq(advice.skip_frames, 2);
	struct proto_advice word;
	ck_assert(proto_advice_unpack(advice_word(&advice), &word));
	ck_assert_uint_eq(word.target_mfps, 8000);
	ck_assert_int_eq(word.level, PROTO_ADVICE_MINIMAL);
	heat(40, 62);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_FULL);
	ck_assert_double_eq(advice.target_fps, 24);
}
END_TEST

START_TEST(switched_off_is_none_and_says_so)
{
	heat(2, 10);
	options.enabled = false;
	run(1, 0);
	ck_assert_int_eq(advice.level, PROTO_ADVICE_NONE);
	ck_assert_str_eq(advice.reason, "switched off ([advice] enabled)");
	ck_assert_uint_eq(advice_word(&advice), 0);
}
END_TEST

START_TEST(words_that_are_no_advice_are_refused)
{
	static const uint64_t words[] = {0, 4 | 1u << 16, 1, 2 | 3u << 8 | 3u << 16, UINT64_MAX,
		0xff, 2 | 200u << 8 | 100u << 16};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct proto_advice ret;
		ck_assert(!proto_advice_unpack(words[i], &ret));
	}
}
END_TEST

/* The sequence of a small generator: the same in every run. */
static double noise(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (double)(*state >> 8) / (1 << 24) - 0.5;
}

/* However it wavers around any limit: a level is held for at least recover_after but when it rises,
 * and it rises only as often as it was lowered. */
START_LOOP_TEST(noise_changes_the_level_seldom, 0, 56)
{
	const unsigned seconds = 20000;
	uint32_t state = (uint32_t)_i * 7919 + 1;
	double middle = _i % 14, width = 0.5 + _i / 14 * 3;
	uint64_t lowered_s = 0, raised_s = 0;
	for (unsigned i = 0; i < seconds; i++) {
		enum proto_advice_level before = advice.level;
		heat(middle + width * noise(&state), 1);
		if (advice.level < before) {
			ck_assert_int_eq(advice.level, before - 1);
			ck_assert_uint_ge(now_s - raised_s, 30);
			ck_assert_uint_ge(now_s - lowered_s, 30);
			lowered_s = now_s;
		} else if (advice.level > before && before != PROTO_ADVICE_NONE) {
			ck_assert_uint_ge(now_s - raised_s, 3);
			raised_s = now_s;
		}
	}
	/* two lowerings and two raises in (30 + 3) s would be the most; patience makes it far less
	 */
	ck_assert_uint_le(changes, seconds / 100);
}
END_TEST

/* A plain model of heat alone, in whole seconds. */
START_LOOP_TEST(heat_agrees_with_a_plain_model, 0, 100)
{
	uint32_t state = (uint32_t)_i * 104729 + 3;
	int level = 1, calm = 0, wait = 30, lowered = -1000, above[4] = {0, 0, 0, 0};
	double headroom = 30;
	for (int i = 0; i < 3000; i++) {
		headroom += 2 * noise(&state);
		headroom = headroom > 32 ? 32 : headroom < -3 ? -3 : headroom;
		heat(headroom, 1);
		static const double limit[4] = {0, 0, 8, 3};
		for (int l = 2; l <= 3; l++) {
			above[l] = headroom <= limit[l] ? above[l] + 1 : 0;
		}
		calm = level > 1 && headroom > limit[level] + 3 ? calm + 1 : 0;
		int wanted = above[3] >= 4 ? 3 : above[2] >= 4 ? 2 : 1;
		if (wanted > level) {
			wait = i - lowered < 60 ? 2 * wait : 30;
			wait = wait > 240 ? 240 : wait;
			level = wanted;
			calm = above[2] = above[3] = 0;
		} else if (calm == wait + 1) {
			level--;
			lowered = i;
			calm = 0;
		}
		ck_assert_int_eq(advice.level, level);
	}
}
END_TEST
