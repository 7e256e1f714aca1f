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

enum app_section_kind { SECTION_STAGE, SECTION_FRAME, SECTION_APP, SECTION_KINDS };

struct app_section {
	char glob[2 * PROTO_NAME_SIZE]; /* APP/STAGE; else APP */
	union {
		struct stage_settings stage;
		struct frames_settings frames;
		struct app_rules rules;
	};
};

struct app_settings {
	size_t count[SECTION_KINDS];
	struct app_section section[SECTION_KINDS][APP_SETTINGS_MAX];
};

/* The section of this glob, made when it is new. -EINVAL: no glob of APP/STAGE, or of APP; -ENOSPC.
 */
int app_settings_section(struct app_settings *settings, enum app_section_kind kind,
	const char *glob, struct app_section **ret);

/* What all sections together say, zero where none does. settings may be NULL. */
struct stage_settings app_settings_of_stage(
	const struct app_settings *settings, const char *app, const struct stage *stage);
struct frames_settings app_settings_of_frames(const struct app_settings *settings, const char *app);
struct app_rules app_settings_of_app(const struct app_settings *settings, const char *app);
