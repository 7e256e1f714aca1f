/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares what the files of the alert engine share. alerts.c evaluates rules,
 * instances.c makes and ends their instances, notify.c decides who is notified, actions.c does what
 * people ask for.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/alerts.h"
#include "daemon/core/alerts/overrides.h"
#include "daemon/core/alerts/rules.h"
#include "daemon/core/alerts/state.h"
#include "daemon/core/alerts/store.h"

struct alert_instance {
	struct alert_state state;
	struct alert_slope *slope;	   /* of slope rules only */
	const struct metric *metric;	   /* NULL: gone or not there yet */
	LIST_ENTRY(alert_instance) peers;  /* of the same metric, of all absent rules, or waiting */
	LIST_ENTRY(alert_instance) bucket; /* of the same hash of rule and name */
	int slot;			   /* in the store; -1 = none */
};

LIST_HEAD(alert_list, alert_instance);

enum { ALERT_BUCKETS = 256 };

#define ALERT_REFUSED (UINT64_C(1) << 63) /* an instance of the metric was, and is counted */

struct alerts {
	struct metrics *metrics;
	struct timeline *timeline;
	size_t rules;
	struct alert_rule *rule;
	struct alert_match match;
	size_t count;
	struct alert_instance *instance[ALERT_INSTANCES_MAX]; /* in the order of their creation */
	uid_t owner[ALERT_INSTANCES_MAX]; /* of their metrics, in the same order */
	uid_t counted;			  /* the owner of own instances */
	size_t own;			  /* SIZE_MAX: to be counted */
	/* By slot of the metric: serial + 1 of the one whose rules were looked up (0 = none yet),
	 * with ALERT_REFUSED, and its instances. */
	uint64_t matched[METRICS_MAX];
	struct alert_list of[METRICS_MAX];
	struct alert_list absent;
	struct alert_list waiting; /* restored, not of absent rules: no metric yet */
	struct alert_list bucket[ALERT_BUCKETS];
	struct alert_store store;
	bool behind;	      /* the last commits had more new metrics than they may match */
	bool starved;	      /* an instance was refused since the last one ended, … */
	bool retry;	      /* … or before: it may come in now */
	bool short_of_memory; /* one was refused for this since the last commit */
	uint64_t refused;     /* instances */
	uint64_t deferred_ns; /* when one of them may be sent; UINT64_MAX = there is none */
	uint64_t orphans_ns;  /* when inherited slots that are not restored end; 0 = none */
	struct overrides overrides;
	void *own_overrides;	/* while no memory is attached */
	uint64_t report_due_ns; /* of the timeline's limit for actions */
	uint64_t unreported;	/* actions since the last entry */
	uint64_t due_ns;	/* when a silence or the test ends; UINT64_MAX = there is none */
	bool restored;		/* an instance was: silences over it may have ended meanwhile */
	struct alert_test test;
	alert_comment *comment; /* NULL = none */
	void *comment_ctx;
	size_t observers;
	struct {
		alert_observer *call;
		void *ctx;
	} observer[ALERT_OBSERVERS];
};

/* Ends and frees it. A firing alert ends with a transition whatever the hold times say. */
void alert_instance_end(struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns,
	const char *ending);
/* Looks up the metric's rules. How much of ALERT_WORK_COMMIT that was. */
size_t alert_instances_match(struct alerts *alerts, const struct metric *metric, uint64_t t_ns);
/* Others have ended: metrics with a refused instance are to be matched again. */
void alert_instances_retry(struct alerts *alerts, uint64_t now_ns);
/* Makes what the rule has from the start: what fired in the previous process, whose metric may come
 * later; of an absent rule the metric that it names, and those that the previous process knew. */
void alert_instances_restore(struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns);
/* Ends what the previous process left firing and nothing evaluates any more, because its rule or
 * its metric did not come back. Alerts about an app stay until it attaches again. */
void alert_instances_end_orphans(struct alerts *alerts, uint64_t now_ns);

/* Steps the state with a value (hold_ns as in alert_state_step()) and notifies of what changed. */
void alert_evaluate(struct alerts *alerts, struct alert_state *state, const struct metric *metric,
	double value, uint64_t t_ns, uint64_t hold_ns);
/* Sends what the limit deferred and allows now, whether or not its metric is still sampled. */
void alerts_flush_deferred(struct alerts *alerts, uint64_t t_ns);
/* Ends the alert, whatever hold times and the limit say; ending as in alert_text(). */
void alert_end(
	struct alerts *alerts, struct alert_state *state, uint64_t now_ns, const char *ending);
/* After a silence began or ended, or a state was restored: updates the notifier, and sends the
 * alert when it fires and is not muted any more. */
void alert_refresh(struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns);
void alert_drop_ack(struct alerts *alerts, const struct alert *alert);
/* "rule:instance" of the timeline; instance "" = none. */
void alert_subject(const char *rule, const char *instance, char ret[2 * PROTO_NAME_SIZE]);
