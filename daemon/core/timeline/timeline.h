/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h: records the things that happen: alert transitions, marks, apps that came, went or
 * died, source states, clock steps, restarts. A bounded set with serial numbers; observers get each
 * entry as it is added. Alerts, marks, apps and everything else have a quarter each that the others
 * cannot take; what one does not use, others may. The entries may lie in memory that outlives the
 * process (a mapped file in the run directory): then a restart continues where the last process
 * stopped, also after kill -9.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/name.h"

enum {
	TIMELINE_TEXT = 256,
	TIMELINE_OBSERVERS = 8,
	TIMELINE_DEFAULT_ENTRIES = 1024,
	TIMELINE_PAST = 1024, /* serials that timeline_reserve leaves to boots before this one */
};

enum timeline_kind {
	TIMELINE_ALERT,	 /* subject = rule:instance */
	TIMELINE_MARK,	 /* subject = app */
	TIMELINE_APP,	 /* attached, ended, died; subject = app */
	TIMELINE_SOURCE, /* subject = source */
	TIMELINE_CLOCK,
	TIMELINE_DAEMON,   /* start, reload, degraded */
	TIMELINE_THROTTLE, /* subject = the flag that began or ended */
	TIMELINE_SILENCED, /* an alert transition without notification; subject as for alerts */
	TIMELINE_HOLD, /* acknowledged, silenced, the end of it; subject = rule:instance, globs */
	TIMELINE_KIND_COUNT
};

enum timeline_level { TIMELINE_INFO, TIMELINE_WARNING, TIMELINE_CRITICAL };

struct timeline_entry {
	uint64_t serial; /* 1, 2, 3 … */
	uint64_t t_ns;
	int64_t time_us;   /* wall time of a past boot's entry, which has no t_ns; else 0 */
	uint32_t boot_seq; /* of a past boot's entry; 0: of this boot */
	enum timeline_kind kind;
	enum timeline_level level;
	uint32_t check; /* private: what an earlier process wrote is whole */
	char subject[2 * PROTO_NAME_SIZE];
	char text[TIMELINE_TEXT]; /* one line of clean UTF-8 */
};

struct timeline;

int timeline_create(size_t entries, struct timeline **ret); /* -ENOMEM, -EINVAL for 0 */

/* The bytes that a ring of that many entries needs. */
size_t timeline_bytes(size_t entries);

/* Entries in memory that is not owned: what a process of this boot left there is restored, except
 * what is damaged; anything else is formatted. memory is 8-byte aligned and has
 * timeline_bytes(entries). -ENOMEM, -EINVAL. */
int timeline_adopt(void *memory, size_t entries, const uint8_t boot_id[16], struct timeline **ret);
/* Entries found there that could not be restored. */
size_t timeline_damaged(const struct timeline *timeline);
void timeline_destroy(struct timeline *timeline);

/* A ring that is still empty begins behind the serials of past boots. */
void timeline_reserve(struct timeline *timeline);

/* Entries of past boots, oldest first: a copy of the newest of them, as many as there are serials
 * below the ring's, replaces what was there. Observers hear nothing. -ENOMEM. */
int timeline_set_past(
	struct timeline *timeline, const struct timeline_entry *entries, size_t count);

/* Adds an entry; when full, the oldest of who holds more than a quarter goes. Control bytes and
 * broken UTF-8 become '?'. */
void timeline_add(struct timeline *timeline, uint64_t t_ns, enum timeline_kind kind,
	enum timeline_level level, const char *subject, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* The entry with the smallest serial >= serial, or NULL. */
const struct timeline_entry *timeline_from(const struct timeline *timeline, uint64_t serial);
/* The entry with the largest serial <= serial, or NULL. Serials have gaps where entries went. */
const struct timeline_entry *timeline_back(const struct timeline *timeline, uint64_t serial);
uint64_t timeline_last_serial(const struct timeline *timeline); /* 0 = none */

typedef void timeline_observer(void *ctx, const struct timeline_entry *entry);
int timeline_observe(
	struct timeline *timeline, timeline_observer *observer, void *ctx); /* -ENOSPC */
void timeline_unobserve(struct timeline *timeline, void *ctx);

const char *timeline_kind_name(enum timeline_kind kind);    /* "alert", "mark", … */
const char *timeline_level_name(enum timeline_level level); /* "info", "warning", "critical" */
