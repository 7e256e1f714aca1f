/* SPDX-License-Identifier: Apache-2.0 */
/* persist_status.h: holds the state of the history on disk; written by persist on the loop. Zeroed
 * = off. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum persist_state {
	PERSIST_OFF,
	PERSIST_STARTING, /* the file is being created or read */
	PERSIST_OK,
	PERSIST_PAUSED,	  /* the day's bytes are used up */
	PERSIST_DEGRADED, /* in memory only; tried again */
	PERSIST_STUCK,	  /* the medium does not answer */
	PERSIST_IMPAIRED, /* written, but it cannot be read, or something was dropped */
};

struct persist_status {
	enum persist_state state;
	char reason[192]; /* why it is not ok; "" = it is */
	char path[208];	  /* of the file; "" = none */
	uint64_t file_bytes;
	uint64_t day_bytes, day_limit_bytes; /* of a rolling day, with the file system's own */
	uint64_t written_bytes;		     /* the same since start; without the file's making */
	uint64_t bucket_ns, period_ns;	     /* of the next blocks; 0 = not known yet */
	uint64_t loss_ns;		     /* what a power cut can cost */
};

static inline const char *persist_state_name(enum persist_state state)
{
	static const char *const names[] = {
		"off", "starting", "ok", "paused", "degraded", "stuck", "impaired"};
	return names[state];
}

/* True, in `degraded` of GetStatus, while nothing would survive a power cut. */
static inline bool persist_is_degraded(const struct persist_status *status)
{
	return status->state == PERSIST_PAUSED || status->state == PERSIST_DEGRADED ||
	       status->state == PERSIST_STUCK;
}
