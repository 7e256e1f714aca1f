/* SPDX-License-Identifier: Apache-2.0 */
/* apps.c: reads [stage APP/STAGE], [frame APP] and [app APP], what the operator says about apps.
 * Zero means "not configured" for stages and frames, so none of their keys accepts it. */
#include "daemon/config/private.h"

#include <errno.h>
#include <pwd.h>

#include "daemon/util/parse.h"

/* A word for people, as clients may declare it. */
static bool is_label(const char *text)
{
	for (const char *c = text; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f) {
			return false;
		}
	}
	return text[0] != '\0';
}

static int set_target_fps(void *instance, const char *value)
{
	double fps;
	if (parse_double(value, &fps) < 0 || !(fps > 0 && fps <= 100000)) {
		return -EINVAL;
	}
	((struct frames_settings *)instance)->target_fps = fps;
	return 0;
}

/* A user of this machine, or any number. */
static int set_user(void *instance, const char *value)
{
	struct app_rules *rules = instance;
	uint64_t number;
	const struct passwd *user = getpwnam(value);
	if (user) {
		number = user->pw_uid;
	} else if (parse_u64(value, &number) < 0 || number >= UINT32_MAX) {
		return -EINVAL;
	}
	rules->reserved = true;
	rules->user = (uid_t)number;
	return 0;
}

static int set_restart_within(void *instance, const char *value)
{
	struct app_rules *rules = instance;
	if (parse_duration_ns(value, &rules->restart_within_ns) < 0 ||
		rules->restart_within_ns > UINT64_C(86400000000000)) {
		return -EINVAL;
	}
	rules->has_restart_within = true;
	return 0;
}

#define DEADLINE_KEY(owner)                                                 \
	{                                                                   \
		.name = "deadline", .type = CONFIG_DURATION,                \
		.offset = offsetof(struct owner, deadline_ns), .min = 1000, \
		.max = UINT64_C(3600000000000),                             \
		.expected = "a duration from 1us to 1h such as 33ms"        \
	}
#define WARMUP_KEY(owner)                                                           \
	{                                                                           \
		.name = "warmup", .type = CONFIG_COUNT32,                           \
		.offset = offsetof(struct owner, warmup), .min = 1, .max = 1000000, \
		.expected = "a number of events from 1 to 1000000"                  \
	}
#define LABEL_KEY(key, member)                                                               \
	{                                                                                    \
		.name = key, .type = CONFIG_TEXT,                                            \
		.offset = offsetof(struct stage_settings, member), .size = PROTO_LABEL_SIZE, \
		.valid = is_label, .expected = "a word of at most 23 printable bytes"        \
	}

const struct config_key config_stage_keys[] = {
	DEADLINE_KEY(stage_settings),
	LABEL_KEY("unit", unit),
	LABEL_KEY("category", category),
	WARMUP_KEY(stage_settings),
	{.name = "rss_growth_limit",
		.type = CONFIG_SIZE,
		.offset = offsetof(struct stage_settings, rss_growth_limit),
		.min = 4096,
		.max = UINT64_C(1) << 50,
		.expected = "a size of at least 4K such as 10M"},
};

const struct config_key config_frame_keys[] = {
	DEADLINE_KEY(frames_settings),
	CONFIG_SPECIAL_KEY("target_fps", "frames a second, above 0 up to 100000", set_target_fps),
	WARMUP_KEY(frames_settings),
};

const struct config_key config_app_keys[] = {
	CONFIG_SPECIAL_KEY("user", "the name of a user of this machine, or a number", set_user),
	CONFIG_SPECIAL_KEY(
		"restart_within", "a duration from 0 to 24h such as 30s", set_restart_within),
};

static struct app_section *find(
	struct config *config, enum app_section_kind kind, const char *name, struct text *error)
{
	static const char *const words[SECTION_KINDS] = {
		[SECTION_STAGE] = "stage", [SECTION_FRAME] = "frame", [SECTION_APP] = "app"};
	struct app_section *found = NULL;
	int r = app_settings_section(&config->apps, kind, name, &found);
	if (r == -ENOSPC) {
		config_refuse(error, "too many [%s …] sections; expected at most %d", words[kind],
			APP_SETTINGS_MAX);
	} else if (r < 0) {
		config_refuse(error,
			"invalid name of a section; expected [%s %s] with names or globs of A-Z "
			"a-z 0-9 _ . - * ?",
			words[kind], kind == SECTION_STAGE ? "APP/STAGE" : "APP");
	}
	return found;
}

void *config_stage_find(struct config *config, const char *name, struct text *error)
{
	struct app_section *section = find(config, SECTION_STAGE, name, error);
	return section ? &section->stage : NULL;
}

void *config_frame_find(struct config *config, const char *name, struct text *error)
{
	struct app_section *section = find(config, SECTION_FRAME, name, error);
	return section ? &section->frames : NULL;
}

void *config_app_find(struct config *config, const char *name, struct text *error)
{
	struct app_section *section = find(config, SECTION_APP, name, error);
	return section ? &section->rules : NULL;
}
