/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_memory.c: judges memory and storage: a leak of the app itself, pressure that is felt
 * whoever causes it, and waits for storage. A leak of another process is pressure at most.
 */
#include "daemon/core/diagnose/rules/rules_private.h"

#define MIB (1024.0 * 1024)
#define LEAK_BYTES (2 * MIB)
#define LEAK_SHARE 0.01	  /* of the resident memory */
#define LEAK_SECONDS 30.0 /* of history, or a start looks like a leak */

/* Grew, but not any longer: what now shows of the slope. */
static bool levelled_off(const struct facts *facts, const struct fact_series *rss)
{
	double expected = rss->slope * (double)facts->frames_now * facts->frame_ms.now / 1000;
	return expected >= MIB / 2 && rss->most - rss->least < 0.5 * expected;
}

void rule_memory_leak(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	const struct fact_series *rss = &facts->metric[FACT_APP_RSS];
	struct fact mean = metric_of(view, FACT_APP_RSS);
	double growth = or_zero(rss->slope * facts->span_s); /* a start that settled is none */
	double left = metric_of(view, FACT_MEMORY_AVAILABLE).now / rss->slope;
	if (!(mean.now > 0 && rss->slope > 0 && rss->slope_low > 0 &&
		    growth >= fmax(LEAK_BYTES, LEAK_SHARE * mean.now))) {
		return;
	}
	double score = left < 600 ? 0.93 : left < 3600 ? 0.88 : left < 86400 ? 0.8 : 0.72;
	/* A slope that may be almost nothing is not certain; below three sigma it is chance. */
	score *= rss->slope_low < 0.35 * rss->slope ? 0.4 : 1;
	score *= 0.8 + 0.2 * clamp01(2 * rss->slope_low / rss->slope);
	score *= facts->warming_up ? 0.6 : 1;
	score *= levelled_off(facts, rss) || facts->span_s < LEAK_SECONDS ? 0.4 : 1;
	judged->finding.score = score;
	struct text symptom = TEXT_IN(judged->finding.symptom);
	text_add(&symptom, "the app's memory grew by %s in %s", byte_word(growth).text,
		duration(facts->span_s).text);
	text_add(&judged->text, "resident memory grows by %s/min (at least %s), now %s",
		byte_word(60 * rss->slope).text, byte_word(60 * rss->slope_low).text,
		byte_word(mean.now).text);
	if (isfinite(left)) {
		text_add(&judged->text, "; memory is exhausted in %s", duration(left).text);
	}
}

/* Pages come back from storage more often than usual. */
static bool faults_grew(const struct view *view)
{
	struct fact app = metric_of(view, FACT_APP_MAJOR_FAULTS), frame = view->facts->major_faults;
	return (app.now >= 2 && app.now >= 2 * or_zero(app.usual)) ||
	       (frame.now >= 0.1 && frame.now >= 2 * or_zero(frame.usual)) ||
	       view->facts->slow_major_faults >= 1;
}

/* Of a pressure average that rose, or that is there at all times. */
static struct claims pressure_claims(const struct view *view, enum fact_metric metric, double least)
{
	const struct facts *facts = view->facts;
	struct fact pressure = metric_of(view, metric);
	double slower = fmax(0, view->excess[SYMPTOM_CHANGE] - view->run_delay);
	double not_queued = 1 - clamp01(facts->slow_run_delay_ms / facts->slow_excess_ms);
	bool rose = growth_of(pressure) >= least, there = pressure.now >= least;
	return (struct claims){.change = rose ? agreement(view, metric, 1) * slower : 0,
		.jitter = there ? not_queued * view->excess[SYMPTOM_JITTER] : 0,
		.constant = there && !view->changed ? 0.5 * view->excess[SYMPTOM_CONSTANT] : 0};
}

void rule_memory_pressure(const struct view *view, struct judged *judged)
{
	const struct fact_process *largest = &view->facts->largest;
	struct fact pressure = metric_of(view, FACT_PRESSURE_MEMORY);
	double percent = metric_of(view, FACT_MEMORY_PERCENT).now;
	bool low = percent >= 85 || growth_of(metric_of(view, FACT_SWAP_USED)) >= 4 * MIB;
	bool felt = pressure.now >= 2, faults = faults_grew(view);
	struct claims claims = pressure_claims(view, FACT_PRESSURE_MEMORY, 2);
	double evidence = felt ? 0.75 + (low ? 0.12 : 0) + (faults ? 0.1 : 0) : low ? 0.5 : 0;
	if (isnan(pressure.now) && low && faults) {
		evidence = 0.72;
		claims = (struct claims){.change = view->excess[SYMPTOM_CHANGE] - view->run_delay,
			.jitter = view->excess[SYMPTOM_JITTER]};
	}
	judge(view, judged, evidence, claims);
	text_add(&judged->text, "memory is short");
	say(judged, ", ", percent, " % used");
	say(judged, ", processes wait for it in ", pressure.now, " % of the time");
	if (largest->name[0] && largest->rss_bytes > or_zero(metric_of(view, FACT_APP_RSS).now)) {
		text_add(&judged->text, "; ");
		say_process(judged, largest, " holds ");
		text_add(&judged->text, "%s", byte_word(largest->rss_bytes).text);
	}
}

void rule_io_stall(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	struct fact delay = metric_of(view, FACT_APP_IODELAY),
		    pressure = metric_of(view, FACT_PRESSURE_IO);
	bool computes = facts->slow_cpu_ms >= 0.5 * facts->slow_excess_ms;
	double wait = delay.now / 100 * facts->frame_ms.now;
	double evidence = !(pressure.now >= 4) ? 0 : faults_grew(view) ? 0.88 : 0.78;
	/* A stage that computes all the time does not wait for storage. */
	evidence *= view->grown && view->grown->cpu_ratio > 0.8 ? 0.4 : 1;
	struct claims claims = pressure_claims(view, FACT_PRESSURE_IO, 4);
	struct claims direct = {.change = isnan(delay.usual) ? wait : view->io_ms,
		.jitter = wait,
		.constant = view->changed ? 0 : wait};
	if (explains(view, &direct)) {
		evidence = 0.95;
		claims = direct;
	} else if (isfinite(wait)) {
		evidence *= 0.5; /* of the main thread only: another one of the app's may wait */
	}
	claims.jitter *= computes ? 0.2 : 1;
	judge(view, judged, evidence, claims);
	text_add(&judged->text, "storage is busy");
	say(judged, ": processes wait for it in ", pressure.now, " % of the time");
	say(judged, ", the app ", wait, " ms of a frame");
	for (size_t i = 0; i < FACTS_PROCESSES; i++) {
		const struct fact_process *process = &facts->process[i];
		if (process->name[0] && process->io_bytes >= MIB) {
			text_add(&judged->text, "; ");
			say_process(judged, process, " reads and writes ");
			text_add(&judged->text, "%s/s", byte_word(process->io_bytes).text);
			return;
		}
	}
}
