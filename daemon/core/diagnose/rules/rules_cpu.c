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

struct claims processor_waits(const struct view *view)
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
		claims.change = fmin(wait, view->compute - view->own_ms);
		claims.jitter = tie(view, FACT_APP_RUN_DELAY) * wait;
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

static double all_of(const struct facts *facts)
{
	double all = 0;
	for (size_t i = 0; i < FACTS_PROCESSES; i++) {
		all += or_zero(facts->process[i].cpu_percent);
	}
	return all;
}

/* CPU percent of it, or of several where each gets little; 0 if they are not busy. */
static double hog_of(const struct view *view)
{
	const struct fact_process *hog = busiest(view);
	double all = all_of(view->facts);
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
static struct claims by_load(const struct view *view, enum fact_metric metric, double least)
{
	return pressed(view, metric, least,
		(struct claims){.change = view->compute - view->own_ms + view->run_delay,
			.jitter = tie(view, metric) * view->excess[SYMPTOM_JITTER]});
}

void rule_cpu_contention(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	struct claims waits = processor_waits(view);
	bool little = waits_little(view, &waits);
	bool known = isfinite(metric_of(view, FACT_PRESSURE_CPU).now);
	struct claims load = by_load(view, known ? FACT_PRESSURE_CPU : FACT_CPU, known ? 15 : 90);
	double hog = hog_of(view), measured = isfinite(facts->run_delay_ms.now) ? 0.5 : 0.82;
	judge(view, judged, 0.9, by_load(view, FACT_CPU_STEAL, 10));
	if (judged->symptom != SYMPTOM_NONE) {
		say(judged, "the host of this virtual machine takes ",
			metric_of(view, FACT_CPU_STEAL).now, " % of the processors");
		return;
	}
	if (hog <= 0) {
		judge(view, judged, little ? 0 : 0.7 * measured, load);
		judged->score[SYMPTOM_NONE] = 0;
		take_best(judged);
		text_add(&judged->text, "the processors are busy, but no process stands out");
		return;
	}
	load.constant *= fmax(1, 2 * all_of(facts) / 100 / fmax(1, facts->cpus));
	judge(view, judged, (hog >= 50 ? 0.95 : 0.8) * (low_priority(facts) ? 0.8 : 1), waits);
	if (little || judged->symptom == SYMPTOM_NONE) {
		judge(view, judged, measured * clamp01(hog / 60), load);
	}
	bool jitter = judged->symptom == SYMPTOM_JITTER;
	bool several = hog > busiest(view)->cpu_percent; /* of them, not more than are known */
	say_process(judged, busiest(view), several ? " and others use at least " : " uses ");
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
	struct fact cpu = metric_of(view, FACT_APP_CPU),
		    delay = metric_of(view, FACT_APP_RUN_DELAY);
	bool held = growth_of(delay) >= 10 && cpu.now < 0.9 * cpu.usual &&
		    metric_of(view, FACT_APP_THREADS).now > 1;
	return little && delay.now >= 10 && (privileged || hog_of(view) <= 0 || held);
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
	struct claims waits = processor_waits(view);
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
		struct fact percent = metric_of(view, FACT_APP_RUN_DELAY);
		waits.change = fmin(growth_of(percent) / 100 * facts->frame_ms.now, view->compute);
		waits.jitter = percent.now / 100 * facts->frame_ms.now;
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

/* 1: the app computed in the slow frames, 0: it stood still, NAN: not known. Without CPU times of
 * stages by the CPU time of a mean frame, or by the load in times of many slow frames. */
static double pause_cpu(const struct view *view)
{
	const struct facts *facts = view->facts;
	struct fact cpu = metric_of(view, FACT_APP_CPU), frame = facts->frame_ms;
	double ratio = facts->slow_cpu_ms / facts->slow_excess_ms, cost = change_of(frame);
	double match = facts->metric[FACT_APP_CPU].frames_match;
	if (isnan(ratio) && !view->changed && cost >= 0.3 * view->excess[SYMPTOM_JITTER]) {
		ratio = (cpu.now * frame.now - cpu.usual * frame.usual) / 100 / cost;
	}
	if (isnan(ratio) && fabs(match) >= 0.4) {
		ratio = match > 0;
	}
	return view->stopped ? 0 : isnan(ratio) ? ratio : ratio >= 0.5 ? 1 : ratio < 0.3 ? 0 : 0.5;
}

/* What of the slow frames nothing measured explains. Only one stage that waits has its own reason.
 */
static struct claims pause_claims(const struct view *view)
{
	const struct facts *facts = view->facts;
	double share = 1 - clamp01(facts->slow_run_delay_ms / facts->slow_excess_ms);
	bool one = facts->slow_stages == 1 && facts->stages > 1 && !(pause_cpu(view) >= 1);
	share *= one && !view->stopped && !(facts->slow_minor_faults >= MANY_FAULTS) ? 0.2 : 1;
	share *= facts->quota_throttled >= 0.02 || facts->slow_major_faults >= 1 ? 0.4 : 1;
	return (struct claims){.jitter = share * view->excess[SYMPTOM_JITTER]};
}

void rule_pauses(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	double cpu = pause_cpu(view), evidence = isnan(cpu) ? 0.62 : 0.1 + 0.6 * cpu;
	bool faults = facts->slow_minor_faults >= MANY_FAULTS;
	bool regular = facts->slow_regularity <= 0.35, one = facts->slow_stages == 1;
	if (!(cpu < 0.5)) {
		evidence += (regular ? 0.1 : 0) + (facts->slow_stages >= 2 ? 0.1 : 0);
	}
	evidence = isnan(cpu) && !faults && view->faint ? 0.35 : evidence;
	judge(view, judged, fmin(0.95, evidence + (faults ? 0.25 : 0)), pause_claims(view));
	text_add(
		&judged->text, "%s", one && !faults && view->spiky ? view->spiky->name : "the app");
	say(judged, cpu >= 1 ? " computes " : " pauses for ", facts->slow_excess_ms,
		cpu >= 1 ? " ms longer" : " ms");
	say(judged, " every ", regular ? facts->slow_period_frames : (double)NAN, " frames");
	say(judged, " with ", faults ? facts->slow_minor_faults : (double)NAN, " page faults");
	text_add(&judged->text, "%s",
		faults || (cpu >= 1 && !one) ? ": allocator or garbage collector"
		: regular		     ? ""
					     : " now and then");
}

static bool is_silent(const struct facts *facts)
{
	double period_s = (facts->span_s - facts->silent_s) / (double)facts->frames;
	return facts->silent_s >= fmax(5, 10 * period_s);
}

void rule_stopped(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	if (is_silent(facts)) {
		/* Where nobody wants a rate, an app may have nothing to do. */
		judged->score[SYMPTOM_NONE] = view->stopped ? 0.95 : view->wanted ? 0.65 : 0.35;
		take_best(judged);
		struct text symptom = TEXT_IN(judged->finding.symptom);
		text_add(&symptom, "no frames for %s", duration(facts->silent_s).text);
		text_add(&judged->text, "the app %s %s",
			view->stopped ? "is stopped by a signal or a debugger," : "runs, but",
			judged->finding.symptom);
		return;
	}
	double cpu = pause_cpu(view);
	bool all = facts->slow_stages >= 2 || facts->stages <= 1 || view->stopped;
	double evidence = or_zero((all ? 0.92 : 0.6) * (1 - cpu));
	evidence -= facts->slow_minor_faults >= MANY_FAULTS ? 0.25 : 0;
	struct claims claims = pause_claims(view);
	claims.change = view->stopped_ms;
	judge(view, judged, evidence, claims);
	bool jitter = judged->symptom == SYMPTOM_JITTER;
	text_add(&judged->text, "the app stands still");
	say(judged, " for ", jitter ? facts->slow_excess_ms : (double)NAN, " ms");
	text_add(&judged->text,
		view->stopped ? ", stopped by a signal or a debugger" : ", as if it were stopped");
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
	struct claims waits = processor_waits(view);
	cost = costly ? cost : 0;
	waits.change = or_zero(share * waits.change) + cost;
	waits.jitter = or_zero(share * waits.jitter) + cost;
	waits.constant = or_zero(share * waits.constant) + cost;
	judge(view, judged, busy && own > hog ? 0.92 : costly ? 0.85 : busy ? 0.6 : 0, waits);
	say(judged, "the profiler records ", facts->event_rate, " events/s");
	say(judged, " and its daemon uses ", own, " % of a core");
}
