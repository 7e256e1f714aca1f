/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_memory.c: judges memory and storage: a leak of the app itself, pressure that is felt
 * whoever causes it, and waits for storage. A leak of another process is pressure at most.
 */
#include "daemon/core/diagnose/rules/rules_private.h"

#define MIB (1024.0 * 1024)
#define PAGE_BYTES 4096.0
#define LEAK_BYTES (2 * MIB)
#define LEAK_SHARE 0.01	      /* of the resident memory */
#define CERTAIN_SECONDS 300.0 /* of history, or caches that fill look like one */
#define LEAK_SECONDS 30.0     /* of history, or a start looks like a leak */

static bool swaps(const struct view *view)
{
	return growth_of(metric_of(view, FACT_SWAP_USED)) >= 4 * MIB;
}

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
		    rss->slope_low * facts->span_s >= fmax(LEAK_BYTES, LEAK_SHARE * mean.now))) {
		return;
	}
	double score = left < 600 ? 0.93 : left < 3600 ? 0.88 : left < 86400 ? 0.8 : 0.72;
	/* A slope that may be almost nothing is not certain; below three sigma it is chance. */
	score *= rss->slope_low < 0.35 * rss->slope ? 0.4 : 1;
	score *= 0.8 + 0.2 * clamp01(2 * rss->slope_low / rss->slope);
	score *= facts->warming_up ? 0.6 : 1;
	bool level = levelled_off(facts, rss) && !swaps(view); /* what is swapped was resident */
	score *= level || facts->span_s < LEAK_SECONDS ? 0.4 : 1;
	judged->score[SYMPTOM_NONE] = facts->span_s < CERTAIN_SECONDS ? fmin(score, 0.69) : score;
	take_best(judged);
	struct text symptom = TEXT_IN(judged->finding.symptom);
	text_add(&symptom, "the app's memory grew by %s in %s", byte_word(growth).text,
		duration(facts->span_s).text);
	text_add(&judged->text, "resident memory grows by %s/min (at least %s), now about %s",
		byte_word(60 * rss->slope).text, byte_word(60 * rss->slope_low).text,
		byte_word(fmax(mean.now, rss->most)).text);
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

/* Pressure is the machine's: what of the app does not wait for a processor may wait for this. */
static struct claims all_but_queued(const struct view *view)
{
	const struct facts *facts = view->facts;
	double not_queued = 1 - clamp01(facts->slow_run_delay_ms / facts->slow_excess_ms);
	return (struct claims){.change = fmax(0, view->excess[SYMPTOM_CHANGE] - view->run_delay),
		.jitter = not_queued * view->excess[SYMPTOM_JITTER]};
}

void rule_memory_pressure(const struct view *view, struct judged *judged)
{
	const struct fact_process *largest = &view->facts->largest;
	struct fact pressure = metric_of(view, FACT_PRESSURE_MEMORY);
	double percent = metric_of(view, FACT_MEMORY_PERCENT).now;
	double major = metric_of(view, FACT_APP_MAJOR_FAULTS).now;
	struct fact minor = metric_of(view, FACT_APP_MINOR_FAULTS);
	bool low = percent >= 85 || swaps(view);
	bool felt = pressure.now >= 2, faults = faults_grew(view);
	struct claims most = all_but_queued(view),
		      claims = pressed(view, FACT_PRESSURE_MEMORY, 2, most);
	double evidence = felt ? 0.75 + (low ? 0.12 : 0) + (faults ? 0.1 : 0) : low ? 0.5 : 0;
	if (isnan(pressure.now) && low &&
		(faults || (swaps(view) && percent >= 90 && isnan(major)))) {
		evidence = 0.72;
		most.change *= faults ? 1 : agreement(view, FACT_SWAP_USED, 1);
		claims = most;
	}
	/* Who has no page to wait for waits for something else. */
	evidence *= major < 0.5 && !faults && !(minor.now >= 2 * minor.usual + 50) ? 0.1 : 1;
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
	struct fact delay = metric_of(view, FACT_APP_IODELAY);
	bool known = isfinite(metric_of(view, FACT_PRESSURE_IO).now);
	enum fact_metric metric = known ? FACT_PRESSURE_IO : FACT_CPU_IOWAIT;
	double busy = metric_of(view, metric).now, least = known ? 4 : 10;
	double own = metric_of(view, FACT_APP_READ).now + metric_of(view, FACT_APP_WRITE).now +
		     PAGE_BYTES * metric_of(view, FACT_APP_MAJOR_FAULTS).now;
	bool computes = facts->slow_cpu_ms >= 0.5 * facts->slow_excess_ms;
	double wait = delay.now / 100 * facts->frame_ms.now;
	double evidence = !(busy >= least) ? 0 : faults_grew(view) ? 0.88 : 0.78;
	/* A stage that computes all the time does not wait for storage. */
	evidence *= view->grown && view->grown->cpu_ratio > 0.8 ? 0.4 : 1;
	evidence *= own < PAGE_BYTES ? 0.1 : 1; /* a second; it is what others do */
	struct claims claims = pressed(view, metric, least, all_but_queued(view));
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
	say(judged, known ? ": processes wait for it in " : ": processors wait for it in ", busy,
		" % of the time");
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
