/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain.c: tests what is said of one frame among usual ones, all written down as numbers. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/diagnose/explain.h"
#include "daemon/core/metrics/throttle.h"

enum { CAPTURE, PREPROCESS, INFER, FRAMES = 200, AT = 100, POINTS = 40, SERIES = 8 };

static const uint64_t MS = 1000000, S = 1000000000;

static struct past_frames *frames;
static struct explanation explanation;
static struct history_point points[SERIES][POINTS];
static struct explain_series series[SERIES];
static size_t series_count;

/* 100 frames of 52 ms, one each 66 ms: capture 2, preprocess 1 after 0.5, infer 48 after 0.1;
 * it takes 12 ms of CPU time. They vary a little. */
static void setup(void)
{
	frames = calloc(1, sizeof(*frames));
	frames->stages = 3;
	strcpy(frames->stage[CAPTURE], "capture");
	strcpy(frames->stage[PREPROCESS], "preprocess");
	strcpy(frames->stage[INFER], "infer");
	frames->count = FRAMES;
	for (size_t i = 0; i < FRAMES; i++) {
		struct past_frame *frame = &frames->frame[i];
		float little = 0.1f * (float)(i % 3);
		*frame = (struct past_frame){.id = 1000 + i,
			.start_ns = 10 * S + i * 66 * MS,
			.end_ns = 10 * S + i * 66 * MS + 52 * MS + i % 3 * MS / 10,
			.delta_ns = 66 * MS,
			.busy_ms = 51,
			.cpu_ms = 12 + little,
			.stage_ms = {2, 1, 48 + little},
			.wait_ms = {NAN, 0.5f, 0.1f},
			.has_context = true,
			.run_delay_us = 200,
			.involuntary = i % 2,
			.minor_faults = 10,
			.throttled = THROTTLE_NO};
	}
	series_count = 0;
}

static void teardown(void)
{
	free(frames);
}

FIXTURE(setup, teardown);

static struct past_frame *frame(size_t index)
{
	return &frames->frame[index];
}

/* A sensor, each second; special from the end of frame AT to a second after it. */
static void add_series(const char *path, enum unit unit, double usual, double special)
{
	uint64_t end_ns = frame(AT)->end_ns;
	for (size_t i = 0; i < POINTS; i++) {
		uint64_t t_ns = 5 * S + i * S;
		bool at = t_ns >= end_ns && t_ns < end_ns + S;
		points[series_count][i] = (struct history_point){
			.t_ns = t_ns, .mean = at ? special : usual, .count = 1};
	}
	series[series_count] = (struct explain_series){
		.path = path, .unit = unit, .count = POINTS, .point = points[series_count]};
	series_count++;
}

/* Frame AT, and no other, is this much longer, most of it in a stage. */
static void lengthen(uint64_t ms, size_t stage)
{
	frame(AT)->end_ns += ms * MS;
	frame(AT)->stage_ms[stage] += (float)ms;
}

static void explain(size_t index)
{
	double where_ms = 0, why_ms = 0;
	bool why = false;
	memset(&explanation, 0xff, sizeof(explanation));
	explain_frame(frames, index, 0, series, series_count, &explanation);
	for (size_t i = 0; i < explanation.differences; i++) {
		const struct difference *difference = &explanation.difference[i];
		double ms = isnan(difference->explained_ms) ? 0 : difference->explained_ms;
		bool is_why = difference->kind == DIFFERENCE_WHY;
		ck_assert(is_why || !why); /* where comes first */
		if (i > 0 && is_why == why && !isnan(difference->explained_ms)) {
			ck_assert_double_le(ms, explanation.difference[i - 1].explained_ms);
		}
		why = is_why;
		ck_assert_double_ge(ms, 0);
		*(is_why ? &why_ms : &where_ms) += ms;
	}
	double excess_ms = fmax(explanation.took_ms - explanation.usual_ms, 0);
	if (explanation.differences > 0) {
		ck_assert_double_le(where_ms, excess_ms + 1e-6);
		ck_assert_double_le(why_ms, excess_ms + 1e-6);
	}
}

static const struct difference *find(const char *what)
{
	for (size_t i = 0; i < explanation.differences; i++) {
		if (strcmp(explanation.difference[i].what, what) == 0) {
			return &explanation.difference[i];
		}
	}
	return NULL;
}

static void assert_explains(const char *what, double ms)
{
	const struct difference *difference = find(what);
	ck_assert_msg(difference, "%s is not in: %s", what, explanation.summary);
	if (isnan(ms)) {
		ck_assert_msg(isnan(difference->explained_ms), "%s: %g ms", what,
			difference->explained_ms);
	} else {
		ck_assert_msg(fabs(difference->explained_ms - ms) < 0.3, "%s: %g ms", what,
			difference->explained_ms);
	}
}

START_TEST(waiting_for_a_processor_is_named_with_its_pressure)
{
	frame(AT)->id = 8841;
	lengthen(66, INFER);
	frame(AT)->run_delay_us = 61200;
	frame(AT)->involuntary = 14;
	add_series("pressure/cpu/some", UNIT_PERCENT, 2, 48);
	explain(AT);
	ck_assert(explanation.slow);
	ck_assert_uint_eq(explanation.compared, EXPLAIN_FRAMES);
	ck_assert_str_eq(explanation.reason, "");
	ck_assert_str_eq(explanation.difference[0].what, "stage infer");
	ck_assert_str_eq(explanation.difference[0].text, "infer took 114.1 ms, usually 48.1");
	assert_explains("stage infer", 66);
	ck_assert_str_eq(explanation.difference[1].what, "run-queue wait");
	ck_assert_int_eq(explanation.difference[1].kind, DIFFERENCE_WHY);
	assert_explains("run-queue wait", 61);
	assert_explains("involuntary switches", NAN); /* the wait says how long */
	assert_explains("pressure/cpu/some", NAN);
	ck_assert_str_eq(explanation.summary,
		"frame 8841 took 118.1 ms, usually 52.1: infer +66.0 ms; waited 61.2 ms for a "
		"processor, usually 0.2 (pressure/cpu/some 48 %, usually 2)");
}
END_TEST

START_TEST(preemption_counts_where_the_wait_is_not_measured)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->run_delay_us = PROTO_CPU_NOT_MEASURED;
	}
	lengthen(66, INFER);
	frame(AT)->involuntary = 14;
	explain(AT);
	assert_explains("involuntary switches", 13.5 * 3);
	ck_assert_ptr_null(find("run-queue wait"));
	ck_assert_ptr_null(find("blocked")); /* it may have waited for a processor */
}
END_TEST

START_TEST(more_cpu_time_is_computing_longer)
{
	lengthen(66, INFER);
	frame(AT)->cpu_ms += 60;
	explain(AT);
	assert_explains("CPU time", 60);
	assert_explains("blocked", 6);
}
END_TEST

START_TEST(neither_cpu_time_nor_waiting_is_being_blocked)
{
	lengthen(400, CAPTURE);
	add_series("pressure/io/some", UNIT_PERCENT, 0, 83);
	add_series("memory/available", UNIT_BYTES, 1 << 30, (1 << 30) - 1000);
	explain(AT);
	assert_explains("stage capture", 400);
	assert_explains("blocked", 400);
	ck_assert_ptr_null(find("CPU time"));
	ck_assert_ptr_null(find("memory/available"));
	ck_assert_ptr_nonnull(strstr(explanation.summary, "capture +400.0 ms; was blocked for "));
	ck_assert_ptr_nonnull(strstr(explanation.summary, "(pressure/io/some 83 %, usually 0)"));
}
END_TEST

START_TEST(threads_that_compute_at_the_same_time_are_not_blocked)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->cpu_ms = 150;
	}
	lengthen(66, INFER);
	explain(AT);
	ck_assert_ptr_null(find("blocked"));
}
END_TEST

START_TEST(faults_explain_only_what_is_neither_computed_nor_queued)
{
	lengthen(300, INFER);
	frame(AT)->cpu_ms += 100;
	frame(AT)->run_delay_us += 50000;
	frame(AT)->major_faults = 900;
	frame(AT)->minor_faults = 20010;
	explain(AT);
	assert_explains("run-queue wait", 50);
	assert_explains("major faults", 150);
	assert_explains("minor faults", 40);
	assert_explains("CPU time", 60);
	ck_assert_ptr_null(find("blocked"));
}
END_TEST

START_TEST(few_faults_do_not_explain_a_long_stop)
{
	lengthen(1000, INFER);
	frame(AT)->major_faults = 2;
	explain(AT);
	assert_explains("major faults", 100);
	assert_explains("blocked", 900);
}
END_TEST

START_TEST(a_lower_clock_explains_the_cpu_time_it_costs)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->cpu_ms = 50;
	}
	lengthen(50, INFER);
	frame(AT)->cpu_ms = 100;
	frame(AT)->throttled = THROTTLE_YES;
	add_series("cpu/0/frequency", UNIT_HERTZ, 1.8e9, 0.9e9);
	add_series("cpu/1/frequency", UNIT_HERTZ, 1.8e9, 0.9e9);
	add_series("temperature/max", UNIT_CELSIUS, 78, 84.5);
	explain(AT);
	assert_explains("cpu/0/frequency", 50);
	ck_assert_ptr_null(find("cpu/1/frequency")); /* it is not counted twice */
	ck_assert_ptr_null(find("CPU time"));
	assert_explains("throttle/active", NAN);
	ck_assert_str_eq(find("throttle/active")->text, "throttle/active 1, usually 0");
	ck_assert_str_eq(find("temperature/max")->text, "temperature/max 84.5 °C, usually 78");
	ck_assert_str_eq(find("cpu/0/frequency")->text, "cpu/0/frequency 900 MHz, usually 1800");
}
END_TEST

START_TEST(a_clock_that_fell_because_the_app_was_blocked_explains_nothing)
{
	lengthen(400, CAPTURE);
	add_series("cpu/0/frequency", UNIT_HERTZ, 1.8e9, 0.6e9);
	explain(AT);
	assert_explains("blocked", 400);
	assert_explains("cpu/0/frequency", NAN);
}
END_TEST

START_TEST(throttling_of_usual_frames_is_no_difference)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->throttled = THROTTLE_YES;
	}
	lengthen(66, INFER);
	explain(AT);
	ck_assert_ptr_null(find("throttle/active"));
}
END_TEST

START_TEST(waits_between_stages_are_places_of_their_own)
{
	frame(AT)->end_ns += 40 * MS;
	frame(AT)->wait_ms[INFER] += 30;
	explain(AT);
	assert_explains("between preprocess and infer", 30);
	assert_explains("outside of stages", 10);
	ck_assert_str_eq(find("between preprocess and infer")->text,
		"between preprocess and infer: 30.1 ms, usually 0.1");
	frame(AT)->wait_ms[PREPROCESS] = 0; /* as of a stage that is nested in infer */
	explain(AT);
	ck_assert_ptr_nonnull(find("before infer"));
}
END_TEST

START_TEST(a_stage_that_usually_does_not_run_takes_0)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->stage_ms[PREPROCESS] = frame(i)->wait_ms[PREPROCESS] = NAN;
	}
	frame(AT)->end_ns += 40 * MS;
	frame(AT)->stage_ms[PREPROCESS] = 40;
	explain(AT);
	assert_explains("stage preprocess", 40);
	ck_assert_str_eq(explanation.difference[0].text, "preprocess took 40.0 ms, usually 0.0");
}
END_TEST

START_TEST(what_one_stage_gained_another_did_not_lose)
{
	lengthen(40, INFER); /* but 20 ms of them waiting for the camera anyway */
	frame(AT)->stage_ms[INFER] += 20;
	frame(AT)->stage_ms[PREPROCESS] += 20;
	frame(AT)->stage_ms[CAPTURE] -= 2;
	explain(AT);
	assert_explains("stage infer", 30);
	assert_explains("stage preprocess", 10);
	ck_assert_ptr_null(find("stage capture"));
}
END_TEST

START_TEST(stages_of_a_pipeline_overlap)
{
	/* each frame is 150 ms on its way, in stages of 66 ms, of which one waits for the next */
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->end_ns = frame(i)->start_ns + 150 * MS;
		frame(i)->stage_ms[PREPROCESS] = 60;
		frame(i)->stage_ms[INFER] = 60;
		frame(i)->wait_ms[INFER] = 20;
	}
	frame(AT)->end_ns += 90 * MS;
	frame(AT)->wait_ms[INFER] += 90;
	frame(AT)->delta_ns += 90 * MS;
	explain(AT);
	assert_explains("between preprocess and infer", 90);
	ck_assert_ptr_nonnull(
		strstr(explanation.summary, "took 240.0 ms, usually 150.0: between preprocess and "
					    "infer +90.0 ms"));
}
END_TEST

START_TEST(iterations_without_ids_are_as_long_as_their_distance)
{
	frames->of_stages = true;
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->id = PROTO_NO_FRAME;
	}
	frame(AT)->delta_ns = 132 * MS;
	frame(AT)->stage_ms[INFER] += 66;
	frame(AT + 1)->delta_ns = 0; /* a pause, however long */
	frame(AT + 1)->end_ns += 60 * S;
	explain(AT);
	ck_assert_double_eq_tol(explanation.took_ms, 132, 1e-6);
	ck_assert_double_eq_tol(explanation.usual_ms, 66, 1e-6);
	assert_explains("stage infer", 66);
	ck_assert_ptr_nonnull(strstr(explanation.summary, "this iteration took 132.0 ms, "));
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_WORST, 0), AT);
	explain(AT + 1);
	ck_assert_uint_eq(explanation.differences, 0);
	ck_assert(isnan(explanation.took_ms));
	ck_assert_str_eq(explanation.reason, "how long it took is not known");
}
END_TEST

START_TEST(bare_ticks_have_causes_only)
{
	frames->stages = 0;
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->start_ns = frame(i)->end_ns;
		frame(i)->cpu_ms = NAN;
	}
	frame(AT)->delta_ns += 100 * MS;
	frame(AT)->run_delay_us += 90000;
	explain(AT);
	ck_assert_uint_eq(explanation.differences, 1);
	assert_explains("run-queue wait", 90);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_WORST, 0), AT);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_TIME, frame(AT)->end_ns - 100 * MS), AT);
}
END_TEST

START_TEST(without_context_only_stages_and_sensors_differ)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->has_context = false;
		frame(i)->cpu_ms = NAN;
		frame(i)->throttled = THROTTLE_UNKNOWN;
	}
	lengthen(66, INFER);
	explain(AT);
	ck_assert_uint_eq(explanation.differences, 1);
	ck_assert_ptr_nonnull(
		strstr(explanation.summary, ": infer +66.0 ms; no cause was measured"));
	add_series("gpu/frequency", UNIT_HERTZ, 1e9, 0.5e9);
	explain(AT);
	assert_explains("gpu/frequency", NAN); /* it may have had nothing to do */
	ck_assert_ptr_nonnull(strstr(explanation.summary, "no cause was measured"));
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->throttled = i == AT ? THROTTLE_YES : THROTTLE_NO;
	}
	explain(AT);
	assert_explains("gpu/frequency", 52);
}
END_TEST

START_TEST(without_context_the_process_says_what_it_waited_for)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->has_context = false;
		frame(i)->cpu_ms = NAN;
	}
	lengthen(66, INFER);
	add_series("pressure/cpu/some", UNIT_PERCENT, 2, 90);
	add_series("process/cam/run_delay", UNIT_PERCENT, 1, 48);
	explain(AT);
	ck_assert_ptr_nonnull(strstr(explanation.summary,
		": infer +66.0 ms; process/cam/run_delay 48 %, usually 1 (pressure/cpu/some 90 %, "
		"usually 2)"));
}
END_TEST

/* A frame of many samples: what was sampled in it counts, not what came after it. */
START_TEST(a_frame_that_was_stopped_says_so)
{
	lengthen(9900, CAPTURE);
	for (size_t i = AT + 1; i < FRAMES; i++) {
		frame(i)->start_ns += 10 * S;
		frame(i)->end_ns += 10 * S;
	}
	add_series("pressure/cpu/some", UNIT_PERCENT, 88, 88);
	add_series("process/cam/stopped", UNIT_COUNT, 0, 0);
	for (size_t i = 0; i < POINTS; i++) {
		struct history_point *point = &points[1][i];
		point->mean = point->t_ns > frame(AT)->start_ns && point->t_ns < frame(AT)->end_ns;
	}
	explain(AT);
	ck_assert_ptr_nonnull(strstr(
		explanation.summary, ": capture +9900.0 ms; process/cam/stopped 1, usually 0"));
	ck_assert_ptr_null(strstr(explanation.summary, "pressure"));
}
END_TEST

START_TEST(pressure_that_is_always_high_is_what_went_on)
{
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->has_context = false;
		frame(i)->cpu_ms = NAN;
	}
	lengthen(66, INFER);
	add_series("pressure/cpu/some", UNIT_PERCENT, 92, 93);
	add_series("pressure/io/some", UNIT_PERCENT, 19, 19);
	explain(AT);
	ck_assert_ptr_nonnull(strstr(
		explanation.summary, ": infer +66.0 ms; pressure/cpu/some was 93 % at the time"));
	ck_assert_ptr_null(strstr(explanation.summary, "io"));
}
END_TEST

START_TEST(sensors_without_values_are_no_difference)
{
	lengthen(66, INFER);
	add_series("pressure/io/some", UNIT_PERCENT, 1, NAN);
	add_series("pressure/memory/some", UNIT_PERCENT, NAN, 50);
	add_series("swap/used", UNIT_BYTES, 0, 1e9);
	series[2].count = 0;
	add_series("cpu/iowait", UNIT_PERCENT, 0, 90);
	series[3].count = 1; /* it ended long before */
	points[3][0].t_ns = 1;
	add_series("cpu/load1", UNIT_NONE, 1, INFINITY);
	explain(AT);
	ck_assert_ptr_null(find("pressure/io/some"));
	ck_assert_ptr_null(find("pressure/memory/some"));
	ck_assert_ptr_null(find("swap/used"));
	ck_assert_ptr_null(find("cpu/iowait"));
}
END_TEST

START_TEST(what_scatters_or_changes_little_is_no_difference)
{
	lengthen(66, INFER);
	for (size_t i = 0; i < FRAMES; i++) {
		frame(i)->minor_faults = (uint32_t)(i * 37 % 100);
	}
	frame(AT)->minor_faults = 110;
	add_series("temperature/max", UNIT_CELSIUS, 60, 61.5);
	add_series("cpu/utilization", UNIT_PERCENT, 50, 60);
	for (size_t i = 0; i < POINTS; i++) {
		points[1][i].mean += (double)(i % 5 * 10); /* 50 to 90 */
	}
	explain(AT);
	ck_assert_ptr_null(find("minor faults"));
	ck_assert_ptr_null(find("temperature/max"));
	ck_assert_ptr_null(find("cpu/utilization"));
}
END_TEST

START_TEST(a_frame_that_is_not_slow_says_so)
{
	frame(AT)->id = 12;
	explain(AT);
	ck_assert(!explanation.slow);
	ck_assert_uint_eq(explanation.differences, 0);
	ck_assert_str_eq(explanation.summary, "frame 12 was not slow: 52.1 ms, usually 52.1");
	frame(AT)->delta_ns = 812 * MS;
	explain(AT);
	ck_assert_str_eq(explanation.summary, "frame 12 was not slow: 52.1 ms, usually 52.1; it "
					      "came 812.0 ms after the one before, usually 66.0");
	lengthen(10, INFER); /* less than a quarter */
	explain(AT);
	ck_assert(!explanation.slow);
	assert_explains("stage infer", 10);
}
END_TEST

START_TEST(frames_of_a_slow_time_are_compared_with_those_around_it)
{
	for (size_t i = AT - 40; i < AT + 40; i++) {
		frame(i)->end_ns = frame(i)->start_ns + 102 * MS;
		frame(i)->stage_ms[INFER] = 98;
		frame(i)->throttled = THROTTLE_YES;
	}
	explain(AT);
	ck_assert(explanation.slow);
	assert_explains("stage infer", 50);
	ck_assert_ptr_nonnull(find("throttle/active"));
}
END_TEST

START_TEST(few_frames_are_not_compared)
{
	frames->count = EXPLAIN_FRAMES_MIN; /* itself and 7 others */
	frame(0)->end_ns += 60 * MS;
	explain(0);
	ck_assert_uint_eq(explanation.compared, 7);
	ck_assert_uint_eq(explanation.differences, 0);
	ck_assert_str_eq(explanation.reason, "7 comparable frames, at least 8 are required");
	ck_assert_str_eq(
		explanation.summary, "frame 1000: 7 comparable frames, at least 8 are required");
	frames->count = 1;
	explain(0);
	ck_assert_uint_eq(explanation.compared, 0);
	ck_assert(isnan(explanation.usual_ms));
}
END_TEST

START_TEST(many_differences_keep_the_most_important)
{
	frames->stages = FACTS_STAGES;
	for (size_t i = 0; i < FACTS_STAGES; i++) {
		frames->stage[i][0] = (char)('a' + i);
		frames->stage[i][1] = 0;
	}
	for (size_t i = 0; i < FACTS_STAGES; i++) {
		lengthen(i + 20, i);
		frame(AT)->wait_ms[i] = (float)i + 20;
	}
	explain(AT);
	ck_assert_uint_eq(explanation.differences, EXPLAIN_MAX);
	ck_assert_str_eq(explanation.difference[0].what, "stage x");
	/* of two of each length from 20 to 43 ms the longer half, whatever came last */
	ck_assert_double_ge(explanation.difference[EXPLAIN_MAX - 1].value, 31);
}
END_TEST

START_TEST(frames_are_found_by_id_time_and_length)
{
	frame(20)->id = frame(90)->id = 7;
	lengthen(20, INFER);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_WORST, 0), AT);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_ID, 7), 90);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_ID, 8), SIZE_MAX);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_TIME, frame(50)->start_ns + MS), 50);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_TIME, frame(50)->end_ns + MS), 50);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_TIME, frame(51)->start_ns - MS), 51);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_TIME, 10 * S - 1), 0);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_TIME, 9 * S - 1), SIZE_MAX);
	ck_assert_uint_eq(
		explain_find(frames, EXPLAIN_TIME, frame(FRAMES - 1)->end_ns + S + 1), SIZE_MAX);
	frame(0)->end_ns += 500 * MS; /* the first of the run warms up */
	frames->whole = true;
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_WORST, 0), AT);
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_ID, 1000), 0);
	frames->count = 1;
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_WORST, 0), 0);
	frames->count = 0;
	ck_assert_uint_eq(explain_find(frames, EXPLAIN_WORST, 0), SIZE_MAX);
}
END_TEST
