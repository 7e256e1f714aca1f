/*
 * What belongs to all stages together: their budget, the operator's settings, the hardware's
 * throttle times, and how the stages of one app relate: who counts in its total, and for how much.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/stages.h"

struct app;
struct apps;

#define STAGES_MEMORY ((size_t)8 << 20) /* when apps_options.stage_memory is 0 */

/* The times that tell whether an event was throttled; they outlive apps. NULL = nobody knows. */
void apps_set_throttle_times(struct apps *apps, const struct throttle_times *times);

/* What all stages take and may take. Past it the least recently used that no process uses makes
 * room, and new ones go into __other__. */
const struct stage_budget *apps_stage_budget(const struct apps *apps);

/* The operator's settings of a stage; NULL = none. */
typedef const struct stage_settings *stage_settings_lookup(
	void *ctx, const char *app, const char *stage);
/* Asks it for each stage that is there and for each new one. NULL: no settings any more. */
void apps_configure_stages(struct apps *apps, stage_settings_lookup *lookup, void *ctx);

/* The stage that this one mostly runs in, as its thread has it; NULL = none. */
struct stage *app_stage_parent(const struct app *app, const struct stage *stage);

/* True when the stage is a part of the app's total: it is not a total itself and has no parent that
 * is a part already (acceptance.md, mistake 12). */
bool app_stage_counts(const struct app *app, const struct stage *stage);

/* Mean wall time of the recent window that the stage costs per frame of its app, ms: a stage of
 * every k-th frame costs a k-th. runs: the runs per frame, NAN when they are not known; then it is
 * the mean. NAN without a run. runs may be NULL. */
double app_stage_per_frame_ms(const struct app *app, const struct stage *stage, double *runs);

/* The stage's share of the wall time of a frame, 0..1: of its per-frame cost in the sum over the
 * stages that count. Nested stages have their share of the same sum. NAN when nothing is known. */
double app_stage_share(const struct app *app, const struct stage *stage);

/* Lifetime wall time of the stages that count, ns. */
uint64_t app_total_ns(const struct app *app);
/* The same of a category, where a stage inside one of the same category does not count again. */
uint64_t app_category_ns(const struct app *app, const char *category);
/* The same of a compute unit. */
uint64_t app_unit_ns(const struct app *app, const char *unit);
