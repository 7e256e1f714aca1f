/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_compute.c: judges the app's own work: a stage that is too large for the target, a compute
 * unit that fell back to the CPU, a processor or memory bus at its limit, stages out of balance. A
 * loop that waits for its camera is healthy; so is whatever was the same when frames were fast.
 */
#include <string.h>

#include "daemon/core/diagnose/rules/rules_private.h"

#define DOMINATES 0.4	   /* of a frame's work */
#define PREPROCESSING 0.35 /* of a frame's work is too much for preparing it */
#define OWN_GROWTH 0.75	   /* only the other stages speak for it */
#define OWN_SPIKES 0.65
#define SATURATED 95.0	   /* percent */
#define BUS_SATURATED 85.0 /* percent: a memory bus reaches no more in practice */

/* From the share of a stage: a stage of 40 % may be the one to improve, one of 75 % is. */
static double bound_evidence(double share)
{
	return share < PREPROCESSING ? 0 : 0.95 * (0.55 + 0.45 * clamp01((share - 0.35) / 0.35));
}

static enum cause cause_of(const struct fact_stage *stage)
{
	return stage->role == ROLE_INFER	? CAUSE_INFERENCE_BOUND
	       : stage->role == ROLE_PREPROCESS ? CAUSE_PREPROCESSING_BOUND
						: CAUSE_STAGE_BOUND;
}

/* CPU time that the app uses in a frame beyond what it did; NAN: not known. */
static double more_cpu_ms(const struct view *view)
{
	struct fact cpu = metric_of(view, FACT_APP_CPU), frame = view->facts->frame_ms;
	return (cpu.now * frame.now - cpu.usual * frame.usual) / 100;
}

/* How sure the growth of one stage is to be its own: less, where the app computes no more than it
 * did, and so may wait for something that another rule knows. */
static double own_evidence(const struct view *view)
{
	return on_cpu(view->own) && more_cpu_ms(view) < 0.1 * view->own_ms ? 0.8 * OWN_GROWTH
									   : OWN_GROWTH;
}

void rule_bound(const struct view *view, struct judged *judged)
{
	enum cause cause = judged->finding.cause;
	const struct fact_stage *most = view->dominant,
				*stage = cause == CAUSE_INFERENCE_BOUND ? view->infer : most;
	double share = share_of_base(view, stage), evidence = bound_evidence(share);
	if (!stage || cause_of(stage) != cause) {
		evidence = 0;
	} else if (cause == CAUSE_PREPROCESSING_BOUND) {
		evidence = share > PREPROCESSING ? fmin(0.95, evidence + 0.12) : 0;
	} else if (cause == CAUSE_STAGE_BOUND || stage != most) {
		evidence *= share < DOMINATES ? 0 : stage == most ? 1 : 0.8;
	}
	const struct fact_stage *own = view->own, *spiky = view->spiky;
	bool grew = own && cause_of(own) == cause;
	bool spikes = view->facts->slow_stages == 1 && spiky && spiky != view->capture &&
		      cause_of(spiky) == cause;
	struct claims claims = {.change = grew ? view->own_ms : 0,
		.jitter = spikes ? spiky->excess_ms : 0,
		.constant = evidence > 0 ? stage_base(view, stage) : 0};
	evidence *= view->late ? 0.6 : 1;
	judge(view, judged,
		fmax(evidence, grew	? own_evidence(view)
			       : spikes ? OWN_SPIKES
					: 0),
		claims);
	judged->score[SYMPTOM_JITTER] = fmin(judged->score[SYMPTOM_JITTER], OWN_SPIKES);
	take_best(judged);
	if (judged->symptom == SYMPTOM_CHANGE) {
		judged->stage = own;
		text_add(&judged->text, "%s", own->name);
		say(judged, " takes ", own->ms.now, " ms");
		say(judged, ", ", own->ms.usual, " ms before");
		text_add(&judged->text, "; the other stages did not grow so: its %s changed",
			own->role == ROLE_INFER	       ? "model or input"
			: own->role == ROLE_PREPROCESS ? "input"
						       : "work, or what it waits for,");
	} else if (judged->symptom == SYMPTOM_JITTER) {
		judged->stage = spiky;
		text_add(&judged->text, "%s takes longer now and then", spiky->name);
		say(judged, ", ", spiky->p99_ms, " ms of a frame at p99");
	} else {
		say_share(view, judged, stage);
		say(judged, "it takes ", stage_base(view, stage), " ms");
		say(judged, ", a frame may take ", view->facts->target_ms, " ms");
	}
}

void rule_cpu_fallback(const struct view *view, struct judged *judged)
{
	const struct fact_stage *max = view->fallback;
	if (!max) {
		return;
	}
	double share = fmax(share_of_base(view, max), or_zero(max->share));
	struct claims claims = {
		.change = change_of(max->ms), .constant = 0.8 * stage_base(view, max)};
	const char *unit = max->expected_unit[0] ? max->expected_unit : "its unit";
	judge(view, judged, 0.6 + 0.37 * clamp01(share / 0.5), claims);
	say_share(view, judged, max);
	text_add(&judged->text, "%s runs on the CPU instead of %s", max->name, unit);
	add_evidence(judged, "stage/%.40s/%.40s: unit %s, expected %s", view->facts->app, max->name,
		max->unit[0] ? max->unit : "cpu", unit);
}

void rule_deadline_unreachable(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	const struct fact_stage *late = view->late;
	double least = late ? late->least_ms : facts->busy_p5_ms;
	double deadline = late ? late->deadline_ms : facts->deadline_ms;
	bool reached = view->changed && facts->busy_ms.usual <= deadline, over = least > deadline;
	bool bound = view->dominance >= DOMINATES;
	struct claims claims = {.constant = view->excess[SYMPTOM_CONSTANT]};
	double evidence = late ? (over ? 0.92 : 0.7) : bound ? 0.5 : 0.85;
	judge(view, judged, late || (over && view->missed && !reached) ? evidence : 0, claims);
	text_add(&judged->text, "the fastest %s%s", late ? "executions of " : "frames",
		late ? late->name : "");
	say(judged, " need ", least, " ms of work");
	say(judged, ", the deadline is ", deadline, " ms");
}

/* A processor of the inference at its limit: always, or since something else uses it, too. */
void rule_gpu_bound(const struct view *view, struct judged *judged)
{
	const struct fact_stage *infer = view->infer;
	bool gpu = !(metric_of(view, FACT_ENGINE).now > metric_of(view, FACT_GPU).now);
	enum fact_metric metric = gpu ? FACT_GPU : FACT_ENGINE;
	struct fact load = metric_of(view, metric);
	bool full = load.now >= SATURATED && infer && strcmp(infer->unit, "cpu") != 0;
	bool rose = load.usual <= load.now - 10;
	double share = share_of_base(view, infer);
	double always = share >= DOMINATES ? bound_evidence(share) + 0.02 : 0;
	struct claims claims = {.constant = rose ? 0 : stage_base(view, infer)};
	if (full && rose) {
		claims.change =
			agreement(view, metric, 1) * fmin(view->compute, change_of(infer->ms));
	}
	judge(view, judged, !full ? 0 : rose ? 0.85 : always, claims);
	say_share(view, judged, infer);
	text_add(&judged->text, "%.40s is", view->facts->metric[metric].path);
	say(judged, " ", load.now, " %");
}

void rule_memory_bandwidth(const struct view *view, struct judged *judged)
{
	struct fact emc = metric_of(view, FACT_EMC);
	bool full = emc.now >= BUS_SATURATED, rose = emc.usual <= emc.now - 8;
	struct claims claims = {.change = rose ? agreement(view, FACT_EMC, 1) * view->compute : 0,
		.constant = view->excess[SYMPTOM_CONSTANT]};
	judge(view, judged, !full ? 0 : rose ? 0.9 : view->changed ? 0 : 0.55, claims);
	say_share(view, judged, view->grown ? view->grown : view->dominant);
	say(judged, "the memory bus is ", emc.now, " % busy");
}

/* A stage that is slower than the others piles up frames in front of it. */
void rule_queueing(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	const struct fact_stage *waits = view->waited;
	double wait = view->wait_ms;
	double queued = view->excess[SYMPTOM_LATENCY];
	bool balanced = view->slowest_ms < 0.8 * facts->frame_ms.now;
	struct claims claims = {.latency = wait > 0 ? fmin(wait, queued) : queued};
	judge(view, judged, balanced ? 0.6 : 0.96, claims);
	say(judged, "", facts->in_flight, " frames in flight");
	say(judged, "; they wait ", fmax(wait, queued), " ms");
	if (waits) {
		text_add(&judged->text, " for %s", waits->name);
		say(judged, ", which takes ", waits->ms.now, " ms");
		add_evidence(judged, "stage/%.40s/%.40s: %s ms wait before its start", facts->app,
			waits->name, number(waits->wait_ms).text);
	}
}

void rule_capture_stall(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	const struct fact_stage none = {0}, *capture = view->capture ? view->capture : &none;
	const double cpu_ms = more_cpu_ms(view);
	if (capture == &none && isnan(cpu_ms)) {
		return; /* what it does outside of stages may be work */
	}
	double evidence = capture->cpu_ratio > 0.7 ? 0.55 : 0.93; /* it waits, or it decodes */
	bool waits_io = growth_of(metric_of(view, FACT_PRESSURE_IO)) >= 4;
	evidence *= waits_io && strstr(capture->name, "read") ? 0.5 : 1; /* of a file */
	double share = share_of_base(view, capture),
	       rest = view->base_ms - stage_base(view, capture);
	struct fact waits = capture->ms;
	double jitter_waits = or_zero(facts->slow_share * facts->slow_run_delay_ms) + view->io_ms;
	struct claims claims = {
		.change = view->aligned ? 0 : change_of(capture->ms) - view->waits_ms};
	double outside =
		view->excess[SYMPTOM_CHANGE] - change_of(facts->busy_ms) - fmax(0, or_zero(cpu_ms));
	if (view->changed && !view->late && !view->pipelined && outside > 2 * claims.change &&
		outside > 0) {
		evidence = 0.6; /* the loop waits for its input between frames */
		claims.change = outside - view->waits_ms;
		waits = (struct fact){facts->frame_ms.now - facts->busy_ms.now,
			facts->frame_ms.usual - facts->busy_ms.usual};
	}
	/* A camera may be slower on purpose, where nobody says how fast it should be. */
	bool little = claims.change < 0.25 * facts->frame_ms.usual;
	double most = view->wanted || view->late ? 1 : little ? 0.35 : 0.69;
	if (capture == view->spiky && !view->stopped) {
		/* What stops all stages shows most where most of the time is spent. */
		claims.jitter =
			(capture->excess_ms - jitter_waits) * (facts->slow_stages >= 2 ? 0.3 : 1);
	}
	if (rest < 0.95 * facts->target_ms && share >= DOMINATES && !view->pipelined &&
		!view->changed) {
		evidence = fmin(evidence, share >= 0.5 ? 0.78 : 0.6);
		claims.constant = view->excess[SYMPTOM_CONSTANT];
	}
	judge(view, judged, evidence, claims);
	judged->score[SYMPTOM_CHANGE] = fmin(judged->score[SYMPTOM_CHANGE], most);
	take_best(judged);
	say_share(view, judged, view->capture);
	text_add(&judged->text, "%s waits %s", evidence == 0.6 ? "the loop" : capture->name,
		capture == &none ? "outside of stages" : "for frames");
	say(judged, ", ", waits.now, " ms each");
	say(judged, ", usually ", waits.usual, " ms");
	say(judged, "; p99 ", judged->symptom == SYMPTOM_JITTER ? capture->p99_ms : (double)NAN,
		" ms");
}
