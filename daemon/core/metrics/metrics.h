/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h: keeps the table of current values by path name, and the one stream of commits that
 * history, alerts, publishers and subscriptions observe. A source sets its metrics and commits them
 * with one time; those that it did not set become null, so no previous number survives a commit.
 * Nothing is allocated except when a name is seen for the first time.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/unit.h"
#include "proto/name.h"

enum {
	METRICS_OWN_MAX = 4096, /* all usable by one owner; an eighth on top is for others */
	METRICS_MAX = METRICS_OWN_MAX + METRICS_OWN_MAX / 8, /* ACCOUNTS_RESERVE */
	METRICS_OBSERVERS = 8,
};

/* Open for reading; written only by metrics.c. Stays where it is until it is retired. */
struct metric {
	uint32_t id;	 /* slot, 0 … METRICS_MAX-1; reused after retirement */
	uint32_t serial; /* never reused */
	struct source *source;
	double value; /* NAN = null */
	double limit; /* of a state its highest (cooling max_state); of what counts only past a
		       * limit, that limit (growth_over_limit); NAN = none */
	const char *reason; /* why value is null; static text; NULL when there is a value */
	const char *origin; /* how the value came about; static text; NULL when the source says all
			     */
	uint64_t t_ns;	    /* of the last commit; 0 = never */
	uint64_t value_ns;  /* of the value, or of the last event before there was none; 0 = t_ns */
	uint32_t list_index; /* in the list of its source */
	int zone;	     /* number of its thermal zone; -1 = none */
	enum unit unit;
	bool ended;	/* null because what it measures has ended, not for lack of a reading */
	bool full_rate; /* false: history keeps no full-rate tier (self, collector) */
	bool set;	/* since the last commit */
	bool yields;	/* any other source that adds the name gets it */
	uid_t owner;	/* the user whose app has it; 0 = the device or a trusted user */
	char name[];
};

struct metrics_observer {
	/* After a source's commit: its metrics hold the values of time t_ns. */
	void (*commit)(void *ctx, const struct source *source, uint64_t t_ns);
	/* Before a metric goes away. May be NULL. */
	void (*retire)(void *ctx, const struct metric *metric);
	void *ctx;
};

struct metrics;

int metrics_create(struct metrics **ret); /* -ENOMEM */
void metrics_destroy(struct metrics *metrics);

/* Finds or adds the metric `name` (a path of clean segments) of the source. -EINVAL for a bad name,
 * -EEXIST when another source owns it (one that yields is retired, and the name is
 * added again), -ENOSPC (counted in metrics_refused), -ENOMEM. */
int metrics_add(struct metrics *metrics, struct source *source, const char *name, enum unit unit,
	struct metric **ret);

/* Removes it in constant time, after its observers were called; the pointer is invalid then. The
 * last metric of its source takes its index in the list. */
void metrics_retire(struct metrics *metrics, struct metric *metric);

/* Sets the value of the coming commit; NAN or inf becomes null ("not a number"). */
void metric_set(struct metric *metric, double value);

/* The same for a value that is older than the commit: one that holds until it is set again, or that
 * is read less often than the rest. */
void metric_set_at(struct metric *metric, double value, uint64_t value_ns);

/* Sets null with a reason: static storage (a literal or errno_reason()). */
void metric_set_null(struct metric *metric, const char *reason);
/* Sets null where there is a reason, else the value. Accepts no metric (NULL). */
void metric_set_or_null(struct metric *metric, double value, const char *reason);
/* Sets null when what the metric measures has ended: alerts on it clear, while for lack of a
 * reading they would stay as they are. */
void metric_set_ended(struct metric *metric, const char *reason);

/* Null because its stream is idle: "no event", as the reason says together with its age. */
void metric_set_idle(struct metric *metric, uint64_t last_event_ns);

/* When the value is of, for its age. */
static inline uint64_t metric_time_ns(const struct metric *metric)
{
	return metric->value_ns > 0 && !metric->reason ? metric->value_ns : metric->t_ns;
}

/* Why it is null, with the time for which there was no event; "" when it has a value. */
struct metric_reason {
	char text[96];
};
struct metric_reason metric_reason(const struct metric *metric, uint64_t now_ns);

/* Publishes what was set since the last commit as of t_ns (not before the source's previous commit:
 * an earlier time is raised to it). Metrics of the source that were not set become null
 * ("not reported"). Marks the source's last_ok_ns when at least one metric has a value. */
void metrics_commit(struct metrics *metrics, struct source *source, uint64_t t_ns);

struct metric *metrics_find(struct metrics *metrics, const char *name);
/* The value of the metric with this name. NAN if it is null or there is no such metric. */
double metrics_value(struct metrics *metrics, const char *name);

/* Iterates in slot order: start with 0; *cursor is the state. NULL at the end. Safe across adds. */
struct metric *metrics_next(struct metrics *metrics, uint32_t *cursor);

/* The metrics of one source, in the order they were added until one is retired; NULL past the end.
 * O(1). */
struct metric *metrics_of(struct metrics *metrics, const struct source *source, size_t index);

size_t metrics_count(const struct metrics *metrics);
/* Names that were not added: those over METRICS_MAX, and those over a limit of the caller's. */
uint64_t metrics_refused(const struct metrics *metrics);
void metrics_refuse(struct metrics *metrics);

/* Observers are called in the order of registration. -ENOSPC. */
int metrics_observe(struct metrics *metrics, struct metrics_observer observer);
void metrics_unobserve(struct metrics *metrics, void *ctx);

/* A static text for an errno (positive or negative): "Permission denied". Never NULL. */
const char *errno_reason(int error);
