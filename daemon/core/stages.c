/*
 * One stage's numbers. apps.c turns records into the calls here; the sample tick and queries read
 * the recent window, which is kept as integers so that it is exact.
 */
#include "daemon/core/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/seam.h"

int stage_create(const char *name, size_t window, struct stage **ret)
{
	struct stage *stage = mem_zalloc(sizeof(*stage));
	if (!stage) {
		return -ENOMEM;
	}
	stage->durations_ns = mem_calloc(window, sizeof(*stage->durations_ns));
	if (!stage->durations_ns) {
		stage_destroy(stage);
		return -ENOMEM;
	}
	proto_name_clean(name, strlen(name), stage->name);
	stage->window = window;
	stage->min_ns = UINT64_MAX;
	stage->last_frame = PROTO_NO_FRAME;
	*ret = stage;
	return 0;
}

void stage_destroy(struct stage *stage)
{
	if (!stage) {
		return;
	}
	free(stage->durations_ns);
	free(stage);
}

void stage_event(struct stage *stage, const struct stage_run *run)
{
	uint64_t duration_ns = run->duration_ns;
	stage->durations_ns[stage->next] = duration_ns;
	if (++stage->next == stage->window) {
		stage->next = 0;
	}
	stage->filled += stage->filled < stage->window;

	stage->count++;
	stage->total_ns += duration_ns;
	stage->interval.count++;
	if (duration_ns < stage->min_ns) {
		stage->min_ns = duration_ns;
	}
	if (duration_ns > stage->max_ns) {
		stage->max_ns = duration_ns;
	}
	if (duration_ns > stage->interval.max_ns) {
		stage->interval.max_ns = duration_ns;
	}
	if (stage->deadline_ns && duration_ns > stage->deadline_ns) {
		stage->misses++;
		stage->interval.misses++;
	}
	if (run->cpu_us != PROTO_CPU_NOT_MEASURED) {
		stage->interval.cpu_us += run->cpu_us;
		stage->interval.cpu_count++;
	}
	if (run->end_ns > stage->last_ns) { /* slots are drained one after the other */
		stage->last_ns = run->end_ns;
		stage->last_frame = run->frame;
	}
}

/* STAGE_OPEN_IDS when it is not open. */
static size_t open_index(const struct stage *stage, uint64_t id)
{
	size_t i = 0;
	while (i < STAGE_OPEN_IDS && !(stage->open[i].used && stage->open[i].id == id)) {
		i++;
	}
	return i;
}

bool stage_is_open(const struct stage *stage, uint64_t id)
{
	return open_index(stage, id) < STAGE_OPEN_IDS;
}

void stage_abandon(struct stage *stage)
{
	for (size_t i = 0; i < STAGE_OPEN_IDS; i++) {
		stage->abandoned += stage->open[i].used;
		stage->open[i].used = false;
	}
}

void stage_begin(struct stage *stage, uint64_t id, uint64_t start_ns, uint64_t frame)
{
	size_t index = open_index(stage, id);
	struct stage_open_id *place;
	if (index < STAGE_OPEN_IDS) {
		place = &stage->open[index];
		stage->abandoned++;
	} else {
		place = &stage->open[0];
		for (size_t i = 0; i < STAGE_OPEN_IDS; i++) {
			if (!stage->open[i].used) {
				place = &stage->open[i];
				break;
			}
			if (stage->open[i].start_ns < place->start_ns) {
				place = &stage->open[i];
			}
		}
		stage->abandoned += place->used;
	}
	*place = (struct stage_open_id){
		.id = id, .start_ns = start_ns, .frame = frame, .used = true};
}

void stage_end(struct stage *stage, uint64_t id, uint64_t end_ns, uint32_t cpu_us)
{
	size_t index = open_index(stage, id);
	if (index == STAGE_OPEN_IDS || end_ns < stage->open[index].start_ns) {
		stage->orphan_ends++;
		return;
	}
	struct stage_open_id *place = &stage->open[index];
	place->used = false;
	struct stage_run run = stage_run_of(end_ns, end_ns - place->start_ns, place->frame);
	run.cpu_us = cpu_us;
	stage_event(stage, &run);
}

void stage_summary(const struct stage *stage, double *scratch, struct proto_summary *ret)
{
	for (size_t i = 0; i < stage->filled; i++) {
		scratch[i] = (double)stage->durations_ns[i] / 1e6;
	}
	proto_summarize(scratch, stage->filled, ret);
}

void stage_interval_reset(struct stage *stage)
{
	memset(&stage->interval, 0, sizeof(stage->interval));
}
