/* SPDX-License-Identifier: Apache-2.0 */
/* stage_views.h: views of a reply of ListStages. Each writes the part that is about one app. */
#pragma once

#include "client/edgeprofctl/listing.h"

typedef void stage_view(struct ctl *ctl, const cJSON *reply, const char *app);

/* The template of a stage with its compute unit: "infer@gpu". */
#define STAGE_NAME "{stage}[@{unit}]"

/* The first row of the array that belongs to the app; NULL: none. */
const cJSON *stage_first(const cJSON *reply, const char *array, const char *app);
/* The next one. */
const cJSON *stage_next(const cJSON *row);

/* Adds the app's stages, each below the one it mostly runs in and indented, else in the order in
 * which they were first seen. */
void stage_tree_add(struct listing *listing, const cJSON *reply, const char *app);

/* Stages below the stage they run in, with their share of it. */
stage_view stage_view_tree;
/* Categories and their operations, both sorted by total time. */
stage_view stage_view_categories;
/* Compute units with mean and percentiles. */
stage_view stage_view_units;
/* Every number of each stage. */
stage_view stage_view_wide;
