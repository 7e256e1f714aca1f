/* SPDX-License-Identifier: Apache-2.0 */
/* Random records of a hostile app, and sensors of any value, which a diagnosis survives.
 * EDGEPROF_FUZZ_S: for so many seconds, from another seed each time, instead of a few rounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/diagnose/advise.h"
#include "daemon/core/diagnose/explain.h"
#include "daemon/core/diagnose/facts/segments.h"
#include "daemon/core/diagnose/plan.h"
#include "daemon/core/diagnose/rules/diagnose.h"
#include "tests/unit/diagnose/simulation.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

enum { STAGES = 100, RECORDS = 14000, ROUNDS = 8 };

static struct simulation *simulation;
static struct facts facts;
static struct past_frames past;
static uint64_t state;

TEST_TIMEOUT(400);

static uint64_t any(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 8) % below;
}

/* An app is strange in those ways whose bits are set, and then not always. */
static bool strange(uint64_t character, unsigned way)
{
	return (character >> way & 1) && any(4) == 0;
}

static void send_record(uint64_t character, uint64_t *t_ns, uint64_t now_ns)
{
	static const uint64_t jumps[] = {1, 1000, 1000000, 100 * SECOND};
	static const uint64_t durations[] = {
		0, 1000, 1000000, 40000000, 1, SECOND, 86400 * SECOND, UINT64_MAX};
	*t_ns += any(2 * jumps[character & 3]);
	*t_ns = *t_ns > now_ns || strange(character, 2) ? now_ns - any(120 * SECOND) : *t_ns;
	struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
		.stage = (uint16_t)any(strange(character, 4) ? 65536 : 1 + (character >> 8 & 127)),
		.flags = (uint8_t)(character >> 16 & 1 ? any(256) : 0),
		.cpu_us = (uint32_t)(strange(character, 5) ? UINT32_MAX - any(2) : any(50000)),
		.start_ns = *t_ns + (strange(character, 6) ? any(3 * SECOND) : 0),
		.value = durations[strange(character, 7) ? any(8) : character >> 20 & 3],
		.frame = character >> 17 & 1   ? PROTO_NO_FRAME
			 : character >> 18 & 1 ? any(1 + (character >> 24 & 1023))
			 : character >> 19 & 1 ? any(UINT64_MAX)
					       : *t_ns / 10000000};
	if (any(6) == 0) {
		record.kind = any(2) ? PROTO_KIND_FRAME : PROTO_KIND_CONTEXT;
	} else if (strange(character, 3)) {
		record.kind = (uint8_t)any(16);
	}
	apps_record(simulation->core.apps, simulation->process,
		(uint32_t)any(character >> 34 & 1 ? 64 : 2), &record, now_ns);
}

static void sense(struct simulation *of, double t_s)
{
	static const char *const paths[] = {"temperature/max", "headroom/cpu", "throttle/active",
		"cpu/utilization", "cpu/0/frequency", "process/cam/rss", "power/total"};
	static const double values[] = {NAN, 0, 1, -1, 50, 1e9, 1e300, -1e300};
	(void)t_s;
	for (int i = 0; i < COUNT(paths); i++) {
		simulation_set(of, UNIT_COUNT, paths[i], values[any(8)], "unknown");
	}
}

static void judge(void)
{
	struct diagnosis diagnosis;
	struct improvements improvements;
	struct throttle_tax tax;
	struct explanation explanation;
	simulation_gather(simulation, &facts);
	ck_assert_double_ge(facts.span_s, 0);
	ck_assert_double_le(facts.span_s, 1 + (double)(simulation->now_ns - SIMULATION_T0) / 1e9);
	diagnose(&facts, &diagnosis);
	advise(&facts, &diagnosis, &diagnosis_limits_default, &improvements);
	throttle_tax(&facts, &tax);
	past_frames_read(simulation_app(simulation), 0, UINT64_MAX, &past);
	for (size_t i = 0; i < 8 && past.count > 0; i++) {
		explain_frame(&past, any(past.count), any(UINT32_MAX), NULL, 0, &explanation);
		explain_find(&past, (enum explain_by)(i % 3), any(UINT64_MAX));
	}
}

static void play(uint64_t seed)
{
	struct simulation_options options = {
		.model = {.stopped = true}, .warmup = (uint32_t)(seed % 3), .sense = sense};
	state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	uint64_t character = any(UINT64_MAX), t_ns = SIMULATION_T0;
	simulation = simulation_open(&options);
	for (uint32_t i = 0; i < STAGES; i++) {
		struct proto_declaration declaration = {.deadline_ns = any(2)};
		snprintf(declaration.name, sizeof(declaration.name), "s%u", i);
		apps_declare(simulation->core.apps, simulation->process, i, &declaration);
	}
	for (int part = 0; part < 4; part++) {
		simulation_run(simulation, 1 + (double)any(40));
		for (size_t i = any(RECORDS); i > 0; i--) {
			send_record(character, &t_ns, simulation->now_ns);
		}
		apps_drained(simulation->core.apps, simulation->process);
		judge();
	}
	simulation_close(simulation);
}

START_TEST(hostile_records_are_survived)
{
	const char *seconds = getenv("EDGEPROF_FUZZ_S");
	time_t end = time(NULL) + (seconds ? atoi(seconds) : 0);
	for (uint64_t seed = seconds ? (uint64_t)end : 1;
		seconds ? time(NULL) < end : seed <= ROUNDS; seed++) {
		play(seed);
	}
}
END_TEST

START_TEST(a_run_of_one_moment_has_no_older_time)
{
	static struct span span;
	past = (struct past_frames){.whole = true, .count = 1};
	past.frame[0].start_ns = past.frame[0].end_ns = 8000 * SECOND;
	span_divide(&span, &past, 7000 * SECOND, 8000 * SECOND);
	ck_assert_uint_eq(span.older, 0);
	ck_assert_double_lt(span_length_s(&span, 0), 1);
}
END_TEST
