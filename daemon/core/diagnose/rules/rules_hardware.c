/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_hardware.c: judges what lowers clocks: heat, the supply, and limits that somebody set. The
 * hardware's own flags decide; a high temperature alone is nothing.
 */
#include <string.h>

#include "daemon/core/diagnose/rules/rules_private.h"

#define ON 0.1		/* share of the time in which a flag counts as on */
#define FLICKER 0.02	/* low voltage comes in moments */
#define NEAR_LIMIT 3.0	/* °C */
#define AS_HOT 5.0	/* °C */
#define CLOCK_FELL 0.92 /* of the usual frequency */

/* The flag of a lowered clock that is on most. */
static enum fact_metric capped(const struct view *view)
{
	static const enum fact_metric flags[] = {
		FACT_THROTTLE_ACTIVE, FACT_FREQ_CAPPED, FACT_THROTTLED, FACT_SOFT_TEMP_LIMIT};
	enum fact_metric max = flags[0];
	for (size_t i = 1; i < sizeof(flags) / sizeof(flags[0]); i++) {
		double now = metric_of(view, flags[i]).now;
		max = isfinite(now) && !(metric_of(view, max).now >= now) ? flags[i] : max;
	}
	return max;
}

/* 1 at a temperature limit, 0.5 not far from it, 0 far; NAN: not known. */
static double heat(const struct view *view)
{
	const struct fact_series *temperature = &view->facts->metric[FACT_TEMPERATURE];
	double headroom = metric_of(view, FACT_HEADROOM).now;
	/* The Raspberry Pi lowers clocks from 80 °C on. */
	double limit = isfinite(view->facts->critical_celsius) ? view->facts->critical_celsius : 83;
	double celsius = metric_of(view, FACT_TEMPERATURE).now;
	double distance = fmin(limit - fmax(celsius, temperature->most), headroom);
	if (isnan(celsius)) {
		distance = headroom;
	}
	bool at_limit = metric_of(view, FACT_SOFT_TEMP_LIMIT).now >= ON || distance <= NEAR_LIMIT;
	return at_limit ? 1 : isnan(distance) ? distance : distance <= 8 ? 0.5 : 0;
}

/* What a flag that rose explains: frames with it took longer than those without, or, where that is
 * not known, the computing grew with it. */
static struct claims flag_claims(const struct view *view, enum fact_metric metric)
{
	const struct facts *facts = view->facts;
	struct fact flag = metric_of(view, metric);
	struct claims claims = {0};
	double tax = view->late || view->overdue ? (double)NAN
						 : facts->throttled_ms - facts->unthrottled_ms;
	if ((isfinite(tax) && !is_taxed(facts)) || !(flag.now > FLICKER)) {
		return claims;
	}
	if (growth_of(flag) >= 0.2 || view->of_throttled) {
		/* A flag that came after another trouble costs what was measured since. */
		const bool late = isfinite(tax) && facts->metric[metric].first_s < facts->since_s;
		claims.change = (late ? together_with : agreement)(view, metric, 1) *
				fmin(tax, view->shared);
	}
	/* On for as long as is known: nothing shows how fast the frames are without it. */
	if (isnan(tax) && flag.now >= 0.5 && !(flag.usual < 0.5)) {
		claims.constant =
			view->excess[SYMPTOM_CONSTANT] * (1 - share_of_base(view, view->capture));
	}
	return claims;
}

/* A clock's frequency now / usual while its processor had work: without, a governor lowers it as it
 * should. */
static double ratio_of(const struct view *view, enum fact_metric clock, enum fact_metric load)
{
	struct fact frequency = metric_of(view, clock), busy = metric_of(view, load);
	bool limited = clock == FACT_CPU_FREQUENCY && view->facts->frequency_limit < 0.95;
	bool working = limited || !(busy.now < 50) || busy.now >= 0.95 * busy.usual;
	double ratio = frequency.now / frequency.usual;
	return working && ratio > 0 && ratio < 1 ? ratio : 1;
}

static double clock_ratio(const struct view *view)
{
	return fmin(ratio_of(view, FACT_CPU_FREQUENCY, FACT_CPU_BUSIEST),
		ratio_of(view, FACT_GPU_FREQUENCY, FACT_GPU));
}

/* What the lower clock explains of the growth. */
static double clock_claim(const struct view *view)
{
	bool gpu = ratio_of(view, FACT_GPU_FREQUENCY, FACT_GPU) < CLOCK_FELL;
	double work = view->work_ms > 0 ? view->work_ms : or_zero(view->base_ms);
	return agreement(view, gpu ? FACT_GPU_FREQUENCY : FACT_CPU_FREQUENCY, -1) *
	       fmin(view->shared, 1.3 * work * (1 / clock_ratio(view) - 1));
}

/* A Jetson has some over-current events each second by design: only more of them count. */
static bool over_current_grew(const struct view *view)
{
	struct fact rate = metric_of(view, FACT_OVER_CURRENT_RATE);
	struct fact flag = metric_of(view, FACT_OVER_CURRENT);
	bool grew = rate.now >= 2 * rate.usual + 0.5 || flag.now - flag.usual >= 0.2 ||
		    (isnan(flag.usual) && isnan(rate.usual) && flag.now >= 0.5 && !(rate.now < 5));
	return grew && !(flag.now < FLICKER); /* else they are events of low voltage */
}

/* As hot as it was with fast frames: then heat is not what is new. */
static bool hot_as_usual(const struct view *view)
{
	struct fact temperature = metric_of(view, FACT_TEMPERATURE);
	return view->changed && temperature.usual >= temperature.now - AS_HOT;
}

static bool supply_fails(const struct view *view)
{
	return metric_of(view, FACT_UNDER_VOLTAGE).now >= FLICKER || over_current_grew(view);
}

void rule_thermal(const struct view *view, struct judged *judged)
{
	enum fact_metric flag = capped(view);
	double hot = heat(view), on = metric_of(view, flag).now;
	double evidence = 0.2 * or_zero(hot);
	struct claims claims = {0};
	bool acts = on >= (view->of_throttled ? 0.05 : ON);
	if (acts) {
		evidence = hot >= 1 ? 0.95 : hot > 0 ? 0.8 : isnan(hot) ? 0.65 : 0.45;
		evidence =
			supply_fails(view) && (!(hot >= 1) || hot_as_usual(view)) ? 0.3 : evidence;
		claims = flag_claims(view, flag);
	}
	/* Without a flag, or with one that was on before, too: the clock says it. */
	bool silent = acts ? !(claims.change > 0) && !supply_fails(view) : isnan(on);
	if (silent && clock_ratio(view) < CLOCK_FELL && hot >= 1) {
		evidence = acts ? 0.85 : 0.62;
		acts = true;
		claims.change = clock_claim(view);
	}
	judge(view, judged, evidence, claims);
	say_share(view, judged, view->dominant);
	text_add(&judged->text, acts ? "clock capped" : "hot, but the clock is not capped");
	if (acts) {
		say_since(view, judged, flag);
	}
	say(judged, " at ", metric_of(view, FACT_TEMPERATURE).now, " °C");
	if (acts && judged->symptom == SYMPTOM_NONE) {
		bool known = view->facts->unthrottled_ms > 0 || metric_of(view, flag).usual < 0.5;
		judged->score[SYMPTOM_NONE] += !known && view->free && on >= 0.5 ? 0.2 : 0;
		take_best(judged);
		struct text symptom = TEXT_IN(judged->finding.symptom);
		text_add(&symptom, "%s", known ? "" : "throttled for as long as frames are known");
		text_add(&judged->text, "; %s",
			known ? "it costs nothing now" : "what it costs is not known");
	}
}

void rule_under_voltage(const struct view *view, struct judged *judged)
{
	struct fact flag = metric_of(view, FACT_UNDER_VOLTAGE);
	bool on = flag.now >= FLICKER,
	     capping = !(metric_of(view, FACT_THROTTLE_ACTIVE).now < FLICKER);
	struct claims claims = flag_claims(view, FACT_UNDER_VOLTAGE);
	struct claims by_clock = flag_claims(view, capped(view));
	bool rose = flag.now >= 1.3 * or_zero(flag.usual) + FLICKER;
	claims.change = fmax(claims.change, rose ? by_clock.change : 0);
	claims.constant = fmax(claims.constant, by_clock.constant);
	/* Low voltage alone lowers no clock. */
	judge(view, judged, !on ? 0 : heat(view) >= 1 ? 0.6 : capping ? 0.97 : 0.5, claims);
	say_share(view, judged, view->dominant);
	text_add(&judged->text, "the supply voltage has been too low");
	say_since(view, judged, FACT_UNDER_VOLTAGE);
}

void rule_over_current(const struct view *view, struct judged *judged)
{
	struct fact rate = metric_of(view, FACT_OVER_CURRENT_RATE);
	enum fact_metric metric = isfinite(rate.now) ? FACT_OVER_CURRENT_RATE : FACT_OVER_CURRENT;
	bool always = isnan(metric_of(view, metric).usual);
	bool hot =
		heat(view) >= 1 && metric_of(view, capped(view)).now >= ON && !hot_as_usual(view);
	struct claims claims = {.change = agreement(view, metric, 1) * view->compute,
		.constant = always ? view->excess[SYMPTOM_CONSTANT] : 0};
	judge(view, judged, !over_current_grew(view) ? 0 : hot ? 0.6 : 0.92, claims);
	say_share(view, judged, view->dominant);
	text_add(&judged->text, "over-current throttling");
	say(judged, ", ", rate.now, " events/s");
	say_since(view, judged, metric);
}

/* How sure a limit that somebody set is to hold. */
static double limit_evidence(const struct view *view)
{
	const struct fact_series *clock = &view->facts->metric[FACT_CPU_FREQUENCY];
	bool scales = clock->path[0] && clock->most > 1.02 * clock->least;
	/* Some drivers scale under the name powersave as well. */
	bool powersave = strcmp(view->facts->governor, "powersave") == 0;
	return view->facts->frequency_limit < 0.95	      ? 0.88
	       : powersave				      ? (scales ? 0.25 : 0.85)
	       : metric_of(view, FACT_POWER_BUDGET).now >= 97 ? 0.7
							      : 0;
}

/* What the limit costs at the best times, of the work of the CPU. */
static double limit_claim(const struct view *view)
{
	double ms = 0, limit = view->facts->frequency_limit;
	for (size_t i = 0; i < view->facts->stages && i < FACTS_STAGES; i++) {
		const struct fact_stage *stage = &view->facts->stage[i];
		ms += on_cpu(stage) && stage->role != ROLE_CAPTURE ? stage_base(view, stage) : 0;
	}
	ms = view->facts->stages > 0 ? ms : or_zero(view->base_ms);
	return limit < 0.95 ? ms * (1 - limit) : ms;
}

void rule_clock_limit(const struct view *view, struct judged *judged)
{
	const struct facts *facts = view->facts;
	enum fact_metric flag = capped(view);
	double on = metric_of(view, flag).now, hot = heat(view), ratio = clock_ratio(view);
	double evidence = limit_evidence(view);
	bool fell = ratio < CLOCK_FELL, set = evidence >= 0.5, supply = supply_fails(view);
	struct claims claims = {.constant = set ? limit_claim(view) : 0};
	if (fell) {
		double since = supply || hot >= 1 ? 0.3 : isnan(on) ? 0.62 : 0.85;
		claims.change = clock_claim(view);
		evidence = fmax(evidence, since);
	} else if (set && isnan(metric_of(view, FACT_CPU_FREQUENCY).now)) {
		claims.change = 0.4 * view->compute; /* it may have come with the slowdown */
	} else if (!set && on >= ON && hot <= 0 && !supply) {
		claims = flag_claims(view, flag);
		evidence = 0.7;
	}
	judge(view, judged, evidence, claims);
	if (facts->frequency_limit < 0.95) {
		say(judged, "the clock is limited to ", 100 * facts->frequency_limit,
			" % of its maximum");
	} else if (fell) {
		say(judged, "the clock fell to ", 100 * ratio, " % of the usual frequency");
	} else {
		text_add(&judged->text, "the governor or the power mode keeps the clock low");
	}
	if (facts->governor[0] || facts->power_mode[0]) {
		add_evidence(judged, "governor %.40s, power mode %.40s",
			facts->governor[0] ? facts->governor : "unknown",
			facts->power_mode[0] ? facts->power_mode : "unknown");
	}
}
