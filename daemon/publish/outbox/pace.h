/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h: limits how fast the backlog is sent once the broker is back: a few messages at once, the
 * rest evenly, so that a fleet that reconnects together does not fill the broker's queues. Messages
 * made after that are sent as they come. Time is an argument. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PACE_AT_ONCE = 16, PACE_PER_S = 20 };

struct pace {
	size_t left;	/* messages that are still paced; 0: none */
	unsigned burst; /* messages that may be sent at once */
	uint64_t next_ns;
};

/* Starts a connection with the given number of waiting messages. */
void pace_begin(struct pace *pace, size_t waiting);

/* How long the next message has to wait; 0: not at all. */
uint64_t pace_wait_ns(const struct pace *pace, uint64_t now_ns);

/* A message was handed over. */
void pace_sent(struct pace *pace, uint64_t now_ns);
