/*
 * How much of the timeline a user's apps may fill by coming, going and dying: a burst, then a
 * little at a time. What is left out is counted and told in one line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/timeline/timeline.h"

enum {
	TOLD_UIDS = 16,	     /* accounted at one time; the quietest makes room */
	TOLD_BURST = 64,     /* entries of a level */
	TOLD_INTERVAL_S = 5, /* then one in this time */
	TOLD_MARKS_BURST = 256,
	TOLD_MARK_INTERVAL_MS = 500,
};

struct told_account {
	uid_t uid;
	uint64_t last_ns;	/* of the last entry wanted */
	uint64_t debt_ns[2];	/* information, warnings: when nothing is owed any more */
	uint64_t marks_debt_ns; /* the same of marks that apps make */
	uint64_t untold;	/* since it was told last */
	uint64_t last_told_ns;	/* how many were left out */
};

struct app_told {
	size_t count;
	struct told_account account[TOLD_UIDS];
	uint64_t untold; /* in all */
};

/* True when the user may have one more entry of this level. */
bool app_told_may(struct app_told *told, uid_t uid, enum timeline_level level, uint64_t now_ns);

/* The same for a mark: a user's apps make more of them, and may not push out what others tell. */
bool app_told_may_mark(struct app_told *told, uid_t uid, uint64_t now_ns);

/* How many entries of a user were left out since it was asked last, at most once a minute a user;
 * 0 = nobody's. */
uint64_t app_told_untold(struct app_told *told, uint64_t now_ns, uid_t *uid);
