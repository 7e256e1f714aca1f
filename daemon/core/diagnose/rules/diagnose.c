/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose.c: judges facts by all rules, takes from each finding what a stronger one explains as
 * its consequence, and orders what is left. What no rule explains is said to be unexplained.
 */
#include "daemon/core/diagnose/rules/diagnose.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/core/diagnose/rules/rules_private.h"

#define HIGH 0.7
#define MEDIUM 0.4
#define SHOWN 0.1	       /* less is not worth a line */
#define UNEXPLAINED_SCORE 0.45 /* at most medium: nothing is known */

const char *cause_name(enum cause cause)
{
	static const char *const names[] = {
#define X(name, text) text,
		CAUSES(X)
#undef X
	};
	return names[cause];
}

const char *confidence_name(enum confidence confidence)
{
	static const char *const names[] = {"low", "medium", "high"};
	return names[confidence];
}

enum confidence finding_confidence(const struct finding *finding)
{
	return finding->score >= HIGH	  ? CONFIDENCE_HIGH
	       : finding->score >= MEDIUM ? CONFIDENCE_MEDIUM
					  : CONFIDENCE_LOW;
}

/* By score, equal ones in the order of the table. */
static void sort(struct judged *judged, struct judged **order)
{
	for (size_t i = 0; i < CAUSE_COUNT; i++) {
		size_t at = i;
		for (; at > 0 && order[at - 1]->finding.score < judged[i].finding.score; at--) {
			order[at] = order[at - 1];
		}
		order[at] = &judged[i];
	}
}

/* What a consequence explains of a symptom beyond its cause may be a cause of its own. */
static double overlap_of(const struct view *view, const struct judged *cause,
	const struct judged *other, enum symptom symptom)
{
	if (cause->symptom == SYMPTOM_NONE || symptom >= SYMPTOM_LATENCY) {
		return 1;
	}
	double both = cause->ms[symptom] + other->ms[symptom];
	return clamp01((both - view->excess[symptom]) / other->ms[symptom]);
}

static void explain_away(const struct view *view, struct judged *judged)
{
	struct judged *order[CAUSE_COUNT];
	sort(judged, order);
	for (size_t i = 0; i < CAUSE_COUNT; i++) {
		const struct judged *cause = order[i];
		/* What is only likely does not outrank what is certain. */
		double sure = cause->finding.score * cause->finding.score;
		for (size_t n = 0; cause->finding.score >= MEDIUM && n < CAUSE_COUNT; n++) {
			bool explained = (cause->rule->explains >> n & 1) != 0;
			for (enum symptom k = 0; explained && k <= SYMPTOMS; k++) {
				judged[n].score[k] *=
					1 - 0.9 * sure * overlap_of(view, cause, &judged[n], k);
			}
			take_best(&judged[n]);
		}
	}
}

/* The first symptom of which the rules explain less than half. */
static void judge_unexplained(const struct view *view, struct judged *judged)
{
	static const char *const longer[SYMPTOM_LATENCY] = {[SYMPTOM_CHANGE] = "longer than before",
		[SYMPTOM_JITTER] = "longer on average, because of the slow ones",
		[SYMPTOM_CONSTANT] = "longer than it should"};
	struct judged *own = &judged[CAUSE_UNEXPLAINED];
	double best = 1;
	for (enum symptom symptom = SYMPTOM_LATENCY; symptom-- > 0;) {
		double left = view->excess[symptom];
		for (size_t i = 0; left > 0 && i < CAUSE_UNEXPLAINED; i++) {
			double least = i == CAUSE_CAPTURE_STALL ? SHOWN : MEDIUM; /* on purpose? */
			bool likely = judged[i].score[symptom] >= least;
			left -= likely ? judged[i].ms[symptom] : 0;
			best = likely ? fmin(best, judged[i].finding.score) : best;
		}
		if (left > 0.5 * view->excess[symptom]) {
			own->symptom = symptom;
			own->ms[symptom] = left;
		}
	}
	if (own->symptom == SYMPTOM_NONE) {
		return;
	}
	const struct fact_stage *stage = own->symptom == SYMPTOM_CHANGE ? view->grown : NULL;
	bool faint = own->symptom == SYMPTOM_JITTER && view->faint;
	own->score[own->symptom] = faint ? SHOWN : fmin(UNEXPLAINED_SCORE, best - 0.01);
	take_best(own);
	text_add(&own->text, "%s takes ", stage ? stage->name : "a frame");
	say(own, "", stage ? change_of(stage->ms) : own->finding.explained_ms, " ms ");
	text_add(&own->text, "%s; no metric explains it", longer[own->symptom]);
}

/* Together they explain no more of a symptom than there is. */
static void share_out(const struct view *view, struct judged *judged)
{
	double all[SYMPTOMS + 1] = {0};
	for (size_t i = 0; i < 2 * CAUSE_COUNT; i++) {
		struct judged *one = &judged[i % CAUSE_COUNT];
		enum symptom symptom = one->symptom;
		bool counts = symptom < SYMPTOM_CONSTANT && one->finding.score >= MEDIUM;
		if (counts && i < CAUSE_COUNT) {
			all[symptom] += one->ms[symptom];
		} else if (counts) {
			one->finding.explained_ms *= fmin(1, view->excess[symptom] / all[symptom]);
		}
	}
}

/* What the facts themselves are worth. */
static double certainty_of(const struct facts *facts)
{
	return (facts->frames < 3 * DIAGNOSIS_FRAMES ? 0.8 : 1) * (facts->warming_up ? 0.85 : 1) *
	       (facts->virtual_machine ? 0.95 : 1) * (facts->dropped > 0.05 ? 0.9 : 1);
}

static void judge_all(const struct view *view, struct judged *judged)
{
	for (size_t i = 0; i < CAUSE_COUNT; i++) {
		judged[i].rule = &diagnosis_rules[i];
		judged[i].symptom = SYMPTOM_NONE;
		judged[i].finding.cause = (enum cause)i;
		judged[i].finding.explained_ms = (double)NAN;
		judged[i].text = TEXT_IN(judged[i].finding.text);
		if (judged[i].rule->evaluate) {
			judged[i].rule->evaluate(view, &judged[i]);
		}
	}
	judge_unexplained(view, judged);
	explain_away(view, judged);
	for (size_t i = 0; i < CAUSE_COUNT; i++) {
		bool start = view->facts->warming_up && judged[i].symptom == SYMPTOM_JITTER;
		double score = judged[i].finding.score * certainty_of(view->facts);
		judged[i].finding.score = start ? fmin(score, MEDIUM - 0.01) : score;
	}
	share_out(view, judged);
}

/* The finding that explains most of it; NULL: none is worth a line. */
static const struct finding *most_of_change(struct judged *const *order)
{
	const struct finding *most = NULL;
	for (size_t i = 0; i < CAUSE_COUNT && order[i]->finding.score >= SHOWN; i++) {
		const struct finding *finding = &order[i]->finding;
		bool more = !most || finding->explained_ms > most->explained_ms;
		most = order[i]->symptom == SYMPTOM_CHANGE && more ? finding : most;
	}
	return most;
}

/* slower: what explains that frames became slower, though nothing is wrong; NULL: they did not. */
static void summarize(
	const struct facts *facts, const struct finding *slower, struct diagnosis *ret)
{
	struct text text = TEXT_IN(ret->summary);
	const char *frames = facts->of_stages ? "iterations" : "frames";
	if (ret->state == DIAGNOSIS_TOO_FEW) {
		text_add(&text, "not enough data: %" PRIu64 " %s, at least %d are needed",
			facts->frames, frames, DIAGNOSIS_FRAMES);
	} else if (ret->state == DIAGNOSIS_FINDINGS) {
		text_add(&text, "%s", ret->finding[0].text);
	} else {
		text_add(&text, "nothing wrong");
		if (facts->frame_ms.now > 0) {
			text_add(&text, ": %s %s/s", number(1000 / facts->frame_ms.now).text,
				frames);
		}
		if (slower) {
			text_add(&text, ", %s before; %s",
				number(1000 / facts->frame_ms.usual).text, slower->text);
		}
		if (facts->target_ms > 0) {
			text_add(&text, ", the target is %s", number(1000 / facts->target_ms).text);
		}
		if (facts->unended >= NOTABLE_UNENDED) {
			text_add(
				&text, "; %.0f %% of the frames never ended", 100 * facts->unended);
		}
	}
}

void diagnose(const struct facts *facts, struct diagnosis *ret)
{
	struct judged judged[CAUSE_COUNT], *order[CAUSE_COUNT];
	const struct finding *slower = NULL;
	struct view view;
	memset(judged, 0, sizeof(judged));
	*ret = (struct diagnosis){.state = DIAGNOSIS_TOO_FEW, .t_ns = ret->t_ns};
	if (facts->frames >= DIAGNOSIS_FRAMES) {
		view_init(&view, facts);
		judge_all(&view, judged);
		sort(judged, order);
		ret->state =
			order[0]->finding.score >= MEDIUM ? DIAGNOSIS_FINDINGS : DIAGNOSIS_HEALTHY;
		if (view.changed && !view.overdue && !view.late) {
			slower = most_of_change(order);
		}
		for (; ret->findings < FINDINGS_MAX; ret->findings++) {
			struct judged *found = order[ret->findings];
			struct finding *finding = &found->finding;
			if (finding->score < SHOWN) {
				break;
			}
			memcpy(finding->advice, found->rule->advice, sizeof(finding->advice));
			if (!finding->symptom[0]) {
				write_symptom(&view, found);
			}
			add_metrics(&view, found);
			ret->finding[ret->findings] = *finding;
		}
	}
	summarize(facts, slower, ret);
}
