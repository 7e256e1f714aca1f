/* SPDX-License-Identifier: Apache-2.0 */
/* report_private.h: declares the parts of the tree of a report, and what they share. */
#pragma once

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/report/report.h"
#include "client/edgeprofctl/template.h"

/* What is counted of the runs of a stage or the frames. */
struct counts {
	double deadline_ms, worst_ms;
	double runs, misses, in_a_row, most_in_a_row, known, throttled;
};
void report_count(struct counts *counts, double ms, int throttled);
/* Without a deadline (NAN), nothing about misses. */
void report_add_counts(cJSON *to, const struct counts *counts);
/* mean_ms, p50_ms … with the prefix. */
void report_add_numbers(cJSON *to, const char *of, const struct proto_summary *numbers);

/* An object at the end of an array; a text, unless it is empty. */
cJSON *report_add_row(cJSON *array);
void report_add_word(cJSON *to, const char *name, const char *word);
double report_percent(double part, double all);

/* The arrays stages, totals, units, categories. */
void report_add_stages(cJSON *tree, const struct data *data);
/* The object frames, the array slow_frames. */
void report_add_frames(cJSON *tree, const struct data *data);

/* Puts the row in front of those whose member is smaller. */
void report_insert(cJSON *array, cJSON *row, const char *member);
/* Cleans the tree, and adds the rows of tables that have more than it. */
void report_prepare(cJSON *tree, bool utf8);
