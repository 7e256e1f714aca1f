/*
 * app_stages.h: declares what all stages have in common: their budget, the operator's settings,
 * the hardware's throttle times. How the stages of one app relate is in relations.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/stages/stages.h"

struct app;
struct apps;

#define STAGES_MEMORY ((size_t)8 << 20) /* when apps_options.stage_memory is 0 */

/* The times that decide whether an event was throttled; they outlive apps. NULL = nobody knows. */
void apps_set_throttle_times(struct apps *apps, const struct throttle_times *times);

/* What all stages take and may take. Past it the least recently used that no process uses makes
 * room, and new ones go into __other__. */
const struct stage_budget *apps_stage_budget(const struct apps *apps);

/* The operator's settings of a stage; NULL = none. */
typedef const struct stage_settings *stage_settings_lookup(
	void *ctx, const char *app, const struct stage *stage);
/* Asks it for each stage that is there and for each new one. NULL: no settings any more. */
void apps_configure_stages(struct apps *apps, stage_settings_lookup *lookup, void *ctx);

/* The compute unit that the operator configured, else the one that a stage of this name declared
 * first; "" = neither. */
const char *app_expected_unit(const struct app *app, const struct stage *stage);
/* A CPU (cpu, onnx_cpu, CPU0) in place of something else. */
bool app_is_cpu_fallback(const char *unit, const char *expected);
