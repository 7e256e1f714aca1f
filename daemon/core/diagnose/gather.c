/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c: measures the facts of a diagnosis. */
#include "daemon/core/diagnose/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/facts_processes.h"
#include "daemon/core/diagnose/frame_facts.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/modes.h"
#include "daemon/util/sysops.h"
#include "proto/percentile.h"

#include <errno.h>

struct gatherer {
	struct past_frames past;
	struct span span;
	struct series series;
	struct executions executions;
	double values[PAST_FRAMES];
};

int gatherer_create(struct gatherer **ret)
{
	struct gatherer *gatherer = mem_zalloc(sizeof(*gatherer));
	if (!gatherer) {
		return -ENOMEM;
	}
	*ret = gatherer;
	return 0;
}

void gatherer_destroy(struct gatherer *gatherer)
{
	free(gatherer);
}

static const struct stage *stage_named(const struct app *app, const char *name)
{
	size_t i = 0;
	while (i < app->stages && strcmp(app->stage[i]->name, name) != 0) {
		i++;
	}
	return i < app->stages ? app->stage[i] : NULL;
}

/* The measure that a stage's time is a part of: of the stage around it, else of the frame. */
static int measure_around(const struct gatherer *gatherer, const struct app *app, size_t index)
{
	const struct stage *stage = stage_named(app, gatherer->past.stage[index]);
	bool nested = stage && stage->parents > 0 && stage->nested_count * 2 > stage->count;
	for (size_t i = 0; nested && i < gatherer->past.stages; i++) {
		const struct stage *parent = stage_named(app, gatherer->past.stage[i]);
		if (parent && parent->serial == stage->parent[0].serial) {
			return MEASURE_STAGE_MS + (int)i;
		}
	}
	return MEASURE_BUSY_MS;
}

/* The time of a stage in older segments: the mean of an execution times as many as now. */
static void add_older_stage(
	struct gatherer *gatherer, const struct core *core, const struct app *app, size_t index)
{
	struct span *span = &gatherer->span;
	struct series *series = &gatherer->series;
	char path[PROTO_PATH_SIZE];
	int around = measure_around(gatherer, app, index);
	double executions =
		(double)gatherer->executions.of[index].count / gatherer->executions.frames;
	snprintf(path, sizeof(path), "stage/%s/%s/mean_ms", app->name, gatherer->past.stage[index]);
	series_read(core, path, span, 0, span->older, series);
	for (size_t i = 0; i < span->older; i++) {
		struct segment *segment = &span->segment[i];
		double ms = series->mean[i] * executions;
		segment_add(segment, MEASURE_STAGE_MS + (int)index, ms, segment->frames);
		if (around != MEASURE_BUSY_MS) { /* its own time is without this one */
			ms = -ms;
		}
		if (!isnan(ms)) {
			segment->of[around].sum += ms * segment->frames;
			segment->of[MEASURE_BUSY_MS].count = segment->frames;
		}
	}
}

static void add_older(struct gatherer *gatherer, const struct core *core, const struct app *app)
{
	struct span *span = &gatherer->span;
	struct series *series = &gatherer->series;
	char path[PROTO_PATH_SIZE];
	if (gatherer->past.of_stages && app->loop.marker) {
		snprintf(path, sizeof(path), "stage/%s/%s/rate", app->name, app->loop.marker->name);
	} else {
		snprintf(path, sizeof(path), "frame/%s/fps", app->name);
	}
	series_read(core, path, span, 0, span->older, series);
	for (size_t i = 0; i < span->older; i++) {
		struct segment *segment = &span->segment[i];
		double length_s = (double)(segment->to_ns - segment->from_ns) / 1e9;
		segment->frames = series->mean[i] > 0 ? round(series->mean[i] * length_s) : 0;
		segment_add(segment, MEASURE_FRAME_MS, 1000 / series->mean[i], segment->frames);
	}
	for (size_t i = 0; i < gatherer->past.stages && span->older > 0; i++) {
		add_older_stage(gatherer, core, app, i);
	}
}

static void add_frames(struct gatherer *gatherer, struct facts *facts)
{
	const struct span *span = &gatherer->span;
	const struct past_frames *past = &gatherer->past;
	facts->span_s = span->count > 0 ? (double)(span->segment[span->count - 1].to_ns -
						   span->segment[0].from_ns) /
						  1e9
					: 0;
	for (size_t i = 0; i < span->count; i++) {
		facts->frames += (uint64_t)span->segment[i].frames;
	}
	facts->of_stages = past->of_stages;
	facts->warming_up = span->warming_up;
	facts->frame_ms = span_fact(span, MEASURE_FRAME_MS);
	facts->busy_ms = span_fact(span, MEASURE_BUSY_MS);
	facts->latency_ms = span_fact(span, MEASURE_LATENCY_MS);
	facts->miss_percent = span_fact(span, MEASURE_MISSED);
	facts->miss_percent.now *= 100;
	facts->miss_percent.usual *= 100;
	facts->in_flight = facts->latency_ms.now / facts->frame_ms.now;
	facts->since_s = span_slower_since(span);
	facts->run_delay_ms = span_fact(span, MEASURE_RUN_DELAY_MS);
	facts->involuntary = span_fact(span, MEASURE_INVOLUNTARY);
	facts->voluntary = span_fact(span, MEASURE_VOLUNTARY);
	facts->major_faults = span_fact(span, MEASURE_MAJOR_FAULTS);
	facts->minor_faults = span_fact(span, MEASURE_MINOR_FAULTS);
	facts_add_percentiles(facts, span, past, gatherer->values);
	facts_add_slow(facts, span, past, gatherer->values);
}

static void add_stage(
	struct gatherer *gatherer, const struct app *app, size_t index, struct facts *facts)
{
	struct fact_stage *ret = &facts->stage[index];
	const char *name = gatherer->past.stage[index];
	const struct stage *stage = stage_named(app, name);
	double *ms = gatherer->executions.of[index].ms;
	size_t count = gatherer->executions.of[index].count;
	size_t kept = count < EXECUTIONS ? count : EXECUTIONS;
	double of_ms = gatherer->executions.of[index].cpu_of_ms, spikes_ms = 0;
	memcpy(ret->name, name, sizeof(ret->name));
	ret->role = stage_role_of(name);
	if (stage) {
		snprintf(ret->unit, sizeof(ret->unit), "%s", stage_unit(stage));
		snprintf(ret->expected_unit, sizeof(ret->expected_unit), "%s",
			app_expected_unit(app, stage));
		ret->cpu_fallback = app_is_cpu_fallback(ret->unit, ret->expected_unit);
	}
	ret->ms = span_fact(&gatherer->span, MEASURE_STAGE_MS + (int)index);
	ret->wait_ms = span_fact(&gatherer->span, MEASURE_WAIT_MS + (int)index).now;
	ret->share = ret->ms.now / facts->busy_ms.now;
	ret->cpu_ratio = of_ms > 0 ? gatherer->executions.of[index].cpu_ms / of_ms : (double)NAN;
	ret->executions = (double)count / gatherer->executions.frames;
	proto_sort(ms, kept);
	ret->p50_ms = proto_percentile(ms, kept, 50);
	ret->p99_ms = proto_percentile(ms, kept, 99);
	for (size_t i = 0; i < kept; i++) {
		spikes_ms += fmax(ms[i] - 2 * ret->p50_ms, 0);
	}
	ret->excess_ms = kept > 0 ? spikes_ms / (double)kept * ret->executions : 0;
}

static void add_settings(
	const struct app *app, const struct past_frames *past, struct facts *facts, uint64_t now_ns)
{
	struct app_accounting accounting;
	app_accounting(app, &accounting);
	const struct frames *frames = app->frames;
	bool aimed = frames && frames->settings.target_fps > 0;
	facts->target_ms = aimed ? 1000 / frames->settings.target_fps : (double)NAN;
	facts->deadline_ms =
		frames && frames->deadline_ns > 0 ? (double)frames->deadline_ns / 1e6 : (double)NAN;
	facts->dropped =
		accounting.sent > 0 ? (double)accounting.dropped / (double)accounting.sent : 0;
	facts->event_rate =
		past->events > 0 && now_ns > past->first_event_ns
			? (double)past->events * 1e9 / (double)(now_ns - past->first_event_ns)
			: 0;
}

/* A zone's passive trip, else the highest limit of the alerts on temperature. */
static double critical_of(const struct core *core, const char *headroom)
{
	char path[PROTO_PATH_SIZE];
	const struct alert_rule *rule;
	const char *zone = strchr(headroom, '/');
	const struct metric *distance = metrics_find(core->metrics, headroom);
	snprintf(path, sizeof(path), "temperature%s", zone ? zone : "");
	const struct metric *metric = metrics_find(core->metrics, path);
	double limit = distance && metric ? distance->value + metric->value : (double)NAN;
	for (size_t i = 0; isnan(limit) && core->alerts && (rule = alerts_rule_at(core->alerts, i));
		i++) {
		if (rule->kind == ALERT_ABOVE && strcmp(rule->metric, "temperature/max") == 0) {
			limit = fmax(limit, fmax(rule->threshold, rule->critical));
		}
	}
	return limit;
}

static void add_machine(const struct core *core, struct facts *facts)
{
	facts->cpus = core->facts ? core->facts->cpus : 0;
	facts->virtual_machine = core->facts && core->facts->virtual_machine;
	facts->critical_celsius = critical_of(core, facts->metric[FACT_HEADROOM].path);
}

void facts_gather(struct gatherer *gatherer, const struct core *core, const struct app *app,
	uint64_t now_ns, struct facts *ret)
{
	struct past_frames *past = &gatherer->past;
	struct span *span = &gatherer->span;
	struct series *series = &gatherer->series;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->app, app->name, sizeof(ret->app));
	past_frames_read(app, app->since_ns, now_ns, past);
	for (size_t i = 0; i < past->count && core->throttle; i++) {
		struct past_frame *frame = &past->frame[i];
		if (frame->throttled == THROTTLE_UNKNOWN) { /* no stage ran in it */
			frame->throttled =
				(uint8_t)throttle_times_at(&core->throttle->times, frame->end_ns);
		}
	}
	add_settings(app, past, ret, now_ns);
	uint64_t until_ns = app->processes > 0 || past->count == 0
				    ? now_ns
				    : past->frame[past->count - 1].end_ns;
	span_divide(span, past, app->since_ns, until_ns, ret->deadline_ms);
	executions_read(&gatherer->executions, app, past, span, until_ns);
	add_older(gatherer, core, app);
	span_choose(span);
	add_frames(gatherer, ret);
	ret->stages = past->stages;
	for (size_t i = 0; i < past->stages; i++) {
		add_stage(gatherer, app, i, ret);
	}
	series_read(core, "power/total", span, span->older, span->count, series);
	facts_add_throttled(ret, span, past, series, gatherer->values);
	series_gather(core, app->name, span, series, ret);
	add_machine(core, ret);
	facts_add_processes(core, app, now_ns, ret);
}
