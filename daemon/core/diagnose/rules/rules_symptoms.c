/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_symptoms.c: finds what is wrong with the frames before any rule asks why, and scores what a
 * rule explains of it. Sensors alone are never a symptom.
 */
#include <string.h>

#include "daemon/core/diagnose/rules/rules_private.h"

#define SLOWER 1.10	  /* of usual */
#define BELOW 1.05	  /* of the target: a camera's own rate is a little off its nominal one */
#define SLOW_MS 100.0	  /* a frame, where nothing says what is wanted */
#define JITTER_COST 0.015 /* of the median frame */
#define NOW_AND_THEN 0.34 /* of frames; more are how it works: models in turns, batches */
#define REGULAR 0.35	  /* interquartile range of distances / median: by chance it is 1.6 */
#define SLOW_ONLY_SCORE 0.65 /* at most medium */
#define STARVED 0.5	     /* of a frame is a wait for a processor */
#define OWN_SHARE 0.6	     /* of all growth, or OWN_TIMES of the others' */
#define OWN_TIMES 3.0
#define LOW_SCORE 0.3 /* at most, without a symptom */

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

bool flickers(const struct fact_series *series)
{
	struct fact mean = series->mean;
	return mean.now > mean.usual ? series->least <= mean.usual : series->most >= mean.usual;
}

double together_with(const struct view *view, enum fact_metric metric, double sign)
{
	double match = sign * view->facts->metric[metric].frames_match;
	return isnan(match) ? 0.8 : 0.4 + 0.6 * clamp01(match / 0.5);
}

double agreement(const struct view *view, enum fact_metric metric, double sign)
{
	const struct facts *facts = view->facts;
	const struct fact_series *series = &facts->metric[metric];
	double together = together_with(view, metric, sign),
	       late = facts->since_s - series->first_s;
	/* Segments are wide, and sensors and pressure averages follow late. */
	double near = fmax(0.3 * facts->since_s, fmax(or_zero(facts->span_s) / 16, 10));
	return view->of_throttled || isnan(late) || flickers(series)
		       ? together
		       : together * (late > near	   ? 0.4
					    : late < -near ? 0.6
							   : 1);
}

/* A correlation below 0.2 may be by chance. */
double tie(const struct view *view, enum fact_metric metric)
{
	return clamp01((view->facts->metric[metric].frames_match - 0.2) / 0.3);
}

/* By four standard errors of the two medians, 1.25 sigma / sqrt(n), if these are known. */
bool is_taxed(const struct facts *facts)
{
	const struct fact_scatter *on = &facts->throttled, *off = &facts->unthrottled;
	double usual = facts->unthrottled_ms,
	       error = 3.7 * hypot(on->iqr_ms / sqrt(fmax(1, on->count)),
				     off->iqr_ms / sqrt(fmax(1, off->count)));
	return facts->throttled_ms - usual >= fmax(error, (error > 0 ? 0.03 : SLOWER - 1) * usual);
}

static bool median_grew(const struct facts *facts)
{
	return facts->frame_p50_ms >= SLOWER * facts->frame_ms.usual;
}

/* Throttled and not throttled in turns: then there is no fast time and no slow one. */
static void find_change(struct view *view)
{
	const struct facts *facts = view->facts;
	double usual = facts->frame_ms.usual, slower = facts->frame_ms.now - usual;
	double sigma = or_zero((facts->frame_p95_ms - facts->frame_p50_ms) / 1.645);
	double spikes = or_zero(facts->slow_share * pow(facts->slow_excess_ms, 2));
	double scatter =
		3 * sqrt((sigma * sigma + spikes) * 2 / fmax(1, (double)facts->frames_now));
	double tax = facts->throttled_ms - facts->unthrottled_ms;
	/* What the mean grew by slow frames, which may be new, is jitter. */
	slower -= median_grew(facts) ? 0 : 2 * view->excess[SYMPTOM_JITTER];
	/* Frames come as usual and end later, beyond their deadline. */
	double work = facts->busy_ms.usual, longer = change_of(facts->busy_ms);
	view->overdue = facts->miss_percent.now >= MISSES && slower < (SLOWER - 1) * usual &&
			longer >= (SLOWER - 1) * work;
	slower = view->overdue ? longer : slower;
	usual = view->overdue ? work : usual;
	if (usual > 0 && slower >= (SLOWER - 1) * usual && slower >= scatter) {
		view->changed = true;
		view->base_ms = facts->frame_ms.usual;
		view->excess[SYMPTOM_CHANGE] = slower;
	} else if (facts->throttled_share >= 0.05 && is_taxed(facts) &&
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
	bool parallel = facts->parallel;
	double p50 = parallel ? facts->latency_p50_ms : facts->frame_p50_ms;
	double p99 = parallel ? facts->latency_p99_ms : facts->frame_p99_ms;
	double excess = facts->slow_excess_ms, cost = facts->slow_share * excess;
	bool still = !(p99 < 1.4 * p50) ||
		     (facts->slow_share < 0.02 && !median_grew(facts) && !facts->warming_up);
	bool apart = excess >= p50 || facts->slow_regularity <= REGULAR ||
		     facts->slow_run_delay_ms >= 0.4 * excess || facts->slow_major_faults >= 1;
	bool seldom = facts->slow_share <= NOW_AND_THEN;
	if (still && apart && seldom && excess >= 0.5 * p50 && cost >= JITTER_COST * p50 &&
		facts->slow_share * (double)facts->frames >= 3) {
		/* Those in flight wait at the same time. */
		view->excess[SYMPTOM_JITTER] = cost * (parallel ? facts->frame_ms.now / p50 : 1);
		view->faint = cost < 0.05 * p50;
		view->base_ms = parallel ? view->base_ms : fmax(p50, view->base_ms - cost);
	}
}

/* How far work is over its deadline at the best times; 0 = not. */
static double over_deadline(
	const struct view *view, struct fact work, struct fact miss_percent, double deadline)
{
	double jitter = view->excess[SYMPTOM_JITTER];
	double took = base_of(view, work) - (view->changed ? 0 : jitter);
	double misses = view->changed ? miss_percent.usual : miss_percent.now;
	double slack = view->changed || jitter > 0 ? 0.9 : 0.6;
	bool misses_it = isnan(misses) ? took > deadline : misses >= MISSES;
	return misses_it && took >= slack * deadline ? fmax(took - 0.9 * deadline, 0.05 * deadline)
						     : 0;
}

static void find_constant(struct view *view)
{
	const struct facts *facts = view->facts;
	bool ids = isfinite(facts->latency_ms.now); /* else the distance of two frames is judged */
	double base = view->base_ms;
	double deadline = over_deadline(view, ids ? facts->latency_ms : facts->frame_ms,
		facts->miss_percent, facts->deadline_ms);
	double target = base > BELOW * facts->target_ms ? base - facts->target_ms : 0;
	double work = base_of(view, facts->busy_ms) - stage_base(view, view->capture);
	double waits = processor_waits(view).constant;
	view->wanted = facts->target_ms > 0 || facts->deadline_ms > 0;
	view->starved = !view->wanted && waits >= STARVED * base;
	view->free = !view->wanted && !view->starved && work >= 0.9 * base;
	view->slow_only = view->free && base >= SLOW_MS && !view->changed;
	double slow = view->starved ? waits : view->slow_only ? base - 0.9 * SLOW_MS : 0;
	view->excess[SYMPTOM_CONSTANT] = fmax(fmax(deadline, target), slow);
	view->missed = deadline > target;
}

static void prefer(
	const struct fact_stage **best, const struct fact_stage *stage, double value, double *most)
{
	*best = value > *most ? stage : *best;
	*most = fmax(*most, or_zero(value));
}

/* Frames are as they should be, but not the stage. */
static void find_late(struct view *view)
{
	const struct facts *facts = view->facts;
	const struct fact_stage *late = NULL;
	double *change = &view->excess[SYMPTOM_CHANGE];
	double *constant = &view->excess[SYMPTOM_CONSTANT];
	double most = 0;
	bool frames = *change > 0 || (*constant > 0 && !view->slow_only);
	for (size_t i = 0; !frames && i < facts->stages && i < FACTS_STAGES; i++) {
		prefer(&late, &facts->stage[i], stage_lateness(&facts->stage[i]), &most);
	}
	if (!late) {
		return;
	}
	double grown = change_of(late->took_ms);
	/* Single executions that miss it are jitter. */
	view->changed = grown >= (SLOWER - 1) * late->took_ms.usual &&
			late->took_ms.now >= 0.9 * late->deadline_ms;
	double over = over_deadline(view, late->took_ms,
		(struct fact){late->miss_percent, (double)NAN}, late->deadline_ms);
	if (view->changed || over > 0) {
		*change = view->changed ? grown : 0;
		*constant = over;
		view->slow_only = false;
		view->late = late;
	}
}

bool on_cpu(const struct fact_stage *stage)
{
	return !stage->unit[0] || !strstr("gpu dla npu edgetpu tpu", stage->unit);
}

/* Growth of the stage beyond what it would be if it grew as the others on its unit did at most. */
static double own_growth(const struct view *view, const struct fact_stage *stage)
{
	const struct facts *facts = view->facts;
	double others = 0, all = fmax(0, change_of(stage->ms));
	for (size_t i = 0; i < facts->stages && i < FACTS_STAGES; i++) {
		const struct fact_stage *other = &facts->stage[i];
		if (other != stage && other->role != ROLE_CAPTURE) {
			bool counts = other->ms.usual >= 0.03 * facts->busy_ms.usual;
			double times = on_cpu(other) == on_cpu(stage)
					       ? other->ms.now / other->ms.usual
					       : 1;
			others = fmax(others, counts ? times : 0);
			all += fmax(0, change_of(other->ms));
		}
	}
	double own = or_zero(stage->ms.now - fmax(1, others) * stage->ms.usual);
	bool apart = stage->ms.now >= OWN_TIMES * others * stage->ms.usual;
	bool judged = stage->role != ROLE_CAPTURE && others > 0 && view->changed;
	return judged && (apart || own >= OWN_SHARE * all) ? own : 0;
}

static void find_stages(struct view *view)
{
	const struct facts *facts = view->facts;
	double grown = 0, spikes = 0, infer = 0, waits = 0, fallback = 0, all = 0;
	for (size_t i = 0; i < facts->stages && i < FACTS_STAGES; i++) {
		const struct fact_stage *stage = &facts->stage[i];
		double base = stage_base(view, stage);
		view->wait_ms += or_zero(stage->wait_ms);
		view->slowest_ms = fmax(view->slowest_ms, stage->ms.now);
		prefer(&view->waited, stage, stage->wait_ms, &waits);
		prefer(&view->grown, stage, change_of(stage->ms), &grown);
		prefer(&view->own, stage, own_growth(view, stage), &view->own_ms);
		prefer(&view->spiky, stage, stage->excess_ms, &spikes);
		prefer(&view->infer, stage, stage->role == ROLE_INFER ? base : 0, &infer);
		prefer(&view->fallback, stage, stage->cpu_fallback ? stage->ms.now : 0, &fallback);
		double share = stage->role != ROLE_CAPTURE ? share_of_base(view, stage) : 0;
		view->work_ms += stage->role != ROLE_CAPTURE ? base : 0;
		all += stage->role != ROLE_CAPTURE ? fmax(0, change_of(stage->ms)) : 0;
		prefer(&view->dominant, stage, share, &view->dominance);
	}
	if (view->late) {
		view->dominant = view->grown = view->late;
		view->dominance = share_of_base(view, view->late);
		view->infer = view->late->role == ROLE_INFER ? view->late : NULL;
	}
	struct fact camera = view->capture ? view->capture->ms : (struct fact){NAN, NAN};
	double period = 0.97 * facts->frame_ms.usual;
	view->aligned = view->changed && !view->pipelined &&
			facts->busy_ms.now - camera.now >= period &&
			facts->busy_ms.usual - camera.usual < period &&
			!(camera.now > facts->frame_ms.usual);
	double captured = view->aligned ? 0 : fmax(0, change_of(camera));
	view->compute = fmax(0, view->excess[SYMPTOM_CHANGE] - captured - view->waits_ms);
	/* Of what was measured to be a wait it is none; slack took the same part of all growth. */
	view->own_ms = fmax(0, view->own_ms - view->waits_ms) * clamp01(view->compute / all);
	view->own = view->own_ms > 0 ? view->own : NULL;
	bool unit = view->own && view->own->role == ROLE_INFER; /* may have a clock of its own */
	view->shared = fmax(0, view->compute - (unit ? 0 : view->own_ms));
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
	for (size_t i = 0; i < facts->stages && i < FACTS_STAGES; i++) {
		bool captures = facts->stage[i].role == ROLE_CAPTURE;
		view->capture = captures ? &facts->stage[i] : view->capture;
	}
	struct fact stopped = metric_of(view, FACT_APP_STOPPED);
	view->stopped = stopped.now > 0 ||
			(stopped.now == 0 && facts->metric[FACT_APP_STOPPED].frames_match > 0.1);
	double io_percent = fmax(0, change_of(metric_of(view, FACT_APP_IODELAY)));
	view->io_ms = or_zero(io_percent / 100 * facts->frame_ms.now);
	view->stopped_ms = or_zero(fmax(0, growth_of(stopped)) * facts->frame_ms.now);
	view->waits_ms = view->run_delay + view->io_ms + view->stopped_ms;
	find_jitter(view);
	find_change(view);
	find_constant(view);
	find_late(view);
	find_stages(view);
}

struct claims pressed(
	const struct view *view, enum fact_metric metric, double least, struct claims most)
{
	struct fact pressure = metric_of(view, metric);
	double grown = growth_of(pressure), ms = 2 * view->facts->frame_ms.now / 100;
	bool there = pressure.now >= least, rose = there && grown >= fmin(least, 10);
	double always = there ? ms * pressure.now : 0, half = 0.5 * view->excess[SYMPTOM_CONSTANT];
	return (struct claims){
		.change = rose ? agreement(view, metric, 1) * fmin(most.change, ms * grown) : 0,
		.jitter = fmin(most.jitter, always),
		.constant = view->changed ? 0 : fmin(half, always)};
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

void take_best(struct judged *judged)
{
	struct finding *finding = &judged->finding;
	judged->symptom = SYMPTOM_NONE;
	for (enum symptom symptom = 0; symptom < SYMPTOMS; symptom++) {
		if (judged->score[symptom] > judged->score[judged->symptom]) {
			judged->symptom = symptom;
		}
	}
	finding->score = judged->score[judged->symptom];
	finding->explained_ms =
		judged->symptom < SYMPTOM_LATENCY ? judged->ms[judged->symptom] : (double)NAN;
}

void judge(const struct view *view, struct judged *judged, double evidence, struct claims claims)
{
	const double ms[SYMPTOMS] = {claims.change, claims.jitter, claims.constant, claims.latency};
	double largest = fmax(fmax(view->excess[0], view->excess[1]), view->excess[2]);
	judged->score[SYMPTOM_NONE] = judged->rule->notable ? LOW_SCORE * clamp01(evidence) : 0;
	for (enum symptom symptom = 0; symptom < SYMPTOMS; symptom++) {
		double excess = view->excess[symptom];
		bool some = excess > 0 && ms[symptom] > 0.05 * excess; /* else next to nothing */
		/* A cause that explains most of a symptom explains it; a tenth is nothing. */
		double score =
			clamp01(evidence) * (0.3 + 0.7 * clamp01(ms[symptom] / excess / 0.6));
		score *= symptom == SYMPTOM_CONSTANT && view->slow_only ? SLOW_ONLY_SCORE : 1;
		score *= 0.92 + 0.08 * clamp01(excess / largest);
		judged->ms[symptom] = some ? fmin(ms[symptom], excess) : 0;
		judged->score[symptom] = some ? score : 0;
	}
	take_best(judged);
}
