/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c: answers Explain: one frame among those around it, with the sensors of that time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/diagnose/explain.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

enum { SERIES = 32, POINTS = 128, CPUS = 64 /* at most, that are looked for */ };

#define AROUND_NS UINT64_C(60000000000)	 /* of a time that is asked for */
#define SENSORS_NS UINT64_C(20000000000) /* before and after the frame */

struct explain_work {
	struct past_frames past;
	struct explanation explanation;
	uint64_t changed_ns; /* before the frame, frames became slower for good; 0 = not */
	size_t count;
	struct explain_series series[SERIES];
	struct history_point points[SERIES][POINTS];
};

/* What may make a frame slow: of the board, of each processor, of the app. */
static const char *const sensors[] = {"pressure/cpu/some", "pressure/memory/some",
	"pressure/io/some", "cpu/utilization", "cpu/iowait", "gpu/utilization", "gpu/frequency",
	"emc/utilization", "temperature/max", "swap/used", "throttle/active"};
static const char *const own[] = {
	"stopped", "iodelay", "run_delay", "major_faults", "minor_faults"};

static void add_series(struct explain_work *work, struct history *history,
	const struct past_frame *frame, const char *path)
{
	uint32_t number;
	struct explain_series *series = &work->series[work->count];
	if (work->count == SERIES || history_find(history, path, &number) < 0) {
		return;
	}
	bool done = !history_series(history, number, &series->path, &series->unit);
	series->point = work->points[work->count++];
	/* of what is sampled so often that not all fits, what is nearer to the frame */
	const uint64_t middle_ns = work->changed_ns ? work->changed_ns : frame->end_ns,
		       before_ns = frame->end_ns - middle_ns + SENSORS_NS;
	for (uint64_t part = 1; !done && part <= 256; part *= 4) {
		uint64_t from_ns = before_ns / part;
		struct history_cursor cursor = {.series = number,
			.from_ns = frame->end_ns > from_ns ? frame->end_ns - from_ns : 0,
			.to_ns = frame->end_ns + SENSORS_NS / part};
		series->count = history_read(
			history, &cursor, work->points[work->count - 1], POINTS, 0, &done);
	}
}

/* Where a frame has a context, it says more of run queue and faults than the process does. */
static void read_sensors(struct explain_work *work, struct history *history, const char *app,
	const struct past_frame *frame)
{
	char path[PROTO_PATH_SIZE];
	for (size_t i = 0; i < sizeof(sensors) / sizeof(sensors[0]); i++) {
		add_series(work, history, frame, sensors[i]);
	}
	for (size_t i = 0; i < (frame->has_context ? 2 : sizeof(own) / sizeof(own[0])); i++) {
		snprintf(path, sizeof(path), "process/%s/%s", app, own[i]);
		add_series(work, history, frame, path);
	}
	for (int i = 0; i < CPUS; i++) {
		snprintf(path, sizeof(path), "cpu/%d/frequency", i);
		add_series(work, history, frame, path);
	}
}

static void find_change(struct explain_work *work, const struct api_call *call,
	const struct app *app, const struct past_frame *frame)
{
	const struct facts *facts;
	const struct diagnosis *diagnosis =
		diagnoses_ask(call->core->diagnoses, app, call->now_ns, SENSORS_NS, &facts);
	double ns = diagnosis ? (double)diagnosis->t_ns - facts->since_s * 1e9 : (double)NAN;
	work->changed_ns =
		app->processes > 0 && ns > 0 && ns < (double)frame->end_ns ? (uint64_t)ns : 0;
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
		char name[32];
		snprintf(name, sizeof(name), "%" PRId64, id->integer);
		return reply_not_found(call->out, "frame",
			by == EXPLAIN_ID     ? name
			: by == EXPLAIN_TIME ? "then"
					     : "worst");
	}
	find_change(work, call, app, &past->frame[index]);
	read_sensors(work, call->core->history, app->name, &past->frame[index]);
	explain_frame(past, index, work->changed_ns, work->series, work->count, &work->explanation);
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
