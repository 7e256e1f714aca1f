/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator says about stages and frames: which sections match, and which one decides. */
#include "daemon/core/frames/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static const uint64_t MS = 1000000;
static struct app_settings settings;

static struct app_section *section(enum app_section_kind kind, const char *glob)
{
	struct app_section *ret = NULL;
	ck_assert_msg(app_settings_section(&settings, kind, glob, &ret) == 0, "%s", glob);
	return ret;
}

static struct stage_settings *stage(const char *glob)
{
	return &section(SECTION_STAGE, glob)->stage;
}

static struct frames_settings *frame(const char *glob)
{
	return &section(SECTION_FRAME, glob)->frames;
}

static struct stage_settings settings_of(const char *app, const char *name, const char *base)
{
	struct stage told = {.count = 0};
	snprintf(told.name, sizeof(told.name), "%s", name);
	snprintf(told.base, sizeof(told.base), "%s", base);
	return app_settings_of_stage(&settings, app, &told);
}

static uint64_t deadline_ms(const char *app, const char *name)
{
	return settings_of(app, name, name).deadline_ns / MS;
}

START_TEST(nothing_is_said_without_a_matching_section)
{
	settings = (struct app_settings){.count = {0}};
	stage("cam/infer")->deadline_ns = 5 * MS;
	const struct stage_settings none = settings_of("cam", "publish", "publish");
	ck_assert_uint_eq(none.deadline_ns, 0);
	ck_assert_str_eq(none.unit, "");
	ck_assert_uint_eq(none.warmup, 0);
	ck_assert_int_eq(none.rss_growth_limit, 0);
	ck_assert_uint_eq(app_settings_of_frames(&settings, "cam").deadline_ns, 0);
	ck_assert_uint_eq(deadline_ms("cam", "infer"), 5);
}
END_TEST

START_TEST(most_specific_section_decides_whatever_their_order)
{
	static const char *const globs[] = {
		"*/*", "*/inf*", "*/infer", "c*/infer", "cam/*", "cam/i*", "cam/infer"};
	enum { COUNT = sizeof(globs) / sizeof(globs[0]) };
	for (size_t turn = 0; turn < 2 * COUNT; turn++) { /* rotated, and backwards */
		settings = (struct app_settings){.count = {0}};
		for (size_t i = 0; i < COUNT; i++) {
			size_t at = (turn + (turn < COUNT ? i : COUNT - i)) % COUNT;
			stage(globs[at])->deadline_ns = (at + 1) * MS;
		}
		ck_assert_uint_eq(deadline_ms("cam", "infer"), 7);
		ck_assert_uint_eq(deadline_ms("cam", "input"), 6);
		ck_assert_uint_eq(deadline_ms("cam", "publish"), 5);
		ck_assert_uint_eq(deadline_ms("car", "infer"), 4);
		ck_assert_uint_eq(deadline_ms("bus", "infer"), 3);
		ck_assert_uint_eq(deadline_ms("bus", "inform"), 2);
		ck_assert_uint_eq(deadline_ms("bus", "x"), 1);
	}
}
END_TEST

START_TEST(app_decides_before_the_stage)
{
	settings = (struct app_settings){.count = {0}};
	stage("ca*/*")->deadline_ns = 1 * MS;
	stage("c*/infer")->deadline_ns = 2 * MS;
	ck_assert_uint_eq(deadline_ms("cam", "infer"), 1);
	ck_assert_uint_eq(deadline_ms("cub", "infer"), 2);
}
END_TEST

START_TEST(each_key_comes_from_the_section_that_has_it)
{
	settings = (struct app_settings){.count = {0}};
	stage("*/*")->warmup = 10;
	stage("*/*")->rss_growth_limit = 1 << 20;
	memcpy(stage("*/infer")->unit, "gpu", 4);
	stage("cam/infer")->deadline_ns = 5 * MS;
	stage("cam/infer")->warmup = 3;
	memcpy(stage("cam/infer")->category, "nn", 3);
	const struct stage_settings all = settings_of("cam", "infer", "infer");
	ck_assert_uint_eq(all.deadline_ns, 5 * MS);
	ck_assert_uint_eq(all.warmup, 3);
	ck_assert_int_eq(all.rss_growth_limit, 1 << 20);
	ck_assert_str_eq(all.unit, "gpu");
	ck_assert_str_eq(all.category, "nn");
}
END_TEST

START_TEST(a_section_holds_on_each_unit_and_one_with_the_unit_wins)
{
	settings = (struct app_settings){.count = {0}};
	stage("cam/infer_cpu")->deadline_ns = 9 * MS;
	stage("cam/infer")->deadline_ns = 5 * MS;
	stage("cam/infer")->warmup = 3;
	stage("*/infer_cpu")->warmup = 4;
	ck_assert_uint_eq(settings_of("cam", "infer_cpu", "infer").deadline_ns, 9 * MS);
	ck_assert_uint_eq(settings_of("cam", "infer_cpu", "infer").warmup, 3);
	ck_assert_uint_eq(settings_of("cam", "infer_gpu", "infer").deadline_ns, 5 * MS);
	ck_assert_uint_eq(settings_of("cam", "infer", "infer").deadline_ns, 5 * MS);
}
END_TEST

START_TEST(later_one_of_equals_decides)
{
	settings = (struct app_settings){.count = {0}};
	stage("c*m/infer")->deadline_ns = 1 * MS;
	stage("ca*/infer")->deadline_ns = 2 * MS;
	ck_assert_uint_eq(deadline_ms("cam", "infer"), 2);
	frame("*am")->target_fps = 20;
	frame("ca?")->target_fps = 30;
	frame("*")->deadline_ns = 40 * MS;
	ck_assert_double_eq(app_settings_of_frames(&settings, "cam").target_fps, 30);
	ck_assert_uint_eq(app_settings_of_frames(&settings, "cam").deadline_ns, 40 * MS);
	ck_assert_double_eq(app_settings_of_frames(&settings, "dam").target_fps, 20);
}
END_TEST

START_TEST(what_is_no_glob_is_einval_and_too_many_are_enospc)
{
	static const char *const bad[] = {
		"", "cam", "/", "cam/", "/infer", "a/b/c", "a b/c", "a/[b]"};
	settings = (struct app_settings){.count = {0}};
	struct app_section *found = NULL;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(
			app_settings_section(&settings, SECTION_STAGE, bad[i], &found) == -EINVAL,
			"%s", bad[i]);
	}
	ck_assert_int_eq(app_settings_section(&settings, SECTION_FRAME, "a/b", &found), -EINVAL);
	ck_assert_int_eq(app_settings_section(&settings, SECTION_FRAME, "", &found), -EINVAL);
	for (int i = 0; i < APP_SETTINGS_MAX; i++) {
		char glob[32];
		snprintf(glob, sizeof(glob), "cam/s%d", i);
		stage(glob);
		frame(glob + 4);
	}
	ck_assert_int_eq(
		app_settings_section(&settings, SECTION_STAGE, "cam/more", &found), -ENOSPC);
	ck_assert_int_eq(app_settings_section(&settings, SECTION_FRAME, "more", &found), -ENOSPC);
	ck_assert_ptr_null(found);
	ck_assert_int_eq(app_settings_section(&settings, SECTION_STAGE, "cam/s63", &found), 0);
}
END_TEST
