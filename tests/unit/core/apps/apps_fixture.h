/* SPDX-License-Identifier: Apache-2.0 */
/* Apps as core keeps them, without the daemon: what a process attaches, declares and records. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "tests/unit/unit.h"

static const uint64_t S = 1000000000, MS = 1000000;
static const uint64_t T0 = 100000ull * 1000000000; /* long after boot */

static struct sources *sources;
static struct source *source;
static struct metrics *metrics;
static struct timeline *timeline;
static struct apps *apps;
static uint64_t drained_ns; /* the time of the records' drain */

static inline void setup(void)
{
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "apps", 0, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(1024, &timeline), 0);
	const struct apps_options options = {.stage_window = 1024, .frame_window = 300};
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &apps), 0);
	drained_ns = T0 + 1000 * S;
}

static inline void teardown(void)
{
	apps_destroy(apps);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
}

static inline struct app_process *attach_as(const char *name, uid_t uid, pid_t pid, uint64_t now_ns)
{
	struct app_process *process = NULL;
	ck_assert_int_eq(apps_attach(apps, name, uid, pid, 1, 65536, now_ns, &process), 0);
	return process;
}

static inline void declare(
	struct app_process *process, uint32_t index, const char *name, const char *unit)
{
	struct proto_declaration d = {.deadline_ns = 0};
	snprintf(d.name, sizeof(d.name), "%s", name);
	snprintf(d.unit, sizeof(d.unit), "%s", unit);
	apps_declare(apps, process, index, &d);
}

static inline void put(struct app_process *process, const struct proto_record *record)
{
	apps_record(apps, process, 0, record, drained_ns);
}

static inline uint64_t bits(double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof(word));
	return word;
}

static inline void put_number(
	struct app_process *process, enum proto_kind kind, uint16_t index, double value)
{
	const struct proto_record r = {.stage = index,
		.kind = (uint8_t)kind,
		.start_ns = T0,
		.value = bits(value),
		.frame = PROTO_NO_FRAME};
	put(process, &r);
}

static inline void put_run(
	struct app_process *process, uint16_t index, uint64_t start_ns, uint64_t duration_ns)
{
	const struct proto_record r = {.stage = index,
		.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = duration_ns,
		.frame = PROTO_NO_FRAME};
	put(process, &r);
}

/* Any record, drained 10 s after T0. */
static inline void record(struct app_process *process, enum proto_kind kind, uint16_t stage,
	uint64_t start_ns, uint64_t value, uint64_t frame)
{
	const struct proto_record r = {.stage = stage,
		.kind = (uint8_t)kind,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = value,
		.frame = frame};
	apps_record(apps, process, 0, &r, T0 + 10 * S);
}

static inline const struct metric *metric(const char *name)
{
	const struct metric *m = metrics_find(metrics, name);
	ck_assert_msg(m != NULL, "%s", name);
	return m;
}

static inline void is(const char *name, double want)
{
	double value = metric(name)->value;
	ck_assert_msg(fabs(value - want) <= 1e-9 * fabs(want), "%s is %.10g", name, value);
}

static inline void near(const char *name, double want)
{
	double value = metric(name)->value;
	ck_assert_msg(fabs(value - want) <= 1e-7 * fabs(want), "%s is %.10g", name, value);
}

static inline void null_because(const char *name, const char *reason)
{
	ck_assert_msg(isnan(metric(name)->value), "%s", name);
	ck_assert_str_eq(metric(name)->reason, reason);
}

static inline const char *last_text(void)
{
	const struct timeline_entry *e = timeline_from(timeline, timeline_last_serial(timeline));
	return e ? e->text : "";
}
