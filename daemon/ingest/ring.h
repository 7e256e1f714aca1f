/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h: reads one event mapping (proto/mapping.h). The memory belongs to a peer that may write
 * anything into it at any time: every word is loaded once, copied, and the copy is validated
 * against bounds of the daemon. Pure: no system call, no clock, no libuv.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/mapping.h"

enum {
	RING_BUDGET = 16384, /* records of one call: well under a millisecond */
	RING_BATCH = 128,    /* records that the sink gets at once: they stay in the first cache */
	RING_TURN = 32,	     /* of one slot before it is the turn of the oldest again */
};

struct ring_sink {
	void (*declare)(void *ctx, uint32_t index, const struct proto_declaration *copy);
	/* Up to RING_BATCH records in their order. How many it accepts: the others stay in the
	 * mapping, and the pass ends. */
	size_t (*records)(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n);
	/* Its records are another thread's from here on; may be NULL. Of one that took it while
	 * records of the one before were unread, those count as its own. */
	void (*taken)(void *ctx, uint32_t slot);
	void *ctx;
};

struct ring_counts {
	uint64_t sent, received, dropped, in_ring; /* sent = received + dropped + in_ring */
	uint64_t skipped; /* received, but skipped at attachment: not plausible */
	uint32_t threads; /* slots in use */
	uint32_t damaged; /* slots that are no longer read */
};

struct ring_open {
	struct proto_open_stage
		stage; /* start_ns, frame, declaration index below PROTO_DECLARATIONS */
	uint32_t tid;
};

struct ring;

/* Reads the header, finds where the previous reader stopped by its checkpoints, frees what it left.
 * map has size bytes, is 8-byte aligned and stays until ring_destroy. -EINVAL: not a listed size;
 * -EBADMSG: no header of this magic and size; -EPROTONOSUPPORT: another major version; -ENOMEM. */
int ring_create(void *map, uint32_t size, struct ring **ret);
void ring_destroy(struct ring *ring); /* does not unmap */

/* Hands new declarations and at most budget records to the sink and checkpoints. Slots take turns,
 * so that what threads did at one time is read at about the same time. The number of records;
 * *more: some were left. A pass is complete when *more is false. */
size_t ring_drain(struct ring *ring, const struct ring_sink *sink, size_t budget, bool *more);

/* The end of the oldest record that the last call left, as the record has it; 0: it left none. */
uint64_t ring_waiting_ns(const struct ring *ring);

void ring_counts(const struct ring *ring, struct ring_counts *ret);

/* The open stages of all threads, oldest first; the newest max are kept. The number. Exact only
 * when the process is dead. */
size_t ring_open_stages(const struct ring *ring, struct ring_open *ret, size_t max);

/* PROTO_MAP_* flags of the header. */
uint32_t ring_flags(const struct ring *ring);
