/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.h: accounts to each user their part of shared resources: connections, memory,
 * descriptors that wait to be closed, time of the loop. One table serves all parts of the daemon.
 * The slot of a user who holds nothing is reused when it is needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ACCOUNTS_MAX = 256, ACCOUNTS_RESERVE = 8 };

/* The fields are the callers'. Stays where it is while any of the held ones is not 0. */
struct account {
	uid_t uid;
	/* held */
	uint32_t api_connections;
	uint32_t event_connections;
	uint32_t closing;	/* event connections that are not closed yet */
	uint32_t descriptors;	/* received from this user, not closed yet */
	size_t api_bytes;	/* queued output, partial input, streams */
	size_t api_queued;	/* of these, the output */
	uint64_t mapping_bytes; /* of event mappings */
	/* time of the loop, accounts_charge() */
	uint64_t served_ns, served_period;
	/* kept while nothing is held */
	uint64_t marks_due_ns; /* ratelimit.h */
	uint64_t used_ns;      /* of the last accounts_of() */
};

/* What one part of the daemon did in this iteration of the loop. */
struct iteration {
	uint64_t number, loop_ms;
	uint64_t used;
};

/* Begins a new one when the number of iterations has changed or, where nobody counts them, time has
 * passed. */
static inline void iteration_update(struct iteration *iteration, uint64_t number, uint64_t loop_ms)
{
	if (number != iteration->number || loop_ms > iteration->loop_ms + 1) {
		*iteration = (struct iteration){.number = number, .loop_ms = loop_ms};
	}
}

struct accounts;

int accounts_create(struct accounts **ret); /* -ENOMEM */
void accounts_destroy(struct accounts *accounts);

/* The user's account, created when there is none. NULL: ACCOUNTS_MAX users hold something. By
 * now_ns the least recently used of the empty accounts is reused. */
struct account *accounts_of(struct accounts *accounts, uid_t uid, uint64_t now_ns);

/* Time of the loop that was spent on the user in this tenth of a second; the user with the least is
 * served first. loop_ms: the loop's clock. */
uint64_t accounts_served(const struct account *account, uint64_t loop_ms);
void accounts_charge(struct account *account, uint64_t loop_ms, uint64_t ns);

/* True when a user who holds own of max slots, of which all are used, may have want more: a user
 * may hold half of what is free. */
bool accounts_fair(uint64_t max, uint64_t own, uint64_t all, uint64_t want);

/* The same with an eighth of max on top, which a trusted user leaves to others: that user may hold
 * all of max, and even then others find half of what is on top, each. Storage has
 * space for max + max / ACCOUNTS_RESERVE. */
bool accounts_fits(uint64_t max, uint64_t own, uint64_t all, uint64_t want, bool trusted);
