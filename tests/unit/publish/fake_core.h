/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core whose alerts and apps are plain arrays of the test, for publishers: the test says what
 * fires, when. The program must not use anything else of alerts.c and apps.c.
 */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/alerts/text.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/accounts.h"
#include "daemon/util/deferred_close.h"
#include "tests/unit/unit.h"

static struct {
	alert_observer *observer[ALERT_OBSERVERS];
	void *ctx[ALERT_OBSERVERS];
	struct alert_rule rule;
	struct alert alert[64];
	size_t count;
	struct app *app;
} fake;

int alerts_observe(struct alerts *alerts, alert_observer *observer, void *ctx)
{
	(void)alerts;
	for (size_t i = 0; i < ALERT_OBSERVERS; i++) {
		if (!fake.observer[i]) {
			fake.observer[i] = observer;
			fake.ctx[i] = ctx;
			return 0;
		}
	}
	return -28; /* ENOSPC */
}

void alerts_unobserve(struct alerts *alerts, void *ctx)
{
	(void)alerts;
	for (size_t i = 0; i < ALERT_OBSERVERS; i++) {
		if (fake.ctx[i] == ctx) {
			fake.observer[i] = NULL;
			fake.ctx[i] = NULL;
		}
	}
}

void diagnoses_observe(struct diagnoses *diagnoses, diagnoses_observer *observer, void *ctx)
{
	(void)diagnoses;
	(void)observer;
	(void)ctx;
}

const struct diagnosis *diagnoses_published(
	const struct diagnoses *diagnoses, size_t index, const char **app)
{
	(void)diagnoses;
	(void)index;
	(void)app;
	return NULL;
}

const struct alert *alerts_at(const struct alerts *alerts, size_t index)
{
	(void)alerts;
	return index < fake.count ? &fake.alert[index] : NULL;
}

size_t alerts_firing(const struct alerts *alerts)
{
	(void)alerts;
	size_t firing = 0;
	for (size_t i = 0; i < fake.count; i++) {
		firing += fake.alert[i].phase == ALERT_FIRING;
	}
	return firing;
}

const char *alert_phase_name(enum alert_phase phase)
{
	static const char *const names[] = {"ok", "pending", "firing"};
	return names[phase];
}

const char *alert_severity_name(enum alert_severity severity)
{
	static const char *const names[] = {"info", "warning", "critical"};
	return names[severity];
}

void alert_unit(enum unit unit, bool per_minute, char ret[ALERT_UNIT])
{
	snprintf(ret, ALERT_UNIT, "%s%s", unit_name(unit), per_minute ? " per minute" : "");
}

struct app *apps_at(struct apps *apps, size_t index)
{
	(void)apps;
	return index == 0 ? fake.app : NULL;
}

/* The instance's alert, made at its first use. */
static inline struct alert *fake_alert(const char *instance)
{
	for (size_t i = 0; i < fake.count; i++) {
		if (strcmp(fake.alert[i].instance, instance) == 0) {
			return &fake.alert[i];
		}
	}
	ck_assert_uint_lt(fake.count, 64);
	struct alert *alert = &fake.alert[fake.count++];
	snprintf(fake.rule.name, sizeof(fake.rule.name), "hot");
	*alert = (struct alert){.rule = &fake.rule,
		.unit = UNIT_CELSIUS,
		.severity = ALERT_WARNING,
		.value = 81.5,
		.threshold = 80};
	snprintf(alert->instance, sizeof(alert->instance), "%s", instance);
	snprintf(alert->metric, sizeof(alert->metric), "temperature/%.40s", instance);
	return alert;
}

/* One transition to phase, told to the observers; text tells it from others. */
static inline void fake_transition(
	const char *instance, enum alert_phase to, const char *text, uint64_t t_ns)
{
	struct alert *alert = fake_alert(instance);
	struct alert_transition transition = {.alert = alert,
		.from = alert->phase,
		.to = to,
		.from_severity = alert->severity,
		.t_ns = t_ns,
		.value = alert->value};
	alert->phase = to;
	alert->since_ns = alert->t_ns = t_ns;
	snprintf(alert->text, sizeof(alert->text), "%s", text);
	for (size_t i = 0; i < ALERT_OBSERVERS; i++) {
		if (fake.observer[i]) {
			fake.observer[i](fake.ctx[i], &transition);
		}
	}
}

static struct wallclock fake_wall;
static struct machine_facts fake_facts = {.version = "0.1.0",
	.hostname = "nano-7",
	.model = "A board",
	.os = "An OS",
	.boot_id = "0f0e",
	.cpus = 4};
static struct broker_status fake_broker;
static struct counters fake_counters;

static inline void fake_core_init(struct core *core)
{
	*core = (struct core){.wall = &fake_wall,
		.facts = &fake_facts,
		.broker = &fake_broker,
		.counters = &fake_counters};
	wallclock_init(&fake_wall);
	/* 2024-02-29T12:00:00.250Z at monotonic 0. */
	wallclock_note(&fake_wall, 0, INT64_C(1709208000250000000), true);
	ck_assert_int_eq(accounts_create(&core->accounts), 0);
	ck_assert_int_eq(deferred_close_create(&core->deferred_close), 0);
	ck_assert_int_eq(sources_create(&core->sources), 0);
	ck_assert_int_eq(metrics_create(&core->metrics), 0);
	ck_assert_int_eq(timeline_create(64, &core->timeline), 0);
}

static inline void fake_core_finish(struct core *core)
{
	metrics_destroy(core->metrics);
	sources_destroy(core->sources);
	timeline_destroy(core->timeline);
	deferred_close_destroy(core->deferred_close);
	accounts_destroy(core->accounts);
}
