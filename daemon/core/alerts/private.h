/* What the files of alerts share: alerts.c (rules, commits, retirement), alerts_instances.c (which
 * instances there are), alerts_tell.c (who hears of a transition). */
#pragma once

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/holds.h"
#include "daemon/core/alerts/match.h"
#include "daemon/core/alerts/memory.h"
#include "daemon/core/alerts/state.h"

struct alert_instance {
	struct alert_state state;
	struct alert_slope *slope;    /* of slope rules only */
	const struct metric *metric;  /* NULL: gone or not there yet */
	struct alert_instance *next;  /* of the same metric, of all absent rules, or waiting */
	struct alert_instance *alike; /* of absent rules: in the same bucket */
	int slot;		      /* in what is remembered; -1 = none */
};

enum { ALERT_ABSENT_BUCKETS = 256 };

struct alerts {
	struct metrics *metrics;
	struct timeline *timeline;
	size_t rules;
	struct alert_rule **rule;
	struct alerts_match match;
	size_t count;
	struct alert_instance *instance[ALERT_INSTANCES_MAX];
	/* By slot of the metric: serial + 1 of the one whose rules were looked up (0 = none yet),
	 * and its instances. */
	uint64_t matched[METRICS_MAX];
	struct alert_instance *of[METRICS_MAX];
	struct alert_instance *absent;
	struct alert_instance *waiting; /* restored, not of absent rules: no metric yet */
	struct alert_instance *bucket[ALERT_ABSENT_BUCKETS]; /* the same by rule and name */
	uint64_t refused;
	struct alerts_memory memory;
	uint64_t suppressed;  /* notifications that a limit held back */
	uint64_t deferred_ns; /* when one of them may be sent; UINT64_MAX = there is none */
	uint64_t orphans_ns;  /* when what nobody took up ends; 0 = there is none */
	struct alert_holds holds;
	void *own_holds;       /* while none are remembered */
	uint64_t told_debt_ns; /* until when the timeline's entries of holds are owed for */
	uint64_t untold_holds; /* since the last entry */
	uint64_t due_ns;       /* when a silence or the test ends; UINT64_MAX = there is none */
	bool restored;	       /* an instance was: silences over it may have ended meanwhile */
	struct alert_test test;
	size_t observers;
	struct {
		alert_observer *call;
		void *ctx;
	} observer[ALERT_OBSERVERS];
};

/* One instance at one moment: alerts_judge.c. hold_ns as in alert_state_step(). */
void alert_instance_judge(struct alerts *alerts, struct alert_instance *instance, double value,
	uint64_t t_ns, uint64_t hold_ns);
void alert_instance_judge_slope(
	struct alerts *alerts, struct alert_instance *instance, double value, uint64_t t_ns);
void alert_instance_judge_absent(
	struct alerts *alerts, struct alert_instance *instance, uint64_t t_ns);
/* Sends what the limit held back and allows now, whether or not its metric is still sampled. */
void alerts_flush_deferred(struct alerts *alerts, uint64_t t_ns);

/* Notifies the timeline and the observers of the alert's present state, whose text is made: the
 * last that was sent was `sent`. sent_ns: when it happened before; 0 = it happens now. */
void alerts_send(struct alerts *alerts, struct alert *alert, const struct alert_notifier *sent,
	uint64_t sent_ns);
/* Nobody is notified of this change: observers hear of the state. */
void alerts_suppress(struct alerts *alerts, struct alert *alert, enum alert_phase from,
	enum alert_severity from_severity, bool logged);
/* The alert is over, whatever hold times and the limit say; phase: what it was. ending as in
 * alerts_text(). */
void alerts_end(struct alerts *alerts, struct alert *alert, enum alert_phase phase,
	const struct alert_notifier *notifier, const char *ending);

/* Logs the transition of the alert and dispatches it to the observers. */
void alerts_dispatch(
	struct alerts *alerts, struct alert *alert, const struct alert_transition *transition);
enum timeline_level alert_timeline_level(const struct alert *alert);
void alert_subject(const struct alert *alert, char ret[2 * PROTO_NAME_SIZE]);

/* alerts_quiet.c: whether a transition calls people; keeps the alert's own fields about it. */
void alert_hold_judge(
	struct alerts *alerts, struct alert *alert, struct alert_transition *ret, uint64_t now_ns);
/* A silence that began or ended, or a state that was remembered: the alert's fields, and it is told
 * when it fires and is silenced no more. */
void alert_hold_refresh(struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns);
void alert_hold_drop_ack(struct alerts *alerts, const struct alert *alert);
/* Acknowledgements of what does not fire any more go. */
void alert_holds_prune(struct alerts *alerts);

/* Ends what the last process left firing and nobody judges any more: its rule or its metric did not
 * come back. */
void alerts_end_orphans(struct alerts *alerts, uint64_t t_ns);

/* Makes the instance of the rule over the metric; one that is there already takes the metric up.
 * metric NULL: not there yet. */
void alert_instance_add(struct alerts *alerts, const struct alert_rule *rule, const char *name,
	const struct metric *metric, uint64_t t_ns);
/* It is out of its list already. A firing alert ends with a transition whatever the hold times say.
 */
void alert_instance_end(struct alerts *alerts, struct alert_instance *instance, uint64_t now_ns,
	const char *ending);
/* One that waits for its metric stays as it was. */
void alert_instance_judge_waiting(
	struct alerts *alerts, struct alert_instance *instance, uint64_t t_ns);
/* Ends what fired in the last process and whose metric did not come back, except what is said of
 * an app: it stays until that is back. */
void alert_instances_end_waiting(struct alerts *alerts, uint64_t now_ns);
/* What the rule has from the start: what fired in the last process, whose metric may come later;
 * of an absent rule the metric that it names, and those that the last process knew. */
void alert_instances_await(struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns);
/* Looks the metric's rules up. What it took of ALERT_WORK_COMMIT. */
size_t alert_instances_match(struct alerts *alerts, const struct metric *metric, uint64_t t_ns);
/* Drops the instances of the list whose rules are not among the new ones. */
void alert_instances_drop(struct alerts *alerts, struct alert_instance **list,
	struct alert_rule *const *rules, size_t count, uint64_t now_ns);
