/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon pays for one event: reading it out of a 1 MiB mapping and the statistics of its
 * stage. One writer fills the ring, only the drain is timed; the median of many rounds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/apps/apps.h"
#include "daemon/ingest/ring.h"
#include "tests/unit/ingest/ring_writer.h"
#include "tests/bench/bench.h"

enum { SIZE = 1024 * 1024, ROUNDS = 200, STAGES = 8 };

static const uint64_t PAST_NS = 100000000000u;

static struct apps *apps;
static struct app_process *process;
static uint64_t drain_ns;

static void take_declaration(void *ctx, uint32_t index, const struct proto_declaration *copy)
{
	(void)ctx;
	apps_declare(apps, process, index, copy);
}

static bool take_record(void *ctx, uint32_t slot, const struct proto_record *copy)
{
	(void)ctx;
	apps_record(apps, process, slot, copy, drain_ns);
	return true;
}

static unsigned fill(struct writer *writer)
{
	static uint64_t first_frame; /* frames go on from round to round */
	unsigned count = 0;
	uint64_t t = (uint64_t)now_ns();
	struct proto_record record = {.kind = PROTO_KIND_COMPLETE, .start_ns = t - PAST_NS};
	do {
		record.stage = (uint16_t)(count % STAGES);
		record.value = 1000000 + (count * 2654435761u) % 1000000;
		record.frame = first_frame + count / STAGES;
		record.cpu_us = PROTO_CPU_NOT_MEASURED;
		record.start_ns += 2000000; /* one stage after the other, as in a pipeline */
		count++;
	} while (writer_put(writer, 0, &record));
	first_frame += count / STAGES + 1;
	return count - 1;
}

/* The floor, ns an event: the durations of as many records added up. */
static double plain_loop(const void *map, unsigned count)
{
	const struct proto_record *record = map;
	uint64_t sum = 0, begin_ns = now_ns();
	for (unsigned i = 0; i < count && i < SIZE / sizeof(*record); i++) {
		sum += record[i].value;
	}
	__asm__ volatile("" : : "r"(sum)); /* it is wanted */
	return (double)(now_ns() - begin_ns) / count;
}

/* The most stages that there may be, all with events in the interval: what one tick pays. */
static void sample_all(void)
{
	for (unsigned a = 0; a < 2; a++) {
		char name[16];
		snprintf(name, sizeof(name), "app%u", a);
		if (apps_attach(apps, name, 0, 1, 1, SIZE, now_ns(), &process) < 0) {
			return;
		}
		for (uint32_t i = 0; i < APP_STAGES_MAX - 8; i++) {
			struct proto_declaration declaration = {.deadline_ns = 1500000};
			snprintf(declaration.name, sizeof(declaration.name), "s%u", i);
			apps_declare(apps, process, i, &declaration);
		}
		drain_ns = now_ns();
		for (unsigned k = 0; k < 1024 * (APP_STAGES_MAX - 8); k++) {
			const struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
				.stage = (uint16_t)(k % (APP_STAGES_MAX - 8)),
				.start_ns = drain_ns - 5000000,
				.value = 1000000 + (k * 2654435761u) % 1000000,
				.frame = PROTO_NO_FRAME,
				.cpu_us = PROTO_CPU_NOT_MEASURED};
			apps_record(apps, process, 0, &record, drain_ns);
		}
		apps_drained(apps, process);
	}
	drain_ns = now_ns();
	apps_sample(apps, drain_ns);
	printf("sample of %zu stages of 1024: %.0f us\n", apps_counts(apps)->stages,
		(double)(now_ns() - drain_ns) / 1e3);
}

int main(void)
{
	struct sources *sources;
	struct source *source;
	struct metrics *metrics;
	struct timeline *timeline;
	struct writer writer;
	struct ring *ring;
	const struct apps_options options = {.stage_window = 1024, .frame_window = 300};
	void *map = aligned_alloc(4096, SIZE);
	if (!map) {
		return 1;
	}
	memset(map, 0, SIZE);
	writer_init(&writer, map, SIZE);
	if (sources_create(&sources) < 0 || sources_add(sources, "apps", 0, &source) < 0 ||
		metrics_create(&metrics) < 0 || timeline_create(16, &timeline) < 0 ||
		apps_create(metrics, source, timeline, &options, &apps) < 0 ||
		apps_attach(apps, "bench", 0, 1, 1, SIZE, now_ns(), &process) < 0 ||
		ring_create(map, SIZE, &ring) < 0) {
		return 1;
	}
	for (int i = 0; i < STAGES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "s%d", i);
		writer_declare(&writer, name, 1500000);
	}
	static struct throttle_times times;
	for (uint64_t ago_ns = 2 * PAST_NS; ago_ns > 0; ago_ns -= 1000000000) {
		throttle_times_sample(&times, now_ns() - ago_ns, THROTTLE_NO);
	}
	apps_set_throttle_times(apps, &times);
	const struct ring_sink sink = {take_declaration, take_record, NULL};
	static double rounds[ROUNDS], loops[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		unsigned count = fill(&writer);
		bool more;
		drain_ns = now_ns();
		throttle_times_sample(&times, drain_ns, THROTTLE_NO);
		size_t done = ring_drain(ring, &sink, UINT32_MAX, &more);
		apps_drained(apps, process);
		rounds[i] = (double)(now_ns() - drain_ns) / (double)done;
		loops[i] = plain_loop(map, count);
		if (done != count || process->accounting.invalid) {
			fprintf(stderr, "%zu of %u events arrived\n", done, count);
			return 1;
		}
	}
	qsort(rounds, ROUNDS, sizeof(rounds[0]), by_value);
	qsort(loops, ROUNDS, sizeof(loops[0]), by_value);
	printf("drain incl. statistics: %.1f ns/event (p95 %.1f; bar 30, aim 12), %.0f x a plain "
	       "loop's "
	       "%.2f ns\n",
		rounds[ROUNDS / 2], rounds[ROUNDS * 95 / 100],
		rounds[ROUNDS / 2] / loops[ROUNDS / 2], loops[ROUNDS / 2]);
	sample_all();
	ring_destroy(ring);
	apps_destroy(apps);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
	free(map);
	return 0;
}
