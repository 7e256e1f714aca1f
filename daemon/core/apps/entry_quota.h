/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_quota.h: limits how much of the timeline the apps of one user may fill by coming, going and
 * dying: a burst, then one entry per interval. Suppressed entries are counted and reported in one
 * line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ENTRY_QUOTA_UIDS = 16,	    /* accounted at one time; the least recently used is replaced */
	ENTRY_QUOTA_BURST = 64,	    /* entries of a level */
	ENTRY_QUOTA_INTERVAL_S = 5, /* then one in this time */
	ENTRY_QUOTA_MARKS_BURST = 256,
	ENTRY_QUOTA_MARK_INTERVAL_MS = 500,
};

/* Marks have a quota of their own: apps make more of them, and they must not displace the rest. */
enum entry_quota_kind {
	ENTRY_QUOTA_INFO,
	ENTRY_QUOTA_WARNING,
	ENTRY_QUOTA_MARK,
	ENTRY_QUOTA_KINDS
};

struct entry_quota_account {
	uid_t uid;
	uint64_t used_ns;			     /* time of the last request */
	uint64_t due_ns[ENTRY_QUOTA_KINDS];	     /* ratelimit.h */
	uint64_t suppressed, suppressed_reported_ns; /* since the last report, and its time */
};

struct entry_quota {
	size_t count;
	struct entry_quota_account account[ENTRY_QUOTA_UIDS];
};

struct apps;

/* Whether the user may add one more entry of this kind. What may not is counted. */
bool entry_quota_allows(struct apps *apps, uid_t uid, enum entry_quota_kind kind, uint64_t now_ns);
