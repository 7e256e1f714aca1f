/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejected_attaches.h: lists the last processes whose hello was rejected, and why, for ListApps;
 * written by ingest. A process that tries again every second is one entry with a count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

enum { REJECTED_ATTACHES_MAX = 16 };

struct rejected_attach {
	char app[PROTO_NAME_SIZE]; /* what it called itself; "" = it did not say */
	uid_t uid;
	pid_t pid;	 /* of the last try */
	char reason[96]; /* cut to fit */
	uint64_t count;
	uint64_t last_ns;
};

struct rejected_attaches {
	struct rejected_attach entry[REJECTED_ATTACHES_MAX];
	uint32_t count;
};

/* True when this app of this user was not rejected for this reason before; the entry that was not
 * updated for longest makes room. */
bool rejected_attaches_add(struct rejected_attaches *rejected, const char *app, uid_t uid,
	pid_t pid, const char *reason, uint64_t now_ns);

/* The app of this user has attached: its entries go. */
void rejected_attaches_forget(struct rejected_attaches *rejected, const char *app, uid_t uid);
