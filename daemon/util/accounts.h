/*
 * accounts: what each user holds of what is shared: connections, memory, descriptors that wait to
 * be closed, time of the loop. One table for all parts of the daemon. A user who holds nothing
 * gives his place when it is needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ACCOUNTS_MAX = 256 };

/* The fields are the callers'. Stays where it is while any of the held ones is not 0. */
struct account {
	uid_t uid;
	/* held */
	uint32_t api_connections;
	uint32_t event_connections;
	uint32_t closing;	/* event connections that are not closed yet */
	uint32_t descriptors;	/* received from this user, not closed yet */
	size_t api_bytes;	/* queued output, partial input, streams */
	uint64_t mapping_bytes; /* of event mappings */
	/* time of the loop, accounts_charge() */
	uint64_t served_ns, served_period;
	/* remembered for a while */
	uint64_t marks_due_ns, attach_due_ns; /* ratelimit.h */
	uint64_t used_ns;		      /* when it was asked for last */
};

/* What one part of the daemon did in this turn of the loop. */
struct turn {
	uint64_t number, loop_ms;
	uint64_t used;
};

/* Begins a new one where the number of turns has grown, or (nobody counts them) time has passed. */
static inline void turn_look(struct turn *turn, uint64_t number, uint64_t loop_ms)
{
	if (number != turn->number || loop_ms > turn->loop_ms + 1) {
		*turn = (struct turn){.number = number, .loop_ms = loop_ms};
	}
}

struct accounts;

int accounts_create(struct accounts **ret); /* -ENOMEM */
void accounts_destroy(struct accounts *accounts);

/* The user's account, made when there is none. NULL: ACCOUNTS_MAX users hold something. now_ns
 * tells whose empty account was not needed for longest. */
struct account *accounts_of(struct accounts *accounts, uid_t uid, uint64_t now_ns);

/* Time of the loop that was spent for the user in this tenth of a second: who had least comes
 * first. loop_ms: the loop's clock. */
uint64_t accounts_served(const struct account *account, uint64_t loop_ms);
void accounts_charge(struct account *account, uint64_t loop_ms, uint64_t ns);

/* True when max places of which all are taken (own of them by this user) have one more for him:
 * half of what the others leave. */
bool accounts_fair(uint64_t max, uint64_t own, uint64_t all, uint64_t want);
