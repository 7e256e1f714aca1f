/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_read.h: reads the blocks of queries from the archive's file, at most two at a time, each
 * on a thread of its own: the others wait in order. A medium that does not answer holds nobody but
 * who asks for the past: neither libuv's workers nor the daemon's stop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/core/archive/archive.h"

enum {
	ARCHIVE_READS_MAX = 2,	   /* at a time */
	ARCHIVE_READS_QUEUED = 32, /* that wait */
};

#define ARCHIVE_READ_STUCK_MS 5000u /* both are as old: the medium does not answer */

struct archive_readers;

/* How reads fare, of those that reached the medium. */
struct archive_reads {
	uint64_t failed; /* since start */
	int error;	 /* of the last one that ended; 0 = it succeeded */
	bool stuck;	 /* one has not been answered for ARCHIVE_READ_STUCK_MS */
};

/* descriptor: of the archive's file as it is now, -1 = none; every read uses a duplicate. -ENOMEM.
 */
int archive_readers_open(
	uv_loop_t *loop, int (*descriptor)(void *ctx), void *ctx, struct archive_readers **ret);

/* What queries use (core->archive_reader); lives as long as the readers. */
const struct archive_reader *archive_readers_ops(const struct archive_readers *readers);

void archive_readers_look(const struct archive_readers *readers, struct archive_reads *ret);

/* What waits ends with -ECANCELED; a read whose thread runs is left to it, and
 * ends with -ECANCELED and no plan for who still waits. Finishes while the loop runs. NULL is
 * fine. */
void archive_readers_close(struct archive_readers *readers);
