/* Views of the answer of ListStages: each writes the part that is about one app. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "proto/mapping.h"
#include "proto/name.h"

typedef void stage_view(struct ctl *ctl, const cJSON *reply, const char *app);

struct table;

/* The app's stages, each behind the one it mostly runs in and one deeper, else first seen first. */
typedef void stage_visit(void *ctx, const cJSON *stage, int depth);
void stage_tree_walk(const cJSON *reply, const char *app, stage_visit *visit, void *ctx);
/* Its name and compute unit: "infer@gpu". */
struct stage_name {
	char text[PROTO_NAME_SIZE + PROTO_LABEL_SIZE + 1];
};
struct stage_name stage_name(const cJSON *stage);
/* Adds that, indented. */
void stage_tree_name(struct table *table, const cJSON *stage, int depth);

/* Stages under the stage they run in, with their share of it. */
stage_view stage_view_tree;
/* Categories and their operations, both sorted by total time. */
stage_view stage_view_categories;
/* Compute units with mean and percentiles. */
stage_view stage_view_units;
/* Every number of each stage. */
stage_view stage_view_wide;
