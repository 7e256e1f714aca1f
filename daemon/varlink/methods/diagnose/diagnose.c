/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose.c: answers Diagnose: one app freshly, all that run from what is kept of them. Gathering
 * the facts of one takes about two milliseconds, so each is a slice of its own.
 */
#include <math.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/advise.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/diagnose/plan.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

#define ONE_MAX_AGE_NS UINT64_C(1000000000)
/* The longest turn: of as many apps as there can be. */
#define ALL_MAX_AGE_NS (ONE_MAX_AGE_NS * (APPS_MAX + DIAGNOSES_EVERY_S))

static void finding_item(struct json *out, const struct finding *finding)
{
	json_open(out, NULL, '{');
	json_string(out, "cause", cause_name(finding->cause));
	json_string(out, "confidence", confidence_name(finding_confidence(finding)));
	json_number(out, "score", finding->score);
	json_number_opt(out, "explained_ms", finding->explained_ms);
	json_string(out, "symptom", finding->symptom);
	json_string(out, "text", finding->text);
	json_open(out, "evidence", '[');
	for (size_t i = 0; i < finding->evidence_count; i++) {
		json_string(out, NULL, finding->evidence[i]);
	}
	json_close(out, ']');
	json_open(out, "advice", '[');
	for (size_t i = 0; i < sizeof(finding->advice) / sizeof(finding->advice[0]); i++) {
		if (finding->advice[i]) {
			json_string(out, NULL, finding->advice[i]);
		}
	}
	json_close(out, ']');
	json_close(out, '}');
}

static void opportunity_item(struct json *out, const struct opportunity *opportunity)
{
	json_open(out, NULL, '{');
	json_string(out, "stage", opportunity->stage->name);
	json_string(out, "priority", opportunity->priority);
	json_number(out, "share_percent", opportunity->share_percent);
	json_number_opt(out, "category_percent", opportunity->category_percent);
	json_string_opt(out, "text", opportunity->text);
	json_number_opt(out, "gain_low_percent", opportunity->gain_low);
	json_number_opt(out, "gain_high_percent", opportunity->gain_high);
	json_close(out, '}');
}

static void improvement_fields(struct json *out, const struct improvements *improvements)
{
	json_open(out, "bottlenecks", '[');
	for (size_t i = 0; i < improvements->bottlenecks; i++) {
		json_string(out, NULL, improvements->bottleneck[i]);
	}
	json_close(out, ']');
	json_open(out, "optimization_opportunities", '[');
	for (size_t i = 0; i < improvements->opportunities; i++) {
		opportunity_item(out, &improvements->opportunity[i]);
	}
	json_close(out, ']');
	json_open(out, "performance_trends", '[');
	for (size_t i = 0; i < improvements->trends; i++) {
		const struct trend *trend = &improvements->trend[i];
		json_open(out, NULL, '{');
		json_string(out, "metric", trend->metric);
		json_number(out, "per_hour", trend->per_hour);
		json_number(out, "per_hour_least", trend->per_hour_least);
		json_string(out, "text", trend->text);
		json_close(out, '}');
	}
	json_close(out, ']');
	json_open(out, "recommendations", '[');
	for (size_t i = 0; i < improvements->recommendations; i++) {
		json_string(out, NULL, improvements->recommendation[i]);
	}
	json_close(out, ']');
}

static const char *no_tax(const struct throttle_tax *tax)
{
	return isnan(tax->share)     ? "it is not known when the hardware throttled"
	       : tax->share == 0     ? "the hardware did not throttle"
	       : isnan(tax->lost_ms) ? "too few frames with or without throttling to compare"
				     : "";
}

static void tax_field(struct json *out, const struct facts *facts)
{
#define FIELD(name, member) JSON_FIELD(struct throttle_tax, name, member)
	static const struct json_field fields[] = {FIELD("share", share), FIELD("lost_ms", lost_ms),
		FIELD("unthrottled_fps", unthrottled_fps),
		FIELD("unthrottled_fps_low", unthrottled_low_fps),
		FIELD("unthrottled_fps_high", unthrottled_high_fps),
		FIELD("throttled_joules_per_frame", throttled_joules),
		FIELD("unthrottled_joules_per_frame", unthrottled_joules)};
#undef FIELD
	struct throttle_tax tax;
	throttle_tax(facts, &tax);
	json_open(out, "throttle_tax", '{');
	JSON_FIELDS(out, fields, &tax);
	json_number_opt(out, "fps", 1000 / facts->frame_ms.now);
	json_string_opt(out, "reason", no_tax(&tax));
	json_close(out, '}');
}

static void diagnosis_item(struct json *out, const struct core *core,
	const struct diagnosis *diagnosis, const struct facts *facts)
{
	struct improvements improvements;
	advise(facts, diagnosis, &improvements);
	json_open(out, NULL, '{');
	json_string(out, "app", facts->app);
	json_string(out, "status", diagnosis_state_name(diagnosis->state));
	json_integer(out, "time_us", row_time_us(core, diagnosis->t_ns));
	json_string(out, "summary", diagnosis->summary);
	json_unsigned(out, "frames", facts->frames);
	json_number(out, "span_s", facts->span_s);
	json_open(out, "findings", '[');
	for (size_t i = 0; i < diagnosis->findings; i++) {
		finding_item(out, &diagnosis->finding[i]);
	}
	json_close(out, ']');
	improvement_fields(out, &improvements);
	tax_field(out, facts);
	json_close(out, '}');
}

static bool next_diagnosis(struct list_cursor *cursor, struct json *out)
{
	const struct facts *facts;
	const struct app *app;
	bool one = cursor->pattern[0] != '\0';
	app = one ? apps_find(cursor->core->apps, cursor->pattern)
		  : apps_at(cursor->core->apps, cursor->first);
	if (!app || (one && cursor->first > 0)) {
		return false;
	}
	cursor->first++;
	if (one || app->processes > 0) {
		const struct diagnosis *diagnosis = diagnoses_ask(cursor->core->diagnoses, app,
			cursor->now_ns, one ? ONE_MAX_AGE_NS : ALL_MAX_AGE_NS, &facts);
		if (diagnosis) {
			diagnosis_item(out, cursor->core, diagnosis, facts);
		}
	}
	return true;
}

static const struct list_ops diagnosis_list = {
	.field = "diagnoses", .item = next_diagnosis, .heavy = true};

enum api_result method_diagnose(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	if (!list_narrow(&cursor, call)) {
		return reply_not_found(call->out, "app", call->value[0].string);
	}
	return list_start(call, &diagnosis_list, &cursor);
}
