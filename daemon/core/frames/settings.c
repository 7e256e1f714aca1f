/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c: resolves the sections that match one stage or one app into its settings. The
 * configuration fills the sections; app_stages.c and app_frames.c ask when a stage or a stream is
 * new, and a reload asks for all of them.
 */
#include "daemon/core/frames/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/name.h"

enum { RANK_IN_FULL = 128 /* above what 48 bytes of a pattern can have */ };

/* 0 when glob is a pattern of that many segments and fits. */
static int check(const char *glob, size_t segments)
{
	size_t found = 1;
	for (const char *c = glob; *c; c++) {
		found += *c == '/';
	}
	bool fits = strlen(glob) < 2 * PROTO_NAME_SIZE && strcspn(glob, "/") < PROTO_NAME_SIZE;
	return found == segments && fits ? proto_glob_check(glob) : -EINVAL;
}

int app_settings_section(struct app_settings *settings, enum app_section_kind kind,
	const char *glob, struct app_section **ret)
{
	struct app_section *section = settings->section[kind];
	size_t *count = &settings->count[kind], i = 0;
	if (check(glob, kind == SECTION_STAGE ? 2 : 1) < 0) {
		return -EINVAL;
	}
	while (i < *count && strcmp(section[i].glob, glob) != 0) {
		i++;
	}
	if (i == APP_SETTINGS_MAX) {
		return -ENOSPC;
	}
	if (i == *count) {
		++*count;
		memset(&section[i], 0, sizeof(section[i]));
		memcpy(section[i].glob, glob, strlen(glob) + 1);
	}
	*ret = &section[i];
	return 0;
}

/* How specific a pattern is; of the first segment first. */
static unsigned rank_of(const char *glob)
{
	unsigned rank = 0;
	while (*glob) {
		size_t length = strcspn(glob, "/"), named = 0;
		for (size_t i = 0; i < length; i++) {
			named += glob[i] != '*' && glob[i] != '?';
		}
		rank = rank * 256 + (unsigned)(named == length ? RANK_IN_FULL : named);
		glob += length + (glob[length] == '/');
	}
	return rank;
}

static unsigned rank_for(const char *glob, const char *path)
{
	return 2 * rank_of(glob) + !proto_glob_match(glob, path);
}

/* The sections that match one of two paths, the least specific first; of equals those that match
 * only the second one come last. How many. */
static size_t matches(const struct app_settings *settings, enum app_section_kind kind,
	const char *path, const char *second, const struct app_section *ret[])
{
	size_t found = 0;
	for (size_t i = 0; settings && i < settings->count[kind]; i++) {
		const struct app_section *section = &settings->section[kind][i];
		if (!proto_glob_match(section->glob, path) &&
			!proto_glob_match(section->glob, second)) {
			continue;
		}
		size_t at = found++;
		while (at > 0 &&
			rank_for(ret[at - 1]->glob, path) > rank_for(section->glob, path)) {
			ret[at] = ret[at - 1];
			at--;
		}
		ret[at] = section;
	}
	return found;
}

static void overlay(struct stage_settings *into, const struct stage_settings *from)
{
	into->deadline_ns = from->deadline_ns ? from->deadline_ns : into->deadline_ns;
	into->warmup = from->warmup ? from->warmup : into->warmup;
	if (from->rss_growth_limit) {
		into->rss_growth_limit = from->rss_growth_limit;
	}
	if (from->category[0]) {
		memcpy(into->category, from->category, sizeof(into->category));
	}
	if (from->unit[0]) {
		memcpy(into->unit, from->unit, sizeof(into->unit));
	}
}

/* A section of its name is about every compute unit; one with the unit in it wins. */
struct stage_settings app_settings_of_stage(
	const struct app_settings *settings, const char *app, const struct stage *stage)
{
	struct stage_settings ret = {.deadline_ns = 0};
	const struct app_section *match[APP_SETTINGS_MAX];
	char path[2][2 * PROTO_NAME_SIZE];
	snprintf(path[0], sizeof(path[0]), "%s/%s", app, stage->base);
	snprintf(path[1], sizeof(path[1]), "%s/%s", app, stage->name);
	size_t count = matches(settings, SECTION_STAGE, path[0], path[1], match);
	for (size_t i = 0; i < count; i++) {
		overlay(&ret, &match[i]->stage);
	}
	return ret;
}

struct frames_settings app_settings_of_frames(const struct app_settings *settings, const char *app)
{
	struct frames_settings ret = {.deadline_ns = 0};
	const struct app_section *match[APP_SETTINGS_MAX];
	size_t count = matches(settings, SECTION_FRAME, app, app, match);
	for (size_t i = 0; i < count; i++) {
		const struct frames_settings *from = &match[i]->frames;
		ret.deadline_ns = from->deadline_ns ? from->deadline_ns : ret.deadline_ns;
		ret.target_fps = from->target_fps > 0 ? from->target_fps : ret.target_fps;
		ret.warmup = from->warmup ? from->warmup : ret.warmup;
	}
	return ret;
}

struct app_rules app_settings_of_app(const struct app_settings *settings, const char *app)
{
	struct app_rules ret = {.reserved = false};
	const struct app_section *match[APP_SETTINGS_MAX];
	size_t count = matches(settings, SECTION_APP, app, app, match);
	for (size_t i = 0; i < count; i++) {
		const struct app_rules *from = &match[i]->rules;
		if (from->reserved) {
			ret.reserved = true;
			ret.user = from->user;
		}
		if (from->has_restart_within) {
			ret.has_restart_within = true;
			ret.restart_within_ns = from->restart_within_ns;
		}
	}
	return ret;
}
