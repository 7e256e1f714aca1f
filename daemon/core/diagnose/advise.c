/* SPDX-License-Identifier: Apache-2.0 */
/* advise.c: holds the tables of bottlenecks, opportunities and trends, and what goes over them. */
#include "daemon/core/diagnose/advise.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIB (1 << 20)

enum { ENOUGH_FRAMES = 100, BUSY_OTHERS = 25, BUSY_DAEMON = 5, MANY_EVENTS = 20000 };

const struct diagnosis_limits diagnosis_limits_default = {
	.cpu_bound = 85,
	.memory_bound = 90,
	.thermal = 80,
	.high_priority = 20,
	.medium_priority = 5,
	.category_share = 50,
	.infer_share = 30,
	.preprocess_share = 10,
	.memory_share = 5,
};

static const double WORK_LEAST = 0.5; /* of a frame: below, frames are waited for */

#define LIMIT(member) offsetof(struct diagnosis_limits, member)

static double limit_at(const struct diagnosis_limits *limits, size_t offset)
{
	return *(const double *)(const void *)((const char *)limits + offset);
}

/* Limits of means: hot is not throttled, so heat alone is "thermal". */
static const struct {
	const char *name;
	enum fact_metric metric;
	size_t above; /* LIMIT() */
} bottlenecks[] = {
	{"cpu_bound", FACT_CPU, LIMIT(cpu_bound)},
	{"memory_bound", FACT_MEMORY_PERCENT, LIMIT(memory_bound)},
	{"thermal", FACT_TEMPERATURE, LIMIT(thermal)},
};

static double now_of(const struct facts *facts, enum fact_metric metric)
{
	return facts->metric[metric].path[0] ? facts->metric[metric].mean.now : (double)NAN;
}

/* What the hardware itself reports: a cap for another reason does not count while it is cool. */
static bool is_throttled_by_heat(const struct facts *facts, const struct diagnosis *diagnosis,
	const struct diagnosis_limits *limits)
{
	bool hot = now_of(facts, FACT_TEMPERATURE) > limits->thermal;
	bool found = now_of(facts, FACT_SOFT_TEMP_LIMIT) > 0 ||
		     (hot && (now_of(facts, FACT_THROTTLE_ACTIVE) > 0 ||
				     now_of(facts, FACT_THROTTLED) > 0));
	for (size_t i = 0; i < diagnosis->findings; i++) {
		found |= diagnosis->finding[i].cause == CAUSE_THERMAL_THROTTLING &&
			 finding_confidence(&diagnosis->finding[i]) > CONFIDENCE_LOW;
	}
	return found;
}

static void add_bottlenecks(const struct facts *facts, const struct diagnosis *diagnosis,
	const struct diagnosis_limits *limits, struct improvements *ret)
{
	for (size_t i = 0; i < COUNT(bottlenecks); i++) {
		if (now_of(facts, bottlenecks[i].metric) > limit_at(limits, bottlenecks[i].above)) {
			ret->bottleneck[ret->bottlenecks++] = bottlenecks[i].name;
		}
	}
	if (is_throttled_by_heat(facts, diagnosis, limits)) {
		ret->bottleneck[ret->bottlenecks++] = "thermal_throttling";
	}
}

/* What is worth more than its share of a frame. The first row that matches holds. Gains are rules
 * of thumb. */
static const struct {
	const char *what;
	const char *words[4]; /* in the name or the category; none = any */
	enum stage_role role; /* ROLES = any */
	size_t above;	      /* LIMIT() */
	double gain_low, gain_high;
	const char *advice;
} opportunities[] = {
	{"memory operations", {"mem", "copy", "alloc", "transfer"}, ROLES, LIMIT(memory_share), NAN,
		NAN, "reuse buffers and avoid copies: allocate once, map instead of copying"},
	{"the detector", {"detect", "yolo", "ssd"}, ROLE_INFER, LIMIT(infer_share), 10, 20,
		"use a smaller detector or input, or run it only every few frames"},
	{"the model", {NULL}, ROLE_INFER, LIMIT(infer_share), 15, 25,
		"quantize the model (INT8, FP16), or use a smaller one"},
	{"preprocessing", {NULL}, ROLE_PREPROCESS, LIMIT(preprocess_share), 5, 10,
		"resize and convert in one pass, on hardware that does it, or capture at the "
		"size of the model's input"},
};

static bool is_row_of(size_t row, const struct fact_stage *stage)
{
	const char *const *words = opportunities[row].words;
	bool named = !words[0];
	for (size_t i = 0; i < COUNT(opportunities[row].words) && words[i]; i++) {
		named |= strcasestr(stage->name, words[i]) || strcasestr(stage->category, words[i]);
	}
	return named &&
	       (opportunities[row].role == ROLES || opportunities[row].role == stage->role);
}

/* Percent of the time of its category, else of its role; NAN: it is alone there, or has none. */
static double category_percent(const struct facts *facts, const struct fact_stage *stage)
{
	double sum = 0;
	for (const struct fact_stage *other = facts->stage; other < facts->stage + facts->stages;
		other++) {
		bool same = strcmp(stage->category, other->category) == 0 &&
			    (stage->category[0] ||
				    (stage->role == other->role && stage->role != ROLE_OTHER));
		sum += same && other->share > 0 ? other->share : 0;
	}
	return sum > stage->share ? 100 * stage->share / sum : (double)NAN;
}

static struct opportunity opportunity_of(const struct facts *facts, const struct fact_stage *stage,
	const struct diagnosis_limits *limits)
{
	double percent = 100 * stage->share;
	struct opportunity ret = {.stage = stage->name,
		.priority = percent > limits->high_priority	 ? "HIGH"
			    : percent >= limits->medium_priority ? "MEDIUM"
								 : "LOW",
		.share_percent = percent,
		.category_percent = category_percent(facts, stage),
		.gain_low = NAN,
		.gain_high = NAN};
	struct text text = TEXT_IN(ret.text);
	size_t row = 0;
	while (row < COUNT(opportunities) && !is_row_of(row, stage)) {
		row++;
	}
	if (row < COUNT(opportunities) && percent > limit_at(limits, opportunities[row].above)) {
		ret.advice = opportunities[row].advice;
		ret.gain_low = opportunities[row].gain_low;
		ret.gain_high = opportunities[row].gain_high;
		text_add(&text, "%s: %s takes %.0f %% of the time in stages: %s",
			opportunities[row].what, stage->name, percent, ret.advice);
	} else if (ret.category_percent > limits->category_share) {
		text_add(&text, "%s takes %.0f %% of its category", stage->name,
			ret.category_percent);
	}
	return ret;
}

/* A stage that mostly waits for the camera is not slow. */
static bool is_wait(const struct fact_stage *stage)
{
	return stage->role == ROLE_CAPTURE && !(stage->cpu_ratio >= 0.5);
}

static void add_opportunities(
	const struct facts *facts, const struct diagnosis_limits *limits, struct improvements *ret)
{
	for (size_t i = 0; i < facts->stages; i++) {
		const struct fact_stage *stage = &facts->stage[i];
		if (!(stage->share > 0) || is_wait(stage)) {
			continue;
		}
		size_t at = ret->opportunities++;
		for (; at > 0 && ret->opportunity[at - 1].share_percent < 100 * stage->share;
			at--) {
			ret->opportunity[at] = ret->opportunity[at - 1];
		}
		ret->opportunity[at] = opportunity_of(facts, stage, limits);
	}
}

/* What counts as growth over the span: so much of its unit, and such a share of its mean. */
static const struct {
	enum fact_metric metric;
	double rise, share;
	double divisor;
	const char *unit;
} trends[] = {
	{FACT_APP_RSS, 4.0 * MIB, 0.03, MIB, "MiB"},
	{FACT_APP_THREADS, 3, 0.1, 1, "threads"},
	{FACT_TEMPERATURE, 3, 0, 1, "°C"},
	{FACT_MEMORY_PERCENT, 3, 0.03, 1, "percent"},
	{FACT_SWAP_USED, 32.0 * MIB, 0.05, MIB, "MiB"},
	{FACT_CPU, 10, 0.1, 1, "percent"},
	{FACT_GPU, 10, 0.1, 1, "percent"},
	{FACT_POWER, 500, 0.1, 1000, "W"},
};

static void add_trends(const struct facts *facts, struct improvements *ret)
{
	for (size_t i = 0; i < COUNT(trends); i++) {
		const struct fact_series *series = &facts->metric[trends[i].metric];
		double rise = series->mean.now - series->begin,
		       least = fmin(series->slope_low * facts->span_s, rise);
		if (!series->path[0] || !(series->slope_low > 0) || !(rise > 0) ||
			!(least >= trends[i].rise) ||
			!(least >= trends[i].share * fabs(series->mean.now))) {
			continue;
		}
		struct trend *trend = &ret->trend[ret->trends++];
		struct text text = TEXT_IN(trend->text);
		bool large = trends[i].divisor == MIB && series->mean.now >= 10.0 * 1024 * MIB;
		double divisor = trends[i].divisor * (large ? 1024 : 1);
		trend->metric = series->path;
		trend->per_hour = 3600 * fmin(series->slope, rise / facts->span_s);
		trend->per_hour_least = 3600 * least / facts->span_s;
		/* Not by the hour: a minute says nothing of the next hour. Nor by the slope, which
		 * is more than was measured where it rose in a part of the time. */
		text_add(&text, "rose from %.1f to %.1f %s in the last %s", series->begin / divisor,
			series->mean.now / divisor, large ? "GiB" : trends[i].unit,
			text_span((uint64_t)round(facts->span_s)).text);
	}
}

__attribute__((format(printf, 2, 3))) static void recommend(
	struct improvements *ret, const char *format, ...)
{
	if (ret->recommendations == ADVICE_RECOMMENDATIONS) {
		return;
	}
	char *line = ret->recommendation[ret->recommendations];
	struct text text = text_in(line, sizeof(ret->recommendation[0]));
	va_list arguments;
	va_start(arguments, format);
	text_vadd(&text, format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < ret->recommendations; i++) {
		if (strcmp(ret->recommendation[i], line) == 0) {
			return;
		}
	}
	ret->recommendations++;
}

/* What makes the numbers less trustworthy, and opportunities less useful. */
static void add_notes(const struct facts *facts, struct improvements *ret)
{
	double others = 0, daemon = now_of(facts, FACT_DAEMON_CPU), work = facts->busy_ms.now;
	for (size_t i = 0; i < facts->stages; i++) {
		work -= is_wait(&facts->stage[i]) ? facts->stage[i].ms.now : 0;
	}
	if (ret->opportunities > 0 && work > 0 && work < WORK_LEAST * facts->frame_ms.now &&
		!(facts->in_flight > 1)) {
		recommend(ret,
			"%s comes every %.1f ms and takes %.1f ms of work: faster stages save "
			"energy, but do not raise the rate",
			facts->of_stages ? "an iteration" : "a frame", facts->frame_ms.now, work);
	}
	for (size_t i = 0; i < FACTS_PROCESSES && facts->process[i].name[0]; i++) {
		others += facts->process[i].cpu_percent;
	}
	if (facts->frames < ENOUGH_FRAMES) {
		recommend(ret, "measure longer: percentiles of %" PRIu64 " %s are uncertain",
			facts->frames, facts->of_stages ? "iterations" : "frames");
	} else if (facts->span_s < ADVICE_RUN_S) {
		recommend(ret, "measure longer: %.1f s is too short for heat and clocks to settle",
			facts->span_s);
	}
	if (facts->dropped > 0.001 && facts->crowded > 0) {
		recommend(ret,
			"record on fewer threads: %.1f %% of the events were dropped, and no more "
			"than %u threads of a process can record at a time",
			100 * facts->dropped, facts->crowded);
	} else if (facts->dropped > 0.001) {
		recommend(ret, "record less: %.1f %% of the events were dropped",
			100 * facts->dropped);
	}
	if (daemon > BUSY_DAEMON) {
		recommend(ret, "profile less: edgeprofd uses %.1f %% of a core (%s)", daemon,
			facts->metric[FACT_DAEMON_CPU].path);
	} else if (facts->event_rate > MANY_EVENTS) {
		recommend(ret, "profile less: %.0f events a second cost time themselves",
			facts->event_rate);
	}
	if (others > BUSY_OTHERS * (double)facts->cpus) {
		recommend(ret,
			"stop other programs while measuring: %s (pid %d) uses %.0f %% of a "
			"core",
			facts->process[0].name, (int)facts->process[0].pid,
			facts->process[0].cpu_percent);
	}
	if (facts->virtual_machine) {
		recommend(ret, "measure on the device: in a virtual machine, times include what "
			       "its host does");
	}
}

const char *diagnosis_state_name(enum diagnosis_state state)
{
	static const char *const names[] = {
		[DIAGNOSIS_TOO_FEW] = "insufficient_data",
		[DIAGNOSIS_HEALTHY] = "healthy",
		[DIAGNOSIS_FINDINGS] = "findings",
	};
	return names[state];
}

void advise(const struct facts *facts, const struct diagnosis *diagnosis,
	const struct diagnosis_limits *limits, struct improvements *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (diagnosis->state != DIAGNOSIS_TOO_FEW) {
		add_bottlenecks(facts, diagnosis, limits, ret);
		add_opportunities(facts, limits, ret);
		add_trends(facts, ret);
	}
	for (size_t i = 0; i < diagnosis->findings; i++) {
		const struct finding *finding = &diagnosis->finding[i];
		if (finding_confidence(finding) > CONFIDENCE_LOW && finding->advice[0]) {
			recommend(ret, "%s", finding->advice[0]);
		}
	}
	for (size_t i = 0; i < ret->opportunities; i++) {
		if (ret->opportunity[i].advice) {
			recommend(ret, "%s: %s", ret->opportunity[i].stage,
				ret->opportunity[i].advice);
		}
	}
	add_notes(facts, ret);
}
