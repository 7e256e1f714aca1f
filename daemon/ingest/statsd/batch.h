/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h: holds datagrams that were received together, and processes them line by line. */
#pragma once

#include "daemon/ingest/statsd/apps.h"

struct deferred_close;

enum { STATSD_BATCH = 8 };

struct statsd_item {
	const char *bytes;
	size_t length;
	struct statsd_sender sender;
};

struct statsd_batch {
	struct core *core;
	struct statsd_apps *apps;
	uint64_t now_ns;  /* when it was read */
	size_t count, at; /* at == count: all processed */
	struct statsd_item item[STATSD_BATCH];
	struct statsd_reader reader;	       /* of item[at], after those before */
	char *bytes;			       /* STATSD_BATCH times STATSD_DATAGRAM_MAX */
	struct deferred_close *deferred_close; /* of descriptors that were sent along */
};

/* -ENOMEM. Call finish after a failure, too. */
int statsd_batch_init(struct statsd_batch *batch, struct core *core, struct statsd_apps *apps);
void statsd_batch_finish(struct statsd_batch *batch);

/* Receives at most STATSD_BATCH datagrams into a batch that has been processed; their number. Those
 * without credentials (UDP) are of nobody, uid 65534. *lost is the kernel's count for this socket
 * as of the last datagram. Nothing is received while too many descriptors wait to be closed. */
size_t statsd_batch_read(struct statsd_batch *batch, int fd, uint32_t *lost);

/* Processes the lines and subtracts the work from *budget: a line, a further value of it and 64
 * bytes are 1 each, a refused line 8 more, a new name or app 256 more. False: the budget ended
 * first. */
bool statsd_batch_process(struct statsd_batch *batch, size_t *budget);
