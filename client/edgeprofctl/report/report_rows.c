/* SPDX-License-Identifier: Apache-2.0 */
/* report_rows.c: makes the rows of a report that only people want: totals, operations below their
 * category, the most telling metrics. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "proto/name.h"

enum { TOP = 3, METRICS = 24, EVENTS = 20, LABEL_SIZE = 1024 };

static cJSON *add_sum(cJSON *array, const char *label, const char *member, double value)
{
	cJSON *row = report_add_row(array);
	cJSON_AddStringToObject(row, "label", label);
	json_add_number(row, member, value);
	return row;
}

static bool has_deadline(const cJSON *row, const char *glob)
{
	(void)glob;
	return json_get(row, "deadline_ms");
}

/* The arrays pipeline and deadlines; sorted gets copies of the stages that are in the total. */
static void add_pipeline(cJSON *tree, cJSON *sorted)
{
	cJSON *stages = cJSON_GetObjectItemCaseSensitive(tree, "stages"), *row;
	const cJSON *total = json_first(tree, "totals");
	cJSON_ArrayForEach(row, stages)
	{
		char label[LABEL_SIZE];
		struct text text = TEXT_IN(label);
		text_add(&text, "%*s", 2 * (int)fmin(json_number(row, "depth"), 8), "");
		template_add(&text, "{stage}[{unit:is}@{unit}]", row, true);
		if (json_get(row, "percent_of_total")) {
			cJSON *copy = cJSON_Duplicate(row, true);
			cJSON_AddStringToObject(copy, "label", label + strspn(label, " "));
			report_insert(sorted, copy, "self_ms");
		}
		cJSON_AddStringToObject(row, "label", label);
	}
	cJSON *pipeline = cJSON_Duplicate(stages, true);
	cJSON_AddItemToObject(tree, "deadlines", cJSON_Duplicate(stages, true));
	listing_narrow(tree, "deadlines", has_deadline, NULL);
	cJSON_AddItemToObject(tree, "pipeline", pipeline);
	add_sum(pipeline, json_true(total, "total_is_sequential") ? "TOTAL (sequential)" : "TOTAL",
		"mean_ms", json_number(total, "mean_ms"));
	add_sum(pipeline, "MAX FPS", "mean_ms", json_number(total, "max_fps"));
}

static void add_operation(cJSON *array, const cJSON *of, const char *label, const char *own)
{
	cJSON *row = cJSON_Duplicate(of, true);
	cJSON_DeleteItemFromObjectCaseSensitive(row, "label");
	cJSON_AddStringToObject(row, "label", label);
	json_add_number(row, "own_s", json_number(row, own) / 1000);
	cJSON_AddItemToArray(array, row);
}

static void add_operations(cJSON *tree, const cJSON *sorted)
{
	char label[LABEL_SIZE];
	cJSON *rows = cJSON_AddArrayToObject(tree, "operations");
	for (const cJSON *row = json_first(tree, "categories"); row; row = row->next) {
		const char *category = json_word(row, "category");
		add_operation(rows, row, category[0] ? category : "(no category)", "total_ms");
		for (const cJSON *stage = sorted->child; stage; stage = stage->next) {
			if (strcmp(json_word(stage, "category"), category) == 0) {
				snprintf(label, sizeof(label), "  %s", json_word(stage, "label"));
				add_operation(rows, stage, label, "self_ms");
			}
		}
	}
	if (rows->child) {
		double total_ms = json_number(json_first(tree, "totals"), "total_ms");
		json_add_number(
			add_sum(rows, "TOTAL", "own_s", total_ms / 1000), "percent_of_total", 100);
	}
}

static void add_metrics(cJSON *tree)
{
	static const char *const globs[] = {"temperature/*", "throttle/active", "power/*", "gpu/*",
		"cpu/utilization", "cpu/*/frequency", "memory/used_percent", "fan/*",
		"process/{session.app}/cpu", "process/{session.app}/threads",
		"process/{session.app}/run_delay"};
	cJSON *rows = cJSON_AddArrayToObject(tree, "metrics");
	const cJSON *series = json_get(tree, "series");
	char own[LABEL_SIZE];
	for (size_t g = 0; g < sizeof(globs) / sizeof(globs[0]); g++) {
		struct text text = TEXT_IN(own);
		template_add(&text, globs[g], tree, true);
		for (const cJSON *one = series ? series->child : NULL; one; one = one->next) {
			if (cJSON_GetArraySize(rows) < METRICS &&
				proto_glob_match(own, one->string)) {
				cJSON *copy = cJSON_Duplicate(one, true);
				cJSON_AddStringToObject(copy, "name", one->string);
				cJSON_AddItemToArray(rows, copy);
			}
		}
	}
	snprintf(own, sizeof(own), "process/%s/rss", json_word(json_get(tree, "session"), "app"));
	cJSON_AddItemToObject(tree, "memory", cJSON_Duplicate(json_get(series, own), true));
}

static void add_facts(cJSON *tree)
{
	const cJSON *environment = json_get(tree, "environment");
	cJSON *rows = cJSON_AddArrayToObject(tree, "facts");
	for (const cJSON *one = environment ? environment->child : NULL; one; one = one->next) {
		cJSON *row = report_add_row(rows);
		cJSON_AddStringToObject(row, "name", one->string);
		cJSON_AddItemToObject(row, "value", cJSON_Duplicate(one, true));
	}
}

void report_prepare(cJSON *tree, bool utf8)
{
	cJSON *sorted = cJSON_CreateArray();
	cJSON *events = cJSON_GetObjectItemCaseSensitive(tree, "events");
	json_clean(tree, utf8);
	add_pipeline(tree, sorted);
	add_operations(tree, sorted);
	add_metrics(tree);
	add_facts(tree);
	while (cJSON_GetArraySize(sorted) > TOP) {
		cJSON_DeleteItemFromArray(sorted, TOP);
	}
	while (cJSON_GetArraySize(events) > EVENTS) {
		cJSON_DeleteItemFromArray(events, 0);
	}
	cJSON_AddItemToObject(tree, "top", sorted);
}
