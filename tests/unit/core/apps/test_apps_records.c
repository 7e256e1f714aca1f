/* SPDX-License-Identifier: Apache-2.0 */
/* Many records at once do what they do one by one. */
#include <stdlib.h>

#include "daemon/core/frames/trace_buffer.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/histograms.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

enum { RECORDS = 12000, STAGES = 6 };

static uint64_t seed = 5;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

static void make(struct proto_record *ret, uint64_t t_ns)
{
	*ret = (struct proto_record){.kind = PROTO_KIND_COMPLETE,
		.stage = (uint16_t)draw(STAGES),
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = t_ns - draw(4) * S / 2,
		.value = draw(100) == 0 ? draw(50) * S / 10 : draw(20 * MS),
		.frame = draw(3) == 0 ? PROTO_NO_FRAME : t_ns / (8 * MS)};
	switch (draw(40)) {
	case 0:
		ret->kind = PROTO_KIND_FRAME;
		ret->value = draw(9 * MS);
		break;
	case 1:
		ret->kind = PROTO_KIND_DEADLINE;
		ret->value = draw(30 * MS);
		break;
	case 2:
		ret->flags = PROTO_RECORD_FAILED;
		break;
	case 3:
		ret->stage = (uint16_t)(STAGES + draw(3)); /* not declared */
		break;
	case 4:
		ret->start_ns += 100 * S; /* not believable */
		break;
	case 5:
		ret->cpu_us = ret->stage == 5 ? (uint32_t)draw(9000) : PROTO_CPU_NOT_MEASURED;
		break;
	case 6:
		ret->flags = ret->stage == 4 && draw(9) == 0
				     ? 1 << PROTO_RECORD_DEPTH_SHIFT | PROTO_RECORD_NESTED
				     : 0;
		break;
	}
}

static void same_stage(const struct stage *a, const struct stage *b)
{
	ck_assert_str_eq(a->name, b->name);
	ck_assert_uint_eq(a->count, b->count);
	ck_assert_uint_eq(a->misses, b->misses);
	ck_assert_uint_eq(a->total_ns, b->total_ns);
	ck_assert_uint_eq(a->min_ns, b->min_ns);
	ck_assert_uint_eq(a->max_ns, b->max_ns);
	ck_assert_uint_eq(a->last_ns, b->last_ns);
	ck_assert_uint_eq(a->last_frame, b->last_frame);
	ck_assert_uint_eq(a->failed, b->failed);
	ck_assert_uint_eq(a->warmup_skipped, b->warmup_skipped);
	ck_assert_uint_eq(a->judged, b->judged);
	ck_assert_uint_eq(a->worst_ns, b->worst_ns);
	ck_assert_uint_eq(a->consecutive_misses, b->consecutive_misses);
	ck_assert_uint_eq(a->longest_misses, b->longest_misses);
	ck_assert_uint_eq(a->unknown_count, b->unknown_count);
	ck_assert_uint_eq(a->children_ns, b->children_ns);
	ck_assert_uint_eq(a->noted + b->noted, 0);
	ck_assert_uint_eq(a->filled, b->filled);
	ck_assert_uint_eq(a->next, b->next);
	ck_assert_uint_eq(a->capacity, b->capacity);
	ck_assert_mem_eq(&a->pulse, &b->pulse, sizeof(a->pulse));
	ck_assert_mem_eq(&a->interval, &b->interval, sizeof(a->interval));
	ck_assert_mem_eq(&a->loop.outside, &b->loop.outside, sizeof(a->loop.outside));
	ck_assert_mem_eq(&a->loop.inside, &b->loop.inside, sizeof(a->loop.inside));
	ck_assert_mem_eq(a->runs, b->runs, a->filled * sizeof(*a->runs));
	ck_assert(histograms_match(a->all, b->all));
	ck_assert(!a->throttled == !b->throttled && !a->cpu == !b->cpu);
	if (a->throttled) {
		ck_assert(histograms_match(a->throttled, b->throttled));
	}
	if (a->cpu) {
		ck_assert_mem_eq(a->cpu, b->cpu, a->filled * sizeof(*a->cpu));
	}
}

START_TEST(records_at_once_are_counted_as_one_by_one)
{
	static struct proto_record records[RECORDS];
	struct throttle_times times = {0};
	struct app_process *process[2] = {
		attach_as("one", 1000, 100, T0 - S), attach_as("batch", 1000, 101, T0 - S)};
	for (uint32_t i = 0; i < STAGES; i++) {
		char name[8];
		snprintf(name, sizeof(name), "s%u", i);
		declare(process[0], i, name, "");
		declare(process[1], i, name, "");
	}
	apps_set_throttle_times(apps, &times);
	for (size_t i = 0; i < RECORDS; i++) {
		make(&records[i], T0 + i * MS);
	}
	for (size_t i = 0, n; i < RECORDS; i += n) {
		uint64_t now_ns = T0 + i * MS;
		n = 1 + draw(400);
		n = n < RECORDS - i ? n : RECORDS - i;
		throttle_times_sample(&times, now_ns, (enum throttle_value)draw(3));
		for (size_t k = i; k < i + n; k++) {
			apps_record(apps, process[0], 0, &records[k], now_ns + S);
		}
		ck_assert_uint_eq(apps_records(apps, process[1], 0, &records[i], n, now_ns + S), n);
		if (draw(4) == 0) {
			apps_fold_stages(apps);
			apps_drained(apps, process[0]);
			apps_drained(apps, process[1]);
			apps_sample(apps, now_ns);
		}
	}
	apps_set_throttle_times(apps, NULL);
	apps_fold_stages(apps);
	ck_assert_uint_gt(process[0]->accounting.invalid, 0);
	ck_assert_uint_eq(process[0]->accounting.invalid, process[1]->accounting.invalid);
	ck_assert_uint_eq(process[0]->app->stages, STAGES);
	for (size_t i = 0; i < STAGES; i++) {
		ck_assert_uint_eq(process[0]->app->stage[i]->filled, 1024);
		same_stage(process[0]->app->stage[i], process[1]->app->stage[i]);
	}
	const struct frames *one = process[0]->app->frames, *batch = process[1]->app->frames;
	ck_assert_uint_gt(one->count, 0);
	ck_assert_uint_eq(one->count, batch->count);
	ck_assert_uint_eq(one->misses, batch->misses);
	/* the raw records are the same, in the same order */
	struct trace_cursor left = {0}, right = {0};
	const struct event *a;
	size_t events = 0;
	while ((a = trace_log_next(process[0]->app->log, &left, NULL))) {
		const struct event *b = trace_log_next(process[1]->app->log, &right, NULL);
		ck_assert_ptr_nonnull(b);
		ck_assert_mem_eq(&a->record, &b->record, sizeof(a->record));
		ck_assert_uint_eq(a->throttled, b->throttled);
		events++;
	}
	ck_assert_uint_eq(events + process[0]->accounting.invalid, RECORDS);
}
END_TEST
