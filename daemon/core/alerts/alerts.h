/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alerts.h: evaluates rules over metrics, with one state for each (rule, instance): ok -> pending
 * -> firing -> ok with hold times in both directions and a clear threshold. Pure: fed by commits,
 * time is an argument. Temperatures fire at >= the threshold (<= for below), everything else at >.
 * - A null changes no phase of above, below and equals; value becomes NAN.
 * - absent fires when the metric is null, its source stale, or the metric gone; for a metric that
 *   is gone or was never committed it waits at least ALERT_ABSENT_GRACE_NS. A rule without
 * wildcards has an instance also when its metric never came.
 * - slope_above evaluates how fast the metric grows, in its unit a minute, over the last over_ns
 *   (slope.h). A null of the metric clears it: the growing metric is gone. While too little is
 * known (at the start, after a gap or a suspend) nothing begins to fire, and what fires stays.
 * - Notifications of an instance are limited (state.h), its state is not. A transition carries the
 *   time at which it happened and, when that is later, the time at which it is sent.
 * - critical steps down to the rule's severity only while the value is past the first limit;
 *   between that and clear it does so without a notification, and below clear it waits for ok.
 * - clear keeps its distance for the second threshold too: critical 82, threshold 75, clear 72 goes
 *   back to warning at 79.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/state.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/timeline/timeline.h"

enum {
	ALERT_OWN_MAX =
		1024, /* instances, all usable by one owner; an eighth on top is for others */
	ALERT_INSTANCES_MAX = ALERT_OWN_MAX + ALERT_OWN_MAX / 8, /* ACCOUNTS_RESERVE */
	ALERT_OBSERVERS = 4
};

#define ALERT_ABSENT_GRACE_NS UINT64_C(10000000000)

#define ALERT_ORPHAN_NS UINT64_C(60000000000)

struct alert_test;

/* What observers get at each transition ok<->firing and warning<->critical (pending is silent), at
 * once, and once more when it is sent later. */
struct alert_transition {
	const struct alert *alert;
	enum alert_phase from, to;
	enum alert_severity from_severity;
	uint64_t t_ns;	  /* when it happened */
	uint64_t sent_ns; /* when it is sent, if that is later: the limit deferred it, or a silence
			   * over it has ended; else 0 */
	double value;	  /* at t_ns */
	bool quiet;	  /* nobody is to be notified: silenced, or acknowledged and not worse */
	bool update;	  /* no notification: state, acknowledgement or silence has changed, or the
			   * limit suppresses the notification. quiet, too */
	struct alert_test *test; /* NULL: no test. Observers store the outcome there */
};
typedef void alert_observer(void *ctx, const struct alert_transition *transition);

struct alerts;

/* What else is known of an alert's metric; NULL: nothing. Valid until the next call. */
typedef const char *alert_comment(void *ctx, const char *metric, uint64_t t_ns);

/* Does not own metrics and timeline; both must live longer. -ENOMEM. */
int alerts_create(struct metrics *metrics, struct timeline *timeline, struct alerts **ret);
void alerts_destroy(struct alerts *alerts);

/* Stores alerts in memory that outlives the process (not owned, 8-byte aligned,
 * alerts_store_bytes()): alerts of a previous process of this boot continue with their phase and
 * their times, and are not sent again. What fires there and is not evaluated again within
 * ALERT_ORPHAN_NS ends with a transition. Once, before the first rules. The number of slots that
 * were damaged, and dropped. */
size_t alerts_attach_store(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns);

/* Replaces all rules (copied). States of rules whose definition is unchanged stay; instances of
 * rules that went or changed are dropped, a firing one with a transition to ok first.
 * -ENOSPC over ALERT_RULES_MAX (nothing changed), -ENOMEM (nothing changed). */
int alerts_set_rules(
	struct alerts *alerts, const struct alert_rule *rules, size_t count, uint64_t now_ns);

/* Evaluates the rules against the source's metrics after its commit. No allocation except for an
 * instance seen for the first time; beyond ALERT_OWN_MAX, or half of what others leave for the
 * apps of a user, refused and counted, until others end. New metrics beyond what one commit may
 * match (rules.h) are evaluated from a later one on. */
void alerts_commit(struct alerts *alerts, const struct source *source, uint64_t t_ns);
/* Matches some of those, and of the refused after others ended, or when memory was short. False:
 * there were none. */
bool alerts_catch_up(struct alerts *alerts, uint64_t now_ns);

/* A metric goes away: its instances clear (firing ones with a transition) unless absent rules hold.
 */
void alerts_retire(struct alerts *alerts, const struct metric *metric, uint64_t now_ns);

/* The machine was suspended: values from before and after it make no slope. */
void alerts_break(struct alerts *alerts);

/* The index-th instance in a stable order, NULL past the end. */
const struct alert *alerts_at(const struct alerts *alerts, size_t index);
/* The index-th rule in the order of the configuration, NULL past the end. */
const struct alert_rule *alerts_rule_at(const struct alerts *alerts, size_t index);
/* True when the glob matches the name of a rule; also while there are no rules yet. */
bool alerts_knows_rule(const struct alerts *alerts, const char *glob);

/* The instances of a rule; silenced: of those that fire. */
struct alert_tally {
	size_t instances, pending, firing, silenced;
};
struct alert_tally alerts_count(
	const struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns);
size_t alerts_firing(const struct alerts *alerts);
uint64_t alerts_refused(const struct alerts *alerts);

/* Texts of firing alerts end with "; " and the comment, as far as it fits; never that of a test. */
void alerts_set_comment(struct alerts *alerts, alert_comment *comment, void *ctx);

int alerts_observe(struct alerts *alerts, alert_observer *observer, void *ctx); /* -ENOSPC */
void alerts_unobserve(struct alerts *alerts, void *ctx);
