/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c: measures the facts of a diagnosis. */
#include "daemon/core/diagnose/facts/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/facts/facts_processes.h"
#include "daemon/core/diagnose/facts/frame_facts.h"
#include "daemon/core/diagnose/facts/series.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/status/facts.h"
#include "daemon/util/sysops.h"

#include <errno.h>

struct gatherer {
	struct past_frames past;
	struct span span;
	struct series series;
	struct measures measures;
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

/* The measure that a stage's time is a part of: of the stage around it, else of the frame. */
static size_t measure_around(const struct past_frames *past, const struct app *app, size_t index)
{
	const struct stage *stage = app_stage_find(app, past->stage[index]);
	bool nested = stage && stage->parents > 0 && stage_is_nested(stage);
	for (size_t i = 0; nested && i < past->stages; i++) {
		const struct stage *parent = app_stage_find(app, past->stage[i]);
		if (parent && parent->serial == stage->parent[0].serial) {
			return STAGE_MS + i;
		}
	}
	return BUSY_MS;
}

/* The rate of frames, and the time of stages: the mean of an execution times as many as in the
 * frames that were read. */
static void add_older(struct gatherer *gatherer, const struct core *core, const struct app *app)
{
	const struct past_frames *past = &gatherer->past;
	struct span *span = &gatherer->span;
	struct series *series = &gatherer->series;
	column *mean = gatherer->measures.mean;
	char path[PROTO_PATH_SIZE];
	const char *marker = past->pace > 0			   ? past->stage[past->pace - 1]
			     : past->of_stages && app->loop.marker ? app->loop.marker->name
								   : NULL;
	if (marker) {
		snprintf(path, sizeof(path), "stage/%s/%s/rate", app->name, marker);
	} else {
		snprintf(path, sizeof(path), "frame/%s/fps", app->name);
	}
	series_read(core, path, span, span->older, series);
	for (size_t i = 0; i < span->older; i++) {
		double length_s = span_length_s(span, i) - span_length_s(span, i + 1);
		bool known = series->mean[i] > 0;
		span->frames[i] = known ? round(series->mean[i] * length_s) : 0;
		mean[FRAME_MS][i] = known ? 1000 / series->mean[i] : (double)NAN;
		for (size_t k = 0; k < past->stages; k++) {
			mean[STAGE_MS + k][i] = 0;
		}
	}
	for (size_t k = 0; k < past->stages && span->older > 0; k++) {
		double executions = (double)past->runs[k].count / (double)past->begun;
		size_t around = gatherer->measures.around[k];
		snprintf(path, sizeof(path), "stage/%s/%s/mean_ms", app->name, past->stage[k]);
		series_read(core, path, span, span->older, series);
		for (size_t i = 0; i < span->older; i++) {
			double ms = series->mean[i] * executions, *outer = &mean[around][i];
			mean[STAGE_MS + k][i] += ms;
			if (around == BUSY_MS) {
				*outer = isnan(*outer) ? ms : isnan(ms) ? *outer : *outer + ms;
			} else if (!isnan(ms)) { /* its own time is without this one */
				*outer -= ms;
			}
		}
	}
}

static void add_stage(const struct app *app, const char *name, struct fact_stage *ret)
{
	const struct stage *stage = app_stage_find(app, name);
	memcpy(ret->name, name, sizeof(ret->name));
	ret->role = stage_role_of(name);
	ret->deadline_ms =
		stage && stage->deadline_ns > 0 ? (double)stage->deadline_ns / 1e6 : (double)NAN;
	if (stage) {
		memcpy(ret->category, stage->category, sizeof(ret->category));
		snprintf(ret->unit, sizeof(ret->unit), "%s", stage_unit(stage));
		snprintf(ret->expected_unit, sizeof(ret->expected_unit), "%s",
			app_expected_unit(app, stage));
		ret->cpu_fallback = app_is_cpu_fallback(ret->unit, ret->expected_unit);
	}
}

static void add_settings(const struct core *core, const struct app *app,
	const struct past_frames *past, struct facts *facts, uint64_t now_ns)
{
	struct app_accounting accounting;
	app_accounting(app, &accounting);
	const struct frames *frames = app->frames;
	double fps = frames ? frames->settings.target_fps : apps_target_fps(core->apps, app);
	facts->target_ms = fps > 0 ? 1000 / fps : (double)NAN;
	facts->deadline_ms =
		frames && frames->deadline_ns > 0 ? (double)frames->deadline_ns / 1e6 : (double)NAN;
	facts->dropped =
		accounting.sent > 0 ? (double)accounting.dropped / (double)accounting.sent : 0;
	for (size_t i = 0; i < app->processes; i++) {
		const struct app_process *process = app->process[i];
		struct proto_geometry g;
		if (proto_geometry(process->mapping_size, &g) == 0 && process->threads == g.slots) {
			facts->crowded = g.slots;
		}
	}
	facts->unended = (double)past->unended / fmax(1, (double)(past->unended + past->begun));
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

/* By the time of frames; where that is as usual, of the stage that is late most. */
static void choose(struct gatherer *gatherer, struct facts *facts)
{
	struct span *span = &gatherer->span;
	struct measures *measures = &gatherer->measures;
	double most = 0;
	span_choose(span, measures->mean[FRAME_MS], measures->mean[FRAME_SQUARE]);
	bool slow = span_fact(span, span->paced, span->frames).now > span->slow_ms;
	if (!slow && facts->deadline_ms > 0) {
		span_choose(span, measures->mean[BUSY_MS], NULL);
	}
	for (size_t i = 0; !slow && i < facts->stages; i++) {
		facts_add_deadline(facts, measures, &gatherer->past, span, i);
		if (stage_lateness(&facts->stage[i]) > most) {
			most = stage_lateness(&facts->stage[i]);
			span_choose(span, measures->mean[TOOK_MS], NULL);
		}
	}
}

void facts_read_frames(
	struct gatherer *gatherer, const struct core *core, const struct app *app, uint64_t now_ns)
{
	struct past_frames *past = &gatherer->past;
	past_frames_read(app, app->since_ns, now_ns, past);
	for (size_t i = 0; i < past->count && core->throttle; i++) {
		struct past_frame *frame = &past->frame[i];
		if (frame->throttled == THROTTLE_UNKNOWN) { /* no stage ran in it */
			frame->throttled =
				(uint8_t)throttle_times_at(&core->throttle->times, frame->end_ns);
		}
	}
}

void facts_measure(struct gatherer *gatherer, const struct core *core, const struct app *app,
	uint64_t now_ns, struct facts *ret)
{
	struct past_frames *past = &gatherer->past;
	struct span *span = &gatherer->span;
	struct series *series = &gatherer->series;
	struct measures *measures = &gatherer->measures;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->app, app->name, sizeof(ret->app));
	add_settings(core, app, past, ret, now_ns);
	uint64_t until_ns = app->processes > 0 || past->count == 0
				    ? now_ns
				    : past->frame[past->count - 1].end_ns;
	span_divide(span, past, app->since_ns, until_ns);
	measures_read(measures, past, span, ret->deadline_ms);
	for (size_t i = 0; i < past->stages; i++) {
		measures->around[i] = measure_around(past, app, i);
		add_stage(app, past->stage[i], &ret->stage[i]);
	}
	ret->stages = past->stages;
	add_older(gatherer, core, app);
	choose(gatherer, ret);
	ret->of_stages = past->of_stages;
	ret->silent_s = past->count == 0
				? (double)NAN
				: (double)(until_ns - past->frame[past->count - 1].end_ns) / 1e9;
	ret->warming_up = span->warming_up;
	ret->span_s = span_length_s(span, 0);
	for (size_t i = 0; i < span->count; i++) {
		ret->frames += (uint64_t)span->frames[i];
	}
	facts_add_frames(ret, measures, past, span);
	for (size_t i = 0; i < past->stages; i++) {
		facts_add_deadline(ret, measures, past, span, i);
		facts_add_stage(ret, measures, past, span, i);
	}
	series_read(core, "power/total", span, span->count, series);
	facts_add_throttled(ret, measures, past, span, series->mean);
	series_gather(core, app->name, span, series, ret);
	add_machine(core, ret);
	facts_add_processes(core, app, now_ns, ret);
}
