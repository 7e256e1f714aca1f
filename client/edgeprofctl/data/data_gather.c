/* SPDX-License-Identifier: Apache-2.0 */
/* data_gather.c: collects the events of a trace in memory: records of one app, samples of metrics,
 * and what happened. It is a format of trace.h that writes nothing. */
#include "client/edgeprofctl/data/data_private.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"

void *data_append(
	struct data_gather *gather, void *items, size_t *count, size_t *capacity, size_t size)
{
	void **array = items;
	if (*count == *capacity) {
		size_t more = *capacity == 0 ? 16 : 2 * *capacity;
		void *grown = reallocarray(*array, more, size);
		if (!grown) {
			gather->out_of_memory = true;
			return NULL;
		}
		*array = grown;
		*capacity = more;
	}
	return memset((char *)*array + (*count)++ * size, 0, size);
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
	struct data_stage *stage = data_append(
		gather, &now->stage, &now->stage_count, &now->stage_capacity, sizeof(*stage));
	if (!stage) {
		return -1;
	}
	snprintf(stage->name, sizeof(stage->name), "%s", name);
	snprintf(stage->unit, sizeof(stage->unit), "%s", unit);
	snprintf(stage->category, sizeof(stage->category), "%s", category);
	return (int)(now->last_stage = now->stage_count - 1);
}

static void add_run(struct data_gather *gather, int stage, const struct data_run *run)
{
	struct data_records *now = &gather->now;
	struct data_run *added = stage < 0 ? NULL
					   : data_append(gather, &now->run, &now->run_count,
						     &now->run_capacity, sizeof(*run));
	if (added) {
		*added = *run;
		added->stage = (uint16_t)stage;
		added->frame = DATA_NO_FRAME;
	}
}

static void add_complete(struct data_gather *gather, const struct trace_event *event)
{
	struct data_run run = {.start_ns = event->start_ns,
		.end_ns = event->start_ns + event->duration_ns,
		.frame_id = event->frame,
		.has_frame = event->has_frame,
		.process = event->process,
		.thread = event->thread,
		.depth = (uint8_t)event->depth,
		.failed = event->failed,
		.timed = event->pid > 0,
		.throttled = (int8_t)event->throttled};
	add_run(gather, stage_index(gather, event->name, event->unit, event->category), &run);
}

static void on_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end)
{
	struct data_gather *gather = ctx;
	if (begin && end) {
		struct data_run run = {.start_ns = begin->t_ns,
			.end_ns = end->t_ns,
			.frame_id = begin->frame,
			.has_frame = begin->has_frame,
			.process = begin->process,
			.thread = DATA_BY_ID,
			.timed = true,
			.throttled = -1};
		add_run(gather, stage_index(gather, begin->name, begin->unit, begin->category),
			&run);
	}
}

static void add_mark(struct data_gather *gather, const struct trace_event *event)
{
	struct data_records *now = &gather->now;
	uint64_t end_ns = event->start_ns + event->duration_ns;
	struct data_mark *mark = data_append(
		gather, &now->mark, &now->mark_count, &now->mark_capacity, sizeof(*mark));
	if (mark) {
		*mark = (struct data_mark){event->start_ns, end_ns, event->start_ns, end_ns,
			event->frame, (uint64_t)event->process << 16 | event->thread,
			event->has_frame, -1, 0, 0};
	}
}

/* Samples of a series follow each other, and so do series in each block. */
static struct data_series *series_of(struct data_gather *gather, const struct trace_event *event)
{
	struct data *data = gather->data;
	for (size_t i = 0; i < data->series_count; i++) {
		size_t at = (gather->last_series + i) % data->series_count;
		if (strncmp(data->series[at].name, event->name, PROTO_PATH_SIZE - 1) == 0) {
			gather->last_series = at;
			return &data->series[at];
		}
	}
	if (data->series_count == DATA_SERIES_MAX) {
		gather->skipped = true;
		return NULL;
	}
	struct data_series *series = data_append(gather, &data->series, &data->series_count,
		&data->series_capacity, sizeof(*series));
	if (series) {
		snprintf(series->name, sizeof(series->name), "%s", event->name);
		snprintf(series->unit, sizeof(series->unit), "%s", event->unit);
		gather->last_series = data->series_count - 1;
	}
	return series;
}

/* Blocks of a session may overlap: only what is later than the last sample is another one. */
static void add_sample(struct data_gather *gather, const struct trace_event *event)
{
	double at_s = data_seconds(gather, event->start_ns);
	struct data_series *series = isfinite(event->value) ? series_of(gather, event) : NULL;
	if (!series || (series->count > 0 && at_s <= series->at_s[series->count - 1])) {
		return;
	}
	size_t count = series->count, capacity = series->capacity, size = sizeof(double);
	double *at = data_append(gather, &series->at_s, &count, &capacity, size);
	double *value =
		at ? data_append(gather, &series->value, &series->count, &series->capacity, size)
		   : NULL;
	if (value) {
		*at = at_s;
		*value = event->value;
	}
}

static void add_happening(struct data_gather *gather, const struct trace_event *event)
{
	struct data *data = gather->data;
	const char *label = event->kind == TRACE_MARK ? event->name : event->text;
	const char *subject = event->kind == TRACE_MARK ? event->app : event->name;
	struct data_happening *one = data_append(gather, &data->happening, &data->happening_count,
		&data->happening_capacity, sizeof(*one));
	if (one) {
		one->at_s = data_seconds(gather, event->start_ns);
		snprintf(one->kind, sizeof(one->kind), "%s", event->word);
		snprintf(one->severity, sizeof(one->severity), "%s", event->severity);
		snprintf(one->text, sizeof(one->text), "%s%s%s", subject,
			subject[0] == '\0' ? "" : ": ", label);
		text_clean(one->kind, true);
		text_clean(one->severity, true);
		text_clean(one->text, true);
	}
}

static void on_begin(struct trace *trace)
{
	struct data_gather *gather = trace->user;
	uint32_t app = gather->replay ? TRACE_NO_APP : trace_app_index(trace, gather->wanted_name);
	if (app != TRACE_NO_APP) { /* the daemon may have had no memory for all of the run */
		const cJSON *row = cJSON_GetArrayItem(json_get(trace->start, "apps"), (int)app);
		int64_t oldest_us = json_integer(row, "oldest_mono_us");
		if (json_number(row, "overwritten") > 0 && oldest_us > 0 &&
			(uint64_t)oldest_us * 1000 > trace->from_ns) {
			trace->from_ns = (uint64_t)oldest_us * 1000;
			gather->data->overwritten = true;
		}
	}
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
			trace_pairs_add(&gather->pairs, event);
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
}
