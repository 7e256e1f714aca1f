/*
 * What is done for each run of a stage, in one place so that the compiler sees all of it at once:
 * here on the way of a record (app_complete.h), in stages.c for everybody else. What seldom happens
 * is out of line and takes copies: a struct whose address goes nowhere stays in registers.
 */
#pragma once

#include "daemon/core/stages/stages.h"
#include "daemon/core/stages/window.h"

/* In stages.c. True: the run is one of the warm-up. */
bool stage_left_out(struct stage *stage, uint64_t end_ns);
void stage_take_cost(struct stage *stage, const struct stage_run *run);
void stage_take_throttled(struct stage *stage, uint64_t duration_ns);

/* recent: 1 when the run counts with the interval, else 0. Without branches: a stage that misses
 * every other deadline would mispredict one each time. */
static inline void stage_judge(struct stage *stage, uint64_t duration_ns, uint64_t recent)
{
	uint64_t miss = duration_ns > stage->deadline_ns;
	uint64_t mask = 0 - miss;
	uint64_t consecutive = (stage->consecutive_misses + 1) & mask;
	uint64_t over_ns = duration_ns & mask;
	stage->judged++;
	stage->misses += miss;
	stage->interval.misses += miss & recent;
	stage->consecutive_misses = consecutive;
	if (consecutive > stage->longest_misses) {
		stage->longest_misses = consecutive;
	}
	if (over_ns > stage->worst_ns) {
		stage->worst_ns = over_ns;
	}
}

/* False: the run is one of the warm-up. */
static inline __attribute__((always_inline)) bool stage_take(
	struct stage *stage, const struct stage_run *run)
{
	uint64_t duration_ns = run->duration_ns;
	uint64_t recent = run->end_ns >= stage->interval_from_ns;
	pulse_note(&stage->pulse, run->end_ns);
	if (__builtin_expect(stage->warmup_left > 0, 0) && stage_left_out(stage, run->end_ns)) {
		return false;
	}
	if (__builtin_expect(stage->cpu || run->cpu_us != PROTO_CPU_NOT_MEASURED ||
				     run->process_cpu_ns != UINT64_MAX ||
				     run->rss_growth != INT64_MIN,
		    0)) {
		const struct stage_run copy = *run;
		stage_take_cost(stage, &copy);
	}
	size_t at = stage->next;
	stage->runs[at] = stage_word(duration_ns, run->throttled);
	stage->next = at + 1 < stage->window ? at + 1 : 0;
	stage->filled += stage->filled < stage->window;

	stage->count++;
	stage->total_ns += duration_ns;
	stage->interval.count += recent;
	stage->failed += run->failed;
	proto_histogram_add(stage->all, duration_ns);
	stage->unknown_count += run->throttled == THROTTLE_UNKNOWN;
	if (__builtin_expect(run->throttled == THROTTLE_YES, 0)) {
		stage_take_throttled(stage, duration_ns);
	}
	if (duration_ns < stage->min_ns) {
		stage->min_ns = duration_ns;
	}
	if (__builtin_expect(duration_ns > stage->interval.max_ns, 0)) {
		stage->interval.max_ns = recent ? duration_ns : stage->interval.max_ns;
		stage->max_ns = duration_ns > stage->max_ns ? duration_ns : stage->max_ns;
	}
	if (stage->deadline_ns) {
		stage_judge(stage, duration_ns, recent);
	}
	if (run->end_ns > stage->last_ns) { /* slots are drained one after the other */
		stage->last_ns = run->end_ns;
		stage->last_frame = run->frame;
	}
	return true;
}
