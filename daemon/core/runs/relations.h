/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relations.h: declares how the stages of one app relate: who runs inside whom, who counts in the
 * app's total and for how much, which share a category or a compute unit. Computed from what was
 * seen, when it is asked for; nothing is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/stages/stats.h"

enum { APP_NO_STAGE = -1 };

/* By index into app->stage. Groups are named by the index of their first stage. */
struct app_relations {
	int16_t parent[APP_STAGES_MAX]; /* the stage it mostly runs in; APP_NO_STAGE = none */
	/* The part of its time that is a part of the app's total: 0 of a total itself, and without
	 * runs inside of a stage that is a part already (acceptance.md, mistake 12). */
	double counts[APP_STAGES_MAX];
	bool is_total[APP_STAGES_MAX]; /* or time spent waiting: stage_is_work() */
	uint8_t category[APP_STAGES_MAX], unit[APP_STAGES_MAX];
	/* Its own, else that of the nearest stage around it that has one; "" = none. Of the app. */
	const char *unit_name[APP_STAGES_MAX];
	/* Lifetime wall time. A stage's own time is without that of the stages inside of it, so
	 * that it counts once: in its own group, and all of them together are the total, without
	 * stages that are a total themselves. */
	uint64_t total_ns;
	uint64_t self_ns[APP_STAGES_MAX];
	uint64_t category_ns[APP_STAGES_MAX], unit_ns[APP_STAGES_MAX];
	struct loop_window window; /* what a frame costs is known of this */
};

void app_relate(const struct app *app, struct app_relations *ret);
/* Every stage behind the one it mostly runs in, else first seen first: order[i] is its index,
 * depth[i] how deep it is. */
void app_tree(const struct app *app, const struct app_relations *relations,
	uint8_t order[APP_STAGES_MAX], uint8_t depth[APP_STAGES_MAX]);

/* What the stage costs per frame of its app (per iteration of its loop, loop.h), ms: time spent
 * in it inside the frames of the recent window / these frames. Of a filtered query: the mean of its
 * runs * runs per frame. *runs: the runs per frame. Before the first frame is over it is the mean
 * of its runs, and *runs is NAN. NAN without a run. runs may be NULL. */
double app_per_frame_ms(const struct app *app, const struct app_relations *relations,
	const struct stage *stage, const struct window_query *query, double *runs);

/* The sum of that over the stages that count: a frame's time, if one runs after the other. 0 when
 * nothing is known. */
double app_frame_ms(const struct app *app, const struct app_relations *relations,
	const struct window_query *query);
