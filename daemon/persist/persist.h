/* SPDX-License-Identifier: Apache-2.0 */
/*
 * persist.h: keeps the history that survives a reboot ([history] persist): from the commits and the
 * timeline into the archive, from there to its file in blocks as often as the account permits.
 * Whatever the medium does, the daemon goes on from memory, says so, and tries again: after 10 s,
 * then twice as long each time, up to 10 min.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/core/core.h"

struct persist;

struct persist_options {
	const char *path;   /* of the state directory; "" = the usual one (statedir.h) */
	uint64_t size;	    /* of the file in bytes */
	uint64_t day_bytes; /* that may be written in 24 h */
	uint8_t boot_id[16];
	/* Tests only: other times between blocks and before the first retry; 0 = the real ones. */
	uint64_t period_ns, retry_ns;
};

/* Makes core->archive and core->archive_reader and watches the timeline; opens the file in the
 * background; status has the state. On failure *ret may be there, to be closed: -ENOMEM,
 * -ENOSPC, -EAGAIN (no thread). */
int persist_open(uv_loop_t *loop, struct core *core, struct persist_status *status,
	const struct persist_options *options, struct persist **ret);

/* The state directory is there and can be written. NULL is fine. */
bool persist_is_open(const struct persist *persist);
/* Something else is to be written there: is it within the account, which is charged then? last: the
 * process ends. */
bool persist_charge(struct persist *persist, size_t bytes, bool last);

/* Writes what there is, for at most 2 s; finishes while the loop runs empty. NULL is fine. */
void persist_close(struct persist *persist);
/* After the loop ran empty. NULL is fine. */
void persist_destroy(struct persist *persist);
