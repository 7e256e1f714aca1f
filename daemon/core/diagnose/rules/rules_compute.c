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
#define SATURATED 95.0	   /* percent */
#define BUS_SATURATED 85.0 /* percent: a memory bus reaches no more in practice */

/* From the share of a stage: a stage of 40 % may be the one to improve, one of 75 % is. */
static double bound_evidence(double share)
{
	return share < PREPROCESSING ? 0 : 0.95 * (0.55 + 0.45 * clamp01((share - 0.35) / 0.35));
}

static void judge_bound(const struct view *view, struct judged *judged,
	const struct fact_stage *stage, double evidence)
{
	struct claims claims = {.constant = stage_base(view, stage)};
	judge(view, judged, evidence, claims);
	say_share(view, judged, stage);
	say(judged, "it takes ", stage_base(view, stage), " ms");
	say(judged, ", a frame may take ", view->facts->target_ms, " ms");
}

void rule_inference_bound(const struct view *view, struct judged *judged)
{
	double share = share_of_base(view, view->infer);
	bool most = view->infer == view->dominant;
	judge_bound(view, judged, view->infer,
		most		     ? bound_evidence(share)
		: share >= DOMINATES ? 0.8 * bound_evidence(share)
				     : 0);
}

void rule_preprocessing_bound(const struct view *view, struct judged *judged)
{
	const struct fact_stage *stage = view->dominant;
	bool most = stage && stage->role == ROLE_PREPROCESS && view->dominance > PREPROCESSING;
	judge_bound(
		view, judged, stage, most ? fmin(0.95, bound_evidence(view->dominance) + 0.12) : 0);
}

void rule_stage_bound(const struct view *view, struct judged *judged)
{
	const struct fact_stage *stage = view->dominant;
	bool other = stage && stage->role != ROLE_INFER && stage->role != ROLE_PREPROCESS;
	judge_bound(view, judged, stage,
		other && view->dominance >= DOMINATES ? bound_evidence(view->dominance) : 0);
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
	bool reached = view->changed && facts->busy_ms.usual <= facts->deadline_ms;
	bool over = facts->busy_p5_ms > facts->deadline_ms && view->missed && !reached;
	struct claims claims = {.constant = view->excess[SYMPTOM_CONSTANT]};
	judge(view, judged, !over ? 0 : view->dominance >= DOMINATES ? 0.5 : 0.85, claims);
	say(judged, "the fastest frames need ", facts->busy_p5_ms, " ms of work");
	say(judged, ", the deadline is ", facts->deadline_ms, " ms");
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
	const struct fact_stage *capture = view->capture;
	if (!capture) {
		return;
	}
	double evidence = capture->cpu_ratio > 0.7 ? 0.55 : 0.93; /* it waits, or it decodes */
	double share = share_of_base(view, capture),
	       rest = view->base_ms - stage_base(view, capture);
	double jitter_waits = or_zero(facts->slow_share * facts->slow_run_delay_ms) + view->io_ms;
	struct claims claims = {.change = change_of(capture->ms) - view->io_ms - view->run_delay};
	double outside = view->excess[SYMPTOM_CHANGE] - change_of(facts->busy_ms);
	if (view->changed && !view->pipelined && outside > 2 * claims.change && outside > 0) {
		evidence = 0.6; /* the loop waits for its input between frames */
		claims.change = outside - view->io_ms - view->run_delay;
	}
	if (capture == view->spiky) {
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
	say_share(view, judged, capture);
	text_add(&judged->text, "%s waits for frames", capture->name);
	say(judged, ", ", capture->ms.now, " ms each");
	say(judged, ", usually ", capture->ms.usual, " ms");
	say(judged, "; p99 ", judged->symptom == SYMPTOM_JITTER ? capture->p99_ms : (double)NAN,
		" ms");
}
