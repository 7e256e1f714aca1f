/* SPDX-License-Identifier: Apache-2.0 */
/* frame_facts.c: computes what single frames and executions were like. */
#include "daemon/core/diagnose/frame_facts.h"

#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/frames/trace_buffer.h"
#include "proto/percentile.h"

enum { KIND_MIN = 10, SLOW_MIN = 4 };

static const double SLOW = 1.5; /* times the median */

static void on_run(void *ctx, const struct past_run *run)
{
	struct executions *executions = ctx;
	const struct past_frames *past = executions->past;
	uint8_t *index = &executions->stage[run->name];
	if (*index == 0) {
		const char *name = trace_log_name_of(executions->app->log, run->name);
		while (*index < past->stages && strcmp(past->stage[*index], name) != 0) {
			++*index;
		}
		*index = (uint8_t)(*index < past->stages ? *index + 1 : FACTS_STAGES + 1);
	}
	if (*index > FACTS_STAGES) {
		return;
	}
	double ms = (double)(run->end_ns - run->start_ns) / 1e6;
	size_t i = *index - 1u;
	executions->of[i].ms[executions->of[i].count++ % EXECUTIONS] = ms;
	executions->of[i].sum_ms += ms;
	if (run->cpu_us != PROTO_CPU_NOT_MEASURED) {
		executions->of[i].cpu_ms += run->cpu_us / 1e3;
		executions->of[i].cpu_of_ms += ms;
	}
}

void executions_read(struct executions *executions, const struct app *app,
	const struct past_frames *past, const struct span *span, uint64_t until_ns)
{
	memset(executions->stage, 0, sizeof(executions->stage));
	for (size_t i = 0; i < FACTS_STAGES; i++) {
		executions->of[i].count = 0;
		executions->of[i].sum_ms = executions->of[i].cpu_ms = 0;
		executions->of[i].cpu_of_ms = 0;
	}
	executions->app = app;
	executions->past = past;
	executions->frames = 0;
	for (size_t i = span->now; i < span->count; i++) {
		executions->frames += span->segment[i].frames;
	}
	past_runs_visit(app, span->segment[span->now].from_ns, until_ns, on_run, executions);
}

static double delta_ms(const struct past_frame *frame)
{
	return frame->delta_ns > 0 ? (double)frame->delta_ns / 1e6 : (double)NAN;
}

static double latency_ms(const struct past_frame *frame)
{
	return frame->id == PROTO_NO_FRAME ? (double)NAN
					   : (double)(frame->end_ns - frame->start_ns) / 1e6;
}

static double busy_ms(const struct past_frame *frame)
{
	return (double)frame->busy_ms;
}

/* The values of frames [first, end), ascending. How many. */
static size_t sorted(const struct past_frames *past, size_t first, size_t end,
	double (*value_of)(const struct past_frame *frame), double *ret)
{
	size_t count = 0;
	for (size_t i = first; i < end; i++) {
		double value = value_of(&past->frame[i]);
		if (!isnan(value)) {
			ret[count++] = value;
		}
	}
	proto_sort(ret, count);
	return count;
}

static double median_ms(const struct past_frames *past, size_t first, size_t end, double *values)
{
	return proto_percentile(values, sorted(past, first, end, delta_ms, values), 50);
}

void facts_add_percentiles(struct facts *facts, const struct span *span,
	const struct past_frames *past, double *values)
{
	size_t first = past->count;
	while (first > 0 && past->frame[first - 1].end_ns > span->segment[span->now].from_ns) {
		first--;
	}
	size_t count = sorted(past, first, past->count, delta_ms, values);
	facts->frames_now = past->count - first;
	facts->frame_p50_ms = proto_percentile(values, count, 50);
	facts->frame_p95_ms = proto_percentile(values, count, 95);
	facts->frame_p99_ms = proto_percentile(values, count, 99);
	count = sorted(past, first, past->count, latency_ms, values);
	facts->latency_p50_ms = proto_percentile(values, count, 50);
	facts->latency_p95_ms = proto_percentile(values, count, 95);
	count = past->stages > 0 ? sorted(past, first, past->count, busy_ms, values) : 0;
	facts->busy_p5_ms = proto_percentile(values, count, 5);
}

/* Slow frames differ from the frames around them: where everything became slower they are not
 * slow. */
static void mark_slow(
	const struct span *span, const struct past_frames *past, double *values, bool *slow)
{
	double all_ms = median_ms(past, 0, past->count, values);
	for (size_t i = span->older; i < span->count; i++) {
		size_t first = span->segment[i].first, end = first + span->segment[i].count;
		double limit_ms = SLOW * fmax(all_ms, median_ms(past, first, end, values));
		for (size_t k = first; k < end; k++) {
			slow[k] = delta_ms(&past->frame[k]) > limit_ms;
		}
	}
}

enum { TOOK, RUN_DELAY, INVOLUNTARY, MAJOR, MINOR, CPU, STAGES, VALUES = STAGES + FACTS_STAGES };

/* A frame's values; NAN where they are not known. */
static void values_of(
	const struct past_frame *frame, const struct past_frames *past, double ret[VALUES])
{
	double known = frame->has_context ? 1 : (double)NAN;
	bool delayed = frame->has_context && frame->run_delay_us != PROTO_CPU_NOT_MEASURED;
	ret[TOOK] = delta_ms(frame);
	ret[RUN_DELAY] = delayed ? frame->run_delay_us / 1e3 : (double)NAN;
	ret[INVOLUNTARY] = known * frame->involuntary;
	ret[MAJOR] = known * frame->major_faults;
	ret[MINOR] = known * frame->minor_faults;
	ret[CPU] = (double)frame->cpu_ms;
	for (size_t i = 0; i < past->stages; i++) {
		ret[STAGES + i] = isnan(frame->stage_ms[i]) ? 0 : (double)frame->stage_ms[i];
	}
}

/* In how many slow frames each stage has a quarter of the excess. */
static size_t guilty_stages(
	const struct past_frames *past, const bool *slow, const double usual[VALUES], size_t slows)
{
	size_t guilty[FACTS_STAGES] = {0}, stages = 0;
	for (size_t i = 0; i < past->count; i++) {
		double value[VALUES];
		values_of(&past->frame[i], past, value);
		for (size_t k = STAGES; slow[i] && k < STAGES + past->stages; k++) {
			double excess_ms = value[TOOK] - usual[TOOK];
			guilty[k - STAGES] += value[k] - usual[k] >= excess_ms / 4;
		}
	}
	for (size_t i = 0; i < past->stages; i++) {
		stages += guilty[i] > 0 && guilty[i] * 10 >= slows;
	}
	return stages;
}

void facts_add_slow(struct facts *facts, const struct span *span, const struct past_frames *past,
	double *values)
{
	bool slow[PAST_FRAMES] = {false};
	double sum[2][VALUES] = {{0}}, known[2][VALUES] = {{0}}, usual[VALUES], excess[VALUES];
	size_t slows = 0, distances = 0, last = 0;
	mark_slow(span, past, values, slow);
	for (size_t i = 0; i < past->count; i++) {
		double value[VALUES];
		values_of(&past->frame[i], past, value);
		for (size_t k = 0; k < STAGES + past->stages; k++) {
			sum[slow[i]][k] += isnan(value[k]) ? 0 : value[k];
			known[slow[i]][k] += !isnan(value[k]);
		}
		if (slow[i]) {
			values[distances] = (double)(i - last);
			distances += slows++ > 0;
			last = i;
		}
	}
	for (size_t k = 0; k < STAGES + past->stages; k++) {
		usual[k] = known[0][k] > 0 ? sum[0][k] / known[0][k] : (double)NAN;
		excess[k] = known[1][k] > 0 ? sum[1][k] / known[1][k] - usual[k] : (double)NAN;
	}
	facts->slow_share = past->count > 0 ? (double)slows / (double)past->count : (double)NAN;
	facts->slow_excess_ms = excess[TOOK];
	facts->slow_run_delay_ms = excess[RUN_DELAY];
	facts->slow_involuntary = excess[INVOLUNTARY];
	facts->slow_major_faults = excess[MAJOR];
	facts->slow_minor_faults = excess[MINOR];
	facts->slow_cpu_ms = excess[CPU];
	facts->slow_period_frames = facts->slow_regularity = NAN;
	if (slows >= SLOW_MIN) {
		proto_sort(values, distances);
		double median = proto_percentile(values, distances, 50);
		facts->slow_period_frames = median;
		facts->slow_regularity = (proto_percentile(values, distances, 75) -
						 proto_percentile(values, distances, 25)) /
					 median;
	}
	facts->slow_stages = guilty_stages(past, slow, usual, slows);
}

/* Frames of a kind: the median of their time, and the energy of one. */
static size_t add_kind(enum throttle_value kind, const struct span *span,
	const struct past_frames *past, const struct series *power, double *values, double *ret_ms,
	double *ret_joules)
{
	size_t count = 0;
	double energy = 0, powered = 0; /* mW * ms = µJ */
	for (size_t i = span->older; i < span->count; i++) {
		const struct segment *segment = &span->segment[i];
		for (size_t k = segment->first; k < segment->first + segment->count; k++) {
			double ms = delta_ms(&past->frame[k]);
			if (past->frame[k].throttled != kind || isnan(ms)) {
				continue;
			}
			values[count++] = ms;
			if (!isnan(power->mean[i])) {
				energy += power->mean[i] * ms;
				powered++;
			}
		}
	}
	proto_sort(values, count);
	*ret_ms = count >= KIND_MIN ? proto_percentile(values, count, 50) : (double)NAN;
	*ret_joules = count >= KIND_MIN && powered > 0 ? energy / powered / 1e6 : (double)NAN;
	return count;
}

void facts_add_throttled(struct facts *facts, const struct span *span,
	const struct past_frames *past, const struct series *power, double *values)
{
	size_t yes = add_kind(THROTTLE_YES, span, past, power, values, &facts->throttled_ms,
		&facts->throttled_joules);
	size_t no = add_kind(THROTTLE_NO, span, past, power, values, &facts->unthrottled_ms,
		&facts->unthrottled_joules);
	facts->throttled_share = yes + no > 0 ? (double)yes / (double)(yes + no) : (double)NAN;
}
