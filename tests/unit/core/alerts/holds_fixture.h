/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts of one rule over one temperature, what people did about them, and who was called. */
#pragma once

#include "daemon/core/alerts/actions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/store.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static const uint8_t boot[16] = "this boot";
static void *memory, *holds_memory;
static struct sources *sources;
static struct metrics *metrics;
static struct timeline *timeline;
static struct alerts *alerts;
static struct source *source;
static uint64_t now_ns, limit; /* told transitions an hour */
static char heard[2048];

/* "!" calls people, "." is quiet, "~" only a hold or a state that nobody is notified of. */
static inline void on_transition(void *ctx, const struct alert_transition *transition)
{
	(void)ctx;
	size_t used = strlen(heard);
	snprintf(heard + used, sizeof(heard) - used, "%s%s>%s(%s)%s ",
		transition->update  ? "~"
		: transition->quiet ? "."
				    : "!",
		alert_phase_name(transition->from), alert_phase_name(transition->to),
		alert_severity_name(transition->alert->severity),
		transition->sent_ns ? "later" : "");
}

static inline void stop(void)
{
	alerts_destroy(alerts);
	timeline_destroy(timeline);
	metrics_destroy(metrics);
	sources_destroy(sources);
	alerts = NULL;
	timeline = NULL;
	metrics = NULL;
	sources = NULL;
}

static inline void start(void)
{
	stop();
	heard[0] = '\0';
	ck_assert_int_eq(sources_create(&sources), 0);
	ck_assert_int_eq(sources_add(sources, "one", SECOND, &source), 0);
	ck_assert_int_eq(metrics_create(&metrics), 0);
	ck_assert_int_eq(timeline_create(256, &timeline), 0);
	ck_assert_int_eq(alerts_create(metrics, timeline, &alerts), 0);
	alerts_attach_store(alerts, memory, boot, now_ns);
	alerts_attach_overrides(alerts, holds_memory, boot, now_ns);
	ck_assert_int_eq(alerts_observe(alerts, on_transition, NULL), 0);
	struct alert_rule rule = {.name = "hot",
		.metric = "temperature/*",
		.kind = ALERT_ABOVE,
		.threshold = 75,
		.critical = 90,
		.clear = 72,
		.max_per_hour = limit,
		.severity = ALERT_WARNING,
		.enabled = true};
	ck_assert_int_eq(alerts_set_rules(alerts, &rule, 1, now_ns), 0);
}

static inline void setup(void)
{
	memory = calloc(1, alerts_store_bytes());
	holds_memory = calloc(1, overrides_bytes());
	ck_assert(memory && holds_memory);
	now_ns = 100 * SECOND;
	limit = 0;
	start();
}

static inline void teardown(void)
{
	stop();
	free(memory);
	free(holds_memory);
}

static inline const struct alert *feed(double value, int seconds)
{
	struct metric *metric;
	ck_assert_int_eq(metrics_add(metrics, source, "temperature/cpu", UNIT_CELSIUS, &metric), 0);
	for (int i = 0; i < seconds; i++) {
		now_ns += SECOND;
		metric_set(metric, value);
		metrics_commit(metrics, source, now_ns);
		alerts_commit(alerts, source, now_ns);
	}
	return alerts_at(alerts, 0);
}

static inline int silence(const char *rule, const char *instance, unsigned seconds, uint32_t uid)
{
	struct alert_silence wanted = {
		.from_ns = now_ns, .until_ns = now_ns + seconds * SECOND, .uid = uid};
	snprintf(wanted.rule, sizeof(wanted.rule), "%s", rule);
	snprintf(wanted.instance, sizeof(wanted.instance), "%s", instance);
	return alerts_silence(alerts, &wanted);
}

/* What observers heard since the last look. */
static inline void expect(const char *what)
{
	ck_assert_str_eq(heard, what);
	heard[0] = '\0';
}

static inline const struct timeline_entry *last_entry(void)
{
	return timeline_from(timeline, timeline_last_serial(timeline));
}
