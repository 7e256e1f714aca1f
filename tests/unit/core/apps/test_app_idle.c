/* SPDX-License-Identifier: Apache-2.0 */
/* Rates are of now: what streams that fell silent, queued or ended leave behind. */
#include "daemon/core/apps/state.h"
#include "daemon/core/stages/pulse.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

static struct pulse beats(const uint64_t *t_ns, size_t count)
{
	struct pulse pulse = {0};
	for (size_t i = 0; i < count; i++) {
		pulse_note(&pulse, t_ns[i]);
	}
	return pulse;
}

FIXTURE(setup, teardown);

START_TEST(a_stream_is_idle_after_three_intervals_and_two_seconds)
{
	static const struct {
		uint64_t t_s[10];
		size_t count;
		uint64_t usual_s, idle_s; /* it is not yet idle this long after its last event */
	} table[] = {
		{{100}, 1, 0, 2},
		{{100, 105}, 2, 5, 15},
		{{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}, 10, 1, 3},
		{{109, 108, 107, 106, 105, 104, 103, 102, 101, 100}, 10, 1, 3},
		{{10, 11, 12, 13, 100, 101, 102, 103}, 8, 1, 3}, /* a pause is not usual */
		{{1, 2, 3, 4, 10, 20, 30, 40}, 8, 6, 18},	 /* it became slower */
		{{50, 50, 50, 50}, 4, 0, 2},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t t_ns[10];
		for (size_t k = 0; k < table[i].count; k++) {
			t_ns[k] = T0 + table[i].t_s[k] * S;
		}
		struct pulse pulse = beats(t_ns, table[i].count);
		uint64_t last_ns = pulse_last_ns(&pulse), idle_ns = table[i].idle_s * S;
		ck_assert_uint_eq(pulse_usual_ns(&pulse), table[i].usual_s * S);
		ck_assert_uint_eq(pulse_idle_ns(&pulse, last_ns + idle_ns), 0);
		ck_assert_uint_eq(pulse_idle_ns(&pulse, last_ns + idle_ns + 1), idle_ns + 1);
		ck_assert_uint_eq(pulse_idle_ns(&pulse, last_ns - S), 0);
	}
	struct pulse none = {0};
	ck_assert_uint_eq(pulse_idle_ns(&none, T0), 0);
}
END_TEST

START_TEST(an_idle_stage_has_no_rate)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "infer", "");
	for (uint64_t i = 0; i < 10; i++) {
		put_run(p, 0, T0 + i * 100 * MS, 10 * MS);
	}
	apps_sample(apps, T0 + S);
	near("stage/cam/infer/rate", 10);
	ck_assert_int_eq(app_state(p->app, T0 + S), APP_RUNNING);
	apps_sample(apps, T0 + 2 * S);
	ck_assert_double_eq(metric("stage/cam/infer/rate")->value, 0);
	apps_sample(apps, T0 + 10 * S);
	null_because("stage/cam/infer/rate", "no event");
	ck_assert_str_eq(metric_reason(metric("stage/cam/infer/rate"), T0 + 10 * S).text,
		"no event for 9 s");
	ck_assert_str_eq(metric_reason(metric("stage/cam/infer/rate"), T0 + 71 * S).text,
		"no event for 1 min 10 s");
	ck_assert_int_eq(app_state(p->app, T0 + 10 * S), APP_IDLE);
	put_run(p, 0, T0 + 11 * S, 10 * MS);
	apps_sample(apps, T0 + 12 * S);
	near("stage/cam/infer/rate", 0.5);
	ck_assert_int_eq(app_state(p->app, T0 + 12 * S), APP_RUNNING);
}
END_TEST

START_TEST(a_slow_stage_is_not_idle_between_its_runs)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "train", "");
	declare(p, 1, "quick", "");
	put_run(p, 0, T0 + S, MS);
	put_run(p, 0, T0 + 6 * S, MS);
	put_run(p, 1, T0 + 6 * S, MS);
	ck_assert_int_eq(app_state(p->app, T0 + 20 * S), APP_RUNNING);
	apps_sample(apps, T0 + 19 * S);
	apps_sample(apps, T0 + 20 * S);
	ck_assert_double_eq(metric("stage/cam/train/rate")->value, 0);
	null_because("stage/cam/quick/rate", "no event"); /* each by its own interval */
	ck_assert_int_eq(app_state(p->app, T0 + 22 * S), APP_IDLE);
}
END_TEST

START_TEST(idle_frames_have_no_rate_and_the_app_goes_on_with_its_stages)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_rate_reason reason;
	declare(p, 0, "infer", "");
	for (uint64_t i = 1; i <= 20; i++) {
		record(p, PROTO_KIND_FRAME, 0, T0 + i * 20 * MS, 0, PROTO_NO_FRAME);
	}
	apps_drained(apps, p);
	apps_sample(apps, T0 + S);
	near("frame/cam/fps", 50);
	const struct pulse *pulse = &p->app->frames->pulse;
	ck_assert(app_has_rate(p->app, pulse, T0 + S, &reason));
	apps_sample(apps, T0 + 2 * S);
	null_because("frame/cam/fps", "no frame in the interval");
	apps_sample(apps, T0 + 9 * S);
	null_because("frame/cam/fps", "no event");
	ck_assert(!app_has_rate(p->app, pulse, T0 + 9 * S, &reason));
	ck_assert_str_eq(reason.text, "no event for 8 s");
	ck_assert(!app_has_rate(p->app, pulse, T0 + 3601 * S, &reason));
	ck_assert_str_eq(reason.text, "no event for 1 h");
	ck_assert_int_eq(app_state(p->app, T0 + 9 * S), APP_IDLE);
	put_run(p, 0, T0 + 9 * S, MS);
	ck_assert_int_eq(app_state(p->app, T0 + 10 * S), APP_RUNNING);
	ck_assert(!app_has_rate(p->app, pulse, T0 + 10 * S, &reason));
	apps_detach(apps, p, PROCESS_ENDED, T0 + 10 * S);
	ck_assert(!app_has_rate(apps_find(apps, "cam"), pulse, T0 + 10 * S, &reason));
	ck_assert_str_eq(reason.text, "app ended");
	ck_assert(app_live(apps_find(apps, "cam"), T0 + 19 * S));
	ck_assert(!app_live(apps_find(apps, "cam"), T0 + 20 * S));
}
END_TEST

START_TEST(frames_that_wait_for_their_end_are_no_silence)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "capture", "");
	declare(p, 1, "infer", "");
	for (uint64_t i = 0; i < 200;
		i++) { /* 50 a second, for 4 s; two threads, no FRAME record */
		for (uint16_t k = 0; k < 2; k++) {
			const struct proto_record r = {.stage = k,
				.kind = PROTO_KIND_COMPLETE,
				.cpu_us = PROTO_CPU_NOT_MEASURED,
				.start_ns = T0 + i * 20 * MS + k * 5 * MS,
				.value = 5 * MS,
				.frame = i};
			apps_record(apps, p, k, &r, r.start_ns + r.value);
		}
		p->frame_state.pass_ns = T0 + (i + 1) * 20 * MS;
		apps_drained(apps, p);
		if (i == 99 && p->app->frames) {
			p->app->frames->settings.target_fps = 50;
			apps_sample(apps, T0 + 2 * S);
		}
	}
	apps_sample(apps, T0 + 4 * S);
	ck_assert_double_ge(metric("frame/cam/target_percent")->value, 95);
	apps_sample(apps, T0 + 5 * S); /* the last ones have ended since */
	apps_sample(apps, T0 + 6 * S);
	ck_assert_double_le(metric("frame/cam/target_percent")->value, 2);
}
END_TEST

START_TEST(what_queued_before_the_attach_is_no_rate)
{
	/* the app made 36 runs a second, and frames, while nobody read */
	struct app_process *p = attach_as("cam", 1000, 12, T0 + 5 * S);
	declare(p, 0, "infer", "");
	drained_ns = T0 + 5 * S;
	for (uint64_t i = 0; i < 180; i++) {
		put_run(p, 0, T0 + i * S / 36, (i == 0 ? 90 : 10) * MS);
		record(p, PROTO_KIND_FRAME, 0, T0 + i * S / 36, 0, PROTO_NO_FRAME);
	}
	apps_drained(apps, p);
	apps_sample(apps, T0 + 5 * S + 200 * MS);
	null_because("stage/cam/infer/rate", "the first interval");
	null_because("stage/cam/infer/max_ms", "no event in the interval");
	null_because("frame/cam/fps", "no frame in the interval");
	ck_assert_uint_eq(p->app->stage[0]->count, 180);
	drained_ns += S;
	for (uint64_t i = 0; i < 43; i++) {
		put_run(p, 0, T0 + 5 * S + i * S / 36, 10 * MS);
		record(p, PROTO_KIND_FRAME, 0, T0 + 5 * S + i * S / 36, 0, PROTO_NO_FRAME);
	}
	apps_drained(apps, p);
	apps_sample(apps, T0 + 6 * S + 200 * MS);
	ck_assert_double_lt(metric("stage/cam/infer/rate")->value, 44);
	near("stage/cam/infer/max_ms", 10);
	ck_assert_double_eq_tol(metric("frame/cam/fps")->value, 36, 0.1);
}
END_TEST

START_TEST(what_was_dropped_is_no_long_frame)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	uint64_t t_ns = T0;
	for (unsigned i = 0; i < 10; i++) {
		record(p, PROTO_KIND_FRAME, 0, t_ns += 20 * MS, 0, PROTO_NO_FRAME);
	}
	p->frame_state.pass_ns = T0 + 6 * S;
	apps_drained(apps, p);
	p->accounting.dropped = 5000; /* the mapping was full: seconds are missing */
	t_ns = T0 + 6 * S;
	for (unsigned i = 0; i < 10; i++) {
		record(p, PROTO_KIND_FRAME, 0, t_ns += 20 * MS, 0, PROTO_NO_FRAME);
	}
	p->frame_state.pass_ns = T0 + 7 * S;
	apps_drained(apps, p);
	apps_sample(apps, T0 + 7 * S);
	ck_assert_uint_eq(p->app->frames->count, 20);
	near("frame/cam/fps", 50);
	near("frame/cam/frame_time_p95_ms", 20);
}
END_TEST
