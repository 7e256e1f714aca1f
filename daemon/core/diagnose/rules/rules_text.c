/* SPDX-License-Identifier: Apache-2.0 */
/* rules_text.c: writes what a finding says: numbers with their units, how long ago, and the metrics
 * by which a person can check it. What is not known is omitted, never printed as NaN. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/diagnose/rules/rules_private.h"

#define BIT(name) (UINT64_C(1) << FACT_##name)

/* The first row with the metric; a unit of 0 is bytes. */
static const struct {
	double unit;
	const char *suffix;
	uint64_t metrics;
} units[] = {
	{1, " °C", BIT(TEMPERATURE) | BIT(HEADROOM)},
	{0.01, " % of the time",
		BIT(THROTTLE_ACTIVE) | BIT(UNDER_VOLTAGE) | BIT(FREQ_CAPPED) | BIT(THROTTLED) |
			BIT(SOFT_TEMP_LIMIT) | BIT(OVER_CURRENT)},
	{1e6, " MHz", BIT(CPU_FREQUENCY) | BIT(GPU_FREQUENCY)},
	{1, "/s",
		BIT(OVER_CURRENT_RATE) | BIT(APP_INVOLUNTARY) | BIT(APP_MAJOR_FAULTS) |
			BIT(APP_MINOR_FAULTS)},
	{0, "", BIT(MEMORY_AVAILABLE) | BIT(SWAP_USED) | BIT(APP_RSS)},
	{0, "/s", BIT(APP_READ) | BIT(APP_WRITE)},
	{1e3, " W", BIT(POWER)},
	{1, "", BIT(APP_THREADS) | BIT(APP_STOPPED)},
	{1, " %", UINT64_MAX},
};

static struct word word_of(int decimals, double value, const char *unit)
{
	struct word word;
	snprintf(word.text, sizeof(word.text), "%.*f%s", decimals, or_zero(value), unit);
	return word;
}

struct word number(double value)
{
	double size = fabs(or_zero(value));
	return word_of(size < 0.005 || size >= 100 ? 0 : size < 1 ? 2 : 1, value, "");
}

struct text_span duration(double value)
{
	const double step = value < 600 ? 1 : value < 36000 ? 60 : 3600;
	const double known = fmin(fmax(or_zero(value), 0), 1e12);
	return text_span((uint64_t)(round(known / step) * step));
}

struct word byte_word(double value)
{
	static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB"};
	size_t unit = 0;
	for (; fabs(value) >= 1024 && unit < 4; unit++) {
		value /= 1024;
	}
	return word_of(value < 100 && unit > 0, value, names[unit]);
}

void say(struct judged *judged, const char *before, double value, const char *after)
{
	if (isfinite(value)) {
		text_add(&judged->text, "%s%s%s", before, number(value).text, after);
	}
}

void say_share(const struct view *view, struct judged *judged, const struct fact_stage *stage)
{
	double share = share_of_base(view, stage);
	judged->stage = stage;
	if (stage && isfinite(stage->share) && stage->share > 0 && !view->pipelined &&
		!(view->changed && judged->symptom == SYMPTOM_CONSTANT)) {
		share = stage->share;
	}
	if (share > 0 && judged->symptom != SYMPTOM_NONE) {
		text_add(&judged->text, "%.24s %.0f %% of the frame; ", stage->name, 100 * share);
	}
}

void say_since(const struct view *view, struct judged *judged, enum fact_metric metric)
{
	double first = view->facts->metric[metric].first_s, since = view->facts->since_s;
	double seconds = isfinite(first) ? first : since;
	double part = view->facts->metric[metric].mean.now;
	if (flickers(&view->facts->metric[metric]) && part < 1) {
		say(judged, " in ", 100 * part, " % of the time");
	} else if (isfinite(seconds)) {
		text_add(&judged->text, " for %s", duration(seconds).text);
	}
}

void say_process(struct judged *judged, const struct fact_process *process, const char *after)
{
	text_add(&judged->text, "%s (%d)%s", process->name, (int)process->pid, after);
}

void add_evidence(struct judged *judged, const char *format, ...)
{
	struct finding *finding = &judged->finding;
	if (finding->evidence_count < FINDING_EVIDENCE) {
		struct text text = TEXT_IN(finding->evidence[finding->evidence_count]);
		va_list ap;
		va_start(ap, format);
		text_vadd(&text, format, ap);
		va_end(ap);
		finding->evidence_count++;
	}
}

static struct word metric_word(enum fact_metric metric, double value)
{
	size_t row = 0;
	while ((units[row].metrics >> metric & 1) == 0) {
		row++;
	}
	double unit = units[row].unit;
	struct word word = unit > 0 ? number(value / unit) : byte_word(value), all;
	snprintf(all.text, sizeof(all.text), "%.30s%s", word.text, units[row].suffix);
	return all;
}

static void add_metric(const struct view *view, struct judged *judged, enum fact_metric metric)
{
	const struct fact_series *series = &view->facts->metric[metric];
	struct fact mean = metric_of(view, metric);
	if (!isfinite(mean.now)) {
		return;
	}
	bool known = isfinite(mean.usual), first = isfinite(series->first_s);
	struct word now = metric_word(metric, mean.now), usual = metric_word(metric, mean.usual);
	bool moved = known && fabs(mean.now - mean.usual) > 0.02 * fabs(mean.now) &&
		     strcmp(now.text, usual.text) != 0;
	if (known && !moved && judged->symptom == SYMPTOM_CHANGE) {
		return; /* it does not speak for a change */
	}
	add_evidence(judged, "%.72s %s%s%s%s%s%s", series->path, now.text,
		moved ? ", usually " : "", moved ? usual.text : "", moved && first ? " until " : "",
		moved && first ? duration(series->first_s).text : "", moved && first ? " ago" : "");
}

void add_metrics(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	bool jitter = judged->symptom == SYMPTOM_JITTER;
	const struct fact_stage *stage = judged->stage			     ? judged->stage
					 : judged->symptom == SYMPTOM_CHANGE ? view->grown
					 : jitter			     ? view->spiky
									     : view->dominant;
	if (facts->unended >= NOTABLE_UNENDED && judged->symptom != SYMPTOM_NONE) {
		add_evidence(judged,
			"%s %% of the frames never ended, as if a full queue dropped them",
			number(100 * facts->unended).text);
	}
	if (jitter && isfinite(facts->slow_cpu_ms)) {
		add_evidence(judged, "slow frames: %s ms more CPU time than the others",
			number(facts->slow_cpu_ms).text);
	}
	if (jitter && isfinite(facts->slow_run_delay_ms)) {
		add_evidence(judged, "slow frames: %s ms more wait for a processor",
			number(facts->slow_run_delay_ms).text);
	}
	for (size_t i = 0; i < 7 && judged->rule->metric[i] > 0; i++) {
		if (judged->finding.evidence_count + 1 < FINDING_EVIDENCE) {
			add_metric(view, judged, judged->rule->metric[i] - 1);
		}
	}
	if (stage && isfinite(stage->ms.now) && judged->symptom != SYMPTOM_NONE) {
		bool usual = isfinite(stage->ms.usual);
		add_evidence(judged, "stage/%.40s/%.40s/mean_ms: %s ms of a frame%s%s", facts->app,
			stage->name, number(stage->ms.now).text, usual ? ", usually " : "",
			usual ? number(stage->ms.usual).text : "");
	}
	if (judged->finding.evidence_count == 0) {
		add_evidence(judged, "frame/%.48s/fps %s", facts->app,
			number(1000 / facts->frame_ms.now).text);
	}
}

void write_symptom(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	const char *frames = facts->of_stages ? "iterations" : "frames";
	struct text text = TEXT_IN(judged->finding.symptom);
	struct word rate = number(1000 / facts->frame_ms.now);
	bool change = judged->symptom == SYMPTOM_CHANGE,
	     constant = judged->symptom == SYMPTOM_CONSTANT;
	if (view->late && (change || constant)) {
		text_add(&text, "%s takes %s ms, its deadline is %s ms", view->late->name,
			number(view->late->took_ms.now).text, number(view->late->deadline_ms).text);
	} else if (change && view->of_throttled) {
		text_add(&text, "throttled %s take %s ms, others %s ms", frames,
			number(facts->throttled_ms).text, number(facts->unthrottled_ms).text);
	} else if (change && !view->overdue) {
		text_add(&text, "%s %s/s instead of %s", rate.text, frames,
			number(1000 / facts->frame_ms.usual).text);
		if (isfinite(facts->since_s)) {
			text_add(&text, ", for %s", duration(facts->since_s).text);
		}
	} else if (judged->symptom == SYMPTOM_JITTER) {
		text_add(&text, "%s %% of %s take %s ms longer than the others",
			number(100 * facts->slow_share).text, frames,
			number(facts->slow_excess_ms).text);
	} else if ((view->overdue || (constant && view->missed)) &&
		   isfinite(facts->miss_percent.now)) {
		text_add(&text, "%s %% of %s miss the deadline of %s ms",
			number(facts->miss_percent.now).text, frames,
			number(facts->deadline_ms).text);
	} else if (constant && view->missed) {
		text_add(&text, "%s take longer than the deadline of %s ms", frames,
			number(facts->deadline_ms).text);
	} else if (constant && view->starved) {
		/* of all threads: it may be longer than a frame takes */
		text_add(&text, "threads wait %s ms for a processor in each %.*s",
			number(view->excess[SYMPTOM_CONSTANT]).text, (int)strlen(frames) - 1,
			frames);
	} else if (constant) {
		text_add(&text, "%s%s %s/s", view->slow_only ? "only " : "", rate.text, frames);
		if (!view->slow_only) {
			text_add(&text, ", the target is %s", number(1000 / facts->target_ms).text);
		}
	} else if (judged->symptom == SYMPTOM_LATENCY) {
		text_add(&text, "a frame takes %s ms from start to end, of which %s ms is work",
			number(facts->latency_ms.now).text, number(facts->busy_ms.now).text);
	} else {
		text_add(&text, "%s are not affected", frames);
	}
}
