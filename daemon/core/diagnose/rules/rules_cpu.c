/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_cpu.c: judges who got the processor: another process, other threads of the app, a quota,
 * the profiler, or nobody, because the app paused or was stopped. The wait for a processor that the
 * kernel measured for the app's thread comes first; pressure and load show it only indirectly.
 */
#include <string.h>

#include "daemon/core/diagnose/rules/rules_private.h"

#define HOG_PERCENT 25.0 /* of one core */
#define LOW_PRIORITY 5	 /* nice */
#define EVENT_MS 0.001	 /* at most, to record an event with its context */
#define MANY_FAULTS 30.0 /* of a slow frame: memory that an allocator returned and got again */

/* What the wait for a processor explains. */
static struct claims waits_of(const struct view *view)
{
	const struct facts *facts = view->facts;
	struct fact delay = facts->run_delay_ms, percent = metric_of(view, FACT_APP_RUN_DELAY);
	struct claims claims = {.change = view->changed ? growth_of(delay) : 0,
		.jitter = or_zero(facts->slow_share * facts->slow_run_delay_ms),
		.constant = view->changed ? delay.usual : delay.now};
	if (isnan(delay.now)) {
		/* Of all threads, whichever the frame waits for; for one, if there is no other. */
		double wait = growth_of(percent) / 100 * facts->frame_ms.now;
		double always = (view->changed ? percent.usual : percent.now) / 100 * view->base_ms;
		bool alone = metric_of(view, FACT_APP_THREADS).now < 1.5;
		claims.change = fmin(wait, view->compute);
		claims.constant = alone ? or_zero(always) : view->changed ? 0 : wait;
	}
	return claims;
}

/* Measured, and it explains next to nothing. */
static bool waits_little(const struct view *view, const struct claims *waits)
{
	return isfinite(view->facts->run_delay_ms.now) && !explains(view, waits);
}

/* The busiest other process; but one that was busy before frames became slower made nothing slower,
 * if another has become busy since. Passes over processes are 5 s apart. */
static const struct fact_process *busiest(const struct view *view)
{
	const struct facts *facts = view->facts;
	double since = facts->since_s + fmax(10, 0.3 * facts->since_s);
	for (size_t i = 0; view->changed && i < FACTS_PROCESSES; i++) {
		const struct fact_process *process = &facts->process[i];
		if (process->cpu_percent >= HOG_PERCENT && process->busy_s <= since) {
			return process;
		}
	}
	return facts->process;
}

/* CPU percent of it, or of several where each gets little; 0 if they are not busy. */
static double hog_of(const struct view *view)
{
	const struct fact_process *hog = busiest(view);
	double all = 0;
	for (size_t i = 0; i < FACTS_PROCESSES; i++) {
		all += or_zero(view->facts->process[i].cpu_percent);
	}
	return !hog->name[0]			 ? 0
	       : hog->cpu_percent >= HOG_PERCENT ? hog->cpu_percent
	       : all >= 2 * HOG_PERCENT		 ? all
						 : 0;
}

static bool low_priority(const struct facts *facts)
{
	return facts->nice >= LOW_PRIORITY || strcmp(facts->policy, "SCHED_IDLE") == 0 ||
	       strcmp(facts->policy, "SCHED_BATCH") == 0;
}

/* Without a measured wait: what computes got slower when the processors became busy. */
static struct claims by_pressure(const struct view *view)
{
	struct fact pressure = metric_of(view, FACT_PRESSURE_CPU), cpu = metric_of(view, FACT_CPU);
	bool by_load = isnan(pressure.now);
	bool busy = by_load ? cpu.now >= 90 : pressure.now >= 15;
	bool rose = by_load ? busy && growth_of(cpu) >= 10 : growth_of(pressure) >= 10;
	double match = agreement(view, by_load ? FACT_CPU : FACT_PRESSURE_CPU, 1);
	return (struct claims){.change = rose ? match * (view->compute + view->run_delay) : 0,
		.jitter = busy ? 0.6 * view->excess[SYMPTOM_JITTER] : 0,
		.constant = busy && !view->changed ? 0.5 * view->excess[SYMPTOM_CONSTANT] : 0};
}

void rule_cpu_contention(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	struct claims waits = waits_of(view);
	bool little = waits_little(view, &waits);
	double hog = hog_of(view);
	if (hog <= 0) {
		return;
	}
	judge(view, judged, (hog >= 50 ? 0.95 : 0.8) * (low_priority(facts) ? 0.8 : 1), waits);
	if (little || judged->symptom == SYMPTOM_NONE) {
		judge(view, judged,
			(isfinite(facts->run_delay_ms.now) ? 0.5 : 0.82) * clamp01(hog / 60),
			by_pressure(view));
	}
	bool jitter = judged->symptom == SYMPTOM_JITTER;
	say_process(judged, busiest(view),
		hog > busiest(view)->cpu_percent ? " and others use " : " uses ");
	say(judged, "", hog, " % of a core");
	say(judged, "; the app waits ", jitter ? facts->slow_run_delay_ms : facts->run_delay_ms.now,
		jitter ? " ms of a slow frame for a processor" : " ms of a frame for a processor");
}

/* Threads of the app wait for a processor, and the frame waits for them. */
static bool is_inverted(const struct view *view, bool little)
{
	const struct facts *facts = view->facts;
	bool privileged = facts->nice < 0 || strcmp(facts->policy, "SCHED_FIFO") == 0 ||
			  strcmp(facts->policy, "SCHED_RR") == 0;
	return little && growth_of(metric_of(view, FACT_APP_RUN_DELAY)) >= 10 &&
	       (privileged || hog_of(view) <= 0);
}

static void judge_quota(const struct view *view, struct judged *judged, struct claims claims)
{
	const struct facts *facts = view->facts;
	double held_ms = facts->quota_throttled * facts->frame_ms.now;
	bool computes = facts->slow_cpu_ms > 0.5 * facts->slow_excess_ms;
	claims.change = fmax(claims.change, held_ms);
	claims.jitter = fmax(claims.jitter, computes ? 0 : held_ms);
	claims.constant = fmax(claims.constant, held_ms);
	judge(view, judged, 0.96, claims);
	text_add(&judged->text, "its CPU quota");
	say(judged, " of ", facts->quota_percent, " % of a core");
	say(judged, " holds the app back in ", 100 * facts->quota_throttled, " % of the time");
}

void rule_scheduling(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	struct claims waits = waits_of(view);
	double cores = isfinite(facts->cpus_allowed) ? facts->cpus_allowed : facts->cpus;
	double threads = metric_of(view, FACT_APP_THREADS).now;
	if (facts->quota_throttled >= 0.02) {
		judge_quota(view, judged, waits);
	} else if (low_priority(facts)) {
		judge(view, judged, 0.96, waits);
		text_add(&judged->text,
			"the app runs at low priority (nice %d, %s) and waits for others",
			facts->nice, facts->policy[0] ? facts->policy : "policy unknown");
	} else if (is_inverted(view, waits_little(view, &waits))) {
		waits.change = view->compute;
		waits.jitter = view->excess[SYMPTOM_JITTER];
		judge(view, judged, 0.88, waits);
		text_add(&judged->text, "frames wait for threads of the app that get no processor "
					"(priority inversion)");
	} else {
		judge(view, judged, hog_of(view) > 0 ? 0.3 : 0.87, waits);
		if (threads > cores && metric_of(view, FACT_APP_CPU).now >= 80 * cores) {
			text_add(&judged->text,
				"%.0f threads of the app compete for %.0f processors", threads,
				cores);
			return;
		}
		bool jitter = judged->symptom == SYMPTOM_JITTER;
		text_add(&judged->text, "the app waits for a processor");
		say(judged, ", ", jitter ? facts->slow_run_delay_ms : facts->run_delay_ms.now,
			jitter ? " ms of a slow frame" : " ms of a frame");
	}
}

/* What of the slow frames nothing measured explains, and no stall of the camera. */
static struct claims pause_claims(const struct view *view)
{
	const struct facts *facts = view->facts;
	double share = 1 - clamp01(facts->slow_run_delay_ms / facts->slow_excess_ms);
	bool camera = view->capture && view->capture == view->spiky;
	share *= camera && facts->slow_stages < 2 ? 0.2 : 1;
	share *= facts->quota_throttled >= 0.02 || facts->slow_major_faults >= 1 ? 0.4 : 1;
	return (struct claims){.jitter = share * view->excess[SYMPTOM_JITTER]};
}

/* 1: the app's CPU time went on in the slow frames, 0: it stood still, NAN: not measured. */
static double pause_cpu(const struct view *view)
{
	struct fact cpu = metric_of(view, FACT_APP_CPU);
	double ratio = view->facts->slow_cpu_ms / view->facts->slow_excess_ms;
	return isfinite(ratio)		    ? (ratio >= 0.5	    ? 1
						      : ratio < 0.3 ? 0
								    : 0.5)
	       : cpu.now < 0.9 * cpu.usual  ? 0.3
	       : cpu.now > 1.02 * cpu.usual ? 0.8
					    : (double)NAN;
}

static bool long_pauses(const struct facts *facts)
{
	return facts->slow_excess_ms > 5 * facts->frame_p50_ms;
}

void rule_pauses(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	double cpu = pause_cpu(view), evidence = 0.1 + 0.6 * cpu;
	bool faults = facts->slow_minor_faults >= MANY_FAULTS;
	if (isnan(cpu)) {
		evidence = long_pauses(facts) ? 0.5 : 0.62;
	}
	if (!(cpu < 0.5)) {
		evidence += facts->slow_regularity <= 0.35 ? 0.1 : 0;
		evidence += facts->slow_stages >= 2 ? 0.1 : 0;
	}
	judge(view, judged, fmin(0.95, evidence + (faults ? 0.25 : 0)), pause_claims(view));
	say(judged, "the app pauses for ", facts->slow_excess_ms, " ms");
	say(judged, " every ", facts->slow_period_frames, " frames");
	say(judged, " with ", faults ? facts->slow_minor_faults : (double)NAN, " page faults");
	text_add(&judged->text, ": allocator or garbage collector");
}

/* No frame at the end of a span that had no pause before. */
static bool ended(const struct facts *facts)
{
	double before_ms = 1000 * (facts->span_s - facts->since_s);
	bool late = 1000 * facts->since_s >= 5 * facts->frame_ms.usual;
	return facts->frames_now == 0 && late &&
	       (double)facts->frames * facts->frame_ms.usual >= 0.9 * before_ms;
}

void rule_stopped(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	if (ended(facts)) {
		/* Where nobody wants a rate, an app may have nothing to do. */
		bool wanted = facts->target_ms > 0 || facts->deadline_ms > 0;
		judged->finding.score = wanted ? 0.65 : 0.35;
		struct text symptom = TEXT_IN(judged->finding.symptom);
		text_add(&symptom, "no frames for %s", duration(facts->since_s).text);
		text_add(&judged->text, "the app runs, but %s", judged->finding.symptom);
		return;
	}
	double cpu = pause_cpu(view);
	bool all = facts->slow_stages >= 2 || facts->stages <= 1;
	double evidence = (all ? 0.92 : 0.6) * (1 - cpu);
	if (isnan(cpu)) {
		evidence = long_pauses(facts) ? 0.65 : 0.5;
	}
	evidence -= facts->slow_minor_faults >= MANY_FAULTS ? 0.25 : 0;
	judge(view, judged, evidence, pause_claims(view));
	say(judged, "the app stands still for ", facts->slow_excess_ms,
		" ms, as if it were stopped");
	say(judged, ", and waits for a processor in ", facts->slow_run_delay_ms, " ms of that");
}

void rule_profiler_overhead(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	double own = or_zero(metric_of(view, FACT_DAEMON_CPU).now), hog = hog_of(view);
	double cost = or_zero(facts->event_rate * facts->frame_ms.now / 1000 * EVENT_MS);
	bool busy = own >= 15 && !(metric_of(view, FACT_CPU).now < 70);
	bool costly = cost >= 0.03 * facts->frame_ms.now;
	double share = busy ? own / (own + hog) : 0;
	struct claims waits = waits_of(view);
	cost = costly ? cost : 0;
	waits.change = or_zero(share * waits.change) + cost;
	waits.jitter = or_zero(share * waits.jitter) + cost;
	waits.constant = or_zero(share * waits.constant) + cost;
	judge(view, judged, busy && own > hog ? 0.92 : costly ? 0.85 : busy ? 0.6 : 0, waits);
	say(judged, "the profiler records ", facts->event_rate, " events/s");
	say(judged, " and its daemon uses ", own, " % of a core");
}
