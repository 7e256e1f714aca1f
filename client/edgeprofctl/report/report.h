/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h: declares the forms of a report about one session, recording or live app. Most work on
 * one tree in the names of the interface (ListStages, GetFrames), which is the JSON form itself.
 */
#pragma once

#include <stdio.h>

#include "client/edgeprofctl/data/data.h"

/* The JSON report; texts in it are clean. NULL: no memory. */
cJSON *report_tree(const struct data *data);
/* {stage: {mean_ms, median_ms …}, "summary": …}, rounded. */
cJSON *report_profile(const struct data *data);

/* Tables of the tree, which gets rows that only people want: for a terminal, as Markdown, or with
 * charts as one self-contained page. */
void report_text(struct ctl *ctl, cJSON *tree);
void report_markdown(const struct data *data, cJSON *tree, FILE *out);
void report_html(const struct data *data, cJSON *tree, FILE *out);
/* A test case for the frames, each stage and each verdict. */
void report_junit(const cJSON *tree, FILE *out);

/* A page about a running app, with a suggestion for its unit. An exit status. */
int report_card(struct ctl *ctl, const char *app);

/* Compares the report with the target of that name: adds "target" to the tree, the verdicts in it.
 * CTL_BAD_NEWS: outside; CTL_NO_DATA: unknown target. */
int report_target(struct ctl *ctl, const char *name, cJSON *tree);
