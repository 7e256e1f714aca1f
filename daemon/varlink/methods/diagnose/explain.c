/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c: answers Explain: one frame among those around it, with the sensors of that time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/explain.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"
#include "proto/name.h"

enum { SERIES = 24, POINTS = 128 };

#define AROUND_NS UINT64_C(60000000000)	 /* of a time that is asked for */
#define SENSORS_NS UINT64_C(20000000000) /* before and after the frame */

struct explain_work {
	struct past_frames past;
	struct explanation explanation;
	size_t count;
	struct explain_series series[SERIES];
	struct history_point points[SERIES][POINTS];
};

/* What may make a frame slow. */
static const char *const sensors[] = {"pressure/cpu/some", "pressure/memory/some",
	"pressure/io/some", "cpu/utilization", "cpu/iowait", "cpu/*/frequency", "gpu/utilization",
	"gpu/frequency", "emc/utilization", "temperature/max", "swap/used", "throttle/active"};

static bool is_wanted(const char *metric)
{
	bool wanted = false;
	for (size_t i = 0; i < sizeof(sensors) / sizeof(sensors[0]); i++) {
		wanted |= proto_query_match(sensors[i], metric);
	}
	return wanted;
}

static void read_sensors(
	struct explain_work *work, const struct core *core, const struct past_frame *frame)
{
	uint32_t at = 0;
	for (const struct metric *metric;
		work->count < SERIES && (metric = metrics_next(core->metrics, &at));) {
		bool done;
		struct history_cursor cursor = {
			.from_ns = frame->end_ns > SENSORS_NS ? frame->end_ns - SENSORS_NS : 0,
			.to_ns = frame->end_ns + SENSORS_NS};
		struct history_point *points = work->points[work->count];
		if (is_wanted(metric->name) &&
			history_find(core->history, metric->name, &cursor.series) >= 0) {
			work->series[work->count++] = (struct explain_series){.path = metric->name,
				.unit = metric->unit,
				.count = history_read(
					core->history, &cursor, points, POINTS, 0, &done),
				.point = points};
		}
	}
}

static void explanation_fields(struct json *out, const struct core *core, const struct app *app,
	const struct past_frame *frame, const struct explanation *explanation)
{
#define FIELD(name, member) JSON_FIELD(struct difference, name, member)
	static const struct json_field fields[] = {
		FIELD("value", value), FIELD("usual", usual), FIELD("explained_ms", explained_ms)};
#undef FIELD
	json_string(out, "app", app->name);
	if (frame->id <= INT64_MAX) {
		json_unsigned(out, "frame", frame->id);
	}
	json_integer(out, "start_us", row_time_us(core, frame->start_ns));
	json_integer(out, "end_us", row_time_us(core, frame->end_ns));
	json_number(out, "took_ms", explanation->took_ms);
	json_number_opt(out, "usual_ms", explanation->usual_ms);
	json_unsigned(out, "compared_frames", explanation->compared);
	json_open(out, "differences", '[');
	for (size_t i = 0; i < explanation->differences; i++) {
		const struct difference *difference = &explanation->difference[i];
		json_open(out, NULL, '{');
		json_string(out, "what", difference->what);
		json_string(out, "unit", unit_name(difference->unit));
		JSON_FIELDS(out, fields, difference);
		json_string(out, "text", difference->text);
		json_close(out, '}');
	}
	json_close(out, ']');
	json_string(out, "summary", explanation->summary);
	json_string_opt(out, "reason", explanation->reason);
}

static enum api_result explain(
	struct api_call *call, const struct app *app, struct explain_work *work)
{
	const struct value *id = &call->value[1], *time = &call->value[2];
	struct past_frames *past = &work->past;
	uint64_t from_ns = app->since_ns, to_ns = call->now_ns, value = (uint64_t)id->integer;
	enum explain_by by = id->present ? EXPLAIN_ID : EXPLAIN_WORST;
	if (time->present) {
		value = wallclock_mono_ns(call->core->wall, time->integer);
		by = EXPLAIN_TIME;
		from_ns = value > from_ns + AROUND_NS ? value - AROUND_NS : from_ns;
		to_ns = value + AROUND_NS < to_ns ? value + AROUND_NS : to_ns;
	}
	past_frames_read(app, from_ns, to_ns, past);
	size_t index = explain_find(past, by, value);
	if (index >= past->count) {
		char name[32] = "worst";
		if (by != EXPLAIN_WORST) {
			snprintf(name, sizeof(name), "%" PRId64,
				by == EXPLAIN_ID ? id->integer : time->integer);
		}
		return reply_not_found(call->out, "frame", name);
	}
	read_sensors(work, call->core, &past->frame[index]);
	explain_frame(past, index, work->series, work->count, &work->explanation);
	explanation_fields(call->out, call->core, app, &past->frame[index], &work->explanation);
	return API_LAST;
}

enum api_result method_explain(struct api_call *call)
{
	struct list_cursor cursor = {.core = call->core};
	if (call->value[1].present && call->value[2].present) {
		return reply_invalid_parameter(call->out, "time_us");
	}
	if (!list_narrow(&cursor, call)) {
		return reply_not_found(call->out, "app", call->value[0].string);
	}
	struct explain_work *work = mem_zalloc(sizeof(*work));
	if (!work) {
		return reply_limit(call->out, "memory", 0);
	}
	enum api_result result = explain(call, apps_find(call->core->apps, cursor.pattern), work);
	free(work);
	return result;
}
