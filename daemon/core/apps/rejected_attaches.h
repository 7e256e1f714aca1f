/*
 * Processes whose hello was refused, and why: the last few, for people who miss their app. One that
 * tries again every second is one entry that counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

enum { REFUSALS_MAX = 16 };

struct refusal {
	char app[PROTO_NAME_SIZE]; /* what it called itself; "" = it did not say */
	uid_t uid;
	pid_t pid;	 /* of the last try */
	char reason[96]; /* cut to fit */
	uint64_t count;
	uint64_t last_ns;
};

struct refusals {
	struct refusal entry[REFUSALS_MAX];
	uint32_t count;
};

/* Notes a refusal. True when this app of this user was not refused for this reason before; the
 * entry that was quiet for longest makes room. */
bool refusals_add(struct refusals *refusals, const char *app, uid_t uid, pid_t pid,
	const char *reason, uint64_t now_ns);

/* The app of this user has attached: why it was refused before is of no interest any more. */
void refusals_forget(struct refusals *refusals, const char *app, uid_t uid);
