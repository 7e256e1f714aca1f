/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts of one life of the daemon after the other over the same memory, and what people heard. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/alerts/store.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define HOUR (3600 * SECOND)

enum { HEARD_MAX = 40000, RULES_MAX = 8 };

struct heard {
	char rule[PROTO_NAME_SIZE];
	enum alert_phase from, to;
	enum alert_severity severity;
	uint64_t t_ns;	      /* of the notification */
	uint64_t happened_ns; /* before it, if it was deferred */
	double value;
};

struct life {
	uint64_t *memory;
	struct sources *sources;
	struct metrics *metrics;
	struct timeline *timeline;
	struct alerts *alerts;
	struct source *source, *other;
	struct alert_rule rule[RULES_MAX];
	size_t rules;
	uint64_t now_ns;
	size_t count;
	struct heard heard[HEARD_MAX];
};

static inline void life_hear(void *ctx, const struct alert_transition *transition)
{
	struct life *life = ctx;
	if (transition->update) {
		return; /* people are not notified */
	}
	ck_assert_uint_lt(life->count, HEARD_MAX);
	struct heard *heard = &life->heard[life->count++];
	*heard = (struct heard){.from = transition->from,
		.to = transition->to,
		.severity = transition->alert->severity,
		.t_ns = transition->sent_ns ? transition->sent_ns : transition->t_ns,
		.happened_ns = transition->t_ns,
		.value = transition->value};
	snprintf(heard->rule, sizeof(heard->rule), "%s", transition->alert->rule->name);
}

static inline void life_end(struct life *life)
{
	alerts_destroy(life->alerts);
	timeline_destroy(life->timeline);
	metrics_destroy(life->metrics);
	sources_destroy(life->sources);
	life->alerts = NULL;
	life->timeline = NULL;
	life->metrics = NULL;
	life->sources = NULL;
}

static inline void life_reload(struct life *life)
{
	ck_assert_int_eq(alerts_set_rules(life->alerts, life->rule, life->rules, life->now_ns), 0);
}

/* As after kill -9: nothing of the life before was told to end. */
static inline void life_begin(struct life *life)
{
	static const uint8_t boot[16] = "this boot";
	life_end(life);
	ck_assert_int_eq(sources_create(&life->sources), 0);
	ck_assert_int_eq(sources_add(life->sources, "one", SECOND, &life->source), 0);
	ck_assert_int_eq(sources_add(life->sources, "two", SECOND, &life->other), 0);
	ck_assert_int_eq(metrics_create(&life->metrics), 0);
	ck_assert_int_eq(timeline_create(64, &life->timeline), 0);
	ck_assert_int_eq(alerts_create(life->metrics, life->timeline, &life->alerts), 0);
	alerts_attach_store(life->alerts, life->memory, boot, life->now_ns);
	ck_assert_int_eq(alerts_observe(life->alerts, life_hear, life), 0);
	life_reload(life);
}

static inline struct life *life_new(const struct alert_rule *rules, size_t count)
{
	struct life *life = calloc(1, sizeof(*life));
	ck_assert_ptr_nonnull(life);
	life->memory = calloc(1, alerts_store_bytes());
	ck_assert_ptr_nonnull(life->memory);
	life->now_ns = 1000 * SECOND;
	memcpy(life->rule, rules, count * sizeof(*rules));
	life->rules = count;
	life_begin(life);
	return life;
}

static inline void life_free(struct life *life)
{
	life_end(life);
	free(life->memory);
	free(life);
}

static inline void life_set(struct life *life, const char *name, double value)
{
	struct metric *metric;
	ck_assert_int_eq(metrics_add(life->metrics, life->source, name, UNIT_NONE, &metric), 0);
	metric_set(metric, value);
}

static inline void life_commit(struct life *life, uint64_t passed_ns)
{
	life->now_ns += passed_ns;
	metrics_commit(life->metrics, life->source, life->now_ns);
	alerts_commit(life->alerts, life->source, life->now_ns);
}

static inline const struct alert *life_alert(const struct life *life, const char *rule)
{
	const struct alert *alert;
	for (size_t i = 0; (alert = alerts_at(life->alerts, i)); i++) {
		if (strcmp(alert->rule->name, rule) == 0) {
			return alert;
		}
	}
	return NULL;
}

/* Uniform in [0, 1). */
static inline double noise(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*seed >> 33) / 2147483648.0;
}

static inline struct alert_rule plain_rule(
	const char *name, const char *metric, enum alert_kind kind, double threshold)
{
	struct alert_rule rule = {.kind = kind,
		.threshold = threshold,
		.critical = NAN,
		.clear = NAN,
		.over_ns = 64 * SECOND,
		.severity = ALERT_WARNING,
		.enabled = true};
	snprintf(rule.name, sizeof(rule.name), "%s", name);
	snprintf(rule.metric, sizeof(rule.metric), "%s", metric);
	return rule;
}
