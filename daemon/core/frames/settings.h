/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h: declares what the operator says about stages and frames of apps: sections by glob,
 * plain data that a configuration holds. Several sections may match a stage; each key comes from
 * the most specific one that has it: the app decides first, then the stage, and in each a name in
 * full wins over a pattern, a longer pattern over a shorter one; of equals the later section.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/frames/frames.h"
#include "daemon/core/stages/stages.h"

#define APP_RESTART_WITHIN_NS UINT64_C(30000000000)

/* Zeroed = nothing said. */
struct app_rules {
	bool reserved; /* for the user */
	uid_t user;
	bool has_restart_within;
	uint64_t restart_within_ns; /* after its death it is expected back */
};

enum { APP_SETTINGS_MAX = 64 /* sections of each kind */ };

struct stage_section {
	char glob[2 * PROTO_NAME_SIZE]; /* APP/STAGE */
	struct stage_settings settings;
};

struct frame_section {
	char glob[PROTO_NAME_SIZE]; /* APP */
	struct frames_settings settings;
};

struct app_section {
	char glob[PROTO_NAME_SIZE]; /* APP */
	struct app_rules rules;
};

struct app_settings {
	size_t stages, frames, apps;
	struct stage_section stage[APP_SETTINGS_MAX];
	struct frame_section frame[APP_SETTINGS_MAX];
	struct app_section app[APP_SETTINGS_MAX];
};

/* The settings of a section, made when the glob is new. -EINVAL: no glob of APP/STAGE, or of APP;
 * -ENOSPC. */
int app_settings_stage(
	struct app_settings *settings, const char *glob, struct stage_settings **ret);
int app_settings_frame(
	struct app_settings *settings, const char *glob, struct frames_settings **ret);
int app_settings_app(struct app_settings *settings, const char *glob, struct app_rules **ret);

/* What all sections together say, zero where none does. settings may be NULL. */
struct stage_settings app_settings_of_stage(
	const struct app_settings *settings, const char *app, const struct stage *stage);
struct frames_settings app_settings_of_frames(const struct app_settings *settings, const char *app);
struct app_rules app_settings_of_app(const struct app_settings *settings, const char *app);
