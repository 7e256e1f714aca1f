/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_symptoms.c: finds what is wrong with the frames before any rule asks why, and scores what a
 * rule explains of it. Sensors alone are never a symptom.
 */
#include "daemon/core/diagnose/rules/rules_private.h"

#define SLOWER 1.10	  /* of usual */
#define BELOW 1.05	  /* of the target: a camera's own rate is a little off its nominal one */
#define MISSES 2.0	  /* percent */
#define SLOW_MS 100.0	  /* a frame, where nothing says what is wanted */
#define JITTER_COST 0.015 /* of the median frame */
#define REGULAR 0.35	  /* interquartile range of distances / median: by chance it is 1.6 */
#define PIPELINED 1.2	  /* frames in flight */
#define SLOW_ONLY_SCORE 0.65 /* at most medium */
#define LOW_SCORE 0.3	     /* at most, without a symptom */

double or_zero(double value)
{
	return isfinite(value) ? value : 0;
}

double clamp01(double value)
{
	return value > 1 ? 1 : value > 0 ? value : 0;
}

struct fact metric_of(const struct view *view, enum fact_metric metric)
{
	const struct fact_series *series = &view->facts->metric[metric];
	return series->path[0] ? series->mean : (struct fact){(double)NAN, (double)NAN};
}

double growth_of(struct fact fact)
{
	return or_zero(fact.now - or_zero(fact.usual));
}

double change_of(struct fact fact)
{
	return or_zero(fact.now - fact.usual);
}

static double base_of(const struct view *view, struct fact fact)
{
	return view->changed && isfinite(fact.usual) ? fact.usual : fact.now;
}

double stage_base(const struct view *view, const struct fact_stage *stage)
{
	return stage ? or_zero(base_of(view, stage->ms)) : 0;
}

double share_of_base(const struct view *view, const struct fact_stage *stage)
{
	double busy = base_of(view, view->facts->busy_ms);
	return clamp01(stage_base(view, stage) / (view->pipelined ? view->base_ms : busy));
}

double agreement(const struct view *view, enum fact_metric metric, double sign)
{
	const struct facts *facts = view->facts;
	const struct fact_series *series = &facts->metric[metric];
	double match = sign * series->frames_match, late = facts->since_s - series->first_s;
	double together = isnan(match) ? 0.8 : 0.4 + 0.6 * clamp01(match / 0.5);
	/* Segments are wide, and sensors and pressure averages follow late. */
	double near = fmax(0.3 * facts->since_s, fmax(or_zero(facts->span_s) / 16, 10));
	return view->of_throttled || isnan(late) ? together
						 : together * (late > near	     ? 0.4
								      : late < -near ? 0.6
										     : 1);
}

/* Throttled and not throttled in turns: then there is no fast time and no slow one. */
static void find_change(struct view *view)
{
	const struct facts *facts = view->facts;
	double usual = facts->frame_ms.usual, slower = facts->frame_ms.now - usual;
	double sigma = or_zero((facts->frame_p95_ms - facts->frame_p50_ms) / 1.645);
	double scatter = 3 * sigma * sqrt(2 / fmax(1, (double)facts->frames_now));
	double tax = facts->throttled_ms - facts->unthrottled_ms;
	if (usual > 0 && slower >= (SLOWER - 1) * usual && slower >= scatter) {
		view->changed = true;
		view->base_ms = usual;
		view->excess[SYMPTOM_CHANGE] = slower;
	} else if (facts->throttled_share >= 0.05 && tax >= (SLOWER - 1) * facts->unthrottled_ms &&
		   !(metric_of(view, FACT_THROTTLE_ACTIVE).now < 0.05)) {
		view->of_throttled = true;
		view->base_ms = fmin(view->base_ms, facts->unthrottled_ms);
		view->excess[SYMPTOM_CHANGE] = facts->throttled_share * tax;
	}
}

/* Slow frames that are not just the tail of a wide distribution, nor those of the time since which
 * all are slower, nor those of a start that is over. */
static void find_jitter(struct view *view)
{
	const struct facts *facts = view->facts;
	double p50 = facts->frame_p50_ms, excess = facts->slow_excess_ms;
	double cost = facts->slow_share * excess;
	bool still = !(facts->frame_p99_ms < 1.4 * p50) ||
		     (facts->slow_share < 0.02 && !view->changed && !facts->warming_up);
	bool apart = excess >= p50 || facts->slow_regularity <= REGULAR ||
		     facts->slow_run_delay_ms >= 0.4 * excess || facts->slow_major_faults >= 1;
	if (still && apart && excess >= 0.5 * p50 && cost >= JITTER_COST * p50 &&
		facts->slow_share * (double)facts->frames >= 3) {
		view->excess[SYMPTOM_JITTER] = cost;
		view->base_ms = view->changed ? view->base_ms : fmax(p50, view->base_ms - cost);
	}
}

/* How far a frame's work is over the deadline at the best times; 0 = not. */
static double over_deadline(const struct view *view)
{
	const struct facts *facts = view->facts;
	bool ids = isfinite(facts->latency_ms.now); /* else the distance of two frames is judged */
	const struct fact *work = ids ? &facts->latency_ms : &facts->frame_ms;
	double jitter = view->excess[SYMPTOM_JITTER], deadline = facts->deadline_ms;
	double took = base_of(view, *work) - (view->changed ? 0 : jitter);
	double misses = view->changed ? facts->miss_percent.usual : facts->miss_percent.now;
	double slack = view->changed || jitter > 0 ? 0.9 : 0.6;
	bool misses_it = isnan(misses) ? took > deadline : misses >= MISSES;
	return misses_it && took >= slack * deadline ? fmax(took - 0.9 * deadline, 0.05 * deadline)
						     : 0;
}

static void find_constant(struct view *view)
{
	const struct facts *facts = view->facts;
	double base = view->base_ms, deadline = over_deadline(view);
	double target = base > BELOW * facts->target_ms ? base - facts->target_ms : 0;
	double work = base_of(view, facts->busy_ms) - stage_base(view, view->capture);
	view->slow_only = isnan(facts->target_ms) && isnan(facts->deadline_ms) && base >= SLOW_MS &&
			  work >= 0.6 * base;
	double slow = view->slow_only ? base - 0.9 * SLOW_MS : 0;
	view->excess[SYMPTOM_CONSTANT] = fmax(fmax(deadline, target), slow);
	view->missed = deadline > target;
}

static void prefer(
	const struct fact_stage **best, const struct fact_stage *stage, double value, double *most)
{
	*best = value > *most ? stage : *best;
	*most = fmax(*most, or_zero(value));
}

static void find_stages(struct view *view)
{
	const struct facts *facts = view->facts;
	double grown = 0, spikes = 0, infer = 0, waits = 0, fallback = 0;
	for (size_t i = 0; i < facts->stages && i < FACTS_STAGES; i++) {
		const struct fact_stage *stage = &facts->stage[i];
		double base = stage_base(view, stage);
		view->wait_ms += or_zero(stage->wait_ms);
		view->slowest_ms = fmax(view->slowest_ms, stage->ms.now);
		prefer(&view->waited, stage, stage->wait_ms, &waits);
		prefer(&view->grown, stage, change_of(stage->ms), &grown);
		prefer(&view->spiky, stage, stage->excess_ms, &spikes);
		prefer(&view->infer, stage, stage->role == ROLE_INFER ? base : 0, &infer);
		prefer(&view->fallback, stage, stage->cpu_fallback ? base : 0, &fallback);
		if (stage->role == ROLE_CAPTURE) {
			view->capture = stage;
			continue;
		}
		view->work_ms += base;
		prefer(&view->dominant, stage, share_of_base(view, stage), &view->dominance);
	}
	double captured = view->capture ? fmax(0, change_of(view->capture->ms)) : 0;
	view->compute =
		fmax(0, view->excess[SYMPTOM_CHANGE] - captured - view->run_delay - view->io_ms);
	double queued = facts->latency_ms.now - facts->busy_ms.now;
	if (view->pipelined && queued >= facts->busy_ms.now &&
		fmax(view->wait_ms, queued) >= 1.5 * facts->frame_ms.now) {
		view->excess[SYMPTOM_LATENCY] = queued;
	}
}

void view_init(struct view *view, const struct facts *facts)
{
	*view = (struct view){.facts = facts,
		.base_ms = facts->frame_ms.now,
		.pipelined = facts->in_flight > PIPELINED,
		.run_delay = fmax(0, change_of(facts->run_delay_ms))};
	double io_percent = fmax(0, change_of(metric_of(view, FACT_APP_IODELAY)));
	view->io_ms = or_zero(io_percent / 100 * facts->frame_ms.now);
	find_change(view);
	find_jitter(view);
	find_stages(view);
	find_constant(view);
}

bool explains(const struct view *view, const struct claims *claims)
{
	const double ms[SYMPTOMS] = {claims->change, claims->jitter, claims->constant};
	bool any = false;
	for (enum symptom symptom = 0; symptom < SYMPTOMS; symptom++) {
		double excess = view->excess[symptom];
		any |= excess > 0 && ms[symptom] > 0.15 * excess;
	}
	return any;
}

void judge(const struct view *view, struct judged *judged, double evidence, struct claims claims)
{
	const double ms[SYMPTOMS] = {claims.change, claims.jitter, claims.constant, claims.latency};
	struct finding *finding = &judged->finding;
	judged->symptom = SYMPTOM_NONE;
	finding->score = judged->rule->notable ? LOW_SCORE * clamp01(evidence) : 0;
	finding->explained_ms = (double)NAN;
	for (enum symptom symptom = 0; symptom < SYMPTOMS; symptom++) {
		double excess = view->excess[symptom];
		if (!(excess > 0 && ms[symptom] > 0.05 * excess)) { /* else next to nothing */
			continue;
		}
		/* A cause that explains most of a symptom explains it; a tenth is nothing. */
		double score =
			clamp01(evidence) * (0.3 + 0.7 * clamp01(ms[symptom] / excess / 0.6));
		score *= symptom == SYMPTOM_CONSTANT && view->slow_only ? SLOW_ONLY_SCORE : 1;
		if (score > finding->score) {
			finding->score = score;
			judged->symptom = symptom;
			finding->explained_ms = symptom == SYMPTOM_LATENCY
							? (double)NAN
							: fmin(ms[symptom], excess);
		}
	}
}
