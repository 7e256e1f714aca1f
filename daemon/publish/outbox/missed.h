/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missed.h: tallies messages that were given up without having been delivered, so that a device can
 * say on its return what a receiver will never get. Plain data that may outlive the process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/name.h"

enum { MISSED_RULES = 32 };

struct missed {
	uint64_t first_ns, last_ns; /* of those whose time is known; 0: none */
	uint64_t alerts;	    /* all events of alerts, also of rules that have no entry */
	uint64_t summaries;	    /* and statistics of stages */
	uint64_t others; /* recordings, and what was lost with a process that was killed */
	struct {
		char name[PROTO_NAME_SIZE];
		uint64_t count;
	} rule[MISSED_RULES]; /* "" ends them */
};

struct outbox_message;

/* A message is given up. A retained state is not counted: the newest one is never. */
void missed_add(struct missed *missed, const struct outbox_message *message);
bool missed_any(const struct missed *missed);

/* What a killed process may have left half written is made valid. */
void missed_repair(struct missed *missed);
