/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose.c: answers Diagnose: one app freshly, all that run from what is kept of them. Gathering
 * the facts of one takes about two milliseconds, so each is a slice of its own.
 */
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

#define FIELD(name, member) JSON_FIELD(struct finding, name, member)
static const struct json_field finding_fields[] = {
	JSON_FIELD_AS(JSON_NUMBER, struct finding, "score", score),
	FIELD("explained_ms", explained_ms), FIELD("symptom", symptom), FIELD("text", text)};
#undef FIELD
#define FIELD(name, member) JSON_FIELD(struct opportunity, name, member)
static const struct json_field opportunity_fields[] = {FIELD("stage", stage),
	FIELD("priority", priority), FIELD("share_percent", share_percent),
	FIELD("category_percent", category_percent),
	JSON_FIELD_AS(JSON_STRING_OPT, struct opportunity, "text", text),
	FIELD("gain_low_percent", gain_low), FIELD("gain_high_percent", gain_high)};
#undef FIELD
#define FIELD(name, member) JSON_FIELD(struct trend, name, member)
static const struct json_field trend_fields[] = {FIELD("metric", metric),
	FIELD("per_hour", per_hour), FIELD("per_hour_least", per_hour_least), FIELD("text", text)};
#undef FIELD
#define FIELD(name, member) JSON_FIELD(struct throttle_tax, name, member)
static const struct json_field tax_fields[] = {FIELD("share", share), FIELD("lost_ms", lost_ms),
	FIELD("fps", fps), FIELD("unthrottled_fps", unthrottled_fps),
	FIELD("unthrottled_fps_low", unthrottled_low_fps),
	FIELD("unthrottled_fps_high", unthrottled_high_fps),
	FIELD("throttled_joules_per_frame", throttled_joules),
	FIELD("unthrottled_joules_per_frame", unthrottled_joules), FIELD("reason", reason)};
#undef FIELD

#define ROWS(out, name, fields, count, array)                                                    \
	rows(out, name, fields, sizeof(fields) / sizeof((fields)[0]), count, sizeof((array)[0]), \
		array)
static void rows(struct json *out, const char *name, const struct json_field *fields,
	size_t field_count, size_t count, size_t size, const void *array)
{
	json_open(out, name, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(out, NULL, '{');
		json_fields(out, fields, field_count, (const char *)array + i * size);
		json_close(out, '}');
	}
	json_close(out, ']');
}

/* Those before the first NULL. */
static void texts(struct json *out, const char *name, const char *const *text, size_t count)
{
	json_open(out, name, '[');
	for (size_t i = 0; i < count && text[i]; i++) {
		json_string(out, NULL, text[i]);
	}
	json_close(out, ']');
}

static void lines(struct json *out, const char *name, const char *line, size_t size, size_t count)
{
	json_open(out, name, '[');
	for (size_t i = 0; i < count; i++) {
		json_string(out, NULL, line + i * size);
	}
	json_close(out, ']');
}

static void finding_item(struct json *out, const struct finding *finding)
{
	json_open(out, NULL, '{');
	json_string(out, "cause", cause_name(finding->cause));
	json_string(out, "confidence", confidence_name(finding_confidence(finding)));
	JSON_FIELDS(out, finding_fields, finding);
	lines(out, "evidence", finding->evidence[0], sizeof(finding->evidence[0]),
		finding->evidence_count);
	texts(out, "advice", finding->advice, sizeof(finding->advice) / sizeof(finding->advice[0]));
	json_close(out, '}');
}

static void diagnosis_item(struct json *out, const struct core *core,
	const struct diagnosis *diagnosis, const struct facts *facts)
{
	struct improvements made;
	struct throttle_tax tax;
	diagnoses_advise(core->diagnoses, facts, diagnosis, &made);
	throttle_tax(facts, &tax);
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
	texts(out, "bottlenecks", made.bottleneck, made.bottlenecks);
	ROWS(out, "optimization_opportunities", opportunity_fields, made.opportunities,
		made.opportunity);
	ROWS(out, "performance_trends", trend_fields, made.trends, made.trend);
	lines(out, "recommendations", made.recommendation[0], sizeof(made.recommendation[0]),
		made.recommendations);
	json_open(out, "throttle_tax", '{');
	JSON_FIELDS(out, tax_fields, &tax);
	json_close(out, '}');
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
