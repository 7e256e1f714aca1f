/* SPDX-License-Identifier: Apache-2.0 */
/* comparison.c: makes rows of what two sides have in common. The verdict of a row is that of its
 * own interval of 95 %. A regression is more: the row decides, it is worse by the threshold, and
 * that is shown in view of the number of all rows that decide. */
#include "client/edgeprofctl/compare/comparison_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/compare/matching.h"
#include "client/edgeprofctl/link/json.h"
#include "proto/text.h"

enum { ROWS_MAX = 4 * MEASURED_SERIES_MAX };

#define SHARE_MIN 0.01

/* The rows that a series makes. */
static const struct row_kind {
	const char *series; /* glob */
	enum statistic statistic;
	const char *suffix;
	bool decides, is_rate; /* a rate is 1000 / value: higher is better */
	const char *worse, *better;
} kinds[] = {
	{"frames", STATISTIC_MEAN, "mean_ms", true, false, "slower", "faster"},
	{"frames", STATISTIC_P50, "p50_ms", false, false, "slower", "faster"},
	{"frames", STATISTIC_P95, "p95_ms", true, false, "slower", "faster"},
	{"frames", STATISTIC_P99, "p99_ms", false, false, "slower", "faster"},
	{"frames", STATISTIC_MEAN, "fps", false, true, "slower", "faster"},
	{"total", STATISTIC_MEAN, "mean_ms", true, false, "slower", "faster"},
	{"total", STATISTIC_P50, "p50_ms", false, false, "slower", "faster"},
	{"total", STATISTIC_P95, "p95_ms", true, false, "slower", "faster"},
	{"total", STATISTIC_P99, "p99_ms", false, false, "slower", "faster"},
	{"stages/*", STATISTIC_MEAN, "mean_ms", true, false, "slower", "faster"},
	{"stages/*", STATISTIC_P95, "p95_ms", false, false, "slower", "faster"},
	{"power", STATISTIC_MEAN, "mean_mw", false, false, "higher", "lower"},
	{"energy", STATISTIC_MEAN, "frame_mj", false, false, "higher", "lower"},
};

static const struct {
	const char *name;
	bool higher_is_better;
	const char *worse, *better;
} singles[] = {{"memory/peak_bytes", false, "higher", "lower"},
	{"model/size_mb", false, "larger", "smaller"}, {"accuracy", true, "lower", "higher"}};

static struct row *add_row(struct comparison *comparison, const char *name)
{
	if (comparison->rows % 64 == 0) {
		struct row *grown = realloc(
			comparison->row, (comparison->rows + 64) * sizeof(*comparison->row));
		comparison->out_of_memory = comparison->out_of_memory || !grown;
		comparison->row = grown ? grown : comparison->row;
	}
	if (comparison->out_of_memory || comparison->rows == ROWS_MAX) {
		return NULL;
	}
	struct row *row = &comparison->row[comparison->rows++];
	memset(row, 0, sizeof(*row));
	snprintf(row->name, sizeof(row->name), "%s", name);
	return row;
}

static bool is_wanted(const struct comparison *comparison, const char *name)
{
	const char *metric = comparison->options->metric;
	return !metric || proto_query_match(metric, name);
}

/* All statistics of a series of one side. */
static size_t estimate_side(struct comparison *comparison, int which, const char *series,
	struct estimate ret[STATISTICS])
{
	const struct side *side = comparison->side[which];
	struct estimate(*runs)[STATISTICS] = calloc(side->count, sizeof(*runs));
	struct estimate *column = calloc(side->count, sizeof(*column));
	size_t values = 0, used = 0;
	for (size_t i = comparison_first_run(side); i < side->count && runs && column; i++) {
		const struct measured_series *from = measured_series(side->run[i], series);
		struct measured_series matched = {.count = 0};
		if (from && comparison->options->thermal) {
			comparison->out_of_memory =
				matching_values(comparison->side, which, i, series, &matched) < 0 ||
				comparison->out_of_memory;
		}
		const struct measured_series *of = comparison->options->thermal ? &matched : from;
		if (of && of->count > 0) {
			comparison->out_of_memory =
				estimate_values(of->value, of->count, runs[used++]) < 0 ||
				comparison->out_of_memory;
			values += of->count;
		}
		if (strcmp(series, "frames") == 0) {
			comparison->all[which] += from ? from->count : 0;
			comparison->kept[which] += of ? of->count : 0;
		}
		free(matched.value);
	}
	comparison->out_of_memory = comparison->out_of_memory || !runs || !column;
	for (int s = 0; s < STATISTICS; s++) {
		for (size_t i = 0; i < used; i++) {
			column[i] = runs[i][s];
		}
		ret[s] = estimate_runs(column, used);
	}
	free(runs);
	free(column);
	return values;
}

static void finish_row(struct row *row, const struct row_kind *kind)
{
	row->decides = kind->decides;
	row->worse = kind->worse;
	row->better = kind->better;
	row->higher_is_better = kind->is_rate;
	if (kind->is_rate) {
		row->baseline.value = 1000 / row->baseline.value;
		row->current.value = 1000 / row->current.value;
	}
	row->difference = difference_of(&row->baseline, &row->current);
	row->adjusted_p = row->difference.p;
}

static void add_series(struct comparison *comparison, const char *series)
{
	struct estimate sides[2][STATISTICS];
	size_t counts[2] = {0, 0};
	bool estimated = false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char name[MEASURED_NAME_SIZE + 16];
		snprintf(name, sizeof(name), "%s/%s", series, kinds[i].suffix);
		if (!proto_glob_match(kinds[i].series, series) || !is_wanted(comparison, name)) {
			continue;
		}
		if (!estimated) {
			counts[0] = estimate_side(comparison, 0, series, sides[0]);
			counts[1] = estimate_side(comparison, 1, series, sides[1]);
			estimated = true;
		}
		struct row *row = counts[0] + counts[1] > 0 ? add_row(comparison, name) : NULL;
		if (row) {
			row->baseline = sides[0][kinds[i].statistic];
			row->current = sides[1][kinds[i].statistic];
			row->baseline_count = counts[0];
			row->current_count = counts[1];
			finish_row(row, &kinds[i]);
			row->decides = row->decides || comparison->options->metric;
		}
	}
}

/* Of values that each run has only once. */
static struct estimate estimate_single(const struct side *side, const char *name, size_t *ret_count)
{
	struct estimate *runs = calloc(side->count, sizeof(*runs)), ret = {NAN, NAN, NAN};
	size_t used = 0;
	for (size_t i = comparison_first_run(side); i < side->count && runs; i++) {
		double value = json_number(side->run[i]->single, name);
		if (isfinite(value)) {
			runs[used++] = (struct estimate){value, NAN, NAN};
		}
	}
	ret = used > 0 ? estimate_runs(runs, used) : ret;
	*ret_count = used;
	free(runs);
	return ret;
}

static void add_singles(struct comparison *comparison)
{
	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++) {
		size_t counts[2];
		struct estimate baseline =
			estimate_single(comparison->side[0], singles[i].name, &counts[0]);
		struct estimate current =
			estimate_single(comparison->side[1], singles[i].name, &counts[1]);
		bool wanted = is_wanted(comparison, singles[i].name) && counts[0] + counts[1] > 0;
		struct row *row = wanted ? add_row(comparison, singles[i].name) : NULL;
		if (row) {
			const struct row_kind kind = {.is_rate = false,
				.decides = comparison->options->metric,
				.worse = singles[i].worse,
				.better = singles[i].better};
			row->baseline = baseline;
			row->current = current;
			row->baseline_count = counts[0];
			row->current_count = counts[1];
			finish_row(row, &kind);
			row->higher_is_better = singles[i].higher_is_better;
		}
	}
}

/* The series of both sides, in the order of the baseline. */
static void add_all(struct comparison *comparison)
{
	for (int which = 0; which < 2; which++) {
		const struct side *side = comparison->side[which];
		for (size_t run = 0; run < side->count; run++) {
			for (size_t i = 0; i < side->run[run]->series_count; i++) {
				const char *name = side->run[run]->series[i].name;
				bool seen = which == 1 &&
					    measured_series(comparison->side[0]->run[0], name);
				for (size_t before = 0; before < run && !seen; before++) {
					seen = measured_series(side->run[before], name);
				}
				if (!seen) {
					add_series(comparison, name);
				}
			}
		}
	}
	add_singles(comparison);
}

static const struct row *find_row(const struct comparison *comparison, const char *name)
{
	for (size_t i = 0; i < comparison->rows; i++) {
		if (strcmp(comparison->row[i].name, name) == 0) {
			return &comparison->row[i];
		}
	}
	return NULL;
}

/* A stage that takes less than SHARE_MIN of the frames' time on both sides decides nothing: some
 * microseconds more do not matter to who waits for the frame. */
static void dismiss_small_stages(struct comparison *comparison)
{
	const struct row *frames = find_row(comparison, "frames/mean_ms");
	for (size_t i = 0; i < comparison->rows && frames; i++) {
		struct row *row = &comparison->row[i];
		double baseline = row->baseline.value * (double)row->baseline_count /
				  (frames->baseline.value * (double)frames->baseline_count);
		double current = row->current.value * (double)row->current_count /
				 (frames->current.value * (double)frames->current_count);
		if (strncmp(row->name, "stages/", strlen("stages/")) == 0 &&
			!comparison->options->metric && baseline < SHARE_MIN &&
			current < SHARE_MIN) {
			row->decides = false;
		}
	}
}

/* The p of the rows that decide, in view of their number. */
static void adjust(struct comparison *comparison)
{
	struct difference *copies = calloc(comparison->rows + 1, sizeof(*copies));
	struct difference **sorted = calloc(comparison->rows + 1, sizeof(*sorted));
	size_t count = 0;
	comparison->out_of_memory = comparison->out_of_memory || !copies || !sorted;
	for (size_t i = 0; i < comparison->rows && copies && sorted; i++) {
		copies[i] = comparison->row[i].difference;
		if (comparison->row[i].decides) {
			sorted[count++] = &copies[i];
		}
	}
	if (copies && sorted) {
		difference_adjust(sorted, count);
	}
	for (size_t i = 0; i < comparison->rows && copies; i++) {
		comparison->row[i].adjusted_p = copies[i].p;
	}
	free(copies);
	free(sorted);
}

cJSON *compare_sides(const struct side *baseline, const struct side *current,
	const struct comparison_options *options)
{
	struct comparison comparison = {.side = {baseline, current}, .options = options};
	add_all(&comparison);
	dismiss_small_stages(&comparison);
	adjust(&comparison);
	cJSON *object = comparison.out_of_memory ? NULL : comparison_tree(&comparison);
	free(comparison.row);
	return object;
}

cJSON *describe_side(const struct side *side)
{
	static const struct comparison_options plain = {0};
	struct comparison comparison = {.side = {side, side}, .options = &plain};
	struct estimate total[STATISTICS], frames[STATISTICS];
	cJSON *object = ctl_parameters("name", side->label);
	size_t count = estimate_side(&comparison, 0, "total", total), ignored;
	size_t ticks = estimate_side(&comparison, 0, "frames", frames);
	const struct estimate *of = count > 0 ? total : frames;
	cJSON_AddNumberToObject(object, "frames", (double)(count > 0 ? count : ticks));
	json_add_number(object, "mean_ms", of[STATISTIC_MEAN].value);
	json_add_number(object, "latency_ms", of[STATISTIC_MEAN].value);
	json_add_number(object, "p95_ms", of[STATISTIC_P95].value);
	json_add_number(object, "max_fps", 1000 / of[STATISTIC_MEAN].value);
	json_add_number(object, "fps", 1000 / frames[STATISTIC_MEAN].value);
	json_add_number(object, "size_mb", estimate_single(side, "model/size_mb", &ignored).value);
	json_add_number(object, "accuracy", estimate_single(side, "accuracy", &ignored).value);
	json_add_number(object, "memory_peak_bytes",
		estimate_single(side, "memory/peak_bytes", &ignored).value);
	const struct measured *failed = comparison_failed_run(side);
	if (failed) {
		cJSON_AddStringToObject(object, "error", failed->error);
	}
	if (comparison.out_of_memory) {
		cJSON_Delete(object);
		return NULL;
	}
	return object;
}
