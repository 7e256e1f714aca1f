/* SPDX-License-Identifier: Apache-2.0 */
/* report_private.h: declares the parts of the tree of a report, and what they share. */
#pragma once

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/report/report.h"
#include "client/edgeprofctl/template.h"

/* Of a stage or the frames. */
struct misses {
	double deadline_ms, worst_ms;
	size_t runs, count, in_a_row, most_in_a_row;
};

/* Deadline NAN: nothing is added. */
void report_count_miss(struct misses *misses, double ms);
void report_add_misses(cJSON *to, const struct misses *misses);

/* An object at the end of an array; a text, unless it is empty. */
cJSON *report_add_row(cJSON *array);
void report_add_word(cJSON *to, const char *name, const char *word);
double report_percent(double part, double all);

/* The arrays stages, totals, units, categories. */
void report_add_stages(cJSON *tree, const struct data *data);
/* The object frames. */
void report_add_frames(cJSON *tree, const struct data *data);
/* The array slow_frames, and in frames how many there are. */
void report_add_slow(cJSON *tree, const struct data *data);

/* Puts the row in front of those whose member is smaller. */
void report_insert(cJSON *array, cJSON *row, const char *member);
/* Cleans the tree, and adds the rows of tables that have more than it. */
void report_prepare(cJSON *tree, bool utf8);
