/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_tree.c: makes the tree of a comparison: verdicts, regressions, and what was not the
 * same on both sides. */
#include "client/edgeprofctl/compare/comparison_private.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/text.h"

size_t comparison_first_run(const struct side *side)
{
	return side->count >= 3 ? 1 : 0;
}

static const char *verdict_of(const struct row *row)
{
	double worse = row->higher_is_better ? -row->difference.percent : row->difference.percent;
	if (isnan(row->baseline.value) || isnan(row->current.value)) {
		return isnan(row->current.value) ? "only in the baseline" : "not in the baseline";
	}
	if (isnan(row->difference.p)) {
		bool single = row->baseline_count == 1 || row->current_count == 1;
		return single ? "one value" : "too few values";
	}
	bool shown = row->difference.low > 0 || row->difference.high < 0;
	return !shown ? "no difference shown" : worse > 0 ? row->worse : row->better;
}

static cJSON *row_object(const struct row *row, bool regression)
{
	cJSON *object = ctl_parameters("name", row->name);
	json_add_number(object, "baseline", row->baseline.value);
	json_add_number(object, "current", row->current.value);
	json_add_number(object, "difference_percent", row->difference.percent);
	json_add_number(object, "low_percent", row->difference.low);
	json_add_number(object, "high_percent", row->difference.high);
	json_add_number(object, "p", row->adjusted_p);
	cJSON_AddNumberToObject(object, "baseline_count", (double)row->baseline_count);
	cJSON_AddNumberToObject(object, "current_count", (double)row->current_count);
	cJSON_AddStringToObject(object, "verdict", verdict_of(row));
	cJSON_AddBoolToObject(object, "decides", row->decides);
	cJSON_AddBoolToObject(object, "regression", regression);
	return object;
}

static bool is_regression(const struct comparison *comparison, const struct row *row)
{
	double worse = row->higher_is_better ? -row->difference.percent : row->difference.percent;
	return row->decides && row->adjusted_p < REGRESSION_P &&
	       worse >= comparison->options->threshold_percent;
}

/* What differs between the first runs that count. */
static cJSON *environment_differences(const struct side *baseline, const struct side *current)
{
	cJSON *list = cJSON_CreateArray();
	const struct measured *a = baseline->run[comparison_first_run(baseline)];
	const struct measured *b = current->run[comparison_first_run(current)];
	const cJSON *const pairs[][2] = {{a->environment, b->environment}, {a->tags, b->tags},
		{b->environment, a->environment}, {b->tags, a->tags}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const cJSON *item = pairs[i][0] ? pairs[i][0]->child : NULL;
		for (; item; item = item->next) {
			const char *ours = cJSON_GetStringValue(item);
			const char *theirs = json_text(pairs[i][1], item->string);
			bool swapped = i >= 2; /* only what the baseline lacks */
			if (!ours ||
				(swapped ? theirs != NULL : theirs && strcmp(ours, theirs) == 0)) {
				continue;
			}
			cJSON *difference = ctl_parameters("name", item->string);
			ctl_add_text(difference, "baseline", swapped ? theirs : ours);
			ctl_add_text(difference, "current", swapped ? ours : theirs);
			cJSON_AddItemToArray(list, difference);
		}
	}
	return list;
}

const struct measured *comparison_failed_run(const struct side *side)
{
	for (size_t i = 0; i < side->count; i++) {
		if (side->run[i]->error) {
			return side->run[i];
		}
	}
	return NULL;
}

/* Why nothing could be judged. */
static void add_reason(cJSON *object, const struct comparison *comparison)
{
	const struct comparison_options *options = comparison->options;
	const struct measured *failed = comparison_failed_run(comparison->side[0]);
	char bytes[1024];
	struct text text = TEXT_IN(bytes);
	failed = failed ? failed : comparison_failed_run(comparison->side[1]);
	if (failed) {
		text_add(&text, "'%s' failed: %s", failed->name, failed->error);
	} else if (options->metric && comparison->rows == 0) {
		text_add(&text, "nothing that was measured matches '%s'", options->metric);
	} else {
		text_add(&text, "too few values to compare%s",
			options->thermal ? ": temperature and clock do not match in 10 of them"
					 : "; each side requires at least 10");
	}
	cJSON_AddStringToObject(object, "reason", bytes);
}

/* The runs that lack values, and why. */
static void add_incomplete(cJSON *object, const struct side *const sides[2])
{
	cJSON *list = cJSON_AddArrayToObject(object, "incomplete");
	for (int i = 0; i < 2; i++) {
		for (size_t run = comparison_first_run(sides[i]); run < sides[i]->count; run++) {
			const struct measured *one = sides[i]->run[run];
			if (one->incomplete) {
				cJSON *row = ctl_parameters("name", one->name);
				ctl_add_text(row, "reason", one->incomplete);
				cJSON_AddItemToArray(list, row);
			}
		}
	}
}

cJSON *comparison_tree(const struct comparison *comparison)
{
	const struct side *const *side = comparison->side;
	cJSON *object = ctl_parameters("baseline", side[0]->label);
	cJSON *rows = cJSON_CreateArray();
	size_t regressions = 0, judged = 0;
	ctl_add_text(object, "current", side[1]->label);
	for (size_t i = 0; i < comparison->rows; i++) {
		const struct row *row = &comparison->row[i];
		bool regression = is_regression(comparison, row);
		regressions += regression;
		judged += row->decides && !isnan(row->adjusted_p);
		cJSON_AddItemToArray(rows, row_object(row, regression));
	}
	ctl_add_text(object, "verdict",
		judged == 0	  ? "no data"
		: regressions > 0 ? "regression"
				  : "no regression");
	cJSON_AddNumberToObject(object, "regressions", (double)regressions);
	for (int i = 0; i < 2; i++) {
		size_t runs = 0, warmup = 0;
		for (size_t run = comparison_first_run(side[i]); run < side[i]->count; run++) {
			runs += !side[i]->run[run]->error;
			warmup += side[i]->run[run]->warmup;
		}
		cJSON_AddNumberToObject(
			object, i == 0 ? "baseline_runs" : "current_runs", (double)runs);
		cJSON_AddNumberToObject(
			object, i == 0 ? "baseline_warmup" : "current_warmup", (double)warmup);
	}
	if (judged == 0) {
		add_reason(object, comparison);
	}
	if (comparison->options->thermal) {
		cJSON *thermal = cJSON_AddObjectToObject(object, "thermal");
		cJSON_AddNumberToObject(thermal, "baseline_kept", (double)comparison->kept[0]);
		cJSON_AddNumberToObject(thermal, "baseline_frames", (double)comparison->all[0]);
		cJSON_AddNumberToObject(thermal, "current_kept", (double)comparison->kept[1]);
		cJSON_AddNumberToObject(thermal, "current_frames", (double)comparison->all[1]);
	}
	cJSON_AddItemToObject(object, "environment", environment_differences(side[0], side[1]));
	add_incomplete(object, side);
	cJSON_AddItemToObject(object, "rows", rows);
	return object;
}
