/* SPDX-License-Identifier: Apache-2.0 */
/* series.c: reads metrics along segments and computes their trends. */
#include "daemon/core/diagnose/series.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"
#include "proto/percentile.h"

enum { POINTS = 64, MATCH_MIN = 8, SLOPE_MIN = 4 };

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

void series_read(const struct core *core, const char *path, const struct span *span, size_t first,
	size_t end, struct series *ret)
{
	struct history_point points[POINTS];
	struct history_cursor cursor = {.from_ns = 0};
	struct filling filling = {.span = span, .series = ret, .segment = first, .end = end};
	bool done = false;
	for (size_t i = first; i < end; i++) {
		ret->mean[i] = NAN;
	}
	if (first >= end || !core->history ||
		history_find(core->history, path, &cursor.series) < 0) {
		return;
	}
	const struct segment *from = &span->segment[first], *to = &span->segment[end - 1];
	cursor.from_ns = from->from_ns;
	cursor.to_ns = to->to_ns;
	cursor.step_ns = step_of(from->to_ns - from->from_ns);
	while (!done) {
		size_t n = history_read(core->history, &cursor, points, POINTS, 0, &done);
		for (size_t i = 0; i < n; i++) {
			add_point(&filling, &points[i], points[i].t_ns + cursor.step_ns / 2);
		}
	}
	if (filling.segment < end) {
		finish_segment(&filling);
	}
}

/* Sen 1968; the bound by ranks as in Gilbert 1987, 16.4.2. */
void series_slope(struct series *series, const struct span *span, double *slope, double *slope_low)
{
	size_t n = 0, count = 0;
	*slope = *slope_low = NAN;
	for (size_t i = 0; i < span->count; i++) {
		n += !isnan(series->mean[i]);
		for (size_t k = 0; k < i; k++) {
			double rise = series->mean[i] - series->mean[k];
			uint64_t run_ns = span->segment[i].to_ns - span->segment[k].to_ns;
			if (!isnan(rise)) {
				series->slopes[count++] = rise / ((double)run_ns / 1e9);
			}
		}
	}
	if (n < SLOPE_MIN) {
		return;
	}
	proto_sort(series->slopes, count);
	double points = (double)n;
	double interval = 1.96 * sqrt(points * (points - 1) * (2 * points + 5) / 18);
	double rank = ((double)count - interval) / 2;
	*slope = proto_percentile(series->slopes, count, 50);
	*slope_low = series->slopes[rank > 0 ? (size_t)rank : 0];
}

/* Equal values share the mean of their ranks; that of all ranks is 0. */
static void rank(const double *values, size_t count, double *ret)
{
	for (size_t i = 0; i < count; i++) {
		int above = 0;
		for (size_t k = 0; k < count; k++) {
			above += (values[i] > values[k]) - (values[i] < values[k]);
		}
		ret[i] = above / 2.0;
	}
}

double series_match(const struct series *series, const struct span *span)
{
	double value[2][FACTS_SEGMENTS], ranks[2][FACTS_SEGMENTS];
	double both = 0, one = 0, other = 0;
	size_t count = 0;
	bool changes = false;
	for (size_t i = 0; i < span->count; i++) {
		double frame_ms = segment_mean(&span->segment[i], MEASURE_FRAME_MS);
		if (!isnan(frame_ms) && !isnan(series->mean[i])) {
			value[0][count] = frame_ms;
			value[1][count] = series->mean[i];
			changes |= value[1][count++] != value[1][0];
		}
	}
	if (count < MATCH_MIN || !changes) {
		return NAN;
	}
	rank(value[0], count, ranks[0]);
	rank(value[1], count, ranks[1]);
	for (size_t i = 0; i < count; i++) {
		both += ranks[0][i] * ranks[1][i];
		one += ranks[0][i] * ranks[0][i];
		other += ranks[1][i] * ranks[1][i];
	}
	return one > 0 && other > 0 ? both / sqrt(one * other) : (double)NAN;
}

static double mean_in(const struct series *series, const struct span *span, bool usual)
{
	double sum = 0, count = 0;
	for (size_t i = 0; i < span->count; i++) {
		bool wanted = usual ? span->is_usual[i] : i >= span->now;
		if (wanted && !isnan(series->mean[i])) {
			sum += series->mean[i];
			count++;
		}
	}
	return count > 0 ? sum / count : (double)NAN;
}

/* When it left the usual level for that of now and never came back. */
static double left_since(
	const struct series *series, const struct span *span, const struct fact *mean)
{
	double change = mean->now - mean->usual, square = 0, count = 0;
	size_t first = span->count;
	for (size_t i = 0; i < span->count; i++) {
		if (span->is_usual[i] && !isnan(series->mean[i])) {
			square += pow(series->mean[i] - mean->usual, 2);
			count++;
		}
	}
	double level = fmax(0.08 * fabs(mean->usual), 3 * sqrt(square / count));
	if (isnan(change) || span->usual_is_now || fabs(change) <= level) {
		return NAN;
	}
	level = fmax(level, fabs(change) / 4);
	while (first > 0) {
		double away = (series->mean[first - 1] - mean->usual) * (change > 0 ? 1 : -1);
		if (!isnan(away) && away <= level) {
			break;
		}
		first--;
	}
	if (first == span->count) {
		return NAN;
	}
	return (double)(span->segment[span->count - 1].to_ns - span->segment[first].from_ns) / 1e9;
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
	memcpy(ret->path, metric->name, sizeof(ret->path));
	scratch->least = scratch->most = NAN;
	series_read(core, metric->name, span, 0, span->older, scratch);
	series_read(core, metric->name, span, span->older, span->count, scratch);
	if (isnan(metric->value)) { /* what it was is not what it is now */
		for (size_t i = span->now; i < span->count; i++) {
			scratch->mean[i] = NAN;
		}
		scratch->least = scratch->most = NAN;
	}
	ret->mean.now = mean_in(scratch, span, false);
	if (isnan(ret->mean.now)) { /* no sample is that new: one that is read seldom */
		ret->mean.now = ret->least = ret->most = metric->value;
	} else {
		ret->least = scratch->least;
		ret->most = scratch->most;
	}
	if (span->has_usual) {
		ret->mean.usual = span->usual_is_now ? ret->mean.now : mean_in(scratch, span, true);
	}
	ret->first_s = left_since(scratch, span, &ret->mean);
	ret->frames_match = series_match(scratch, span);
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
			.frames_match = NAN};
		if (!found[i]) {
			continue;
		}
		gather_one(core, found[i], span, scratch, series);
		if (i == FACT_APP_RSS || i == FACT_MEMORY_AVAILABLE) {
			series_slope(scratch, span, &series->slope, &series->slope_low);
		}
	}
}
