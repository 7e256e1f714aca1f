/* SPDX-License-Identifier: Apache-2.0 */
/* data_gather.c: collects the events of a trace in memory: records of one app, samples of metrics,
 * and what happened. It is a format of trace.h that writes nothing. */
#include "client/edgeprofctl/data/data_private.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"
#include "proto/fnv.h"

enum { BY_ID = UINT16_MAX /* in place of a thread: such runs do not nest */ };

bool data_grow(void *items, size_t *capacity, size_t count, size_t size)
{
	void **array = items;
	if (count < *capacity) {
		return true;
	}
	size_t more = *capacity == 0 ? 16 : 2 * *capacity;
	void *grown = reallocarray(*array, more, size);
	if (grown) {
		*array = grown;
		*capacity = more;
	}
	return grown;
}

double data_seconds(const struct data_gather *gather, uint64_t t_ns)
{
	return t_ns >= gather->begin_ns ? (double)(t_ns - gather->begin_ns) / 1e9
					: -(double)(gather->begin_ns - t_ns) / 1e9;
}

static bool is_stage(const struct data_stage *stage, const char *name, const char *unit)
{
	return strncmp(stage->name, name, sizeof(stage->name) - 1) == 0 &&
	       strncmp(stage->unit, unit, sizeof(stage->unit) - 1) == 0;
}

/* Stages come in turns, so the search begins behind the last one. -1: there are too many. */
static int stage_index(
	struct data_gather *gather, const char *name, const char *unit, const char *category)
{
	struct data_records *now = &gather->now;
	for (size_t i = 1; i <= now->stage_count; i++) {
		size_t at = (now->last_stage + i) % now->stage_count;
		if (is_stage(&now->stage[at], name, unit)) {
			now->last_stage = at;
			return (int)at;
		}
	}
	if (now->stage_count == DATA_STAGES_MAX) {
		gather->skipped = true;
		return -1;
	}
	if (!data_grow(&now->stage, &now->stage_capacity, now->stage_count, sizeof(*now->stage))) {
		gather->out_of_memory = true;
		return -1;
	}
	struct data_stage *stage = &now->stage[now->stage_count];
	memset(stage, 0, sizeof(*stage));
	snprintf(stage->name, sizeof(stage->name), "%s", name);
	snprintf(stage->unit, sizeof(stage->unit), "%s", unit);
	snprintf(stage->category, sizeof(stage->category), "%s", category);
	return (int)(now->last_stage = now->stage_count++);
}

static void add_run(struct data_gather *gather, const struct data_run *run)
{
	struct data_records *now = &gather->now;
	if (!data_grow(&now->run, &now->run_capacity, now->run_count, sizeof(*now->run))) {
		gather->out_of_memory = true;
		return;
	}
	now->run[now->run_count++] = *run;
}

static void add_complete(struct data_gather *gather, const struct trace_event *event)
{
	int stage = stage_index(gather, event->name, event->unit, event->category);
	struct data_run run = {.start_ns = event->start_ns,
		.end_ns = event->start_ns + event->duration_ns,
		.frame_id = event->frame,
		.has_frame = event->has_frame,
		.frame = DATA_NO_FRAME,
		.cpu_ms = event->cpu_us < 0 ? NAN : (float)event->cpu_us / 1000,
		.process = event->process,
		.thread = event->thread,
		.depth = (uint8_t)event->depth,
		.failed = event->failed,
		.throttled = (int8_t)event->throttled};
	if (stage >= 0) {
		run.stage = (uint16_t)stage;
		add_run(gather, &run);
	}
}

static void add_half(struct data_gather *gather, const struct trace_event *event)
{
	struct trace_half half = {.end = event->kind == TRACE_END,
		.process = event->process,
		.id = event->id,
		.t_ns = event->start_ns};
	snprintf(half.name, sizeof(half.name), "%s", event->name);
	snprintf(half.unit, sizeof(half.unit), "%s", event->unit);
	snprintf(half.category, sizeof(half.category), "%s", event->category);
	trace_pairs_add(&gather->pairs, &half);
}

static void on_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end)
{
	struct data_gather *gather = ctx;
	int stage =
		begin && end ? stage_index(gather, begin->name, begin->unit, begin->category) : -1;
	if (stage >= 0) {
		struct data_run run = {.start_ns = begin->t_ns,
			.end_ns = end->t_ns,
			.frame = DATA_NO_FRAME,
			.cpu_ms = NAN,
			.process = begin->process,
			.thread = BY_ID,
			.throttled = -1,
			.stage = (uint16_t)stage};
		add_run(gather, &run);
	}
}

static void add_mark(struct data_gather *gather, const struct trace_event *event)
{
	struct data_records *now = &gather->now;
	uint64_t end_ns = event->start_ns + event->duration_ns;
	if (!data_grow(&now->mark, &now->mark_capacity, now->mark_count, sizeof(*now->mark))) {
		gather->out_of_memory = true;
		return;
	}
	now->mark[now->mark_count++] =
		(struct data_mark){event->start_ns, end_ns, event->start_ns, end_ns, event->frame,
			(uint64_t)event->process << 16 | event->thread, event->has_frame, -1};
}

static struct data_series *series_of(struct data_gather *gather, const struct trace_event *event)
{
	struct data *data = gather->data;
	uint64_t hash = fnv64_text(FNV64_BASIS, event->name);
	for (size_t i = 0; i < data->series_count; i++) {
		size_t at = (gather->last_series + i) % data->series_count;
		if (gather->series_hash[at] == hash &&
			strcmp(data->series[at].name, event->name) == 0) {
			gather->last_series = at;
			return &data->series[at];
		}
	}
	if (data->series_count == DATA_SERIES_MAX) {
		gather->skipped = true;
		return NULL;
	}
	struct data_series series = {.name = strdup(event->name), .unit = strdup(event->unit)};
	if (!series.name || !series.unit ||
		!data_grow(&data->series, &data->series_capacity, data->series_count,
			sizeof(series))) {
		free(series.name);
		free(series.unit);
		gather->out_of_memory = true;
		return NULL;
	}
	gather->last_series = data->series_count;
	gather->series_hash[data->series_count] = hash;
	data->series[data->series_count] = series;
	return &data->series[data->series_count++];
}

/* Blocks of a session may overlap: only what is later than the last sample is another one. */
static void add_sample(struct data_gather *gather, const struct trace_event *event)
{
	double at_s = data_seconds(gather, event->start_ns);
	struct data_series *series = isfinite(event->value) ? series_of(gather, event) : NULL;
	if (!series || (series->count > 0 && at_s <= series->at_s[series->count - 1])) {
		return;
	}
	size_t capacity = series->capacity;
	if (!data_grow(&series->at_s, &capacity, series->count, sizeof(double)) ||
		!data_grow(&series->value, &series->capacity, series->count, sizeof(double))) {
		gather->out_of_memory = true;
		return;
	}
	series->at_s[series->count] = at_s;
	series->value[series->count++] = event->value;
}

static void add_happening(struct data_gather *gather, const struct trace_event *event)
{
	struct data *data = gather->data;
	struct data_happening one = {.at_s = data_seconds(gather, event->start_ns),
		.kind = strdup(event->word),
		.severity = strdup(event->severity)};
	const char *label = event->kind == TRACE_MARK ? event->name : event->text;
	const char *subject = event->kind == TRACE_MARK ? event->app : event->name;
	bool made =
		asprintf(&one.text, "%s%s%s", subject, subject[0] == '\0' ? "" : ": ", label) >= 0;
	if (!made || !one.kind || !one.severity ||
		!data_grow(&data->happening, &data->happening_capacity, data->happening_count,
			sizeof(one))) {
		free(made ? one.text : NULL);
		free(one.kind);
		free(one.severity);
		gather->out_of_memory = true;
		return;
	}
	text_clean(one.text, true);
	text_clean(one.kind, true);
	text_clean(one.severity, true);
	data->happening[data->happening_count++] = one;
}

static void on_begin(struct trace *trace)
{
	struct data_gather *gather = trace->user;
	gather->begin_ns = trace->from_ns;
	gather->data->begin_us = trace_clock_time_us(&trace->clock, trace->from_ns);
	gather->pairs.report = on_pair;
	gather->pairs.ctx = gather;
}

static bool is_wanted(const struct data_gather *gather, const char *app)
{
	return app[0] != '\0' && (!gather->wanted || strcmp(app, gather->wanted) == 0);
}

static void on_event(struct trace *trace, const struct trace_event *event)
{
	struct data_gather *gather = trace->user;
	uint64_t end_ns = event->start_ns + event->duration_ns;
	if (gather->out_of_memory || end_ns < event->start_ns || end_ns > INT64_MAX) {
		return;
	}
	gather->end_ns = end_ns > gather->end_ns ? end_ns : gather->end_ns;
	if (event->kind == TRACE_SENSOR) {
		add_sample(gather, event);
	} else if (event->kind == TRACE_HAPPENED) {
		add_happening(gather, event);
	} else if (is_wanted(gather, event->app)) {
		snprintf(gather->now.app, sizeof(gather->now.app), "%s", event->app);
		if (event->kind == TRACE_COMPLETE) {
			add_complete(gather, event);
		} else if (event->kind <= TRACE_END) {
			add_half(gather, event);
		} else if (event->kind == TRACE_FRAME) {
			add_mark(gather, event);
		} else if (event->kind == TRACE_MARK) {
			add_happening(gather, event);
		}
	}
}

static void records_finish(struct data_records *records)
{
	free(records->run);
	free(records->mark);
	free(records->stage);
	*records = (struct data_records){.app = ""};
}

static bool is_better(const struct data_records *a, const struct data_records *b)
{
	return a->mark_count != b->mark_count ? a->mark_count > b->mark_count
					      : a->run_count > b->run_count;
}

static void on_end_app(struct trace *trace)
{
	struct data_gather *gather = trace->user;
	trace_pairs_finish(&gather->pairs);
	struct data_records done = gather->now;
	if (is_better(&done, &gather->best)) {
		gather->now = gather->best;
		gather->best = done;
	}
	records_finish(&gather->now);
}

static void on_end(struct trace *trace)
{
	struct data_gather *gather = trace->user;
	int64_t measured_us = json_integer(gather->data->about, "measured_us");
	uint64_t end_ns = trace->to_ns < gather->end_ns ? trace->to_ns : gather->end_ns;
	gather->data->lost = trace->lost;
	gather->data->span_s = end_ns > gather->begin_ns ? data_seconds(gather, end_ns) : 0;
	gather->measured_ns =
		measured_us > 0 ? trace_clock_mono_ns(&trace->clock, measured_us, trace->to_ns) : 0;
}

const struct trace_format data_format = {on_begin, NULL, on_event, on_end_app, on_end};

void data_gather_finish(struct data_gather *gather)
{
	records_finish(&gather->now);
	records_finish(&gather->best);
	free(gather->series_hash);
}
