/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h: declares runs of an app: one process from attach to end, or several that overlap in
 * time. struct app holds the current or latest run. When another begins, its statistics move into
 * a previous run, which no event changes any more; metrics and their history go on with the stages
 * of the same names.
 *
 * Previous runs take what the current ones leave of [stages] memory and are the first to make room:
 * the oldest of the user whose runs take most.
 */
#pragma once

#include <stdint.h>

struct app;
struct apps;

#define APP_RUN_METRICS_S 60 /* metrics that the next run did not continue stay this long */

/* 0 = the current or latest run, -1 = the one before it, …; NULL when it is not kept. */
const struct app *app_run(const struct app *app, int run);

/* All kept runs of the app together: counts and histograms added, windows those of the latest run
 * that has the stage. Belongs to apps; valid until the next call or the next change of apps. NULL:
 * no memory. */
const struct app *apps_all_runs(struct apps *apps, const struct app *app, uint64_t now_ns);
