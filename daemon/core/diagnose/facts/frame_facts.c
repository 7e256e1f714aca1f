/* SPDX-License-Identifier: Apache-2.0 */
/* frame_facts.c: measures frames, and folds measures of many of them into facts. */
#include "daemon/core/diagnose/facts/frame_facts.h"

#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "proto/percentile.h"

enum { KIND_MIN = 10, SLOW_MIN = 4, ONLY_MIN = 20 };

static const float SLOW = 1.5F; /* times the median */
static const double MOST = 0.6; /* of the slow frames */

/* How a measure becomes a fact; 0 … 100: the percentile of the frames now. */
enum fold {
	USUALLY = -1, /* now and usual */
	EXCESS = -2   /* mean of slow frames over that of the others */
};

static const struct {
	size_t at; /* in struct facts */
	enum measure measure;
	int fold;
} rows[] = {
#define ROW(field, measure, fold)                            \
	{                                                    \
		offsetof(struct facts, field), measure, fold \
	}
	ROW(frame_ms, FRAME_MS, USUALLY),
	ROW(busy_ms, BUSY_MS, USUALLY),
	ROW(latency_ms, LATENCY_MS, USUALLY),
	ROW(miss_percent, MISSED, USUALLY),
	ROW(run_delay_ms, RUN_DELAY_MS, USUALLY),
	ROW(major_faults, MAJOR_FAULTS, USUALLY),
	ROW(frame_p50_ms, FRAME_MS, 50),
	ROW(frame_p95_ms, FRAME_MS, 95),
	ROW(frame_p99_ms, FRAME_MS, 99),
	ROW(latency_p50_ms, LATENCY_MS, 50),
	ROW(latency_p95_ms, LATENCY_MS, 95),
	ROW(latency_p99_ms, LATENCY_MS, 99),
	ROW(busy_p5_ms, BUSY_MS, 5),
	ROW(slow_run_delay_ms, RUN_DELAY_MS, EXCESS),
	ROW(slow_major_faults, MAJOR_FAULTS, EXCESS),
	ROW(slow_minor_faults, MINOR_FAULTS, EXCESS),
	ROW(slow_cpu_ms, CPU_MS, EXCESS),
#undef ROW
};

static void measure(
	struct measures *measures, const struct past_frames *past, size_t at, float deadline_ms)
{
	const struct past_frame *frame = &past->frame[at];
	bool timed = frame->id != PROTO_NO_FRAME && frame->start_ns != frame->end_ns;
	bool delayed = frame->has_context && frame->run_delay_us != PROTO_CPU_NOT_MEASURED;
	float delta_ms = frame->delta_ns > 0 ? (float)((double)frame->delta_ns / 1e6) : NAN;
	float latency_ms = timed ? (float)((double)(frame->end_ns - frame->start_ns) / 1e6) : NAN;
	float took_ms = timed ? latency_ms : delta_ms, context = frame->has_context ? 1 : NAN;
	bool judged = deadline_ms > 0 && !isnan(took_ms);
	const float value[STAGE_MS] = {
		[FRAME_MS] = delta_ms,
		[FRAME_SQUARE] = delta_ms * delta_ms,
		[BUSY_MS] = past->stages > 0 ? frame->busy_ms : NAN,
		[LATENCY_MS] = latency_ms,
		[MISSED] = !judged		   ? NAN
			   : took_ms > deadline_ms ? 100
						   : 0,
		[RUN_DELAY_MS] = delayed ? (float)frame->run_delay_us / 1e3F : NAN,
		[MAJOR_FAULTS] = context * (float)frame->major_faults,
		[MINOR_FAULTS] = context * (float)frame->minor_faults,
		[CPU_MS] = frame->cpu_ms,
	};
	for (int i = 0; i < STAGE_MS; i++) {
		measures->of[i][at] = value[i];
	}
	for (size_t i = 0; i < past->stages; i++) {
		measures->of[STAGE_MS + i][at] = fmaxf(frame->stage_ms[i], 0); /* NAN is 0 */
		measures->of[WAIT_MS + i][at] = frame->wait_ms[i];
	}
}

/* Those that some frame may have. */
static bool is_used(const struct past_frames *past, size_t measure)
{
	return measure < STAGE_MS ||
	       (measure < TOOK_MS && (measure - STAGE_MS) % FACTS_STAGES < past->stages);
}

/* The mean over frames [first, end), of the slow or of the others where it matters. */
static double mean_of(const float *of, size_t first, size_t end, const bool *slow, bool wanted)
{
	double sum = 0, count = 0;
	for (size_t i = first; i < end; i++) {
		if (!isnan(of[i]) && (!slow || slow[i] == wanted)) {
			sum += (double)of[i];
			count++;
		}
	}
	return count > 0 ? sum / count : (double)NAN;
}

void measures_read(struct measures *measures, const struct past_frames *past,
	const struct span *span, double deadline_ms)
{
	for (size_t i = 0; i < past->count; i++) {
		measure(measures, past, i, (float)deadline_ms);
	}
	for (size_t k = 0; k < MEASURES; k++) {
		for (size_t i = 0; i < span->count; i++) {
			size_t first = span->segment[i].first;
			measures->mean[k][i] =
				is_used(past, k)
					? mean_of(measures->of[k], first,
						  first + span->segment[i].count, NULL, false)
					: (double)NAN;
		}
	}
}

/* Sorts what is above 0 of frames [first, end) into measures->values. How many. */
static size_t sorted(struct measures *measures, size_t measure, size_t first, size_t end)
{
	size_t count = 0;
	for (size_t i = first; i < end; i++) {
		double value = (double)measures->of[measure][i];
		measures->values[count] = value;
		count += value > 0;
	}
	proto_sort(measures->values, count);
	return count;
}

static double percentile(
	struct measures *measures, size_t measure, size_t first, size_t end, double p)
{
	return proto_percentile(measures->values, sorted(measures, measure, first, end), p);
}

static size_t first_of_now(const struct past_frames *past, const struct span *span)
{
	size_t first = past->count;
	while (first > 0 && past->frame[first - 1].end_ns > span->segment[span->now].from_ns) {
		first--;
	}
	return first;
}

/* Slow frames differ from the frames around them: where everything became slower they are not
 * slow. How many. */
static size_t mark_slow(
	struct measures *measures, const struct past_frames *past, const struct span *span)
{
	const float *of = measures->of[measures->slow_by];
	size_t count = 0;
	double all_ms = percentile(measures, measures->slow_by, 0, past->count, 50);
	for (size_t i = span->older; i < span->count; i++) {
		size_t first = span->segment[i].first, end = first + span->segment[i].count;
		double usual_ms =
			fmax(all_ms, percentile(measures, measures->slow_by, first, end, 50));
		for (size_t k = first; k < end; k++) {
			measures->slow[k] = of[k] > SLOW * (float)usual_ms;
			count += measures->slow[k];
		}
	}
	return count;
}

/* Of a mean slow frame over a mean one of the others. */
static double slow_excess(
	const struct measures *measures, const struct past_frames *past, size_t measure)
{
	const float *of = measures->of[measure];
	return mean_of(of, 0, past->count, measures->slow, true) -
	       mean_of(of, 0, past->count, measures->slow, false);
}

static void add_distances(struct facts *facts, struct measures *measures,
	const struct past_frames *past, size_t slows)
{
	double *values = measures->values;
	size_t count = 0, last = past->count;
	for (size_t i = 0; i < past->count; i++) {
		if (measures->slow[i]) {
			values[count] = (double)i - (double)last;
			count += last != past->count;
			last = i;
		}
	}
	proto_sort(values, count);
	double median = proto_percentile(values, count, 50);
	double range = proto_percentile(values, count, 75) - proto_percentile(values, count, 25);
	facts->slow_period_frames = slows >= SLOW_MIN ? median : (double)NAN;
	facts->slow_regularity = slows >= SLOW_MIN ? range / median : (double)NAN;
}

/* Stages that have a quarter of the excess in at least a tenth of the slow frames. What stops all
 * of them meets each in proportion to its time: one that is met more often is the only one,
 * where they are not few. */
static size_t count_guilty(
	const struct measures *measures, const struct past_frames *past, size_t slows)
{
	const float *frame_ms = measures->of[measures->slow_by];
	double usual_ms = mean_of(frame_ms, 0, past->count, measures->slow, false);
	size_t count = 0;
	for (size_t k = STAGE_MS; k < STAGE_MS + past->stages; k++) {
		const float *of = measures->of[k];
		double usual = mean_of(of, 0, past->count, measures->slow, false);
		double share = usual / usual_ms, chance = share * (double)slows, guilty = 0;
		for (size_t i = 0; i < past->count; i++) {
			guilty += measures->slow[i] &&
				  (double)of[i] - usual >= ((double)frame_ms[i] - usual_ms) / 4;
		}
		if (slows >= ONLY_MIN && guilty > MOST * (double)slows &&
			guilty - chance > 3 * sqrt(chance * (1 - share))) {
			return 1;
		}
		count += guilty > 0 && guilty * 10 >= (double)slows;
	}
	return count;
}

/* Several frames in one stage at a time, not now and then: in a pipeline they are in different
 * ones. */
static bool are_parallel(const struct past_frames *past)
{
	bool any = false;
	for (size_t i = 0; i < past->stages; i++) {
		any = any || past->runs[i].overlaps > past->runs[i].count / 5;
	}
	return any;
}

/* What slow frames are slow in: that is the distance from one to the next, unless each takes longer
 * than that. Without ids nobody knows then what is of which iteration: none is slow. */
static enum measure slow_by(const struct measures *measures, const struct past_frames *past)
{
	double latency_ms = mean_of(measures->of[LATENCY_MS], 0, past->count, NULL, false);
	double busy_ms = mean_of(measures->of[BUSY_MS], 0, past->count, NULL, false);
	double frame_ms = mean_of(measures->of[FRAME_MS], 0, past->count, NULL, false);
	double took_ms = isnan(latency_ms) ? busy_ms : latency_ms;
	return are_parallel(past) && took_ms > PIPELINED * frame_ms ? LATENCY_MS : FRAME_MS;
}

void facts_add_frames(struct facts *facts, struct measures *measures,
	const struct past_frames *past, const struct span *span)
{
	measures->slow_by = slow_by(measures, past);
	size_t first = first_of_now(past, span), slows = mark_slow(measures, past, span);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *at = (char *)facts + rows[i].at;
		size_t of = rows[i].measure;
		if (rows[i].fold == USUALLY) {
			*(struct fact *)at = span_fact(span, measures->mean[of], span->frames);
		} else if (rows[i].fold == EXCESS) {
			*(double *)at = slow_excess(measures, past, of);
		} else {
			*(double *)at = percentile(measures, of, first, past->count, rows[i].fold);
		}
	}
	facts->parallel = measures->slow_by != FRAME_MS;
	facts->slow_excess_ms = slow_excess(measures, past, measures->slow_by);
	facts->frames_now = past->count - first;
	facts->in_flight = facts->latency_ms.now / facts->frame_ms.now;
	double paced_ms = span_fact(span, span->paced, span->frames).now;
	facts->since_s = paced_ms <= span->slow_ms || !span->has_usual
				 ? (double)NAN
				 : span_since(span, span->paced, 1, span->slow_ms);
	facts->slow_share = past->count > 0 ? (double)slows / (double)past->count : (double)NAN;
	add_distances(facts, measures, past, slows);
	facts->slow_stages = count_guilty(measures, past, slows);
}

void facts_add_stage(struct facts *facts, struct measures *measures, const struct past_frames *past,
	const struct span *span, size_t index)
{
	struct fact_stage *ret = &facts->stage[index];
	double of_ms = past->runs[index].cpu_of_ms;
	size_t first = first_of_now(past, span);
	ret->ms = span_fact(span, measures->mean[STAGE_MS + index], span->frames);
	ret->wait_ms = span_fact(span, measures->mean[WAIT_MS + index], span->frames).now;
	ret->share = ret->ms.now / facts->busy_ms.now;
	ret->p99_ms = percentile(measures, STAGE_MS + index, first, past->count, 99);
	ret->cpu_ratio = of_ms > 0 ? past->runs[index].cpu_ms / of_ms : (double)NAN;
	ret->excess_ms = facts->slow_share * slow_excess(measures, past, STAGE_MS + index);
}

double stage_lateness(const struct fact_stage *stage)
{
	return stage->miss_percent >= MISSES ? stage->took_ms.now / stage->deadline_ms : 0;
}

static bool is_part(const struct measures *measures, size_t stage, size_t of)
{
	for (size_t depth = 0; stage != of && depth < FACTS_STAGES; depth++) {
		size_t around = measures->around[stage];
		stage = around >= STAGE_MS ? around - STAGE_MS : stage;
	}
	return stage == of;
}

void facts_add_deadline(struct facts *facts, struct measures *measures,
	const struct past_frames *past, const struct span *span, size_t index)
{
	struct fact_stage *ret = &facts->stage[index];
	double runs = (double)past->runs[index].count / (double)past->begun, misses = 0;
	memset(measures->of[TOOK_MS], 0, sizeof(measures->of[TOOK_MS]));
	memset(measures->mean[TOOK_MS], 0, sizeof(measures->mean[TOOK_MS]));
	for (size_t k = 0; k < past->stages && !isnan(ret->deadline_ms); k++) {
		bool part = is_part(measures, k, index);
		for (size_t i = 0; part && i < past->count; i++) {
			measures->of[TOOK_MS][i] +=
				measures->of[STAGE_MS + k][i] / (float)fmax(1, runs);
		}
		for (size_t i = 0; part && i < span->count; i++) {
			measures->mean[TOOK_MS][i] += measures->mean[STAGE_MS + k][i] / runs;
		}
	}
	size_t count = sorted(measures, TOOK_MS, first_of_now(past, span), past->count);
	for (size_t i = 0; i < count; i++) {
		misses += measures->values[i] > ret->deadline_ms;
	}
	ret->took_ms = span_fact(span, measures->mean[TOOK_MS], span->frames);
	ret->least_ms = proto_percentile(measures->values, count, 5);
	ret->miss_percent = 100 * misses / (double)count;
}

/* Frames on one side of the median that follow each other say one thing: with r, how much two
 * neighbours agree, n frames are worth n (1 - r) / (1 + r). values: in order. */
static double independent(const double *values, size_t count, double median)
{
	double crossings = 0, pairs = (double)count - 1;
	for (size_t i = 1; i < count; i++) {
		crossings += (values[i] > median) != (values[i - 1] > median);
	}
	double agree = pairs > 0 ? fmax(1 - 2 * crossings / pairs, 0) : 0;
	return fmax((double)count * (1 - agree) / (1 + agree), fmin((double)count, 1));
}

/* Frames of a kind: their time, and the energy of one. How many. */
static size_t add_kind(enum throttle_value kind, struct measures *measures,
	const struct past_frames *past, const struct span *span, const column power,
	struct fact_scatter *ret, double *ret_ms, double *ret_joules)
{
	double sorted_ms[PAST_FRAMES], energy = 0, powered = 0; /* mW * ms = µJ */
	size_t count = 0;
	for (size_t i = span->older; i < span->count; i++) {
		const struct segment *segment = &span->segment[i];
		for (size_t k = segment->first; k < segment->first + segment->count; k++) {
			double ms = (double)measures->of[FRAME_MS][k];
			if (past->frame[k].throttled != kind || isnan(ms)) {
				continue;
			}
			measures->values[count] = sorted_ms[count] = ms;
			count++;
			energy += isnan(power[i]) ? 0 : power[i] * ms;
			powered += !isnan(power[i]);
		}
	}
	proto_sort(sorted_ms, count);
	double median = proto_percentile(sorted_ms, count, 50);
	*ret = (struct fact_scatter){.count = independent(measures->values, count, median),
		.iqr_ms = proto_percentile(sorted_ms, count, 75) -
			  proto_percentile(sorted_ms, count, 25)};
	*ret_ms = count >= KIND_MIN ? median : (double)NAN;
	*ret_joules = count >= KIND_MIN && powered > 0 ? energy / powered / 1e6 : (double)NAN;
	return count;
}

void facts_add_throttled(struct facts *facts, struct measures *measures,
	const struct past_frames *past, const struct span *span, const column power)
{
	size_t yes = add_kind(THROTTLE_YES, measures, past, span, power, &facts->throttled,
		&facts->throttled_ms, &facts->throttled_joules);
	size_t no = add_kind(THROTTLE_NO, measures, past, span, power, &facts->unthrottled,
		&facts->unthrottled_ms, &facts->unthrottled_joules);
	facts->throttled_share = yes + no > 0 ? (double)yes / (double)(yes + no) : (double)NAN;
}
