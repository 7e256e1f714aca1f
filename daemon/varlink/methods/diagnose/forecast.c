/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.c: answers Forecast: where temperatures go by their last hour, zone by zone, and whether
 * an app meets a deadline at a rate, by its last frames.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/diagnose/forecast.h"
#include "daemon/core/diagnose/facts/past_frames.h"
#include "daemon/core/diagnose/plan.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "proto/text.h"

#define SECOND UINT64_C(1000000000)
#define TEMPERATURE "temperature/"
#define LIMIT_RULE "temperature_limit"

/* Of so few frames, and fewer of many stages, a plan takes about a millisecond. */
enum { PLAN_FRAMES = 256, PLAN_CELLS = PLAN_FRAMES * 8 };
enum { PLAN_SPAN_S = 60, ALLOWED_MISSES = 1 /* percent */ };

static const struct {
	const char *name, *text;
} states[] = {
	[FORECAST_UNKNOWN] = {"unknown", "unknown: "},
	[FORECAST_STEADY] = {"steady", "steady at "},
	[FORECAST_REACHES] = {"rising_to_trip", "rising: reaches "},
	[FORECAST_SETTLES] = {"rising_to_steady", "rising towards "},
	[FORECAST_AT_TRIP] = {"tripped", "at or above "},
	[FORECAST_FALLS] = {"falling", "falling towards "},
};

struct zone {
	const char *metric;
	double celsius, trip;
	const char *trip_text; /* "its trip point" */
	bool throttled;	       /* the board, now */
	struct forecast forecast;
};

/* The newest that fit, one each step_s, and what is forecast by them. */
static void look_ahead(struct zone *zone, struct history *history, uint64_t now_ns, uint64_t step_s)
{
	struct history_point points[FORECAST_POINTS];
	uint64_t span_ns = step_s * (FORECAST_POINTS - 2) * SECOND;
	struct history_cursor cursor = {.from_ns = now_ns > span_ns ? now_ns - span_ns : 0,
		.to_ns = now_ns,
		.step_ns = step_s * SECOND};
	bool done;
	size_t count = history_find(history, zone->metric, &cursor.series) < 0
			       ? 0
			       : history_read(history, &cursor, points, FORECAST_POINTS, 0, &done);
	struct forecast_point point[FORECAST_POINTS];
	for (size_t i = 0; i < count; i++) {
		point[i] = (struct forecast_point){(double)points[i].t_ns / 1e9, points[i].mean};
	}
	forecast_temperature(point, count, zone->trip, &zone->forecast);
}

/* The zone's own trip point, else the limit that alerts know. */
static void find_trip(struct zone *zone, const struct core *core)
{
	char path[PROTO_PATH_SIZE];
	const struct alert_rule *rule;
	snprintf(path, sizeof(path), "headroom/%s", zone->metric + strlen(TEMPERATURE));
	const struct metric *headroom = metrics_find(core->metrics, path);
	zone->trip = NAN;
	if (headroom && isfinite(headroom->value)) {
		zone->trip = headroom->value + zone->celsius;
		zone->trip_text = "its trip point";
		return;
	}
	for (size_t i = 0; (rule = alerts_rule_at(core->alerts, i)); i++) {
		if (rule->enabled && strcmp(rule->name, LIMIT_RULE) == 0) {
			zone->trip = rule->threshold;
			zone->trip_text = "the limit of the alert rule " LIMIT_RULE;
		}
	}
}

/* Below the limit is not safe while throttling is what keeps it there. */
static void put_verdict(struct json *out, const struct zone *zone)
{
	const struct forecast *forecast = &zone->forecast;
	char buffer[192];
	struct text text = TEXT_IN(buffer);
	double left = zone->trip - forecast->steady_celsius;
	if (zone->throttled && isfinite(zone->celsius)) {
		text_add(&text, "throttled now at %.1f °C; ", zone->celsius);
	}
	text_add(&text, "%s", states[forecast->state].text);
	switch (forecast->state) {
	case FORECAST_UNKNOWN:
		text_add(&text, "%s", forecast->reason);
		break;
	case FORECAST_REACHES:
		text_add(&text, "%s (%.1f °C) in %s (%s to %s)", zone->trip_text, zone->trip,
			text_span((uint64_t)forecast->to_trip_s).text,
			text_span((uint64_t)forecast->to_trip_low_s).text,
			isfinite(forecast->to_trip_high_s)
				? text_span((uint64_t)forecast->to_trip_high_s).text
				: "later");
		break;
	case FORECAST_AT_TRIP:
		text_add(&text, "%s (%.1f °C)", zone->trip_text, zone->trip);
		break;
	default:
		text_add(&text, "%.1f °C%s: %.1f °C below %s", forecast->steady_celsius,
			zone->throttled			  ? ""
			: left < forecast->margin_celsius ? ", not safe"
							  : ", safe",
			left, zone->trip_text);
	}
	json_string(out, "verdict", buffer);
}

static void zone_item(struct json *out, const struct zone *zone)
{
#define FIELD(name, member) JSON_FIELD(struct forecast, name, member)
	static const struct json_field fields[] = {FIELD("steady_celsius", steady_celsius),
		FIELD("steady_low_celsius", steady_low), FIELD("steady_high_celsius", steady_high),
		FIELD("time_constant_s", tau_s), FIELD("trip_in_s", to_trip_s),
		FIELD("trip_in_low_s", to_trip_low_s), FIELD("trip_in_high_s", to_trip_high_s),
		FIELD("fit_rmse_celsius", rmse_celsius), FIELD("fit_r2", r_squared),
		FIELD("reason", reason)};
#undef FIELD
	const struct forecast *forecast = &zone->forecast;
	json_open(out, NULL, '{');
	json_string(out, "metric", zone->metric);
	json_number_opt(out, "celsius", zone->celsius);
	json_number_opt(out, "trip_celsius", zone->trip);
	json_string(out, "state", states[forecast->state].name);
	JSON_FIELDS(out, fields, forecast);
	json_number(out, "span_s", isfinite(forecast->since_s) ? forecast->since_s : 0);
	put_verdict(out, zone);
	json_close(out, '}');
}

/* Those of a minute ago will do, of an app that ended any: rates, deadlines and what stages are
 * hardly change. NULL: no app, no memory. */
static const struct facts *facts_of(const struct list_cursor *cursor, const struct app *app)
{
	const struct facts *facts = NULL;
	if (app) {
		diagnoses_ask(cursor->core->diagnoses, app, cursor->now_ns,
			app->processes > 0 ? PLAN_SPAN_S * SECOND : cursor->now_ns, &facts);
	}
	return facts;
}

/* A zone, or one attempt at it: what began a moment ago is read finely, what went on for longer
 * than that reaches coarsely. */
static bool next_zone(struct list_cursor *cursor, struct json *out)
{
	static const uint64_t steps_s[] = {2, 15, 2};
	const struct core *core = cursor->core;
	uint32_t at = cursor->first;
	const struct metric *metric = metrics_next(core->metrics, &at);
	while (metric && (!text_starts_with(metric->name, TEMPERATURE) ||
				 strcmp(metric->name, TEMPERATURE "max") == 0)) {
		cursor->first = at;
		metric = metrics_next(core->metrics, &at);
	}
	if (!metric) {
		/* gathering the facts that plans need takes a turn of its own */
		return cursor->choice++ == 0 &&
		       facts_of(cursor, apps_find(core->apps, cursor->pattern));
	}
	const struct metric *active = metrics_find(core->metrics, "throttle/active");
	struct zone zone = {.metric = metric->name,
		.celsius = metric->value,
		.throttled = active && active->value > 0};
	find_trip(&zone, core);
	const uint64_t step_s = steps_s[cursor->second];
	look_ahead(&zone, core->history, cursor->now_ns, step_s);
	const double reach_s = 0.9 * (double)step_s * FORECAST_POINTS;
	const struct forecast *forecast = &zone.forecast;
	/* a coarse sensor that rises slowly is constant for minutes */
	bool constant = forecast->state == FORECAST_STEADY && isnan(forecast->r_squared);
	const bool few = forecast->state == FORECAST_UNKNOWN && isnan(forecast->r_squared);
	/* where too few are so far apart, the first attempt was right */
	cursor->second = cursor->second == 0   ? constant || !(forecast->since_s <= reach_s)
			 : cursor->second == 1 ? 2 * few
					       : 0;
	if (cursor->second == 0) {
		cursor->first = at;
		zone_item(out, &zone);
	}
	return true;
}

/* What a stage waits for the camera would be less at another rate. */
static bool is_work(const struct facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->stages; i++) {
		const struct fact_stage *stage = &facts->stage[i];
		if (strcmp(stage->name, name) == 0) {
			return stage->role != ROLE_CAPTURE || stage->cpu_ratio >= 0.5;
		}
	}
	return true;
}

/* The durations of the last frames' stages, a row a frame; names what is skipped. */
static void fill_durations(const struct past_frames *past, const struct facts *facts, float *ms,
	struct plan_input *input, struct text *without)
{
	size_t column[FACTS_STAGES];
	input->ms = ms;
	for (size_t i = 0; i < past->stages; i++) {
		const bool work = is_work(facts, past->stage[i]);
		column[input->stages] = i;
		input->stages += work;
		if (!work) {
			text_join(without, ", ", "without %s, which waits", past->stage[i]);
		}
	}
	size_t most = input->stages > 8 ? PLAN_CELLS / input->stages : PLAN_FRAMES;
	input->frames = past->count < most ? past->count : most;
	for (size_t frame = past->count - input->frames; frame < past->count; frame++) {
		for (size_t i = 0; i < input->stages; i++) {
			*ms++ = past->frame[frame].stage_ms[column[i]];
		}
	}
}

static void plan_item(struct json *out, const char *arrangement, const struct plan_input *input,
	const struct plan_execution *execution, bool known, const char *without)
{
#define FIELD(name, member) JSON_FIELD(struct plan_execution, name, member)
	static const struct json_field fields[] = {FIELD("miss_rate", miss),
		FIELD("miss_rate_low", miss_low), FIELD("miss_rate_high", miss_high),
		FIELD("latency_p50_ms", latency_p50_ms), FIELD("latency_p95_ms", latency_p95_ms),
		FIELD("latency_p99_ms", latency_p99_ms), FIELD("max_fps", max_fps)};
#undef FIELD
	json_open(out, NULL, '{');
	json_string(out, "arrangement", arrangement);
	json_number(out, "fps", isfinite(input->fps) ? input->fps : 0);
	json_number(out, "deadline_ms", isfinite(input->deadline_ms) ? input->deadline_ms : 0);
	JSON_FIELDS(out, fields, execution);
	json_unsigned(out, "frames", input->frames);
	json_string_opt(out, "reason",
		!known			 ? "fewer than 30 frames with stages"
		: isnan(execution->miss) ? "the frame rate of the app is not known"
					 : without);
	json_close(out, '}');
}

static double first_known(double a, double b)
{
	return isnan(a) ? b : a;
}

static void put_plans(struct json *out, const struct list_cursor *cursor, const struct app *app)
{
	struct plan_execution sequential, pipelined;
	struct work {
		struct past_frames past;
		float ms[PLAN_FRAMES * FACTS_STAGES];
		char without[128];
	} *work = mem_zalloc(sizeof(*work));
	const struct facts *facts = facts_of(cursor, app);
	if (work && facts) {
		double own_ms = first_known(facts->target_ms, facts->frame_ms.now);
		struct plan_input input = {.miss_percent = ALLOWED_MISSES,
			.fps = first_known(cursor->number[0], 1000 / own_ms),
			.deadline_ms = first_known(cursor->number[1], facts->deadline_ms)};
		input.deadline_ms = first_known(input.deadline_ms, 1000 / input.fps);
		past_frames_read(app, app->since_ns, cursor->now_ns, &work->past);
		struct text without = TEXT_IN(work->without);
		fill_durations(&work->past, facts, work->ms, &input, &without);
		if (facts->parallel) {
			text_join(&without, ", ", "unlike the app, whose frames run in parallel");
		}
		bool known = plan_predict(&input, &sequential, &pipelined);
		plan_item(out, "sequential", &input, &sequential, known, work->without);
		plan_item(out, "pipelined", &input, &pipelined, known, work->without);
	}
	free(work);
}

static void forecast_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct app *app = apps_find(cursor->core->apps, cursor->pattern);
	json_open(out, "plans", '[');
	if (last && app) {
		put_plans(out, cursor, app);
	}
	json_close(out, ']');
}

static const struct list_ops forecast_list = {
	.field = "temperatures", .item = next_zone, .heavy = true, .tail = forecast_tail};

enum api_result method_forecast(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	for (size_t i = 0; i < 2; i++) {
		const struct value *value = &call->value[1 + i];
		cursor.number[i] = value->present ? value->number : (double)NAN;
	}
	if (!list_narrow(&cursor, call)) {
		return reply_not_found(call->out, "app", call->value[0].string);
	}
	return list_start(call, &forecast_list, &cursor);
}
