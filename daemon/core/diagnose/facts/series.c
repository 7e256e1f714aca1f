/* SPDX-License-Identifier: Apache-2.0 */
/* series.c: reads metrics along segments. */
#include "daemon/core/diagnose/facts/series.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"

enum { POINTS = 64 };

static const uint64_t SECOND = 1000000000;

enum how { MAX, MIN };

static const struct {
	const char *path;
	enum how how;
} sources[FACT_METRIC_COUNT] = {
#define X(name, path, how) [FACT_##name] = {path, how},
	FACT_METRICS(X)
#undef X
};

/* The coarsest step of which a segment has one: what history answers with the least work. */
static uint64_t step_of(uint64_t length_ns)
{
	return length_ns >= 60 * SECOND ? 60 * SECOND : length_ns >= 10 * SECOND ? 10 * SECOND : 0;
}

struct filling {
	const struct span *span;
	struct series *series;
	size_t segment, end;
	double sum, count;
};

static void finish_segment(struct filling *filling)
{
	if (filling->count > 0) {
		filling->series->mean[filling->segment] = filling->sum / filling->count;
	}
	filling->sum = filling->count = 0;
	filling->segment++;
}

/* Points come in order of time. */
static void add_point(struct filling *filling, const struct history_point *point, uint64_t t_ns)
{
	const struct segment *segment = filling->span->segment;
	while (filling->segment < filling->end && t_ns > segment[filling->segment].to_ns) {
		finish_segment(filling);
	}
	if (filling->segment == filling->end || t_ns <= segment[filling->segment].from_ns) {
		return;
	}
	filling->sum += point->mean * point->count;
	filling->count += point->count;
	if (filling->segment >= filling->span->now) {
		filling->series->least = fmin(filling->series->least, point->min);
		filling->series->most = fmax(filling->series->most, point->max);
	}
}

/* Segments up to filling->end, all of one length. */
static void read_part(
	const struct core *core, const struct span *span, struct filling *filling, uint32_t number)
{
	struct history_point points[POINTS];
	const struct segment *from = &span->segment[filling->segment];
	const struct segment *to = &span->segment[filling->end - 1];
	struct history_cursor cursor = {.series = number,
		.from_ns = from->from_ns,
		.to_ns = to->to_ns,
		.step_ns = step_of(from->to_ns - from->from_ns)};
	bool done = false;
	while (!done) {
		size_t n = history_read(core->history, &cursor, points, POINTS, 0, &done);
		for (size_t i = 0; i < n; i++) {
			add_point(filling, &points[i], points[i].t_ns + cursor.step_ns / 2);
		}
	}
	while (filling->segment < filling->end) {
		finish_segment(filling);
	}
}

void series_read(const struct core *core, const char *path, const struct span *span, size_t end,
	struct series *ret)
{
	uint32_t number;
	const size_t ends[] = {end < span->older ? end : span->older, end};
	struct filling filling = {.span = span, .series = ret};
	ret->least = ret->most = NAN;
	for (size_t i = 0; i < end; i++) {
		ret->mean[i] = NAN;
	}
	if (!core->history || history_find(core->history, path, &number) < 0) {
		return;
	}
	for (int i = 0; i < 2; i++) {
		filling.end = ends[i];
		if (filling.segment < filling.end) {
			read_part(core, span, &filling, number);
		}
	}
}

/* When it left the usual level for that of now and never came back. */
static double left_since(const struct span *span, const column means, const struct fact *mean)
{
	double change = mean->now - mean->usual, sign = change > 0 ? 1 : -1;
	double square = 0, count = 0;
	for (size_t i = 0; i < span->count; i++) {
		if (span->is_usual[i] && !isnan(means[i])) {
			square += pow(means[i] - mean->usual, 2);
			count++;
		}
	}
	double level = fmax(0.08 * fabs(mean->usual), 3 * sqrt(square / count));
	if (isnan(change) || span->usual_is_now || fabs(change) <= level) {
		return NAN;
	}
	return span_since(span, means, sign, mean->usual + sign * fmax(level, fabs(change) / 4));
}

/* The metric that the value is from at present; of several those that have a value count. */
static void resolve(
	struct metrics *metrics, const char *app, const struct metric *found[FACT_METRIC_COUNT])
{
	char path[FACT_METRIC_COUNT][PROTO_PATH_SIZE];
	enum fact_metric wild[FACT_METRIC_COUNT];
	size_t wilds = 0;
	for (size_t i = 0; i < FACT_METRIC_COUNT; i++) {
		const char *of_app = strstr(sources[i].path, "%s");
		int before = of_app ? (int)(of_app - sources[i].path) : (int)sizeof(path[i]);
		snprintf(path[i], sizeof(path[i]), "%.*s%s%s", before, sources[i].path,
			of_app ? app : "", of_app ? of_app + 2 : "");
		if (strchr(path[i], '*')) {
			wild[wilds++] = (enum fact_metric)i;
			found[i] = NULL;
		} else {
			found[i] = metrics_find(metrics, path[i]);
		}
	}
	uint32_t cursor = 0;
	const struct metric *metric;
	while ((metric = metrics_next(metrics, &cursor))) {
		for (size_t i = 0; i < wilds; i++) {
			const struct metric **best = &found[wild[i]];
			if (metric->name[0] != path[wild[i]][0] ||
				!proto_glob_match(path[wild[i]], metric->name)) {
				continue;
			}
			double sign = sources[wild[i]].how == MIN ? -1 : 1;
			if (!*best || isnan((*best)->value) ||
				(metric->value - (*best)->value) * sign > 0) {
				*best = metric;
			}
		}
	}
}

static void gather_one(const struct core *core, const struct metric *metric,
	const struct span *span, struct series *scratch, struct fact_series *ret)
{
	snprintf(ret->path, sizeof(ret->path), "%s", metric->name);
	series_read(core, metric->name, span, span->count, scratch);
	if (isnan(metric->value)) { /* what it was is not what it is now */
		for (size_t i = span->now; i < span->count; i++) {
			scratch->mean[i] = NAN;
		}
	}
	ret->mean = span_fact(span, scratch->mean, NULL);
	ret->least = scratch->least;
	ret->most = scratch->most;
	if (isnan(ret->mean.now)) { /* no sample is that new: one that is read seldom */
		ret->mean.now = ret->least = ret->most = metric->value;
	}
	if (span->usual_is_now) {
		ret->mean.usual = ret->mean.now;
	}
	ret->first_s = left_since(span, scratch->mean, &ret->mean);
}

void series_gather(const struct core *core, const char *app, const struct span *span,
	struct series *scratch, struct facts *facts)
{
	const struct metric *found[FACT_METRIC_COUNT];
	resolve(core->metrics, app, found);
	for (size_t i = 0; i < FACT_METRIC_COUNT; i++) {
		struct fact_series *series = &facts->metric[i];
		*series = (struct fact_series){.mean = {NAN, NAN},
			.least = NAN,
			.most = NAN,
			.first_s = NAN,
			.slope = NAN,
			.slope_low = NAN,
			.begin = NAN,
			.frames_match = NAN};
		if (!found[i]) {
			continue;
		}
		gather_one(core, found[i], span, scratch, series);
		series->frames_match = span_match(span, span->paced, scratch->mean);
		bool rises = scratch->mean[span->now] > 1.02 * scratch->mean[0];
		if (rises || i == FACT_APP_RSS || i == FACT_MEMORY_AVAILABLE) {
			double third, low; /* what settles does not grow in the last one */
			span_slope(span, 0, scratch->mean, &series->slope, &series->slope_low);
			span_slope(span, span->count * 2 / 3, scratch->mean, &third, &low);
			size_t first = 0;
			while (first < span->now && isnan(scratch->mean[first])) {
				first++;
			}
			series->begin = scratch->mean[first];
			series->slope = fmin(series->slope, third);
			series->slope_low = fmin(series->slope_low, low);
		}
	}
}
