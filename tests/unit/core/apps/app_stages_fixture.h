/* SPDX-License-Identifier: Apache-2.0 */
/* One process of one app, and the stages that its records make. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/frames/settings.h"
#include "daemon/core/runs/relations.h"
#include "tests/unit/unit.h"

static const uint64_t S = 1000000000, MS = 1000000, T0 = UINT64_C(1000000000000);

static struct sources *sources;
static struct source *source;
static struct metrics *metrics;
static struct timeline *timeline;
static struct apps *apps;
static struct app_process *process;
static uint64_t read_ns; /* when the daemon takes the records */

static inline void open_apps(size_t stage_memory)
{
	read_ns = T0 + 1000 * S;
	const struct apps_options options = {
		.stage_window = 1024, .frame_window = 300, .stage_memory = stage_memory};
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "apps", 0, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(256, &timeline), 0);
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
	ck_assert_int_eq(apps_attach(apps, "cam", 1, 10, 1, 65536, T0, &process), 0);
}

static inline void setup(void)
{
	open_apps(0);
}

static struct app_settings settings; /* of the operator */

static inline void set_stage(const char *glob, struct stage_settings of_stage)
{
	struct app_section *section = NULL;
	ck_assert_int_eq(app_settings_section(&settings, SECTION_STAGE, glob, &section), 0);
	section->stage = of_stage;
	apps_configure(apps, &(struct apps_config){.settings = &settings});
}

static inline void set_nothing(void)
{
	settings = (struct app_settings){.count = {0}};
	apps_configure(apps, &(struct apps_config){.settings = &settings});
}

static inline void teardown(void)
{
	apps_destroy(apps);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static inline uint16_t declare_as(const char *name, const char *category, const char *unit)
{
	struct proto_declaration d = {.deadline_ns = 0};
	snprintf(d.name, sizeof(d.name), "%s", name);
	snprintf(d.category, sizeof(d.category), "%s", category);
	snprintf(d.unit, sizeof(d.unit), "%s", unit);
	uint16_t index = process->declared;
	apps_declare(apps, process, index, &d);
	return index;
}

static inline uint16_t declare(const char *name)
{
	return declare_as(name, "", "");
}

static inline void put(enum proto_kind kind, uint8_t flags, uint16_t stage, uint64_t start_ns,
	uint64_t value, uint64_t frame)
{
	const struct proto_record r = {.stage = stage,
		.kind = (uint8_t)kind,
		.flags = flags,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = value,
		.frame = frame};
	apps_record(apps, process, 0, &r, read_ns);
}

static inline void run_in(unsigned depth, uint16_t stage, uint64_t start_ns, uint64_t duration_ns)
{
	put(PROTO_KIND_COMPLETE,
		(uint8_t)(depth << PROTO_RECORD_DEPTH_SHIFT | (depth ? PROTO_RECORD_NESTED : 0)),
		stage, start_ns, duration_ns, PROTO_NO_FRAME);
}

static inline struct app *app(void)
{
	return apps_find(apps, "cam");
}

static inline size_t index_of(const char *name)
{
	size_t i = 0;
	while (i < app()->stages && strcmp(app()->stage[i]->name, name) != 0) {
		i++;
	}
	ck_assert_msg(i < app()->stages, "no stage %s", name);
	return i;
}

static inline struct stage *stage(const char *name)
{
	return app()->stage[index_of(name)];
}

static inline const char *parent(const char *name)
{
	struct app_relations relations;
	app_relate(app(), &relations);
	int16_t i = relations.parent[index_of(name)];
	return i == APP_NO_STAGE ? "" : app()->stage[i]->name;
}

static inline bool counts(const char *name)
{
	struct app_relations relations;
	app_relate(app(), &relations);
	return relations.counts[index_of(name)];
}

static inline const char *last_text(void)
{
	return timeline_from(timeline, timeline_last_serial(timeline))->text;
}
