/* SPDX-License-Identifier: Apache-2.0 */
/* comparison.c: makes rows of what two sides have in common. The verdict of a row is that of its
 * own interval of 95 %. A regression is more: the row decides, it is worse by the threshold, and
 * that is shown in view of the number of all rows that decide. */
#include "client/edgeprofctl/compare/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/compare/statistics.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/similar.h"
#include "proto/text.h"

enum { THRESHOLD_PERCENT = 15 };
static const double ROUNDING_PERCENT = 1e-9; /* 11.5 is 14.999999999999991 % more than 10 */

/* A stage that takes less than this share of the frames' time on both sides decides nothing: some
 * microseconds more do not matter to who waits for the frame. */
#define SHARE_MIN 0.01

struct comparison {
	const struct side *side[2];
	const struct options *options;
	double threshold_percent;
	cJSON *rows;
	double frames_ms[2];	/* the time of all frames */
	size_t kept[2], all[2]; /* values of frames that match */
};

/* The rows that a series makes. */
static const struct row_kind {
	const char *series; /* glob */
	enum statistic statistic;
	const char *suffix;
	bool decides, higher_is_better;
	const char *worse, *better;
} kinds[] = {
	{"frames", STATISTIC_MEAN, "/mean_ms", true, false, "slower", "faster"},
	{"frames", STATISTIC_P50, "/p50_ms", false, false, "slower", "faster"},
	{"frames", STATISTIC_P95, "/p95_ms", true, false, "slower", "faster"},
	{"frames", STATISTIC_P99, "/p99_ms", false, false, "slower", "faster"},
	{"frames", STATISTIC_MEAN, "/fps", false, true, "slower", "faster"},
	{"total", STATISTIC_MEAN, "/mean_ms", true, false, "slower", "faster"},
	{"total", STATISTIC_P50, "/p50_ms", false, false, "slower", "faster"},
	{"total", STATISTIC_P95, "/p95_ms", true, false, "slower", "faster"},
	{"total", STATISTIC_P99, "/p99_ms", false, false, "slower", "faster"},
	{"stages/*", STATISTIC_MEAN, "/mean_ms", true, false, "slower", "faster"},
	{"stages/*", STATISTIC_P95, "/p95_ms", false, false, "slower", "faster"},
	{"power", STATISTIC_MEAN, "/mean_mw", false, false, "higher", "lower"},
	{"energy", STATISTIC_MEAN, "/frame_mj", false, false, "higher", "lower"},
	{"memory/peak_bytes", STATISTIC_MEAN, "", false, false, "higher", "lower"},
	{"model/size_mb", STATISTIC_MEAN, "", false, false, "larger", "smaller"},
	{"accuracy", STATISTIC_MEAN, "", false, true, "lower", "higher"},
};

/* Adds how often each condition occurs in the series. */
static void count_conditions(const struct side *side, const char *series, size_t *counts)
{
	for (size_t run = 0; run < side->count; run++) {
		const struct measured_series *from = measured_series(side->run[run], series);
		for (size_t i = 0; from && i < from->count; i++) {
			if (from->condition[i] != CONDITION_UNKNOWN) {
				counts[from->condition[i]]++;
			}
		}
	}
}

/* What is picked of a side to match the other: of each condition as many values as the side with
 * fewer of them has, evenly over time and all runs. */
struct matching {
	size_t own[CONDITIONS], other[CONDITIONS], passed[CONDITIONS];
};

static bool is_picked(struct matching *matching, int condition)
{
	if (condition == CONDITION_UNKNOWN) {
		return false;
	}
	size_t all = matching->own[condition], other = matching->other[condition];
	size_t wanted = all < other ? all : other, at = matching->passed[condition]++;
	return (at + 1) * wanted / all > at * wanted / all;
}

/* All statistics of a series of one side; how many values they are of. other: the side to match, or
 * NULL. */
static size_t estimate_side(const struct side *side, const struct side *other, const char *series,
	struct estimate ret[STATISTICS])
{
	struct estimate runs[STATISTICS][MEASURED_RUNS_MAX], run[STATISTICS];
	struct matching *matching = other ? ctl_memory(1, sizeof(*matching)) : NULL;
	size_t values = 0, used = 0;
	if (matching) {
		count_conditions(side, series, matching->own);
		count_conditions(other, series, matching->other);
	}
	for (size_t i = 0; i < side->count; i++) {
		const struct measured_series *from = measured_series(side->run[i], series);
		double *picked = ctl_memory(from ? from->count : 0, sizeof(*picked));
		size_t count = 0;
		for (size_t j = 0; from && j < from->count; j++) {
			if (!matching || is_picked(matching, from->condition[j])) {
				picked[count++] = from->value[j];
			}
		}
		estimate_values(picked, count, run);
		free(picked);
		for (int s = 0; s < STATISTICS; s++) {
			runs[s][used] = run[s];
		}
		used += count > 0;
		values += count;
	}
	for (int s = 0; s < STATISTICS; s++) {
		ret[s] = estimate_runs(runs[s], used);
	}
	free(matching);
	return values;
}

static void add_row(struct comparison *comparison, const char *name, const struct row_kind *kind,
	struct estimate of[2], const size_t count[2], bool decides)
{
	if (strcmp(kind->suffix, "/fps") == 0) {
		of[0].value = 1000 / of[0].value;
		of[1].value = 1000 / of[1].value;
	}
	struct difference difference = difference_of(&of[0], &of[1]);
	bool worse = kind->higher_is_better ? difference.percent < 0 : difference.percent > 0;
	bool shown = difference.low > 0 || difference.high < 0;
	cJSON *row = ctl_parameters("name", name);
	json_add_number(row, "baseline", of[0].value);
	json_add_number(row, "current", of[1].value);
	json_add_number(row, "difference_percent", difference.percent);
	json_add_number(row, "low_percent", difference.low);
	json_add_number(row, "high_percent", difference.high);
	json_add_number(row, "p", difference.p);
	cJSON_AddNumberToObject(row, "baseline_count", (double)count[0]);
	cJSON_AddNumberToObject(row, "current_count", (double)count[1]);
	cJSON_AddBoolToObject(row, "decides", decides);
	cJSON_AddBoolToObject(row, "worse", shown && worse);
	cJSON_AddStringToObject(row, "verdict",
		isnan(of[1].value)		 ? "only in the baseline"
		: isnan(of[0].value)		 ? "not in the baseline"
		: shown				 ? (worse ? kind->worse : kind->better)
		: !isnan(difference.p)		 ? "no difference shown"
		: count[0] == 1 || count[1] == 1 ? "one value"
						 : "too few values");
	cJSON_AddItemToArray(comparison->rows, row);
}

static void add_rows(struct comparison *comparison, const char *series)
{
	const struct options *options = comparison->options;
	const struct side *const *side = comparison->side;
	struct estimate of[2][STATISTICS], unmatched[STATISTICS];
	size_t count[2];
	bool is_small = text_starts_with(series, "stages/");
	for (int i = 0; i < 2; i++) {
		const struct side *other = options->thermal ? side[!i] : NULL;
		count[i] = estimate_side(side[i], other, series, of[i]);
		double ms = of[i][STATISTIC_MEAN].value * (double)count[i];
		if (strcmp(series, "frames") == 0) {
			comparison->frames_ms[i] = ms;
			comparison->kept[i] = count[i];
			comparison->all[i] = estimate_side(side[i], NULL, series, unmatched);
		}
		is_small = is_small && ms < SHARE_MIN * comparison->frames_ms[i];
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && count[0] + count[1] > 0; i++) {
		char name[MEASURED_NAME_SIZE + 16];
		snprintf(name, sizeof(name), "%s%s", series, kinds[i].suffix);
		if (proto_glob_match(kinds[i].series, series) &&
			(!options->metric || proto_query_match(options->metric, name))) {
			struct estimate both[2] = {
				of[0][kinds[i].statistic], of[1][kinds[i].statistic]};
			add_row(comparison, name, &kinds[i], both, count,
				options->metric || (kinds[i].decides && !is_small));
		}
	}
}

/* Each series that either side has, in the order of the baseline. */
static void add_all(struct comparison *comparison)
{
	cJSON *seen = cJSON_CreateObject();
	for (int i = 0; i < 2; i++) {
		const struct side *side = comparison->side[i];
		for (size_t run = 0; run < side->count; run++) {
			for (size_t j = 0; j < side->run[run]->series_count; j++) {
				const char *name = side->run[run]->series[j].name;
				if (!json_get(seen, name)) {
					cJSON_AddTrueToObject(seen, name);
					add_rows(comparison, name);
				}
			}
		}
	}
	cJSON_Delete(seen);
}

/* Adjusts the p of the rows that decide for their number (Bonferroni), and marks regressions. */
static void judge(struct comparison *comparison, cJSON *result)
{
	size_t judged = 0, regressions = 0;
	cJSON *row;
	cJSON_ArrayForEach(row, comparison->rows)
	{
		judged += json_true(row, "decides") && json_get(row, "p");
	}
	cJSON_ArrayForEach(row, comparison->rows)
	{
		cJSON *p = cJSON_GetObjectItemCaseSensitive(row, "p");
		bool decides = json_true(row, "decides") && cJSON_IsNumber(p);
		if (decides) {
			cJSON_SetNumberValue(p, fmin(p->valuedouble * (double)judged, 1));
		}
		bool regression = decides && json_true(row, "worse") &&
				  p->valuedouble < REGRESSION_P &&
				  fabs(json_number(row, "difference_percent")) >=
					  comparison->threshold_percent - ROUNDING_PERCENT;
		cJSON_AddBoolToObject(row, "regression", regression);
		regressions += regression;
	}
	cJSON_AddNumberToObject(result, "regressions", (double)regressions);
	cJSON_AddStringToObject(result, "verdict",
		judged == 0	  ? "no data"
		: regressions > 0 ? "regression"
				  : "no regression");
}

/* The texts of one that the other lacks, or, unless only_absent, has otherwise. */
static void add_differences(cJSON *list, const struct side *side, const struct side *other,
	const char *name, const char *other_name, bool only_absent)
{
	const cJSON *tag = side->run[0]->tags ? side->run[0]->tags->child : NULL;
	for (; tag; tag = tag->next) {
		const char *theirs = json_text(other->run[0]->tags, tag->string);
		if (!theirs || (!only_absent && strcmp(tag->valuestring, theirs) != 0)) {
			cJSON *difference = ctl_parameters("name", tag->string);
			ctl_add_text(difference, name, tag->valuestring);
			ctl_add_text(difference, other_name, theirs);
			cJSON_AddItemToArray(list, difference);
		}
	}
}

/* Why nothing could be judged. */
static void add_reason(cJSON *object, const struct comparison *comparison)
{
	const struct options *options = comparison->options;
	const struct side *const *side = comparison->side;
	const struct measured *failed = side[side[0]->failed ? 0 : 1]->failed;
	char bytes[1024];
	struct text text = TEXT_IN(bytes);
	if (failed) {
		text_add(&text, "'%s' failed: %s", failed->name, failed->error);
	} else if (options->metric && !comparison->rows->child) {
		const struct measured *run = side[0]->run[0];
		struct similar similar = similar_to(options->metric);
		for (size_t i = 0; i < run->series_count; i++) {
			const char *name = run->series[i].name, *last = strrchr(name, '/');
			bool word = last && !strchr(options->metric, '/');
			similar_add(&similar, word ? last + 1 : name);
		}
		text_add(&text, "nothing that was measured matches '%s'", options->metric);
		similar_ask(&similar, &text);
	} else {
		text_add(&text, "too few values to compare%s",
			options->thermal ? ": temperature and clock do not match in 10 of them"
					 : "; each side requires at least 10");
	}
	cJSON_AddStringToObject(object, "reason", bytes);
}

/* How many runs a side has, the values of warm-up that were skipped, and which lack values. */
static void add_side(cJSON *object, const struct side *side, const char *which, cJSON *incomplete)
{
	char name[32];
	size_t runs = 0, warmup = 0;
	for (size_t i = 0; i < side->count; i++) {
		const struct measured *run = side->run[i];
		runs += !run->error;
		warmup += run->warmup;
		if (run->incomplete) {
			cJSON *row = ctl_parameters("name", run->name);
			ctl_add_text(row, "reason", run->incomplete);
			cJSON_AddItemToArray(incomplete, row);
		}
	}
	ctl_add_text(object, which, side->label);
	snprintf(name, sizeof(name), "%s_runs", which);
	cJSON_AddNumberToObject(object, name, (double)runs);
	snprintf(name, sizeof(name), "%s_warmup", which);
	cJSON_AddNumberToObject(object, name, (double)warmup);
}

cJSON *compare_sides(
	const struct options *options, const struct side *baseline, const struct side *current)
{
	struct comparison comparison = {.side = {baseline, current},
		.options = options,
		.threshold_percent =
			options->threshold > 0 ? options->threshold : THRESHOLD_PERCENT,
		.rows = cJSON_CreateArray()};
	cJSON *object = cJSON_CreateObject(), *incomplete = cJSON_CreateArray();
	add_side(object, baseline, "baseline", incomplete);
	add_side(object, current, "current", incomplete);
	add_all(&comparison);
	judge(&comparison, object);
	if (strcmp(json_word(object, "verdict"), "no data") == 0) {
		add_reason(object, &comparison);
	}
	json_add_number(object, "threshold_percent", comparison.threshold_percent);
	if (options->thermal) {
		cJSON *thermal = cJSON_AddObjectToObject(object, "thermal");
		cJSON_AddNumberToObject(thermal, "baseline_kept", (double)comparison.kept[0]);
		cJSON_AddNumberToObject(thermal, "baseline_frames", (double)comparison.all[0]);
		cJSON_AddNumberToObject(thermal, "current_kept", (double)comparison.kept[1]);
		cJSON_AddNumberToObject(thermal, "current_frames", (double)comparison.all[1]);
	}
	cJSON *environment = cJSON_AddArrayToObject(object, "environment");
	add_differences(environment, baseline, current, "baseline", "current", false);
	add_differences(environment, current, baseline, "current", "baseline", true);
	cJSON_AddItemToObject(object, "incomplete", incomplete);
	cJSON_AddItemToObject(object, "rows", comparison.rows);
	return object;
}

cJSON *describe_side(const struct side *side, const cJSON *first)
{
	static const struct {
		const char *name, *series;
		enum statistic statistic;
	} members[] = {
		{"mean_ms", "total", STATISTIC_MEAN},
		{"latency_ms", "total", STATISTIC_MEAN},
		{"p95_ms", "total", STATISTIC_P95},
		{"frame_time_ms", "frames", STATISTIC_MEAN},
		{"size_mb", "model/size_mb", STATISTIC_MEAN},
		{"accuracy", "accuracy", STATISTIC_MEAN},
		{"memory_peak_bytes", "memory/peak_bytes", STATISTIC_MEAN},
	};
	cJSON *object = ctl_parameters("name", side->label);
	struct estimate of[STATISTICS];
	size_t count = estimate_side(side, NULL, "total", of);
	const char *total = count > 0 ? "total" : "frames"; /* bare ticks */
	count = count > 0 ? count : estimate_side(side, NULL, "frames", of);
	cJSON_AddNumberToObject(object, "frames", (double)count);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		bool is_total = strcmp(members[i].series, "total") == 0;
		estimate_side(side, NULL, is_total ? total : members[i].series, of);
		json_add_number(object, members[i].name, of[members[i].statistic].value);
	}
	double mean_ms = json_number(object, "mean_ms");
	json_add_number(object, "max_fps", 1000 / mean_ms);
	json_add_number(object, "fps", 1000 / json_number(object, "frame_time_ms"));
	if (first) {
		json_add_number(object, "mean_difference_percent",
			(mean_ms / json_number(first, "mean_ms") - 1) * 100);
		json_add_number(object, "accuracy_diff",
			json_number(object, "accuracy") - json_number(first, "accuracy"));
	}
	ctl_add_text(object, "error", side->failed ? side->failed->error : NULL);
	return object;
}
